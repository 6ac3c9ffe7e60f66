#!/bin/sh
# test_reading.sh: faults under opening, next(), verify, info and show; common.sh says what is looked at.
. tests/fault/common.sh

# ---- open and next, of a shard of few pages: each page of a mapping is a call ----
# Sometimes a failure makes the reading merely slower (a hint, a probe of the machine): then the rows are right too.
for kinds in system eintr short memory; do
    for reading in mapped pread; do
        for threads in 0 1; do
            attempt() {
                with_fault "$reader" old $reading $threads
                case $status in
                0 | 4) cmp -s out old.hash || problem "other rows than without the fault" ;;
                esac
                case $kind:$status in
                eintr:[14] | short:[14]) problem "an interrupted or short call is no failure" ;;
                esac
            }
            sweep "open and next, $reading, $threads threads" $kinds
        done
    done
done

# ---- info --seq-len: a message about memory does not name a byte of the file ----
attempt() {
    with_fault "$TOKMAP" info --seq-len 64 whole
    ! grep -q '(byte ' err || problem "lack of memory is reported with a place in the file"
}
sweep "info --seq-len 64" memory

# ---- verify, info, show ----
for command in "verify" "verify --threads 1" "info" "show --document 1"; do
    "$TOKMAP" $command whole >expected 2>/dev/null || { echo "not ok - $command without faults"; continue; }
    sed '/[0-9] *\(s\|ms\|MB\/s\|GB\/s\)\b/d' expected >expected.stable
    for kinds in system eintr short memory; do
        # Without memory info leaves out what it cannot hold and says the rest.
        [ "$kinds $command" != "memory info" ] || continue
        attempt() {
            with_fault "$TOKMAP" $command whole
            sed '/[0-9] *\(s\|ms\|MB\/s\|GB\/s\)\b/d' out >out.stable
            [ $status != 0 ] || cmp -s out.stable expected.stable || grep -q '(there is no memory for ' out ||
                problem "other output than without the fault"
            case $kind:$status in
            eintr:1 | short:1) problem "an interrupted or short call is no failure" ;;
            esac
        }
        sweep "$command" $kinds
    done
done
