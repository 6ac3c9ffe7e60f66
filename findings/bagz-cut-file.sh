#!/bin/sh
# SPDX-License-Identifier: MIT
# bagz-cut-file.sh: a Bagz file that was cut, or joined to another, opens and gives other bytes than its records.
#
# bagz 0.3.8, NumPy 2.4.6. A file has 500 records of 64 ids in uint16, without compression. A copy that stopped a few
# bytes before the end, and two files that cat joined, are opened. One would expect an error for the first, and an error
# or 1000 records for the second. The last eight bytes of a file are taken for the place where the list of the records'
# ends begins, and nothing else is compared. In a cut file the last eight bytes are the end of an earlier record, which
# is before the list, so the ids are read as ends of records: the reader says that there are 515 records, and record 0
# is a part of the file's middle. In two joined files this place is in the first one, so all that follows is taken for
# the list. There is no error until a record that reaches beyond the file is asked for. Output seen:
#
#   file                   records   right   other bytes   errors
#   whole                  500       500     0             0
#   without 8 bytes        515       0       498           17
#   without 80 bytes       650       0       489           161
#   two joined             9000      999     0             8001
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check bagz==0.3.8 numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys
from pathlib import Path

import bagz
import numpy as np

work = Path(sys.argv[1])
numbers = np.random.default_rng(1)
records = [numbers.integers(0, 50000, 64).astype("<u2").tobytes() for _ in range(500)]
with bagz.Writer(work / "whole.bag") as writer:
    for record in records:
        writer.write(record)
whole = (work / "whole.bag").read_bytes()
files = {"whole": whole, "without 8 bytes": whole[:-8], "without 80 bytes": whole[:-80], "two joined": whole * 2}


def counts(content):
    """Returns how many records a file has, and how many are right, other bytes, and errors."""
    path = work / "copy.bag"
    path.write_bytes(content)
    reader = bagz.Reader(path)
    right = other = errors = 0
    for i in range(len(reader)):
        try:
            equal = reader[i] == records[i % 500]
            right, other = right + equal, other + (not equal)
        except ValueError:
            errors += 1
    return len(reader), right, other, errors


print("file                   records   right   other bytes   errors")
found = []
for name, content in files.items():
    found.append(counts(content))
    print(f"{name:22} {found[-1][0]:<9} {found[-1][1]:<7} {found[-1][2]:<13} {found[-1][3]}")
sys.exit(found[0] != (500, 500, 0, 0) or any(count == 500 or right == count for count, right, _, _ in found[1:]))
END
"$work/venv/bin/python" "$work/try.py" "$work"
