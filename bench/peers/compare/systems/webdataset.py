# SPDX-License-Identifier: MIT
"""WebDataset: tar files of windows."""
import os

from report import Absent
from systems import _common

NAME = "webdataset"
PACKAGES = ["numpy", "torch", "webdataset"]
ORDERS = ("sequential", "own")
orders_of = _common.orders_without_workers
ROWS = {"WebDataset/0": {}, "WebDataset/2+persistent": {"workers": 2}}
SHARD_BYTES, BUFFER = 64 << 20, 1000


def about():
    import webdataset
    return (f"webdataset {webdataset.__version__}; tar files of at most {SHARD_BYTES >> 20} MiB (at least 8 of them), "
            "a member is a window of S + 1 tokens; WebDataset().shuffle().map().batched() inside a WebLoader; random "
            f"order: tar files in random order and a buffer of {BUFFER} samples, so rows stay near their neighbors; it "
            "has no state to resume from")


def convert(tokens, folder):
    def write(new):
        import webdataset
        size, count = (tokens.seq_len + 1) * tokens.width, tokens.windows()
        shard = max(1, min(SHARD_BYTES // size, (count + 7) // 8))
        with webdataset.ShardWriter(os.path.join(new, "tokens-%06d.tar"), maxcount=shard, maxsize=1 << 62,
                                    verbose=0) as writer:
            for number, window in enumerate(_common.windows(tokens)):
                writer.write({"__key__": f"{number:012}", "tokens": window.tobytes()})
    _common.convert(tokens, folder, write)


class Loader(_common.Streamed):
    def __init__(self, tokens, path, order, workers):
        import webdataset
        shards = sorted(os.path.join(path, name) for name in os.listdir(path) if name.endswith(".tar"))
        own = order == "own"
        data = webdataset.WebDataset(shards, shardshuffle=len(shards) if own else False, seed=1 if own else None)
        if own:
            data = data.shuffle(BUFFER, initial=BUFFER, seed=1)
        data = data.map(_common.Decoded(tokens.dtype)).batched(tokens.rows, collation_fn=_common.rows_of, partial=False)
        more = {"persistent_workers": True} if workers else {}
        super().__init__(webdataset.WebLoader(data, batch_size=None, num_workers=workers, **more))


def open(tokens, folder, *, order, rank=0, world=1, resume=None, workers=0):
    if world > 1:
        raise Absent("its split by node takes rank and world from torch's process group")
    return Loader(tokens, _common.place(tokens, folder), order, workers)
