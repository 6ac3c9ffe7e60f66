"""pack(): documents from a Python program, from Arrow, or from files, as a shard."""
from __future__ import annotations

import json
import os
import sys
import warnings
from array import array
from collections.abc import Mapping
from ctypes import sizeof
from importlib import import_module
from time import monotonic

from . import _tokenize_library as t
from ._arrow import Column, columns as arrow_columns, is_arrow
from ._batches import Chunk, bytes_of, texts_of
from ._conversations import Conversations, value_of
from ._library import ID_TYPES, counted, names_argument, number, of_type
from .dataset import Dataset
from .errors import ArgumentError, ArgumentTypeError, ExistsError, InputError, MissingInputError, TokmapError
from .shard_writer import ShardWriter
from .spelling import did_you_mean
from .tokenizer import Tokenizer

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    import subprocess
    from typing import Any, Callable, Iterable, Iterator, Sequence

    from .hints import Path

_ROWS = 8192      # documents that are encoded at a time
_BYTES = 8 << 20  # and at most about this many bytes of text
_IGNORED = -100   # the label of an id that does not count as a target, as in torch and transformers

# Options of the command for files, besides those that pack() takes for all sources, in Python's spelling.
_FOR_FILES = frozenset((
    "also", "checkpoint_seconds", "dedup", "dedup_memory", "dry_run", "exclude", "exclude_field", "exclude_ngrams",
    "exclude_words", "files_from", "finish", "hidden", "include", "input_format", "invalid_utf8", "json",
    "max_document", "max_record", "max_skipped", "minhash_bands", "minhash_ngram", "minhash_rows", "no_cache",
    "no_eod", "no_resume", "null", "pattern", "pattern_regex", "quiet", "seal", "separator", "shard_tokens", "shuffle",
    "shuffle_memory", "skipped_list", "special", "special_tokens", "split", "split_seed", "status", "task",
    "unit_bytes", "vocab_size", "wait"))


class Packed:
    """What pack() has made. path is the name of the shard, which Dataset and Run open; documents and tokens are those of
    the shard; content is its content id; skipped is the number of documents that were left out, by on_error="skip",
    min_tokens, or max_tokens."""

    def __init__(self, path: str, documents: int, tokens: int, content: str, skipped: int) -> None:
        self.path, self.documents, self.tokens, self.content = path, documents, tokens, content
        self.skipped = skipped

    def __repr__(self) -> str:
        return (f"<tokmap Packed {self.path!r}: {counted(self.documents, 'document')}, "
                f"{counted(self.tokens, 'token')}, content {self.content}>")


def _packed(out: str, skipped: int) -> Packed:
    """The result: the content id is that of the dataset, which covers a mask, too."""
    with Dataset(out) as dataset:
        return Packed(out, dataset.info.documents, dataset.info.tokens, dataset.info.content, skipped)


class _Progress:
    """A line on the terminal, as tqdm draws it: the state, redrawn in place, and a newline in the end. It is cut where
    the terminal ends, because a line that wraps cannot be redrawn, and spaces cover the rest of a longer one."""

    def __init__(self, wanted: bool | None) -> None:
        self._on = sys.stderr.isatty() if wanted is None else bool(wanted)
        self._start = self._last = monotonic()
        self._drawn = 0  # characters of the line on the terminal
        self._ended = False

    def show(self, documents: int, tokens: int, last: bool = False) -> None:
        now = monotonic()
        if not self._on or (now - self._last < 0.1 and not last):
            return
        self._last, self._ended = now, last
        rate = tokens / max(now - self._start, 1e-9)
        said = (f"pack: {documents} documents, {tokens / 1e6:.1f}M tokens [{now - self._start:.0f}s, "
                f"{rate / 1e6:.2f}M tokens/s]")
        try:
            said = said[:max(os.get_terminal_size(sys.stderr.fileno()).columns - 1, 0) or None]
        except (AttributeError, OSError, ValueError):
            pass  # not a terminal
        sys.stderr.write("\r" + said.ljust(self._drawn) + ("\n" if last else ""))
        sys.stderr.flush()
        self._drawn = len(said)

    def end(self) -> None:
        """The end of a call that failed."""
        if self._drawn and not self._ended:
            sys.stderr.write("\n")
            sys.stderr.flush()


