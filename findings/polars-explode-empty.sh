#!/bin/sh
# SPDX-License-Identifier: MIT
# polars-explode-empty.sh: explode() leaves out the rows of empty lists in polars 2, where polars 1 gave a null.
#
# polars 1.35.1 and 2.1.0. Each row has a document's number and its list of ids; document 1 is empty, and document 2 has
# a null instead of a list. explode() makes a row of each id. polars 1.35.1 gives a row with a null for both, so each
# document is still there, and documents can be counted afterwards. polars 2.1.0 gives such a row for the null only: the
# empty document is gone, without a warning, from a program that was not changed. Numbers of documents, a join, and ends
# of documents that are computed from the exploded column are then different. In 2.1.0, explode(empty_as_null=True)
# keeps the row. Output seen:
#
#   call                                 documents of the rows
#   polars 1.35.1                        0 0 1 2 3
#   polars 2.1.0                         0 0 2 3
#   polars 2.1.0, empty_as_null=True     0 0 1 2 3
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check --target "$work/1.35.1" polars==1.35.1
"$work/venv/bin/pip" install -q --disable-pip-version-check --target "$work/2.1.0" polars==2.1.0

cat >"$work/try.py" <<'END'
import sys

import polars

assert polars.__version__ == sys.argv[1]
documents = polars.DataFrame({"document": [0, 1, 2, 3], "ids": [[1, 2], [], None, [3]]})
calls = {f"polars {sys.argv[1]}": {}}
if sys.argv[1] == "2.1.0":
    calls["polars 2.1.0, empty_as_null=True"] = {"empty_as_null": True}
for name, options in calls.items():
    rows = documents.explode("ids", **options)
    assert [i for i in rows["ids"] if i is not None] == [1, 2, 3]
    print(f"{name:36}", *rows["document"])
END
for version in 1.35.1 2.1.0; do
    PYTHONPATH="$work/$version" "$work/venv/bin/python" "$work/try.py" $version
done >"$work/seen"
echo "call                                 documents of the rows"
cat "$work/seen"
sed 's/.*  //' "$work/seen" | tr '\n' ',' | grep -qx '0 0 1 2 3,0 0 2 3,0 0 1 2 3,'
