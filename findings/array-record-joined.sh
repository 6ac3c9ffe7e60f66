#!/bin/sh
# SPDX-License-Identifier: MIT
# array-record-joined.sh: an ArrayRecord file that was joined to another has half of the records; half of a file has
# none.
#
# array_record 0.8.6. Two files of ten records are joined by cat, as one joins the parts of an upload, and a copy of one
# stopped in the middle. One would expect 20 records or an error for the first, and an error for the second. The reader
# uses the list of places at the end of a file, and they count from the beginning of their own file. So the joined file
# has ten records, those of the first file if records of both have equal lengths, and nothing says that ten were left
# out. Of the file that stops at a multiple of 64 KiB, num_records() is 0 and read_all() an empty list, without an
# exception; only ok() is False. Where it stops elsewhere, read_all() raises an error. So a loop over a folder of shards
# can train on less data than it was given. Output seen:
#
#   file      num_records()   read_all()            ok()
#   whole     10              10, from record 000    True
#   joined    10              10, from record 000    True
#   half      0               0                     False
#   less 8    0               RuntimeError          False
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check array_record==0.8.6

cat >"$work/try.py" <<'END'
import sys
from pathlib import Path

from array_record.python import array_record_module

work = Path(sys.argv[1])


def written(name, first):
    """Writes ten records. Returns the bytes of the file."""
    writer = array_record_module.ArrayRecordWriter(str(work / name), "group_size:1")
    for i in range(first, first + 10):
        writer.write(b"record %03d" % i)
    writer.close()
    return (work / name).read_bytes()


def read(content):
    (work / "copy").write_bytes(content)
    reader = array_record_module.ArrayRecordReader(str(work / "copy"))
    try:
        records = reader.read_all()
    except RuntimeError:
        return reader.num_records(), "RuntimeError", reader.ok()
    seen = f"{len(records)}, from {records[0].decode()}" if records else "0"
    return reader.num_records(), seen, reader.ok()


one, two = written("one", 0), written("two", 100)
files = {"whole": one, "joined": one + two, "half": one[:len(one) // 2], "less 8": one[:-8]}
print("file      num_records()   read_all()            ok()")
found = []
for name, content in files.items():
    found.append(read(content))
    print(f"{name:9} {found[-1][0]:<15} {found[-1][1]:21} {found[-1][2]}")
ten = (10, "10, from record 000", True)
sys.exit(found != [ten, ten, (0, "0", False), (0, "RuntimeError", False)])
END
"$work/venv/bin/python" "$work/try.py" "$work"
