#!/bin/sh
# run.sh: the corpus of past differences, then tokmap's ids against tiktoken, tokenizers and sentencepiece on a few thousand
# strings made from a seed. DIFFERENTIAL_STRINGS (1500): strings a family; DIFFERENTIAL_SEED (1). Of the vocabularies those
# that are trained on the spot; those of $TOKMAP_DATA too where it is set. Skipped where the references cannot be had.
set -u
. tests/support/reference_venv.sh
stored=${TOKMAP_DATA:-$BUILD_DIR/reference_data}
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
    77) echo "ok - $what # SKIP what it compares with is not here" ;;
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
    echo "ok - generated strings # SKIP the references are not here"
fi
exit $result
