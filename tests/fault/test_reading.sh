#!/bin/sh
# SPDX-License-Identifier: MIT
# test_reading.sh: faults during opening, next(), verify, info, and show. common.sh lists the checks.
. tests/fault/common.sh

# ---- open and next, on a shard of few pages, because populating each page of a mapping is a call ----
# Some failures only make the reading slower (hints, questions about the machine). The rows must be right then too.
for kinds in system eintr short memory; do
    for reading in mapped pread; do
        for threads in 0 1; do
            attempt() {
                with_fault "$reader" old $reading $threads
                case $status in
                0 | 4) cmp -s out old.hash || problem "the rows differ from those without the fault" ;;
                esac
                case $kind:$status in
                eintr:[14] | short:[14]) problem "an interrupted or short call is not a failure" ;;
                esac
            }
            sweep "open and next, $reading, $threads threads" $kinds
        done
    done
done

# ---- info --seq-len: a message about memory must not name a byte of the file ----
attempt() {
    with_fault "$TOKMAP" info --seq-len 64 whole
    ! grep -q '(byte ' err || problem "lack of memory is reported with an offset in the file"
}
sweep "info --seq-len 64" memory

# ---- verify, info, show, audit: what a command cannot print, it says, and it fails ----
mkdir both
cp old.tmx both/a.tmx && cp old.bin both/a.bin && cp whole.tmx both/b.tmx && cp whole.bin both/b.bin
for command in "verify" "verify --threads 1" "info" "show --document 1"; do
    "$TOKMAP" $command whole >expected 2>/dev/null || { echo "not ok - $command without faults"; continue; }
    sed '/[0-9] *\(s\|ms\|MB\/s\|GB\/s\)\b/d' expected >expected.stable
    for kinds in system eintr short memory; do
        attempt() {
            with_fault "$TOKMAP" $command whole
            sed '/[0-9] *\(s\|ms\|MB\/s\|GB\/s\)\b/d' out >out.stable
            [ $status != 0 ] || cmp -s out.stable expected.stable ||
                problem "the output differs from that without the fault"
            ! grep -q 'whole/' err || problem "the error names files that the shard does not have"
            case $kind:$status in
            eintr:1 | short:1) problem "an interrupted or short call is not a failure" ;;
            esac
        }
        sweep "$command" $kinds
    done
done
for command in "info both" "audit both --seq-len 64 --batch 4 --steps 3 --ranks 1"; do
    "$TOKMAP" $command >expected 2>err || { cat err; echo "not ok - $command without faults"; continue; }
    sed '/[0-9] *\(s\|ms\|MB\/s\|GB\/s\)\b/d' expected >expected.stable
    attempt() {
        with_fault "$TOKMAP" $command
        sed '/[0-9] *\(s\|ms\|MB\/s\|GB\/s\)\b/d' out >out.stable
        [ $status != 0 ] || cmp -s out.stable expected.stable ||
            problem "the output differs from that without the fault"
    }
    sweep "$command" memory
done

# ---- a pattern: a file that matches and cannot be looked at is never left out ----
cp old.bin f1.bin && cp whole.bin f2.bin
"$TOKMAP" info --json 'raw:f?.bin,width=2,eod=256' >expected
attempt() {
    with_fault "$TOKMAP" info --json 'raw:f?.bin,width=2,eod=256'
    [ $status != 0 ] || cmp -s out expected || problem "the output differs from that without the fault"
}
export INJECT_ONLY=stat
sweep "info of a pattern" system
unset INJECT_ONLY
