#!/bin/sh
# test_pack.sh: faults during `tokmap pack`. common.sh lists the checks.
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
[ -n "$jsonl" ] || echo "ok - pack of JSONL # SKIP this build reads no JSONL"
