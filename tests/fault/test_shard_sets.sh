#!/bin/sh
# SPDX-License-Identifier: MIT
# test_shard_sets.sh: kill -9 in place of calls of `tokmap pack --shard-tokens`, and calls failing once; common.sh says
# which ones. The name means the old set, the new one, or nothing; a folder with the shards is one of these datasets, or
# an error; the next pack with the same command succeeds and leaves only the files of the set. Without --force it
# succeeds, too, also if all that it has to do is to complete the names, unless there is nothing left to do. common.sh
# prepares the inputs.
. tests/fault/common.sh

content() {
    "$TOKMAP" verify -q "$1" >out 2>err2 &&
        "$TOKMAP" info --json "$1" 2>err2 | grep -o '"content": "[0-9a-f]*"' | head -n 1
}
head -n 300 docs.jsonl >few.jsonl
head -n 400 old.txt | sed 's/.*/{"text": "&"}/' >others.jsonl
mkdir d
"$TOKMAP" pack -q --shard-tokens 3000 -o sixset few.jsonl 2>err || cat err
"$TOKMAP" pack -q --shard-tokens 2000 -o oldset others.jsonl 2>err || cat err
new_hash=$(content sixset)
old_hash=$(content oldset)
[ "$(ls sixset-*.tmx | wc -l)" -ne "$(ls oldset-*.tmx | wc -l)" ] || echo "not ok - the sets have as many shards"
wanted=$(ls sixset* | sed 's/^sixset/new/')
export INJECT_GONE=d/new.work # whose removal need not be on storage: the next command removes it again
begin() {
    rm -rf d
    mkdir d
    [ -n "$old" ] || return 0
    for file in oldset*; do cp "$file" "d/new${file#oldset}"; done
    sed 's/oldset/new/' oldset >d/new
}
# The state after a command that did not succeed: a reader is not misled, and the next writer succeeds.
check() {
    if found=$(content d/new); then
        [ "$found" = "$new_hash" ] || [ -n "$old" -a "$found" = "$old_hash" ] || bad "neither old nor new"
    elif [ -n "$old" ] && [ ! -e d/new.work/naming ]; then
        bad "the old set is gone, and there is no new one"
    fi
    if "$TOKMAP" info --json d >out 2>err2; then
        found=$(grep -o '"content": "[0-9a-f]*"' out | head -n 1)
        [ "$found" = "$new_hash" ] || [ -n "$old" -a "$found" = "$old_hash" ] || bad "the folder is another dataset"
    fi
    complete=
    [ -n "$old" ] || [ ! -e d/new ] || [ -e d/new.work/journal ] || [ -e d/new.work/naming ] || complete=yes
    $attempt >out 2>err || { [ "$complete" ] && grep -q 'already exists' err; } ||
        bad "the next writer fails: $(cat err)"
    [ "$(content d/new)" = "$new_hash" ] || bad "the next writer's set is wrong"
    [ "$(ls d)" = "$wanted" ] || bad "files are left: $(ls d | tr '\n' ' ')"
}
for old in '' yes; do
    attempt="$TOKMAP pack -q --threads 1 ${old:+--force} --shard-tokens 3000 -o d/new few.jsonl"
    for kind in kill system memory short; do
        scenario="a set${old:+ over a set}"
        problems=0
        begin
        count_calls $attempt
        # Most allocations come before the end.
        [ $kind != memory ] || [ -n "${FAULT_ALL:-}" ] || [ $calls -lt 62 ] || number=$((calls - 60))
        taken=0
        while [ $problems -lt 5 ]; do
            begin
            attempt_fault || break
            if [ $status = 0 ] && [ "$(content d/new)" != "$new_hash" ]; then
                bad "exit 0, but the set is wrong"
            fi
            check
            next_call
            taken=$((taken + 1))
        done
        [ $taken -gt 10 ] || bad "only $taken calls"
        [ $problems = 0 ] && echo "ok - $scenario, $kind: $taken of $calls calls" || echo "not ok - $scenario, $kind"
    done
done
rm -rf d
