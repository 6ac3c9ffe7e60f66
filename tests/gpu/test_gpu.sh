#!/bin/sh
# test_gpu.sh: the tests of the device path on a real GPU: make test-gpu. The same program that runs on the driver in
# software (tests/unit/cuda/test_device.c): the driver compiles the kernel's PTX for the device, and every output of every field
# is compared byte for byte with the host's. Then, where compute-sanitizer is there, the same under its checks of memory.
#
# Skips, with the reason, without TOKMAP_TEST_GPU (which make test-gpu sets) and where there is no GPU.
set -u
if [ -z "${TOKMAP_TEST_GPU:-}" ]; then
    echo "a real GPU is asked for by make test-gpu only"
    exit 77
fi
program=$BUILD_DIR/tests/test_device
unset TOKMAP_CUDA_DRIVER CMOCKA_MESSAGE_OUTPUT
[ -x "$program" ] || { echo "no test_device: no cmocka" && exit 77; }

"$program" 'a_device_that_is_not_there*' >"$TMPDIR/first" 2>&1
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
        echo "ok - $tool # SKIP no compute-sanitizer"
    elif DEVICE_CASES=15 compute-sanitizer --tool $tool --error-exitcode 9 "$program" >"$TMPDIR/$tool" 2>&1; then
        echo "ok - $tool finds nothing"
    else
        tail -n 40 "$TMPDIR/$tool"
        echo "not ok - $tool finds nothing"
        failed=1
    fi
done
exit $failed
