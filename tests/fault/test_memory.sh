#!/bin/sh
# SPDX-License-Identifier: MIT
# test_memory.sh: commands whose allocations fail; see memory.py.
if [ -n "${SANITIZE:-}" ]; then
    echo "skipped: a preloaded library cannot be combined with the runtime of a sanitizer"
    exit 77
fi
for needed in "$TOKMAP" "$BUILD_DIR/tests/inject.so" "$BUILD_DIR/lib/libtokmap.so"; do
    [ -e "$needed" ] || { echo "skipped: $needed is not built"; exit 77; }
done
command -v "${PYTHON:-python3}" >/dev/null 2>&1 || { echo "skipped: no python3 on this machine"; exit 77; }
mkdir -p "$TMPDIR/work" && cd "$TMPDIR/work" && exec "${PYTHON:-python3}" "$TOP/tests/fault/memory.py"
