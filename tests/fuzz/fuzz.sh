#!/bin/sh
# SPDX-License-Identifier: MIT
# fuzz.sh: fuzzes every harness for FUZZ_SECONDS with libFuzzer and the address and undefined behavior sanitizers. If
# clang or its runtime is missing, the seeded mutations of driver.c are used instead. `make fuzz` runs this script. With
# FUZZ_SECONDS=0 the harnesses are only built, for `make torture`, which gives them a share of its time.
#
# It starts from tests/fuzz/corpus/NAME and stores new inputs in build/fuzz/corpus/NAME. An input that kills a harness
# is saved as build/fuzz/crash-*: commit it to tests/fuzz/corpus together with the fix. The last line is
# "N passed, N failed, N skipped".
set -u
LC_ALL=C
export LC_ALL
BUILD=${BUILD:-build}
MAKE=${MAKE:-make}
seconds=${FUZZ_SECONDS:-60}
folder=$BUILD/fuzz
mkdir -p "$folder" || exit 2
TMPDIR=$folder
export TMPDIR
rm -f "$folder"/crash-* "$folder"/leak-* "$folder"/timeout-* "$folder"/oom-* "$folder"/*.log

clang=${CLANG:-$(command -v clang || ls /usr/bin/clang-[0-9]* 2>/dev/null | sort -V | tail -n 1)}
probe=$folder/probe
printf '#include <stdint.h>\n#include <stddef.h>\nint LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);\n%s\n' \
    'int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n) { return d == NULL && n; }' >"$probe.c"
if [ -n "$clang" ] && $clang -fsanitize=fuzzer,address "$probe.c" -o "$probe" 2>/dev/null; then
    engine=libFuzzer
    $MAKE -j"$(nproc 2>/dev/null || echo 2)" BUILD="$folder" CC="$clang" \
        SANITIZE=fuzzer-no-link,address,undefined ENGINE=-fsanitize=fuzzer fuzzers || exit 2
else
    engine="seeded mutation (no clang with libFuzzer found)"
    $MAKE -j"$(nproc 2>/dev/null || echo 2)" BUILD="$folder" SANITIZE=address,undefined fuzzers || exit 2
fi
if [ "$seconds" = 0 ]; then
    echo "built for $engine in $folder/tests"
    exit 0
fi
echo "fuzzing with $engine, $seconds s each"

fuzz_one() {
    name=$1
    corpus=tests/fuzz/corpus/$name
    found=$folder/corpus/$name
    mkdir -p "$found"
    [ -d "$corpus" ] || corpus=
    if [ "$engine" = libFuzzer ]; then
        timeout -k 10 $((seconds + 120)) "$folder/tests/$name" -max_total_time="$seconds" -rss_limit_mb=1500 \
            -timeout=20 -max_len=65536 -print_final_stats=1 -artifact_prefix="$folder/crash-$name-" "$found" $corpus
    else
        timeout -k 10 $((seconds + 120)) "$folder/tests/$name" -seconds="$seconds" -seed="$(date +%s)" "$found" $corpus
    fi >"$folder/$name.log" 2>&1 </dev/null
    status=$?
    if [ $status = 0 ]; then
        echo "ok $name: $(grep -E 'number_of_executed_units|replayed' "$folder/$name.log" | sed 's/stat:://')"
    else
        tail -n 40 "$folder/$name.log" | sed 's/^/    /'
        echo "not ok $name (exit $status; log $folder/$name.log)"
    fi >"$folder/$name.result"
}

running=0
for source in tests/fuzz/fuzz_*.c; do
    [ -f "$source" ] || continue
    fuzz_one "$(basename "$source" .c)" &
    running=$((running + 1))
    [ $((running % $(nproc 2>/dev/null || echo 2))) != 0 ] || wait
done
wait
results=$(cat "$folder"/fuzz_*.result 2>/dev/null)
rm -f "$folder"/fuzz_*.result
echo "$results"
echo "$results" | awk '/^ok / { p++ } /^not ok / { f++ }
    END { print p + 0 " passed, " f + 0 " failed, 0 skipped"; exit f > 0 }'
