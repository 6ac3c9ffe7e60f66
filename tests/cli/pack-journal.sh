# SPDX-License-Identifier: MIT
# ci: nonroot asan
# A pack that was killed continues where it was, and ends with the bytes of an undisturbed one. TOKMAP_KILLS: how often
# packs are killed in all (50). With TEST_SHARE=N, one of N delays before an interrupt is tried.
. "$TOKMAP_CLI/helpers.sh"
kills=${TOKMAP_KILLS:-50}
awk 'BEGIN { srand(4); for (i = 0; i < 60000; i++) { t = ""; n = int(rand() * 30); for (k = 0; k < n; k++)
    t = t " word" int(rand() * 5000); printf "{\"text\":\"%s\",\"url\":\"u%d\",\"n\":%d}\n", t, i % 700, i } }' >a.jsonl
head -n 20000 a.jsonl >b.json
head -n 20000 a.jsonl | sed 's/^{"text":"\([^"]*\)","url":"\([^"]*\)","n":\([0-9]*\)}$/\3,"\1",\2/' >rows
{ echo n,text,url; cat rows; } >c.csv
awk 'BEGIN { for (i = 0; i < 30000; i++) printf "{\"ids\":[%d,%d,7],\"m\":[1,%d,0]}\n", i % 999, i % 17, i % 2 }' >m.jsonl
tr -d '{}"' <a.jsonl >t.txt
: >empty.txt
gzip -kc a.jsonl >az.jsonl.gz

# Kills a pack up to 8 times, lets it end, and compares. The last command may also have been killed after the output
# was complete.
check()
{
    packs_killed 8 "$@"
    rm -f ref* k k.* k-*
}
rounds=0
while [ $kills -gt 0 ] && [ $rounds -lt 200 ]; do
    rounds=$((rounds + 1))
    check -t bytes a.jsonl
    check -t bytes --shard-tokens 100K a.jsonl
    check -t bytes --columns url,n --shard-tokens 300K --split train=0.8,val=0.2 a.jsonl
    check -t bytes --columns url,n a.jsonl
    check -t bytes az.jsonl.gz b.json t.txt empty.txt
    check -t bytes --input-format csv --columns n c.csv
    check --ids-field ids --mask-field m --vocab-size 1000 --no-eod m.jsonl
done
killed=$((${TOKMAP_KILLS:-50} - kills))
echo "continued: $continued of $killed"
[ $kills -eq 0 ]
[ $((continued * 3)) -ge $killed ]

# begun FILE... starts a pack that writes its journal often, and returns once these files or the packed dataset exist.
# It looks without a pause, because the pack takes a fraction of a second.
begun()
{
    tokmap pack -q -t bytes -o k --threads 1 --checkpoint-seconds 0.001 $inputs 2>err &
    pid=$!
    for file; do
        while [ ! -e "$file" ] && [ ! -e k.tmx ] && kill -0 $pid 2>/dev/null; do
            :
        done
    done
}

# An interrupt keeps the journal and says how to continue. The report of the next process says what was done before.
cat t.txt t.txt t.txt t.txt >long.txt
inputs='a.jsonl long.txt a.jsonl long.txt'
tokmap pack -t bytes -o ref --checkpoint-seconds 0 $inputs | sed -n '/^  tokens/,/in tokens/p' >wanted
interrupted=
number=0
for delay in 0 0.01 0.005 0.04 0.002 0.08; do
    number=$((number + 1))
    in_share $number || continue
    for signal in INT TERM; do
        rm -rf k.bin k.tmx
        begun k.work/journal
        sleep $delay
        kill -s $signal $pid 2>/dev/null || true
        status=0
        wait $pid || status=$?
        [ -e k.work/journal ] || continue
        interrupted=1
        holds err "tokmap pack: interrupted; the same command continues (its work so far is in k.work)"
        tokmap pack -t bytes -o k --threads 1 $inputs >report
        holds report "that were packed before; all numbers below are those of the whole"
        sed -n '/^  tokens/,/in tokens/p' report >found
        same found wanted
        same k.bin ref.bin
        same k.tmx ref.tmx
    done
done
[ "$interrupted" ]

# Work that another user has left is not continued, because that user could change it at any time.
if [ "$(id -u)" = 0 ]; then
    foreign=
    inputs="$inputs $inputs $inputs"
    tokmap pack -q -t bytes -o ref --checkpoint-seconds 0 --force $inputs
    for delay in 0.01 0.02 0.04 0.08 0.005 0.16 0.1 0.03; do
        rm -rf k.* k-*
        begun k.work/journal k.bin.partial
        sleep $delay
        kill -s KILL $pid 2>/dev/null || true
        wait $pid || true
        [ -e k.work/journal ] && [ -e k.bin.partial ] || continue
        chown 65534 k.bin.partial
        # A journal that says that nothing has been written yet needs no file: the pack begins a new one.
        ! tokmap pack -q -t bytes -o k $inputs 2>err || { same k.bin ref.bin; continue; }
        foreign=1
        holds err "k.bin.partial: the unfinished output cannot be continued: Operation not permitted"
        chown 65534 k.work/journal
        exits 1 tokmap pack -q -t bytes -o k $inputs 2>err
        holds err "here is the unfinished work of another user"
        holds err "start over with --no-resume"
        tokmap pack -q -t bytes --no-resume -o k $inputs
        same k.bin ref.bin
        same k.tmx ref.tmx
        break
    done
    [ "$foreign" ]
fi
