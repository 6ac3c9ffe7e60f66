# SPDX-License-Identifier: MIT
# --also with shard sets and tasks: whoever finishes writes the files of other projects, which are those of one process,
# also after a failure or a kill in the middle. Tasks that differ in it are refused.
. "$TOKMAP_CLI/helpers.sh"
need awk
unset SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_COUNT SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_MAX SLURM_ARRAY_TASK_STEP \
    SLURM_PROCID SLURM_STEP_NUM_TASKS OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE PMIX_RANK \
    JOB_COMPLETION_INDEX TOKMAP_TASKS AWS_BATCH_JOB_ARRAY_INDEX AWS_BATCH_JOB_ARRAY_SIZE RANK WORLD_SIZE || true
mkdir in
awk 'BEGIN { for (i = 0; i < 800; i++) {
    t = ""
    for (k = i * 7 % 23; k > 0; k--) t = t "w" k " of " i " "
    printf "{\"text\": \"%s\", \"n\": %d}\n", t, i } }' >in/a.jsonl
head -n 90 in/a.jsonl >in/b.jsonl
formats=megatron,llmc,datatrove,olmo,nanogpt
options="--shard-tokens 30k --unit-bytes 50000 --also $formats"

# alike FOLDER FOLDER: fails the test unless both have the same files.
alike()
{
    diff -r "$1" "$2" >differences || { cat differences >&2; exit 1; }
}
# also REPORT: the part of a report in JSON that is about other projects.
also()
{
    grep -o '"also": \[[^]]*\]' "$1"
}

