#!/bin/sh
# SPDX-License-Identifier: MIT
# test_shuffle.sh: kill -9 in place of calls of `tokmap pack --shuffle` in both passes, and calls failing, ended early,
# or cut short once. The shard is the old one or the shuffled one, the next pack with the same command succeeds, and no
# file is left but those of the shard. It takes the calls that common.sh samples. Where the work is saved at each border
# of batches, files may be left until then: this takes every third call that changes files to be killed at, every 5th
# allocation, and each pwrite and fsync. The commit chooses which ones; FAULT_ALL=1 takes all. common.sh prepares the
# inputs.
. tests/fault/common.sh

content() {
    "$TOKMAP" verify -q "$1" >out 2>err2 &&
        "$TOKMAP" info --json "$1" 2>err2 | grep -o '"content": "[0-9a-f]*"' | head -n 1
}
# Chunks of 4 KiB: several of them, a document that is longer than a record, and one that comes in parts.
head -n 150 docs.jsonl >few.jsonl
awk 'BEGIN { printf "{\"text\": \""; for (i = 0; i < 300; i++) printf "word %d ", i; print "\"}" }' >>few.jsonl
head -c 400000 in/long.txt >parts.txt
mkdir d
attempt="$TOKMAP pack -q --threads 1 --force --shuffle 3 --shuffle-memory 4096 -o d/new few.jsonl parts.txt"
"$TOKMAP" pack -q --shuffle 3 -o whole_shuffled few.jsonl parts.txt 2>err || { cat err; exit 1; }
$attempt 2>err || { cat err; exit 1; }
new_hash=$(content d/new)
old_hash=$(content old)
[ "$new_hash" = "$(content whole_shuffled)" ] || echo "not ok - the memory changes the shard"
begin() {
    rm -rf d
    mkdir d
    for file in old.bin old.tmx; do cp "$file" "d/new${file#old}"; done
}
# sweep_begin NAME STRIDE: a sweep of the calls of a kind, every STRIDEth of them, or of all calls of one function.
sweep_begin() {
    kind=$1
    stride=$2
    [ -z "${FAULT_ALL:-}" ] || stride=1
    unset INJECT_ONLY
    case $1 in
    pwrite | fsync | pthread_create)
        kind=system
        stride=1
        export INJECT_ONLY=$1
        ;;
    esac
    problems=0
    number=$((1 + commit % stride))
    count=0
}
for kind in kill system eintr short memory; do
    problems=0
    begin
    count_calls $attempt
    taken=0
    while [ $problems -lt 5 ]; do
        begin
        attempt_fault || break
        found=$(content d/new) || bad "cannot be read: $(cat err2)"
        [ "$found" = "$new_hash" ] || { [ "$found" = "$old_hash" ] && [ $status != 0 ]; } || bad "the wrong shard"
        if [ $kind = kill ] || [ $kind:$status = system:1 ]; then
            $attempt >out 2>err || bad "the next command fails"
            [ "$(content d/new)" = "$new_hash" ] || bad "the next command's shard is wrong"
        fi
        case $kind:$status:$(cat report) in
        system:0:unlink) ;; # the removal of an old file failed
        *) [ "$(ls -A d | tr '\n' ' ')" = 'new.bin new.tmx ' ] || bad "files are left: $(ls -A d | tr '\n' ' ')" ;;
        esac
        next_call
        taken=$((taken + 1))
    done
    [ $taken -gt 10 ] || bad "only $taken calls"
    [ $problems = 0 ] && echo "ok - $kind: $taken of $calls calls" || echo "not ok - $kind"
done
# The work is saved whenever it can be.
attempt="$attempt --checkpoint-seconds 0.001"
export INJECT_GONE=d/new.work # the sync after it is removed is the only one that may fail: nothing depends on it
for sweep in kill memory pwrite fsync; do
    sweep_begin $sweep $([ $sweep = kill ] && echo 3 || echo 5)
    saved=0
    while [ $problems -lt 5 ]; do
        begin
        attempt_fault || break
        count=$((count + 1))
        found=$(content d/new) || bad "cannot be read: $(cat err2)"
        [ "$found" = "$new_hash" ] || { [ "$found" = "$old_hash" ] && [ $status != 0 ]; } || bad "the wrong shard"
        [ ! -e d/new.work ] || saved=$((saved + 1))
        $attempt >out 2>err || bad "the next command fails"
        [ "$(content d/new)" = "$new_hash" ] || bad "the next command's shard is wrong"
        [ "$(ls -A d | tr '\n' ' ')" = 'new.bin new.tmx ' ] || bad "files are left: $(ls -A d | tr '\n' ' ')"
        number=$((number + stride))
    done
    [ $count -gt 9 ] && [ $saved -gt 2 ] || bad "only $count calls, and $saved with saved work"
    [ $problems = 0 ] && echo "ok - saved, $sweep: $count calls" || echo "not ok - saved, $sweep"
done
unset INJECT_GONE
# Two workers, a thread that writes chunks, and one that writes the shard, whose calls come in any order. Without one of
# the latter two, which cannot be started, the pack continues. This takes every third call that changes files to be
# killed at, every 10th call to fail, every 5th read or write to be cut, and each pwrite.
attempt="$TOKMAP pack -q --threads 2 --force --shuffle 3 --shuffle-memory 64Ki -o d/new few.jsonl parts.txt"
for sweep in kill system short memory pwrite pthread_create; do
    case $sweep in
    kill) sweep_begin $sweep 3 ;;
    short) sweep_begin $sweep 5 ;;
    *) sweep_begin $sweep 10 ;;
    esac
    succeeded=0
    while [ $problems -lt 5 ]; do
        begin
        attempt_fault || break
        count=$((count + 1))
        [ $status != 0 ] || succeeded=$((succeeded + 1))
        found=$(content d/new) || bad "cannot be read: $(cat err2)"
        [ "$found" = "$new_hash" ] || { [ "$found" = "$old_hash" ] && [ $status != 0 ]; } || bad "the wrong shard"
        if [ $status != 0 ]; then
            $attempt >out 2>err || bad "the next command fails"
            [ "$(content d/new)" = "$new_hash" ] || bad "the next command's shard is wrong"
        fi
        case $kind:$status:$(cat report) in
        system:0:unlink) ;; # the removal of an old file failed
        *) [ "$(ls -A d | tr '\n' ' ')" = 'new.bin new.tmx ' ] || bad "files are left: $(ls -A d | tr '\n' ' ')" ;;
        esac
        number=$((number + stride))
    done
    [ $count -gt 2 ] || bad "only $count calls"
    [ $sweep != pthread_create ] || [ $succeeded -gt 1 ] || bad "the pack needs all threads"
    [ $problems = 0 ] && echo "ok - two threads, $sweep: $count calls" || echo "not ok - two threads, $sweep"
done
rm -rf d
