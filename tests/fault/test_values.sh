#!/bin/sh
# SPDX-License-Identifier: MIT
# test_values.sh: faults while a program writes and finishes values. Whatever fails, readers see no values or all of
# them, and the next process, which puts them again, ends the work. common.sh lists the checks.
. tests/fault/common.sh
program=$BUILD_DIR/tests/fault_values

cp whole.bin web.bin
cp whole.tmx web.tmx
clean() {
    rm -rf web.*values* a.values.notes
}
"$program" web 2>err || { cat err; echo "not ok - values without faults"; exit 1; }
for array in a b; do
    tail -c +4097 web.$array.values >$array.body
done

# same_values WHEN: the values that have their name are sound and complete.
same_values() {
    for array in a b; do
        if [ -e web.$array.values ]; then
            tail -c +4097 web.$array.values | cmp -s - $array.body || bad "the values $array $1 are wrong"
        elif [ "$1" = "of the next process" ]; then
            bad "the values $array are missing"
        fi
    done
}

attempt="$program web"
for kind in system eintr short memory kill; do
    problems=0
    clean
    count_calls $attempt
    taken=0
    while [ $problems -lt 5 ]; do
        clean
        attempt_fault || break
        taken=$((taken + 1))
        same_values "after the fault"
        [ $status != 0 ] || [ -e web.b.values ] || bad "it exited with 0, but the values are missing"
        next_process
        same_values "of the next process"
        [ $again != 0 ] || "$TOKMAP" verify -q web >out 2>&1 || bad "the values are damaged"
        ls web.*partial* >/dev/null 2>&1 && bad "a partial file is left"
        next_call
    done
    [ $taken -gt 0 ] || bad "no call was made to fail"
    [ $problems = 0 ] && echo "ok - $kind: $taken of $calls calls" || { echo "not ok - $kind"; failed=1; }
done

# What the power may cut: a note is synced after both files, a file gets its name after its sync, and notes are removed
# after the names have reached the folder.
clean
INJECT_LOG=log LD_PRELOAD=$inject "$program" web || echo "not ok - values with a log"
awk -F '\t' -v folder="${work##*/}" '
    $1 == "fsync" { name = $2; sub(".*/", "", name); synced[name] = NR }
    $1 == "fsync" && /notes\/.*-/ {
        if (synced["web.a.values.partial"] <= noted || synced["web.b.values.partial"] <= noted) print "a note comes early"
        noted = NR; notes++
    }
    $1 == "rename" && $3 ~ /values$/ { if (synced[$2] <= noted) print $3 " is not synced"; renamed = NR; names++ }
    $1 == "unlink" && /notes\/.*-/ { if (synced[folder] < renamed) print "a note is removed early"; removed++ }
    END { if (notes < 2 || names != 2 || removed != 1) print "the log lacks calls" }' log >found
[ ! -s found ] && echo "ok - the order of syncs and names" || { cat found; echo "not ok - the order of syncs and names"; failed=1; }
exit ${failed:-0}
