# SPDX-License-Identifier: MIT
# Files of the user that have names of ours stay, and so does what a link in place of NAME.work leads to.
. "$TOKMAP_CLI/helpers.sh"
need awk
awk 'BEGIN { for (i = 0; i < 400; i++) printf "{\"text\": \"document %d of many, %d\"}\n", i % 300, i % 300 * 7 }' >a.jsonl
options='-q -t bytes --no-eod --shard-tokens 3000 --unit-bytes 3000'

# Unfinished work of tasks that was moved to another disk is neither emptied nor continued.
tokmap pack $options --task 0/2 -o k a.jsonl
mkdir disk
mv k.work disk/w
ln -s disk/w k.work
ls disk/w >before
for way in '' '--no-resume' "$options" "$options --no-resume" "$options --task 1/2"; do
    exits 1 tokmap pack -q $way -o k a.jsonl 2>err
    holds err 'this symbolic link has the name of the folder for unfinished work'
    ls disk/w >after
    same before after
done
rm k.work
mv disk/w k.work
tokmap pack $options --task 1/2 -o k a.jsonl
tokmap verify -q k
[ ! -e k.work ]

# A folder of the user, with the names of a journal, of a stage, and of a unit.
mkdir -p u.work/unit-000001.work
echo 'dear diary' >u.work/journal
echo 'scans' >u.work/scan-000001
echo 'a thesis' >u.work/unit-000001.work/thesis.txt
find u.work -type f | sort | xargs cat >before
exits 1 tokmap pack $options --no-resume -o u a.jsonl 2>err
holds err 'it may be yours, and is not removed'
rm u.work/journal
tokmap pack $options --no-resume -o other a.jsonl
for file in other*; do cp "$file" "u${file#other}"; done
sed 's/^other/u/' other >u
exits 1 tokmap pack $options -o u a.jsonl 2>err
holds err 'the output already exists'
equal "$(cat u.work/scan-000001 u.work/unit-000001.work/thesis.txt)" 'scans
a thesis'

# Work that starts over in units removes the chunks of what it gives up.
mkdir c.work
printf 'tokmap-journal 1' >c.work/journal
echo chunks >c.work/chunks-0
tokmap pack $options --no-resume -o c a.jsonl
[ ! -e c.work ]

# The list of dropped documents that is replaced is put aside only where nothing else is.
tokmap pack -q -t bytes --no-eod --dedup exact -o d a.jsonl
cp d.dropped first
aside=d.dropped.$(od -An -v -tx8 -j40 -N8 d.tmx | tr -d ' ') # with the id of the old index
for notes in 'my notes' ''; do
    echo "$notes" >$aside
    for way in '' '--dedup minhash'; do
        exits 1 tokmap pack -q -t bytes --no-eod --force $way -o d a.jsonl 2>err
        holds err "$aside: the list of dropped documents that is replaced would be kept under this name"
        same first d.dropped
        equal "$(cat $aside)" "$notes"
        tokmap verify -q d
    done
done
rm $aside
tokmap pack -q -t bytes --no-eod --force -o d a.jsonl
equal "$(echo d.*)" 'd.bin d.tmx'

# All files of a masked output with a list can be left out of the inputs, also when they are listed twice.
awk 'BEGIN { for (i = 0; i < 300; i++) printf "{\"prompt\": \"question %d\", \"completion\": \"answer %d\"}\n", i % 200, i % 200 }' >m.jsonl
for force in '' --force; do
    tokmap pack -q -t bytes --prompt-field prompt --completion-field completion --dedup minhash $force -o m m.jsonl
done
tokmap verify -q m

# A shard may have the name that a copy for --also would have. It stays, whatever is written or removed beside it.
head -n 50 a.jsonl >b.jsonl
mkdir copies
cd copies
for name in x.megatron x.llmc x.nanogpt x-00000.megatron; do tokmap pack -q -t bytes --no-eod -o $name ../a.jsonl; done
mkdir ../copies.before
cp * ../copies.before
tokmap pack -q -t bytes --no-eod --also megatron,nanogpt -o x ../b.jsonl
tokmap pack -q -t bytes --no-eod --force --also megatron,nanogpt -o x ../b.jsonl
tokmap pack -q -t bytes --no-eod --force --also megatron -o x ../b.jsonl
for way in '--also llmc' '--seal --also megatron' '--seal --also nanogpt'; do
    for force in '' --force; do
        [ -n "$force" ] || rm -f x.bin x.tmx x.idx x.meta.json
        exits 1 tokmap pack -q -t bytes --no-eod $force $way -o x ../b.jsonl 2>err
        holds err "x.${way##* }.tmx: this is the index of a shard whose name a copy of the tokens for --also would have"
    done
    tokmap pack -q -t bytes --no-eod -o x ../b.jsonl
done
rm x.bin x.tmx
exits 1 tokmap pack -q -t bytes --no-eod --shard-tokens 3000 --seal --also megatron -o x ../b.jsonl 2>err
holds err 'x-00000.megatron.tmx: this is the index of a shard'

# Numbers of shards have five digits, so these are files of the user.
echo mine | tee x-20260101.csv.gz x-2026.npy >x-202601.idx
tokmap pack -q -t bytes --no-eod --shard-tokens 3000 --also megatron,olmo -o x ../b.jsonl
tokmap pack -q -t bytes --no-eod --shard-tokens 3000 --also megatron,olmo --force -o x ../b.jsonl
equal "$(cat x-20260101.csv.gz x-2026.npy x-202601.idx)" 'mine
mine
mine'
for file in ../copies.before/*; do same "$file" "${file##*/}"; done
cd ..

# So a dataset may be called like the set and a date.
mkdir dated
cp a.jsonl dated
(
    cd dated
    for date in x-20260101 x-0000; do tokmap pack -q -t bytes --no-eod -o $date a.jsonl; done
    tokmap pack -q -t bytes --no-eod --shard-tokens 3000 -o x a.jsonl
    tokmap pack -q -t bytes --no-eod --shard-tokens 3000 --force -o x ../b.jsonl
    for name in x x-20260101 x-0000; do tokmap verify -q $name; done
    rm x
    exits 1 tokmap pack -q -t bytes --no-eod --shard-tokens 3000 -o x a.jsonl 2>err
    holds err "the output already exists, at least 'x-0000"
)

# A set web has web-00000.csv.gz beside it, and so web.csv.gz and web-2026.csv.gz may be its inputs.
mkdir crawl
(echo text && awk 'BEGIN { for (i = 0; i < 50; i++) print "text " i }') >crawl/t.csv
if gzip <crawl/t.csv >crawl/web.csv.gz && tokmap pack -q -t bytes --no-eod -o crawl/whole crawl/web.csv.gz; then
    cp crawl/web.csv.gz crawl/web-2026.csv.gz
    tokmap pack -q -t bytes --no-eod --shard-tokens 100 --also olmo -o crawl/web --include '*.csv.gz' crawl
    tokmap info --json crawl/web >out
    equal "$(field out documents)" 100
    own=crawl/web-00000.csv.gz
    exits 1 tokmap pack -q -t bytes --no-eod --shard-tokens 100 --also olmo --force -o crawl/web $own 2>err
    holds err 'web-00000.csv.gz: this input is an output of the same command'
fi
