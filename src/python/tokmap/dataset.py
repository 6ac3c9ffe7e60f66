"""Datasets: shards of tokens seen as one address space."""
from __future__ import annotations

import os
import weakref
from collections import namedtuple
from ctypes import addressof, byref, c_size_t, c_uint16, c_uint32, c_void_p, sizeof, string_at

from . import _library as c
from ._library import check, lib
from .errors import ClosedError, RangeError, TokmapError

Document = namedtuple("Document", "number first_token tokens shard")
Document.__doc__ = "A document of a dataset: its number, where it begins, its tokens (perhaps 0), its shard."

Origin = namedtuple("Origin", "path record")
Origin.__doc__ = "Where a document came from: the input file as it was named to `tokmap pack`, and the record in it."

Info = namedtuple("Info", "tokens documents shards width reading vocabulary largest_id eod_id bos_id content tokenizer")
Info.__doc__ = """What a dataset holds: see struct tokmap_dataset_info in tokmap.h.

eod_id and bos_id are None where the dataset has none, tokenizer is "" where it is unknown."""

Shard = namedtuple("Shard", "index_path tokens_path first_token tokens first_document documents index_bytes blocks content"
                   " about")
Shard.__doc__ = "A shard of a dataset: see struct tokmap_shard_info in tokmap.h. about is JSON text."


def _numpy():
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _as_array(buffer, width: int):
    """A NumPy array over a ctypes array, or without NumPy a memoryview; either keeps the buffer."""
    numpy = _numpy()
    if numpy is None:
        return memoryview(buffer).cast("B").cast("H" if width == 2 else "I")
    return numpy.frombuffer(buffer, dtype=numpy.uint16 if width == 2 else numpy.uint32)


class _Lent:
    """Part of a dataset's mapping in somebody's hands: it keeps the dataset."""
    __slots__ = ("owner", "__weakref__")

    def __init__(self, owner):
        self.owner = owner


