#!/bin/sh
# SPDX-License-Identifier: MIT
# aarch64.sh [--all]: builds the library, the commands and the unit tests for aarch64 in build/aarch64, and runs the
# unit tests under qemu-aarch64, each for at most TEST_SECONDS (300). `.ci/run aarch64` calls it. The last line is
# "N passed, N failed, N skipped"; if the tools cannot be installed, everything is one skipped test, with the reason.
# With --all, unit tests that are unsuitable for qemu run, too. aarch64_count.sh then counts instructions.
#
# apt installs the cross compiler and qemu, as root or with sudo. arm64_packages.sh unpacks the aarch64 libraries.
set -u
LC_ALL=C
export LC_ALL
BUILD=${BUILD:-build}/aarch64
mkdir -p "$BUILD" || exit 2
folder=$(cd "$BUILD" && pwd)
export BUILD BUILD_DIR="$folder" TOP="$(pwd)"
log=$folder/apt.log
: >"$log"
skip() {
    echo "skipped aarch64: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

. tests/support/arm64_packages.sh
why=$(arm64_tools "$log") || skip "$why"
why=$(arm64_libraries "$folder" "$log") || skip "${why:-the aarch64 libraries could not be unpacked}"
root=$folder/root/usr
libraries=$root/lib/aarch64-linux-gnu

# left_out NAME: prints why a unit test does not run here: qemu-user does not behave like a kernel, or the test would
# take minutes and reveal nothing about aarch64.
left_out() {
    case $1 in
    test_os) echo "qemu-user does not support MADV_POPULATE_READ and does not report that a program could not be started" ;;
    test_pace) echo "it needs calls that return within microseconds" ;;
    test_loader_faults | test_mask_faults | test_slow_reads) echo "qemu-user cannot fork a program with threads" ;;
    test_dataset_large | test_foreign_large | test_order_quality | test_permutation) echo "too slow under qemu" ;;
    test_conformance) echo "runs Python" ;;
    test_pack_memory) echo "it would measure the memory of qemu and its translated code" ;;
    test_vocabulary_memory) echo "it takes a minute, and counts bytes that are the same on every machine" ;;
    test_worst_cases | test_hostile_vocabularies)
        echo "it takes a minute, and looks for algorithms that are slow on every machine" ;;
    test_merge_journal | test_pack_journal | test_pack_left | test_pack_continued | test_stage_parts | test_shuffle_cut)
        echo "it takes a minute, and works on files as test_pack and test_tasks do" ;;
    test_columns | test_cuts | test_expand | test_finish | test_format_corrupt | test_load_threads | \
        test_loader_reload | test_mask | test_minhash | test_parquet_codec | test_resume_frames | test_sealed | \
        test_shuffle | test_train)
        echo "it takes a minute, and what it runs has nothing of its own for aarch64" ;;
    test_device | test_device_driver | test_device_errors | test_device_software)
        echo "the software driver is not built here, and its tests fork a program with threads" ;;
    *) return 1 ;;
    esac
}

if [ "${1-}" = --all ]; then left_out() { return 1; }; fi
skipped=0
list=
for source in tests/unit/*/test_*.c; do
    name=$(basename "$source" .c)
    if why=$(left_out "$name"); then
        echo "skipped $name: $why"
        skipped=$((skipped + 1))
    else
        list="$list $name"
    fi
done

jobs=$(nproc 2>/dev/null || echo 2)
if ! ${MAKE:-make} --no-print-directory -j"$jobs" CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ \
    AR=aarch64-linux-gnu-ar W=1 CFLAGS="${CFLAGS:--O2}" CPPFLAGS="-isystem $root/include" \
    LDFLAGS="-L$libraries -Wl,--disable-new-dtags,-rpath,$libraries -Wl,-rpath-link,$libraries" \
    UNITS="$list" lib tools units "$BUILD/tests/consumer"; then
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi

# If the reference data exists, ids are compared on NEON, too: all strings, and an eighth of the files. Data that a
# native build has already unpacked is used from there.
native=$(dirname "$folder")/reference_data
if [ -z "${TOKMAP_DATA-}" ] && [ -e "$native/complete" ]; then
    export TOKMAP_DATA="$native"
fi

mkdir -p "$folder/logs" "$folder/tmp"
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu TMPDIR="$folder/tmp" CMOCKA_MESSAGE_OUTPUT=TAP TEST_SHARE=8
printf '%s\n' $list | xargs -P "$jobs" -I{} sh -c \
    'timeout -k 5 "${TEST_SECONDS:-300}" qemu-aarch64 "$BUILD_DIR/tests/$1" >"$BUILD_DIR/logs/$1" 2>&1 </dev/null; echo $? >"$BUILD_DIR/logs/$1.rc"' \
    one {}
passed=0 failed=0
for name in $list; do
    status=$(cat "$folder/logs/$name.rc")
    p=$(grep -c '^ok ' "$folder/logs/$name")
    s=$(grep -c '^\(not \)\{0,1\}ok .*# SKIP' "$folder/logs/$name")
    f=$(grep '^not ok ' "$folder/logs/$name" | grep -civ '# SKIP')
    if [ "$status" = 77 ]; then
        s=$((s + 1))
    elif [ "$status" != 0 ] && [ "$f" = 0 ]; then
        f=1
    fi
    [ "$s" = 0 ] || echo "skipped $name: $s of its tests: $(grep -v '^[0-9#]' "$folder/logs/$name" | grep -v '^ok\|^not ok' | head -n 1)"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$f" != 0 ]; then
        echo "FAILED $name (exit $status)"
        tail -n 20 "$folder/logs/$name" | sed 's/^/    /'
    fi
done
sh tests/support/aarch64_count.sh >"$folder/logs/count" 2>&1
cat "$folder/logs/count"
s=$(grep -c '^ok .*# SKIP' "$folder/logs/count")
passed=$((passed + $(grep -c '^ok ' "$folder/logs/count") - s)) skipped=$((skipped + s))
failed=$((failed + $(grep -c '^not ok ' "$folder/logs/count")))
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
