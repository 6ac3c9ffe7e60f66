#!/bin/sh
# test_hf_variants.sh: tokenizer.json files put together at random, any parts with any flags: tokmap's ids are those of
# Hugging Face tokenizers, or it refuses the file by a field. REFERENCE_FILES (120); REFERENCE_STRINGS (40): strings a
# file; REFERENCE_SEED (1). Skipped where the reference cannot be had.
set -u
. tests/support/reference_venv.sh
reference_venv tokenizers || { echo "1..0 # SKIP the reference tokenizers are not here" && exit 77; }
exec "$REFERENCE_PYTHON" tests/reference/hf_variants.py "$TOKMAP" "$TMPDIR" "${REFERENCE_FILES:-120}" \
    "${REFERENCE_STRINGS:-40}" "${REFERENCE_SEED:-1}"
