# SPDX-License-Identifier: MIT
# index -t and convert -t: other projects' files learn their tokenizer, as packed shards know theirs.
. "$TOKMAP_CLI/helpers.sh"
need python3
ranks
made_by='-t v.tiktoken --pattern gpt2 --special-tokens specials.json'
printf 'say hello hello\nhello say\n' >text
pack()
{
    tokmap pack -q $made_by --separator '\n' "$@" text
}
pack -o packed
pack -o ids
tokmap convert -q --to megatron -o m ids
cp m.bin t.bin
tokmap show -q packed -d 1 >wanted
fingerprint()
{
    tokmap info "$1" --json >info.json
    python3 -c 'import json; f = json.load(open("info.json")); print(f["tokenizer"], f["vocabulary"], f["content"])'
}
packed=$(fingerprint packed)

# Indexed without it, nothing knows the texts; with it, all is as it was packed.
tokmap index -q m
exits 1 tokmap show -q m -d 1 2>err
holds err "does not record which tokenizer made the ids"
exits 1 tokmap index $made_by m 2>err
holds err "the index already exists; use --force"
tokmap index --force $made_by m --json >out
json out
holds out '"tokenizer": "v.tiktoken"'
equal "$(fingerprint m)" "$packed" "the fingerprint, the vocabulary, and the content id"
tokmap show -q m -d 1 >got
same got wanted
tokmap verify -q m
tokmap convert -q $made_by -o copy m
equal "$(fingerprint copy)" "$packed" copy
# A file without an index: convert takes the tokenizer, too.
set -- $(tokmap info packed --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["eod_id"])')
raw=raw:t.bin,width=2,eod=$1
tokmap convert -q $made_by -o raw "$raw"
equal "$(fingerprint raw)" "$packed" raw
tokmap show -q raw -d 1 >got
same got wanted
tokmap verify -q raw
tokmap convert -q $made_by --to datatrove -o d "$raw"
holds d.ds.metadata 'v.tiktoken|2'
# What it records is kept, and not contradicted.
tokmap convert -q -o kept raw
equal "$(fingerprint kept)" "$packed" kept
exits 1 tokmap convert -t bytes -o other raw 2>err
holds err "bytes: the dataset was not made with this tokenizer, whose fingerprint is"
holds err "Leave out --tokenizer to keep that"
pack --special recognize -o recognized
tokmap convert -q $made_by -o again recognized
equal "$(fingerprint again)" "$(fingerprint recognized)" "special tokens that were recognized"

# Ids that the tokenizer does not have are not its own.
python3 -c 'from array import array; open("w.bin", "wb").write(array("H", [1, 2, 60000]).tobytes())'
for command in "index" "convert -o w2"; do
    exits 1 tokmap $command $made_by raw:w.bin,width=2 2>err
    holds err "60000, but ids must be below"
    holds err "correct the tokenizer: another one made the ids"
done
[ ! -e w.tmx ] && [ ! -e w2.tmx ]
exits 1 tokmap index $made_by raw:w.bin,width=2,vocab=65000 2>err
holds err "the name says vocab=65000, but the tokenizer has"
exits 1 tokmap convert -t bytes -o w2 raw:w.bin,width=2,eod=60000 2>err
holds err "documents end with token 60000, which the tokenizer with its 257 ids does not have"
exits 1 tokmap index -t bytes raw:w.bin,width=2,eod=60000 2>err
holds err "correct the word eod or bos"
exits 1 tokmap index -t nothing.json raw:w.bin,width=2 2>err
holds err "there is no file or folder of this name"
exits 2 tokmap index --pattern gpt2 raw:w.bin,width=2 2>err
exits 2 tokmap index -t bytes --mask text m 2>err
holds err "--mask and --tokenizer exclude each other"
