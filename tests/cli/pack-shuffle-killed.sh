# SPDX-License-Identifier: MIT
# ci: nonroot
# A pack with --shuffle that is killed continues where it was, in both passes, and ends with the bytes of an undisturbed
# one. TOKMAP_KILLS: how often packs are killed in all (30).
. "$TOKMAP_CLI/helpers.sh"
need awk
kills=${TOKMAP_KILLS:-30}
awk 'BEGIN { srand(5); for (i = 0; i < 30000; i++) { if (i % 3 == 0) seed = int(rand() * 9000); t = "start " seed
    for (k = 0; k < 12; k++) t = t " word" (seed * 31 + k * k) % 5000
    printf "{\"text\":\"%s\",\"n\":%d}\n", t, i } }' >a.jsonl
{ sed -n 5000,9000p a.jsonl; awk 'BEGIN { for (i = 0; i < 9000; i++) print "{\"text\":\"also " i % 4000 "\"}" }'; } >b.jsonl
awk 'BEGIN { for (i = 0; i < 500000; i++) print "line " i " of a long text" }' >long.txt
awk 'BEGIN { for (i = 0; i < 20000; i++) { printf "{\"ids\": [%d", i % 250
    for (k = 0; k < i % 23; k++) printf ", %d", (i + k) % 250
    printf "], \"m\": [1"; for (k = 0; k < i % 23; k++) printf ", %d", k % 2; print "]}" } }' >ids.jsonl

# Kills a pack up to 4 times, at places that differ, lets it end, and compares.
check()
{
    packs_killed 4 "$@"
    rm -f ref* k k.* k-*
}
rounds=0
while [ $kills -gt 0 ] && [ $rounds -lt 50 ]; do
    rounds=$((rounds + 1))
    check -t bytes --shuffle 1 a.jsonl long.txt b.jsonl
    check -t bytes --shuffle 2 --shuffle-memory 64Ki --columns n a.jsonl b.jsonl long.txt
    check -t bytes --shuffle 3 --shard-tokens 200K a.jsonl long.txt b.jsonl
    check -t bytes --shuffle 4 --split train=0.9,val=0.1 --dedup exact --shuffle-memory 1Mi a.jsonl b.jsonl
    check --shuffle 5 --ids-field ids --mask-field m --vocab-size 250 --shard-tokens 20K ids.jsonl
done
[ $continued -gt 0 ]
echo "continued: $continued"
