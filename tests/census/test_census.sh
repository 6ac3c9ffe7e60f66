#!/bin/sh
# SPDX-License-Identifier: MIT
# test_census.sh: the census counts what is equal, what is different, what tokmap refuses, and what no reference reads;
# collect.py finds vocabularies by their content and converts that of a GGUF file. Skipped if the references cannot be
# installed.
set -u
. tests/support/reference_venv.sh
reference_venv tokenizers sentencepiece tiktoken || { echo "1..0 # SKIP the references cannot be installed" && exit 77; }
export PYTHONPATH="$TOP/src/python" TOKMAP_LIBRARY="$BUILD_DIR/lib/libtokmap.so.0"
exec "$REFERENCE_PYTHON" tests/census/census_test.py "$TMPDIR"
