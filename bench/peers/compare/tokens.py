# SPDX-License-Identifier: MIT
"""The tokens that all systems read, their windows, and the reference that a delivered row is compared with.

Only `array()` needs NumPy, so that the rest works in a Python without any package.
"""
import array
import json
import mmap
import os
import random
import zlib

ORDER_MOST = 1 << 20  # windows in the list of random windows
CODES = {2: "H", 4: "I"}


class Tokens:
    """A flat file of unsigned little-endian tokens, without a header.

    path     the flat file
    width    bytes per token, 2 or 4
    count    number of tokens
    seq_len  tokens of a row (S). A window has S + 1 tokens: inputs are its first S, targets its last S
    rows     rows of a batch
    work     folder for converted copies; it is removed at the end
    name     the tokmap dataset of the same tokens: what tokmap itself opens
    eod      the token at the end of each document, or None
    key      names the converted copies, in a folder for these tokens alone; None: they are named after the file
    """

    def __init__(self, path, width, count, seq_len, rows, work, name=None, eod=None, key=None):
        if width not in CODES:
            raise ValueError(f"a token has 2 or 4 bytes, not {width}")
        self.path, self.width, self.count = path, int(width), int(count)
        self.seq_len, self.rows, self.work, self.name, self.eod = int(seq_len), int(rows), work, name, eod
        self.key = key

    def to_json(self):
        return json.dumps(self.__dict__)

    @classmethod
    def from_json(cls, text):
        return cls(**json.loads(text))

    @property
    def dtype(self):
        """The NumPy type of the file, as a text."""
        return {2: "<u2", 4: "<u4"}[self.width]

    def array(self):
        """All tokens, as a np.memmap that is read-only."""
        import numpy
        return numpy.memmap(self.path, dtype=self.dtype, mode="r", shape=(self.count,))

    def windows(self, disjoint=False):
        """The number of windows. Window i begins at token i * S, and its last target is the first input of the next
        one. With `disjoint` it begins at token i * (S + 1), as some systems cut their data."""
        return self.count // (self.seq_len + 1) if disjoint else max(0, (self.count - 1) // self.seq_len)

    def order_path(self):
        """A file of 64-bit window numbers: all windows in a random order, or 2^20 of them if there are more. Makes it
        if it does not exist. Every system whose ORDERS contain `list` delivers exactly this list."""
        path = os.path.join(self.work, "windows.list")
        if not os.path.exists(path):
            numbers, generator = range(self.windows()), random.Random(1)
            with open(path + ".new", "wb") as file:
                array.array("q", generator.sample(numbers, min(len(numbers), ORDER_MOST))).tofile(file)
            os.rename(path + ".new", path)
        return path

    def order(self):
        """The list in that file as an array.array; numpy.frombuffer(tokens.order(), "q") makes no copy."""
        path = self.order_path()
        numbers = array.array("q")
        with open(path, "rb") as file:
            numbers.fromfile(file, os.path.getsize(path) // 8)
        return numbers

    # ---- the reference ----

    def first_windows(self, order, rows, disjoint=False):
        """The numbers of the first `rows` windows in the order `sequential` or `list`, which starts again at its
        end."""
        numbers = range(self.windows(disjoint)) if order == "sequential" else self.order()
        return [numbers[i % len(numbers)] for i in range(rows)]

    def row_sums(self, windows, disjoint=False):
        """What measure.row_sums() returns for rows that are exactly these windows."""
        step, sums = self.seq_len + (1 if disjoint else 0), []
        with open(self.path, "rb") as file:
            for number in windows:
                file.seek(number * step * self.width)
                tokens = array.array(CODES[self.width], file.read((self.seq_len + 1) * self.width))
                wide = array.array("q", tokens).tobytes()
                sums.append((zlib.crc32(wide[:-8]), zlib.crc32(wide[8:])))
        return sums

    def find(self, row, stitched=False):
        """The index of the token at which these S + 1 tokens (an array.array "q") first occur, or -1. With `stitched`
        the row may continue in another document after each `eod`: then each of its pieces has to occur."""
        if stitched and self.eod in row[:-1]:
            ends = sorted({i + 1 for i, token in enumerate(row) if token == self.eod} | {len(row)})
            found = [self.find(row[first:end]) for first, end in zip([0, *ends], ends)]
            return -1 if -1 in found else found[0]
        try:
            wanted = array.array(CODES[self.width], row).tobytes()
        except (OverflowError, ValueError):
            return -1  # an id that no token of the file can have
        with open(self.path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            at = mapped.find(wanted)
            while at >= 0 and at % self.width:
                at = mapped.find(wanted, at + 1)
            return at // self.width if at >= 0 else -1
