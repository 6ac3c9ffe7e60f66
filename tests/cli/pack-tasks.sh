# SPDX-License-Identifier: MIT
# --task: the bytes do not depend on how many processes make an output, in which order, and how often they run; what is
# missing, changed, or there twice is named.
. "$TOKMAP_CLI/helpers.sh"
need awk gzip
unset SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_COUNT SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_MAX SLURM_ARRAY_TASK_STEP \
    SLURM_PROCID SLURM_STEP_NUM_TASKS OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE PMIX_RANK \
    JOB_COMPLETION_INDEX TOKMAP_TASKS AWS_BATCH_JOB_ARRAY_INDEX AWS_BATCH_JOB_ARRAY_SIZE RANK WORLD_SIZE || true

# A file that is cut, with blank lines, and a document that is longer than a unit; small files; a large one that is
# compressed and is not cut; and one of text.
mkdir in
awk 'BEGIN { for (i = 0; i < 2500; i++) {
    t = ""
    for (k = i * 7 % 23; k > 0; k--) t = t "w" k " of " i " "
    if (i == 1500) for (k = 0; k < 10000; k++) t = t "a long document "
    if (i % 97 == 5) print ""
    printf "{\"text\": \"%s\", \"n\": %d}\n", t, i } }' >in/a.jsonl
for i in 1 2 3 4 5; do
    head -n $((i * 40)) in/a.jsonl >in/b$i.jsonl
done
gzip -n -c in/a.jsonl >in/c.jsonl.gz
head -c 30000 in/a.jsonl | tr -d '{}"' >in/d.txt
: >in/e.txt
options='--shard-tokens 80k --unit-bytes 100000 --columns n'

# tree FOLDER: the hashes of its files.
tree()
{
    (cd "$1" && find . -type f | LC_ALL=C sort | xargs cksum)
}
# task FOLDER I/N [OPTION...]: runs one task.
task()
{
    task_folder=$1
    task_number=$2
    shift 2
    tokmap pack -q $options --task $task_number -o $task_folder/d "$@" in
}

mkdir ref
tokmap pack --json $options -o ref/d in >report
tree ref >wanted
shards=$(ls ref/d-*.bin | wc -l)
[ "$shards" -gt 10 ]
tokmap verify -q ref/d

# The tokens, columns, and origins are those of one shard, also where a unit begins inside a file.
tokmap pack --json --columns n -o one in >report.one
cat ref/d-*.bin >all
same all one.bin
for name in documents tokens files blank_lines input_bytes stored_bytes structure_bytes text_bytes largest_id \
    empty_documents; do
    equal "$(grep -o "\"$name\": [0-9]*" report)" "$(grep -o "\"$name\": [0-9]*" report.one)" $name:
done
for name in document_tokens not_read; do
    equal "$(grep -o "\"$name\": {[^}]*}" report)" "$(grep -o "\"$name\": {[^}]*}" report.one)" $name:
done
grep -q "\"shards\": $shards," report
for document in 0 400 777 1499 1500 1501 1502 2000 2499 2500 4000 5593; do
    tokmap show --json one --document $document | grep -o '"path": "[^"]*", "record": [0-9]*' >a
    tokmap show --json ref/d --document $document | grep -o '"path": "[^"]*", "record": [0-9]*' >b
    same a b
done
tokmap export -o one.jsonl one >/dev/null
tokmap export -o ref.jsonl ref/d >/dev/null
same one.jsonl ref.jsonl

# Fewer units than tasks: the report says so.
mkdir few
tokmap pack --shard-tokens 80k --unit-bytes 1G --task 0/9 -o few/d in >report.few
grep -q '^there are fewer units ([1-8]) than tasks (9), .*--unit-bytes' report.few || { cat report.few >&2; exit 1; }
tokmap pack $options --task 0/3 -o few/e in >report.few
if grep 'fewer units' report.few; then exit 1; fi
rm -r few

# 1, 2, 3, and 7 tasks, in several orders, each with another number of threads.
mkdir t1 t2 t3 t7
task t1 0/1
task t2 1/2 -j 1
task t2 0/2 -j 3
for i in 2 0 1; do task t3 $i/3; done
for i in 0 1 2 3 4 5 6; do task t7 $i/7 -j 1 & done
wait
for n in 1 2 3 7; do
    tree t$n >got
    same wanted got
done

