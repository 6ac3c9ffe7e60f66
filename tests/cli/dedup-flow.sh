# SPDX-License-Identifier: MIT
# ci: asan
# `tokmap dedup` lists what `pack` would leave out, and `pack --drop` with this list makes the same shards. The list is
# the same for every number of tasks, threads, and units, and after kills. TOKMAP_KILLS: how often it is killed (12).
. "$TOKMAP_CLI/helpers.sh"
need awk gzip
kills=${TOKMAP_KILLS:-12}
awk 'BEGIN { srand(5); for (i = 0; i < 3000; i++) { if (i % 3 == 0) seed = int(rand() * 900); t = "start " seed
    for (k = 0; k < 12; k++) t = t " word" (seed * 31 + k * k) % 5000; if (i % 3 == 1) t = t " one more"
    printf "{\"text\":\"%s\",\"n\":%d}\n", t, i } }' >a.jsonl
{ sed -n 500,900p a.jsonl; echo; awk 'BEGIN { for (i = 0; i < 900; i++) print "{\"text\":\"also " i % 400 "\"}" }'; } >b.jsonl
tr -d '{}"' <b.jsonl >t.txt
: >empty.txt
head -n 300 a.jsonl | gzip >c.jsonl.gz
awk 'BEGIN { for (i = 0; i < 40; i++) print "also " i * 10; print "start 77 word2387" }' >words.txt
inputs='a.jsonl b.jsonl t.txt empty.txt c.jsonl.gz'

# entries FILE: prints what a list has, without the bytes that say how the inputs were read.
entries()
{
    tokmap show --dropped "$1" --json -q
}
for options in '' '--dedup minhash' '--exclude-ngrams words.txt --exclude-words 2' \
    '--dedup minhash --minhash-bands 4 --exclude-ngrams words.txt --exclude-words 2' '--dedup exact --dedup-memory 0'; do
    rm -f ./*.bin ./*.tmx ./*.dropped
    tokmap dedup -q -o plain $options $inputs
    [ ! -e plain.dropped.work ]
    tokmap pack -q -o packed ${options:---dedup exact} $inputs
    entries plain >list
    entries packed >wanted
    same list wanted
    [ -s list ]
    tokmap pack -q -o again --drop plain.dropped $inputs
    same packed.bin again.bin
    # Tasks, whose units are small, and threads.
    for tasks in 2 7; do
        rm -f l.dropped
        rounds=0
        while [ ! -e l.dropped ]; do
            task=0
            while [ $task -lt $tasks ]; do
                mine="--task $task/$tasks -j $((task % 3 + 1))"
                tokmap dedup -q -o l.dropped --unit-bytes 60K $mine $options $inputs || [ $? -eq 3 ]
                task=$((task + 1))
            done
            rounds=$((rounds + 1))
            [ $rounds -le 2 ]
        done
        same plain.dropped l.dropped
        [ ! -e l.dropped.work ]
        tokmap dedup --task 0/$tasks -o l $options $inputs >said
        holds said 'l.dropped: another task has written the list'
    done
    rm l.dropped
    # At once.
    for task in 0 1 2; do
        tokmap dedup -q -o l --unit-bytes 60K --task $task/3 --wait 60 $options $inputs &
    done
    wait
    same plain.dropped l.dropped
    [ ! -e l.dropped.work ]
done

# Kills, at random moments, of one process and of tasks.
killed=0
round=0
while [ $kills -gt 0 ]; do
    round=$((round + 1))
    rm -f k.dropped
    options='--dedup minhash --exclude-ngrams words.txt --exclude-words 2'
    [ $((round % 2)) -eq 0 ] || options='--dedup exact'
    tokmap dedup -q --force -o plain $options $inputs
    tries=0
    while [ ! -e k.dropped ] || [ -e k.dropped.work ]; do
        tries=$((tries + 1))
        [ $tries -lt 60 ]
        tokmap dedup -q -o k --unit-bytes 60K $options $inputs 2>err &
        id=$!
        if [ $kills -gt 0 ] && [ $tries -lt 5 ]; then
            sleep "0.0$((round * 7 % 10))$((tries * 3 % 10))"
            kill -s KILL $id 2>/dev/null && killed=$((killed + 1))
            kills=$((kills - 1))
        fi
        wait $id 2>/dev/null || [ $? -eq 137 ] || { [ -e k.dropped ] && [ ! -e k.dropped.work/journal ]; }
    done
    same plain.dropped k.dropped
done
echo "killed: $killed"

# What is refused, and what is said.
exits 1 tokmap dedup -q -o plain a.jsonl 2>err
holds err 'plain.dropped: this list exists; replace it with --force'
exits 2 tokmap dedup -q a.jsonl 2>err
exits 2 tokmap dedup -q -o x --force --task 0/2 a.jsonl 2>err
exits 1 tokmap dedup -q -o x - <a.jsonl 2>err
holds err 'standard input can be read by one process only'
exits 3 tokmap dedup -o x --unit-bytes 60K --task 0/2 --wait 0 a.jsonl >said
holds said 'x.dropped: the share of this task is done'
tokmap dedup --status x >said
holds said 'the keys are compared when all tasks'
exits 1 tokmap dedup -q -o x --unit-bytes 60K --dedup minhash a.jsonl 2>err
holds err '--dedup'
tokmap dedup --json -o x --unit-bytes 60K --task 1/2 a.jsonl >said
holds said '"complete": true, "inputs": 1, "documents_read": 3000'
tokmap dedup --status x.dropped >said
holds said 'the output is complete'
# The list is no input.
mkdir folder
cp a.jsonl folder/
tokmap dedup -q -o folder/own folder/a.jsonl
exits 1 tokmap dedup -q --force -o ./folder/own folder 2>err
holds err 'folder/own.dropped: this input is an output of the same command'
# A list is refused for inputs that are read in another way.
sed 's/"text"/"body"/' a.jsonl >d.jsonl && mv d.jsonl a.jsonl
exits 1 tokmap pack -q -o y --field body --drop x.dropped a.jsonl 2>err
holds err 'x.dropped: this list is about inputs that were read otherwise'
[ ! -e y.tmx ]
