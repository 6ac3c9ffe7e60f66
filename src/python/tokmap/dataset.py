"""Datasets: shards of tokens that form one address space."""
from __future__ import annotations

import os
import warnings
import weakref
from collections import namedtuple
from ctypes import addressof, byref, c_size_t, c_uint16, c_uint32, c_void_p, sizeof, string_at

from . import _library as c
from ._library import check, lib
from .errors import ClosedError, RangeError, TokmapError

Document = namedtuple("Document", "number first_token tokens shard")
Document.__doc__ = """A document of a dataset: its number, its first token, its number of tokens (0 is possible), and
its shard."""

Origin = namedtuple("Origin", "path record")
Origin.__doc__ = """Where a document came from: the input file as `tokmap pack` was given it, and the record in it,
from 0."""

Info = namedtuple("Info", "tokens documents shards width reading vocabulary largest_id eod_id bos_id content tokenizer")
Info.__doc__ = """The contents of a dataset: the members of struct tokmap_dataset_info in tokmap.h.

eod_id and bos_id are None if the dataset does not have one. content and tokenizer are hexadecimal; tokenizer is "" if
it is unknown."""

Shard = namedtuple("Shard", "index_path tokens_path first_token tokens first_document documents index_bytes blocks "
                   "content about")
Shard.__doc__ = "A shard of a dataset: the members of struct tokmap_shard_info in tokmap.h. about is JSON text."


def _numpy():
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _as_array(buffer, width: int):
    """A NumPy array over a ctypes array, or a memoryview where NumPy is not installed. Both keep the buffer alive."""
    numpy = _numpy()
    if numpy is None:
        return memoryview(buffer).cast("B").cast("H" if width == 2 else "I")
    return numpy.frombuffer(buffer, dtype=numpy.uint16 if width == 2 else numpy.uint32)


def warn_of(handle: int, name: str) -> None:
    """Passes on what the library has to say about a dataset that it opened: its shards differ in the tokens around
    documents, or some do not record their tokenizer. The warning points at the caller of the caller."""
    found = c.DatasetInfo(sizeof(c.DatasetInfo))
    check(lib.tokmap_dataset_info(handle, byref(found)))
    if found.warning:
        warnings.warn(f"{name}: {os.fsdecode(found.warning)}", stacklevel=3)


class _ViewOwner:
    """What the array of a view refers to. It keeps the dataset open for as long as the array exists."""
    __slots__ = ("owner", "__weakref__")

    def __init__(self, owner):
        self.owner = owner


