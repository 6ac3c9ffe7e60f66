#!/bin/sh
# SPDX-License-Identifier: MIT
# test_class_steps.sh: class_steps.c is what its generator writes, and what `tokmap tokenizer` says of the ids of
# AutoTokenizer is right. Skipped without transformers 5.24 and tokenizers 0.23.
set -u
python=${TOKMAP_REFERENCE_PYTHON:-${PYTHON:-python3}}
version=$("$python" -c 'import tokenizers, transformers
print(transformers.__version__, tokenizers.__version__)' 2>/dev/null)
case $version in
"5.24."*" 0.23."*) ;;
*) echo "1..0 # SKIP needs the packages transformers 5.24 and tokenizers 0.23" && exit 77 ;;
esac
HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=critical exec "$python" tests/reference/class_steps_reference.py "$TOKMAP" \
    tokenize_tools/tokenizers/vocabulary/class_steps.c
