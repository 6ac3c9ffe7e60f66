# SPDX-License-Identifier: MIT
"""What the systems share: where their converted copies are, and which windows belong to which batch."""
import hashlib
import itertools
import os
import shutil


def place(tokens, folder, *more):
    """The path of a system's converted copy of these tokens. Its name changes with the file, its contents as far as size
    and time say, the row length, and `more`, so that a folder that is kept never gives the copy of other tokens. With
    tokens.key the name is that of the key, whatever becomes of the file."""
    real = os.path.realpath(tokens.path)
    found = os.stat(real)
    key = tokens.key or (real, found.st_ino, found.st_size, found.st_mtime_ns, tokens.width, tokens.count,
                         tokens.seq_len, tokens.eod)
    return os.path.join(folder, hashlib.sha256(repr((key, more)).encode()).hexdigest()[:16])


def convert(tokens, folder, write, *more):
    """Calls write(new) for a new folder, which then gets the name place(tokens, folder, *more) at once: a copy that was
    not finished never has that name. Does nothing if the copy exists. Returns its path."""
    path = place(tokens, folder, *more)
    if not os.path.isdir(path):
        new = f"{path}.{os.getpid()}.new"
        shutil.rmtree(new, ignore_errors=True)
        os.makedirs(new)
        try:
            write(new)
            os.rename(new, path)
        except OSError:
            if not os.path.isdir(path):  # another process was first
                raise
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return path


def windows(tokens):
    """All windows of S + 1 tokens, one after another, as arrays that share the memory of the file."""
    data, step = tokens.array(), tokens.seq_len
    for number in range(tokens.windows()):
        yield data[number * step:number * step + step + 1]


def order_of(tokens, order):
    """The window numbers of an epoch in the order `sequential` or `list`."""
    return range(tokens.windows()) if order == "sequential" else tokens.order()


def orders_without_workers(options):
    """Each worker delivers other parts of the data, so with workers their order is not that of the data."""
    return ("own",) if options.get("workers") else ("sequential", "own")


class Batches:
    """The window numbers of each batch of one rank, as lists: a batch sampler for torch.

    A pass over it is an epoch: as many batches as the order fills. The next pass continues where that one ended, so a
    window that did not fit in its last batch comes in the first batch of the next epoch. `position` is the first row of
    the next pass, over all ranks, and `left` its number of batches, if that is not a whole epoch."""

    def __init__(self, order, rows, rank=0, world=1, position=0):
        self.order, self.rows, self.rank, self.world, self.position = order, rows, rank, world, position
        self.left = None

    def __len__(self):
        return max(1, len(self.order) // (self.rows * self.world))

    def at(self, position):
        """The window numbers of the batch whose first row, over all ranks, is at this position of the order."""
        order = self.order
        first = (position + self.rank * self.rows) % len(order)
        if first + self.rows <= len(order):
            return list(order[first:first + self.rows])
        return [order[(first + row) % len(order)] for row in range(self.rows)]

    def __iter__(self):
        for _ in range(len(self) if self.left is None else self.left):
            position = self.position
            self.position += self.rows * self.world
            yield self.at(position)


class Epochs:
    """Base of the loaders that are a torch DataLoader: takes batches from it, and begins the next epoch at its end, as
    a training loop does. It counts the batches that were delivered, in `batches`."""

    def __init__(self, loader, batches=0):
        self._loader, self._iterator, self.batches = loader, None, batches

    def take(self):
        """The next batch of the DataLoader."""
        for begun in itertools.count():
            if self._iterator is None:
                self.begin()
                self._iterator = iter(self._loader)
            batch = next(self._iterator, None)
            if batch is not None:
                self.batches += 1
                return batch
            self._iterator = None
            if begun:
                raise RuntimeError("an epoch has no batch: the data is too short for it")

    def begin(self):
        """Called before each epoch."""

    def close(self):
        iterator, self._iterator, self._loader = self._iterator, None, None
        if hasattr(iterator, "_shutdown_workers"):
            iterator._shutdown_workers()


class Streamed(Epochs):
    """Base of the loaders whose DataLoader streams records, and that have no state to resume from. Their batches are
    made by Decoded and rows_of."""

    def next(self):
        batch = self.take()
        return batch[:, :-1], batch[:, 1:]

    def state(self):
        return None


class Decoded:
    """Makes an array of the tokens of a record. Workers get it, so it is a class that pickles."""

    def __init__(self, dtype):
        self.dtype = dtype

    def __call__(self, record):
        import numpy
        return numpy.frombuffer(record["tokens"], self.dtype)


def rows_of(windows):
    """A batch of windows as int64, as one tensor."""
    import numpy
    import torch
    return torch.from_numpy(numpy.stack(windows).astype("<i8"))
