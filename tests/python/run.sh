#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh: runs the tests of the Python package, tests/python/test_*.py; PYTHON_TESTS="test_core test_device" selects
# some.
#
# They need only Python 3.9. More tests run with NumPy, torch, Lightning, and transformers. The tests run with the first
# of $TOKMAP_TORCH_PYTHON, $PYTHON, and /usr/bin/python3 that has torch, or else with $PYTHON. A test whose module is
# missing is skipped, and says so.
set -u
if [ -n "${SANITIZE:-}" ]; then
    echo "skipped: a library with a sanitizer cannot be loaded by Python"
    exit 77
fi
command -v "${PYTHON:-python3}" >/dev/null 2>&1 || { echo "skipped: no Python"; exit 77; }
chosen=${PYTHON:-python3}
for candidate in "${TOKMAP_TORCH_PYTHON:-}" "$chosen" /usr/bin/python3; do
    if [ -n "$candidate" ] && "$candidate" -c 'import torch' >/dev/null 2>&1; then
        chosen=$candidate
        break
    fi
done
"$chosen" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || { echo "skipped: Python is older than 3.9"; exit 77; }
export PYTHONPATH="$TOP/src/python" TOKMAP_LIBRARY="$BUILD_DIR/lib/libtokmap.so.0" OMP_NUM_THREADS=1
exec "$chosen" tests/python/tap.py ${PYTHON_TESTS:-}
