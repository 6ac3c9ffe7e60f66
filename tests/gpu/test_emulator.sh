#!/bin/sh
# SPDX-License-Identifier: MIT
# test_emulator.sh: the list of tests that a real GPU gets (test_gpu.sh), on the emulated driver, so that it is known to
# run before a GPU is there. The emulated driver also counts what is slow on a real one.
set -u
[ -e "$BUILD_DIR/tests/cuda_software/libcuda.so.1" ] || { echo "the emulated driver has not been built" && exit 77; }
export TOKMAP_TEST_GPU=emulator
exec sh tests/gpu/test_gpu.sh
