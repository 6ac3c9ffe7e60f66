# SPDX-License-Identifier: MIT
"""tokmap in programs with torch: its loader with new tensors for each batch, which is what a plain loop gets."""
from systems import tokmap

NAME = "tokmap_dataset"
PACKAGES = ["numpy", "torch"]
ROWS = {"tokmap, new torch tensors": {}}
ORDERS = tokmap.ORDERS


def about():
    import tokmap
    import torch
    return f"tokmap {tokmap.__version__}, torch {torch.__version__}; int64 tensors"


class Loader(tokmap.Loader):
    """The loader without out=, whose batches are new tensors."""

    def next(self):
        batch = self._loader.next()
        return batch.inputs, batch.targets


def open(tokens, folder, *, order, rank=0, world=1, resume=None):
    return Loader(tokens, order, rank, world, resume, None, {}, {"framework": "torch"})
