# SPDX-License-Identifier: MIT
"""The DataLoader of torch over an np.memmap."""
import os
import pickle

from report import Absent
from systems import _common

NAME = "torch"
PACKAGES = ["numpy", "torch"]
ORDERS = ("sequential", "list")
MANY = max(4, os.cpu_count() or 4)  # the row of N workers

ROWS = {
    "torch/0": {},
    "torch/0, __getitems__": {"mode": "getitems"},
    "torch/0, whole batches": {"mode": "batch"},
    "torch/0, whole batches, MADV_RANDOM": {"mode": "batch", "random": True},
    "torch/1+persistent": {"workers": 1, "persistent": True},
    "torch/2": {"workers": 2},
    "torch/2+persistent": {"workers": 2, "persistent": True},
    "torch/2+persistent, pinned": {"workers": 2, "persistent": True, "pin": True},
    "torch/2+persistent, whole batches": {"workers": 2, "persistent": True, "mode": "batch"},
    f"torch/{MANY}+persistent": {"workers": MANY, "persistent": True},
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


class Lists(Windows):
    """The same, which is asked for all items of a batch at once and returns a list of them."""

    def __getitems__(self, numbers):
        return list(gather(self, numbers))


class Whole(Windows):
    """The same for a DataLoader that does not collate (batch_size=None): an item is a whole batch."""

    def __getitem__(self, numbers):
        return gather(self, numbers)


def gather(dataset, numbers):
    """These windows, as one tensor."""
    import numpy
    import torch
    data, length = dataset.mapped(), dataset.tokens.seq_len
    found = numpy.empty((len(numbers), length + 1), "<i8")
    for row, number in enumerate(numbers):
        found[row] = data[number * length:number * length + length + 1]
    return torch.from_numpy(found)


KINDS = {"item": Windows, "getitems": Lists, "batch": Whole}


class Loader(_common.Epochs):
    def __init__(self, tokens, order, rank, world, resume, mode, workers, persistent, pin, random, more):
        import torch
        self.dataset = KINDS[mode](tokens, random)
        self._workers, self._stride = workers, tokens.rows * world
        self.sampler = _common.Batches(_common.order_of(tokens, order), tokens.rows, rank, world)
        chosen = {"num_workers": workers, "pin_memory": pin, **more}
        if workers:
            chosen["persistent_workers"] = persistent
        if mode == "batch":
            chosen.update(batch_size=None, sampler=self.sampler)
        else:
            chosen.update(batch_sampler=self.sampler)
        super().__init__(torch.utils.data.DataLoader(self.dataset, **chosen), resume or 0)

    def begin(self):
        # Workers ask the sampler for batches ahead of time, but never across the end of an epoch.
        self.sampler.position = self.batches * self._stride

    def next(self):
        batch = self.take()
        return batch[:, :-1], batch[:, 1:]

    def state(self):
        """The number of delivered batches: what programs save that do without torchdata's StatefulDataLoader."""
        return self.batches

    def pickled(self):
        return len(pickle.dumps(self.dataset)) if self._workers else None


def open(tokens, folder, *, order, rank=0, world=1, resume=None, mode="item", workers=0, persistent=False, pin=False,
         random=False, **more):
    """mode: "item", "getitems", or "batch"; more: options of torch.utils.data.DataLoader, such as prefetch_factor and
    in_order."""
    import torch
    if pin and not torch.cuda.is_available():
        raise Absent("torch pins memory only where there is a CUDA device")
    return Loader(tokens, order, rank, world, resume, mode, workers, persistent, pin, random, more)
