#!/bin/sh
# SPDX-License-Identifier: MIT
# test_unlocked.sh: `tokmap pack` on a file system without locks, as NFS without a lock server: every flock fails. A
# command refuses with what to do, says it once, leaves what was there as it was and nothing else, and the same command
# with locks ends with the right bytes. common.sh prepares the inputs.
. tests/fault/common.sh

kind=unlocked
sets="-q --threads 1 --unit-bytes 40000 --shard-tokens 20k"
"$TOKMAP" pack $sets -o wide docs.jsonl 2>err || cat err
"$TOKMAP" pack $sets --dedup exact -o alone docs.jsonl 2>err || cat err
"$TOKMAP" pack $sets --shuffle 3 -o mixed docs.jsonl 2>err || cat err

# state: the names below d, and their contents.
state() { find d ! -name 'task-*.status' | LC_ALL=C sort; find d -type f ! -name 'task-*.status' -exec cksum {} + | LC_ALL=C sort; }

# refused WHAT REFERENCE COMMAND...: the command is refused without locks, and then makes a file like each d/new* of the
# REFERENCE*, byte for byte. d holds what is there before.
refused() {
    what=$1 reference=$2
    shift 2
    problems=0
    state >before
    status=0
    INJECT_KIND=unlocked INJECT_ERRNO=$errno INJECT_NUMBER=1 LD_PRELOAD=$inject timeout -k 2 60 "$@" >out 2>err \
        </dev/null || status=$?
    number=1
    [ $status = 1 ] || bad "$what: it was not refused"
    grep -q 'without locks (flock).*mount this file system with locks' err || bad "$what: no advice"
    [ "$(grep -c flock err)" = 1 ] || bad "$what: the advice is not given once"
    state >after
    cmp -s before after || bad "$what: it changed $(diff before after | head -n 3 | tr '\n' ' ')"
    [ ! -e d/new.tmx ] || cmp -s d/new.bin old.bin || bad "$what: the old shard is lost"
    status=0
    "$@" >out 2>err </dev/null || status=$?
    [ $status = 0 ] || bad "$what: the next run fails"
    count=0
    for file in "$reference" "$reference"-* "$reference".[a-z]*; do
        [ -e "$file" ] || continue
        count=$((count + 1))
        cmp -s "$file" "d/new${file#"$reference"}" 2>/dev/null || [ "$file" = "$reference" ] ||
            bad "$what: the next run makes another $file"
    done
    [ $count -gt 1 ] || bad "$what: nothing was compared"
    [ ! -e d/new.work ] || bad "$what: the next run leaves its work"
    [ $problems = 0 ] && echo "ok - $what, errno $errno" || echo "not ok - $what, errno $errno"
}
fresh() { rm -rf d; mkdir d; }

# ENOLCK, EOPNOTSUPP, and ENOSYS of the kernel
for errno in 37 95 38; do
    fresh
    refused 'one shard' whole "$TOKMAP" pack -q --eod -o d/new in
    fresh
    refused 'shard set' wide "$TOKMAP" pack $sets -o d/new docs.jsonl
    fresh
    refused 'task' wide "$TOKMAP" pack $sets --task 0/1 -o d/new docs.jsonl
done
errno=37
fresh
for end in bin tmx; do cp old.$end d/new.$end; done
refused 'replaced shard' whole "$TOKMAP" pack -q --force --eod -o d/new in
fresh
refused 'shard set without duplicates' alone "$TOKMAP" pack $sets --dedup exact -o d/new docs.jsonl
fresh
refused 'shuffled shard set' mixed "$TOKMAP" pack $sets --shuffle 3 -o d/new docs.jsonl
fresh
refused 'shuffling task' mixed "$TOKMAP" pack $sets --shuffle 3 --task 0/1 -o d/new docs.jsonl
# The first task had locks, and another one has none: what the first one did stays.
fresh
"$TOKMAP" pack $sets --task 0/2 -o d/new docs.jsonl 2>err || cat err
[ -d d/new.work/unit-000000.work ] || echo "not ok - the first task did nothing"
refused 'second task' wide "$TOKMAP" pack $sets --task 1/2 -o d/new docs.jsonl
# A killed pack has left its journal.
fresh
INJECT_KIND=kill INJECT_ONLY=fsync INJECT_NUMBER=9 LD_PRELOAD=$inject "$TOKMAP" pack -q --checkpoint-seconds 0.001 \
    --eod -o d/new in >out 2>err
[ -e d/new.work/journal ] || echo "not ok - the killed pack left no journal"
refused 'pack that continues' whole "$TOKMAP" pack -q --checkpoint-seconds 0.001 --eod -o d/new in

# The locks go away at some moment of the work, each time one call later.
problems=0
count=0
number=1
scenario='locks that go away'
attempt="$TOKMAP pack $sets --dedup exact --task 0/1 -o d/new docs.jsonl"
while [ $problems -lt 5 ]; do
    fresh
    attempt_fault || break
    count=$((count + 1))
    [ $status != 0 ] || [ ! -e d/new.work ] || bad "exit 0, but the work is not complete"
    next_process
    [ "$(ls d | tr '\n' ' ')" = "$(ls alone alone[-.]* | sed 's/^alone/new/' | LC_ALL=C sort | tr '\n' ' ')" ] ||
        bad "the next process leaves $(ls d | tr '\n' ' ')"
    for file in alone-* alone.dropped; do cmp -s $file "d/new${file#alone}" || bad "another $file"; done
    number=$((number + 1))
done
[ $count -gt 10 ] || bad "only $count calls"
[ $problems = 0 ] && echo "ok - $scenario: $count calls" || echo "not ok - $scenario"
rm -rf d
