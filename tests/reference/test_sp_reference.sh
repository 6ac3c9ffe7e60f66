#!/bin/sh
# test_sp_reference.sh: tokmap's ids against those of the sentencepiece library, for models of every kind of part, built here, and the
# real ones where there are such. REFERENCE_STRINGS (300): strings a model; REFERENCE_SEED (1). Skipped where the reference
# cannot be had.
set -u
. tests/support/reference_venv.sh
reference_venv sentencepiece || { echo "1..0 # SKIP the reference sentencepiece is not here" && exit 77; }
set --
for model in llama2 mistral7b_v1; do
    [ -n "${TOKMAP_DATA:-}" ] && [ -f "$TOKMAP_DATA/vocab/$model/tokenizer.model" ] &&
        set -- "$@" "$TOKMAP_DATA/vocab/$model/tokenizer.model"
done
exec "$REFERENCE_PYTHON" tests/reference/sp_reference.py "$TOKMAP" "$TMPDIR" "${REFERENCE_STRINGS:-300}" \
    "${REFERENCE_SEED:-1}" "$@"