# Each shard has what `tokmap convert` makes of it, and is what it is without --also.
mkdir ref plain
tokmap pack --json $options -o ref/d in >report.ref
tokmap pack -q --shard-tokens 30k --unit-bytes 50000 -o plain/d in
shards=$(ls ref/d-*.tmx | wc -l)
[ "$shards" -ge 4 ]
for file in plain/*; do same "$file" "ref/${file#plain/}"; done
for form in megatron:idx datatrove:ds datatrove:ds.index datatrove:ds.metadata olmo:npy olmo:csv.gz llmc:bin; do
    tokmap convert -q --force --to ${form%:*} -o c plain/d-00001
    made=ref/d-00001.${form#*:}
    [ $form != llmc:bin ] || made=ref/d-00001.llmc.bin
    same $made c.${form#*:}
done
equal "$(ls ref | wc -l)" $((1 + shards * 10)) files:
equal "$(stat -c %i ref/d-00002.bin ref/d-00002.npy ref/d-00002.ds | sort -u | wc -l)" 1
tokmap verify -q ref/d
tokens=$(grep -o '"tokens": [0-9]*' report.ref | head -n 1 | tr -dc 0-9)
equal "$(field report.ref also.0.format) $(field report.ref also.0.shared_bytes)" "megatron $((2 * tokens))"
equal "$(field report.ref also.1.format) $(field report.ref also.1.shared_bytes)" 'llmc 0'
equal "$(field report.ref also.1.written_bytes)" $((2 * tokens + 1024 * shards))

# Three tasks in another order; the list of formats may have any. The report of the last one is that of one process.
mkdir t
for i in 2 0 1; do
    tokmap pack --json --shard-tokens 30k --unit-bytes 50000 --also nanogpt,olmo,datatrove,llmc,megatron --task $i/3 \
        -o t/d in >report
done
alike ref t
for number in 0 1 2 3 4; do
    equal "$(field report also.$number)" "$(field report.ref also.$((4 - number)))"
done
tokmap pack -q $options --task 1/3 -o t/d in # nothing is left to do
alike ref t
mv t/d-00000.idx saved
exits 1 tokmap pack -q $options --task 1/3 -o t/d in 2>err
holds err 'the output already exists'
mv saved t/d-00000.idx

# The last task fails in the middle: the name of a file is that of a folder. The shards are complete by then.
rm -r t
mkdir t t/d-00002.csv.gz.partial
tokmap pack -q $options --task 0/3 -o t/d in
exits 1 tokmap pack -q --shard-tokens 30k --unit-bytes 50000 --also olmo --task 1/3 -o t/d in 2>err
holds err "another --also: it had $formats, and this one has olmo"
exits 1 tokmap pack -q --shard-tokens 30k --unit-bytes 50000 --task 1/3 -o t/d in 2>err
holds err "another --also: it had $formats, and this one has none"
tokmap pack -q $options --task 1/3 -o t/d in
exits 1 tokmap pack -q $options --task 2/3 -o t/d in 2>err
holds err 't/d-00002.csv.gz.partial: '
holds err 'the shards of t/d are complete, but not all of their files for other projects: the same command writes the rest'
tokmap verify -q t/d
[ -e t/d-00002.idx ] && [ ! -e t/d-00002.npy ] && [ ! -e t/d-00003.idx ]
exits 1 tokmap pack -q $options --finish -o t/d in 2>err
exits 1 tokmap pack -q --shard-tokens 30k --unit-bytes 50000 --task 0/3 -o t/d in 2>err
holds err "another --also: it had $formats, and this one has none"
cp -rp t u
rmdir t/d-00002.csv.gz.partial u/d-00002.csv.gz.partial
tokmap pack --json $options --finish -o t/d in >report
alike ref t
equal "$(also report)" "$(also report.ref)"
tokmap pack -q $options --task 1/3 -o u/d in
alike ref u

# A file of another that gets there in the meantime is refused, again and again, and not replaced.
rm -r t u
mkdir t t/d.partial
exits 1 tokmap pack -q $options -o t/d in 2>err
rmdir t/d.partial
echo mine >t/d-00001.idx
exits 1 tokmap pack -q $options -o t/d in 2>err
holds err 't/d-00001.idx: the file already exists; choose another name, or use --force'
[ ! -e t/d ]
rm t/d-00001.idx
mkdir t/d-00001.idx.partial
exits 1 tokmap pack -q $options -o t/d in 2>err
rmdir t/d-00001.idx.partial
tokmap pack -q $options -o t/d in
alike ref t

# With --force, no file of an older set stays beside a smaller one; an index that would be wrong is not left.
exits 1 tokmap pack -q --force --shard-tokens 90k --also olmo -o t/d in 2>err
holds err 'this is an index of Megatron for tokens that would be replaced; write it again with --also megatron'
mkdir f
tokmap pack -q --shard-tokens 90k --unit-bytes 50000 --also $formats -o f/d in/a.jsonl
for i in 1 0; do
    tokmap pack -q --force --shard-tokens 90k --unit-bytes 50000 --also $formats --task $i/2 -o t/d in/a.jsonl
done
alike f t

# Killed while the files are written. At other moments the kill does no harm, either.
killed=
for number in 0 1 3; do
    rm -r t
    mkdir t
    tokmap pack -q $options --task 0/2 -o t/d in
    tokmap pack -q $options --task 1/2 -o t/d in 2>err &
    pid=$!
    while [ ! -e t/d-0000$number.idx ] && kill -0 $pid 2>/dev/null; do sleep 0.002; done
    kill -s KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    tokmap verify -q t/d
    [ ! -e t/d.work ] || killed="$killed $number"
    tokmap pack -q $options --finish -o t/d in 2>err || holds err 'already exists'
    alike ref t
done
echo "killed at:$killed"

# One piece, and stages of documents that are shuffled, dropped, and split. A set without documents has no such files.
for kind in '' '--shuffle 7 --dedup exact --split train=0.9,val=0.0999999,none=0.0000001'; do
    rm -rf r t
    mkdir r t t/d-00001.npy.partial t/d.val-00000.npy.partial
    options="--shard-tokens 30k --also $formats $kind"
    tokmap pack --json $options -o r/d in >report.ref
    exits 1 tokmap pack -q $options -o t/d in 2>err
    holds err 'the same command writes the rest'
    rmdir t/*.partial
    tokmap pack --json $options -o t/d in >report
    alike r t
    equal "$(also report)" "$(also report.ref)"
    [ ! -e r/d.none-00000.idx ]
done
rm -r t
mkdir t
for i in 0 1 0 1 0 1; do
    [ -e t/d.train ] || tokmap pack -q --wait 0 $options --unit-bytes 50000 --task $i/2 -o t/d in || equal $? 3
done
[ ! -e t/d.work ] || tokmap pack -q $options --unit-bytes 50000 --finish -o t/d in
alike r t

# An input that cannot be read twice: there is nothing to continue, and the message says how to get the rest.
rm -r t
mkdir t t/d-00001.npy.partial
exits 1 tokmap pack -q --shard-tokens 30k --also megatron,olmo -o t/d - <in/a.jsonl 2>err
holds err "write them of each shard with 'tokmap convert --to olmo -o SHARD SHARD'"
tokmap verify -q t/d
