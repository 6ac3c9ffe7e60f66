#!/bin/sh
# SPDX-License-Identifier: MIT
# test_coming_from.sh: runs tests/python/test_coming_from.py, the programs of COMING_FROM.md, with the loaders that need
# no torch. Skipped if these cannot be installed.
set -u
REFERENCE_FOLDER=venv-coming-from
. tests/support/reference_venv.sh
REFERENCE_PACKAGES=tests/reference/coming_from.txt
reference_venv datasets lance webdataset grain ||
    { echo "1..0 # SKIP the loaders cannot be installed" && exit 77; }
TOKMAP_TORCH_PYTHON=$REFERENCE_PYTHON PYTHON=$REFERENCE_PYTHON PYTHON_TESTS=test_coming_from sh tests/python/run.sh
