# SPDX-License-Identifier: MIT
# ci: nonroot asan
# What cannot be merged, and outputs that cannot be made. Nothing remains after a failure.
. "$TOKMAP_CLI/helpers.sh"
ranks
mkdir data
printf 'hello' >a.txt
tokmap pack -q -o data/bytes a.txt
tokmap pack -q --no-eod -o data/open a.txt
tokmap pack -q -t v.tiktoken --pattern gpt2 --no-eod -o data/ranks a.txt
printf '{"<|far|>": 70000}' >far.json
tokmap pack -q -t v.tiktoken --pattern gpt2 --special-tokens far.json --eod=far -o data/wide a.txt
misused()
{
    exits 2 tokmap merge "$@" >out 2>err
    [ ! -s out ]
}
misused
misused data/bytes
misused -o new
misused -o new.tmx data/bytes
misused -o new.bin data/bytes
printf 'seq_len 1\nbatch 1\nsource web data/bytes\n' >train.run
misused -o new train.run
failed()
{
    exits 1 tokmap merge "$@" >out 2>err
    [ ! -s out ]
    equal "$(ls new* 2>/dev/null)" ''
}
failed -o new nothing
holds err nothing
failed -o new data/bytes data/ranks
holds err "data/ranks.tmx: its tokenizer has fingerprint "
holds err ' (v.tiktoken), but that of data/bytes.tmx has '
holds err ' (bytes); pack both with the same tokenizer'
failed -o new data/ranks data/wide
holds err "data/wide.tmx: its tokens have 4 bytes, but those of"
failed -o new synthetic:vocab=300,tokens=10
holds err "a synthetic dataset has no shards"
printf '{"text": "a"}\n{"text": "b"}\n' >b.jsonl
tokmap pack -q -o data/pair b.jsonl
for part in docs=0..50% docs=1..2 tokens=0..3; do
    failed -o new data/bytes "data/pair#$part"
    holds err "data/pair#$part: this is a part of a shard, and a manifest names whole shards"
done
printf '\1\0\2\0' >raw.bin
failed -o new raw:raw.bin,width=2
holds err 'these files of another project (raw) have no index'
failed -o raw.bin/new data/bytes
failed -o data data/bytes
holds err "data: this is a folder"
failed -o data/bytes data/open
holds err "data/bytes.tmx: this shard exists, so 'data/bytes' means it"
tokmap merge -q -o made data/bytes
cp made kept
exits 1 tokmap merge -o made data/bytes data/bytes 2>err
holds err "the output already exists; choose another name, or use --force"
same made kept
# Shards that end documents differently are combined with the warning that every reader prints.
tokmap merge -q -o two data/bytes data/open 2>err
holds err 'tokmap merge: warning: two: documents end differently: those of '
tokmap info two >out 2>err
holds err 'tokmap info: warning: two: documents end differently: those of '
# A name with a line end.
line='data/a
b'
cp data/bytes.bin "$line.bin"
cp data/bytes.tmx "$line.tmx"
failed -o new "$line"
holds err "the name contains a line end"
