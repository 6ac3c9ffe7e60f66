# SPDX-License-Identifier: MIT
# ci: nonroot
# A URL whose file is replaced between a kill and the next try is refused by name, or read from its beginning again
# where the server names no version: a shard has the tokens of one version. The server runs in the test.
. "$TOKMAP_CLI/helpers.sh"
need python3
tokmap encode http://127.0.0.1:1/x >/dev/null 2>err </dev/null || true
case $(cat err) in
*'built without libcurl'*) skip 'tokmap was built without libcurl' ;;
*'cannot be loaded'*) skip 'libcurl is not installed' ;;
esac
exec python3 "$TOKMAP_CLI/remote_versions.py"
