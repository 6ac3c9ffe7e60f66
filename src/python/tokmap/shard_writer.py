# SPDX-License-Identifier: MIT
"""ShardWriter: a shard from documents of ids that a program has, from a tokenizer of its own."""
from __future__ import annotations

import json
import os
import warnings
import weakref
from _thread import RLock
from ctypes import addressof, byref, c_char_p, c_uint8, sizeof

from . import _library as c
from ._library import check, lib
from ._memory import Memory, elements
from .errors import ArgumentError, InputError, error_of
from .handles import WriterHandle, new
from .reader import exclusive

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping, Sequence

    from .dataset import Origin
    from .hints import Path
    from .tokenizer import Tokenizer


def _mask(values: Any, count: int) -> Memory | None:
    """A byte for each id: 1 if it counts as a target."""
    if values is None:
        return None
    memory = elements(values, "mask")
    if memory.count != count:
        raise InputError(f"the mask has {c.counted(memory.count, 'element')}, but there "
                         f"{'is' if count == 1 else 'are'} {c.counted(count, 'id')}", status="ERROR_INPUT")
    if not count:
        return elements(bytes(1), "mask")  # a mask of no ids is not the same as none
    if memory.bytes == 1:
        return memory
    try:
        return elements(bytes(memory.tolist()), "mask")
    except ValueError:
        raise InputError("the mask has a number other than 0 and 1", status="ERROR_INPUT") from None


