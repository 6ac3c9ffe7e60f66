# SPDX-License-Identifier: MIT
"""ValuesWriter: numbers that belong to the tokens of a dataset, such as weights or a teacher's probabilities."""
from __future__ import annotations

import os
from _thread import RLock
from ctypes import byref, c_void_p, sizeof

from . import _library as c
from ._library import check, lib
from ._memory import Memory, find
from .dataset import Dataset
from .errors import ArgumentError
from .handles import ValuesHandle, new
from .reader import _readers, exclusive
from .records import NamedTuple
from .shard_writer import _writers

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Sequence

    from .hints import Path
    from .loader import Batch

#: The types of elements, by their names in the library: the name that NumPy and torch have, and others that will do.
_ELEMENTS = {"u8": ("uint8",), "u16": ("uint16",), "u32": ("uint32",), "f16": ("float16",),
             "bf16": ("bfloat16", "uint16"), "f32": ("float32",)}


class Finished(NamedTuple):
    """What finish() has made: of `tokens`, those of all shards, `missing` have no values, and `repeated` were put more
    than once; `files` have their names."""
    tokens: int
    missing: int
    repeated: int
    files: int


def _element(dtype: Any) -> str:
    name = str(getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or dtype).rpartition(".")[2]
    for element, names in _ELEMENTS.items():
        if name in (element, names[0]):
            return element
    raise ArgumentError(f"dtype is {dtype!r}, but must be {', '.join(names[0] for names in _ELEMENTS.values())}")


