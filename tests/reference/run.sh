#!/bin/sh
# run.sh: tokmap's ids against those of Hugging Face tokenizers, for tokenizer.json files of every kind of part, built here.
# REFERENCE_STRINGS (150): strings a family; REFERENCE_SEED (1). Skipped where the reference cannot be had.
set -u
. tests/support/reference_venv.sh
reference_venv tokenizers || { echo "1..0 # SKIP the reference tokenizers are not here" && exit 77; }
exec "$REFERENCE_PYTHON" tests/reference/hf_reference.py "$TOKMAP" "$TMPDIR" "${REFERENCE_STRINGS:-150}" \
    "${REFERENCE_SEED:-1}"