class Dataset:
    """A dataset, open. Immutable: any number of threads may use it, and a child after fork().

        with tokmap.Dataset("data/web") as ds:
            ds.info.tokens, ds.tokens(0, 10), ds.document_tokens(17), ds.origin(17)

    name     a prefix ("data/web"), a folder, or a manifest
    reading  "auto", "mapped" or "pread": how loaders read it
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

    @classmethod
    def _of_run(cls, run, handle: int, name: str) -> Dataset:
        found = cls.__new__(cls)
        found._handle, found._owner, found._views, found.name = handle, run, run._views, name
        return found

    def _open(self) -> int:
        if self._owner is not None:
            self._owner._open()
        if self._handle is None:
            raise ClosedError(f"the dataset {self.name} is closed")
        return self._handle

    def close(self) -> None:
        """Closes it; a second close does nothing. Refused while a view() is alive: it would end under its owner.
        A run's dataset is closed with its run."""
        if self._handle is None or self._owner is not None:
            return
        if len(self._views):
            raise TokmapError(f"the dataset {self.name} has {len(self._views)} views that are in use: delete them first")
        handle, self._handle = self._handle, None
        lib.tokmap_dataset_close(handle)

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __del__(self, close=lib.tokmap_dataset_close):
        # A view keeps its dataset, so none is left here.
        if getattr(self, "_handle", None) is not None and self._owner is None:
            close(self._handle)
            self._handle = None

    def __reduce__(self):
        if self._owner is not None:
            return (_of_source, (self._owner, self.name))
        whole = self.name if self.name.startswith("synthetic:") else os.path.abspath(self.name)
        return (_again, (whole, self._reading))

    def __repr__(self) -> str:
        if self._handle is None:
            return f"<tokmap.Dataset {self.name!r}, closed>"
        info = self.info
        return f"<tokmap.Dataset {self.name!r}: {info.tokens} tokens, {info.documents} documents, {info.shards} shards>"

    @property
    def info(self) -> Info:
        """What it holds."""
        found = c.DatasetInfo(sizeof(c.DatasetInfo))
        check(lib.tokmap_dataset_info(self._open(), byref(found)))
        tokenizer = bytes(found.tokenizer)
        return Info(found.tokens, found.documents, found.shards, found.width, c.READINGS[found.reading],
                    found.vocabulary, found.largest_id, None if found.eod_id == c.NO_ID else found.eod_id,
                    None if found.bos_id == c.NO_ID else found.bos_id, bytes(found.content).hex(),
                    tokenizer.hex() if any(tokenizer) else "")

    def shard(self, number: int) -> Shard:
        """Shard `number`, from 0."""
        found, error = c.ShardInfo(sizeof(c.ShardInfo)), c.Error()
        check(lib.tokmap_dataset_shard(self._open(), c.number(number, "shard"), byref(found), byref(error)), error)
        return Shard(os.fsdecode(found.index_path), os.fsdecode(found.tokens_path), found.first_token, found.tokens,
                     found.first_document, found.documents, found.index_bytes, found.blocks, bytes(found.content).hex(),
                     string_at(found.about, found.about_bytes).decode() if found.about else "")

    def tokens(self, first: int = 0, count: int | None = None):
        """A copy of tokens [first, first + count), all behind first without count: a NumPy array of uint16 or uint32, or
        without NumPy a memoryview. Read by pread: a file that is cut or fails is an exception."""
        handle, info = self._open(), self.info
        first, count = _range(first, count, info.tokens)
        buffer = ((c_uint16 if info.width == 2 else c_uint32) * count)()
        error = c.Error()
        check(lib.tokmap_dataset_copy(handle, first, count, addressof(buffer), byref(error)), error)
        return _as_array(buffer, info.width)

    def view(self, first: int = 0, count: int | None = None) -> list:
        """Tokens [first, first + count) without a copy: a list of read-only arrays as tokens() gives them, one for each
        shard touched. They point into a mapping of the file: if it is cut shorter under them, touching them is SIGBUS."""
        handle, info = self._open(), self.info
        first, count = _range(first, count, info.tokens)
        error, used, capacity = c.Error(), c_size_t(), 2
        while True:
            spans = (c.Span * capacity)()
            status = lib.tokmap_dataset_view(handle, first, count, addressof(spans), capacity, byref(used), byref(error))
            if status and used.value > capacity:
                capacity, error = used.value, c.Error()
                continue
            check(status, error)
            break
        views = []
        for span in spans[:used.value]:
            buffer = ((c_uint16 if info.width == 2 else c_uint32) * span.count).from_address(span.tokens)
            buffer.lent = _Lent(self)
            self._views.add(buffer.lent)
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
        """The document that token `token` belongs to."""
        return self._document(lib.tokmap_dataset_document_at, c.number(token, "token"))

    def _document(self, function, number: int) -> Document:
        found, error = c.Document(), c.Error()
        check(function(self._open(), number, byref(found), byref(error)), error)
        return Document(found.number, found.first_token, found.tokens, found.shard)

    def document_tokens(self, number: int):
        """The tokens of document `number`, copied as by tokens()."""
        found = self.document(number)
        return self.tokens(found.first_token, found.tokens)

    def origin(self, number: int) -> Origin:
        """Where document `number` came from."""
        found, error = c.Origin(), c.Error()
        check(lib.tokmap_dataset_origin(self._open(), c.number(number, "number"), byref(found), byref(error)), error)
        return Origin(os.fsdecode(string_at(found.path, found.path_bytes)), found.record)

    def verify(self, progress=None, threads: int = 0) -> int:
        """Reads every byte and compares every hash; the bytes read. A fault is a CorruptError that names the first one.

        progress(done, total) is called now and then; Ctrl-C interrupts. threads 0: one for each processor."""
        import threading
        handle, outcome, stop = self._open(), [], threading.Event()
        result, error, problems = c.VerifyResult(sizeof(c.VerifyResult)), c.Error(), []

        def on_progress(_user, done, total):
            try:
                if progress is not None:
                    progress(done, total)
            except BaseException as problem:  # to be raised where verify() was called
                problems.append(problem)
                return 1
            return int(stop.is_set())

        options = c.VerifyOptions(sizeof(c.VerifyOptions), c.number(threads, "threads", 0, 65536), c.FAULT(),
                                  c.PROGRESS(on_progress), None)
        # Signals are handled by the main thread between two lines of Python: it must not be the one that is inside.
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
            raise RangeError(f"token {first} is not in the dataset, which has {tokens}")
        return first, tokens - first
    return first, c.number(count, "count", 0, 2 ** 62)


def _again(name: str, reading: str) -> Dataset:
    return Dataset(name, reading=reading)


def _of_source(run, name: str) -> Dataset:
    for source in run.sources:
        if source.name == name:
            return source.dataset
    raise RangeError(f"the run has no source {name}")