class _Rules:
    """What becomes of documents: the options of pack() that are not about the source."""

    def __init__(self, tokenizer: Tokenizer, writer: ShardWriter, fields: dict[str, Any], columns: tuple[str, ...],
                 limits: tuple[int, int], skip: bool, threads: int, chat: Any, ignored: Iterable[str] = ()) -> None:
        self.tokenizer, self.writer, self.fields, self.columns = tokenizer, writer, fields, columns
        self.least, self.most = limits
        self.skip, self.threads, self.chat = skip, threads, chat
        self.eod: int | None = None  # of documents that the writer gets with their eod and bos: all but texts
        self.bos: int | None = None
        self.documents = self.tokens = self.skipped = self.seen = self.text_bytes = 0
        self.empty = set(columns)  # those for which no document has had a value
        self.untaught = 0          # conversations in which no token counts
        self.conversations = None if chat is None else Conversations(chat, tokenizer, fields["field"], columns, ignored)

    def wrong(self, message: str) -> None:
        """A document that cannot be packed: it is left out, or it is an error."""
        if not self.skip:
            raise InputError(message, status="ERROR_INPUT")
        self.skipped += 1

    def add(self, ids: array[int], ends: Sequence[int], mask: bytes | None, rows: list[dict[str, Any]] | None,
            sizes: Sequence[int] = ()) -> None:
        """Gives encoded documents to the writer, without those that are too short or too long. sizes: of their texts,
        in bytes."""
        begin = 0
        kept = []
        borders = (self.eod is not None) + (self.bos is not None)
        for index, end in enumerate(ends):
            if self.least <= end - begin - borders <= self.most:
                kept.append((index, begin, end))
            begin = end
        if len(kept) < len(ends):
            self.skipped += len(ends) - len(kept)
            some, stops, marks = array(ids.typecode), array("Q"), bytearray()
            for _, begin, end in kept:
                some += ids[begin:end]
                stops.append(len(some))
                marks += mask[begin:end] if mask is not None else b""
            ids, ends, mask = some, stops, None if mask is None else bytes(marks)
            rows = None if rows is None else [rows[index] for index, _, _ in kept]
            sizes = [sizes[index] for index, _, _ in kept] if sizes else ()
        try:
            if len(ends):
                self.writer.add_batch(ids, ends, mask, rows)
        except InputError:
            if not self.skip:
                raise
            self._add_each(ids, ends, mask, rows, sizes)
            return
        self.documents += len(ends)
        self.tokens += len(ids)
        self.text_bytes += sum(sizes)
        self._filled(rows)

    def _filled(self, rows: list[dict[str, Any]] | None) -> None:
        """Notes the columns for which documents have a value."""
        for row in (rows or ()) if self.empty else ():
            self.empty.difference_update(row)

    def _add_each(self, ids: array[int], ends: Sequence[int], mask: bytes | None, rows: list[dict[str, Any]] | None,
                  sizes: Sequence[int]) -> None:
        """Gives documents to the writer without those that it refuses, such as for a column that is not JSON."""
        begin = 0
        for index, end in enumerate(ends):
            try:
                self.writer.add(ids[begin:end], None if mask is None else mask[begin:end],
                                None if rows is None else rows[index])
            except InputError:
                self.skipped += 1
            else:
                self.documents += 1
                self.tokens += end - begin
                self.text_bytes += sizes[index] if sizes else 0
                self._filled(None if rows is None else rows[index:index + 1])
            begin = end

    def encode(self, struct: t.Texts, first: int) -> tuple[array[int], array[int], array[int]]:
        """The ids of texts, where each text ends in them, and a status for each text."""
        try:
            chunk = Chunk(self.tokenizer, self.tokenizer._open(), struct, threads=self.threads, bos=None, eod=None,
                          offsets=False, keep_going=self.skip)
        except TokmapError as error:
            if first:
                error.text = f"of the documents from {first} on, {error.text}"
            raise
        try:
            wide = self.tokenizer.vocab_size > 65536
            ids = array("I" if wide else "H", bytes((4 if wide else 2) * chunk.info.ids))
            ends, statuses = array("Q", bytes(8 * struct.count)), array("i", bytes(4 * struct.count))
            chunk.read(ids=ids.buffer_info()[0], type=ID_TYPES.index("u32" if wide else "u16"),
                       document_ends=ends.buffer_info()[0], statuses=statuses.buffer_info()[0])
        finally:
            chunk.close()
        return ids, ends, statuses

    def totals(self) -> dict[str, int]:
        """What the index says of the whole shard, by the command's names. The text of conversations is known only to
        the library that rendered them."""
        made = {"documents": self.writer.documents, "records_skipped": self.skipped, "tokens": self.writer.tokens}
        if self.fields["content"] in ("text", "prompt"):
            made["text_bytes"] = self.text_bytes
        return made

    def texts(self, struct: t.Texts, sizes: Sequence[int], rows: list[dict[str, Any]] | None = None,
              nulls: Iterable[int] = ()) -> None:
        """Packs texts: those of a list, or of an Arrow array in which some are null."""
        left_out = set(nulls)
        for index in left_out:
            self.wrong(f"document {self.seen + index} is null")
        ids, ends, statuses = self.encode(struct, self.seen)
        failed = {index for index, status in enumerate(statuses) if status} - left_out
        self.skipped += len(failed)
        left_out |= failed
        if left_out:  # those that failed have no ids
            some, stops, begin = array(ids.typecode), array("Q"), 0
            for index, end in enumerate(ends):
                if index not in left_out:
                    some += ids[begin:end]
                    stops.append(len(some))
                begin = end
            ids, ends = some, stops
            rows = None if rows is None else [row for index, row in enumerate(rows) if index not in left_out]
            sizes = [size for index, size in enumerate(sizes) if index not in left_out]
        self.seen += struct.count
        self.add(ids, ends, None, rows, sizes)

    # ---- records ----

    def _row(self, record: Any, index: int) -> dict[str, Any]:
        row = {}
        for name in self.columns:
            try:
                row[name] = value_of(record, name, index)
            except InputError:
                continue  # the record lacks it, which the index can say
        return row

    def _text(self, value: Any, index: int, what: str) -> str | bytes:
        if isinstance(value, (str, bytes)):
            return value
        raise InputError(f"document {index}: {what} is {type(value).__name__}, but it must be str or bytes",
                         status="ERROR_INPUT")

    def records(self, items: list[Any]) -> None:
        """Packs some documents of an iterable."""
        good: list[tuple[Any, dict[str, Any]]] = []
        for index, item in enumerate(items, self.seen):
            plain = isinstance(item, (str, bytes))
            try:
                if plain and self.fields["content"] != "text":
                    raise InputError(f"document {index} is {type(item).__name__}, but must be a dict with the field "
                                     f"{self.fields['field']!r}", status="ERROR_INPUT")
                if not plain and not hasattr(item, "keys"):
                    raise InputError(f"document {index} is {type(item).__name__}, but must be str, bytes, or a dict",
                                     status="ERROR_INPUT")
                good.append((self._content(item, index, plain), {} if plain else self._row(item, index)))
            except InputError as error:
                self.wrong(error.text)
        rows = [row for _, row in good] if self.columns else None
        values = [value for value, _ in good]
        content = self.fields["content"]
        if content == "text":
            self.seen += len(items) - len(values)
            encoded = bytes_of(values)
            struct, _keep = texts_of(encoded)
            self.texts(struct, list(map(len, encoded)), rows)
            return
        self.seen += len(items)
        (self._prompt if content == "prompt" else self._ids)(values, rows)

    def _content(self, item: Any, index: int, plain: bool) -> Any:
        """What is packed of a document."""
        content, field, second = self.fields["content"], self.fields["field"], self.fields["second"]
        if content == "text":
            return self._text(item if plain else value_of(item, field, index), index, f"the field {field!r}")
        if content == "messages":
            return self._conversation(item, index)
        first = value_of(item, field, index)
        other = None if second is None else value_of(item, second, index)
        if content == "prompt":
            return (self._text(first, index, f"the field {field!r}"), self._text(other, index, f"the field {second!r}"))
        try:
            ids = array("q", _numbers(first))
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"document {index}: the field {field!r} is not a list of token ids"
                             f"{_first_wrong(first, lambda id: hasattr(id, '__index__') and 0 <= id < 2 ** 63)}",
                             status="ERROR_INPUT") from None
        wrong = next((value for value in (min(ids, default=0), max(ids, default=0))
                      if not 0 <= value < self.tokenizer.vocab_size), None)
        if wrong is not None:
            raise InputError(f"document {index} has the id {wrong}, which is not in the vocabulary of "
                             f"{self.tokenizer.vocab_size} ids", status="ERROR_INPUT")
        return ids, None if second is None else self._mask(other, index, ids)

    def _mask(self, value: Any, index: int, ids: array[int]) -> bytes:
        if self.fields["labels"]:
            value = self._counted(value, index, ids)
        try:
            mask = bytes(_numbers(value))
            if max(mask, default=0) > 1:
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"document {index}: the field {self.fields['second']!r} is not a list of 0 and 1"
                             f"{_first_wrong(value, lambda one: hasattr(one, '__index__') and one in (0, 1))}",
                             status="ERROR_INPUT") from None
        if len(mask) != len(ids):
            raise InputError(f"document {index} has {counted(len(ids), 'id')}, but a mask of {len(mask)}",
                             status="ERROR_INPUT")
        return mask

    def _counted(self, labels: Any, index: int, ids: array[int]) -> list[bool]:
        """Which ids count, from their labels."""
        try:
            labels = _numbers(labels)
        except TypeError:
            raise InputError(f"document {index}: the field {self.fields['second']!r} is not a list of labels",
                             status="ERROR_INPUT") from None
        for at, (id, label) in enumerate(zip(ids, labels)):
            if isinstance(label, bool) or label not in (_IGNORED, id):
                raise InputError(f"document {index}: label {at} is {label!r}, but must be the id, {id}, or {_IGNORED}: "
                                 f"labels that are shifted or changed cannot become a mask", status="ERROR_INPUT")
        return [label != _IGNORED for label in labels]

    def _conversation(self, item: Any, index: int) -> tuple[array[int], bytes]:
        """The ids of a conversation, and their mask, by an object that has only apply_chat_template()."""
        assert self.conversations is not None
        messages, learned, arguments = self.conversations.arguments(item, index)
        try:
            made = self.chat.apply_chat_template(messages, tokenize=True, return_dict=True,
                                                 return_assistant_tokens_mask=True, **arguments)
        except ImportError:
            raise
        except Exception as problem:  # templates raise errors of their own about conversations
            raise InputError(f"document {index}: the chat template cannot write the conversation: {problem}",
                             status="ERROR_INPUT") from problem
        mask = bytes(map(bool, made["assistant_masks"]))
        marked, mask = any(mask), self.conversations.masked(mask, learned, index)
        if not any(mask):
            self.untaught += 1
            if learned and not marked:
                raise ArgumentError("the chat template does not mark what the assistant says with {% generation %}, so "
                                    "no token would count; use a template that does")
        return array("q", made["input_ids"]), mask

    def _ids(self, values: list[Any], rows: list[dict[str, Any]] | None) -> None:
        ids, ends, mask = array("q"), array("Q"), bytearray()
        chat = self.fields["content"] == "messages"
        for some, marks in values:
            ended = bool(some) and some[-1] == self.eod
            begun = len(some) > ended and some[0] == self.bos
            first = [] if self.bos is None or begun else [self.bos]
            last = [] if self.eod is None or ended else [self.eod]
            ids.extend(first)
            ids += some
            ids.extend(last)
            ends.append(len(ids))
            if marks is not None:
                mask += bytes(len(first)) + marks + (b"\0" if chat else b"\1") * len(last)
        self.add(ids, ends, bytes(mask) if self.masked() else None, rows)

    def masked(self) -> bool:
        """Whether the shard has a mask."""
        return self.fields["second"] is not None or self.fields["content"] == "messages"

    def _prompt(self, values: list[Any], rows: list[dict[str, Any]] | None) -> None:
        texts, sizes = bytes_of([text for pair in values for text in pair]), []
        struct, _keep = texts_of(texts)
        ids, ends, statuses = self.encode(struct, 0)
        some, stops, mask, kept, begin = array(ids.typecode), array("Q"), bytearray(), [], 0
        for index in range(len(values)):
            middle, end = ends[2 * index], ends[2 * index + 1]
            if statuses[2 * index] or statuses[2 * index + 1]:
                self.skipped += 1
            else:
                first = [] if self.bos is None else [self.bos]
                last = [] if self.eod is None else [self.eod]
                some.extend(first)
                some += ids[begin:end]
                some.extend(last)
                mask += bytes(middle - begin + len(first)) + b"\1" * (end - middle + len(last))
                stops.append(len(some))
                kept.append(index)
                sizes.append(len(texts[2 * index]) + len(texts[2 * index + 1]))
            begin = end
        self.add(some, stops, bytes(mask), None if rows is None else [rows[index] for index in kept], sizes)


