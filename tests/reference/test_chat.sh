#!/bin/sh
# SPDX-License-Identifier: MIT
# test_chat.sh: compares what `tokmap pack --messages-field` writes, ids and mask, with Hugging Face transformers, for
# every built-in chat template. Skipped without transformers or the vocabularies of $TOKMAP_DATA.
#
# From the environment: REFERENCE_CONVERSATIONS for each template (200); REFERENCE_SEED (1).
set -u
python=${TOKMAP_REFERENCE_PYTHON:-${PYTHON:-python3}}
"$python" -c 'import jinja2, numpy, transformers' >/dev/null 2>&1 ||
    { echo "1..0 # SKIP transformers is not installed" && exit 77; }
[ -n "${TOKMAP_DATA:-}" ] && [ -f "$TOKMAP_DATA/vocab/llama3/tokenizer.json" ] ||
    { echo "1..0 # SKIP there are no vocabularies (TOKMAP_DATA)" && exit 77; }
exec "$python" tests/reference/chat_reference.py "$TOKMAP" "$TMPDIR" "$TOKMAP_DATA/vocab" \
    "${REFERENCE_CONVERSATIONS:-200}" "${REFERENCE_SEED:-1}"
