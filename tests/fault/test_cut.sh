#!/bin/sh
# SPDX-License-Identifier: MIT
# test_cut.sh: kill -9 in place of calls of the cut of `tokmap pack --task --shuffle`, which saves its work every
# millisecond, and writes, syncs, and renames failing once. The next process with the same command ends with the bytes
# of no tasks. All units are sorted before. It takes every 5th call that changes files to be killed at, and every 5th
# write; the commit chooses which. It takes all syncs and renames: how many parts there are depends on the machine, and
# on a fast one, which makes none, a cut has one or two of these. FAULT_ALL=1 takes all calls. common.sh prepares the
# inputs.
. tests/fault/common.sh

awk 'BEGIN { for (i = 0; i < 9000; i++) print "{\"text\": \"" i * 7919 % 10007 "\"}" }' >many.jsonl
options='-q --threads 1 --shard-tokens 6000 --shuffle 5 --shuffle-memory 4096 --split a=0.7,b=0.3'
tasks="$options --unit-bytes 80K --checkpoint-seconds 0.001 --wait 0"
mkdir ref d
"$TOKMAP" pack $options -o ref/new many.jsonl 2>err || { cat err; exit 1; }
"$TOKMAP" pack $tasks --task 0/2 -o d/new many.jsonl 2>err
mkdir d/new.work/cuts-000000.partial # the cut fails
"$TOKMAP" pack $tasks --task 1/2 -o d/new many.jsonl 2>err
grep -q 'cuts-000000.partial' err || { cat err; echo "not ok - the units cannot be sorted alone"; exit 1; }
rmdir d/new.work/cuts-000000.partial
mv d sorted
attempt="$TOKMAP pack $tasks --task 0/1 -o d/new many.jsonl"

# Whether the cut has begun, or another stage.
begun() { [ -n "$(find d/new.work -name 'cuts-*' 2>/dev/null)" ] || [ -e d/new.a ]; }
# Goes on in large steps to the first call of the cut, or less than a step before it.
to_cut() {
    number=1
    while :; do
        rm -rf d
        cp -R sorted d
        attempt_fault || break
        begun && break
        number=$((number + stride))
    done
    number=$((number - stride + 1))
    [ $number -gt 0 ] || number=1
}

for sweep in kill pwrite fsync rename; do
    kind=$sweep
    stride=5
    unset INJECT_ONLY
    if [ $sweep != kill ]; then
        export INJECT_ONLY=$sweep
        kind=system
    fi
    problems=0
    spare='*/task-*.status' # advice for --status
    to_cut
    case ${FAULT_ALL:-}$sweep in
    kill | pwrite) number=$((number + commit % stride)) ;;
    *) stride=1 ;;
    esac
    count=0
    parts=0
    over=0
    while [ $problems -lt 5 ] && [ $over -lt 3 ]; do
        rm -rf d
        cp -R sorted d
        attempt_fault || break
        count=$((count + 1))
        [ ! -e d/new.work/cuts-000000.part-000000 ] || parts=$((parts + 1))
        [ ! -e d/new.work/cuts-000000 ] || over=$((over + 1))
        if [ $status = 0 ]; then
            diff -r ref d >differs || bad "exit 0, but the output is wrong"
        else
            $attempt >out 2>err || bad "the next process fails"
            diff -r ref d >differs || bad "the next process leaves another output: $(head -n 3 differs | tr '\n' ' ')"
        fi
        number=$((number + stride))
    done
    [ $count -gt $over ] || bad "no call of the cut"
    [ $problems = 0 ] && echo "ok - $sweep: $count calls, $parts with parts left" || echo "not ok - $sweep"
done
rm -rf d ref sorted
