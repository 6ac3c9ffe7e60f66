# SPDX-License-Identifier: MIT
# Files that an older output of the same name has in a folder of inputs are refused as inputs, whatever sets, shards,
# and formats that output had. A file of the user that is called like one of them is read.
. "$TOKMAP_CLI/helpers.sh"
need awk
awk 'BEGIN { for (i = 0; i < 200; i++) printf "{\"text\": \"document %d of many, %d\"}\n", i, i * 7 }' >a.jsonl
split='--split train=0.9,val=0.1'
common='-q -t bytes --no-eod'
# Everything is read as text, one document per file, also what would be refused since it is not text.
text='--input-format text --invalid-utf8 replace --on-error skip'

# over OLD NEW: makes an output with the options OLD in the folder d, and replaces it by one with the options NEW, whose
# inputs are the folder. The only document is a.jsonl.
over()
{
    rm -rf d
    mkdir d
    cp a.jsonl d
    tokmap pack $common $1 --also megatron,llmc,datatrove,olmo,nanogpt -o d/x d/a.jsonl
    tokmap pack $common $text --json --force $2 -o d/x d >out 2>err
    equal "$(field out documents)" 1 "after $1, $2:"
}
over "$split" "$split --also megatron,datatrove"
over "$split" "$split --also megatron --shuffle 7"
over "$split --seal" "$split"
over "$split" ''
over "$split" '--shard-tokens 3000 --shuffle 7'
over '' "$split"
over '' '--also megatron'
over '--seal' '--seal'
over '--shard-tokens 3000' "$split --also olmo"
over '--shard-tokens 3000' '--shard-tokens 3000 --shuffle 7 --also megatron,olmo'

# One shard is removed, as pack asks for, and what --also had written beside it stays.
rm -rf d
mkdir d
cp a.jsonl d
tokmap pack $common --also datatrove,olmo,nanogpt -o d/x d/a.jsonl
rm d/x.bin d/x.tmx
tokmap pack $common $text --json --shard-tokens 3000 --shuffle 7 -o d/x d >out 2>err
equal "$(field out documents)" 1

# The message says what to do. Work in units lists all inputs first.
over '--shard-tokens 3000' '--shard-tokens 3000 --shuffle 7 --also megatron,llmc,datatrove,olmo,nanogpt'
for file in x x-00000.ds.metadata; do
    for units in '' '--unit-bytes 3000' '--unit-bytes 3000 --task 0/1'; do
        exits 1 tokmap pack $common --shard-tokens 3000 --force --also megatron $units --input-format text \
            -o d/x --include $file --include a.jsonl d 2>err
        [ "$file$units" = x ] ||
            holds err "d/$file: this input is a file of an older output of this name; leave it out with --exclude"
    done
done
tokmap pack $common --shard-tokens 3000 --force --also megatron -o d/x --exclude 'x*' d

# These only have such names: no shard is beside them, or not all files of the format.
rm -rf d
mkdir d
for file in x-00000.ds.metadata x.train-00001.ds.metadata x.csv.gz x-1.npy x.val x.meta.json; do
    echo "my text" >d/$file
done
: >d/x.csv.gz # a text under this name would be refused
printf '\223NUMPY' >d/x.npy # it is not of OLMo, whose arrays have no header, so x.csv.gz is an input
tokmap pack $common $text --json -o d/x d >out
equal "$(field out documents)" 6
tokmap pack $common $text --json --force -o d/x d >out
equal "$(field out documents)" 6
tokmap pack $common $text --json --force --split train=0.5,valid=0.5 --also datatrove -o d/x d >out 2>err
equal "$(field out documents)" 5
holds err 'd/x.train-00001.ds.metadata: this input is an output of the same command'
