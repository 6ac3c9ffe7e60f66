#!/bin/sh
# SPDX-License-Identifier: MIT
# datasets-null-rounds-numpy.sh: one null in a slice makes NumPy-formatted ids float32, which rounds other rows' ids.
#
# datasets 5.2.0, PyArrow 26.0.1, NumPy 2.4.6. A column of int64 has a null, and the format is "numpy". One would expect
# float64 with NaN for a slice with the null, as PyArrow's to_numpy() gives, or an error. It is float32, which has 24
# bits of precision, so every id above 2**24 in the same slice is rounded to an even number or a multiple of 4. Whether
# an id is right thus depends on which rows come with it: alone it is exact, in a batch without the null it is exact,
# and in the batch with the null it is another id. The same is so for lists of ids of equal length that contain a null.
# Output seen:
#
#   rows    type      first id
#   [0]     int64     16777217
#   [0:2]   int64     16777217
#   [0:3]   float32   16777216
#   lists   float32   16777216
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check datasets==5.2.0 pyarrow==26.0.1 numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys

from datasets import Dataset

FIRST = 2**24 + 1
column = Dataset.from_dict({"id": [FIRST, FIRST + 2, None]})
assert str(column.features["id"].dtype) == "int64"
column = column.with_format("numpy")
lists = Dataset.from_dict({"id": [[FIRST, FIRST + 2], [FIRST + 4, None]]}).with_format("numpy")
found = {
    "[0]": column[0]["id"],
    "[0:2]": column[0:2]["id"],
    "[0:3]": column[0:3]["id"],
    "lists": lists[0:2]["id"],
}
found = {rows: (str(ids.dtype), int(ids.flat[0])) for rows, ids in found.items()}
print("rows    type      first id")
for rows, (kind, first) in found.items():
    print(f"{rows:7} {kind:9} {first}")
right, rounded = ("int64", FIRST), ("float32", FIRST - 1)
sys.exit(list(found.values()) != [right, right, rounded, rounded])
END
"$work/venv/bin/python" "$work/try.py"