def plain(value: Any) -> Any:
    """Numbers and arrays of NumPy and torch, as JSON can express them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _json(value: object, name: str) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise InputError(f"the value of column '{name}' cannot be written as JSON: {problem}",
                         status="ERROR_INPUT") from None


def _fingerprint(tokenizer: Tokenizer | str | None) -> bytes:
    text = "" if tokenizer is None else tokenizer if isinstance(tokenizer, str) else \
        getattr(tokenizer, "fingerprint", "not one")
    try:
        found = bytes.fromhex(text)
    except (TypeError, ValueError):
        found = b"x"
    if text and len(found) != 16:
        raise ArgumentError(f"tokenizer is {tokenizer!r}, but must be a tokmap.Tokenizer or the 32 hexadecimal digits "
                            f"of a fingerprint; leave it out for a tokenizer of your own")
    return found


class ShardWriter:
    """Writes a shard from documents of ids: the files, the content id, and the promises of `tokmap pack`.

        with tokmap.ShardWriter("data/mine", vocab_size=50257, eod=50256) as writer:
            for text in texts:
                writer.add(my_tokenizer(text))

    The end of `with` commits: the dataset then exists, complete and synced. An exception in it, Ctrl-C included, gives
    the shard up and leaves nothing behind. Without `with`, call commit() or abandon(). Any thread may call the methods;
    calls wait for one another. A child process after fork() must not use its parent's writer.

    path        the name of the shard without .bin or .tmx; its folder must exist
    vocab_size  the number of ids, special tokens included; every id is below it. Default: that of `tokenizer`
    eod, bos    the ids that end and begin each document. The writer adds them
    delimited   the documents have their eod and bos already: none is added, and a document without is refused
    mask        the shard has a mask: add() takes one
    columns     names of fields that the index keeps for each document, such as ["url", "score"] or "url,score": add()
                takes their values
    tokenizer   a tokmap.Tokenizer, or the fingerprint of one, which the index records; leave it out for another
                tokenizer
    width       2 or 4 bytes for a token. Default: 2 if the vocabulary is at most 65,536
    replace     a shard of this name is replaced at the commit; otherwise it is a FileExistsError
    sync        the commit waits until the files are on storage
    about       a dict that the index keeps as JSON, such as {"tokenizer": {"name": "mine"}}
    """
    path: str
    #: The names of the columns.
    columns: tuple[str, ...]
    _returning = 0  # for `exclusive`
    _handle: WriterHandle | None = None

    def __init__(self, path: Path, *, vocab_size: int | None = None, eod: int | None = None, bos: int | None = None,
                 delimited: bool = False, mask: bool = False, columns: str | Iterable[str] = (),
                 tokenizer: Tokenizer | str | None = None, width: int | None = None, replace: bool = False,
                 sync: bool = True, about: Mapping[str, Any] | None = None) -> None:
        self._lock, self._process = RLock(), os.getpid()
        self.path, self._content = os.fspath(path), (c_uint8 * 16)()
        self._last = (0, 0)
        if vocab_size is None:
            if tokenizer is None or isinstance(tokenizer, str):
                raise ArgumentError("vocab_size is missing: pass the number of ids of your tokenizer, special tokens "
                                    "included")
            vocab_size = tokenizer.vocab_size
        self.columns = c.names_argument(columns)
        names = (c_char_p * len(self.columns))(*(c.text_argument(name, "columns") for name in self.columns))
        options = c.WriterOptions(sizeof(c.WriterOptions))
        options.vocabulary = c.number(vocab_size, "vocab_size")
        options.width = 0 if width is None else c.number(width, "width", 0, 255)
        options.sync, options.replace, options.mask = bool(sync), bool(replace), bool(mask)
        options.eod_id = c.NO_ID if eod is None else c.number(eod, "eod", 0, c.NO_ID - 1)
        options.bos_id = c.NO_ID if bos is None else c.number(bos, "bos", 0, c.NO_ID - 1)
        options.delimited, options.column_count = bool(delimited), len(names)
        options.columns = addressof(names) if len(names) else None
        fingerprint = _fingerprint(tokenizer)
        options.tokenizer = (c_uint8 * 16)(*fingerprint)
        options.about = None if about is None else _json(dict(about), "about")
        self._handle, error = new(WriterHandle), c.Error()
        _writers.add(self)  # before the library opens anything: see _after_fork()
        try:
            check(lib.tokmap_writer_open(byref(self._handle), c.text_argument(self.path, "path"), byref(options),
                                         byref(error)), error)
        except BaseException:  # Ctrl-C, after the library has made the files
            self.abandon()
            raise

    # ---- adding ----

    def add(self, ids: Any, mask: Any = None, columns: Mapping[str, object] | None = None,
            origin: Path | Origin | tuple[Path, int] | None = None) -> None:
        """Adds a document. If it is refused, nothing of it is stored, and the next one can be added.

        ids      a list of whole numbers, an array.array, a NumPy array or torch tensor (on the host) of any type of
                 integers, or anything else that has a buffer, __array__, or __dlpack__. An id that is negative or
                 not below vocab_size is an InputError
        mask     with ShardWriter(mask=True): 1 or True for each id that counts as a target, 0 or False for others. An
                 added eod counts as the last id does; an added bos does not. Without a mask all ids count
        columns  with ShardWriter(columns=...): a dict of values, each of which JSON can express. A name that is left
                 out has no value for this document
        origin   where the document is from: a path, or (path, record), as Dataset.origin() returns it. Later documents
                 without one are the next records of the same origin
        """
        memory = elements(ids, "ids")
        self._add(memory, None, 1, _mask(mask, memory.count), self._values([columns or {}]), origin)

    def add_batch(self, ids: Any, ends: Any, mask: Any = None,
                  columns: Mapping[str, Sequence[object]] | Sequence[Mapping[str, object]] | None = None,
                  origin: Path | Origin | tuple[Path, int] | None = None) -> None:
        """Adds several documents at once, or none of them.

        ids      the ids of all documents, one document after another
        ends     for each document, the number of ids up to its end; the last one is the number of all ids
        mask     as for add(), for all ids
        columns  a dict of lists with a value for each document, or a list of dicts. None in a list is the value null
        origin   as for add(), of the first document; the others are the next records
        """
        memory, numbers = elements(ids, "ids"), elements(ends, "ends")
        if numbers.bytes != 8 or numbers.address % 8:  # the library takes any alignment of ids, but not of these
            numbers = elements(numbers.tolist(), "ends")
        rows: list[Mapping[str, object]]
        if columns is None:
            rows = [{}] * numbers.count if self.columns else []
        elif hasattr(columns, "items"):
            lists: Any = columns
            for name, values in lists.items():
                if len(values) != numbers.count:
                    raise ArgumentError(f"column '{name}' has {c.counted(len(values), 'value')} for "
                                        f"{c.counted(numbers.count, 'document')}")
            rows = [dict(zip(lists, row)) for row in zip(*lists.values())] if lists else [{}] * numbers.count
        else:
            each: Any = columns
            rows = list(each)
            if len(rows) != numbers.count:
                raise ArgumentError(f"columns has {c.counted(len(rows), 'row')} for "
                                    f"{c.counted(numbers.count, 'document')}")
        self._add(memory, numbers, numbers.count, _mask(mask, memory.count), self._values(rows), origin)

    def _values(self, rows: Sequence[Mapping[str, object]]) -> tuple[Any, list[bytes]] | None:
        """The values of the columns as structs, and the texts that these point to."""
        for row in rows:
            for name in row:
                if name not in self.columns:
                    raise ArgumentError(f"'{name}' is not a column of this shard, which has " +
                                        (", ".join(self.columns) or "none; pass columns= to ShardWriter"))
        if not self.columns:
            return None
        texts: list[bytes] = []
        for at, row in enumerate(rows):
            try:
                texts += [_json(row[name], name) if name in row else b"" for name in self.columns]
            except InputError as problem:
                problem.text = f"document {self.documents + at}: {problem.text}"
                raise
        structs = (c.Value * len(texts))()
        for struct, text in zip(structs, texts):
            struct.json, struct.bytes = text, len(text)
        return structs, texts

    def _add(self, ids: Memory, ends: Memory | None, documents: int, mask: Memory | None,
             values: tuple[Any, list[bytes]] | None, origin: Path | Origin | tuple[Path, int] | None) -> None:
        given, error = c.Documents(sizeof(c.Documents)), c.Error()
        given.ids, given.id_count = ids.address or None, ids.count
        given.type = c.ID_TYPES.index(f"{'i' if ids.type[0] == 'i' else 'u'}{8 * ids.bytes}")
        given.ends, given.document_count = ends.address if ends is not None and ends.count else None, documents
        if ends is not None and not ends.count:
            if ids.count:
                raise ArgumentError(f"ends is empty, but there are {c.counted(ids.count, 'id')}")
            return
        given.counted = mask.address if mask is not None else None
        given.values = addressof(values[0]) if values is not None else None
        if origin is not None:
            path, record = origin if isinstance(origin, tuple) else (origin, 0)
            encoded = os.fsencode(path)
            given.origin, given.origin_bytes = encoded, len(encoded)
            given.record = c.number(record, "record")
        self._add_struct(given, error)

    @exclusive
    def _add_struct(self, given: c.Documents, error: c.Error) -> None:
        check(lib.tokmap_writer_add(self._open(), byref(given), byref(error)), error)

    # ---- the state ----

    @property
    def content(self) -> str | None:
        """The content id of the shard, 32 hexadecimal digits, as in Dataset.shard(0).content; None until it is
        committed. (Dataset.info.content differs from it if there is a mask, which it covers, too.)"""
        found = bytes(self._content)  # the library writes it when the shard exists
        return found.hex() if any(found) else None

    def _interrupted(self) -> ArgumentError:
        return ArgumentError(f"this thread was using the writer of {self.path} when the signal handler interrupted it: "
                             f"set a flag in the handler, and act on the flag after the call has returned")

    def _open(self) -> WriterHandle:
        if self._process != os.getpid():
            raise ArgumentError(f"the writer of {self.path} belongs to the process that made it, {self._process}")
        handle = self._handle
        if handle is None or not handle:
            raise ArgumentError(f"the writer of {self.path} has been " +
                                ("committed" if self.content is not None else "given up"))
        return handle

    def _info(self) -> tuple[int, int]:
        if self._lock._is_owned():  # type: ignore[attr-defined]
            return self._last  # a signal handler asks
        with self._lock:
            if self._handle:
                self._keep_info(self._handle)
            return self._last

    @property
    def tokens(self) -> int:
        """The number of tokens so far, with the eods and bos that the writer added."""
        return self._info()[0]

    @property
    def documents(self) -> int:
        """The number of documents so far."""
        return self._info()[1]

    # ---- the end ----

    def describe(self, about: Mapping[str, Any]) -> None:
        """Replaces `about`, for what is known only in the end. With {"totals": {"text_bytes": ..., "tokens": ...}}, the
        bytes of text and the tokens of the shard, `tokmap info` shows the bytes a token."""
        text, error = _json(dict(about), "about"), c.Error()
        self._describe(text, error)

    @exclusive
    def _describe(self, text: bytes, error: c.Error) -> None:
        check(lib.tokmap_writer_about(self._open(), text, byref(error)), error)

    @exclusive
    def commit(self) -> str:
        """Finishes the shard, which then exists under its name, and returns its content id. If this fails, the shard is
        given up. A second call only returns the content id."""
        if self.content is None:
            handle, error = self._open(), c.Error()
            self._keep_info(handle)
            commit, place, report = lib.tokmap_writer_commit, addressof(self._content), byref(error)
            # The library's call ends the handle. No signal is handled between these two lines, because they call
            # nothing else: the handle is either this object's, which gives the shard up, or the library's.
            address, handle.value = handle.value, None
            status = commit(address, place, report)
            self._handle = None
            check(status, error)
        return self.content or ""

    def _keep_info(self, handle: WriterHandle) -> None:
        found = c.WriterInfo(sizeof(c.WriterInfo))
        check(lib.tokmap_writer_info(handle, byref(found)))
        self._last = (found.tokens, found.documents)

    @exclusive
    def abandon(self) -> None:
        """Gives the shard up and removes what was written of it. Has no effect after commit() or abandon()."""
        handle = self._handle
        if handle:
            self._keep_info(handle)
            # Dropping the handle is not enough. After Ctrl-C the traceback keeps frames that refer to it, and the files
            # would be there as long as the traceback. Nothing comes between these two lines, as in commit().
            abandon = lib.tokmap_writer_abandon
            address, handle.value = handle.value, None
            abandon(address)
        self._handle = None

    def close(self) -> None:
        """Commits, unless the writer has been committed or given up already."""
        if self._handle is not None:
            self.commit()

    def __enter__(self) -> ShardWriter:
        self._open()
        return self

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        try:
            if kind is None:
                self.close()
        finally:
            self.abandon()  # unless it has been committed

    def __del__(self) -> None:
        if not self._handle:
            return
        self._handle = None
        warnings.warn(f"the shard {self.path} was given up, because its writer was neither committed nor abandoned: "
                      f"use `with`", ResourceWarning, source=self)

    def __reduce__(self) -> Any:
        raise TypeError(f"the writer of {self.path} cannot be pickled: it belongs to one process")

    def __repr__(self) -> str:
        tokens, documents = self._info()
        state = "" if self._handle else ", committed" if self.content is not None else ", given up"
        return (f"<tokmap.ShardWriter {self.path!r}: {c.counted(tokens, 'token')}, "
                f"{c.counted(documents, 'document')}{state}>")


_writers: weakref.WeakSet[ShardWriter] = weakref.WeakSet()


def _after_fork() -> None:
    """In a child after fork(): the shards belong to the parent, so the child must not give them up, and no thread has
    the locks any more."""
    for writer in list(_writers):
        if writer._handle is not None:
            writer._handle.value = None
        if not writer._lock._is_owned():  # type: ignore[attr-defined]
            writer._lock = RLock()


os.register_at_fork(after_in_child=_after_fork)
