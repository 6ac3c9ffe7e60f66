#!/bin/sh
# python.sh: the Python package on a real GPU (test_gpu.py), with the frameworks that a Python has: torch, CuPy, JAX,
# Numba, cuda.core. Tests of those that are missing are skipped, with the reason. It needs no network.
#
# $PYTHON, or the first of $TOKMAP_TORCH_PYTHON and /usr/bin/python3 that has torch, runs it. Skipped, with the reason,
# if TOKMAP_TEST_GPU is not set (make test-gpu sets it), or without Python or a GPU.
set -u
if [ -z "${TOKMAP_TEST_GPU:-}" ]; then
    echo "the tests on a real GPU are run only by: make test-gpu"
    exit 77
fi
chosen=
for candidate in "${TOKMAP_TORCH_PYTHON:-}" "${PYTHON:-python3}" /usr/bin/python3; do
    if [ -n "$candidate" ] && "$candidate" -c 'import torch' >/dev/null 2>&1; then
        chosen=$candidate
        break
    fi
done
chosen=${chosen:-${PYTHON:-python3}}
if ! "$chosen" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    echo "skipped: no Python, or one that is older than 3.9"
    exit 77
fi
PYTHONPATH="$TOP/src/python" TOKMAP_LIBRARY="$BUILD_DIR/lib/libtokmap.so.0" exec "$chosen" tests/gpu/test_gpu.py