def _rendered(source: Iterable[Any], conversations: Conversations, field: str, columns: tuple[str, ...],
              skip: bool) -> Iterator[Any]:
    """The records that the command packs: the pieces of each conversation, in a field of this name, and the columns."""
    for index, item in enumerate(source):
        try:
            if not hasattr(item, "keys"):
                raise InputError(f"document {index} is {type(item).__name__}, but must be a dict with the field of "
                                 "messages_field", status="ERROR_INPUT")
            made = {field: conversations.pieces(item, index)}
            for name in columns:
                try:
                    made[name] = value_of(item, name, index)
                except InputError:
                    continue
            yield made
        except InputError:
            if not skip:
                raise
            yield None  # which the command leaves out and counts


def _numbers(values: Any) -> list[Any]:
    """The elements of a list or an array."""
    if isinstance(values, (str, bytes, dict, set, frozenset)):
        raise TypeError
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _first_wrong(values: Any, right: Callable[[Any], bool]) -> str:
    """The first element of a list that is not right, for the end of a message."""
    try:
        return next((f": element {at} is {one!r}" for at, one in enumerate(_numbers(values)) if not right(one)), "")
    except TypeError:
        return f", but {of_type(values)}"


def _slices(column: Column) -> Iterator[tuple[t.Texts, list[int], list[int]]]:
    """The texts of a chunk, some at a time, their sizes, and which of them are null."""
    nulls = list(column.nulls())
    for first in range(0, column.length, _ROWS):
        count = min(_ROWS, column.length - first)
        struct = t.Texts(sizeof(t.Texts))
        column.texts(struct, first, count)
        yield struct, column.sizes(first, count), [index - first for index in nulls if first <= index < first + count]


