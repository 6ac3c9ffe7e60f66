# SPDX-License-Identifier: MIT
"""tokmap feeds token files to training programs, in an order that can be computed, audited, and resumed exactly.

    run = tokmap.Run("train.run")
    loader = run.loader(rank=r, world=w, rows=16, device="cuda", dtype=torch.int64)
    for b in loader:
        loss = model(b.inputs, b.targets)
        if b.last_in_step:
            state = loader.state_dict()

The package calls libtokmap through ctypes. Importing it needs no compiler, NumPy, or torch: NumPy is used where it is
installed, and torch where tensors are requested. README.md in the folder above this package describes everything.
"""
from ._library import __version__ as __version__, library_path
from . import errors
from .errors import *
from .dataset import Dataset, Document, Info, Origin, Shard
from .indexing import Indexed, index
from .opened_run import Phase, Extent, Place, RunInfo, Share, Shown, Source
from .run import Run
from .loader import Batch, Loader, LoaderDevice, SourceStats, Stall, Stats, balance
from .source_loss import SourceLoss
from .run_dataset import Columns, RunDataset, collate
from .dlpack import Array
from .tokenizer import Tokenizer
from .shard_writer import ShardWriter
from .values_writer import Finished, ValuesWriter
from .pack import Packed, pack
from .device import Gpu, gpus

#: The value of masked targets (mask_targets=True). torch's cross_entropy ignores it by default.
IGNORE = -100

__all__ = [
    "Run", "Loader", "Batch", "Stats", "SourceStats", "Stall", "LoaderDevice", "SourceLoss", "RunDataset", "Columns", "collate",
    "Dataset", "Array", "Tokenizer", "ShardWriter", "ValuesWriter", "Finished", "Packed", "pack",
    "RunInfo", "Source", "Phase", "Share", "Place", "Extent", "Shown", "Info", "Shard", "Document",
    "Origin", "Gpu", "gpus", "index", "Indexed", "balance", "IGNORE", "library_path", "__version__",
]
__all__ += errors.__all__
