#!/bin/sh
# SPDX-License-Identifier: MIT
# ci: asan
# test_sp_reference.sh: compares tokmap's ids and offsets with those of the sentencepiece library, for models that are
# built here with every kind of piece and setting, and for the real models of $TOKMAP_DATA. Skipped if sentencepiece
# cannot be installed.
#
# From the environment: REFERENCE_STRINGS, strings for each model (300); REFERENCE_SEED (1); REFERENCE_MODELS, models
# that are trained (20). TEST_SHARE=3 divides these numbers.
set -u
. tests/support/reference_venv.sh
reference_venv sentencepiece || { echo "1..0 # SKIP sentencepiece cannot be installed" && exit 77; }
set --
for model in llama2 mistral7b_v1; do
    [ -n "${TOKMAP_DATA:-}" ] && [ -f "$TOKMAP_DATA/vocab/$model/tokenizer.model" ] &&
        set -- "$@" "$TOKMAP_DATA/vocab/$model/tokenizer.model"
done
exec "$REFERENCE_PYTHON" tests/reference/sp_reference.py "$TOKMAP" "$TMPDIR" "${REFERENCE_STRINGS:-$((300 / ${TEST_SHARE:-1}))}" \
    "${REFERENCE_SEED:-1}" "${REFERENCE_MODELS:-$((20 / ${TEST_SHARE:-1}))}" "$@"
