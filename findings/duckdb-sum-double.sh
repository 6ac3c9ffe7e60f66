#!/bin/sh
# SPDX-License-Identifier: MIT
# duckdb-sum-double.sh: a sum of integers that DuckDB writes to Parquet is a DOUBLE, which rounds sums above 2**53.
#
# duckdb 2.0.1, PyArrow 26.0.1. sum() of a BIGINT column is a HUGEINT of 128 bits in DuckDB, so that it cannot overflow,
# and the query prints the exact number. COPY ... TO a Parquet file, which has no integer of 128 bits, writes it as a
# DOUBLE without a warning. One would expect a DECIMAL, whose type Parquet has, or an error. Numbers of tokens, offsets
# of bytes, and sums of hashes above 2**53 are then rounded, and a reader that asks for an integer column finds floating
# point even where the numbers are small. count() stays an integer. sum(x)::BIGINT is exact, and fails if the sum does
# not fit. Output seen:
#
#   column            type in Parquet   value
#   sum(x)            double            9007199254740992
#   sum(x)::BIGINT    int64             9007199254740993
#   sum of 1 and 2    double            3
#   count(*)          int64             2
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check duckdb==2.0.1 pyarrow==26.0.1

cat >"$work/try.py" <<'END'
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet

path = Path(sys.argv[1]) / "sums.parquet"
query = """
    SELECT sum(x) AS "sum(x)", sum(x)::BIGINT AS "sum(x)::BIGINT", sum(y) AS "sum of 1 and 2", count(*) AS "count(*)"
    FROM (VALUES (9007199254740991::BIGINT, 1::BIGINT), (2, 2)) AS numbers(x, y)
"""
shown = duckdb.sql(query).fetchall()[0]
assert shown == (2**53 + 1, 2**53 + 1, 3, 2)
duckdb.sql(f"COPY ({query}) TO '{path}'")

table = pyarrow.parquet.read_table(path)
found = [(field.name, str(field.type), int(table[field.name][0].as_py())) for field in table.schema]
print("column            type in Parquet   value")
for name, kind, value in found:
    print(f"{name:17} {kind:17} {value}")
expected = [("double", 2**53), ("int64", 2**53 + 1), ("double", 3), ("int64", 2)]
sys.exit([(kind, value) for _, kind, value in found] != expected)
END
"$work/venv/bin/python" "$work/try.py" "$work"