def _rows_of(source: Any) -> Iterable[Any]:
    """The rows of an Arrow table as dicts, made by the library that it is from, or by pyarrow."""
    if hasattr(source, "iter_rows"):  # Polars
        rows: Iterable[Any] = source.iter_rows(named=True)
        return rows
    try:
        pyarrow = import_module("pyarrow")
    except ImportError:
        raise ArgumentError("fields other than one of text, of a table that is not from Polars, need pyarrow: install "
                            "it, or pass an iterable of dicts") from None
    return (row for batch in pyarrow.RecordBatchReader.from_stream(source) for row in batch.to_pylist())


def _groups(items: Iterable[Any]) -> Iterator[list[Any]]:
    """Some documents at a time."""
    group: list[Any] = []
    size = 0
    for item in items:
        group.append(item)
        size += len(item) if isinstance(item, (str, bytes)) else 1024
        if len(group) == _ROWS or size >= _BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _paths(source: Any) -> list[str] | None:
    """The paths that a source is, or None. Refuses what would be packed as something else than it is."""
    if isinstance(source, Mapping):
        parts = [name for name, part in source.items() if hasattr(part, "column_names")]  # a DatasetDict of datasets
        if parts:
            some = ", ".join(map(repr, parts[:5])) + (", ..." if len(parts) > 5 else "")
            raise ArgumentTypeError(f"source has {counted(len(parts), 'dataset')}, {some}: pack one of them, such as "
                                    f"source[{parts[0]!r}]")
        raise ArgumentTypeError(f"source is {of_type(source)}, whose keys would be packed: pass a list of "
                                "dicts, one for each document")
    if isinstance(source, (str, os.PathLike)):
        return [os.fspath(source)]
    if isinstance(source, (list, tuple)) and source and all(isinstance(item, os.PathLike) for item in source):
        return [os.fspath(item) for item in source]
    if isinstance(source, (list, tuple)) and source and all(isinstance(it, str) and _is_file(it) for it in source):
        raise ArgumentError(f"each text of the list is the name of a file, such as {source[0]!r}: to pack the files, "
                            "pass [pathlib.Path(name) for name in ...]; to pack the names themselves, pass iter(...)")
    return None


