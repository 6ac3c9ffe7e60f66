# SPDX-License-Identifier: MIT
# Datasets that are read from object storage and from web servers: the commands print what they print of local files,
# and bad names, folders, caches, and servers are errors that say what to do. The server runs in the test.
. "$TOKMAP_CLI/helpers.sh"
need python3
tokmap encode http://127.0.0.1:1/x >/dev/null 2>err </dev/null || true
case $(cat err) in
*'built without libcurl'*) skip 'tokmap was built without libcurl' ;;
*'cannot be loaded'*) skip 'libcurl is not installed' ;;
esac
[ -z "${SANITIZE:-}" ] || export POISONS="${POISONS:-1}" # slow
exec python3 "$TOKMAP_CLI/remote_datasets.py"
