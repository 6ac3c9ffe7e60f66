#!/bin/sh
# SPDX-License-Identifier: MIT
# h5py-clips-ids.sh: HDF5 clips ids that do not fit, Zarr and NumPy wrap them, and only TensorStore raises an error.
#
# h5py 3.16.0, zarr 3.1.6, tensorstore 0.1.86, NumPy 2.4.6. An int64 array of ids is written to an array of uint16,
# which has no room for 70000 and -1. One would expect an error, or else the same from all: these are the formats
# between which tokens are moved. h5py clips to the nearest value, so all ids above 65535 become 65535, and padding of
# -1 becomes id 0. zarr and NumPy keep the low 16 bits, so 70000 becomes the valid id 4464, and -1 becomes 65535.
# TensorStore alone refuses. So the same wrong cast gives different wrong tokens, and padding is the token 0 in one file
# and 65535 in another. A Python list of the same numbers is refused by h5py, so a small test with a list does not show
# it. Output seen:
#
#   written to uint16            1 70000 -1
#   h5py, d[:] = array           1 65535 0
#   h5py, create_dataset         1 65535 0
#   h5py, create_dataset, list   OverflowError
#   zarr                         1 4464 65535
#   NumPy, astype                1 4464 65535
#   TensorStore                  TypeError
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check h5py==3.16.0 zarr==3.1.6 tensorstore==0.1.86 \
    numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys
from pathlib import Path

import h5py
import numpy as np
import tensorstore
import zarr

work = Path(sys.argv[1])
ids = np.array([1, 70000, -1])
file = h5py.File(work / "ids.h5", "w")


def assigned(target):
    target[:] = ids
    return target[:]


def by_tensorstore():
    spec = {"driver": "zarr3", "kvstore": {"driver": "memory"}}
    array = tensorstore.open(spec, create=True, dtype=tensorstore.uint16, shape=[3]).result()
    array[:] = ids
    return array.read().result()


ways = {
    "h5py, d[:] = array": lambda: assigned(file.create_dataset("a", shape=3, dtype="uint16")),
    "h5py, create_dataset": lambda: file.create_dataset("b", data=ids, dtype="uint16")[:],
    "h5py, create_dataset, list": lambda: file.create_dataset("c", data=ids.tolist(), dtype="uint16")[:],
    "zarr": lambda: assigned(zarr.create_array(work / "ids.zarr", shape=(3,), dtype="uint16")),
    "NumPy, astype": lambda: ids.astype("uint16"),
    "TensorStore": by_tensorstore,
}
print(f"{'written to uint16':28}", *ids)
found = []
for name, way in ways.items():
    try:
        found.append(" ".join(map(str, way())))
    except (OverflowError, TypeError) as problem:
        found.append(type(problem).__name__)
    print(f"{name:28} {found[-1]}")
clipped, wrapped = "1 65535 0", "1 4464 65535"
sys.exit(found != [clipped, clipped, "OverflowError", wrapped, wrapped, "TypeError"])
END
"$work/venv/bin/python" "$work/try.py" "$work"
