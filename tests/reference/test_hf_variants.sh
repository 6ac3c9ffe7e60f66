#!/bin/sh
# SPDX-License-Identifier: MIT
# ci: asan
# test_hf_variants.sh: for tokenizer.json files that are put together at random, any parts with any flags, tokmap's ids
# and offsets are those of Hugging Face tokenizers, or tokmap refuses the file and names a field. Skipped if the
# reference cannot be installed.
#
# From the environment: REFERENCE_FILES (120; a third of it with TEST_SHARE=3); REFERENCE_STRINGS, strings for each file
# (40); REFERENCE_SEED (1).
set -u
. tests/support/reference_venv.sh
reference_venv tokenizers || { echo "1..0 # SKIP the reference tokenizers cannot be installed" && exit 77; }
exec "$REFERENCE_PYTHON" tests/reference/hf_variants.py "$TOKMAP" "$TMPDIR" "${REFERENCE_FILES:-$((120 / ${TEST_SHARE:-1}))}" \
    "${REFERENCE_STRINGS:-40}" "${REFERENCE_SEED:-1}"
