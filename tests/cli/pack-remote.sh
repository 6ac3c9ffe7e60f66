# SPDX-License-Identifier: MIT
# Inputs from a web server: whatever the server and the connection do, the tokens are those of the file, or there is a
# message. The server runs in the test.
. "$TOKMAP_CLI/helpers.sh"
need python3
status=0
tokmap encode http://127.0.0.1:1/x >/dev/null 2>err </dev/null || status=$?
equal $status 1
case $(cat err) in
*'built without libcurl'*)
    holds err 'libcurl4-openssl-dev'
    skip 'tokmap was built without libcurl'
    ;;
*'cannot be loaded'*) skip 'libcurl is not installed' ;;
esac
exec python3 "$TOKMAP_CLI/remote_web.py"
