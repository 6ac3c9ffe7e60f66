# SPDX-License-Identifier: MIT
"""Names for annotations. Only pack(), and tools that read types, import this module: it needs the module typing, and it
names types of NumPy and torch."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Mapping, Sequence, Tuple, TypedDict, Union

if TYPE_CHECKING:
    from decimal import Decimal

    import numpy
    import torch

#: A path, or the name of a dataset.
Path = Union[str, "os.PathLike[str]"]
#: An element type: its name, or a dtype of torch or NumPy.
DType = Union[Literal["int32", "int64"], "torch.dtype", "numpy.dtype[Any]", "type[numpy.integer[Any]]"]
#: Where a loader delivers: "cpu", "cuda", "cuda:N", N, or a torch.device.
Device = Union[str, int, "torch.device"]
Framework = Literal["numpy", "torch", "dlpack"]
#: The name of a field of a batch.
Field = Literal["inputs", "targets", "position_ids", "rows", "document_ids", "loss_mask", "cu_seqlens", "targets_ahead",
                "labels", "source_ids", "cu_seqlens_slice"]
#: How processes divide the columns of the rows that they share.
Layout = Literal["contiguous", "zigzag", "zigzag_documents"]
#: Fields in the order in which a batch unpacks: a sequence of names, which tools check, or a text such as
#: "inputs targets".
Fields = Union[str, Sequence[Field]]
Reading = Literal["auto", "mapped", "pread"]
#: "shuffle", "sequential", or ("blocks" or "even", windows of a block, blocks that are shuffled together).
Order = Union[Literal["shuffle", "sequential"], Tuple[Literal["blocks", "even"], int, int]]
#: A share, which is rounded to 9 digits after its point; or "natural", "tokens=300B", or a share as a text.
Weight = Union[int, float, str, "Decimal"]
#: The weights of a mixture, by the names of the sources, or "natural" for all sources.
Weights = Union[Literal["natural"], Mapping[str, Weight]]
Tail = Literal["pad", "drop"]


class _SourceData(TypedDict):
    data: Path


class SourceOptions(_SourceData, total=False):
    """A source with more than a dataset: at most so many epochs of it, and the plan whose rows it draws."""
    epochs: int
    plan: Path


class _PhaseStep(TypedDict):
    step: int


class Phase(_PhaseStep, total=False):
    """What changes from a step on."""
    weights: Weights
    batch: int
    seq_len: int


#: A number, or a text such as "64Mi".
Size = Union[int, str]
#: A path or pattern, or several.
Patterns = Union[Path, Sequence[Path]]


class FileOptions(TypedDict, total=False):
    """The options of `tokmap pack` that tokmap.pack() takes, besides those that are its own arguments. Those about how
    files are found, read, and divided among commands are for files only (_OF_FILES in pack.py)."""
    also: str
    checkpoint_seconds: int
    cut_as: Literal["kimi", "llama3", "llama4"]
    dedup: Literal["exact", "minhash"]
    dedup_memory: Size
    drop: Patterns
    dry_run: bool
    exclude: Patterns
    exclude_field: str
    exclude_ngrams: Patterns
    exclude_words: int
    files_from: Path
    fim: Union[float, str]
    fim_seed: int
    fim_tokens: str
    fim_unit: Size
    finish: bool
    hidden: bool
    include: Patterns
    input_format: str
    invalid_utf8: str
    json: bool
    lower_case: Literal["yes", "no"]
    max_document: Size
    max_record: Size
    max_skipped: Size
    minhash_bands: int
    minhash_ngram: int
    minhash_rows: int
    no_cache: bool
    no_eod: bool
    no_resume: bool
    null: bool
    pattern: str
    pattern_regex: str
    quiet: bool
    seal: Union[bool, int]
    separator: str
    shard_tokens: Size
    shuffle: int
    shuffle_memory: Size
    skipped_list: Path
    special: str
    special_tokens: Path
    split: Union[str, Sequence[str]]
    split_seed: int
    status: Union[bool, str]
    table_files: bool
    task: str
    unit_bytes: Size
    vocab_size: int
    wait: int
    work_folder: Path


#: A CUDA stream of torch, CuPy, Numba, or cuda.core, any object with __cuda_stream__, or its handle.
Stream = Any
#: A loader's array: a torch.Tensor, a numpy.ndarray, or a tokmap.Array, as the loader's arguments chose.
AnyArray = Any
