#!/bin/sh
# SPDX-License-Identifier: MIT
# test_fim.sh: compares what `tokmap pack --fim` writes with a program that follows the paper (Bavarian et al. 2022) and
# encodes with Hugging Face tokenizers. Skipped without these, libxxhash, or the vocabularies of $TOKMAP_DATA.
#
# From the environment: REFERENCE_DOCUMENTS for each vocabulary (10000); REFERENCE_SEED (1).
set -u
. tests/support/reference_venv.sh
reference_venv tokenizers || { echo "1..0 # SKIP the reference tokenizers cannot be installed" && exit 77; }
"$REFERENCE_PYTHON" -c 'import ctypes.util, sys; sys.exit(not ctypes.util.find_library("xxhash"))' 2>/dev/null ||
    { echo "1..0 # SKIP Python does not find libxxhash" && exit 77; }
[ -n "${TOKMAP_DATA:-}" ] && [ -f "$TOKMAP_DATA/vocab/qwen2.5/tokenizer.json" ] ||
    { echo "1..0 # SKIP there are no vocabularies (TOKMAP_DATA)" && exit 77; }
exec "$REFERENCE_PYTHON" tests/reference/fim_reference.py "$TOKMAP" "$TMPDIR" "$TOKMAP_DATA/vocab" \
    "${REFERENCE_DOCUMENTS:-10000}" "${REFERENCE_SEED:-1}"
