#!/bin/sh
# SPDX-License-Identifier: MIT
# test_foreign.sh: compares tokmap's reading of other projects' token files with the files that their own writers make,
# and the other way around (foreign_reference.py). A project whose package is missing is skipped.
#
# The Python is $TOKMAP_FOREIGN_PYTHON, which may have megatron-core with torch, datatrove, and ai2-olmo-core; else that
# of test_datatrove.sh, with datatrove alone, because the others import torch, whose wheel takes longer than all of CI's
# tests of Python; else $PYTHON, if it has NumPy. From the environment: REFERENCE_SEED (1).
set -u
if [ -n "${SANITIZE:-}" ]; then
    echo "1..0 # SKIP a library with a sanitizer cannot be loaded by Python"
    exit 77
fi
REFERENCE_FOLDER=venv-datatrove
. tests/support/reference_venv.sh
REFERENCE_PACKAGES=tests/reference/datatrove.txt
python=${TOKMAP_FOREIGN_PYTHON:-}
if [ -z "$python" ]; then
    python=${PYTHON:-python3}
    ! reference_venv numpy datatrove.pipeline.dedup.minhash || python=$REFERENCE_PYTHON
fi
"$python" -c 'import numpy' >/dev/null 2>&1 || { echo "1..0 # SKIP $python does not have NumPy" && exit 77; }
export PYTHONPATH="$TOP/src/python" TOKMAP_LIBRARY="$BUILD_DIR/lib/libtokmap.so.0" OMP_NUM_THREADS=1
exec "$python" tests/reference/foreign_reference.py "$TOKMAP" "$TMPDIR" "${REFERENCE_SEED:-1}"
