# SPDX-License-Identifier: MIT
"""np.memmap in a plain loop: what a program does that uses no loader."""
import mmap

from systems import _common

NAME = "memmap"
PACKAGES = ["numpy"]
ROWS = {"np.memmap": {}, "np.memmap, MADV_RANDOM": {"random": True}}
ORDERS = ("sequential", "list")


def about():
    import numpy
    return f"NumPy {numpy.__version__}; whole batches of int64, inputs and targets as views of one array"


class Loader:
    def __init__(self, tokens, order, rank, world, position, random):
        import numpy
        self._numpy, self._tokens = numpy, tokens
        self._data = tokens.array()
        if random:
            self._data._mmap.madvise(mmap.MADV_RANDOM)
        self._order = _common.order_of(tokens, order)
        self._position, self._rank, self._world = position, rank, world

    def next(self):
        length, rows = self._tokens.seq_len, self._tokens.rows
        data, order = self._data, self._order
        at = self._position + self._rank * rows
        found = self._numpy.empty((rows, length + 1), "<i8")
        for row in range(rows):
            first = order[(at + row) % len(order)] * length
            found[row] = data[first:first + length + 1]
        self._position += self._world * rows
        return found[:, :-1], found[:, 1:]

    def state(self):
        return self._position

    def close(self):
        self._data = None


def open(tokens, folder, *, order, rank=0, world=1, resume=None, random=False):
    return Loader(tokens, order, rank, world, resume or 0, random)
