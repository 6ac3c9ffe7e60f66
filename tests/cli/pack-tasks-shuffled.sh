# SPDX-License-Identifier: MIT
# Tasks shuffle in stages: they sort, one cuts the order into shards, and they merge. The bytes are those of one process
# without tasks, for every number of tasks and every size of units, also after kills in each stage. What is missing, of
# other work, or damaged is named.
. "$TOKMAP_CLI/helpers.sh"
need awk gzip
awk 'BEGIN { srand(5); for (i = 0; i < 900; i++) { if (i % 3 == 0) seed = int(rand() * 900); t = "start " seed
    for (k = 0; k < 12; k++) t = t " word" (seed * 31 + k * k) % 5000; if (i % 3 == 1) t = t " one more"
    printf "{\"text\":\"%s\",\"n\":%d}\n", t, i } }' >a.jsonl
{ sed -n 500,700p a.jsonl; echo; awk 'BEGIN { for (i = 0; i < 300; i++) print "{\"text\":\"also " i % 200 "\"}" }'; } >b.jsonl
tr -d '{}"' <b.jsonl >t.txt # long: in a file of its own
: >empty.txt
head -n 100 a.jsonl | gzip >c.jsonl.gz
awk 'BEGIN { for (i = 0; i < 40; i++) print "also " i * 10; print "start 77 word2387" }' >words.txt
inputs='a.jsonl b.jsonl t.txt empty.txt c.jsonl.gz a.jsonl'
all='-t bytes --shard-tokens 50K --shuffle 7'

# part N I FOLDER OPTION...: is task I of N, and may end because other tasks are missing.
part()
{
    part_task=$2/$1
    part_into=$3
    shift 3
    again=0
    tokmap pack -q -o $part_into/out $all --unit-bytes ${unit:-40K} --task $part_task $options "$@" $inputs || again=$?
    [ $again -eq 0 ] || [ $again -eq 3 ] || exit $again
}
complete()
{
    [ -e $1/out ] || [ -e $1/out.train ]
}
# tasks N FOLDER: runs tasks, one after the other, until the output is complete.
tasks()
{
    rounds=0
    while ! complete $2; do
        task=0
        while [ $task -lt $1 ] && ! complete $2; do
            part $1 $task $2 -j $((task % 2 + 1))
            task=$((task + 1))
        done
        rounds=$((rounds + 1))
        [ $rounds -le 3 ] # until all is scanned, until all is sorted, and until all is merged
    done
}
# check COUNTS OPTION...: compares the outputs of so many tasks with that of none.
check()
{
    counts=$1
    shift
    options=$*
    rm -rf plain
    mkdir plain
    tokmap pack -q -o plain/out $all $options $inputs
    for n in $counts; do
        mkdir d
        tasks $n d
        diff -r plain d
        rm -r d
    done
}
check '2 7' --split train=0.8,val=0.2 --columns n --min-tokens 12
check '3' --dedup exact --exclude-ngrams words.txt --exclude-words 2 --split train=0.8,val=0.2
holds plain/out.dropped a.jsonl
check 2 --dedup minhash --minhash-bands 4 --minhash-rows 4
unit=90K
check 2 --seal --shuffle-memory 4096
unit=

# A hundred units, each with a file of chunks, and few files are open. Masks.
awk 'BEGIN { for (i = 0; i < 1200; i++) printf "{\"ids\":[%d,%d,7],\"m\":[1,%d,0]}\n", i % 999, i % 17, i % 2 }' >m.jsonl
masked='--ids-field ids --mask-field m --vocab-size 1000 --no-eod --shard-tokens 2K --shuffle 9'
mkdir many one
tokmap pack -q -o one/out $masked m.jsonl
(ulimit -n 60; tokmap pack -q -o many/out $masked --unit-bytes 360 --checkpoint-seconds 0 -j 1 --task 0/1 m.jsonl)
diff -r one many

# --unit-bytes alone is the work of one task. A set without documents has an empty shard.
options=
check '1 2 3 7'
mkdir d
tokmap pack -o d/out $all --unit-bytes 40K $inputs >report
holds report 'with seed 7'
diff -r plain d
rm -r d
printf '{"text":"x"}\n{"text":"y"}\n' >few.jsonl
mkdir d e
tokmap pack -q -o e/out $all --split a=0.5,b=0.25,c=0.25 few.jsonl
tokmap pack -q -o d/out $all --split a=0.5,b=0.25,c=0.25 --task 0/1 few.jsonl
diff -r d e
exits 1 tokmap pack -q -o n $all --task 0/1 empty.txt 2>err
holds err 'the inputs are empty'

# Tasks that run at a time wait for each other.
rm -r d
mkdir d
for task in 0 1 2 3; do
    part 4 $task d -j 1 &
done
wait
complete d || tasks 4 d # unless one of them began when another one had ended
diff -r plain d

# Killed as soon as a stage has made a file; the same commands end with the same bytes.
rm -r d
mkdir d
for made in chunks sorted- cuts- shard- merged-; do
    for task in 0 1 2; do
        complete d || tokmap pack -q -o d/out $all --unit-bytes 40K --checkpoint-seconds 0.001 -j 1 --task $task/3 \
            $inputs 2>err &
        pid=$!
        while kill -0 $pid 2>/dev/null; do
            case $(ls d/out.work d/out.work/unit-*.work 2>/dev/null) in
            *$made*) break ;;
            esac
        done
        kill -s KILL $pid 2>/dev/null || true
        wait $pid 2>/dev/null || true
    done
