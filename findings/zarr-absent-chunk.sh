#!/bin/sh
# SPDX-License-Identifier: MIT
# zarr-absent-chunk.sh: a chunk file that is missing from a Zarr array is read as zeros, that is, as token 0.
#
# zarr 3.1.6, tensorstore 0.1.86, NumPy 2.4.6. An array of 100 ids in four chunks was written whole, and then one of the
# four files is gone, as after a copy that was interrupted or a lifecycle rule of a bucket. One would expect an error,
# since every chunk was written. An absent chunk means the fill value in this format, and the fill value of integers is
# 0 unless it was set. So 25 ids are 0, which is a word or a sign in many vocabularies, and no reader says so: the
# metadata does not tell which chunks were written, because a chunk of zeros only is not written at all. A chunk that is
# cut short is an error, by contrast. zarr 3.4.2 (run with Python 3.12) has the setting "array.read_missing_chunks";
# with False it raises ChunkNotFoundError, but the default is True, and 3.1.6 ignores it. Output seen, ids 48 to 53, of
# which the last four were in the lost chunk:
#
#   reader                                  ids
#   before                                  49 50 51 52 53 54
#   zarr                                    49 50 0 0 0 0
#   zarr, read_missing_chunks=False         49 50 0 0 0 0
#   tensorstore                             49 50 0 0 0 0
#   files of an array of 100 zeros          zarr.json
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check zarr==3.1.6 tensorstore==0.1.86 numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys
from pathlib import Path

import numpy as np
import tensorstore
import zarr

work = Path(sys.argv[1])
path = work / "ids.zarr"
part = slice(48, 54)


def by_zarr():
    return zarr.open_array(path, mode="r")[part]


def by_tensorstore():
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}
    return tensorstore.open(spec).result()[part].read().result()


ids = zarr.create_array(path, shape=(100,), chunks=(25,), dtype="uint16")
ids[:] = np.arange(1, 101)
found = {"before": by_zarr()}
(path / "c" / "2").unlink()
found["zarr"] = by_zarr()
with zarr.config.set({"array.read_missing_chunks": False}):
    found["zarr, read_missing_chunks=False"] = by_zarr()
found["tensorstore"] = by_tensorstore()
zeros = zarr.create_array(work / "zeros.zarr", shape=(100,), chunks=(25,), dtype="uint16")
zeros[:] = 0
files = [file.name for file in (work / "zeros.zarr").rglob("*")]

print(f"{'reader':39} ids")
for reader, values in found.items():
    print(f"{reader:39}", *values.tolist())
print(f"{'files of an array of 100 zeros':39}", *files)

(path / "c" / "1").write_bytes(b"cut")
try:
    zarr.open_array(path, mode="r")[25:50]
except RuntimeError:
    pass
else:
    sys.exit(1)
right, lost = [49, 50, 51, 52, 53, 54], [49, 50, 0, 0, 0, 0]
sys.exit([values.tolist() for values in found.values()] != [right, lost, lost, lost] or files != ["zarr.json"])
END
"$work/venv/bin/python" "$work/try.py" "$work"
