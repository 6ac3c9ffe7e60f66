# SPDX-License-Identifier: MIT
"""OLMo-core's NumpyFSLDataset and its data loader."""
import os

from systems import _common

NAME = "olmo"
PACKAGES = ["numpy", "torch", "ai2-olmo-core"]
ORDERS = ("sequential", "own")
DISJOINT = True
VENV = True  # it requires versions of torch that others exclude
ROWS = {"OLMo-core/0": {}, "OLMo-core/0, 4 threads": {"threads": 4}, "OLMo-core/2": {"workers": 2}}


def about():
    from importlib.metadata import version
    return (f"ai2-olmo-core {version('ai2-olmo-core')}; NumpyFSLDataset and NumpyFSLDataLoader, with num_threads=0 or "
            "4 (what it takes by default without workers); rows of S + 1 tokens, since it makes S - 1 targets of S "
            "tokens; they share none, so one prediction of each is lost; random order: a permutation of each epoch "
            "in a file of indices")


def convert(tokens, folder):
    _common.convert(tokens, folder, lambda new: _common.link(tokens, os.path.join(new, "tokens.npy")))


class Loader(_common.Epochs):
    """`_loader` is OLMo-core's; begin() is what its trainer does before an epoch."""

    def __init__(self, tokens, path, order, rank, world, resume, workers, threads):
        import numpy
        from olmo_core.data import DataCollator, NumpyFSLDataset
        from olmo_core.data.data_loader import NumpyFSLDataLoader
        last = (1 << 8 * tokens.width) - 1
        data = NumpyFSLDataset(os.path.join(path, "tokens.npy"), sequence_length=tokens.seq_len + 1,
                               pad_token_id=last, eos_token_id=last if tokens.eod is None else tokens.eod,
                               vocab_size=last + 1, dtype=numpy.uint16 if tokens.width == 2 else numpy.uint32)
        data.work_dir = os.path.join(path, "work")
        data.prepare()
        loader = NumpyFSLDataLoader(data, collator=DataCollator(pad_token_id=data.pad_token_id), seed=1,
                                    global_batch_size=tokens.rows * world * (tokens.seq_len + 1),
                                    work_dir=data.work_dir, shuffle=order == "own", num_threads=threads,
                                    num_workers=workers, dp_world_size=world, dp_rank=rank, fs_local_rank=0)
        super().__init__(loader)
        self._epoch = 1
        if resume is not None:
            loader.load_state_dict(resume)
            self._epoch = resume["epoch"]

    def begin(self):
        loader = self._loader
        if loader.batches_processed == loader.total_batches:
            loader.reset()
            self._epoch += 1
        loader.reshuffle(self._epoch)

    def next(self):
        batch = self.take()["input_ids"]
        return batch[:, :-1], batch[:, 1:]

    def state(self):
        return self._loader.state_dict()

    def close(self):
        iterator, self._iterator, self._loader = self._iterator, None, None
        if iterator is not None:
            iterator.close()


def open(tokens, folder, *, order, rank=0, world=1, resume=None, workers=0, threads=0):
    return Loader(tokens, _common.place(tokens, folder), order, rank, world, resume, workers, threads)
