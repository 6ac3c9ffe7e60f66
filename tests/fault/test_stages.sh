#!/bin/sh
# SPDX-License-Identifier: MIT
# test_stages.sh: kill -9 in place of calls of `tokmap pack --task` with duplicates and excluded texts left out, and
# calls failing once. The next process with the same command ends with the bytes of undisturbed work, or finds that the
# output is complete. It takes every 13th call that changes files to be killed at, every 97th call to fail, every
# fourth fsync, and every third rename; one sweep is that of near-duplicates, with every 194th call, and four are those
# of a shuffle without documents left out, whose bytes must be those of no tasks. The last three have units of several
# batches, and save what they find after each, so that scans and comparisons have parts; they take every 72nd call that
# changes files to be killed at, every 8th fsync, and, of near-duplicates, every 125th call that changes files. The
# commit chooses which ones. FAULT_ALL=1 takes all calls, or of the last three every fourth, second, and 30th one.
# common.sh prepares the inputs.
. tests/fault/common.sh

step=97
few=4
[ -z "${FAULT_ALL:-}" ] || step=1 few=1
head -n 12 docs.jsonl >few.jsonl
head -n 9 docs.jsonl >less.jsonl
echo 'document 4 é with' >words.txt
options="-q --threads 1 --unit-bytes 500 --shard-tokens 400 --dedup exact --exclude-ngrams words.txt --exclude-words 3"
awk 'BEGIN { for (i = 0; i < 8000; i++) { n = i % 5000; t = ""; for (k = 0; k < 5; k++) t = t " word" \
    substr("abcdefghij", int(n / 10 ^ (k % 4)) % 10 + 1, 1) substr("klmnopqrst", (n + k) % 10 + 1, 1)
    print "{\"text\": \"document " i % 7 t "\"}" } }' >large.jsonl
parts="-q --threads 1 --checkpoint-seconds 0.001 --unit-bytes 300000 --shard-tokens 200k --exclude-ngrams words.txt"
near="-q --threads 1 --unit-bytes 500 --shard-tokens 400 --dedup minhash --minhash-ngram 2 --minhash-bands 2"
shuffle="-q --threads 1 --shard-tokens 400 --shuffle 5 --shuffle-memory 4096 --split a=0.7,b=0.3"
inputs="few.jsonl less.jsonl"
prepare() {
    rm -rf ref
    mkdir ref
    "$TOKMAP" pack $1 -o ref/new $inputs 2>err || cat err
    wanted=$(ls ref)
    attempt="$TOKMAP pack $1 ${2:-} --task 0/1 -o d/new $inputs"
}
prepare "$options"
[ "$("$TOKMAP" show -q --dropped ref/new | wc -l)" -eq 10 ] || echo "not ok - other documents are dropped"
whole() {
    [ -z "${1:-}" ] || [ "$(ls d)" = "$wanted" ] || return 1
    for file in ref/*; do cmp -s "$file" "d/${file#ref/}" || return 1; done
}
for sweep in kill system fsync rename near shuffle-kill shuffle-system shuffle-fsync shuffle-rename parts-kill \
    parts-fsync parts-near; do
    kind=${sweep#shuffle-}
    stride=$step
    [ -n "${FAULT_ALL:-}" ] || [ $kind != kill ] || stride=13
    unset INJECT_ONLY
    if [ $kind = fsync ] || [ $kind = rename ]; then
        export INJECT_ONLY=$kind
        stride=$few
        [ -n "${FAULT_ALL:-}" ] || [ $kind != rename ] || stride=3 # there are 27
        kind=system
    fi
    listed=d/new.dropped
    case $sweep in
    shuffle-*)
        prepare "$shuffle" "--unit-bytes 500"
        listed=.
        ;;
    esac
    if [ $sweep = near ]; then
        prepare "$near"
        [ "$("$TOKMAP" show -q --dropped ref/new | wc -l)" -gt 8 ] || echo "not ok - other documents are near-duplicates"
        kind=system
        [ $few = 1 ] || stride=$((2 * step))
    fi
    case $sweep in
    parts-*)
        inputs=large.jsonl
        stride=72
        [ -z "${FAULT_ALL:-}" ] || stride=4
        kind=kill
        ;;
    esac
    case $sweep in
    parts-kill) prepare "$parts --exclude-words 3 --dedup exact" ;;
    parts-fsync)
        prepare "$parts --exclude-words 3 --dedup exact"
        kind=system
        stride=$((2 * few))
        export INJECT_ONLY=fsync
        ;;
    parts-near)
        prepare "$parts --exclude-words 3 --dedup minhash --minhash-ngram 2 --minhash-bands 3 --minhash-rows 3"
        stride=125 # each of 256 partitions of bands ends a part
        [ -z "${FAULT_ALL:-}" ] || stride=30
        ;;
    esac
    problems=0
    spare='*/task-*.status' # advice for --status; the last one is removed with its folder
    number=$((1 + commit % stride))
    count=0
    while [ $problems -lt 5 ]; do
        rm -rf d
        mkdir d
        attempt_fault || break
        count=$((count + 1))
        [ $status != 0 ] || whole || bad "exit 0, but the output is wrong"
        [ ! -e d/new ] || [ -e $listed ] || bad "shards without their list"
        next_process
        whole only || bad "the next process leaves another output: $(ls d | tr '\n' ' ')"
        number=$((number + stride))
    done
    [ $count -gt 5 ] || bad "only $count calls"
    [ $problems = 0 ] && echo "ok - $sweep: $count calls" || echo "not ok - $sweep"
done
rm -rf d ref
