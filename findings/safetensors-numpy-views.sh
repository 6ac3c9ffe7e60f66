#!/bin/sh
# SPDX-License-Identifier: MIT
# safetensors-numpy-views.sh: a NumPy view that is saved with safetensors comes back with other elements.
#
# safetensors 0.8.0, NumPy 2.4.6. safetensors.numpy.save() takes a dict of arrays. One would expect that a view with
# strides is stored with its elements, as numpy.save() does, or that it is refused, as safetensors.torch refuses tensors
# that are not contiguous. The shape and the type are stored, and then as many bytes of the underlying buffer as the
# shape needs, from the first element of the view on, whatever its strides are. So every second id becomes the first
# half of the ids, a transposed matrix is not transposed, and two columns of a matrix become the beginnings of its rows,
# run together. There is no error, and the file is valid. A slice of successive elements is right;
# numpy.ascontiguousarray() before save() makes the others right. Output seen, for ids = 0 to 11, and as a matrix of 3
# rows of 4:
#
#   view                       its elements            loaded
#   ids[6:]                    6 7 8 9 10 11           6 7 8 9 10 11
#   ids[::2]                   0 2 4 6 8 10            0 1 2 3 4 5
#   matrix.T                   0 4 8 1 5 9 2 6 10 ...  0 1 2 3 4 5 6 7 8 ...
#   matrix[:, 1:3]             1 2 5 6 9 10            1 2 3 4 5 6
#   ascontiguousarray          0 2 4 6 8 10            0 2 4 6 8 10
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check safetensors==0.8.0 numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys

import numpy as np
from safetensors.numpy import load, save

ids = np.arange(12, dtype=np.int32)
matrix = ids.reshape(3, 4)
views = {
    "ids[6:]": ids[6:],
    "ids[::2]": ids[::2],
    "matrix.T": matrix.T,
    "matrix[:, 1:3]": matrix[:, 1:3],
    "ascontiguousarray": np.ascontiguousarray(ids[::2]),
}


def text(array):
    values = array.flatten().tolist()
    return " ".join(map(str, values[:9])) + (" ..." if len(values) > 9 else "")


print(f"{'view':26} {'its elements':23} loaded")
same = []
for name, view in views.items():
    loaded = load(save({"x": view}))["x"]
    assert loaded.shape == view.shape and loaded.dtype == view.dtype
    same.append(bool((loaded == view).all()))
    print(f"{name:26} {text(view):23} {text(loaded)}")
sys.exit(same != [True, False, False, False, True])
END
"$work/venv/bin/python" "$work/try.py"