def _is_file(text: str) -> bool:
    """Whether a text is the name of something to read, as the lists of glob.glob() and os.listdir() have them."""
    return len(text) < 4096 and (text.startswith(("https://", "http://", "s3://", "gs://"))
                                 or ("\0" not in text and os.path.exists(text)))


def _arguments(options: dict[str, Any]) -> list[str]:
    """Options of the command from keyword arguments: min_tokens=5 is --min-tokens 5."""
    made = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            made.append(option)
        elif isinstance(value, (list, tuple)):
            made += [f"{option}={item}" for item in value]
        elif value is not None and value is not False:
            made.append(f"{option}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return made


class _Unread(Exception):
    """The command has ended, and its message says why. (A BrokenPipeError can also be the source's own.)"""


class _Feed:
    """What the command reads from its standard input: frames of lines, and their end, which says how many lines there
    are. tokenize_tools/corpus/document_feed.h defines it.

    The end is written when the source has ended. If this process is killed before, the command sees that the end is
    missing, and makes no shard. Children of this process that a source forks inherit the pipe; the command does not
    wait for them to close it. Bytes that are not sent yet are in no buffer of Python's own, which a child could write
    at its exit a second time."""
    _LEAST = 1 << 16  # of the bytes of a frame, but for the last one
    _MOST = 1 << 30

    def __init__(self, pipe: Any) -> None:
        self._pipe, self._process = pipe, os.getpid()
        self._lines, self._count = bytearray(), 0

    def add(self, line: bytes) -> None:
        self._lines += line
        self._lines += b"\n"
        self._count += 1
        if len(self._lines) >= self._LEAST:
            self._frames()

    def end(self) -> None:
        self._frames()
        self._send(bytes(4) + self._count.to_bytes(8, "little"))

    def _frames(self) -> None:
        lines, self._lines = self._lines, bytearray()
        for first in range(0, len(lines), self._MOST):
            frame = lines[first:first + self._MOST]
            self._send(len(frame).to_bytes(4, "little") + frame)

    def _send(self, data: bytes | bytearray) -> None:
        if os.getpid() != self._process:
            raise ArgumentError(f"this process was forked while process {self._process} read the documents for "
                                "tokmap.pack(), and cannot continue with them; end it with os._exit()")
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._pipe.write(rest):]
        except BrokenPipeError:
            raise _Unread from None


def _feed(process: Any, documents: Iterable[Any], skip: bool) -> None:
    """Writes documents to the command's standard input, as JSONL. If the command ends early, its message says why."""
    feed = _Feed(process.stdin)
    try:
        for index, document in enumerate(documents):
            try:
                line = json.dumps(document, default=_plain)
            except (TypeError, ValueError, RecursionError) as problem:
                if not skip:
                    raise InputError(f"document {index} cannot be written as JSON: {problem}", status="ERROR_INPUT"
                                     ) from None
                line = "null"  # which the command leaves out and counts
            feed.add(line.encode())
        feed.end()
    except _Unread:
        pass


