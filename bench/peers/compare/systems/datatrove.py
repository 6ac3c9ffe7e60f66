# SPDX-License-Identifier: MIT
"""datatrove's reader of its token files, through the DataLoader of torch."""
import os

from systems import _common

NAME = "datatrove"
PACKAGES = ["numpy", "torch", "datatrove"]
ORDERS = ("sequential", "own")
DISJOINT = True
ROWS = {"datatrove/0": {}, "datatrove/2+persistent": {"workers": 2}}


def about():
    from importlib.metadata import version
    return (f"datatrove {version('datatrove')}; DatatroveFileDataset without positions; windows of S + 1 tokens that "
            f"share none, so one prediction of each window is lost; random order: torch's RandomSampler, since "
            f"datatrove shuffles only when it writes; it has no state, the program counts batches")


def convert(tokens, folder):
    # A .ds file is the tokens and nothing else. Its .index, of document ends, is read only for positions.
    _common.convert(tokens, folder, lambda new: _common.link(tokens, os.path.join(new, "tokens.ds")))


class Loader(_common.Epochs):
    def __init__(self, tokens, path, order, rank, world, resume, workers):
        import torch
        from datatrove.utils.dataset import DatatroveFileDataset
        self._stride, self._torch = tokens.rows * world, torch
        data = DatatroveFileDataset(path, tokens.seq_len, token_size=tokens.width)
        self._shuffled, self._length = order == "own", len(data)
        self._sampler = _common.Batches(range(len(data)), tokens.rows, rank, world)
        more = {"num_workers": workers, "persistent_workers": True} if workers else {}
        super().__init__(torch.utils.data.DataLoader(data, batch_sampler=self._sampler, **more), resume or 0)

    def begin(self):
        epoch = self.batches // len(self._sampler)
        done = self.batches % len(self._sampler)
        if self._shuffled:
            # An epoch is a permutation of all windows. Its last batch, which they do not fill, is dropped, as
            # DataLoader(shuffle=True, drop_last=True) does.
            seeded = self._torch.Generator().manual_seed(epoch)
            self._sampler.order = self._torch.randperm(self._length, generator=seeded).tolist()
            self._sampler.position, self._sampler.left = done * self._stride, len(self._sampler) - done
        else:
            self._sampler.position = self.batches * self._stride

    def next(self):
        batch = self.take()["input_ids"]
        return batch[:, :-1], batch[:, 1:]

    def state(self):
        return self.batches


def open(tokens, folder, *, order, rank=0, world=1, resume=None, workers=0):
    path = os.path.join(_common.place(tokens, folder), "tokens.ds")
    return Loader(tokens, path, order, rank, world, resume, workers)