# Tasks that run again make nothing, and one that begins after others have failed makes only what is missing; also with
# another number of tasks.
mkdir r
task r 0/3
task r 0/3
exits 1 tokmap pack $options --finish -o r/d in >out 2>err
holds err 'units are missing: '
holds err 'run again, of 3 tasks: 1, 2'
ls r/d.work | grep packed- >before
task r 1/3
rm r/d.work/packed-000001
exits 1 tokmap pack -q $options --finish -o r/d in 2>err
holds err 'run again, of 3 tasks: 0, 2'
tokmap pack $options --task 0/3 -o r/d in >out
holds out 'units of other tasks are missing'
task r 4/5
task r 3/5
tree r >got
same wanted got
[ ! -e r/d.work ]
# A task that is run again after all were done has nothing to do, if the output is the one that it would make: neither
# the options nor the inputs are others.
tokmap pack $options --task 0/3 -o r/d in >out
holds out 'r/d is complete'
task r 6/7 -j 1
repeated()
{
    exits 1 "$@" 2>err
    holds err 'the output already exists'
}
repeated task r 0/3 --no-eod
repeated task r 0/3 --min-tokens 2
repeated tokmap pack -q $options --task 0/3 -o r/d in/a.jsonl
echo '{"text": "one more", "n": 1}' >more.jsonl
touch -r in/a.jsonl more.jsonl
repeated tokmap pack -q $options --task 0/3 -o r/d in more.jsonl
cp -p in/a.jsonl saved.jsonl
sleep 0.02
touch in/a.jsonl
repeated task r 0/3
# One that was modified before takes its place.
cp -p saved.jsonl in/a.jsonl
repeated task r 0/3
task r 0/1 --force
task r 0/3
tree r >got
same wanted got
# A shard, or a part of one, is missing.
last=$(tail -n 1 r/d | cut -f 1)
for gone in r/d-00001.tmx r/d-00001.bin "r/$last.tmx"; do
    mv "$gone" gone
    repeated task r 0/3
    mv gone "$gone"
done
cp r/d-00001.bin whole
head -c 100 whole >r/d-00001.bin
repeated task r 0/3
mv whole r/d-00001.bin
task r 0/3
exits 1 tokmap pack -q $options --finish -o r/d in 2>err

# The output can be replaced.
task r 0/2 --force
tokmap verify -q r/d
task r 1/2 --force
tree r >got
same wanted got

# With a split, and with a range of numbers that the environment says.
mkdir s1 s2
tokmap pack -q $options --split train=0.9,val=0.1 -o s1/d in
SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=5 SLURM_ARRAY_TASK_MAX=7 SLURM_ARRAY_TASK_STEP=2 \
    tokmap pack $options --task auto --split train=0.9,val=0.1 -o s2/d in >out
holds out 'task 1 of 2 (from SLURM_ARRAY_TASK_ID and _COUNT): '
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=9 PMIX_RANK=0 \
    tokmap pack -q $options --task auto --split train=0.9,val=0.1 -o s2/d in
tree s1 >a
tree s2 >b
same a b
cat s2/d.train-*.bin s2/d.val-*.bin | wc -c | tr -d ' ' >a
wc -c <one.bin | tr -d ' ' >b
same a b

# Variables that are missing or do not agree.
auto()
{
    exits 2 env "$@" tokmap pack -q $options --task auto -o v/d in 2>err
}
auto A=1
holds err 'no variable has a number for this process (SLURM_ARRAY_TASK_ID, '
auto JOB_COMPLETION_INDEX=3
holds err 'the variable TOKMAP_TASKS is not set'
auto JOB_COMPLETION_INDEX=3 TOKMAP_TASKS=three
holds err "the variable TOKMAP_TASKS is 'three'"
auto JOB_COMPLETION_INDEX=3 TOKMAP_TASKS=3
holds err '3 tasks are numbered from 0 to 2; got 3'
auto AWS_BATCH_JOB_ARRAY_INDEX=1 PMI_RANK=2 AWS_BATCH_JOB_ARRAY_SIZE=4 PMI_SIZE=4
holds err 'variables disagree: PMI_RANK and PMI_SIZE say task 2 of 4, and AWS_BATCH_JOB_ARRAY_INDEX and _SIZE say task 1 of 4'
auto SLURM_PROCID=0 SLURM_NTASKS=4
holds err 'SLURM_PROCID in a step of srun'
auto SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=9
holds err 'has a list of numbers (SLURM_ARRAY_TASK_MIN 1, _MAX 9, _COUNT 3)'
holds err 'use --array=0-2, or --task I/N'
# --array=0,2,4: Slurm says no step of a list.
auto SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=4 \
    SLURM_ARRAY_TASK_STEP=1
