#!/bin/sh
# SPDX-License-Identifier: MIT
# test_train_models.sh: what `tokmap train-tokenizer --model unigram` and `--model wordpiece` learn beside the trainers
# of SentencePiece and Hugging Face tokenizers, and the ids of their files there and in tokmap. Skipped if the
# references cannot be installed.
#
# From the environment: TRAIN_SEED (1); TOKMAP_DATA, a folder whose corpus/ is trained on in place of this tree.
set -u
. tests/support/reference_venv.sh
reference_venv tokenizers sentencepiece || { echo "1..0 # SKIP the reference tokenizers cannot be installed" && exit 77; }
exec "$REFERENCE_PYTHON" tests/reference/train_models_reference.py "$TOKMAP" "$TMPDIR" "${TRAIN_SEED:-1}"
