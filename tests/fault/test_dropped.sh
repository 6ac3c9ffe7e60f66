#!/bin/sh
# SPDX-License-Identifier: MIT
# test_dropped.sh: `tokmap pack --dedup --exclude-ngrams` with stages: kill -9 in place of calls, and calls failing
# once; common.sh says which ones. The exit status is right, a list belongs to a complete shard or is the old one, and
# the same command then succeeds and leaves only the shard and its list. common.sh prepares the inputs.
. tests/fault/common.sh

[ -n "$jsonl" ] || { echo "ok - pack --dedup # SKIP this build reads no JSONL"; exit 0; }
head -n 14 docs.jsonl >few.jsonl
head -n 13 docs.jsonl >>few.jsonl
echo 'document 12 é with' >words.txt
mkdir d
options='-q --threads 1 --dedup exact --dedup-memory 0 --exclude-ngrams words.txt --exclude-words 3'
"$TOKMAP" pack $options -o wanted few.jsonl 2>err || cat err
[ "$("$TOKMAP" show -q --dropped wanted | wc -l)" -eq 14 ] || echo "not ok - other documents are dropped"
for old in '' yes; do
    for kind in kill system memory short; do
        case $old:$kind in yes:memory | yes:short) continue ;; esac
        problems=0
        attempt="$TOKMAP pack $options --force -o d/new few.jsonl"
        mkdir -p d
        count_calls $attempt
        # Most allocations are those of the tokenizer.
        [ $kind != memory ] || [ -n "${FAULT_ALL:-}" ] || [ $calls -lt 122 ] || number=$((calls - 120))
        taken=0
        while [ $problems -lt 5 ]; do
            rm -rf d
            mkdir d
            if [ -n "$old" ]; then
                cp old.bin d/new.bin
                cp old.tmx d/new.tmx
            fi
            attempt_fault || break
            if [ $status = 0 ]; then
                is_shard d/new wanted && cmp -s d/new.dropped wanted.dropped || bad "exit 0, and the output is wrong"
            fi
            if [ $status = 1 ] && [ -e d/new.dropped ] && ! is_shard d/new wanted; then
                bad "a list without its shard"
            fi
            if [ -e d/new.dropped ]; then
                "$TOKMAP" show -q --dropped d/new >out 2>err2 || bad "the list is damaged"
            fi
            if [ $status = 1 ] && [ -e d/new.dropped.partial ]; then
                case $(cat report) in
                unlink* | fstat | lstat) ;;
                *) bad "a partial list is left" ;;
                esac
            fi
            $attempt >out 2>err || bad "the next writer fails"
            is_shard d/new wanted && cmp -s d/new.dropped wanted.dropped || bad "the next writer's output is wrong"
            [ "$(ls d | tr '\n' ' ')" = 'new.bin new.dropped new.tmx ' ] || bad "files are left: $(ls d | tr '\n' ' ')"
            next_call
            taken=$((taken + 1))
        done
        if [ $problems = 0 ]; then
            echo "ok - pack --dedup${old:+ over a shard}, $kind: $taken of $calls faults"
        else
            echo "not ok - pack --dedup${old:+ over a shard}, $kind"
        fi
    done
done
