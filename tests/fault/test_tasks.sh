#!/bin/sh
# SPDX-License-Identifier: MIT
# test_tasks.sh: kill -9 in place of calls of `tokmap pack --task`, and calls failing once. The next process with the
# same command ends with the bytes of undisturbed work, or finds that the output is complete. It takes every 7th call
# that changes files to be killed at, every 31st call to fail, every third open, and every second fstat and fsync. The
# commit chooses which ones; FAULT_ALL=1 takes all calls. common.sh prepares the inputs.
. tests/fault/common.sh

head -n 40 docs.jsonl | awk '{ print (NR % 6 == 4 ? "x" : "") $0 }' >few.jsonl
head -n 3 docs.jsonl >less.jsonl
options="-q --threads 1 --unit-bytes 700 --shard-tokens 400 --on-error skip --checkpoint-seconds 0.001"
inputs="few.jsonl less.jsonl"
mkdir ref d
"$TOKMAP" pack $options --skipped-list ref/list -o ref/new $inputs 2>err || cat err
wanted=$(ls ref)
whole() {
    [ -z "${1:-}" ] || [ "$(ls d)" = "$wanted" ] || return 1
    for file in ref/*; do cmp -s "$file" "d/${file#ref/}" || return 1; done
}
"$TOKMAP" pack $options -o without few.jsonl 2>err || cat err
# A whole file that cannot be opened or looked at is left out: the list says so, and the tokens are those of the others.
left_out() {
    grep -q '"path": "less.jsonl", .*"left_out": "file", "class": "unreadable"' d/list || return 1
    for file in without*.bin; do cmp -s "$file" "d/new${file#without}" || return 1; done
}
spare='*/task-*.status' # advice for --status, which the next write of it repairs
attempt="$TOKMAP pack $options --skipped-list d/list --task 0/1 -o d/new $inputs"
for sweep in kill system open fstat fsync; do
    kind=$sweep
    unset INJECT_ONLY
    case $sweep in
    kill) stride=7 ;;
    system) stride=31 ;;
    # More of them: inputs are opened for several purposes, and a record must not outlive its shards.
    open) stride=3 ;;
    fstat | fsync) stride=2 ;;
    esac
    case $sweep in
    open | fstat | fsync)
        kind=system
        export INJECT_ONLY=$sweep
        ;;
    esac
    [ -z "${FAULT_ALL:-}" ] || stride=1
    problems=0
    number=$((1 + commit % stride))
    count=0
    unreadable=0
    while [ $problems -lt 5 ]; do
        rm -rf d
        mkdir d
        attempt_fault || break
        count=$((count + 1))
        if [ $kind:$status = system:0 ] && left_out; then
            unreadable=$((unreadable + 1))
            number=$((number + stride))
            continue
        fi
        [ $status != 0 ] || whole || bad "exit 0, but the output is wrong"
        next_process
        whole only || bad "the next process leaves another output: $(ls d | tr '\n' ' ')"
        number=$((number + stride))
    done
    [ $((unreadable * 4)) -lt $count ] || bad "$unreadable times a file was left out"
    [ $count -gt 10 ] || bad "only $count calls"
    [ $problems = 0 ] && echo "ok - $sweep: $count calls" || echo "not ok - $sweep"
done

# Memory is refused at the end, once: no folder stays beside the complete output unless the command says so.
unset INJECT_ONLY
scenario='the end of tasks' kind=memory problems=0 count=0
rm -rf d
mkdir d
attempt="$TOKMAP pack ${options%0.001}600 --skipped-list d/list --task 0/1 -o d/new $inputs" # nothing depends on time
count_calls $attempt
number=$((calls - 19))
while [ $problems -lt 5 ]; do
    rm -rf d
    mkdir d
    attempt_fault || break
    count=$((count + 1))
    [ $status != 0 ] || whole only || bad "exit 0, and the folder has $(ls d | tr '\n' ' ')"
    number=$((number + 1))
done
[ $count -gt 10 ] || bad "only $count calls"
[ $problems = 0 ] && echo "ok - $scenario, $kind: $count allocations" || echo "not ok - $scenario, $kind"
rm -rf d ref without*
