# SPDX-License-Identifier: MIT
# ci: nonroot
# Objects of a bucket, packed by commands that are killed, and by tasks: the bytes are those of an undisturbed pack, and
# an object that was replaced meanwhile is refused by name. The server runs in the test.
. "$TOKMAP_CLI/helpers.sh"
need python3
tokmap encode http://127.0.0.1:1/x >/dev/null 2>err </dev/null || true
case $(cat err) in
*'built without libcurl'*) skip 'tokmap was built without libcurl' ;;
*'cannot be loaded'*) skip 'libcurl is not installed' ;;
esac
exec python3 "$TOKMAP_CLI/remote_killed.py"
