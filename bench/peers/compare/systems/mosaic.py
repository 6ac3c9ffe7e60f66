# SPDX-License-Identifier: MIT
"""MosaicML streaming's StreamingDataset over MDS shards."""
import os

from report import Absent
from systems import _common

NAME = "mosaic"
PACKAGES = ["numpy", "torch", "mosaicml-streaming"]
ORDERS = ("sequential", "own")
VENV = True  # it requires versions of NumPy and huggingface-hub that others exclude
ROWS = {"MosaicML streaming/0": {}, "MosaicML streaming/2+persistent": {"workers": 2}}
SHARD_BYTES = 64 << 20


def about():
    import streaming
    return (f"mosaicml-streaming {streaming.__version__}; MDS shards of {SHARD_BYTES >> 20} MiB without compression, a "
            f"sample is a window of S + 1 tokens as a fixed-size ndarray, which overlaps the next by one token; "
            f"StreamingDataLoader, num_canonical_nodes=1; random order: py1e, its default")


def convert(tokens, folder):
    def write(new):
        from streaming import MDSWriter
        columns = {"tokens": f"ndarray:uint{8 * tokens.width}:{tokens.seq_len + 1}"}
        with MDSWriter(out=os.path.join(new, "tokens"), columns=columns, size_limit=SHARD_BYTES) as writer:
            for window in _common.windows(tokens):
                writer.write({"tokens": window})
    _common.convert(tokens, folder, write)


class Rows:
    """Makes a batch of the samples."""

    def __call__(self, samples):
        import numpy
        import torch
        return torch.from_numpy(numpy.stack([sample["tokens"] for sample in samples]).astype("<i8"))


class Loader(_common.Epochs):
    def __init__(self, tokens, path, order, resume, workers, remote):
        import streaming
        where = {"local": os.path.join(path, "tokens")}
        if remote:
            streaming.base.util.clean_stale_shared_memory()  # of a process that was killed
            where = {"remote": remote["url"], "local": remote["cache"], "cache_limit": remote["bytes"],
                     **remote["settings"]}
        data = streaming.StreamingDataset(batch_size=tokens.rows, num_canonical_nodes=1, shuffle=order == "own",
                                          **where)
        more = {"persistent_workers": True} if workers else {}
        loader = streaming.StreamingDataLoader(data, batch_size=tokens.rows, num_workers=workers, drop_last=True,
                                               collate_fn=Rows(), **more)
        super().__init__(loader)
        self._data = data
        if resume is not None:
            loader.load_state_dict(resume)

    def next(self):
        batch = self.take()
        return batch[:, :-1], batch[:, 1:]

    def state(self):
        return self._loader.state_dict()

    def close(self):
        super().close()
        self._data = None


def open(tokens, folder, *, order, rank=0, world=1, resume=None, workers=0, remote=None):
    if world > 1:
        raise Absent("its ranks must all be in one process group of torch, and each rank here is a single process")
    return Loader(tokens, _common.place(tokens, folder), order, resume, workers, remote)
