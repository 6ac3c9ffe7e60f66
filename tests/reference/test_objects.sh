#!/bin/sh
# SPDX-License-Identifier: MIT
# Inputs from a server of object storage that others wrote: moto, which checks signatures and session tokens by the code
# of Amazon's own client. Skipped if moto cannot be installed.
set -u
if [ -n "${SANITIZE:-}" ]; then
    echo "1..0 # SKIP the step without a sanitizer compares with moto"
    exit 77
fi
case $("$TOKMAP" encode http://127.0.0.1:1/x 2>&1 >/dev/null </dev/null) in
*'built without libcurl'* | *'cannot be loaded'*)
    echo 'tokmap reads no URLs here: libcurl is missing'
    exit 77
    ;;
esac
REFERENCE_FOLDER=venv-objects
. tests/support/reference_venv.sh
REFERENCE_PACKAGES=tests/reference/objects.txt
reference_venv moto.server boto3 || { echo "1..0 # SKIP moto cannot be installed" && exit 77; }
cd "$TMPDIR" || exit 1
exec "$REFERENCE_PYTHON" "$TOP/tests/reference/objects_reference.py"
