#!/bin/sh
# SPDX-License-Identifier: MIT
# test_parquet.sh: compares what tokmap reads from Parquet files with what pyarrow reads from them. The files are
# written by pyarrow, DuckDB, Polars, and fastparquet. Skipped if these cannot be installed.
#
# From the environment: PARQUET_FILES, how many files are made (50; a thorough run makes 10000); PARQUET_SECONDS, after
# which no other file is begun; REFERENCE_SEED (1); PARQUET_TESTING, a folder of files to read as well, for example a
# clone of github.com/apache/parquet-testing.
set -u
REFERENCE_FOLDER=venv-parquet
. tests/support/reference_venv.sh
REFERENCE_PACKAGES=tests/reference/parquet.txt
reference_venv pyarrow duckdb polars fastparquet ||
    { echo "1..0 # SKIP the other programs that write Parquet cannot be installed" && exit 77; }
"$REFERENCE_PYTHON" tests/reference/parquet_reference.py "$BUILD_DIR/tests/dump_documents" "$TMPDIR" \
    "${PARQUET_FILES:-50}" "${REFERENCE_SEED:-1}" || exit
[ -z "${PARQUET_TESTING:-}" ] ||
    "$REFERENCE_PYTHON" tests/reference/parquet_reference.py "$BUILD_DIR/tests/dump_documents" --files "$PARQUET_TESTING"