done
complete d || tasks 3 d
diff -r plain d

# What is missing is named, of each stage, and what follows. --finish ends a shuffle that is complete.
rm -r d
mkdir d
work=d/out.work
exits 3 tokmap pack -o d/out $all --unit-bytes 40K --task 0/2 $inputs >report
holds report 'task 0 of 2: its share of the sorting is done in'
holds report 'sorted units are missing, without which no shard can be made; run this command again when the other'
holds report 'stage 1 of 3, sort; what follows: cut, merge (exit status 3)'
exits 3 tokmap pack -o d/out $all --unit-bytes 40K --task 0/2 --json $inputs >report
equal "$(field report stage)" sort
tokmap pack --status d/out >report
holds report 'the shards are cut, and then merged, when all tasks have done their share of this stage'
exits 1 tokmap pack -q -o d/out $all --unit-bytes 40K --finish $inputs 2>err
holds err 'sorted units are missing: '
holds err '(counted from 0), and no shard is made before; run again, of 2 tasks: 1'
# A task that works is waited for, and continues: --finish takes nothing away from it.
tokmap pack -q -o d/out $all --unit-bytes 40K --task 0/2 --wait 3600 $inputs &
pid=$!
await sh -c "tokmap pack --status d/out 2>err | grep -q '^0 of 2  *waiting'"
ls $work >before
exits 1 tokmap pack -q -o d/out $all --unit-bytes 40K --finish $inputs 2>err
holds err 'wait for the tasks that are still at work (now 1), or run again, of 2 tasks: 1'
ls $work >after
same before after
kill -s TERM $pid
wait $pid || true
tokmap pack -o d/out $all --unit-bytes 40K --task 1/2 $inputs >report
holds report 'shards, of other tasks, are missing; the task that finishes last names the shards of d/out'
tokmap pack -o d/out $all --unit-bytes 40K --task 1/2 --json $inputs >report
equal "$(field report stage)" merge
exits 1 tokmap pack -q -o d/out $all --unit-bytes 40K --finish $inputs 2>err
holds err 'shards are missing: 0, 1, 2'
holds err '(counted from 0); run again, of 2 tasks: 0'
# Another seed is other work.
exits 1 tokmap pack -q -o d/out $all --shuffle 8 --unit-bytes 40K --task 0/2 $inputs 2>err
holds err 'another --shuffle: it had 7, and this one has 8'
exits 1 tokmap pack -q -o d/out -t bytes --shard-tokens 50K --unit-bytes 40K --task 0/2 $inputs 2>err
holds err 'another --shuffle: it had 7, and this one has none'

# harm FILE BYTES AT: changes bytes of a file; and then task 0 names the file.
harm()
{
    cp "$1" kept
    printf "$2" | dd of="$1" bs=1 seek=$3 conv=notrunc 2>/dev/null
    exits 1 tokmap pack -q -o d/out $all --unit-bytes 40K --task 0/2 $inputs 2>err
    holds err "${1#d/}"
    holds err "${4:-this file of unfinished work is damaged}"
    holds err 'run all tasks again'
    cp kept "$1"
}
chunks=$work/unit-000000.work/chunks-0
end=$(wc -c <$chunks)
harm $work/packed-000000 x 20
harm $work/packed-000001 x 232
harm $work/packed-000001 x 600
harm $work/cuts-000000 x 3
harm $work/cuts-000000 '\377' $(($(wc -c <$work/cuts-000000) - 380))
harm $work/cuts-000000 '\377' 700
harm $chunks '\377\377' 8 'the sorted documents of unit 0 are damaged; remove the files packed-000000'
harm $chunks '\377\377' 70 'the sorted documents of unit 0 are damaged; remove the files packed-000000'
cp $chunks kept
: >$chunks
exits 1 tokmap pack -q -o d/out $all --unit-bytes 40K --task 0/2 $inputs 2>err
holds err 'the sorted documents of unit 0 are damaged'
rm $chunks
exits 1 tokmap pack -q -o d/out $all --unit-bytes 40K --task 0/2 $inputs 2>err
holds err 'unit-000000.work/chunks-0: the sorted documents of unit 0 cannot be read'
# The keys are read by the cut.
cp kept $chunks
rm $work/cuts-000000
harm $chunks '\377' $((end - 3)) 'the sorted documents of unit 0 are damaged'
harm $chunks '\377' $((end - 32)) 'the sorted documents of unit 0 are damaged'
# What a message says helps: the unit is sorted again, in other chunks, and shards that are merged are kept.
printf x | dd of=$chunks bs=1 seek=70 conv=notrunc 2>/dev/null
rm $work/packed-000000
ls $work >before
options='--shuffle-memory 4096'
part 2 0 d
options=
complete d || part 2 1 d
diff -r plain d
grep -q merged- before

# A finished shard whose file is gone is missed, and no name is given.
rm -r d
mkdir d
part 2 0 d
part 2 1 d
rm -r $work/shard-*.work
ls $work | grep merged- >merged
exits 1 tokmap pack -q -o d/out $all --unit-bytes 40K --task 0/2 $inputs 2>err
holds err 'a finished shard cannot be found; remove the file merged- with its number'
[ ! -e d/out ]
(cd $work && rm $(cat ../../merged))
tasks 2 d
diff -r plain d
