#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh: compares tokmap's ids with those of Hugging Face tokenizers, for tokenizer.json files with every kind of part.
# Skipped if the reference cannot be installed.
#
# From the environment: REFERENCE_STRINGS, strings for each family (150); REFERENCE_SEED (1).
set -u
. tests/support/reference_venv.sh
reference_venv tokenizers || { echo "1..0 # SKIP the reference tokenizers cannot be installed" && exit 77; }
exec "$REFERENCE_PYTHON" tests/reference/hf_reference.py "$TOKMAP" "$TMPDIR" "${REFERENCE_STRINGS:-150}" \
    "${REFERENCE_SEED:-1}"
