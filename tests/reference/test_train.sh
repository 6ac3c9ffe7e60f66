#!/bin/sh
# SPDX-License-Identifier: MIT
# test_train.sh: `tokmap train-tokenizer` and Hugging Face's trainer make the same merges from the same text; Hugging Face
# tokenizers and tiktoken load the files that tokmap writes, and give the same ids as tokmap on held-back text. Skipped
# if the references cannot be installed.
#
# From the environment: TRAIN_SEED (1); TOKMAP_DATA, a folder whose corpus/ is trained on, too.
set -u
. tests/support/reference_venv.sh
reference_venv tokenizers tiktoken || { echo "1..0 # SKIP the reference tokenizers cannot be installed" && exit 77; }
exec "$REFERENCE_PYTHON" tests/reference/train_reference.py "$TOKMAP" "$TMPDIR" "${TRAIN_SEED:-1}"
