"""Names for annotations. Only tools that read types import this module: it needs the module typing, and it names
types of NumPy and torch."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Union

if TYPE_CHECKING:
    import numpy
    import torch

#: A path, or the name of a dataset.
Path = Union[str, "os.PathLike[str]"]
#: An element type: its name, or a dtype of torch or NumPy.
DType = Union[Literal["int32", "int64"], "torch.dtype", "numpy.dtype[Any]", "type[numpy.integer[Any]]"]
#: Where a loader delivers: "cpu", "cuda", "cuda:N", N, or a torch.device.
Device = Union[str, int, "torch.device"]
Framework = Literal["numpy", "torch", "dlpack"]
Reading = Literal["auto", "mapped", "pread"]
Order = Literal["shuffle", "sequential"]
#: A CUDA stream of torch, CuPy, or Numba, or its handle.
Stream = Any
#: A loader's array: a torch.Tensor, a numpy.ndarray, or a tokmap.Array, as the loader's arguments chose.
AnyArray = Any
