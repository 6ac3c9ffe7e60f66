# SPDX-License-Identifier: MIT
"""Datasets: shards of tokens that form one address space."""
from __future__ import annotations

import json
import os
import warnings
import weakref
from ctypes import addressof, byref, c_char_p, c_size_t, c_uint8, c_uint16, c_uint32, sizeof, string_at

from . import _library as c
from ._library import check, lib, numpy_or_none, table
from .errors import ArgumentError, TokmapError, error_of
from .handles import DatasetHandle, Handle, new
from .records import NamedTuple

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator, SupportsIndex, overload

    from .hints import AnyArray, Path, Reading

class Document(NamedTuple):
    """A document of a dataset: its number, its first token, its number of tokens (0 is possible), and its shard."""
    number: int
    first_token: int
    tokens: int
    shard: int


class Origin(NamedTuple):
    """Where a document came from: the input file as `tokmap pack` was given it, and the record in it, from 0."""
    path: str
    record: int


class Info(NamedTuple):
    """The contents of a dataset: the members of struct tokmap_dataset_info in tokmap.h.

    eod_id and bos_id are None if the dataset does not have one. content and tokenizer are hexadecimal; tokenizer is ""
    if it is unknown. kind is "shards", "synthetic", or the kind of another project's files. identity is "full" if
    content covers every token, otherwise "sampled". masked is True if targets have a mask. page_hashes is
    True if loaders compare what they read with hashes of its pages."""
    tokens: int
    documents: int
    shards: int
    width: int
    reading: str
    vocabulary: int
    largest_id: int
    eod_id: int | None
    bos_id: int | None
    content: str
    tokenizer: str
    kind: str
    identity: str
    masked: bool
    page_hashes: bool


class Shard(NamedTuple):
    """A shard of a dataset: the members of struct tokmap_shard_info in tokmap.h. about is JSON text; bytes of it that
    are not UTF-8 are the character U+FFFD."""
    index_path: str
    tokens_path: str
    first_token: int
    tokens: int
    first_document: int
    documents: int
    index_bytes: int
    blocks: int
    content: str
    about: str


def _as_array(buffer: Any, width: int) -> AnyArray:
    """A NumPy array over a ctypes array, or a memoryview where NumPy is not installed. Both keep the buffer alive."""
    numpy = numpy_or_none()
    if numpy is None:
        return memoryview(buffer).cast("B").cast("H" if width == 2 else "I")
    return numpy.frombuffer(buffer, dtype=numpy.uint16 if width == 2 else numpy.uint32)


#: The words before ":" in the names of datasets that are not shards.
_KINDS = ("megatron", "llmc", "npy", "datatrove", "olmo", "raw")


def absolute_name(name: str) -> str:
    """A name that opens the same dataset from every folder."""
    kind, colon, path = name.partition(":")
    if colon and kind == "synthetic":
        return name
    return f"{kind}:{os.path.abspath(path)}" if colon and kind in _KINDS else os.path.abspath(name)


def warn_of(handle: Handle | int, name: str, stacklevel: int = 3) -> None:
    """Passes on what the library has to say about a dataset that it opened: its shards differ in the tokens around
    documents, some do not record their tokenizer, or its tokens are such as no text has. The warning points at the
    caller of the caller, or with a higher stacklevel further out."""
    found = c.DatasetInfo(sizeof(c.DatasetInfo))
    check(lib.tokmap_dataset_info(handle, byref(found)))
    if found.warning:
        warnings.warn(f"{name}: {os.fsdecode(found.warning)}", stacklevel=stacklevel)


def _info_of(handle: Handle) -> Info:
    found = c.DatasetInfo(sizeof(c.DatasetInfo))
    check(lib.tokmap_dataset_info(handle, byref(found)))
    tokenizer = bytes(found.tokenizer)
    return Info(found.tokens, found.documents, found.shards, found.width, c.READINGS[found.reading],
                found.vocabulary, found.largest_id, None if found.eod_id == c.NO_ID else found.eod_id,
                None if found.bos_id == c.NO_ID else found.bos_id, bytes(found.content).hex(),
                tokenizer.hex() if any(tokenizer) else "",
                (found.kind or b"").decode(), "full" if found.identity == 1 else "sampled", bool(found.masked),
                bool(found.page_hashes))