class ValuesWriter:
    """Writes values of the tokens of a dataset, in any order, with other processes, and after a kill again.

        with tokmap.ValuesWriter("data/web", [("teacher_ids", "uint32", 32), ("teacher", "float16", 32)]) as writer:
            for b in loader:
                probabilities, ids = top_k(teacher(b.inputs), 32)
                writer.put(b, [ids, probabilities])
        tokmap.ValuesWriter(...).finish()   # in one process, when all have closed their writers

    dataset  a tokmap.Dataset, or its name. Token numbers are the dataset's; each shard has files NAME.WHAT.values
    arrays   the name WHAT of the values, or a list of (name, dtype, shape) for several. Who continues unfinished values
             gives the same list
    dtype    with one name: uint8, uint16, uint32, float16, bfloat16, or float32, of NumPy or torch, or as a text
    shape    of a token's values: a number, a tuple, or () for one element
    replace  finished values are replaced at finish(), which if killed is continued without it; otherwise they are a
             FileExistsError

    What was put survives a kill once sync() or close() has returned, and after 4 s. The end of `with` closes; it does
    not finish.
    """
    #: The names of the arrays.
    arrays: tuple[str, ...]
    _returning = 0  # for `exclusive`
    _handle: ValuesHandle | None = None

    def __init__(self, dataset: Dataset | Path, arrays: str | Sequence[Sequence[Any]], dtype: Any = None,
                 shape: int | Sequence[int] = (), *, replace: bool = False) -> None:
        self._lock, self._process = RLock(), os.getpid()
        self._dataset = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
        wanted = [(arrays, dtype, shape)] if isinstance(arrays, str) else [(*each, (), ())[:3] for each in arrays]
        self._types: list[tuple[str, str, tuple[int, ...]]] = []
        for name, kind, size in wanted:
            sizes = size if hasattr(size, "__iter__") else (size,)
            self._types.append((name, _element(kind), tuple(c.number(each, "shape") for each in sizes)))
        self.arrays = tuple(name for name, _, _ in self._types)
        text = " ".join(f"{name}:{element}" + (f"[{','.join(map(str, size))}]" if size else "")
                        for name, element, size in self._types)
        options = c.ValuesOptions(sizeof(c.ValuesOptions), bool(replace))
        self._handle, error = new(ValuesHandle, self._dataset._open()), c.Error()
        _writers.add(self)  # type: ignore[arg-type]  # a child after fork() forgets the handle
        check(lib.tokmap_values_open(byref(self._handle), self._dataset._open(), c.text_argument(text, "arrays"),
                                     byref(options), byref(error)), error)

    def _interrupted(self) -> ArgumentError:
        return ArgumentError("this thread was using the writer of values when the signal handler interrupted it")

    def _open(self) -> ValuesHandle:
        if not self._handle or self._process != os.getpid():
            raise ArgumentError("the writer of values is closed, or belongs to another process")
        return self._handle

    def _memory(self, values: Any, lead: tuple[int, ...] | None) -> list[Memory]:
        """The arrays of a put in memory, compared with what they must be."""
        given = [values[name] for name in self.arrays] if isinstance(values, dict) else \
            [values] if len(self.arrays) == 1 and not isinstance(values, (list, tuple)) else list(values)
        if len(given) != len(self.arrays):
            raise ArgumentError(f"values has {len(given)} arrays, but the writer has {', '.join(self.arrays)}")
        found: list[Memory] = []
        for (name, element, size), value in zip(self._types, given):
            if str(getattr(value, "dtype", "")) == "bfloat16":  # of ml_dtypes, which NumPy does not export
                value = value.view("uint16")
            memory = find(value, name)
            if memory is not None and not memory.contiguous and memory.device == "cpu":
                value = value.contiguous() if hasattr(value, "contiguous") else value.copy()
                memory = find(value, name)
            lead = lead or (memory.shape[:1] if memory is not None else None)
            if memory is None or memory.device != "cpu" or memory.type not in _ELEMENTS[element] or \
                    memory.shape != (lead or ()) + size:
                has = "not an array" if memory is None else f"{memory.type} {memory.shape} on {memory.device}"
                shape = ", ".join([*map(str, lead or ["count"]), *map(str, size)])
                raise ArgumentError(f"the values '{name}' are {has}, but must be {' or '.join(_ELEMENTS[element][:1])} "
                                    f"({shape}) on the host")
            found.append(memory)
        return found

    @exclusive
    def put_at(self, token: int, values: Any) -> None:
        """Writes the values of tokens from `token` on: an array [count, *shape], or for several arrays a list, in their
        order, or a dict by name."""
        memory, error = self._memory(values, None), c.Error()
        addresses = (c_void_p * len(memory))(*(each.address for each in memory))
        check(lib.tokmap_values_put_at(self._open(), c.number(token, "token"), memory[0].count, addresses,
                                       byref(error)), error)

    @exclusive
    def put(self, batch: Batch, values: Any, source: str | None = None) -> None:
        """Writes the values of the targets of a batch, wherever its rows are from: arrays [count, columns, *shape], as
        for put_at(), where [i, j] belongs to batch.targets[i, j]. Those of padding, of the first token of a document in
        a row of a plan, of excluded tokens, and of rows of other sources are left out.

        batch   the last one that its loader has delivered
        source  the source whose dataset this is; needed if the run has several
        """
        struct = getattr(batch, "_found", None)
        loader = next((reader for reader in _readers if getattr(reader, "_last", None) is struct), None)
        if struct is None or loader is None:
            raise ArgumentError("the batch is not the last one of a loader: put its values before the next next()")
        memory, error = self._memory(values, (struct.count, struct.columns)), c.Error()
        addresses = (c_void_p * len(memory))(*(each.address for each in memory))
        with loader._lock:
            check(lib.tokmap_values_put(self._open(), loader._open(), byref(struct),
                                        None if source is None else c.text_argument(source, "source"), addresses,
                                        byref(error)), error)

    @exclusive
    def sync(self) -> None:
        """Returns when what was put is on storage."""
        error = c.Error()
        check(lib.tokmap_values_sync(self._open(), byref(error)), error)

    @exclusive
    def finish(self, *, holes: bool = False, nan: bool = False) -> Finished:
        """Joins what all writers have put, dead ones included, and gives the files their names. Other writers of these
        shards must be closed. Tokens without values are refused, unless holes; NaN is, unless nan. If it is killed,
        call it again."""
        options = c.ValuesOptions(sizeof(c.ValuesOptions), 0, bool(holes), bool(nan))
        result, error = c.ValuesResult(sizeof(c.ValuesResult)), c.Error()
        check(lib.tokmap_values_finish(self._open(), byref(options), byref(result), byref(error)), error)
        return Finished(result.tokens, result.missing, result.repeated, result.files)

    @exclusive
    def close(self) -> None:
        """Brings the rest to storage. A second call does nothing."""
        handle, self._handle = self._handle, None
        if handle and self._process == os.getpid():
            address, handle.value = handle.value, None
            error = c.Error()
            check(lib.tokmap_values_close(address, byref(error)), error)

    def __enter__(self) -> ValuesWriter:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<tokmap.ValuesWriter {self._dataset.name!r}: {', '.join(self.arrays)}>"
