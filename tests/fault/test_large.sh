#!/bin/sh
# SPDX-License-Identifier: MIT
# test_large.sh: each fsync of a command with large outputs fails once, also those that a thread calls while the file
# is still being written (src/format/write_behind.h). The kernel reports a failure to store to one fsync only, so the
# command must remember it: it ends with 1 and a message, and no shard gets its name before all of it is stored. Files
# of other formats come after the shard, so with them a complete shard may have its name.
. tests/fault/common.sh

awk 'BEGIN { srand(3); for (i = 0; i < 400000; i++) print rand() rand() rand() rand() rand() rand() i }' >large.txt
"$TOKMAP" pack -q -t bytes -o whole_large large.txt || echo "not ok - pack without faults"
kind=system
export INJECT_ONLY=fsync
# every_sync SCENARIO OPTION...: fails unless a large text makes the command call fsync more often than a short one.
every_sync() {
    scenario=$1 problems=0 number=1
    shift
    attempt="$TOKMAP pack -q -t bytes $* -o new"
    rm -rf new*
    count_calls $attempt in/short.txt
    few=$calls
    attempt="$attempt large.txt"
    while [ $problems -lt 5 ]; do
        rm -rf new*
        attempt_fault || break
        [ $status = 1 ] || grep -qs gone report.gone || bad "the failure of an fsync does not end the command with 1"
        if [ -e new.tmx ] && ! grep -q 'the shard is complete, but a power failure could lose it' err; then
            case $attempt in
            *--also*) is_shard new whole_large || bad "the shard is incomplete" ;;
            *) bad "a shard has its name" ;;
            esac
        fi
        number=$((number + 1))
    done
    [ $number -gt $((few + 1)) ] || bad "no thread has called fsync"
    if [ $problems = 0 ]; then echo "ok - $scenario: each of $((number - 1)) calls of fsync fails once"
    else echo "not ok - $scenario"; fi
}
every_sync "a large shard" --threads 1
every_sync "a large shard, two threads" --threads 2
export INJECT_GONE=new.work # the folder of this work: when it is removed, all is stored
every_sync "a large file of another format" --also megatron
