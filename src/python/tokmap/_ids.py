# SPDX-License-Identifier: MIT
"""Documents that are token ids: rows of a program, and list columns of Arrow. ShardWriter.add_batch() takes many of them
at a time."""
from __future__ import annotations

import re
import sys
from array import array
from bisect import bisect
from contextlib import closing, suppress
from ctypes import c_char, c_int32, c_int64, string_at
from itertools import accumulate
from time import monotonic

from ._arrow import Column, columns, is_arrow, nulls_of
from ._conversations import value_of
from ._library import of_type
from ._memory import elements
from .errors import ArgumentError, InputError, error_of
from .shard_writer import ShardWriter

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Generator, Iterable, Iterator, Sequence

    from ._arrow import ArrowArray, ArrowSchema

_CODES = {"c": "b", "C": "B", "s": "h", "S": "H", "i": "i", "I": "I", "l": "q", "L": "Q"}  # Arrow's types, and array's
_TYPES = {"int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q",
          "uint64": "Q", "bool": "B"}
_TOKENS = 1 << 18  # rows are added when they have as many: they are in the processor's cache then
_MOST = 1 << 22    # about as many of a column are added at a time
_ALONE = "source is one document of ids: pass [source], or one with each document as an item of its own"


class Batch:
    """Documents one after another: their ids, where each of them ends, and those that have a null, with what is said of
    them. first: the number of the first document."""

    def __init__(self, ids: memoryview, ends: array[int], first: int, nulls: dict[int, str] | None = None) -> None:
        self.ids, self.ends, self.first, self.nulls = ids, ends, first, nulls or {}

    def __iter__(self) -> Iterator[memoryview | None]:
        """The ids of each document; None where some are null."""
        begin = 0
        for at, end in enumerate(self.ends):
            yield None if at in self.nulls else self.ids[begin:end]
            begin = end

    def parts(self) -> Iterator[Batch]:
        """The documents in batches that are not too large."""
        count, begin = len(self.ends), 0
        step = max(1, count * _MOST // max(1, len(self.ids)))
        for first in range(0, count, step):
            ends = self.ends[first:first + step]
            ids = self.ids[begin:ends[-1]]
            yield Batch(ids, array("q", [end - begin for end in ends]) if begin else ends, self.first + first,
                        {at - first: said for at, said in self.nulls.items() if first <= at < first + step})
            begin = ends[-1]

    def without(self, eod: int) -> tuple[memoryview, array[int]]:
        """The ids and ends without the eods that documents have at their end already: the writer adds one to each."""
        numpy = sys.modules.get("numpy")
        if not self.ids or not (eod in map(self.ids.__getitem__, map((-1).__add__, self.ends)) if numpy is None else
                                (numpy.asarray(self.ids)[numpy.asarray(self.ends) - 1] == eod).any()):
            return self.ids, self.ends
        ids, ends, parts, kept, begin = self.ids, array("q"), [], 0, 0
        for end in self.ends:
            if end > begin and ids[end - 1] == eod:
                parts.append(ids[kept:end - 1])
                kept = end
            ends.append(end - len(parts))
            begin = end
        return memoryview(b"".join([*parts, ids[kept:]])).cast(ids.format), ends  # type: ignore[call-overload]


class Lists(Column):
    """A list column of ids: one chunk, which is valid while its stream is at it."""
    argument, default = "ids_field", "input_ids"

    def __init__(self, array: ArrowArray, schema: ArrowSchema, name: str, first: int) -> None:
        self.array, self.first, form = array, first, schema.format.decode()
        self.format, self.lists = form, form in ("+l", "+L") or form.startswith("+w:")
        child = schema.children[0].contents if self.lists else schema
        self.code = _CODES.get(child.format.decode(), "")
        if child.dictionary or not self.code or not (self.lists or name == "the array"):
            of = f" of '{child.format.decode()}'" if self.lists else ""
            raise error_of("ERROR_UNSUPPORTED", f"{name} has the Arrow type '{form}'{of}, but documents of ids must be "
                           "lists of whole numbers (list, large_list, or fixed_size_list of int8 to uint64); cast it "
                           "first")

    def batch(self, first: int) -> Batch:
        """The ids of all documents in place. first: the number of the first one. A column of numbers is one document."""
        held, count, begin = self.array, self.array.length, self.array.offset
        ends, child = array("q", [count]), held
        if self.lists and not count:
            return Batch(memoryview(array(self.code)), array("q"), first)
        if self.lists:
            child = held.children[0].contents
        if self.format[:2] == "+w":
            size = int(self.format[3:])
            begin, ends = begin * size, array("q", [size * at for at in range(1, count + 1)])
        elif self.lists:
            kind, code, size = (c_int64, "q", 8) if self.format == "+L" else (c_int32, "i", 4)
            raw: Any = (kind * (count + 1)).from_address(held.buffers[1] + size * begin)
            places = memoryview(raw).cast("B").cast(code)  # type: ignore[call-overload]
            begin, ends = places[0], array("q", places[1:])
            if begin:
                ends = array("q", [end - begin for end in ends])
        begin += child.offset if self.lists else 0
        nulls: dict[int, str] = {}
        for at in nulls_of(child, begin, ends[-1]):
            number = bisect(ends, at)
            nulls.setdefault(number, f"id {at - (ends[number - 1] if number else 0)} is null")
        if self.lists:
            nulls.update((number, "its ids are null") for number in self.nulls())
        size = array(self.code).itemsize * ends[-1]
        raw = (c_char * size).from_address((child.buffers[1] or 0) + array(self.code).itemsize * begin) if size else b""
        ids: Any = memoryview(raw).cast("B").cast(self.code)  # type: ignore[call-overload]
        return Batch(ids, ends, first, nulls)


def _of_arrow(source: Any, field: str | None) -> Iterator[Batch]:
    first = 0
    for chunk in columns(source, field, Lists):
        batch = chunk.batch(first)
        if not chunk.lists:
            raise ArgumentError(_ALONE)
        first += len(batch.ends)
        yield from batch.parts()


def _of_matrix(source: Any) -> Iterator[Batch]:
    """The rows of an array or tensor of two dimensions."""
    rows, width = source.shape
    step = max(1, _TOKENS // max(1, width))
    for first in range(0, rows, step):
        memory = elements(source[first:first + step].reshape(-1), "source", anywhere=True)
        raw: Any = (c_char * (memory.count * memory.bytes)).from_address(memory.address) if memory.count else b""
        ends = array("q", [width * at for at in range(1, min(step, rows - first) + 1)])
        yield Batch(memoryview(raw).cast("B").cast(_TYPES[memory.type]), ends, first)  # type: ignore[call-overload]


def _taken(item: Any) -> tuple[Any, str]:
    """The ids of a document other than a list, and the type of array that they have."""
    if item is None:
        raise InputError("it is null")
    if isinstance(item, (str, bytes, int)) or getattr(item, "shape", None) == ():
        raise InputError(f"it is {of_type(item)}, but must be ids, such as a list" +
                         ": texts need tokenizer= in place of vocab_size=" * isinstance(item, (str, bytes)))
    if getattr(item, "shape", None) == (0,):  # which NumPy makes of floats
        return array("I"), "I"
    memory = elements(item, "it", anywhere=True)
    code = _TYPES[memory.type]
    ids: Any = memoryview(string_at(memory.address, memory.count * memory.bytes))
    return ids.cast(code), code


def _wrong(item: Any, problem: Exception) -> str:
    """Why ids cannot be taken: the first one that is wrong, or why none can be read."""
    values = item.tolist() if hasattr(item, "tolist") else item
    for at, one in enumerate(values if isinstance(values, (list, tuple)) else ()):
        if not hasattr(one, "__index__") or not 0 <= one < 2 ** 32:
            return f"id {at} is {one!r}, but an id is a whole number, from 0 on"
    return str(problem)


def _code(dtype: Any) -> str:
    """The type of array for elements of NumPy, or an empty text."""
    return _TYPES.get(dtype.name, "") if dtype.isnative else ""


def _joined(rows: Sequence[Any]) -> Any:
    """NumPy arrays of whole numbers, one after another in a type that has them all; None of other documents."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None or {*map(type, rows)} != {numpy.ndarray}:
        return None
    with suppress(ValueError, TypeError):  # they have different dimensions, or no common type
        joined = numpy.concatenate(rows)
        return joined if joined.ndim == 1 and _code(joined.dtype) else None
    return None


class _Rows:
    """Makes batches of documents, one after another."""

    def __init__(self, field: str | None) -> None:
        self.field, self.first, self.code = field, 0, "I"
        self._begin()

    def _begin(self) -> None:
        self.bytes, self.ends, self.count = bytearray(), array("q"), 0
        self.nulls: dict[int, str] = {}

    def taken(self) -> Iterator[Batch]:
        """The batch, if it has documents; what follows is in another one."""
        ids: Any = memoryview(self.bytes).cast(self.code)  # type: ignore[call-overload]
        batch = Batch(ids, self.ends, self.first, self.nulls)
        self.first += len(self.ends)
        self._begin()
        if batch.ends:
            yield batch

    def batches(self, source: Iterable[Any]) -> Iterator[Batch]:
        """All documents. Those of a list are taken many at a time; of an iterator, each before the next one is made,
        because it may be in the same memory."""
        if isinstance(source, (list, tuple)):
            step, at = 64, 0
            while at < len(source):
                rows = source[at:at + step]
                joined = _joined(rows)
                if joined is None:
                    yield from self._each(rows)
                else:
                    yield from self.taken()
                    ends = array("q", accumulate(map(len, rows)))
                    yield Batch(memoryview(joined), ends, self.first)
                    self.first += len(rows)
                    step = max(1, min(4096, _TOKENS * len(rows) // max(1, len(joined))))
                at += len(rows)
        else:
            yield from self._each(source)
        yield from self.taken()

    def _each(self, source: Iterable[Any]) -> Iterator[Batch]:
        dtype, ndarray = None, getattr(sys.modules.get("numpy"), "ndarray", None)
        for item in source:
            if type(item) is ndarray and item.dtype is dtype and item.ndim == 1 and item.flags.c_contiguous:
                ids: Any = item  # whose type is that of the one before
            elif not isinstance(item, (list, dict)) and is_arrow(item):
                yield from self._of_arrow(item)
                continue
            else:
                ids, code = self._ids(item)
                if code != self.code:
                    yield from self.taken()
                    self.code = code
                dtype = item.dtype if type(item) is ndarray and _code(item.dtype) == code else None
            self.bytes.extend(ids)
            self.count += len(ids)
            self.ends.append(self.count)
            if self.count >= _TOKENS or self.nulls:
                yield from self.taken()

    def _ids(self, item: Any) -> tuple[Any, str]:
        """The ids of a document, and the type of array that they have. What is wrong with them is kept."""
        try:
            if hasattr(item, "keys"):
                item = value_of(item, self.field or Lists.default, self.first + len(self.ends))
            elif self.field is not None:
                raise InputError(f"it is {of_type(item)}, but must be a dict with the field {self.field!r}")
            return (array("I", item), "I") if isinstance(item, (list, tuple)) else _taken(item)
        except (TypeError, ValueError, OverflowError) as problem:
            said = f"document {self.first + len(self.ends)} has no field"
            self.nulls[len(self.ends)] = _wrong(item, problem).replace(said, "it has no field")
            return array(self.code), self.code

    def _of_arrow(self, item: Any) -> Iterator[Batch]:
        """The documents of a table or of a column of lists, or the one that a column of numbers is."""
        yield from self.taken()
        alone, said, listed = array("q"), "", True
        for chunk in columns(item, self.field, Lists):
            batch = chunk.batch(self.first)
            listed = chunk.lists
            if listed:
                self.first += len(batch.ends)
                yield from batch.parts()
                continue
            alone.extend(batch.ids)
            said = said or batch.nulls.get(0, "")
        if not listed:
            self.code, self.bytes, self.count = "q", bytearray(alone), len(alone)
            self.nulls = {0: said} if said else {}
            self.ends.append(self.count)
            yield from self.taken()


def documents(source: Any, field: str | None) -> Generator[Batch, None, None]:
    """The documents of a source in batches. A batch is valid until the next one is asked for."""
    shape = getattr(source, "shape", ())
    if is_arrow(source):
        yield from _of_arrow(source, field)
    elif len(shape) == 2:
        yield from _of_matrix(source)
    elif len(shape) == 1 and str(source.dtype) != "object":
        raise ArgumentError(_ALONE)
    else:
        yield from _Rows(field).batches(source)


def _add(writer: ShardWriter, batch: Batch, eod: int | None, skip: bool) -> int:
    """Adds documents, and returns how many were left out."""
    try:
        if batch.nulls:
            number, said = min(batch.nulls.items())
            raise InputError(f"document {batch.first + number}: {said}")
        writer.add_batch(*((batch.ids, batch.ends) if eod is None else batch.without(eod)), origin=("-", batch.first))
        return 0
    except InputError as problem:
        if not skip:
            said = re.sub(r"(?s)^.*?: id (\d+) of document (\d+) of this call",
                          lambda found: f"document {batch.first + int(found[2])}: id {found[1]}", problem.text)
            problem.text = f'{said}; on_error="skip" leaves such documents out'
            raise
    if len(batch.ends) == 1:
        return 1
    return sum(1 if ids is None else _add(writer, Batch(ids, array("q", [len(ids)]), batch.first + at), eod, True)
               for at, ids in enumerate(batch))


def pack_ids(source: Any, out: str, field: str | None, vocab_size: int, eod: int | None, skip: bool, force: bool,
             shown: bool) -> int:
    """Packs documents of ids, and returns how many were left out. shown: says on the terminal how far it is."""
    skipped, next_said = 0, monotonic() + 0.2
    with ShardWriter(out, vocab_size=vocab_size, eod=eod, replace=force) as writer:
        try:
            with closing(documents(source, field)) as batches:
                for batch in batches:
                    skipped += _add(writer, batch, eod, skip)
                    if shown and monotonic() > next_said:
                        next_said = monotonic() + 0.2
                        sys.stderr.write(f"\rpacking  {writer.documents:,} documents, {writer.tokens:,} tokens\x1b[K")
                        sys.stderr.flush()
        finally:
            if shown:
                sys.stderr.write("\r\x1b[K")
        if not writer.documents:
            raise InputError("the inputs contain no documents" + f": {skipped} were left out" * bool(skipped) +
                             "; pass documents that contain ids")
        writer.describe({"totals": {"documents": writer.documents, "records_skipped": skipped,
                                    "tokens": writer.tokens}})
    return skipped
