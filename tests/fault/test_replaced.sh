#!/bin/sh
# SPDX-License-Identifier: MIT
# test_replaced.sh: `tokmap pack --force` over a shard of the same size with a list of dropped documents: kill -9 in
# place of each of the last calls, and each of them failing once. After a failure the shard has its list, the old one or
# the new one, and the same command always ends with the new ones. Also: kill -9 in place of each rename, and then a
# process that fails; of one shard and of shards, with and without an old list and a new one. common.sh prepares the
# inputs.
. tests/fault/common.sh

[ -n "$jsonl" ] || { echo "ok - pack --force # SKIP this build reads no JSONL"; exit 0; }
head -n 40 docs.jsonl >few.jsonl
head -n 30 docs.jsonl >>few.jsonl
export INJECT_GONE=d/new.work # the sync after it is removed is the only one that may fail: nothing depends on it
# The saved work has the shape of a long pack's.
common='-q --threads 1 --checkpoint-seconds 0.001'
"$TOKMAP" pack $common --shuffle 3 --dedup exact -o old_one few.jsonl 2>err || cat err
for new in '--shuffle 4 --dedup exact' '--shuffle 4'; do
    inputs=few.jsonl
    [ "$new" != '--shuffle 4' ] || { inputs=docs40.jsonl && head -n 40 docs.jsonl >$inputs; }
    rm -f wanted.*
    "$TOKMAP" pack $common $new -o wanted $inputs 2>err || cat err
    attempt="$TOKMAP pack $common $new --force -o d/new $inputs"
    begin() {
        rm -rf d
        mkdir d
        for end in bin tmx dropped; do cp old_one.$end d/new.$end; done
    }
    for kind in kill system; do
        problems=0
        begin
        count_calls $attempt
        last=80
        [ $kind != kill ] || last=30 # these are fewer, because they change files
        [ -n "${FAULT_ALL:-}" ] || [ $calls -lt $((last + 10)) ] || number=$((calls - last))
        taken=0
        while [ $problems -lt 5 ]; do
            begin
            if ! attempt_fault; then # how many calls there are depends on the time, too
                [ $taken -lt 10 ] && [ $number -gt 1 ] || break
                number=$((number / 2))
                continue
            fi
            if is_shard d/new old_one; then
                [ $status != 0 ] || bad "exit 0, and the shard is the old one"
                # A kill may come between the names of the list and of the shard.
                [ $kind = kill ] || cmp -s d/new.dropped old_one.dropped || bad "the old shard has no longer its list"
            elif [ $status = 0 ]; then
                is_shard d/new wanted || bad "exit 0, and the shard is wrong"
            fi
            $attempt >out 2>err || bad "the next writer fails"
            is_shard d/new wanted || bad "the next writer's shard is wrong"
            left=$(ls d | tr '\n' ' ')
            if [ -e wanted.dropped ]; then
                cmp -s d/new.dropped wanted.dropped || bad "the next writer's list is wrong"
                left=$(echo "$left" | sed 's/new.dropped //')
            fi
            [ "$left" = 'new.bin new.tmx ' ] || bad "files are left: $left"
            next_call
            taken=$((taken + 1))
        done
        [ $taken -gt 9 ] || bad "only $taken calls"
        if [ $problems = 0 ]; then echo "ok - pack --force $new, $kind: $taken of $calls faults"
        else echo "not ok - pack --force $new, $kind"; fi
    done
done

# ---- a kill, and then a process that fails ----
unset INJECT_GONE
head -n 50 docs.jsonl >other.jsonl
head -n 20 docs.jsonl >>other.jsonl
# output_of PLACE: which of the outputs old_out and new_out, with its list, PLACE has; else "neither".
output_of() {
    for output in old_out new_out; do
        for file in $output/* $1/*; do
            name=${file##*/}
            case $name in *.work | *.partial) continue ;; esac
            cmp -s "$1/$name" "$output/$name" || continue 2
        done
        echo $output
        return
    done
    echo neither
}
for shape in '' '--shard-tokens 700' '--split train=0.5,val=0.5'; do
    for lists in 'old new' 'old none' 'none new'; do
        olds= news=
        case $lists in old*) olds='--dedup exact' ;; esac
        case $lists in *new) news='--dedup exact' ;; esac
        rm -rf old_out new_out
        mkdir old_out new_out
        "$TOKMAP" pack $common $shape $olds -o old_out/new other.jsonl 2>err || cat err
        "$TOKMAP" pack $common $shape $news -o new_out/new few.jsonl 2>err || cat err
        attempt="$TOKMAP pack $common $shape $news --force -o d/new few.jsonl"
        scenario="pack --force $shape, lists: $lists"
        kind=kill problems=0 seen=0 number=1
        export INJECT_ONLY=rename
        while
            rm -rf d
            cp -rp old_out d
            [ $problems -lt 5 ] && attempt_fault
        do
            # Either the work is continued, or other work begins. No process gets beyond its first write.
            again=
            [ $((number % 2)) = 0 ] || again=--no-resume
            INJECT_KIND=system INJECT_NUMBER=1 INJECT_ONLY=pwrite LD_PRELOAD=$inject $attempt $again \
                >out 2>err && failed= || failed=yes
            [ "$(output_of d)" != neither ] || bad "after it, neither output with its list: $(ls d | tr '\n' ' ')"
            [ -z "$failed" ] || grep -q 'cannot be written\|already exists\|the set is complete' err ||
                bad "another failure: $(cat err)"
            again=0
            INJECT_NUMBER=0 $attempt >out 2>err || again=$?
            [ $again = 0 ] || grep -q 'already exists\|the set is complete' err || bad "the next process fails: $(cat err)"
            [ "$(output_of d)" = new_out ] || bad "the next process's output is wrong: $(ls d | tr '\n' ' ')"
            [ "$(ls -A d)" = "$(ls -A new_out)" ] || bad "files are left: $(ls -A d | tr '\n' ' ')"
            seen=$((seen + 1)) number=$((number + 1))
        done
        unset INJECT_ONLY
        [ $seen -gt 4 ] || bad "only $seen renames"
        if [ $problems = 0 ]; then echo "ok - a failure after a kill: $scenario, $seen renames"
        else echo "not ok - a failure after a kill: $scenario"; fi
    done
done
rm -rf d old_out new_out