holds err 'has a list of numbers'

# What differs from the first task is named; nothing is lost.
mkdir x
task x 0/2
exits 1 tokmap pack -q $options --eod=7 --task 1/2 -o x/d in 2>err
holds err 'another --eod: it had 256, and this one has 7'
exits 1 tokmap pack -q $options --unit-bytes 50000 --task 1/2 -o x/d in 2>err
holds err 'another --unit-bytes: it had 100000, and this one has 50000'
cp -p in/d.txt saved
printf x | dd of=in/d.txt bs=1 seek=100 conv=notrunc 2>/dev/null
exits 1 task x 1/2 2>err
holds err 'in/d.txt: this input has another content than when this work began'
printf more >>in/a.jsonl
exits 1 task x 1/2 2>err
holds err 'in/a.jsonl: this input had'
truncate -s -4 in/a.jsonl
cp -p saved in/d.txt
mv in/e.txt elsewhere
exits 1 task x 1/2 2>err
mv elsewhere in/e.txt
exits 1 tokmap pack -q $options --checkpoint-seconds 0 -o x/d in/b1.jsonl 2>err
holds err 'here is the unfinished work of tasks'
task x 1/2
tree x >got
same wanted got

# A damaged record of a unit, and a shard of it that somebody has removed.
mkdir y
task y 0/2
flip y/d.work/packed-000000 100
exits 1 task y 1/2 2>err
holds err 'packed-000000: this file of unfinished work is damaged, or of work with other options'
exits 1 task y 0/2 2>err
rm y/d.work/packed-000000
mv y/d.work/unit-000001.work/unit-000001-00000.bin.ready elsewhere
exits 1 task y 0/2 2>err
holds err 'unit-000001-00000.bin.ready'
mv elsewhere y/d.work/unit-000001.work/unit-000001-00000.bin.ready
tokmap pack -q $options --finish -o y/d in
tree y >got
same wanted got

# A bad record is reported with its line of the file, also in a part of it; --max-skipped counts all tasks.
awk '{ if (NR == 2000) print "{bad"; else print }' in/a.jsonl >bad.jsonl
exits 1 tokmap pack -q $options --task 1/2 -o z bad.jsonl 2>err
holds err 'bad.jsonl:2000'
holds err 'line 2000 (record 1999)'
rm -r z.work
tokmap pack -q $options --on-error skip --max-skipped 0 --task 0/2 -o z bad.jsonl
exits 1 tokmap pack -q $options --on-error skip --max-skipped 0 --task 1/2 -o z bad.jsonl 2>err
holds err 'bad.jsonl:2000'
holds err 'files and records left out: 1'
tokmap pack -q $options --on-error skip --max-skipped 1 --finish -o z bad.jsonl
tokmap pack -q --columns n --on-error skip -o zone bad.jsonl 2>/dev/null
cat z-*.bin >all
same all zone.bin

# --skipped-list: the list of all units is that of the same work in one piece, for every number of tasks.
awk '{ if (NR % 9 == 4) print "{bad"; else if (NR % 13 == 2) print "{\"txt\": 1}"; else print }' in/a.jsonl >b1.jsonl
awk '{ if (NR % 5 == 4) print "[" NR; else print }' in/b5.jsonl >b2.jsonl
printf '%%PDF-1.4' >b3.pdf
bad='b1.jsonl b2.jsonl b3.pdf b2.jsonl'
skip='--on-error skip --min-tokens 20'
tokmap pack -q --columns n $skip --skipped-list one.list -o lone $bad 2>/dev/null
left=$(wc -l <one.list | tr -d ' ')
[ "$left" -gt 500 ]
tokmap pack -q $options $skip --skipped-list l0.list -o l0 $bad 2>err
same one.list l0.list
holds err 'more; all are listed in l0.list'
cat l0-*.bin >all
same all lone.bin
for i in 2 0 1; do
    [ ! -e l3.list ]
    tokmap pack -q $options $skip --skipped-list l3.list --task $i/3 -o l3 $bad 2>err
    [ $i != 2 ] || holds err 'more; all tasks together list them in l3.list'
