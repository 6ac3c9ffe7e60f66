#!/bin/sh
# SPDX-License-Identifier: MIT
# run_torture.sh: what `make torture` runs after the build. From the environment: SECONDS_GIVEN (3600), SEED (the
# clock), ONLY (all attacks), and what the Makefile passes to tests. The last line is "N passed, N failed, N skipped".
set -u
LC_ALL=C
export LC_ALL
TOP=$(pwd)
case ${BUILD:-build} in
/*) BUILD_DIR=$BUILD ;;
*) BUILD_DIR=$TOP/${BUILD:-build} ;;
esac
TOKMAP=$BUILD_DIR/bin/tokmap
TOKMAP_BENCH=$BUILD_DIR/bin/tokmap-bench
TOKMAP_BIN=$BUILD_DIR/bin
PYTHONDONTWRITEBYTECODE=1
export TOP BUILD_DIR TOKMAP TOKMAP_BENCH TOKMAP_BIN PYTHONDONTWRITEBYTECODE
command -v "${PYTHON:-python3}" >/dev/null 2>&1 || {
    echo "skipped: Python is missing, and the attacks are written in it"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}
set -- --seconds "${SECONDS_GIVEN:-3600}" --only "${ONLY:-}"
[ -z "${SEED:-}" ] || set -- "$@" --seed "$SEED"
mkdir -p "$BUILD_DIR/torture" && rm -f "$BUILD_DIR/torture/status"
# The report is printed and kept.
{ "${PYTHON:-python3}" tests/torture/torture.py "$@" || echo failed >"$BUILD_DIR/torture/status"; } 2>&1 </dev/null |
    tee "$BUILD_DIR/torture/report.txt"
[ ! -e "$BUILD_DIR/torture/status" ] || { rm -f "$BUILD_DIR/torture/status" && exit 1; }
