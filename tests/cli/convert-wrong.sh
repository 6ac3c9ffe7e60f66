# SPDX-License-Identifier: MIT
# ci: nonroot asan
# tokmap convert: what it refuses, and that it leaves nothing then.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
exits 2 tokmap convert small 2>err
holds err "no output given; name it with -o PREFIX"
exits 2 tokmap convert -o x 2>err
exits 2 tokmap convert -o x small small 2>err
holds err "expected one dataset"
exits 2 tokmap convert --to parquet -o x small 2>err
exits 2 tokmap convert --width 3 -o x small 2>err
holds err "--width must be 2 or 4"
exits 2 tokmap convert --to nanogpt --width 4 -o x small 2>err
holds err "tokens of nanogpt have 2 bytes"
exits 1 tokmap convert -o in/a.txt/x small 2>err
holds err "the output folder is not a folder"
exits 1 tokmap convert -o x missing 2>err

# What exists is replaced only with --force, and a shard never by another project's .bin.
tokmap convert -q --to megatron -o m small
cp m.idx m.idx.before
exits 1 tokmap convert -q --to megatron -o m small 2>err
holds err "the output already exists; choose another name, or use --force"
tokmap convert -q --force --to megatron -o m small
same m.idx m.idx.before
rm m.idx
exits 1 tokmap convert -q --to megatron -o m small 2>err
holds err "m.bin: the output already exists"
tokmap convert -q --force --to megatron -o m small
same m.idx m.idx.before
tokmap pack -q -o other in
for format in megatron llmc nanogpt; do
    exits 1 tokmap convert -q --force --to $format -o other small 2>err
    holds err "other.tmx: this is the index of a shard of the same name, whose tokens would be replaced"
done
tokmap verify -q other
exits 1 tokmap convert -q --force -o m small 2>err
holds err "m.idx: this is an index of Megatron for the .bin that would be written"
exits 1 tokmap convert -q --force -o small small 2>err
holds err "this file has tokens of the dataset that is converted"
exits 1 tokmap convert -q --force --to llmc -o small small 2>err
holds err "llmc's files cannot share them"
exits 1 tokmap convert -q --force --width 4 --to megatron -o small small 2>err
mkdir folder.idx
exits 1 tokmap convert -q --force --to megatron -o folder small 2>err
holds err "folder.idx: this is a folder, which cannot be replaced by a file"

# Ids that do not fit, and ids outside the vocabulary.
printf '{"i": [1, 65536, 3]}\n' >ids.jsonl
tokmap pack -q -o wide --ids-field i --vocab-size 70000 --no-eod ids.jsonl
exits 1 tokmap convert -q --to nanogpt -o x wide 2>err
holds err "token 1 has the id 65536, but nanogpt's tokens of 2 bytes hold ids below 65536; choose another format"
exits 1 tokmap convert -q --to megatron --width 2 -o x wide 2>err
holds err "use --width of 4"
exits 1 tokmap convert -q --width 2 -o x wide 2>err
holds err "use --width of 4"
tokmap convert -q --to megatron -o w wide
exits 1 tokmap convert -q -o x w,vocab=65536 2>err
holds err "token 1 of the dataset has the id 65536, but ids must be below 65536"
printf '{"i": [1, 2147483648]}\n' >ids.jsonl
tokmap pack -q -o huge --ids-field i --vocab-size 4000000000 --no-eod ids.jsonl
exits 1 tokmap convert -q --to megatron -o x huge 2>err
holds err "token 1 has the id 2147483648, but megatron's tokens of 4 bytes hold ids below 2147483648"
tokmap convert -q --to olmo -o h huge

# Damage is not copied.
cp small.bin broken.bin
cp small.tmx broken.tmx
flip broken.bin 20000
exits 1 tokmap convert -q --to megatron -o x broken 2>err
holds err "broken.bin"
holds err "block 0 of the tokens does not match its hash"
exits 1 tokmap convert -q -o x broken 2>err
tokmap convert -q --to datatrove -o d small
printf '\377\377' | dd of=d.ds.index bs=1 seek=10 conv=notrunc 2>/dev/null
exits 1 tokmap convert -q -o x datatrove:d.ds 2>err
exits 1 tokmap convert -q --to megatron -o x datatrove:d.ds 2>err
exits 1 tokmap convert -q --to olmo -o x 'synthetic:vocab=100,tokens=0' 2>err
equal "$(ls | grep '^x' | wc -l)" 0
# A disk that is full.
if [ -w /dev/full ]; then
    exits 1 tokmap convert --json -o y small >/dev/full 2>err
fi
