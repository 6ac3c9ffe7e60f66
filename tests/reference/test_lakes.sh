#!/bin/sh
# SPDX-License-Identifier: MIT
# test_lakes.sh: runs tests/python/test_lakes.py, the programs of LAKES.md, with deltalake and pyiceberg. Skipped if
# these cannot be installed.
set -u
REFERENCE_FOLDER=venv-lakes
. tests/support/reference_venv.sh
REFERENCE_PACKAGES=tests/reference/lakes.txt
reference_venv deltalake pyiceberg.catalog.sql pyarrow ||
    { echo "1..0 # SKIP deltalake and pyiceberg cannot be installed" && exit 77; }
TOKMAP_TORCH_PYTHON=$REFERENCE_PYTHON PYTHON=$REFERENCE_PYTHON PYTHON_TESTS=test_lakes sh tests/python/run.sh
