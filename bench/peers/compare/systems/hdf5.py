# SPDX-License-Identifier: MIT
"""HDF5: the tokens as one dataset, read with h5py."""
import os

from systems import _common

NAME = "hdf5"
PACKAGES = ["numpy", "h5py"]
ORDERS = ("sequential", "list")
ROWS = {"HDF5": {}, "HDF5, chunks": {"chunks": True}}
CHUNK = 1 << 15  # tokens


def about():
    import h5py
    return (f"h5py {h5py.__version__}, HDF5 {h5py.version.hdf5_version}; one contiguous dataset, or chunks of {CHUNK} "
            f"tokens without compression; read_direct() of each window into one array of tokens, then int64")


def convert(tokens, folder):
    def write(new):
        import h5py
        data = tokens.array()
        with h5py.File(os.path.join(new, "tokens.h5"), "w", libver="latest") as file:
            for name, chunks in (("whole", None), ("chunks", (min(CHUNK, len(data)),))):
                target = file.create_dataset(name, data.shape, data.dtype, chunks=chunks)
                for at in range(0, len(data), 1 << 24):
                    target[at:at + (1 << 24)] = data[at:at + (1 << 24)]
    _common.convert(tokens, folder, write)


class Loader:
    def __init__(self, tokens, path, order, rank, world, position, chunks):
        import h5py
        import numpy
        self._file = h5py.File(path, "r")
        self._data = self._file["chunks" if chunks else "whole"]
        self._length, self._stride, self._position = tokens.seq_len, tokens.rows * world, position
        self._batches = _common.Batches(_common.order_of(tokens, order), tokens.rows, rank, world)
        self._rows = numpy.empty((tokens.rows, tokens.seq_len + 1), tokens.dtype)

    def next(self):
        length = self._length
        for row, number in enumerate(self._batches.at(self._position)):
            self._data.read_direct(self._rows[row], slice(number * length, number * length + length + 1))
        self._position += self._stride
        found = self._rows.astype("<i8")
        return found[:, :-1], found[:, 1:]

    def state(self):
        """The place in the order, which the program counts itself: HDF5 is only the format."""
        return self._position

    def close(self):
        self._file.close()


def open(tokens, folder, *, order, rank=0, world=1, resume=None, chunks=False):
    path = os.path.join(_common.place(tokens, folder), "tokens.h5")
    return Loader(tokens, path, order, rank, world, resume or 0, chunks)
