#!/bin/sh
# SPDX-License-Identifier: MIT
# test_run_model.sh: compares random runs with a model that was written from the specifications alone (run_model.py).
#
# From the environment: RUN_MODEL_RUNS, how many (2000, with TEST_SHARE=N an N-th of that); RUN_MODEL_SEED (1).
set -u
if [ -n "${SANITIZE:-}" ]; then
    echo "skipped: a library with a sanitizer cannot be loaded by Python"
    exit 77
fi
python=${PYTHON:-python3}
command -v "$python" >/dev/null 2>&1 || { echo "skipped: no Python"; exit 77; }
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || { echo "skipped: Python is older than 3.9"; exit 77; }
runs=${RUN_MODEL_RUNS:-$((2000 / ${TEST_SHARE:-1}))}
export PYTHONPATH="$TOP/src/python" TOKMAP_LIBRARY="$BUILD_DIR/lib/libtokmap.so.0"
exec "$python" tests/differential/run_model.py --count "$runs" --seed "${RUN_MODEL_SEED:-1}"