def _plain(value: Any) -> Any:
    """Arrays of NumPy and torch, as JSON can express them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _start(started: list[subprocess.Popen[bytes]], command: list[str], **options: Any) -> None:
    """Starts a command and appends its process to a list. The handlers of signals run afterwards: an exception of theirs,
    such as KeyboardInterrupt, would otherwise leave a process that runs and that the caller does not know."""
    import signal
    import subprocess
    import threading
    before: dict[int, Any] = {}
    came: list[tuple[int, Any]] = []
    number: int
    starting = True

    def wait(number: int, frame: Any) -> None:
        if starting:
            came.append((number, frame))
        else:
            before[number](number, frame)

    try:
        if threading.current_thread() is threading.main_thread():  # handlers run in no other
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                before[number] = signal.getsignal(number)
                if callable(before[number]):
                    signal.signal(number, wait)
        started.append(subprocess.Popen(command, **options))
    finally:
        try:
            for number in reversed(before):  # Ctrl-C last: what it raises ends this loop
                if callable(before[number]):
                    signal.signal(number, before[number])
        finally:
            starting = False
        for number, frame in came:
            before[number](number, frame)


def _stopping() -> int:
    """The signal that ends a command which is started now. What this process ignores, the command ignores, too: a shell
    starts a program in the background without SIGINT, nohup starts it without SIGHUP. (After SIGINT, which a terminal
    sends to both, a second one from here ends nothing early; another signal would.)"""
    import signal
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            return number
    return signal.SIGKILL


def _stop(process: subprocess.Popen[bytes], number: int) -> None:
    """Ends the command, which removes what it has written. Should a signal be blocked: without its end, a feed ends the
    command, too."""
    process.send_signal(number)
    if process.stdin is not None:
        process.stdin.close()
    process.wait()
    process.__exit__(None, None, None)  # closes the pipes


def _command(paths: list[str], out: str, tokenizer: Tokenizer | str, eod: Any, options: dict[str, Any],
             progress: bool | None, documents: Iterable[Any] | None = None) -> Packed:
    """Runs tokmap pack, of files or of documents that it reads from its standard input."""
    import subprocess
    from tempfile import TemporaryFile
    try:
        from _tokmap_commands import _path as command_path
        program = command_path("tokmap")
    except ImportError:
        program = None
    if program is None:
        raise ArgumentError("packing files needs the command tokmap, which this installation lacks: reinstall the "
                            "package (pip install ./src/python), or build it (make)")
    if isinstance(tokenizer, Tokenizer):
        special, pattern, regex, special_tokens = tokenizer._asked
        options = {"special": None if special == "text" else special, "pattern": pattern, "pattern_regex": regex,
                   "special_tokens": special_tokens, **options}
        tokenizer = tokenizer.path
    comma = next((name for name in options["columns"] if "," in name), None)
    if comma is not None:
        raise ArgumentError(f"columns contains {comma!r}, but the command tokmap, which packs this source, splits "
                            "names at commas: pass each name as an item of its own")
    border = ["--no-eod"] if eod is False else [] if eod is None else ["--eod"] if eod is True else [f"--eod={eod}"]
    shown = sys.stderr.isatty() if progress is None else progress
    process_id, stopping = os.getpid(), _stopping()
    command = [program, "pack", "--json", "-o", out, "-t", tokenizer, *border, *_arguments(options),
               *([] if documents is None else [f"--feeder={process_id}"]),
               *([] if shown else ["--progress=none"]), "--", *paths]
    with TemporaryFile() as messages:
        started: list[subprocess.Popen[bytes]] = []
        try:
            _start(started, command, stdin=subprocess.DEVNULL if documents is None else subprocess.PIPE,
                   stdout=subprocess.PIPE, stderr=None if shown else messages, bufsize=0)
            process = started[0]
            if documents is not None:
                _feed(process, documents, options["on_error"] == "skip")
            printed, _ = process.communicate()
        except BaseException:  # Ctrl-C, or an error of the source: the command removes what it has written
            for process in started if os.getpid() == process_id else ():  # it is not the command of a forked child
                _stop(process, stopping)
            raise
        messages.seek(0)
        said = messages.read()
    if process.returncode:
        text = said.decode("utf-8", "replace").strip() if said else f"tokmap pack ended with {process.returncode}"
        if "the output already exists; choose another name, or use --force" in text:
            raise ExistsError(text.replace("use --force", "pass force=True"))
        if process.returncode == 2:
            raise ArgumentError(text)
        absent = next((path for path in (*paths, tokenizer) if path not in ("-", "bytes") and "://" not in path and
                       set(path).isdisjoint("*?[") and not os.path.exists(path)), None)
        raise InputError(text) if absent is None else MissingInputError(text, path=absent)
    skipped, counts = 0, {}
    try:
        report = json.loads(printed)
        skipped, counts = int(report["records_skipped"]), report.get("columns", {})
    except ValueError:
        pass
    if not shown:  # otherwise the command has said so
        for line in said.decode("utf-8", "replace").splitlines():
            _, mark, text = line.partition("tokmap pack: warning: ")
            if mark and " of --columns: its column is empty" not in text:  # which is said below, as Python calls it
                warnings.warn(text, stacklevel=3)
        _warn_of_empty((name for name in counts if not counts[name]), 3)
    return _packed(out, skipped)


def _warn_of_empty(columns: Iterable[str], frames: int) -> None:
    """Warns as the command does: a name that no document has is probably misspelled. frames: from here to the program's
    call."""
    for name in columns:
        warnings.warn(f"no record has the field {name!r} of columns: its column is empty", stacklevel=frames + 1)


def _warn_of_untaught(conversations: int, frames: int) -> None:
    """Warns of conversations in which nobody says what could be learned."""
    if conversations:
        warnings.warn(f"in {counted(conversations, 'conversation')} no token counts as a target: no message has the "
                      "role 'assistant', or each has the weight 0", stacklevel=frames + 1)


def _border(tokenizer: Tokenizer, wanted: bool | int | str | None, own: int | None, name: str) -> int | None:
    """The id that eod= or bos= asks for."""
    if wanted is None or wanted is False:
        return own if wanted is None else None
    if wanted is True:
        if own is None:
            raise ArgumentError(f"the vocabulary names no {name.upper()}; pass its name or id: {name}=ID")
        return own
    if isinstance(wanted, str):
        tokens = tokenizer.special_tokens
        found = next((tokens[text] for text in (wanted, f"<|{wanted}|>", f"<{wanted}>") if text in tokens), None)
        if found is None:
            raise ArgumentError(f"{name} is {wanted!r}, which is not a special token of the tokenizer")
        return found
    return number(wanted, name, 0, tokenizer.vocab_size - 1)


def _check_names(given: Iterable[str]) -> None:
    """Refuses options that neither pack() nor the command has."""
    for name in given:
        if name not in _FOR_FILES:
            known = _FOR_FILES.union(pack.__kwdefaults__ or ())
            raise ArgumentError(f"unknown option {name!r}{did_you_mean(name, known)}")


def pack(source: Any, out: Path, *, tokenizer: Tokenizer | Path = "bytes", eod: bool | int | str | None = None,
         bos: bool | int | str = False, field: str | None = None, ids_field: str | None = None,
         mask_field: str | None = None, labels_field: str | None = None, prompt_field: str | None = None,
         completion_field: str | None = None, messages_field: str | None = None, chat_template: Any = None,
         ignore_fields: str | Iterable[str] = (), columns: str | Iterable[str] = (), min_tokens: int | None = None,
         max_tokens: int | None = None, on_error: str = "stop", threads: int | None = None, force: bool = False,
         progress: bool | None = None, **command: Any) -> Packed:
    """Packs documents into a shard, out.bin and out.tmx, with the ids and the content id that `tokmap pack` gives them.

    source     a path or pattern (str or PathLike), or a list of PathLike: the command packs these files, and takes its
               other options as keywords, such as input_format="jsonl". Or an iterable of documents: str, bytes, or
               dicts (a list of str is a list of texts, and an error if each is the name of a file; a dict is an error,
               too). Or a table or column of any library with __arrow_c_stream__: pyarrow, Polars, DuckDB, datasets
    tokenizer  a Tokenizer, or its path
    eod, bos   True, an id, or the name of a special token; eod=None: the vocabulary's, where it names one. They are
               added to each document, but not to ids that end or begin with them already
    field      the field of dicts, or the column of a table, that has the text; default: "text"
    ids_field, mask_field
               the fields that have ready-made ids, and 1 for each that counts as a target
    labels_field
               in place of mask_field, not for files: the field that has the ids again, with -100 for each that does not
               count as a target, as transformers' labels (not shifted)
    prompt_field, completion_field
               both are encoded, and only the tokens of the completion count
    messages_field, chat_template
               the field that has a conversation, and the name of a template or a file, as for the command. Or, not
               for files, a tokenizer of transformers whose template, which must mark what the assistant says with
               {% generation %}, renders it, with the record's tools, documents, and chat_template_kwargs; the command
               makes the tokens, so what reads like a special token in a message is text. No eod is added then unless
               asked for. A message with "weight": 0 or "train": False is not learned
    ignore_fields
               keys beside the messages, or in them, that count for nothing though they say something, such as "tools".
               Those that the template does not write are an error otherwise
    columns    fields that the index keeps for each document, such as ["url", "score"] or "url,score"; a field that none
               of them has is a warning
    min_tokens, max_tokens
               documents with fewer or more ids, eod and bos not counted, are left out
    on_error   "stop": a bad document is an InputError; "skip": it is left out and counted
    threads    how many encode; None: one for each processor. The shard does not depend on it
    force      replaces an existing shard
    progress   True or False; None: on a terminal

    A missing folder of `out` is made. An exception, Ctrl-C included, leaves nothing behind. If this process is killed,
    no shard gets the name `out` unless it is complete; the next call replaces files that end in .partial. A child
    process that the source forks must not continue with the documents, which belong to its parent.
    """
    _check_names(command)
    chosen, ignored = names_argument(columns), names_argument(ignore_fields)
    if ignored and messages_field is None:
        raise ArgumentError("ignore_fields is about conversations: pass messages_field")
    if on_error not in ("stop", "skip"):
        raise ArgumentError(f"on_error is {on_error!r}, but it must be one of: stop, skip")
    paths = _paths(source)
    if paths is not None:
        if labels_field is not None:
            raise ArgumentError("labels_field is not for files: pass an iterable of dicts, or use mask_field")
        options = {"bos": bos, "field": field, "ids_field": ids_field, "mask_field": mask_field,
                   "prompt_field": prompt_field, "completion_field": completion_field, "messages_field": messages_field,
                   "chat_template": chat_template, "ignore_fields": ignored, "columns": chosen, "min_tokens": min_tokens, "max_tokens": max_tokens,
                   "on_error": on_error, "threads": threads, "force": force, **command}
        return _command(paths, os.fspath(out), tokenizer if isinstance(tokenizer, Tokenizer) else os.fspath(tokenizer),
                        eod, options, progress)
    if command:
        raise ArgumentError(f"{', '.join(command)}: these options are for files, but source is not a path")
    if mask_field is not None and labels_field is not None:
        raise ArgumentError("mask_field and labels_field exclude each other")
    fields = _fields(field, ids_field, labels_field if mask_field is None else mask_field, prompt_field,
                     completion_field, messages_field, chat_template)
    fields["labels"] = labels_field is not None
    options = {"input_format": "jsonl", "bos": bos, "messages_field": messages_field, "chat_template": chat_template,
               "columns": chosen, "min_tokens": min_tokens, "max_tokens": max_tokens, "on_error": on_error,
               "threads": threads, "force": force}
    documents = _rows_of(source) if is_arrow(source) and messages_field is not None else source
    if isinstance(chat_template, (str, os.PathLike)):  # the command has the templates
        return _command(["-"], os.fspath(out), tokenizer if isinstance(tokenizer, Tokenizer) else os.fspath(tokenizer),
                        eod, {**options, "ignore_fields": ignored}, progress, documents)
    if messages_field is not None and not hasattr(chat_template, "apply_chat_template"):
        raise ArgumentError("chat_template must be a tokenizer of transformers, the name of a template, or a path")
    opened = tokenizer if isinstance(tokenizer, Tokenizer) else Tokenizer(tokenizer)
    if messages_field is not None and hasattr(chat_template, "get_chat_template"):
        name = messages_field  # of the pieces; a column may have that name, too
        while name in chosen:
            name += "_"
        conversations = Conversations(chat_template, opened, messages_field, chosen, ignored)
        pieces = _rendered(documents, conversations, name, chosen, on_error == "skip")
        return _command(["-"], os.fspath(out), opened, False if eod is None else eod,
                        {**options, "messages_field": name, "chat_template": "rendered"}, progress, pieces)
    own = None if fields["content"] == "messages" and eod is None else opened.eod_id
    names = ("special", "pattern", "pattern_regex", "special_tokens")
    about = {"tokenizer": {"name": opened.name, "path": opened.path, **dict(zip(names, opened._asked))}}
    eod_id, bos_id = _border(opened, eod, own, "eod"), _border(opened, bos, opened.bos_id, "bos")
    delimited = fields["content"] != "text" and (eod_id is not None or bos_id is not None)
    line = _Progress(progress)
    writer: ShardWriter | None = None
    made: list[str] = []
    try:
        _make_folder(os.path.dirname(os.fspath(out)), made)
        writer = _writer(out, vocab_size=opened.vocab_size, eod=eod_id, bos=bos_id, delimited=delimited,
                         tokenizer=opened, replace=force, about=about, columns=chosen,
                         mask=fields["second"] is not None or fields["content"] == "messages")
        with writer:
            rules = _Rules(opened, writer, fields, chosen, (min_tokens or 0, max_tokens or sys.maxsize),
                           on_error == "skip", 0 if threads is None else number(threads, "threads", 1), chat_template,
                           ignored)
            if delimited:
                rules.eod, rules.bos = eod_id, bos_id
            _run(source, rules, line, field)
            if not writer.documents:  # as the command does
                raise InputError("the inputs contain no documents" +
                                 (f": {rules.skipped} were left out" if rules.skipped else "") +
                                 "; pass documents that contain text", status="ERROR_INPUT")
            writer.describe({**about, "totals": rules.totals()})
        line.show(writer.documents, writer.tokens, last=True)
    except BaseException:
        if writer is not None:  # Ctrl-C may have come before `with` or in the first instruction after it
            writer.abandon()
        for folder in reversed(made):
            try:
                os.rmdir(folder)
            except OSError:  # it has other files by now
                break
        line.end()
        raise
    _warn_of_empty((name for name in chosen if name in rules.empty), 2)
    _warn_of_untaught(rules.untaught, 2)
    return _packed(os.fspath(out), rules.skipped)


def _make_folder(path: str, made: list[str]) -> None:
    """Makes a folder, and those that contain it, where they are missing, as the command does, and appends their names.
    If that fails, the writer says why it cannot write into it."""
    if path and "://" not in path and not os.path.isdir(path):
        _make_folder(os.path.dirname(path), made)
        try:
            os.mkdir(path)
        except OSError:
            return
        made.append(path)


def _writer(out: Path, **options: Any) -> ShardWriter:
    """The writer of the shard. Its argument `replace` has another name in pack()."""
    try:
        return ShardWriter(out, **options)
    except ExistsError as error:
        error.text, error.message = (said.replace("use replace", "pass force=True")
                                     for said in (error.text, error.message))
        raise


def _fields(field: str | None, ids: str | None, mask: str | None, prompt: str | None, completion: str | None,
            messages: str | None, chat: Any) -> dict[str, Any]:
    """What documents hold, and the names of the fields."""
    if sum(name is not None for name in (field, ids, prompt, messages)) > 1:
        raise ArgumentError("field, ids_field, prompt_field, and messages_field exclude each other")
    if (prompt is None) != (completion is None):
        raise ArgumentError("prompt_field and completion_field belong together")
    if mask is not None and ids is None:
        raise ArgumentError("mask_field and labels_field need ids_field")
    if (messages is None) != (chat is None):
        raise ArgumentError("messages_field and chat_template belong together")
    if ids is not None:
        return {"content": "ids", "field": ids, "second": mask}
    if prompt is not None:
        return {"content": "prompt", "field": prompt, "second": completion}
    if messages is not None:
        return {"content": "messages", "field": messages, "second": None}
    return {"content": "text", "field": field or "text", "second": None}


def _run(source: Any, rules: _Rules, line: _Progress, field: str | None) -> None:
    """Packs all documents of a source."""
    if is_arrow(source) and rules.fields["content"] == "text" and not rules.columns:
        chunks = arrow_columns(source, field or (rules.fields["field"] if hasattr(source, "columns") else None))
        try:
            for column in chunks:
                for struct, sizes, nulls in _slices(column):
                    rules.texts(struct, sizes, nulls=nulls)
                    line.show(rules.documents, rules.tokens)
        finally:
            chunks.close()  # type: ignore[attr-defined]
        return
    for group in _groups(_rows_of(source) if is_arrow(source) else source):
        rules.records(group)
        line.show(rules.documents, rules.tokens)
