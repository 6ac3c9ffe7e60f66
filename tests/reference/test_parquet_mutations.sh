#!/bin/sh
# SPDX-License-Identifier: MIT
# test_parquet_mutations.sh: compares what tokmap reads from damaged Parquet files with what pyarrow reads from them: it
# reads the same, or refuses them. Skipped if pyarrow and what parquet_reference.py needs besides cannot be installed.
#
# From the environment: PARQUET_FILES, how many files are made, of each of which 12 copies are damaged (20; a round of
# `make torture` makes 40); REFERENCE_SEED (1).
set -u
REFERENCE_FOLDER=venv-parquet
. tests/support/reference_venv.sh
REFERENCE_PACKAGES=tests/reference/parquet.txt
reference_venv pyarrow duckdb polars fastparquet ||
    { echo "1..0 # SKIP pyarrow and the other programs that write Parquet cannot be installed" && exit 77; }
"$REFERENCE_PYTHON" tests/reference/parquet_mutations.py "$BUILD_DIR/tests/dump_documents" "$TMPDIR" \
    "${PARQUET_FILES:-20}" "${REFERENCE_SEED:-1}"
