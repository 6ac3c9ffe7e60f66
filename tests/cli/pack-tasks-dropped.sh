# SPDX-License-Identifier: MIT
# Tasks drop duplicates and excluded texts in stages, in files that they share: the bytes and the list of dropped
# documents are the same for every number of tasks and threads, without tasks, and after kills. TOKMAP_KILLS: how often
# tasks are killed (8).
. "$TOKMAP_CLI/helpers.sh"
need awk gzip
kills=${TOKMAP_KILLS:-8}
awk 'BEGIN { srand(5); for (i = 0; i < 3000; i++) { if (i % 3 == 0) seed = int(rand() * 900); t = "start " seed
    for (k = 0; k < 12; k++) t = t " word" (seed * 31 + k * k) % 5000; if (i % 3 == 1) t = t " one more"
    printf "{\"text\":\"%s\",\"n\":%d}\n", t, i } }' >a.jsonl
{ sed -n 500,900p a.jsonl; echo; awk 'BEGIN { for (i = 0; i < 900; i++) print "{\"text\":\"also " i % 400 "\"}" }'; } >b.jsonl
tr -d '{}"' <b.jsonl >t.txt
: >empty.txt
head -n 300 a.jsonl | gzip >c.jsonl.gz
awk 'BEGIN { for (i = 0; i < 40; i++) print "also " i * 10; print "start 77 word2387" }' >words.txt
inputs='a.jsonl b.jsonl t.txt empty.txt c.jsonl.gz a.jsonl'

# pack FOLDER OPTION...: packs inputs with the options of this round.
pack()
{
    into=$1
    shift
    tokmap pack -q -t bytes -o $into/out --shard-tokens 50K --unit-bytes 60K $options "$@" $inputs
}
# part FOLDER OPTION...: packs, and may end because other tasks are missing.
part()
{
    again=0
    pack "$@" || again=$?
    [ $again -eq 0 ] || [ $again -eq 3 ] || exit $again
}
# tasks N FOLDER: runs tasks, one after the other, until the output is complete.
tasks()
{
    rounds=0
    while [ ! -e $2/out ] && [ ! -e $2/out.train ]; do
        task=0
        while [ $task -lt $1 ] && [ ! -e $2/out ] && [ ! -e $2/out.train ]; do
            part $2 --task $task/$1 -j $((task % 2 + 1))
            task=$((task + 1))
        done
        rounds=$((rounds + 1))
        [ $rounds -le 2 ] # one is for the scan, and for those that pack after it
    done
}
# check COUNTS OPTION...: compares the outputs of so many tasks.
check()
{
    counts=$1
    shift
    options=$*
    mkdir plain
    pack plain
    [ ! -e plain/out ] || tokmap verify -q plain/out
    # In one piece, the same documents are dropped for the same reasons.
    tokmap pack -q -t bytes -o whole --shard-tokens 50K $options $inputs
    same whole.dropped plain/out.dropped
    for n in $counts; do
        mkdir d
        tasks $n d
        diff -r plain d
        rm -r d
    done
    mkdir d
    pack d -j 2
    diff -r plain d
    rm -rf d whole*
}
check 3 --exclude-ngrams words.txt --exclude-words 2
rm -r plain
check '1 2 3 7' --dedup exact
rm -r plain
check 7 --dedup exact --exclude-ngrams words.txt --exclude-words 2 --split train=0.8,val=0.2 --min-tokens 20
rm -r plain

check '2 7' --dedup minhash --minhash-bands 4 --minhash-rows 4 --exclude-ngrams words.txt --exclude-words 2
holds plain/out.dropped a.jsonl
rm -r plain

# Tasks that run at a time wait for each other.
options='--dedup exact --exclude-ngrams words.txt --exclude-words 2'
mkdir plain d
pack plain
for task in 0 1 2 3; do
    part d --task $task/4 -j 1 &
done
wait
[ -e d/out ] || tasks 4 d # unless one of them began when another one had ended
diff -r plain d

# With --wait, a task waits for one that begins later, and both are run once; with --wait 0, it waits for nobody.
rm -r d
mkdir d
pack d --task 0/2 --wait 50 -j 1 &
while ! tokmap pack --status d/out >status 2>/dev/null || ! grep -q '^0 of 2  waiting' status; do sleep 0.05; done
exits 3 pack d --task 2/3 --wait 0
[ ! -e d/out ]
pack d --task 1/2 --wait 50 -j 1
wait $!
[ -e d/out ]
diff -r plain d
exits 2 tokmap pack -q -t bytes -o e/out --shard-tokens 50K --wait 5 $inputs 2>err
holds err '--wait is for one of several tasks: give its number with --task I/N'

# After kills the same commands end with the same bytes.
number=0
rm -r d
mkdir d
while [ $number -lt $kills ]; do
    number=$((number + 1))
    tokmap pack -q -t bytes -o d/out --shard-tokens 50K --unit-bytes 60K $options --task $((number % 3))/3 \
        --checkpoint-seconds 0.001 -j $((number % 2 + 1)) $inputs 2>err &
    pid=$!
    sleep 0.0$((number * 7 % 10))$((number * 3 % 10))
    kill -s KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
