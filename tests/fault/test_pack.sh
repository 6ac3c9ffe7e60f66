#!/bin/sh
# test_pack.sh: faults during `tokmap pack`, and renames at its end that fail. common.sh lists the checks.
. tests/fault/common.sh

for kinds in system eintr short memory; do
    for threads in 1 2; do
        attempt() {
            rm -f new.*
            with_fault "$TOKMAP" pack --eod --threads $threads -o new in
            check_pack whole ""
        }
        sweep "pack, $threads threads" $kinds
    done
    if [ -n "$jsonl" ]; then
        attempt() {
            rm -f new.*
            with_fault "$TOKMAP" pack --eod --threads 2 -o new docs.jsonl
            check_pack whole_jsonl ""
        }
        sweep "pack of JSONL" $kinds
    fi
    attempt() {
        rm -f new.*
        cp old.bin new.bin
        cp old.tmx new.tmx
        with_fault "$TOKMAP" pack --eod --threads 1 --force -o new in
        check_pack whole old
    }
    sweep "pack --force over an old shard" $kinds
done
rm -f new.*
[ -n "$jsonl" ] || { echo "ok - pack of JSONL # SKIP this build reads no JSONL"; exit 0; }

# A rename that fails at the end takes nothing of the work that was saved: the same command continues it.
for i in 1 2 3 4 5 6 7 8 9 10; do cat docs.jsonl; done >many.jsonl
common='--threads 1 --checkpoint-seconds 0.001'
"$TOKMAP" pack $common -o many many.jsonl >out 2>err || cat err
attempt="$TOKMAP pack $common --force -o new many.jsonl"
kind=system
INJECT_ONLY=rename
export INJECT_ONLY
for over in nothing 'an old shard'; do
    scenario="pack over $over"
    problems=0
    seen=0
    number=1
    while
        rm -rf new.*
        [ "$over" = nothing ] || { cp old.bin new.bin && cp old.tmx new.tmx; }
        attempt_fault
    do
        number=$((number + 1))
        [ $status = 1 ] && [ -e new.work/journal ] && ! is_shard new many || continue
        [ -s new.bin.partial ] || bad "the work that was saved is gone"
        [ "$over" = nothing ] || is_shard new old || bad "the old shard has changed"
        INJECT_NUMBER=0 $attempt >out 2>err || bad "the next process fails"
        grep -q '^continued after' out || bad "the next process begins again"
        is_shard new many && [ ! -e new.bin.partial ] && [ ! -e new.work ] || bad "the next process's shard is wrong"
        seen=$((seen + 1))
    done
    [ $seen -gt 1 ] || bad "only $seen renames at the end"
    if [ $problems = 0 ]; then echo "ok - a failed rename at the end: $scenario, $seen renames"
    else echo "not ok - a failed rename at the end: $scenario"; fi
done
unset INJECT_ONLY
rm -rf new.*
