# SPDX-License-Identifier: MIT
# ci: asan
# --seal --also: sealed shards, and beside each a copy of its tokens in each format of another project: the files that
# `tokmap convert` makes of the plain shard. None takes the name NAME.bin, which is that of the unsealed shard. With one
# shard and sets, tasks, and stages; over older shards; and after a failure or a kill in the middle.
. "$TOKMAP_CLI/helpers.sh"
need awk python3
unset SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_COUNT SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_MAX SLURM_ARRAY_TASK_STEP \
    SLURM_PROCID SLURM_STEP_NUM_TASKS OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE PMIX_RANK \
    JOB_COMPLETION_INDEX TOKMAP_TASKS AWS_BATCH_JOB_ARRAY_INDEX AWS_BATCH_JOB_ARRAY_SIZE RANK WORLD_SIZE || true
awk 'BEGIN { for (i = 0; i < 800; i++) {
    t = ""
    for (k = i * 7 % 23; k > 0; k--) t = t "w" k " of " i " "
    printf "{\"text\": \"%s\", \"n\": %d}\n", t, i } }' >a.jsonl
head -n 90 a.jsonl >b.jsonl
formats=megatron,llmc,datatrove,olmo,nanogpt
# copies PREFIX PLAIN: fails the test unless the files beside the sealed shard PREFIX are what `tokmap convert` makes of
# the plain one.
copies()
{
    rm -rf made
    mkdir made
    for form in megatron llmc nanogpt; do tokmap convert -q --to $form -o made/c.$form "$2"; done
    for form in datatrove olmo; do tokmap convert -q --to $form -o made/c "$2"; done
    for file in made/*; do same "$1${file#made/c}" $file; done
    same "$1.megatron.bin" "$2.bin"
    [ ! -e "$1.bin" ] && [ ! -e "$1.idx" ] && [ ! -e "$1.meta.json" ]
}
# alike FOLDER FOLDER: fails the test unless both have the same files.
alike()
{
    diff -r "$1" "$2" >differences || { cat differences >&2; exit 1; }
}

# One shard: it is what it is without --also, its files are those of the plain shard, and all say the same tokens.
mkdir one
tokmap pack -q -o plain a.jsonl
tokmap pack -q --seal -o sealed a.jsonl
tokmap pack --seal --also $formats -o one/d a.jsonl >out
for form in megatron llmc datatrove olmo nanogpt; do
    grep -q "^also $form: wrote .*, a copy of the tokens included" out || holds out "also $form: a copy"
done
same one/d.bin.zst sealed.bin.zst
same one/d.tmx sealed.tmx
copies one/d plain
equal "$(ls one | wc -l)" 12 files:
tokmap verify -q one/d
tokmap info --json one >out # the folder has one shard, and what belongs to others is not taken for shards
equal "$(field out documents)" 800
mv one/d.nanogpt.meta.json . # without its note, it could be a shard that has lost its index
exits 1 tokmap info one 2>err
holds err 'd.nanogpt.bin: the folder has shards, and this file has the name of'
mv d.nanogpt.meta.json one
mv one/d.megatron.idx d.idx # so could this one without its index, which gets its name after the tokens
exits 1 tokmap info one 2>err
holds err 'd.megatron.bin: the folder has shards, and this file has the name of'
mv d.idx one/d.megatron.idx.partial
tokmap info --json one >out
equal "$(field out documents)" 800
mv one/d.megatron.idx.partial one/d.megatron.idx
tokmap convert -q --to megatron -o again one/d # of the sealed shard, the same
same again.idx one/d.megatron.idx
for name in one/d.megatron llmc:one/d.llmc.bin,eod=256 datatrove:one/d.ds olmo:one/d.npy,width=2,eod=256 \
    raw:one/d.nanogpt.bin,width=2,eod=256; do
    tokmap show --ids --tokens 1000..1100 "$name" >got
    tokmap show --ids --tokens 1000..1100 plain >wanted
    same got wanted
done
tokmap pack --json --seal=1 --also olmo,llmc -o j a.jsonl >out
json out
equal "$(field out also.0.format) $(field out also.0.shared_bytes) $(field out also.0.copy)" 'olmo 0 true'
tokmap pack --json --also olmo,llmc -o k a.jsonl >out
equal "$(field out also.0.copy) $(field out also.1.copy)" 'false true'

# What cannot be written, and files that exist, are refused before anything is packed.
printf 'mine\n' >x.megatron.idx
exits 1 tokmap pack -q --seal --also megatron -o x a.jsonl 2>err
holds err 'x.megatron.idx: the file already exists; choose another name, or use --force'
[ ! -e x.tmx ]
printf '{"i": [1, 2, 3], "m": [0, 1, 1]}\n' >masked.jsonl
exits 1 tokmap pack -q --seal --also olmo -o y --ids-field i --mask-field m --vocab-size 10 --no-eod masked.jsonl 2>err
holds err "the documents have masks, and the files of olmo cannot have one"
exits 1 tokmap pack -q --seal --also nanogpt -o y --ids-field i --vocab-size 70000 --no-eod masked.jsonl 2>err
holds err "nanogpt's tokens have 2 bytes, but those of this tokenizer have 4"
[ ! -e y.tmx ]
tokmap pack -q --seal --also datatrove -o m --ids-field i --mask-field m --vocab-size 10 --no-eod masked.jsonl
printf '\000\001\001' >wanted
same m.ds.loss wanted
tokmap pack -q --seal --also megatron,llmc,olmo -o wide --ids-field i --vocab-size 70000 --no-eod masked.jsonl
equal "$(wc -c <wide.megatron.bin | tr -d ' ') $(wc -c <wide.npy | tr -d ' ')" '12 12'

# So is a folder that has the name of a file, which --force cannot replace.
mkdir x.megatron.bin
exits 1 tokmap pack -q --force --seal --also megatron -o x a.jsonl 2>err
holds err 'x.megatron.bin: a file of this name would be replaced, but this is not a file; remove it, or choose'
tokmap pack -q --force --also megatron -o x a.jsonl # has no file of this name, and leaves the folder
rmdir x.megatron.bin
rm x.bin x.tmx x.idx
[ ! -e x.megatron.idx ]

# Over older shards, sealed or not: nothing of theirs in these formats stays, under neither name.
mkdir force
tokmap pack -q --also $formats -o force/d b.jsonl
exits 1 tokmap pack -q --force --seal --also olmo -o force/d a.jsonl 2>err
holds err 'force/d.idx: this is an index of Megatron for tokens that would be replaced'
tokmap pack -q --force --seal --also $formats -o force/d a.jsonl
alike one force
: >force/d.megatron.bin.partial # of a process that was killed
tokmap pack -q --force --also $formats -o force/d b.jsonl
[ ! -e force/d.megatron.bin.partial ]
[ ! -e force/d.megatron.bin ] && [ ! -e force/d.megatron.idx ] && [ ! -e force/d.nanogpt.bin ] && [ -e force/d.idx ]
tokmap pack -q --force --seal --also $formats -o force/d a.jsonl
alike one force

# A set, in units, by tasks, and with threads, is what one process makes.
options="--seal --shard-tokens 30k --unit-bytes 50000 --also $formats"
mkdir ref plainset t
tokmap pack --json $options -o ref/d a.jsonl b.jsonl >report.ref
tokmap pack -q --shard-tokens 30k --unit-bytes 50000 -o plainset/d a.jsonl b.jsonl
shards=$(ls ref/d-*.tmx | wc -l)
[ "$shards" -ge 4 ]
equal "$(ls ref | wc -l)" $((1 + shards * 12)) files:
for tmx in ref/d-*.tmx; do
    name=${tmx#ref/}
    copies "${tmx%.tmx}" "plainset/${name%.tmx}"
done
tokmap verify -q ref/d
for i in 2 0 1; do
    tokmap pack --json --threads 3 $options --task $i/3 -o t/d a.jsonl b.jsonl >report
done
alike ref t
for number in 0 1 2 3 4; do
    equal "$(field report also.$number)" "$(field report.ref also.$number)"
    equal "$(field report also.$number.copy)" true
done
# With --force, a smaller set has nothing of the larger one beside it.
mkdir f
tokmap pack -q $options -o f/d b.jsonl
: >t/d-00004.megatron.bin.partial # of a process that was killed
: >t/d-00004.npy.partial
tokmap pack -q --force $options -o t/d b.jsonl
alike f t

# It fails in the middle: the name of a file is that of a folder. The same command, or --finish, writes the rest. One
# without --seal is refused.
rm -r t
mkdir t t/d-00002.megatron.bin.partial
for i in 0 1; do
    exits $i tokmap pack -q $options --task $i/2 -o t/d a.jsonl b.jsonl 2>err
done
holds err 't/d-00002.megatron.bin.partial: '
holds err 'the shards of t/d are complete, but not all of their files for other projects: the same command writes'
tokmap verify -q t/d
[ -e t/d-00001.nanogpt.bin ] && [ ! -e t/d-00002.npy ]
exits 1 tokmap pack -q --shard-tokens 30k --unit-bytes 50000 --also $formats --finish -o t/d a.jsonl b.jsonl 2>err
holds err 'another --seal: it had 6, and this one has none'
rmdir t/d-00002.megatron.bin.partial
tokmap pack --json $options --finish -o t/d a.jsonl b.jsonl >report
alike ref t
equal "$(field report also)" "$(field report.ref also)"

# Killed while the files are written. At other moments the kill does no harm, either.
killed=
for number in 0 2; do
    rm -r t
    mkdir t
    tokmap pack -q $options --task 0/2 -o t/d a.jsonl b.jsonl
    tokmap pack -q $options --task 1/2 -o t/d a.jsonl b.jsonl 2>err &
    pid=$!
    while [ ! -e t/d-0000$number.ds ] && kill -0 $pid 2>/dev/null; do sleep 0.002; done
    kill -s KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    tokmap verify -q t/d
    [ ! -e t/d.work ] || killed="$killed $number"
    tokmap pack -q $options --finish -o t/d a.jsonl b.jsonl 2>err || holds err 'already exists'
    alike ref t
done
echo "killed at:$killed"

# One piece that fails, and stages of documents that are shuffled, dropped, and split.
for kind in '' '--shard-tokens 30k --shuffle 7 --dedup exact --split train=0.9,val=0.1'; do
    rm -rf r t
    mkdir r t t/d.npy.partial t/d.val-00000.npy.partial
    options="--seal --also $formats $kind"
    tokmap pack --json $options -o r/d a.jsonl b.jsonl >report.ref
    exits 1 tokmap pack -q $options -o t/d a.jsonl b.jsonl 2>err
    holds err 'the same command writes the rest'
    rmdir t/*.partial
    tokmap pack --json $options -o t/d a.jsonl b.jsonl >report
    alike r t
    equal "$(field report also)" "$(field report.ref also)"
done
tokmap pack -q --shard-tokens 30k --shuffle 7 --dedup exact --split train=0.9,val=0.1 -o shuffled a.jsonl b.jsonl
copies r/d.train-00001 shuffled.train-00001
copies r/d.val-00000 shuffled.val-00000
rm -r t
mkdir t
for i in 0 1 0 1 0 1; do
    [ -e t/d.train ] || tokmap pack -q --wait 0 $options --unit-bytes 50000 --task $i/2 -o t/d a.jsonl b.jsonl ||
        equal $? 3
done
[ ! -e t/d.work ] || tokmap pack -q $options --unit-bytes 50000 --finish -o t/d a.jsonl b.jsonl
alike r t

# Work that cannot be continued: the message names the files that the same command would have written.
rm -r t
mkdir t t/d.megatron.idx.partial
exits 1 tokmap pack -q --seal --also megatron,nanogpt -o t/d - <a.jsonl 2>err
holds err "write them with 'tokmap convert --to megatron -o t/d.megatron t/d'"
holds err "write them with 'tokmap convert --to nanogpt -o t/d.nanogpt t/d'"
rmdir t/d.megatron.idx.partial
tokmap convert -q --to megatron -o t/d.megatron t/d
same t/d.megatron.bin one/d.megatron.bin
same t/d.megatron.idx one/d.megatron.idx
