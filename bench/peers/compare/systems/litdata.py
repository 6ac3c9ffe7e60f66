# SPDX-License-Identifier: MIT
"""litdata's StreamingDataset with TokensLoader."""
import os

from report import Absent
from systems import _common

NAME = "litdata"
PACKAGES = ["numpy", "torch", "litdata"]
ORDERS = ("sequential", "own")
orders_of = _common.orders_without_workers
DISJOINT = True
ROWS = {"litdata/0": {}, "litdata/2+persistent": {"workers": 2}}
CHUNK_BYTES = 64 << 20  # litdata's default for a chunk


def about():
    import litdata
    return (f"litdata {litdata.__version__}; optimize() into chunks of up to {CHUNK_BYTES >> 20} MiB, TokensLoader "
            "with blocks of S + 1 tokens that share none, so one prediction of each is lost; StreamingDataLoader; "
            "random order: shuffle=True with a full permutation in each chunk (item_shuffle_window=0)")


def convert(tokens, folder):
    def write(new):
        os.environ["LITDATA_CACHE_DIR"] = os.path.join(new, "cache")
        from litdata import TokensLoader, optimize
        block = tokens.seq_len + 1
        blocks = max(1, CHUNK_BYTES // (block * tokens.width))
        # An item is what goes into one chunk, so that no chunk ends inside a block.
        starts = range(0, tokens.windows(True), blocks)
        optimize(fn=Items(tokens, blocks), inputs=list(starts), output_dir=os.path.join(new, "tokens"), num_workers=1,
                 chunk_size=blocks * block, item_loader=TokensLoader(block_size=block), start_method="fork",
                 keep_data_ordered=True, verbose=False)
    _common.convert(tokens, folder, write)


class Items:
    """The function that litdata calls for each start: the tokens of one chunk."""

    def __init__(self, tokens, blocks):
        self.tokens, self.blocks = tokens, blocks

    def __call__(self, start):
        import numpy
        block, data = self.tokens.seq_len + 1, self.tokens.array()
        end = min(start + self.blocks, self.tokens.windows(True))
        yield numpy.array(data[start * block:end * block], dtype=f"u{self.tokens.width}")


class Loader(_common.Epochs):
    def __init__(self, tokens, path, order, resume, workers, remote):
        import litdata
        import numpy
        where = {}
        if remote:
            where = {"cache_dir": remote["cache"], "max_cache_size": remote["bytes"], **remote["settings"]}
            litdata.streaming.downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True  # the server has no TLS
        data = litdata.StreamingDataset(remote["url"] if remote else os.path.join(path, "tokens"), drop_last=True,
                                        shuffle=order == "own", item_shuffle_window=0,
                                        item_loader=litdata.TokensLoader(block_size=tokens.seq_len + 1), **where)
        more = {"persistent_workers": True} if workers else {}
        loader = litdata.StreamingDataLoader(data, batch_size=tokens.rows, num_workers=workers, drop_last=True,
                                             collate_fn=numpy.stack, **more)
        super().__init__(loader)
        if resume is not None:
            loader.load_state_dict(resume)

    def next(self):
        batch = self.take().astype("<i8")
        return batch[:, :-1], batch[:, 1:]

    def state(self):
        return self._loader.state_dict()


def open(tokens, folder, *, order, rank=0, world=1, resume=None, workers=0, remote=None):
    if world > 1:
        raise Absent("litdata takes rank and world from torch's process group, and each rank here is a single process")
    return Loader(tokens, _common.place(tokens, folder), order, resume, workers, remote)
