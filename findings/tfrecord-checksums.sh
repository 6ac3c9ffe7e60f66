#!/bin/sh
# SPDX-License-Identifier: MIT
# tfrecord-checksums.sh: the reader of the package tfrecord does not compare the checksums that its writer stores.
#
# tfrecord 1.14.6, protobuf 7.36.2, numpy 2.4.6. A TFRecord has two masked CRC-32C for each record, one of its length and
# one of its bytes, and the writer of the package stores both. Of a file with 50 records of 100 ids, one byte at a time
# is changed by one bit, as a bad disk or memory does, and the file is read again. One would expect an error for each
# byte. The reader skips the checksums. Nine in ten changes of a record give other ids without an error, and the rest are
# errors of protobuf's parser. Changes of the checksums themselves are never noticed. Output seen:
#
#   changed byte       files   error   other ids   same ids
#   in a record        220     20      200         0
#   in a checksum      8       0       0           8
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check tfrecord==1.14.6 protobuf==7.36.2 numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys
from pathlib import Path

import tfrecord

RECORDS, IDS = 50, 100


def read(path):
    return [row["ids"].tolist() for row in tfrecord.tfrecord_loader(str(path), None, {"ids": "int"})]


def outcome(path, data, at, right):
    """Reads the file with one bit of byte `at` changed."""
    changed = bytearray(data)
    changed[at] ^= 1
    path.write_bytes(changed)
    try:
        return "same" if read(path) == right else "other"
    except Exception:
        return "error"


path = Path(sys.argv[1]) / "ids.tfrecord"
right = [[1000 + i * IDS + j for j in range(IDS)] for i in range(RECORDS)]
writer = tfrecord.TFRecordWriter(str(path))
for row in right:
    writer.write({"ids": (row, "int")})
writer.close()
assert read(path) == right
data = path.read_bytes()
length = int.from_bytes(data[:8], "little")
parts = {"in a record": range(12, 12 + length), "in a checksum": [*range(8, 12), *range(12 + length, 16 + length)]}
found = {}
print("changed byte       files   error   other ids   same ids")
for name, places in parts.items():
    seen = [outcome(path, data, at, right) for at in places]
    found[name] = [seen.count(each) for each in ("error", "other", "same")]
    print(f"{name:<18} {len(seen):<7} {found[name][0]:<7} {found[name][1]:<11} {found[name][2]}")
sys.exit(found != {"in a record": [20, 200, 0], "in a checksum": [0, 0, 8]})
END
"$work/venv/bin/python" "$work/try.py" "$work"