class Dataset:
    """An open dataset. It is immutable: any number of threads may use it, and so may a child after fork().

        with tokmap.Dataset("data/web") as ds:
            ds.info.tokens, ds.tokens(0, 10), ds.document_tokens(17), ds.origin(17)

    name     a prefix ("data/web"), a folder, a manifest, or "synthetic:..."
    reading  "auto", "mapped", or "pread": how loaders read it
    """

    def __init__(self, name, *, reading: str = "auto"):
        self._handle = None
        self._owner = None
        self._views = weakref.WeakSet()
        self.name, self._reading = os.fspath(name), reading
        options = c.DatasetOptions(sizeof(c.DatasetOptions), c.choice(reading, c.READINGS, "reading"))
        handle, error = c_void_p(), c.Error()
        check(lib.tokmap_dataset_open(byref(handle), c.text_argument(self.name, "name"), byref(options), byref(error)),
              error)
        self._handle = handle.value
        warn_of(self._handle, self.name)

    @classmethod
    def _of_run(cls, run, handle: int, name: str) -> Dataset:
        dataset = cls.__new__(cls)
        dataset._handle, dataset._owner, dataset._views, dataset.name = handle, run, run._views, name
        return dataset

    def _open(self) -> int:
        """The handle, for a call of the library."""
        if self._owner is not None:
            self._owner._open()
        if self._handle is None:
            raise ClosedError(f"the dataset {self.name} is closed")
        return self._handle

    def close(self) -> None:
        """Closes the dataset. A second close has no effect. Raises a TokmapError while a view() is in use, because
        closing would unmap its memory. A run closes its own datasets; for these close() has no effect."""
        if self._handle is None or self._owner is not None:
            return
        if len(self._views):
            raise TokmapError(f"{len(self._views)} views of the dataset {self.name} are still in use: delete them "
                              f"before you close it")
        handle, self._handle = self._handle, None
        lib.tokmap_dataset_close(handle)

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __del__(self, close=lib.tokmap_dataset_close):
        # A view refers to its dataset, so no view exists any more.
        if getattr(self, "_handle", None) is not None and self._owner is None:
            close(self._handle)
            self._handle = None

    def __reduce__(self):
        if self._owner is not None:
            return (_of_source, (self._owner, self.name))
        name = self.name if self.name.startswith("synthetic:") else os.path.abspath(self.name)
        return (_rebuild, (name, self._reading))

    def __repr__(self) -> str:
        if self._handle is None:
            return f"<tokmap.Dataset {self.name!r}, closed>"
        info = self.info
        return f"<tokmap.Dataset {self.name!r}: {info.tokens} tokens, {info.documents} documents, {info.shards} shards>"

    @property
    def info(self) -> Info:
        """The contents of the dataset."""
        found = c.DatasetInfo(sizeof(c.DatasetInfo))
        check(lib.tokmap_dataset_info(self._open(), byref(found)))
        tokenizer = bytes(found.tokenizer)
        return Info(found.tokens, found.documents, found.shards, found.width, c.READINGS[found.reading],
                    found.vocabulary, found.largest_id, None if found.eod_id == c.NO_ID else found.eod_id,
                    None if found.bos_id == c.NO_ID else found.bos_id, bytes(found.content).hex(),
                    tokenizer.hex() if any(tokenizer) else "")

    def shard(self, number: int) -> Shard:
        """Shard `number`, counted from 0."""
        found, error = c.ShardInfo(sizeof(c.ShardInfo)), c.Error()
        check(lib.tokmap_dataset_shard(self._open(), c.number(number, "shard"), byref(found), byref(error)), error)
        return Shard(os.fsdecode(found.index_path), os.fsdecode(found.tokens_path), found.first_token, found.tokens,
                     found.first_document, found.documents, found.index_bytes, found.blocks, bytes(found.content).hex(),
                     string_at(found.about, found.about_bytes).decode() if found.about else "")

    def tokens(self, first: int = 0, count: int | None = None):
        """A copy of tokens [first, first + count), or of all tokens from first on: a NumPy array of uint16 or uint32,
        or a memoryview where NumPy is not installed. It is read by pread, so a truncated or failing file raises an
        exception."""
        handle, info = self._open(), self.info
        first, count = _range(first, count, info.tokens)
        buffer = ((c_uint16 if info.width == 2 else c_uint32) * count)()
        error = c.Error()
        check(lib.tokmap_dataset_copy(handle, first, count, addressof(buffer), byref(error)), error)
        return _as_array(buffer, info.width)

    def view(self, first: int = 0, count: int | None = None) -> list:
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
            buffer.owner = _ViewOwner(self)
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

    def _document(self, function, number: int) -> Document:
        found, error = c.Document(), c.Error()
        check(function(self._open(), number, byref(found), byref(error)), error)
        return Document(found.number, found.first_token, found.tokens, found.shard)

    def document_tokens(self, number: int):
        """A copy of the tokens of document `number`: see tokens()."""
        found = self.document(number)
        return self.tokens(found.first_token, found.tokens)

    def origin(self, number: int) -> Origin:
        """Where document `number` came from."""
        found, error = c.Origin(), c.Error()
        check(lib.tokmap_dataset_origin(self._open(), c.number(number, "number"), byref(found), byref(error)), error)
        return Origin(os.fsdecode(string_at(found.path, found.path_bytes)), found.record)

    def verify(self, progress=None, threads: int = 0) -> int:
        """Reads every byte of the dataset and compares every hash. Returns the number of bytes read. If there are
        faults, it raises a CorruptError that names the first.

        progress  called from time to time as progress(done, total), in bytes; an exception in it stops verify()
        threads   0: one for each processor that this process may use

        Ctrl-C interrupts it."""
        import threading
        handle, outcome, stop = self._open(), [], threading.Event()
        result, error, problems = c.VerifyResult(sizeof(c.VerifyResult)), c.Error(), []

        def on_progress(_user, done, total):
            try:
                if progress is not None:
                    progress(done, total)
            except BaseException as problem:  # the caller of verify() gets it below
                problems.append(problem)
                return 1
            return int(stop.is_set())

        options = c.VerifyOptions(sizeof(c.VerifyOptions), c.number(threads, "threads", 0, 65536), c.FAULT(),
                                  c.PROGRESS(on_progress), None)
        # Python handles signals in the main thread, between two lines. So another thread calls the library.
        worker = threading.Thread(target=lambda: outcome.append(
            lib.tokmap_dataset_verify(handle, byref(options), byref(result), byref(error))), daemon=True)
        worker.start()
        try:
            while worker.is_alive():
                worker.join(0.1)
        finally:
            stop.set()
            worker.join()
        if problems:
            raise problems[0]
        check(outcome[0], error)
        return result.bytes


def _range(first, count, tokens: int):
    first = c.number(first, "first")
    if count is None:
        if first > tokens:
            raise RangeError(f"token {first} is outside the dataset, which has {tokens} tokens")
        return first, tokens - first
    return first, c.number(count, "count", 0, 2 ** 62)


def _rebuild(name: str, reading: str) -> Dataset:
    return Dataset(name, reading=reading)


def _of_source(run, name: str) -> Dataset:
    for source in run.sources:
        if source.name == name:
            return source.dataset
    raise RangeError(f"the run does not have a source named {name}")