done
[ -e d/out ] || tasks 3 d
diff -r plain d

# --finish says what is missing, of each stage. A report says which stage is not complete.
rm -r d
mkdir d
exits 3 tokmap pack -t bytes -o d/out --shard-tokens 50K --unit-bytes 60K $options --task 0/2 $inputs >report
holds report "task 0 of 2: its share of the search for duplicates and excluded texts is done"
holds report "scans of units are missing, without which no unit can be packed; run this command again"
holds report "of task 1 of 2)"
holds report "stage 1 of 3, scan; what follows: compare, pack (exit status 3)"
exits 3 tokmap pack -t bytes -o d/out --shard-tokens 50K --unit-bytes 60K $options --task 0/2 --json $inputs >report
json report
equal "$(field report stage)" scan
exits 1 pack d --finish 2>err
holds err "9 of 18 scans of units are missing: 9, 10, 11, 12, 13, 14, 15, 16, 17 (counted from 0)"
holds err "(counted from 0), and no unit is packed before; run again, of 2 tasks: 1"
pack d --task 1/2
exits 1 pack d --finish 2>err
holds err "units are missing"

# The report of the task that finishes the work has the bytes of all keys; --force leaves no list of older work.
mkdir forced
cp plain/out* forced/ 2>/dev/null
tokmap pack -t bytes -o forced/out --force --shard-tokens 50K --unit-bytes 60K $options --json $inputs >report
[ "$(field report dropped.key_file_bytes)" -gt $((32 * 5000)) ]
diff -r plain forced
tokmap pack -q -t bytes -o forced/out --force --shard-tokens 50K --unit-bytes 60K --task 0/1 $inputs
[ ! -e forced/out.dropped ]
rm -r forced

# A file of a stage that is torn, or of other work, is refused, and made again when it is removed.
for part in 1 8; do
    bytes=$(wc -c <d/out.work/scan-000001)
    cp d/out.work/scan-000001 scan
    head -c $((bytes * part / 9)) scan >d/out.work/scan-000001
    exits 1 pack d --task 0/2 2>err
    holds err "scan-000001: this file of unfinished work is damaged, or of work with other options; remove it"
    cp scan d/out.work/scan-000001
done
cp d/out.work/scan-000002 d/out.work/scan-000001
exits 1 pack d --task 0/2 2>err
holds err "is damaged, or of work with other options"
cp d/out.work/drops-000000 d/out.work/scan-000001
exits 1 pack d --task 0/2 2>err
cp scan d/out.work/scan-000001
bytes=$(wc -c <d/out.work/drops-000000)
cp d/out.work/drops-000000 drops
printf 'x' | dd of=d/out.work/drops-000000 bs=1 seek=$((bytes - 5)) conv=notrunc 2>/dev/null
rm -f d/out.work/packed-*
exits 1 pack d --task 0/1 2>err
holds err "drops-000000: this file of unfinished work is damaged"
rm d/out.work/drops-000000 d/out.work/scan-000001
tasks 2 d
diff -r plain d

# An input that changes between two stages, where neither its size nor the pieces in the journal say so, is found when
# it is packed: in a file above 1 MiB, the first line behind the seventh piece that ends before the eighth one.
rm -r d plain
mkdir d plain
cat a.jsonl b.jsonl a.jsonl a.jsonl a.jsonl >large.jsonl
inputs=large.jsonl
pack plain
number=$(awk -v size=$(wc -c <large.jsonl) 'BEGIN { step = (size - 65536) / 15 } { from = to; to += length($0) + 1 }
    from > 6 * step + 65536 && to < 7 * step { print NR; exit }' large.jsonl)
cp large.jsonl saved
part d --task 0/2
part d --task 1/2
line=$(sed -n ${number}p large.jsonl)
sed "${number}s/.*/$(echo "$line" | tr 0-9 1-90)/" saved >large.jsonl
equal "$(wc -c <large.jsonl)" "$(wc -c <saved)"
rm -rf d/out.work/unit-*
exits 1 pack d --task 0/1 2>err
holds err "the inputs have changed since they were read for the first time"
holds err "remove this folder, and begin again"
cp saved large.jsonl
exits 1 tokmap pack -q -t bytes -o d/out --shard-tokens 50K --unit-bytes 60K --task 0/2 $inputs 2>err
holds err "--dedup"
tasks 2 d
diff -r plain d

# --status counts the stages before packing, too: here the second unit of a task cannot be read to its end.
mkdir s
awk 'BEGIN { for (i = 0; i < 900; i++) print "{\"text\":\"also " i % 400 "\"}" }' >also.jsonl
{ cat a.jsonl a.jsonl also.jsonl; echo '{bad'; } >bad.jsonl
bad()
{
    tokmap pack -q -t bytes -o s/out --shard-tokens 50K --unit-bytes 500K --dedup exact --task $1 bad.jsonl 2>err
}
exits 1 bad 0/1
tokmap pack --status s/out --json >status
json status
equal "$(field status stage)" scan
equal "$(field status failed)" 1
equal "$(field status units_done)" 1
equal "$(field status bytes_all)" "$(wc -c <bad.jsonl | tr -d ' ')"
[ "$(field status bytes)" -ge 500000 ] && [ "$(field status bytes)" -lt "$(field status bytes_all)" ]
tokmap pack --status s/out >status
holds status '0 of 1  failed  scan     1/2'
holds status 'scan: 1 of 2 units, '
holds status 'the keys are compared, and then the units packed or sorted, when all tasks have done their share'
rm -r s/out.work
sed '$d' bad.jsonl >good.jsonl
mv good.jsonl bad.jsonl
exits 3 bad 0/2
bad 1/2
tokmap pack --status s/out --json >status
equal "$(field status stage)" pack
equal "$(field status not_in_stage)" 1
equal "$(field status units_done)" 1
tokmap pack --status s/out >status
holds status '0 of 2  run again  scan'
holds status '1 of 2  done       pack'
holds status ': 0 working, 1 done, 1 to run again, 0 failed'
holds status 'pack: 1 of 2 units, '
holds status "run the tasks again whose state is 'run again', when the others have ended"
tokmap pack --status s/out --json >status
equal "$(field status done) $(field status run_again) $(field status units_done) $(field status units_all)" '1 1 1 2'
# Of the unit, which has the lines from byte 500000 on, it counts documents that are dropped apart from those that are
# kept, of each task and in the sums. The numbers are those of the report of all units, less those of the other one.
awk '{ text = $0; sub(/,"n":[0-9]*}$/, "", text); if (at >= 500000) n[seen[text] ? "dropped" : "kept"]++
    seen[text] = 1; at += length($0) + 1 } END { print n["kept"] + 0, n["dropped"] + 0, 0 }' bad.jsonl >wanted
