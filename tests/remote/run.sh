#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh: runs tests/remote/test_*.py: the server of objects that injects faults, and ranks that read from it while they
# are killed and while it fails. REMOTE_TESTS="test_remote_kills" selects some. KILLS, FAULTS, and DATA_MB make them longer
# (test_remote_kills.py, test_remote_faults.py, ranks.py).
set -u
if [ -n "${SANITIZE:-}" ]; then
    echo "skipped: a library with a sanitizer cannot be loaded by Python"
    exit 77
fi
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || { echo "skipped: no Python 3.9"; exit 77; }
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY AWS_PROFILE AWS_MAX_ATTEMPTS || true
export PYTHONPATH="$TOP/src/python:$TOP/tests/remote" TOKMAP_LIBRARY="$BUILD_DIR/lib/libtokmap.so.0" OMP_NUM_THREADS=1
exec "$python" tests/python/tap.py ${REMOTE_TESTS:-test_object_server test_remote_kills test_remote_faults test_copy test_stall test_parquet_writers}