class _ViewOwner:
    """What the array of a view refers to. It keeps the dataset's memory for as long as the array exists."""
    __slots__ = ("handle", "__weakref__")

    def __init__(self, handle: Handle):
        self.handle = handle


if TYPE_CHECKING:
    from typing import Protocol, Sequence

    class Owned(Protocol):
        """A source of a run, as its dataset sees it."""
        @property
        def name(self) -> str: ...
        @property
        def dataset(self) -> Dataset: ...

    class Owner(Protocol):
        """A run, as its datasets see it."""
        _views: weakref.WeakSet[_ViewOwner]
        def _open(self) -> Handle: ...
        @property
        def sources(self) -> Sequence[Owned]: ...

        @property
        def validations(self) -> Sequence[Owned]: ...


class Dataset:
    """An open dataset: a sequence of documents. It is immutable: any number of threads may use it, and so may a child
    after fork(). One thread may close it while others use it: their calls end as usual, later ones raise an
    ArgumentError.

        with tokmap.Dataset("data/web") as ds:
            len(ds), ds[17], ds[-3:], ds.document(17), ds.origin(17), ds.info.tokens, ds.tokens(0, 10)
            for ids in ds: ...

    ds[17] is an array with the tokens of document 17, as document_tokens(17) returns it. A slice is a list of them, and
    iteration reads one document at a time.

    name     a prefix ("data/web"), a folder, a manifest, "synthetic:...", or files of another project
             ("megatron:data/web", "raw:train.bin,width=2,eod=50256"; those with a magic number need no such word). In
             object storage: "s3://bucket/data/web", "gs://...", or "https://...", with "?cache=/nvme/tokmap&size=2T" or
             the variable TOKMAP_CACHE for the folder in which it is kept; `man tokmap-remote` has the rest. A part of
             any of them: "data/web#docs=0..99%", "data/web#docs=0..1000", "data/web#tokens=0..1000000"
    reading  "auto", "mapped", or "pread": how loaders read it; object storage is read by pread

    What is in object storage is fetched when it is read, and compared with its hashes. Opening and reading it raise an
    IoError if the storage refuses or does not answer (error.status: "ERROR_IO", "ERROR_NOT_FOUND"), and a DataError if
    an object was replaced or is damaged. The same call may be made again.

    Pickling stores the name and the content id. Unpickling opens the dataset again, and raises a DataError if it
    has other contents.
    """
    name: str
    _source: str = ""  # the name that it has in its run
    _handle: Handle | None
    _owner: Owner | None
    _views: weakref.WeakSet[_ViewOwner]
    _reading: Reading
    _known: Info | None = None  # once it was asked for

    def __init__(self, name: Path, *, reading: Reading = "auto") -> None:
        self._handle = None
        self._owner = None
        self._views = weakref.WeakSet()
        self.name, self._reading = os.fspath(name), reading
        options = c.DatasetOptions(sizeof(c.DatasetOptions), c.choice(reading, c.READINGS, "reading"))
        handle, error = new(DatasetHandle), c.Error()
        text = c.text_argument(self.name, "name")
        check(c.waited(lambda: lib.tokmap_dataset_open(byref(handle), text, byref(options), byref(error)), text),
              error)
        self._known = _info_of(handle)
        self._handle = handle
        warn_of(handle, self.name)

    @classmethod
    def _of_run(cls, run: Owner, handle: Handle, name: str, source: str) -> Dataset:
        dataset = cls.__new__(cls)
        dataset._handle, dataset._owner, dataset._views = handle, run, run._views
        dataset.name, dataset._source = name, source
        return dataset

    def _open(self) -> Handle:
        """The handle, for a call of the library."""
        if self._owner is not None:
            self._owner._open()
        handle = self._handle  # read once: another thread may close the dataset
        if handle is None:
            raise ArgumentError(f"the dataset {self.name} is closed")
        return handle

    def close(self) -> None:
        """Closes the dataset. A second close has no effect. Raises a TokmapError while a view() is in use, because
        closing would unmap its memory. The end of `with` raises nothing: the dataset cannot be used any more, and its
        memory stays until its views are gone. It also stays until calls in other threads have returned. A run closes
        its own datasets; for these close() has no effect."""
        if self._handle is None or self._owner is not None:
            return
        if len(self._views):
            raise TokmapError(f"views of the dataset {self.name} are still in use, {len(self._views)} in all: delete "
                              f"them before you close it")
        self._handle = None

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if self._owner is None:
            self._handle = None  # its views keep the handle, too

    def __reduce__(self) -> tuple[Any, ...]:
        if self._owner is not None:
            return (_of_source, (self._owner, self._source))
        return (_rebuild, (absolute_name(self.name), self._reading, self._known and self._known.content))

    def __repr__(self) -> str:
        if self._handle is None:
            return f"<tokmap.Dataset {self.name!r}, closed>"
        info, source = self.info, f", source {self._source!r} of a run" if self._source else ""
        return (f"<tokmap.Dataset {self.name!r}{source}: {c.counted(info.tokens, 'token')}, "
                f"{c.counted(info.documents, 'document')}, {c.counted(info.shards, 'shard')}>")

    def _repr_html_(self) -> str:
        if self._handle is None:
            return table(repr(self), {})
        info = self.info
        return table(f"tokmap.Dataset {self.name}", {
            "source of a run": self._source, "tokens": info.tokens, "documents": info.documents, "shards": info.shards,
            "vocabulary": info.vocabulary, "bytes of a token": info.width, "mask": "yes" if info.masked else "",
            "columns": ", ".join(self.columns), "content": info.content})

    def __len__(self) -> int:
        """The number of documents."""
        return self.info.documents

    if TYPE_CHECKING:
        @overload
        def __getitem__(self, number: SupportsIndex) -> AnyArray: ...

        @overload
        def __getitem__(self, number: slice) -> list[AnyArray]: ...

    def __getitem__(self, number: SupportsIndex | slice) -> AnyArray:
        """The tokens of a document, or of each document in a slice. -1 is the last document."""
        if isinstance(number, slice):
            return [self.document_tokens(i) for i in range(*number.indices(len(self)))]
        return self.document_tokens(c.position(number, len(self), "document", "the dataset"))

    def __iter__(self) -> Iterator[AnyArray]:
        for number in range(len(self)):
            yield self.document_tokens(number)

    @property
    def info(self) -> Info:
        """The contents of the dataset."""
        handle = self._open()
        known = self._known
        if known is None:
            known = self._known = _info_of(handle)
        return known

    def shard(self, number: int) -> Shard:
        """Shard `number`, counted from 0."""
        handle, found, error = self._open(), c.ShardInfo(sizeof(c.ShardInfo)), c.Error()
        check(lib.tokmap_dataset_shard(handle, c.number(number, "shard"), byref(found), byref(error)), error)
        return Shard(os.fsdecode(found.index_path), os.fsdecode(found.tokens_path), found.first_token, found.tokens,
                     found.first_document, found.documents, found.index_bytes, found.blocks, bytes(found.content).hex(),
                     string_at(found.about, found.about_bytes).decode("utf-8", "replace") if found.about else "")

    def tokens(self, first: int = 0, count: int | None = None) -> AnyArray:
        """A copy of tokens [first, first + count), or of all tokens from first on: a NumPy array of uint16 or uint32,
        or a memoryview where NumPy is not installed. It is read by pread, so a truncated or failing file raises an
        exception."""
        handle, info = self._open(), self.info
        first, count = _range(first, count, info.tokens)
        error = c.Error()
        try:
            buffer = ((c_uint16 if info.width == 2 else c_uint32) * count)()
        except MemoryError:
            raise error_of("ERROR_MEMORY",
                           f"a copy of {count} tokens needs {count * info.width} bytes of memory, which are "
                           f"not free: read fewer tokens at once, or use view(), which makes no copy") from None
        check(lib.tokmap_dataset_copy(handle, first, count, addressof(buffer), byref(error)), error)
        return _as_array(buffer, info.width)

    def mask(self, first: int = 0, count: int | None = None) -> AnyArray:
        """Which of tokens [first, first + count) count as targets, that is, are learned when they come next: a NumPy
        array of bool, or a memoryview of format "?" where NumPy is not installed. All do where no shard has a mask
        (info.masked is False)."""
        handle = self._open()
        first, count = _range(first, count, self.info.tokens)
        error = c.Error()
        numpy = numpy_or_none()
        try:
            bits = (c_uint8 * ((count + 7) // 8))()
            made = bytearray(count if numpy is None else 0)
            check(lib.tokmap_dataset_mask(handle, first, count, addressof(bits), byref(error)), error)
            if numpy is not None:
                packed = numpy.frombuffer(bits, dtype=numpy.uint8)
                return numpy.unpackbits(packed, count=count, bitorder="little").view(numpy.bool_)
        except MemoryError:
            raise error_of("ERROR_MEMORY",
                           f"a mask of {count} tokens needs {count + count // 8} bytes of memory, which are "
                           f"not free: read fewer tokens at once") from None
        for i in range(count):
            made[i] = bits[i >> 3] >> (i & 7) & 1
        return memoryview(made).cast("?") if count else memoryview(made)

    def view(self, first: int = 0, count: int | None = None) -> list[AnyArray]:
        """Tokens [first, first + count) without a copy: a list of read-only arrays like those of tokens(), one for each
        shard that holds some of them. They point into a mapping of the file: if the file is truncated, reading them
        raises SIGBUS, which ends the process."""
        handle, info = self._open(), self.info
        first, count = _range(first, count, info.tokens)
        error, used, capacity = c.Error(), c_size_t(), 2
        while True:
            spans = (c.Span * capacity)()
            status = lib.tokmap_dataset_view(handle, first, count, addressof(spans), capacity, byref(used),
                                             byref(error))
            if status and used.value > capacity:
                capacity, error = used.value, c.Error()
                continue
            check(status, error)
            break
        views = []
        for span in spans[:used.value]:
            buffer = ((c_uint16 if info.width == 2 else c_uint32) * span.count).from_address(span.tokens)
            buffer.owner = _ViewOwner(handle)
            self._views.add(buffer.owner)
            array = _as_array(buffer, info.width)
            if isinstance(array, memoryview):
                array = array.toreadonly()
            else:
                array.flags.writeable = False
            views.append(array)
        return views

    def document(self, number: int) -> Document:
        """Document `number`."""
        return self._document(lib.tokmap_dataset_document, c.number(number, "number"))

    def document_at(self, token: int) -> Document:
        """The document that contains token `token`."""
        return self._document(lib.tokmap_dataset_document_at, c.number(token, "token"))

    def _document(self, function: Any, number: int) -> Document:
        found, error = c.Document(), c.Error()
        check(function(self._open(), number, byref(found), byref(error)), error)
        return Document(found.number, found.first_token, found.tokens, found.shard)

    def document_tokens(self, number: int) -> AnyArray:
        """A copy of the tokens of document `number`: see tokens()."""
        found = self.document(number)
        return self.tokens(found.first_token, found.tokens)

    def origin(self, number: int) -> Origin:
        """Where document `number` came from."""
        handle, found, error = self._open(), c.Origin(), c.Error()
        check(lib.tokmap_dataset_origin(handle, c.number(number, "number"), byref(found), byref(error)), error)
        return Origin(os.fsdecode(string_at(found.path, found.path_bytes)), found.record)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the fields that the indexes keep for each document: those of all shards."""
        handle, error, count = self._open(), c.Error(), c_size_t()
        check(lib.tokmap_dataset_columns(handle, None, 0, byref(count), byref(error)), error)
        names = (c_char_p * count.value)()
        check(lib.tokmap_dataset_columns(handle, names, len(names), byref(count), byref(error)), error)
        return tuple(name.decode("utf-8", "replace") for name in names if name)

    def value(self, number: int, column: str, default: Any = None) -> Any:
        """The value of a column for document `number`, as json.loads() returns it; `default` if the document's record
        has no such field. A column that no shard has is a FileNotFoundError."""
        handle, found, error = self._open(), c.FoundValue(), c.Error()
        check(lib.tokmap_dataset_value(handle, c.number(number, "number"), column.encode("utf-8", "replace"),
                                       byref(found), byref(error)), error)
        if not found.bytes:
            return default
        try:
            return json.loads(string_at(found.json, found.bytes))
        except ValueError as problem:
            raise error_of("ERROR_CORRUPT",
                           f"{self.name}: the value of column '{column}' for document {number} is not JSON: "
                           f"{problem}") from None

    def values(self, number: int) -> dict[str, Any]:
        """The values of all columns that document `number` has, by name."""
        absent = object()
        every = ((name, self.value(number, name, absent)) for name in self.columns)
        return {name: value for name, value in every if value is not absent}

    def verify(self, progress: Callable[[int, int], object] | None = None, threads: int = 0,
               on_fault: Callable[[TokmapError], object] | None = None) -> int:
        """Reads every byte of the dataset and compares every hash. Returns the number of bytes read. If there are
        faults, it raises a DataError that names the first.

        progress  called from time to time as progress(done, total), in bytes; an exception in it stops verify()
        threads   0: one for each processor that this process may use
        on_fault  called for each fault with an exception that names the file and the position, in no particular order:
                  `on_fault=faults.append` makes a list. An exception in it stops verify()

        Ctrl-C interrupts it."""
        handle, result, error = self._open(), c.VerifyResult(sizeof(c.VerifyResult)), c.Error()
        call = c.LongCall()
        options = c.VerifyOptions(
            sizeof(c.VerifyOptions), c.number(threads, "threads", 0, 65536),
            c.FAULT(lambda _user, fault: call.guard(
                on_fault, lambda: (c.failure(fault.contents.status, fault.contents),))),
            c.PROGRESS(lambda _user, done, total: call.guard(progress, lambda: (done, total))), None)
        check(call.run(lambda: lib.tokmap_dataset_verify(handle, byref(options), byref(result), byref(error))), error)
        return int(result.bytes)


def _range(first: int, count: int | None, tokens: int) -> tuple[int, int]:
    first = c.number(first, "first")
    if count is None:
        count = max(tokens - first, 0)
    count = c.number(count, "count")
    if first + count > tokens:
        asked = f"tokens {first} to {first + count - 1} are" if count > 1 else f"token {first} is"
        raise error_of("ERROR_RANGE", f"{asked} outside the dataset, which has {c.counted(tokens, 'token')}")
    return first, count


def _rebuild(name: str, reading: Reading, content: str | None = None) -> Dataset:
    """content is None in pickles of versions that did not store it."""
    made = Dataset(name, reading=reading)
    found = made.info.content
    if content is not None and found != content:
        made.close()
        raise error_of("ERROR_MISMATCH",
                       f"the dataset {name} was pickled with the content id {content}, but now has {found}: its "
                       f"files have changed, or they are others on this machine")
    return made


def _of_source(run: Owner, name: str) -> Dataset:
    for source in (*run.sources, *run.validations):
        if source.name == name:
            return source.dataset
    raise error_of("ERROR_RANGE", f"the run does not have a source named {name}")
