# SPDX-License-Identifier: MIT
"""Grain: a MapDataset over an np.memmap."""
from systems import _common

NAME = "grain"
PACKAGES = ["numpy", "grain"]
ORDERS = ("sequential", "list", "own")
ROWS = {"Grain, 0 threads": {"threads": 0}, "Grain, 16 threads": {"threads": 16}}


def about():
    import grain
    return (f"grain {grain.__version__}; MapDataset.source().shuffle().repeat().batch().to_iter_dataset(); 0 threads "
            "is what its documentation advises for data in memory, 16 its default; the list of windows is the "
            "source, in its own order it shuffles; with 0.2.18, the shuffle of 65,537 windows delivers one of them twice "
            "and one never")


class Source:
    """A random access data source: element i is window i of the order."""

    def __init__(self, tokens, order):
        self._data, self._order, self._length = tokens.array(), order, tokens.seq_len

    def __len__(self):
        return len(self._order)

    def __getitem__(self, number):
        first = self._order[number] * self._length
        return self._data[first:first + self._length + 1]


def rows_of(windows):
    import numpy
    return numpy.stack(windows).astype("<i8")


class Loader:
    def __init__(self, tokens, order, rank, world, resume, threads):
        import grain
        source = Source(tokens, tokens.order() if order == "list" else range(tokens.windows()))
        data = grain.MapDataset.source(source)
        if order == "own":
            data = data.shuffle(seed=1)
        data = data.repeat(None).batch(tokens.rows, drop_remainder=True, batch_fn=rows_of)
        if world > 1:
            data = data[rank::world]
        options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=500 if threads else 0)
        self._iterator = iter(data.to_iter_dataset(options))
        if resume is not None:
            self._iterator.set_state(resume)

    def next(self):
        batch = next(self._iterator)
        return batch[:, :-1], batch[:, 1:]

    def state(self):
        return self._iterator.get_state()

    def close(self):
        self._iterator.close()


def open(tokens, folder, *, order, rank=0, world=1, resume=None, threads=0):
    return Loader(tokens, order, rank, world, resume, threads)
