#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh: replays the corpus of past differences, then compares tokmap's ids with those of tiktoken, tokenizers and
# sentencepiece on a few thousand generated strings. Uses vocabularies that are trained on the spot, and those of
# $TOKMAP_DATA if it is set. Skipped if the references cannot be installed.
#
# From the environment: DIFFERENTIAL_STRINGS, strings for each family (1500); DIFFERENTIAL_SEED (1).
set -u
. tests/support/reference_venv.sh
stored=${TOKMAP_DATA:-$BUILD_DIR/reference_data}
# The reference data beside the project, if there is any, is unpacked by the first unit test that uses it. Without this
# test, the real vocabularies would be compared only if such a unit test happened to run before.
[ -n "${TOKMAP_DATA:-}" ] || [ ! -x "$BUILD_DIR/tests/test_classes" ] || "$BUILD_DIR/tests/test_classes" >/dev/null 2>&1
export TOKMAP_DATA="$stored"
result=0
# one NAME COMMAND...
one() {
    what=$1
    shift
    "$@"
    status=$?
    case $status in
    0) echo "ok - $what" ;;
    77) echo "ok - $what # SKIP the reference or its data is missing" ;;
    *) echo "not ok - $what" && result=1 ;;
    esac
}
if ! "$TOKMAP" encode --help | grep -q -e --special; then
    echo "ok - strings # SKIP this tokmap encode has no --special"
    exit 0
fi
one "past differences" "${PYTHON:-python3}" tests/differential/strings.py --corpus tests/differential/corpus/*.jsonl
if reference_venv tiktoken tokenizers sentencepiece; then
    one "generated strings" "$REFERENCE_PYTHON" tests/differential/strings.py --count "${DIFFERENTIAL_STRINGS:-1500}" \
        --seed "${DIFFERENTIAL_SEED:-1}"
else
    echo "ok - generated strings # SKIP the references cannot be installed"
fi
exit $result
