# SPDX-License-Identifier: MIT
"""tokmap in programs with torch: its map-style dataset in a DataLoader, for programs that keep their sampler and their
workers, and its loader with new tensors for each batch, which is what a plain loop gets."""
import pickle

from systems import _common, tokmap

NAME = "tokmap_dataset"
PACKAGES = ["numpy", "torch"]
ROWS = {"tokmap, new torch tensors": {"plain": True}, "tokmap Dataset in torch/0": {},
        "tokmap Dataset in torch/2+persistent": {"workers": 2}}
ORDERS = ("sequential", "list", "own")


def orders_of(options):
    return ("sequential", "own") if options.get("plain") else ("sequential", "list")


def about():
    import tokmap
    import torch
    return (f"tokmap {tokmap.__version__}, torch {torch.__version__}; int64 tensors; the Dataset has a batch sampler "
            f"and collate_fn=tokmap.collate")


class Loader(_common.Epochs):
    def __init__(self, tokens, order, rank, world, resume, workers):
        import tokmap
        import torch
        # With batches of one row the dataset has every window; the sampler makes the batches.
        run = tokmap.Run(data=tokens.name, seq_len=tokens.seq_len, batch=1, order="sequential", passes=1)
        self.dataset, self._workers = run.dataset(dtype=torch.int64), workers
        self._stride = tokens.rows * world
        self._sampler = _common.Batches(_common.order_of(tokens, order), tokens.rows, rank, world)
        super().__init__(torch.utils.data.DataLoader(self.dataset, batch_sampler=self._sampler, num_workers=workers,
                                                     persistent_workers=bool(workers), collate_fn=tokmap.collate),
                         resume or 0)

    def begin(self):
        self._sampler.position = self.batches * self._stride

    def next(self):
        batch = self.take()
        return batch.inputs, batch.targets

    def state(self):
        return self.batches

    def pickled(self):
        return len(pickle.dumps(self.dataset)) if self._workers else None


class Plain(tokmap.Loader):
    """The loader without out=, whose batches are new tensors."""

    def next(self):
        batch = self._loader.next()
        return batch.inputs, batch.targets


def open(tokens, folder, *, order, rank=0, world=1, resume=None, workers=0, plain=False):
    if plain:
        return Plain(tokens, order, rank, world, resume, None, {}, {"framework": "torch"})
    return Loader(tokens, order, rank, world, resume, workers)
