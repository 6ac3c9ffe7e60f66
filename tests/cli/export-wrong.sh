# SPDX-License-Identifier: MIT
# ci: nonroot asan
# Misuse of export, documents that are not text, and outputs that cannot be made or that exist.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
misused()
{
    exits 2 tokmap export "$@" >out 2>err
    [ ! -s out ]
    [ -s err ]
}
misused
misused small small
misused small --jsonl --text
for name in a.jsonl.zst a.txt.gz a.parquet; do
    misused small -o $name
    holds err "-o $name has the name of another format than JSONL"
    [ ! -e $name ]
done
misused small --text --origin
misused small --json
misused small --documents 3
misused small --documents 3..2
misused small -j 0
misused small -j 257
printf 'seq_len 64\nbatch 8\nsource web small\n' >train.run
misused train.run
holds err "'train.run' is a run file; name the dataset"
exits 1 tokmap export nothing 2>err
exits 1 tokmap export small --documents 0..19 2>err
holds err "documents 0..19 reach past the end; the dataset has 18 documents"
exits 1 tokmap export synthetic:vocab=300,tokens=100 2>err
holds err "a synthetic dataset has no text; choose another one"
ranks
tokmap pack -q -t v.tiktoken --pattern gpt2 --no-eod -o ranked in/a.txt
mv v.tiktoken away
exits 1 tokmap export ranked 2>err
holds err "name the tokenizer's file with --tokenizer"
if grep -e --ids err; then exit 1; fi
mv away v.tiktoken
exits 1 tokmap export ranked -t bytes 2>err
holds err "the dataset was not made with this tokenizer"
# Where no tokenizer is recorded, the one that -t names is taken at its word.
printf '{"ids": [259, 260]}\n{"ids": [115, 65795]}\n' >unknown.jsonl
tokmap pack -q --ids-field ids --vocab-size 70000 --no-eod -o unknown unknown.jsonl
exits 1 tokmap export unknown 2>err
holds err "unknown.bin: the index does not record which tokenizer made the ids; name that tokenizer's file with --tokenizer"
if grep -e --ids err; then exit 1; fi
exits 1 tokmap export unknown -t v.tiktoken --pattern gpt2 2>err
holds err "unknown.bin: document 1, token 1: id 65795 is not in the vocabulary of the tokenizer"
tokmap export --check unknown --documents 0..1 -t v.tiktoken --pattern gpt2 >out 2>err
equal "$(cat out)" '{"text": "hello hello"}'
equal "$(grep -c "the dataset does not record its tokenizer, so the texts are those that 'v.tiktoken' gives" err)" 1
# Tokens that are not those of a text: one byte of a character of two, as no pack writes them.
printf '{"ids": [195, 101, 120, 116, 32, 111, 110, 101]}\n{"ids": [116, 101, 120, 116, 32, 116, 119, 111]}\n' >ids.jsonl
for dataset in 'broken -t bytes --eod' 'ranks -t v.tiktoken --pattern gpt2 --no-eod'; do
    set -- $dataset
    tokmap pack -q -o "$@" --ids-field ids ids.jsonl
    exits 1 tokmap export -o $1.jsonl $1 2>err
    holds err "$1.bin: document 0 is not valid UTF-8"
    holds err "set --invalid-utf8 to write U+FFFD for the invalid bytes (replace) or to leave the document out (skip)"
    [ ! -e $1.jsonl ] && [ ! -e $1.jsonl.partial ]
    tokmap export --invalid-utf8 replace $1 >out 2>err
    holds out '{"text": "�ext one"}'
    holds out '{"text": "text two"}'
    holds err '1 of them not valid UTF-8: U+FFFD was written'
    tokmap export --invalid-utf8 skip $1 >out 2>err
    equal "$(cat out)" '{"text": "text two"}'
    holds err '1 more document not valid UTF-8 and left out'
    exits 1 tokmap export --check $1 2>err
