# SPDX-License-Identifier: MIT
# ci: nonroot
# A pack with --dedup or --exclude-ngrams that is killed continues where it was, and ends with the bytes and the list of
# dropped documents of an undisturbed one. TOKMAP_KILLS: how often packs are killed in all (24). With 460 KB for keys,
# the table is full in the middle of a.jsonl.
. "$TOKMAP_CLI/helpers.sh"
need awk
kills=${TOKMAP_KILLS:-24}
awk 'BEGIN { srand(5); for (i = 0; i < 30000; i++) { if (i % 3 == 0) seed = int(rand() * 9000); t = "start " seed
    for (k = 0; k < 12; k++) t = t " word" (seed * 31 + k * k) % 5000; if (i % 3 == 1) t = t " one more"
    printf "{\"text\":\"%s\",\"n\":%d}\n", t, i } }' >a.jsonl
{ sed -n 5000,9000p a.jsonl; awk 'BEGIN { for (i = 0; i < 9000; i++) print "{\"text\":\"also " i % 4000 "\"}" }'; } >b.jsonl
tr -d '{}"' <b.jsonl >t.txt
awk 'BEGIN { for (i = 0; i < 40; i++) print "also " i * 90; print "start 77 word2387" }' >words.txt

# Kills a pack up to 4 times, lets it end, and compares.
check()
{
    packs_killed 4 -t bytes "$@"
    tokmap show -q --dropped k >list
    [ -s list ]
    rm -f ref* k k.* k-*
}
rounds=0
while [ $kills -gt 0 ] && [ $rounds -lt 50 ]; do
    rounds=$((rounds + 1))
    check --dedup exact a.jsonl b.jsonl t.txt a.jsonl
    check --exclude-ngrams words.txt --exclude-words 2 a.jsonl b.jsonl t.txt a.jsonl
    check --dedup exact --dedup-memory 0 --exclude-ngrams words.txt --exclude-words 2 --split train=0.8,val=0.2 \
        a.jsonl b.jsonl t.txt a.jsonl
    check --dedup exact --dedup-memory 460K --shuffle 3 a.jsonl b.jsonl t.txt a.jsonl
    check --dedup minhash --minhash-bands 2 --exclude-ngrams words.txt --exclude-words 3 a.jsonl b.jsonl
    check --dedup exact --shard-tokens 100K --min-tokens 20 a.jsonl b.jsonl a.jsonl
done
[ $continued -gt 0 ]
echo "continued: $continued"

many='a.jsonl a.jsonl a.jsonl a.jsonl'
many="a.jsonl b.jsonl $many $many $many $many"
# A journal of other n-grams or another kind of duplicates is refused, and so is a list that was changed.
interrupted()
{
    for try in 1 2 3 4 5 6 7 8 9; do
        rm -rf k.* k
        tokmap pack -q -t bytes -o k --threads 1 --checkpoint-seconds 0.001 --dedup exact --exclude-ngrams words.txt \
            --exclude-words 2 $many 2>said &
        pid=$!
        while [ ! -s k.dropped.partial ] && kill -0 $pid 2>/dev/null; do :; done
        kill -s TERM $pid 2>/dev/null || true
        wait $pid 2>/dev/null || true
        # Only what can be continued is refused to others.
        ! grep -q 'the same command continues' said || [ ! -s k.dropped.partial ] || return 0
    done
    return 1
}
interrupted
grep -v '^start' words.txt >other.txt
again="tokmap pack -q -t bytes -o k --exclude-words 2 $many"
exits 1 $again --dedup exact --exclude-ngrams other.txt 2>err
holds err "excluded n-grams"
exits 1 $again --exclude-ngrams words.txt 2>err
holds err "--dedup"
: >k.dropped.partial
exits 1 $again --dedup exact --exclude-ngrams words.txt 2>err
holds err "the unfinished list of dropped documents cannot be continued: it is damaged; start over with --no-resume"
$again --no-resume --dedup exact --exclude-ngrams words.txt
[ ! -e k.work ] && [ ! -e k.dropped.partial ]
