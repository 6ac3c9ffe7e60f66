# SPDX-License-Identifier: MIT
# ci: tsan
# Parquet files of object storage and web servers: the bytes are those of the same files on a disk, whatever the server
# does and whenever the command is killed, and only footers and pages of the columns that are read are fetched.
# TOKMAP_KILLS: how often packs are killed (12).
. "$TOKMAP_CLI/helpers.sh"
need python3
tokmap encode http://127.0.0.1:1/x >/dev/null 2>err </dev/null || true
case $(cat err) in
*'built without libcurl'*) skip 'tokmap was built without libcurl' ;;
*'cannot be loaded'*) skip 'libcurl is not installed' ;;
esac
exec python3 "$TOKMAP_CLI/remote_parquet.py"
