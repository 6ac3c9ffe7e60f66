# SPDX-License-Identifier: MIT
"""The way of nanoGPT: a function that maps the file, draws random offsets, and stacks the rows."""
NAME = "nanogpt"
PACKAGES = ["numpy", "torch"]
ORDERS = ("own",)
REPLACEMENT = True  # it draws windows with replacement
ROWS = {"nanoGPT get_batch": {}}


def about():
    import numpy
    import torch
    return (f"the steps of nanoGPT's get_batch(), torch {torch.__version__}, NumPy {numpy.__version__}: it maps the "
            f"file again for each batch, which keeps memory small, and draws with replacement from all offsets, not "
            f"only from the beginnings of windows; it has no state to resume from")


class Loader:
    def __init__(self, tokens, rank):
        import numpy
        import torch
        self._numpy, self._torch, self._tokens = numpy, torch, tokens
        self._random = torch.Generator().manual_seed(1337 + rank)
        self._pin = torch.cuda.is_available()

    def next(self):
        torch, length = self._torch, self._tokens.seq_len
        data = self._tokens.array()
        starts = torch.randint(len(data) - length, (self._tokens.rows,), generator=self._random)
        inputs = torch.stack([self._tensor(data[at:at + length]) for at in starts])
        targets = torch.stack([self._tensor(data[at + 1:at + 1 + length]) for at in starts])
        return (inputs.pin_memory(), targets.pin_memory()) if self._pin else (inputs, targets)

    def _tensor(self, part):
        return self._torch.from_numpy(part.astype(self._numpy.int64))

    def state(self):
        return None

    def close(self):
        pass


def open(tokens, folder, *, order, rank=0, world=1, resume=None):
    return Loader(tokens, rank)
