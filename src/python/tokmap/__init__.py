"""tokmap: token files into training programs, in an order that can be computed, audited and resumed exactly.

    run = tokmap.Run("train.run")
    loader = run.loader(rank=r, world=w, rows=16, device="cuda", dtype=torch.int64)
    for b in loader:
        loss = model(b.inputs, b.targets)
        if b.last_in_step:
            state = loader.state_dict()

The package is ctypes over libtokmap: importing it needs neither a compiler nor NumPy nor torch. NumPy is used where it is
installed, torch where tensors are asked for. Everything here is described in the README beside this package.
"""
from ._library import __version__, library_path
from .errors import (ArgumentError, BusyError, ClosedError, CorruptError, CursorError, DeviceError, EncodingError, End,
                     ExistsError, FormatError, InputError, InternalError, InterruptedByCaller, IoError, LibraryError,
                     LimitError, OutOfMemoryError, MismatchError, NoDeviceError, NotFoundError, OutputError, PastError,
                     RangeError, RunError, TokenError, TokmapError, TruncatedError, UnsupportedError, VersionError)
from .dataset import Dataset, Document, Info, Origin, Shard
from .run import Place, Run, RunInfo, Shown, Source
from .loader import Batch, Loader, Stats
from .run_dataset import Columns, RunDataset, collate
from .dlpack import Array
from .device import Gpu, gpus

#: The value of targets that are masked (mask_targets=True): what torch's cross entropy ignores.
IGNORE = -100

__all__ = [
    "Run", "Loader", "Batch", "Stats", "RunDataset", "Columns", "collate", "Dataset", "Array", "RunInfo", "Source", "Place",
    "Shown", "Info", "Shard", "Document", "Origin", "Gpu", "gpus", "IGNORE", "library_path", "__version__",
    "TokmapError", "ArgumentError", "BusyError", "ClosedError", "CorruptError", "CursorError", "DeviceError",
    "EncodingError", "End", "ExistsError", "FormatError", "InputError", "InternalError", "InterruptedByCaller", "IoError",
    "LibraryError", "LimitError", "OutOfMemoryError", "MismatchError", "NoDeviceError", "NotFoundError", "OutputError",
    "PastError", "RangeError", "RunError", "TokenError", "TruncatedError", "UnsupportedError", "VersionError",
]