done
same one.list l3.list
# Run again, also with inputs that gave no document, a task has nothing to do, unless the list is gone.
tokmap pack -q $options $skip --skipped-list l3.list --task 1/3 -o l3 $bad 2>err
same one.list l3.list
mv l3.list gone
exits 1 tokmap pack -q $options $skip --skipped-list l3.list --task 1/3 -o l3 $bad 2>err
holds err 'the output already exists'
mv gone l3.list
# An old list is replaced if the user says so; other files never are.
exits 1 tokmap pack -q $options $skip --skipped-list l3.list --task 0/2 -o l4 $bad 2>err
holds err 'l3.list: the list cannot be created; choose another name, or use --force: File exists'
exits 1 tokmap pack -q $options $skip --force --skipped-list b1.jsonl --task 0/2 -o l4 $bad 2>err
holds err 'b1.jsonl: the list cannot be created; choose another name (--force replaces only a list'
# All tasks have the option. What was left out of a unit is not lost with its list.
tokmap pack -q $options $skip --skipped-list l4.list --task 0/2 -o l4 $bad 2>/dev/null
exits 1 tokmap pack -q $options $skip --task 1/2 -o l4 $bad 2>err
holds err 'l4.work'
holds err '--skipped-list'
cp l4.work/unit-000000.skipped kept
printf x | dd of=l4.work/unit-000000.skipped bs=1 seek=300 conv=notrunc 2>/dev/null
exits 1 tokmap pack -q $options $skip --skipped-list l4.list --task 1/2 -o l4 $bad 2>err
holds err 'l4.work/unit-000000.skipped: the list of what was left out of a unit is damaged'
rm l4.work/unit-000000.skipped
exits 1 tokmap pack -q $options $skip --skipped-list l4.list --finish -o l4 $bad 2>err
holds err 'l4.work/unit-000000.skipped: the list of what was left out of a unit is damaged, missing'
cp kept l4.work/unit-000000.skipped
tokmap pack $options $skip --json --skipped-list l4.list --finish -o l4 $bad >report
same one.list l4.list
holds report "\"skipped_items\": $left,"
[ ! -e l4.work ]

# What does not go together, and inputs that cannot be divided.
for wrong in '--dry-run' '--no-resume' '--also llm' '--finish'; do
    exits 2 tokmap pack -q $options --task 0/2 $wrong -o w in 2>err
done
exits 2 tokmap pack -q --task 0/2 -o w in 2>err
holds err '--task is about shard sets: give the size of shards with --shard-tokens'
exits 2 tokmap pack -q --shard-tokens 9k --unit-bytes 0 -o w in 2>err
for wrong in 1 1/ /2 2/2 0/0 a/b 1/2/3 -1/2 0/99999999; do
    exits 2 tokmap pack -q $options "--task=$wrong" -o w in 2>err
done
exits 1 tokmap pack -q $options --task 0/2 -o w - <in/a.jsonl 2>err
holds err 'this input cannot be divided among tasks: standard input'
tokmap pack -q $options --task 0/2 -o in/b in
exits 1 tokmap pack -q $options --task 1/2 -o in/b in 2>err
holds err 'this input is an output of the same command'
# The folder of unfinished work names the output, too.
tokmap pack --json --status in/b >wanted
holds wanted '"task": 0'
for folder in in/b.work in/b.work/; do
    tokmap pack --json --status $folder >report
    same wanted report
done
rm -rf in/b.work
# A task without a unit has nothing to scan: no text is compared.
printf 'one unit' >unit.txt
tokmap pack $options --task 0/2 -o idle unit.txt >out
holds out '1 unit of other tasks is missing'
tokmap pack --status idle >out
equal "$(sed -n '2p' out | tr -s ' ' | cut -d ' ' -f 1-6)" '0 of 2 done pack 0/0'
holds out 'pack: 0 of 1 units, 0 documents'
! grep -q scan out
rm -rf idle.work
# No unit has a document: each of them may be without any, but not all.
: >void.jsonl
exits 1 tokmap pack -q -t bytes --shard-tokens 4K --task 0/1 -o n void.jsonl 2>err
holds err 'the inputs contain no documents'
[ ! -e n ]
exits 1 tokmap pack --status in >out 2>err
holds err "no tasks work on 'in': it has no folder of unfinished work, and no shard, manifest, or split has this name"
mkdir bare.work
tokmap pack --status bare >out
equal "$(cat out)" 'bare: no task has reported yet: bare.work is the work of a command without --task, of tasks that have just begun, or of tasks of another version of tokmap'
exits 1 tokmap pack --status nothing >out 2>err
holds err "no tasks work on 'nothing': it has no folder of unfinished work"
[ ! -e w.work ]
