# SPDX-License-Identifier: MIT
# ci: nonroot
# A scan that is killed continues after its last part: it does not read again what has changed since then, which the
# packing finds. With the input as it was, the work ends with the bytes of undisturbed work. In one piece, where the
# documents are compared when the table of keys is full, the packing does not read again either what it has packed
# before.
. "$TOKMAP_CLI/helpers.sh"
need awk
awk 'BEGIN { srand(5); for (i = 0; i < 27000; i++) { if (i % 3 == 0) seed = int(rand() * 9000); t = "start " seed
    for (k = 0; k < 12; k++) t = t " word" (seed * 31 + k * k) % 5000; if (i % 3 == 1) t = t " one more"
    printf "{\"text\":\"%s\",\"n\":%d}\n", t, i } }' >big.jsonl
large='--shard-tokens 2M --unit-bytes 20M --dedup exact -j 1 big.jsonl'
full='--dedup exact --dedup-memory 460K -j 1 big.jsonl'
cp big.jsonl saved

# scan_killed OPTION...: packs into m/out, and kills that while it scans.
scan_killed()
{
    tries=0
    while :; do
        tries=$((tries + 1))
        [ $tries -lt 50 ]
        rm -rf m
        mkdir m
        tokmap pack -q -t bytes -o m/out --checkpoint-seconds 0.001 "$@" 2>/dev/null &
        pid=$!
        while [ ! -e m/out.work/scan-000000.part-000002 ] && kill -0 $pid 2>/dev/null; do :; done
        kill -s KILL $pid 2>/dev/null || true
        wait $pid 2>/dev/null || true
        [ ! -e m/out.work/scan-000000.part-000002 ] || [ -e m/out.work/scan-000000 ] || break
    done
}
mkdir l
tokmap pack -q -t bytes -o l/out --checkpoint-seconds 0 $full
scan_killed $full
sed '1000s/ word/ lord/' saved >big.jsonl
tokmap pack -q -t bytes -o m/out $full
diff -r l m

cp saved big.jsonl
rm -r l
mkdir l
tokmap pack -q -t bytes -o l/out $large
scan_killed --task 0/1 $large
sed '1000s/ word/ lord/' saved >big.jsonl
equal "$(wc -c <big.jsonl)" "$(wc -c <saved)"
exits 1 tokmap pack -q -t bytes -o m/out --task 0/1 $large 2>err
holds err "the inputs have changed since they were read for the first time"
cp saved big.jsonl
rm -rf m/out.work/unit-*
tokmap pack -q -t bytes -o m/out --task 0/1 $large
diff -r l m
