# SPDX-License-Identifier: MIT
# tokmap pack --also: the files of other projects beside the shard, with its tokens shared where they can be.
. "$TOKMAP_CLI/helpers.sh"
need python3
corpus
tokmap pack --also megatron,llmc,datatrove,olmo,nanogpt -o a in >out 2>err
holds out "also megatron: wrote 402 B, and shares the 29.5 kB of tokens"
holds out "also llmc: wrote 30.5 kB, a copy of the tokens included"
equal "$(ls a.* | tr '\n' ' ')" \
    'a.bin a.csv.gz a.ds a.ds.index a.ds.metadata a.idx a.llmc.bin a.meta.json a.npy a.tmx '
equal "$(stat -c %i a.bin a.npy a.ds | sort -u | wc -l)" 1
tokmap verify -q a
# Each is what `tokmap convert` makes of the shard, and the shard is what it is without --also.
tokmap pack -q -o b in
same a.bin b.bin
same a.tmx b.tmx
for form in megatron:idx datatrove:ds datatrove:ds.index datatrove:ds.metadata olmo:npy olmo:csv.gz llmc:bin \
    nanogpt:meta.json; do
    tokmap convert -q --force --to ${form%:*} -o c b
    made=a.${form#*:}
    [ $form != llmc:bin ] || made=a.llmc.bin
    same $made c.${form#*:}
    rm -f c.*
done
tokmap pack --json --also olmo,llmc -o d in >out
json out
equal "$(field out also.0.format) $(field out also.0.shared_bytes) $(field out also.1.shared_bytes)" 'olmo 29522 0'

# Replacing: nothing of the older shard stays beside the newer one, and no .idx is left with other tokens.
printf 'another text\n' >text
exits 1 tokmap pack -q --also megatron -o b in 2>err
holds err "b.bin: the output already exists"
touch e.idx
exits 1 tokmap pack -q --also megatron -o e text 2>err
holds err "e.idx: the file already exists; choose another name, or use --force"
[ ! -e e.bin ]
exits 1 tokmap pack -q --force -o a text 2>err
holds err "a.idx: this is an index of Megatron for tokens that would be replaced; write it again with --also megatron"
tokmap verify -q a
tokmap pack -q --force --also megatron,olmo -o a text
tokmap convert -q --to megatron -o c a
same a.idx c.idx
same a.npy a.bin
tokmap verify -q a
# A pack that fails leaves the older files as they are.
cp a.idx before
exits 1 tokmap pack -q --force --also megatron -o a missing.txt 2>err
same a.idx before

# What cannot be written is refused before anything is packed.
exits 2 tokmap pack -q --also megatron,word2vec -o x in 2>err
holds err "--also: 'word2vec' is not a format"
exits 2 tokmap pack -q --also olmo,olmo -o x in 2>err
exits 2 tokmap pack -q --also= -o x in 2>err
exits 2 tokmap pack -q --also olmo, -o x in 2>err
exits 2 tokmap pack -q --also olmo --dry-run in 2>err
printf '{"i": [1, 2, 3], "m": [0, 1, 1]}\n' >masked.jsonl
exits 1 tokmap pack -q --also olmo -o x --ids-field i --mask-field m --vocab-size 10 --no-eod masked.jsonl 2>err
holds err "the documents have masks, and the files of olmo cannot have one"
exits 1 tokmap pack -q --also nanogpt -o x --ids-field i --vocab-size 70000 --no-eod masked.jsonl 2>err
holds err "nanogpt's tokens have 2 bytes, but those of this tokenizer have 4"
[ ! -e x.bin ] && [ ! -e x.bin.partial ]
tokmap pack -q --also datatrove -o m --ids-field i --mask-field m --vocab-size 10 --no-eod masked.jsonl
printf '\000\001\001' >wanted
same m.ds.loss wanted

# After kill -9 at any moment the shard is sound, and an .idx beside it is the one of its tokens.
awk 'BEGIN { for (i = 0; i < 30000; i++) print "{\"text\": \"record " i " of many, and more of it\"}" }' >one.jsonl
sed 's/record/another record/' one.jsonl >two.jsonl
tokmap pack -q --also megatron -o k one.jsonl
mkdir sound
seen=
i=0
while [ $i -lt 24 ]; do
    i=$((i + 1))
    input=two.jsonl
    [ $((i % 2)) -eq 0 ] || input=one.jsonl
    tokmap pack -q --force --also megatron -o k $input 2>err &
    pid=$!
    sleep 0.0$((i % 9))
    kill -s KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    tokmap verify -q k
    seen="$seen $([ -e k.idx ] && echo set || echo none)"
    [ -e k.idx ] || continue
    tokmap convert -q --force --to megatron -o sound/k k
    same k.idx sound/k.idx
    # Just before an old k.idx goes, the tokens have the name with the id of their index (shard_commit.h), and Megatron
    # finds no k.bin.
    tokens=k.bin
    [ -e $tokens ] || tokens=k.bin.$(od -An -v -tx8 -j40 -N8 k.tmx | tr -d ' ')
    same $tokens sound/k.bin
done
echo "$seen"
tokmap pack -q --force --no-resume --also megatron -o k one.jsonl
equal "$(ls k.* | tr '\n' ' ')" 'k.bin k.idx k.tmx '
