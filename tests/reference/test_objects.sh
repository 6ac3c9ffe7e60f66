#!/bin/sh
# Inputs from a server of object storage that others wrote: moto, which checks signatures and session tokens by the code
# of Amazon's own client. It is used if $TOKMAP_MOTO_PYTHON, or build/moto-venv, has it; nothing is downloaded here.
set -u
python=${TOKMAP_MOTO_PYTHON:-$BUILD_DIR/moto-venv/bin/python}
if ! "$python" -c 'import moto.server, boto3' >/dev/null 2>&1; then
    echo "moto is missing: python3 -m venv build/moto-venv && build/moto-venv/bin/pip install 'moto[server]'"
    exit 77
fi
cd "$TMPDIR" || exit 1
"$TOKMAP" encode http://127.0.0.1:1/x >/dev/null 2>err </dev/null
case $(cat err) in
*'built without libcurl'* | *'cannot be loaded'*)
    echo 'tokmap reads no URLs here: libcurl is missing'
    exit 77
    ;;
esac
exec "$python" "$TOP/tests/reference/objects_reference.py"
