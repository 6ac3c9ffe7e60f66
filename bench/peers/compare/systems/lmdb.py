# SPDX-License-Identifier: MIT
"""LMDB: a value for each window."""
import os
import struct

from systems import _common

NAME = "lmdb"
PACKAGES = ["numpy", "lmdb"]
ORDERS = ("sequential", "list")
ROWS = {"LMDB": {}}
OPENED = {"readonly": True, "lock": False, "readahead": False, "meminit": False}


def about():
    import lmdb
    return (f"py-lmdb {lmdb.__version__}, LMDB {'.'.join(map(str, lmdb.version()))}; a value for each window, with "
            f"keys of 8 bytes; readahead=False, lock=False, values as views (buffers=True) in one read transaction")


def key(number):
    return struct.pack(">Q", number)


def convert(tokens, folder):
    def write(new):
        import lmdb
        pages = (tokens.seq_len + 1) * tokens.width // 4096 + 2
        size = (tokens.windows() * pages + 4096) * 4096 * 2
        with lmdb.open(os.path.join(new, "tokens.lmdb"), map_size=size, subdir=False, sync=False) as database:
            with database.begin(write=True) as transaction:
                cursor = transaction.cursor()
                cursor.putmulti(((key(number), window.tobytes()) for number, window in
                                 enumerate(_common.windows(tokens))), append=True)
            database.sync(True)
    _common.convert(tokens, folder, write)


class Loader:
    def __init__(self, tokens, path, order, rank, world, position):
        import lmdb
        import numpy
        self._numpy, self._tokens = numpy, tokens
        self._database = lmdb.open(path, subdir=False, max_readers=1, **OPENED)
        self._transaction = self._database.begin(buffers=True)
        self._stride, self._position = tokens.rows * world, position
        self._batches = _common.Batches(_common.order_of(tokens, order), tokens.rows, rank, world)

    def next(self):
        numpy, tokens, get = self._numpy, self._tokens, self._transaction.get
        found = numpy.empty((tokens.rows, tokens.seq_len + 1), "<i8")
        for row, number in enumerate(self._batches.at(self._position)):
            value = get(key(number))
            if value is None:
                raise RuntimeError(f"window {number} is not in the database")
            found[row] = numpy.frombuffer(value, tokens.dtype)
        self._position += self._stride
        return found[:, :-1], found[:, 1:]

    def state(self):
        """The place in the order, which the program counts itself: LMDB is only the format."""
        return self._position

    def close(self):
        self._transaction.abort()
        self._database.close()


def open(tokens, folder, *, order, rank=0, world=1, resume=None):
    path = os.path.join(_common.place(tokens, folder), "tokens.lmdb")
    return Loader(tokens, path, order, rank, world, resume or 0)