counts()
{
    echo "$(field status $1documents) $(field status $1dropped) $(field status $1skipped)"
}
equal "$(counts '')" "$(cat wanted)"
equal "$(counts tasks.1.)" "$(cat wanted)"
equal "$(counts tasks.0.)" '0 0 0'
tokmap pack --status s/out >status
dropped=$(cut -d ' ' -f 2 wanted)
[ "$dropped" -gt 1000 ]
equal "$(sed -n '/^1 of 2/p' status | tr -d , | tr -s ' ' | cut -d ' ' -f 1-9)" "1 of 2 done pack 1/1 $(cat wanted)"
equal "$(sed -n '1p' status | tr -s ' ' | cut -d ' ' -f 5-8)" 'documents dropped skipped tokens'
tr -d , <status >plain.status
holds plain.status "documents $dropped dropped 0 skipped"
tokmap pack -q -t bytes -o s/out --shard-tokens 50K --unit-bytes 500K --dedup exact --task 0/2 --json bad.jsonl >report
awk '{ sub(/,"n":[0-9]*}$/, ""); dropped += seen[$0]++ > 0 } END { print dropped }' bad.jsonl >wanted
equal "$(field report dropped.duplicates)" "$(cat wanted)"
[ ! -e s/out.work ]
rm s/out*

# Excluded texts and near-duplicates are counted, too.
for way in '--exclude-ngrams words.txt --exclude-words 2' '--dedup minhash --minhash-ngram 2'; do
    options="--unit-bytes 8K $way"
    inputs=also.jsonl
    part s --task 0/2
    part s --task 1/2
    tokmap pack --status s/out --json >status
    equal "$(field status tasks.1.stage) $(field status tasks.1.units_done)" 'pack 2'
    awk -v way="$way" '{ text = $0; gsub(/[^0-9]/, "", text)
        is_out = way ~ /words.txt/ ? text % 10 == 0 : seen[text]++
        if (at >= 8000) n[is_out ? "dropped" : "kept"]++
        at += length($0) + 1 } END { print n["kept"] + 0, n["dropped"] + 0 }' also.jsonl >wanted
    equal "$(field status tasks.1.documents) $(field status tasks.1.dropped)" "$(cat wanted)"
    rm -r s/out.work
done

# Apart from them it counts what is left out for other reasons, bad records and short texts, of a unit that is finished,
# and of one that is not, because its last line cannot be read.
for i in 1 2 3 4 5 6 7 8; do cat a.jsonl also.jsonl; done >long.jsonl
{ printf '{bad\n{bad\n'; cat long.jsonl; } >left.jsonl
{ cat long.jsonl; echo '{bad'; } >last.jsonl
for file in left last; do
    wanted=0
    [ $file = left ] || wanted=1
    [ $file = last ] || options='--on-error skip'
    exits $wanted tokmap pack -q -t bytes -o s/out --shard-tokens 50K --unit-bytes 4M --min-tokens 20 -j 1 $options \
        --task 0/2 also.jsonl $file.jsonl long.jsonl 2>err
    tokmap pack --status s/out --json >status
    equal "$(field status units_done) $(field status dropped)" "$((1 - wanted)) 0"
    if [ $file = left ]; then
        equal "$(field status documents) $(field status skipped)" '24000 8102'
    else
        [ "$(field status skipped)" -gt 1000 ]
        [ "$(field status documents)" -gt 1000 ]
    fi
    rm -r s/out.work
    options=
done
rm -f s/out*
