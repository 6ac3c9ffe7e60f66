#!/bin/sh
# test_gpu.sh: the tests of the device path on a real GPU; `make test-gpu` runs them. They are the program that also
# runs on the emulated driver (tests/unit/cuda/test_device.c). The driver compiles the kernel's PTX for the GPU, and
# every output of every field is compared with that of the host, byte for byte. Where compute-sanitizer is installed, a
# few cases are repeated under its memory checks.
#
# Skipped, with the reason, if TOKMAP_TEST_GPU is not set (make test-gpu sets it) or the machine has no GPU.
set -u
if [ -z "${TOKMAP_TEST_GPU:-}" ]; then
    echo "the tests on a real GPU are run only by: make test-gpu"
    exit 77
fi
program=$BUILD_DIR/tests/test_device
unset TOKMAP_CUDA_DRIVER CMOCKA_MESSAGE_OUTPUT
[ -x "$program" ] || { echo "test_device has not been built: cmocka is missing" && exit 77; }

"$program" 'a_missing_device*' >"$TMPDIR/first" 2>&1
case $? in
77) tail -n 1 "$TMPDIR/first" && exit 77 ;;
0) ;;
*) cat "$TMPDIR/first" && exit 1 ;;
esac
failed=0
for cases in 100 1000; do
    if DEVICE_CASES=$cases "$program" >"$TMPDIR/all" 2>&1; then
        echo "ok - $cases cases on the device"
    else
        tail -n 40 "$TMPDIR/all"
        echo "not ok - $cases cases on the device"
        failed=1
    fi
done
PATH=$PATH:/usr/local/cuda/bin
for tool in memcheck initcheck; do
    if ! command -v compute-sanitizer >/dev/null; then
        echo "ok - $tool # SKIP compute-sanitizer is not installed"
    elif DEVICE_CASES=15 compute-sanitizer --tool $tool --error-exitcode 9 "$program" >"$TMPDIR/$tool" 2>&1; then
        echo "ok - $tool finds nothing"
    else
        tail -n 40 "$TMPDIR/$tool"
        echo "not ok - $tool finds nothing"
        failed=1
    fi
done
exit $failed
