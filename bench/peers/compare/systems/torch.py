# SPDX-License-Identifier: MIT
"""The DataLoader of torch over an np.memmap."""
from systems import _common

NAME = "torch"
PACKAGES = ["numpy", "torch"]
ORDERS = ("sequential", "list")
ROWS = {
    "torch/0": {},
    "torch/0, whole batches": {"whole": True},
    "torch/0, whole batches, MADV_RANDOM": {"whole": True, "random": True},
    "torch/2+persistent": {"workers": 2},
    "torch/2+persistent, whole batches": {"workers": 2, "whole": True},
}


def about():
    import numpy
    import torch
    return (f"torch {torch.__version__}, NumPy {numpy.__version__}; torch/W has W workers; the Dataset opens its "
            f"np.memmap in each worker, an item is a window of S + 1 tokens as int64, and inputs and targets are views "
            f"of the batch; prefetch_factor is the default, 2 batches a worker")


class Windows:
    """A map-style Dataset: items are windows. It pickles as a path, not as the tokens, and maps the file when a process
    first needs it, as torch's notes on workers advise."""

    def __init__(self, tokens, random):
        self.tokens, self.random, self.data = tokens, random, None

    def __getstate__(self):
        return {**self.__dict__, "data": None}

    def __len__(self):
        return self.tokens.windows()

    def mapped(self):
        if self.data is None:
            import mmap
            self.data = self.tokens.array()
            if self.random:
                self.data._mmap.madvise(mmap.MADV_RANDOM)
        return self.data

    def __getitem__(self, number):
        import torch
        data = self.mapped()
        length = self.tokens.seq_len
        return torch.from_numpy(data[number * length:number * length + length + 1].astype("<i8"))


class Whole(Windows):
    """The same for a DataLoader that does not collate (batch_size=None): an item is a whole batch."""

    def __getitem__(self, numbers):
        import numpy
        import torch
        data, length = self.mapped(), self.tokens.seq_len
        found = numpy.empty((len(numbers), length + 1), "<i8")
        for row, number in enumerate(numbers):
            found[row] = data[number * length:number * length + length + 1]
        return torch.from_numpy(found)


class Loader(_common.Epochs):
    def __init__(self, tokens, order, rank, world, resume, whole, workers, random):
        import torch
        self._stride = tokens.rows * world
        self.sampler = _common.Batches(_common.order_of(tokens, order), tokens.rows, rank, world)
        chosen = {"batch_size": None, "sampler": self.sampler} if whole else {"batch_sampler": self.sampler}
        super().__init__(torch.utils.data.DataLoader((Whole if whole else Windows)(tokens, random), num_workers=workers,
                                                     persistent_workers=workers > 0, **chosen), resume or 0)

    def begin(self):
        # Workers ask the sampler for batches ahead of time, but never across the end of an epoch.
        self.sampler.position = self.batches * self._stride

    def next(self):
        batch = self.take()
        return batch[:, :-1], batch[:, 1:]

    def state(self):
        """The number of delivered batches: what programs save that do without torchdata's StatefulDataLoader."""
        return self.batches


def open(tokens, folder, *, order, rank=0, world=1, resume=None, whole=False, workers=0, random=False):
    return Loader(tokens, order, rank, world, resume, whole, workers, random)