done
# A character U+FFFD of a text is as good as any other, also where the tokens are not those of the decoded text.
tokmap train-tokenizer -q --vocab-size 270 --special-tokens '<|im_start|>,<|im_end|>' -o chat in/a.txt
printf '{"messages": [{"role": "user", "content": "�"}, {"role": "assistant", "content": "a�b"}]}\n' >chat.jsonl
tokmap pack -q -t chat.json --chat-template chatml --messages-field messages --no-eod -o talk chat.jsonl
tokmap export -q --text talk >out
holds out 'a�b<|im_end|>'
# Tokens that decode to a text but are not its encoding: h, e where the tokenizer has he.
printf 'he' >he.txt
tokmap pack -q -t v.tiktoken --pattern gpt2 --no-eod -o pair he.txt
equal "$(tokmap show -q pair --tokens 0..1 --ids)" 256
printf '{"ids": [104, 101]}\n' >split.jsonl
tokmap pack -q -t v.tiktoken --pattern gpt2 --no-eod -o split --ids-field ids split.jsonl
equal "$(tokmap export -q split)" '{"text": "he"}'
exits 1 tokmap export --check split 2>err
holds err "split.bin: document 0 does not have the tokens that its text has when it is encoded again"
# An id that the tokenizer does not have.
printf '\377\377' | dd of=split.bin bs=1 seek=0 conv=notrunc 2>/dev/null
exits 1 tokmap export split 2>err
holds err "split.bin: block 0 of the tokens does not match its hash"
exits 1 tokmap export -t v.tiktoken --pattern gpt2 raw:split.bin,width=2,vocab=65536 2>err
[ -s err ]
# Outputs.
echo mine >there
exits 1 tokmap export -o there small 2>err
holds err "there: the output already exists; choose another name, or use --force"
equal "$(cat there)" mine
tokmap export -q -o there --force small
equal "$(wc -l <there)" 18
mkdir folder
exits 1 tokmap export -o folder --force small 2>err
holds err "folder: this is a folder"
exits 1 tokmap export -o folder/ small 2>err
exits 1 tokmap export -o there/out small 2>err
holds err "there: the output folder is not a folder; choose another name"
mkfifo pipe
exits 1 tokmap export --force -o pipe small 2>err
holds err "pipe: this is not a regular file"
[ -w /dev/full ] && exits 1 tokmap export small >/dev/full 2>err
# The partial file that a killed process left is taken over.
echo old >new.partial
tokmap export -q -o new small
same new there
[ ! -e new.partial ]
# With --force, the dataset is not replaced by its own text.
tokmap merge -q -o list small
for own in small.bin small.tmx list; do
    exits 1 tokmap export -q --force -o $own list 2>err
    holds err "$own: this output is a file of the dataset that is exported; choose another name"
done
tokmap verify -q list
# An interrupt leaves nothing.
i=0
while [ $i -lt 12 ]; do
    cat in/b/long.txt in/b/long.txt in/b/long.txt in/b/long.txt
    i=$((i + 1))
done >large.txt
cat large.txt large.txt large.txt large.txt large.txt large.txt large.txt large.txt >larger.txt
for i in 1 2 3 4 5 6 7 8; do
    cat larger.txt
done >largest.txt
tokmap pack -q -o large largest.txt largest.txt
tokmap export -j 1 --check -o stopped large 2>err &
await [ -e stopped.partial ]
kill -TERM $!
status=0
wait $! || status=$?
[ ! -e stopped.partial ]
if [ $status -ne 0 ]; then
    equal $status 143
    [ ! -e stopped ]
    holds err "interrupted; the unfinished output has been removed"
fi
# Damage: two bytes of a shard that make other ids of the vocabulary, in a block after the first and in a later shard.
# What was exported before is not left as a file. Sealed shards say so themselves.
head -c 3000000 /dev/zero | tr '\0' a >long.txt
tokmap pack -q -o long --shard-tokens 2M --no-eod long.txt in/a.txt
for at in 2097152 4000000; do
    cp long-00000.bin sound
    printf 'b' | dd of=long-00000.bin bs=1 seek=$at conv=notrunc 2>/dev/null
    for threads in 1 3; do
        exits 1 tokmap export -j $threads -o damaged.jsonl long 2>err
        holds err "long-00000.bin: block $((at / 1048576)) of the tokens does not match its hash; restore the file"
        [ ! -e damaged.jsonl ] && [ ! -e damaged.jsonl.partial ]
    done
    exits 1 tokmap stats -q long >out 2>err
    holds err "long-00000.bin: block $((at / 1048576)) of the tokens does not match its hash; restore the file"
    [ ! -s out ]
    tokmap export -q --force --documents 1..2 -o second.jsonl long # of the other shard
    cp sound long-00000.bin
done
tokmap export -q -o sound.jsonl long
tokmap seal -q long
tokmap export -q -o sealed.jsonl long
same sound.jsonl sealed.jsonl
# Tokens without documents are not exported as nothing.
exits 1 tokmap export raw:small.bin,width=2,eod=0 -t bytes >out 2>err
holds err 'the documents of this dataset have no numbers'
[ ! -s out ]
