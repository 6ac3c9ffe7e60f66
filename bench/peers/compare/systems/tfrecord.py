# SPDX-License-Identifier: MIT
"""TFRecord, read with the package tfrecord, which needs no TensorFlow."""
import os

from report import Absent
from systems import _common

NAME = "tfrecord"
PACKAGES = ["numpy", "torch", "tfrecord"]
ORDERS = ("sequential", "own")
orders_of = _common.orders_without_workers
ROWS = {"TFRecord/0": {}, "TFRecord/2+persistent": {"workers": 2}}
BUFFER = 1024


def about():
    from importlib.metadata import version
    return (f"tfrecord {version('tfrecord')}, not TensorFlow's reader; an Example for each window, with the S + 1 "
            f"tokens as bytes; TFRecordDataset in a DataLoader; random order: shuffle_queue_size={BUFFER}, so rows "
            "stay near their neighbors; this package does not compare the checksums of records; it has no state to resume "
            "from")


def convert(tokens, folder):
    def write(new):
        from tfrecord.tools import tfrecord2idx
        from tfrecord.writer import TFRecordWriter
        path = os.path.join(new, "tokens.tfrecord")
        writer = TFRecordWriter(path)
        for window in _common.windows(tokens):
            writer.write({"tokens": (window.tobytes(), "byte")})
        writer.close()
        tfrecord2idx.create_index(path, os.path.join(new, "tokens.index"))
    _common.convert(tokens, folder, write)


class Loader(_common.Streamed):
    def __init__(self, tokens, path, order, workers):
        import numpy
        import torch
        from tfrecord.torch.dataset import TFRecordDataset
        if order == "own":
            numpy.random.seed(1)
        # Without an index a pass begins at the first record; with one, each worker reads its own part of the file.
        index = os.path.join(path, "tokens.index") if workers else None
        data = TFRecordDataset(os.path.join(path, "tokens.tfrecord"), index, {"tokens": "byte"},
                               shuffle_queue_size=BUFFER if order == "own" else None,
                               transform=_common.Decoded(tokens.dtype))
        more = {"num_workers": workers, "persistent_workers": True} if workers else {}
        super().__init__(torch.utils.data.DataLoader(data, batch_size=tokens.rows, drop_last=True,
                                                     collate_fn=_common.rows_of, **more))


def open(tokens, folder, *, order, rank=0, world=1, resume=None, workers=0):
    if world > 1:
        raise Absent("it has no split by rank")
    return Loader(tokens, _common.place(tokens, folder), order, workers)
