# SPDX-License-Identifier: MIT
# Inputs and tokenizers from the Hugging Face Hub: names, lists, commits, tokens, signed addresses, and what a hostile
# server may send. The server runs in the test.
. "$TOKMAP_CLI/helpers.sh"
need python3
tokmap encode http://127.0.0.1:1/x >/dev/null 2>err </dev/null || true
case $(cat err) in
*'built without libcurl'*) skip 'tokmap was built without libcurl' ;;
*'cannot be loaded'*) skip 'libcurl is not installed' ;;
esac
exec python3 "$TOKMAP_CLI/remote_hub_pack.py"
