#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh: runs every fuzz harness on its corpus and on a few thousand mutations of it with a fixed seed. It needs no
# fuzzing engine.
for source in tests/fuzz/fuzz_*.c; do
    [ -f "$source" ] || { echo "ok # SKIP no harnesses"; exit 0; }
    name=$(basename "$source" .c)
    corpus=tests/fuzz/corpus/$name
    [ -d "$corpus" ] || corpus=
    if timeout 600 "$BUILD_DIR/tests/$name" -runs="${FUZZ_RUNS:-3000}" -seconds=30 $corpus; then
        echo "ok - $name"
    else
        echo "not ok - $name"
    fi
done
