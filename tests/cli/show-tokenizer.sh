# show opens the tokenizer that pack recorded, where its file still has the fingerprint, and otherwise asks for -t.
. "$TOKMAP_CLI/helpers.sh"
mkdir -p project/tok project/data/deep
cd project
ranks
mv v.tiktoken specials.json tok/
printf 'say hello hello\n' >text
tokmap pack -q -t tok/v.tiktoken --pattern gpt2 --special-tokens tok/specials.json -o data/deep/web text
tokmap show -q data/deep/web -d 0 >got
same got text
tokmap show -q data/deep/web -d 0 --json >json
holds json '"text": "say hello hello\n"'
# A recorded special token decodes as such only if it was recognized when the dataset was packed.
printf 'a <|end|> b' >special
tokmap pack -q -t tok/v.tiktoken --pattern gpt2 --special-tokens tok/specials.json --special recognize -o data/special \
    special
tokmap show -q data/special -d 0 --specials >got
holds got '<|end|>'
# From other folders: the folders above the index are searched, in names with and without folders.
cd data/deep
tokmap show -q web -d 0 >got
same got ../../text
cd ../..
tokmap show -q "$PWD/data/deep/web" -d 0 >got
same got text
cd /
tokmap show -q "$OLDPWD/data/deep/web" -d 0 >"$OLDPWD/got"
cd "$OLDPWD"
same got text
# A project that has moved as a whole is found; a dataset that moved alone is not, and says what to do.
cd ..
mv project moved
cd moved/data
tokmap show -q deep/web -d 0 >../got
same ../got ../text
mkdir ../../alone
cp deep/web.* ../../alone
exits 1 tokmap show ../../alone/web -d 0 2>err
holds err "made with the tokenizer 'tok/v.tiktoken'"
holds err "there is no such file in the current folder, the dataset's folder, or above it"
holds err "name the tokenizer's file with --tokenizer, or print ids with --ids"
tokmap show -q ../../alone/web -d 0 --ids >ids
holds ids 260
# A file that has become another tokenizer is not used. A near one that is right is, whatever is found before.
cp ../tok/v.tiktoken right
rank_file ../tok/v.tiktoken he ll
exits 1 tokmap show deep/web -d 0 2>err
holds err "that file is now another tokenizer"
holds err "with --tokenizer"
mkdir deep/tok
cp right deep/tok/v.tiktoken
cp ../tok/specials.json deep/tok/
tokmap show -q deep/web -d 0 >../got
same ../got ../text
# -t decides alone: another tokenizer is a fault even if the recorded path is right.
exits 1 tokmap show deep/web -d 0 -t bytes 2>err
holds err "the dataset was not made with this tokenizer"
holds err "or print ids with --ids"
# An absolute path is looked for where it is, and nowhere else.
cp right abs.tiktoken
tokmap pack -q -t "$PWD/abs.tiktoken" --pattern gpt2 --no-eod -o abs ../text
tokmap show -q abs -d 0 >../got
same ../got ../text
rm abs.tiktoken
exits 1 tokmap show abs -d 0 2>err
holds err "there is no such file any more"
# A folder or a pipe of that name is not read.
mkdir abs.tiktoken
exits 1 tokmap show abs -d 0 2>err
rmdir abs.tiktoken
mkfifo abs.tiktoken
exits 1 tokmap show abs -d 0 2>err
