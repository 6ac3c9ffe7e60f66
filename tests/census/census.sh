#!/bin/sh
# SPDX-License-Identifier: MIT
# census.sh: compares every tokenizer below $FOLDER with its reference (census.py). `make census FOLDER=folder` runs it.
#
# From the environment: FOLDER; ONLY, a pattern of names; OUT, the folder for the table (build/census).
set -u
[ -n "${FOLDER:-}" ] || { echo "census: name a folder with tokenizers: make census FOLDER=folder" >&2 && exit 2; }
[ -d "$FOLDER" ] || { echo "census: there is no folder $FOLDER" >&2 && exit 2; }
TOP=$(pwd)
case ${BUILD:-build} in
/*) BUILD_DIR=$BUILD ;;
*) BUILD_DIR=$TOP/${BUILD:-build} ;;
esac
. tests/support/reference_venv.sh
reference_venv tokenizers sentencepiece tiktoken || exit 77
export PYTHONPATH="$TOP/src/python" TOKMAP_LIBRARY="$BUILD_DIR/lib/libtokmap.so.0" PYTHONDONTWRITEBYTECODE=1
exec "$REFERENCE_PYTHON" tests/census/census.py "$FOLDER" --only "${ONLY:-*}" --out "${OUT:-$BUILD_DIR/census}" \
    --corpus "${TOKMAP_DATA:-$BUILD_DIR/reference_data}/corpus"
