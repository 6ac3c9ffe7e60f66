# SPDX-License-Identifier: MIT
# ci: nonroot
# Tasks that are killed, and run again: the bytes are those of undisturbed work. Two tasks of one number, and --status.
# TOKMAP_KILLS: how often tasks are killed in all (8).
. "$TOKMAP_CLI/helpers.sh"
kills=${TOKMAP_KILLS:-8}
awk 'BEGIN { srand(4); for (i = 0; i < 15000; i++) { t = ""; n = int(rand() * 30); for (k = 0; k < n; k++)
    t = t " word" int(rand() * 5000); printf "%s{\"text\":\"%s\"}\n", i % 50 == 7 ? "x" : "", t } }' >a.jsonl
head -n 5000 a.jsonl >b.jsonl
gzip -n -c a.jsonl >c.jsonl.gz
inputs='a.jsonl b.jsonl c.jsonl.gz b.jsonl'
units='--shard-tokens 200k --unit-bytes 300k --on-error skip'
options="$units --skipped-list ref/list"
mkdir ref
tokmap pack -q $options -o ref/d $inputs 2>/dev/null
options="$units --skipped-list k/list"

round=0
while [ $kills -gt 0 ]; do
    round=$((round + 1))
    rm -rf k
    mkdir k
    kill=0
    while [ $kill -lt 6 ] && [ $kills -gt 0 ]; do
        kill=$((kill + 1))
        kills=$((kills - 1))
        pids=
        for i in 0 1 2; do
            tokmap pack -q $options --checkpoint-seconds 0.001 -j 1 --task $i/3 -o k/d $inputs 2>err.$i &
            pids="$pids $!"
        done
        sleep 0.$((round * kill * 7 % 4))$((kill * 3 % 10))
        for pid in $pids; do kill -s KILL $pid 2>/dev/null || true; done
        for pid in $pids; do wait $pid 2>/dev/null || true; done
        for i in 0 1 2; do
            grep -v 'already exists\|: skipped: \|named more than once' err.$i >err || true
            [ ! -s err ] || grep -q 'continues it\|already exists' err.$i || { cat err.$i >&2; exit 1; }
        done
    done
    for i in 2 1 0; do
        tokmap pack -q $options --task $i/3 -o k/d $inputs 2>err || holds err 'the output already exists'
    done
    for file in ref/*; do same "$file" "k/${file#ref/}"; done
    equal "$(ls k | wc -l)" "$(ls ref | wc -l)" files:
done

options=$units
# A second process with the number of one that works stops, and names it. The first one is stopped so that it stays.
mkdir t
first=
tries=0
while [ -z "$first" ]; do
    tries=$((tries + 1))
    [ $tries -lt 20 ]
    rm -rf t/*
    tokmap pack -q $options --unit-bytes 8k --checkpoint-seconds 0.001 -j 1 --task 0/2 -o t/d b.jsonl 2>err.first &
    pid=$!
    while [ ! -s t/d.work/task-0-of-2.status ] && kill -0 $pid 2>/dev/null; do sleep 0.002; done
    kill -s STOP $pid 2>/dev/null || true
    tokmap pack --status t/d >status 2>/dev/null || true
    if grep -q '^0 of 2  *working' status; then first=$pid; else kill -s CONT $pid || true; wait $pid || true; fi
done
exits 1 tokmap pack -q $options --unit-bytes 8k --task 0/2 -o t/d b.jsonl 2>err
holds err "another process is task 0 of 2 of this output: process $first on host $(uname -n)"
# Nobody removes its work, and no message advises it.
ls t/d.work >before
for way in '' --no-resume '--no-resume --shard-tokens 200k --unit-bytes 8k'; do
    exits 1 tokmap pack -q $way -o t/d b.jsonl 2>err
    holds err "t/d.work: process $first on host $(uname -n) is at work here, as task 0 of 2; wait for it"
    equal "$(grep -c -e --no-resume err)" 0
    ls t/d.work >after
    same before after
done
holds status '1 working, 0 done, 0 to run again, 0 failed, 0 stopped without an end, 1 not begun'
holds status ' units'
tokmap pack --status t/d --json >json
json json
holds json '"complete": false'
kill -s KILL $first
wait $first 2>/dev/null || true
tokmap pack --status t/d >status
holds status '0 working, 0 done, 0 to run again, 0 failed, 1 stopped without an end, 1 not begun'
holds status 'run the tasks again that failed or stopped'
tokmap pack -q $options --unit-bytes 8k --task 1/2 -o t/d b.jsonl
tokmap pack --status t/d >status
holds status '0 working, 1 done, 0 to run again, 0 failed, 1 stopped without an end, 0 not begun'
exits 1 tokmap pack -q $options --unit-bytes 8k --finish -o t/d b.jsonl 2>err
holds err 'run again, of 2 tasks: 0'
tokmap pack -q $options --unit-bytes 8k --task 0/2 -o t/d b.jsonl
mkdir u
tokmap pack -q $options --unit-bytes 8k -o u/d b.jsonl
for file in u/*; do same "$file" "t/${file#u/}"; done
[ ! -e t/d.work ]
tokmap pack --status t/d >out
equal "$(cat out)" 't/d: the output is complete, and no task works on it'
tokmap pack --json --status t/d.work >json
json json
holds json '"complete": true'
