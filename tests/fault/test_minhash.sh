#!/bin/sh
# SPDX-License-Identifier: MIT
# test_minhash.sh: `tokmap pack --dedup minhash`: kill -9 in place of calls, and calls failing once, as in
# test_dropped.sh. It takes every second call that changes files to be killed at, every 33rd call to fail, every
# eleventh one of the last 200 allocations, and every 22nd read or write to be cut; FAULT_ALL=1 takes all of them. The
# commit chooses which ones, so that 66 commits may cover all.
. tests/fault/common.sh

[ -n "$jsonl" ] || { echo "ok - pack --dedup minhash # SKIP this build reads no JSONL"; exit 0; }
cat >near.jsonl <<'END'
{"text": "one two three four five six seven"}
{"text": "quite other words than all of those"}
{"text": "One, two: three four FIVE six seven!"}
{"text": "short"}
{"text": "quite other words than all of those"}
END
mkdir d
options='-q --threads 1 --dedup minhash --dedup-memory 0 --minhash-bands 2'
"$TOKMAP" pack $options -o wanted near.jsonl 2>err || cat err
[ "$("$TOKMAP" show -q --dropped wanted | wc -l)" -eq 2 ] || echo "not ok - other documents are dropped"
for kind in kill system memory short; do
    stride=11
    [ $kind != kill ] || stride=2
    [ $kind != system ] || stride=33
    [ $kind != short ] || stride=22
    [ -z "${FAULT_ALL:-}" ] || stride=1
    begin=$((1 + commit % stride))
    problems=0
    number=$begin
    attempt="$TOKMAP pack $options --force -o d/new near.jsonl"
    if [ $kind = memory ]; then
        INJECT_KIND=$kind INJECT_NUMBER=1000000000 INJECT_COUNT=count LD_PRELOAD=$inject $attempt >out 2>err
        [ -n "${FAULT_ALL:-}" ] || number=$(($(cat count) - 200 + begin - 1))
        [ $number -gt 0 ] || number=$begin
    fi
    tried=0
    while [ $problems -lt 5 ]; do
        rm -rf d
        mkdir d
        attempt_fault || break
        tried=$((tried + 1))
        if [ $status = 0 ]; then
            is_shard d/new wanted && cmp -s d/new.dropped wanted.dropped || bad "exit 0, and the output is wrong"
        fi
        if [ $status = 1 ] && [ -e d/new.dropped ] && ! is_shard d/new wanted; then
            bad "a list without its shard"
        fi
        $attempt >out 2>err || bad "the next writer fails"
        is_shard d/new wanted && cmp -s d/new.dropped wanted.dropped || bad "the next writer's output is wrong"
        [ "$(ls d | tr '\n' ' ')" = 'new.bin new.dropped new.tmx ' ] || bad "files are left: $(ls d | tr '\n' ' ')"
        number=$((number + stride))
    done
    if [ $problems = 0 ] && [ $tried -gt 4 ]; then
        echo "ok - pack --dedup minhash, $kind: $tried faults"
    else
        echo "not ok - pack --dedup minhash, $kind: $tried faults"
    fi
done
