#!/bin/sh
# test_train.sh: `tokmap train` against Hugging Face's trainer: the same merges of the same text; and its files in Hugging
# Face tokenizers and tiktoken: the same ids as ours on text held back. Skipped where the references cannot be had.
# TRAIN_SEED (1); TOKMAP_DATA: a folder whose corpus/ is trained on too.
set -u
. tests/support/reference_venv.sh
reference_venv tokenizers tiktoken || { echo "1..0 # SKIP the reference tokenizers are not here" && exit 77; }
exec "$REFERENCE_PYTHON" tests/reference/train_reference.py "$TOKMAP" "$TMPDIR" "${TRAIN_SEED:-1}"
