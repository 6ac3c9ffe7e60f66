#!/bin/sh
# SPDX-License-Identifier: MIT
# test_warc.sh: compares what tokmap reads from WARC files with what warcio reads from them. The files are written by
# warcio, with and without compression, and by the test, with the liberties that headers have. Skipped if warcio cannot
# be installed.
#
# From the environment: WARC_FILES, how many files are made (60); REFERENCE_SEED (1).
set -u
REFERENCE_FOLDER=venv-warc
. tests/support/reference_venv.sh
REFERENCE_PACKAGES=tests/reference/warc.txt
reference_venv warcio || { echo "1..0 # SKIP warcio cannot be installed" && exit 77; }
"$REFERENCE_PYTHON" tests/reference/warc_reference.py "$BUILD_DIR/tests/dump_documents" "$TMPDIR" \
    "${WARC_FILES:-60}" "${REFERENCE_SEED:-1}"
