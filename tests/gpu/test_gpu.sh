#!/bin/sh
# SPDX-License-Identifier: MIT
# test_gpu.sh: the tests of the device path on a real GPU; `make test-gpu` runs them. In a tree that is built (make
# harness) it can also be run alone, without make, network, or root: sh tests/gpu/test_gpu.sh
#
# The tests are the program that also runs on the emulated driver (tests/unit/cuda/test_device.c). Every output of every
# field is compared with that of the host, byte for byte. The driver takes the kernel's machine code where there is some
# for the GPU; a few cases are repeated with the kernel compiled from PTX, as for other GPUs, and with a driver that
# accepts neither, so that the host expands. Where compute-sanitizer is installed, a few cases are repeated under its
# memory checks. Where Python with PyTorch is installed, tests/gpu/test_gpu.py follows. Everything together ends within
# 5 minutes: the random tests stop when their share of the time is over, and say how many cases they ran.
#
# Skipped, with the reason, if TOKMAP_TEST_GPU is not set (make test-gpu sets it) or the machine has no GPU.
# TOKMAP_TEST_GPU=emulator runs the same list on the emulated driver, with fewer cases and with stand-ins for the
# frameworks of Python, and counts what would be slow.
set -u
cd "${TOP:-$(dirname "$0")/../..}" || exit 1
alone=${BUILD_DIR:-}
BUILD_DIR=${BUILD_DIR:-$(pwd)/${BUILD:-build}}
if [ -z "$alone" ]; then
    TOKMAP_TEST_GPU=${TOKMAP_TEST_GPU:-1}
    TMPDIR=$(mktemp -d) || exit 1
    export BUILD_DIR TMPDIR TOKMAP_TEST_GPU
    trap 'rm -rf "$TMPDIR"' EXIT
fi
if [ -z "${TOKMAP_TEST_GPU:-}" ]; then
    echo "the tests on a real GPU are run only by: make test-gpu"
    exit 77
fi
program=$BUILD_DIR/tests/test_device
unset TOKMAP_CUDA_DRIVER TOKMAP_CUDA_SOFTWARE CMOCKA_MESSAGE_OUTPUT
[ -x "$program" ] || { echo "test_device has not been built: make harness; it needs cmocka" && exit 77; }
few=100 many=1000
begin=$(date +%s)
# left SECONDS: prints how many seconds of the 5 minutes are not over, except the last SECONDS.
left() {
    rest=$((begin + 285 - $1 - $(date +%s)))
    [ $rest -gt 0 ] || rest=1
    echo $rest
}
if [ "$TOKMAP_TEST_GPU" = emulator ]; then
    export TOKMAP_CUDA_DRIVER="$BUILD_DIR/tests/cuda_software/libcuda.so.1" TOKMAP_CUDA_SOFTWARE="report=$TMPDIR/report"
    few=10 many=40
fi
passed=0 failed=0 skipped=0
# result STATUS NAME LOG: prints one line. STATUS 77: skipped.
result() {
    case $1 in
    0) passed=$((passed + 1)) && echo "ok - $2" ;;
    77) skipped=$((skipped + 1)) && echo "ok - $2 # SKIP $(tail -n 1 "$3")" ;;
    *) failed=$((failed + 1)) && tail -n 40 "$3" && echo "not ok - $2" ;;
    esac
}
cases_of() { sed -n 's/.*\(^\| \)\([0-9]* random cases\).*/\2/p' "$1" | tail -n 1; }

"$program" 'a_missing_device*' >"$TMPDIR/first" 2>&1
case $? in
77) tail -n 1 "$TMPDIR/first" && exit 77 ;;
0) ;;
*) cat "$TMPDIR/first" && exit 1 ;;
esac
# Few cases first, so that what is wrong everywhere shows at once.
for cases in $few $many; do
    seconds=15
    [ $cases = $few ] || seconds=45
    DEVICE_CASES=$cases DEVICE_SECONDS=$seconds timeout -k 5 90 "$program" >"$TMPDIR/all" 2>&1
    result $? "$(cases_of "$TMPDIR/all") on the device" "$TMPDIR/all"
done
# The variables are the driver's own.
DEVICE_CASES=$few DEVICE_SECONDS=40 CUDA_FORCE_PTX_JIT=1 CUDA_CACHE_DISABLE=1 \
    timeout -k 5 90 "$program" 'every_batch*' >"$TMPDIR/ptx" 2>&1
result $? "$(cases_of "$TMPDIR/ptx") with the kernel compiled from PTX" "$TMPDIR/ptx"
DEVICE_CASES=$few DEVICE_SECONDS=40 CUDA_FORCE_PTX_JIT=1 CUDA_DISABLE_PTX_JIT=1 \
    timeout -k 5 90 "$program" 'without_the_kernel*' >"$TMPDIR/host" 2>&1
result $? "$(cases_of "$TMPDIR/host") expanded by the host" "$TMPDIR/host"
PATH=$PATH:/usr/local/cuda/bin
# A test gives ordinary memory as an output, and the driver's answer is an error on purpose: memcheck would report it.
for tool in 'memcheck --report-api-errors no' initcheck; do
    name=${tool%% *}
    echo "compute-sanitizer is not installed, or no GPU is used" >"$TMPDIR/$name"
    status=77
    if command -v compute-sanitizer >/dev/null && [ "$TOKMAP_TEST_GPU" != emulator ]; then
        DEVICE_CASES=15 DEVICE_SECONDS=15 timeout -k 5 "$(left 100)" \
            compute-sanitizer --tool $tool --error-exitcode 9 "$program" >"$TMPDIR/$name" 2>&1
        status=$?
    fi
    result $status "$name finds nothing" "$TMPDIR/$name"
done
if [ "$TOKMAP_TEST_GPU" = emulator ]; then
    sort -u "$TMPDIR/report" | grep '^contexts_made' >"$TMPDIR/made"
    [ "$(cat "$TMPDIR/made")" = 'contexts_made 1' ]
    result $? "a program makes one context" "$TMPDIR/made"
fi
[ "$TOKMAP_TEST_GPU" != emulator ] || export TOKMAP_TEST_STAND_INS=1 TOKMAP_CUDA_SOFTWARE=lazy
PYTHONPATH=$(pwd)/src/python TOKMAP_LIBRARY=$BUILD_DIR/lib/libtokmap.so.0 timeout -k 5 "$(left 0)" \
    "${PYTHON:-python3}" tests/gpu/test_gpu.py >"$TMPDIR/python" 2>&1
status=$?
cat "$TMPDIR/python"
result $status "Python on the device" "$TMPDIR/python"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
