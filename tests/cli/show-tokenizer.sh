# SPDX-License-Identifier: MIT
# ci: asan
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
rm abs.tiktoken
# A dataset that does not record its tokenizer: the one that -t names is used, and a note says so, once.
mkdir ../../other
cd ../../other
ranks
vocabulary='-t v.tiktoken --pattern gpt2 --special-tokens specials.json'
printf '{"text": "say hello"}\n{"text": "hell hello"}\n' >in.jsonl
tokmap pack -q $vocabulary --no-eod -o web in.jsonl
tokmap convert -q --to megatron -o meg web
exits 1 tokmap show meg -d 1 2>err
holds err "meg.bin: the index does not record which tokenizer made the ids; name that tokenizer's file with --tokenizer"
holds err ", or print ids with --ids"
equal "$(tokmap show meg -d 1 $vocabulary 2>err)" 'hell hello'
holds err "the dataset does not record its tokenizer, so the texts are those that 'v.tiktoken' gives"
equal "$(tokmap show meg -d 1 -q $vocabulary 2>err)" 'hell hello'
[ ! -s err ]
# A fingerprint that is recorded still decides, and the one in the message is that of `tokmap tokenizer`.
rank_file w.tiktoken he ll hell hello ' hello' say
exits 1 tokmap show web -d 1 -t w.tiktoken --pattern gpt2 --special-tokens specials.json 2>err
hex=$(tokmap tokenizer w.tiktoken --pattern gpt2 --special-tokens specials.json | sed -n 's/^fingerprint *//p')
recognizing=$(tokmap tokenizer --special recognize w.tiktoken --pattern gpt2 --special-tokens specials.json |
    sed -n 's/^fingerprint *//p')
holds err "whose fingerprint is $hex ($recognizing where special tokens in text are recognized);"
# Ids may be wider than those of the tokenizer. One that it does not have is an error with its place.
printf '{"ids": [259, 260]}\n{"ids": [115, 260, 300]}\n' >good.jsonl
for id in 302 65795 69999; do # 65795 is 259 in two bytes
    printf '{"ids": [259, 260]}\n{"ids": [115, 260, %d]}\n' $id >$id.jsonl
    tokmap pack -q --ids-field ids --vocab-size 70000 --no-eod -o $id $id.jsonl
    equal "$(tokmap show -q $id -d 0 $vocabulary)" 'hello hello'
    for json in '' --json; do
        exits 1 tokmap show $id -d 1 $json $vocabulary >out 2>err
        holds err "$id.bin: document 1, token 2: id $id is not in the vocabulary of the tokenizer"
    done
done
tokmap pack -q --ids-field ids --vocab-size 70000 --no-eod -o wide good.jsonl
equal "$(tokmap show -q wide -d 1 --specials $vocabulary)" 's hello<|end|>'
# Each source of a run is judged on its own.
printf 'seq_len 2\nbatch 4\nseed 1\nsource web web\nsource meg meg\nphase 0 web 1 meg 1\n' >mix.run
exits 1 tokmap show mix.run --step 0 2>err
tokmap show mix.run --step 0 $vocabulary >out 2>err
equal "$(grep -c 'does not record its tokenizer' err)" 1
exits 1 tokmap show mix.run --step 0 -t w.tiktoken --pattern gpt2 --special-tokens specials.json 2>err
holds err "the dataset was not made with this tokenizer"
