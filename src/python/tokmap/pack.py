# SPDX-License-Identifier: MIT
"""pack(): documents from a Python program, from Arrow, or from files, as a shard."""
from __future__ import annotations

import json
import os
import re
import sys
import warnings
from array import array
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from itertools import chain, islice
from time import time

from ._arrow import Column, columns as arrow_columns, is_arrow
from ._conversations import Conversations, value_of
from ._learn import Learn
from ._ids import documents as id_batches, pack_ids
from ._library import counted, did_you_mean, names_argument, number, of_type
from ._memory import elements, find
from .dataset import Dataset
from .errors import ArgumentError, InputError, TokmapError, class_of, error_of
from .shard_writer import plain
from .tokenizer import Tokenizer, path_of

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    import subprocess
    from typing import Any, Callable, Generator, Iterable, Iterator

    from typing_extensions import Unpack

    from .hints import FileOptions, Path

_MOST = "1T"     # bytes of a record that is fed to the command: no limit
_NONE = "; pass documents that contain text"
_ARROW = (".arrow", ".arrows", ".feather")
_IGNORED = -100  # the label of an id that does not count as a target, as in torch and transformers


# Options that say how files are found and read, or divided among commands.
_OF_FILES = ("exclude", "files_from", "finish", "hidden", "include", "input_format", "invalid_utf8", "json",
             "max_record", "null", "quiet", "separator", "status", "table_files", "task", "unit_bytes", "wait")


class Packed:
    """What pack() has made. path is the name of the shard, which Dataset and Run open; documents and tokens are those of
    the shard; content is its content id; skipped is the number of documents that were left out, by on_error="skip",
    min_tokens, or max_tokens; learned is, of conversations with the argument learn, how many tokens of each role
    count; sets is, with the argument split, what it has made of each set, by name: then path and content are those of
    no dataset, and content is empty, as with dry_run."""

    def __init__(self, path: str, documents: int, tokens: int, content: str, skipped: int,
                 learned: dict[str, int] | None = None, sets: dict[str, Packed] | None = None) -> None:
        self.path, self.documents, self.tokens, self.content = path, documents, tokens, content
        self.skipped, self.learned, self.sets = skipped, learned or {}, sets or {}

    def __repr__(self) -> str:
        return (f"<tokmap Packed {self.path!r}: {counted(self.documents, 'document')}, "
                f"{counted(self.tokens, 'token')}, content {self.content}>")


def _packed(out: str, skipped: int, learned: dict[str, int] | None = None, report: Any = None) -> Packed:
    """The result: the content id is that of the dataset, which covers a mask, too. report: that of the command."""
    if report and (report.get("dry_run") or report.get("sets") or "://" in out):
        sets = {name: Packed(f"{out}.{name}", of["documents"], of["tokens"], of["content"], 0)
                for name, of in report.get("sets", {}).items()}
        return Packed(out, report["documents"], report["tokens"], report.get("content", ""), skipped, learned, sets)
    with Dataset(out) as dataset:
        return Packed(out, dataset.info.documents, dataset.info.tokens, dataset.info.content, skipped,
                      learned)


def _row(record: Any, columns: Iterable[str], index: int) -> dict[str, Any]:
    """The columns of a record. What it lacks, the index can say."""
    row = {}
    for name in columns:
        with suppress(InputError):
            row[name] = value_of(record, name, index)
    return row


def _text_of(record: Any, field: str, index: int) -> str:
    value = value_of(record, field, index)
    if not isinstance(value, (str, bytes)):
        raise InputError(f"document {index}: the field {field!r} is {type(value).__name__}, but it must be str or "
                         "bytes")
    try:
        if isinstance(value, bytes):
            return value.decode()
        value.encode()
        return value
    except UnicodeError:
        raise error_of("ERROR_ENCODING", f"document {index}: the field {field!r} is not UTF-8") from None


class _Records:
    """The records that the command packs, made of those of a program, which can have values that JSON lacks: of each,
    its content and its columns."""

    def __init__(self, source: Iterable[Any], content: Any, columns: tuple[str, ...], skip: bool) -> None:
        self.source, self.content, self.columns, self.skip = source, content, columns, skip
        self.names: list[str] = []  # of the fields of the content; a column can have the same name and another value
        for name in content.fields.values():
            while name in columns:
                name += "_"
            self.names.append(name)

    def __iter__(self) -> Iterator[Any]:
        argument, first = next(iter(self.content.fields.items()))
        for index, item in enumerate(self.source):
            try:
                if item is None:
                    raise InputError(f"document {index} is null")
                record = {first: item} if not hasattr(item, "keys") and isinstance(item, self.content.plain) else item
                if not hasattr(record, "keys"):
                    raise InputError(f"document {index} is {type(item).__name__}, but must be " +
                                     ("str, bytes, or " if self.content.plain else "") +
                                     f"a dict with the field {first!r}" +
                                     ("; vocab_size= takes token ids" if hasattr(item, "__len__") else ""))
                made = {**dict(zip(self.names, self.content.read(record, index))),
                        **_row(record, self.columns, index)}
            except InputError as problem:
                if not self.skip:
                    names = f"{argument}= names it, and " if f"no field {first!r};" in problem.text else ""
                    problem.text += f'; {names}on_error="skip" leaves such documents out'
                    raise
                made = None  # which the command leaves out and counts
            yield made


class _Texts:
    """Texts, or prompts and completions. plain: the types of documents that need no field. options: those of the
    command, beside the names of the fields."""
    options: dict[str, Any] = {"max_record": _MOST}
    untaught = 0

    def __init__(self, plain: bool, **fields: str) -> None:
        self.plain, self.fields = (str, bytes) if plain else (), fields

    def read(self, record: Any, index: int) -> list[str]:
        return [_text_of(record, field, index) for field in self.fields.values()]


class _Ids:
    """Ids, and the ones that count, checked in the words of the program."""
    options: dict[str, Any] = {"max_record": _MOST, "special": None}
    untaught = 0

    def __init__(self, ids: str, second: str | None, labels: bool, size: int, plain: bool) -> None:
        self.field, self.second, self.labels, self.size = ids, second, labels, size
        self.plain = object if plain else ()
        self.fields = {"ids_field": ids} if second is None else {"ids_field": ids, "mask_field": second}

    def read(self, record: Any, index: int) -> list[list[int]]:
        first = value_of(record, self.field, index)
        other = None if self.second is None else value_of(record, self.second, index)
        try:
            ids = array("q", _numbers(first))
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"document {index}: the field {self.field!r} is not a list of token ids"
                             f"{_first_wrong(first, 2 ** 63)}") from None
        least, most = min(ids, default=0), max(ids, default=0)
        if least < 0 or most >= self.size:
            wrong = least if least < 0 else most
            raise InputError(f"document {index} has the id {wrong}, which is not in the vocabulary of {self.size} ids")
        return [ids.tolist()] if self.second is None else [ids.tolist(), self._mask(other, index, ids)]

    def _mask(self, value: Any, index: int, ids: array[int]) -> list[int]:
        if self.labels:
            value = self._counted(value, index, ids)
        try:
            mask = bytes(_numbers(value))
            if max(mask, default=0) > 1:
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"document {index}: the field {self.second!r} is not a list of 0 and 1"
                             f"{_first_wrong(value, 2)}") from None
        if len(mask) != len(ids):
            raise InputError(f"document {index} has {counted(len(ids), 'id')}, but a mask of {len(mask)}")
        return list(mask)

    def _counted(self, labels: Any, index: int, ids: array[int]) -> list[bool]:
        """Which ids count, from their labels."""
        try:
            labels = _numbers(labels)
        except TypeError:
            raise InputError(f"document {index}: the field {self.second!r} is not a list of labels") from None
        for at, (id, label) in enumerate(zip(ids, labels)):
            if isinstance(label, bool) or label not in (_IGNORED, id):
                raise InputError(f"document {index}: label {at} is {label!r}, but must be the id, {id}, or {_IGNORED}: "
                                 f"labels that are shifted or changed cannot become a mask")
        return [label != _IGNORED for label in labels]


def _numbers(values: Any) -> list[Any]:
    """The elements of a list or an array."""
    if isinstance(values, (str, bytes, dict, set, frozenset)):
        raise TypeError
    if isinstance(values, (list, tuple)):
        return list(values)
    try:
        find(values, "it")  # which refuses a masked array
        return list(values.tolist()) if hasattr(values, "dtype") else elements(values, "it").tolist()
    except (ValueError, RuntimeError):
        raise TypeError from None


def _first_wrong(values: Any, limit: int) -> str:
    """The first element of a list that is not a number below a limit, for the end of a message."""
    try:
        return next((f": element {at} is {one!r}" for at, one in enumerate(_numbers(values))
                     if not hasattr(one, "__index__") or not 0 <= one < limit), "")
    except TypeError:
        return f", but {of_type(values)}"


class _Column(Column):
    default = "text"
    advice = "cast it first, or pass vocab_size= if it has token ids"


def _texts_of(source: Any, field: str | None) -> Iterator[bytes | None]:
    """The texts of an Arrow array, or of a column of an Arrow table."""
    chunks = arrow_columns(source, field or ("text" if hasattr(source, "columns") else None), _Column)
    try:
        for column in chunks:
            yield from column
    finally:
        chunks.close()  # type: ignore[attr-defined]


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


def _rows_in(source: Any, rows_of: Callable[[Any], Iterable[Any]]) -> Generator[Any, None, None]:
    """The documents of a source: the rows of a table, and of each table in an iterable."""
    for item in (source,) if is_arrow(source) else source:
        if not isinstance(item, (str, bytes, dict, list)) and is_arrow(item):
            yield from rows_of(item)
        else:
            yield item


class _ArrowFiles:
    """The batches of files of Arrow, in the format of files or of streams."""

    def __init__(self, paths: list[str]) -> None:
        from glob import glob
        self.paths: list[str] = []
        for path in paths:
            found = sorted(glob(path, recursive=True)) if not set(path).isdisjoint("*?[") else [path]
            if not found:
                raise InputError(f"{path}: no file matches this pattern; check the path with 'ls'")
            self.paths += found
        for path in self.paths:
            if not path.endswith(_ARROW):
                raise ArgumentError(f"{path} is not a file of Arrow ({', '.join(_ARROW)}), but others are: pack them "
                                    "apart")
        try:
            self.pyarrow, self.ipc = import_module("pyarrow"), import_module("pyarrow.ipc")
        except ImportError:
            raise ArgumentError(f"{self.paths[0]}: files of Arrow need pyarrow: install it, or write the documents as "
                                "Parquet or JSONL") from None

    def __iter__(self) -> Iterator[Any]:
        for path in self.paths:
            try:
                with self.pyarrow.memory_map(path) as file:
                    if file.read(6) == b"ARROW1":
                        reader = self.ipc.open_file(file)
                        yield from map(reader.get_batch, range(reader.num_record_batches))
                        continue
                    file.seek(max(0, file.size() - 8))
                    if file.read(8) != b"\xff\xff\xff\xff\0\0\0\0":
                        raise InputError(f"{path}: the stream has no end, so it may lack rows: whoever wrote it was "
                                         "killed, or the file was not copied whole; write it again")
                    file.seek(0)
                    yield from self.ipc.open_stream(file)
            except self.pyarrow.ArrowInvalid as problem:
                raise InputError(f"{path}: this is not a whole file of Arrow: {problem}; write it again") from None


def _paths(source: Any) -> list[str] | None:
    """The paths that a source is, or None. Refuses what would be packed as something else than it is."""
    if isinstance(source, Mapping):
        parts = [name for name, part in source.items() if hasattr(part, "column_names")]  # a DatasetDict of datasets
        if parts:
            some = ", ".join(map(repr, parts[:5])) + (", ..." if len(parts) > 5 else "")
            raise error_of("ERROR_ARGUMENT",
                           f"source has {counted(len(parts), 'dataset')}, {some}: pack one of them, such as "
                           f"source[{parts[0]!r}]", TypeError)
        raise error_of("ERROR_ARGUMENT", f"source is {of_type(source)}, whose keys would be packed: pass a list of "
                       "dicts, one for each document", TypeError)
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
    are. tokenize_tools/inputs/corpus/byte_source.h defines it.

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


def _lines(documents: Iterable[Any], skip: bool) -> Iterator[bytes]:
    """Documents as JSONL."""
    for index, document in enumerate(documents):
        try:
            line = json.dumps(document, default=plain)
        except (TypeError, ValueError, RecursionError) as problem:
            if not skip:
                raise InputError(f"document {index} cannot be written as JSON: {problem}") from None
            line = "null"  # which the command leaves out and counts
        yield line.encode()


def _known(lines: Iterator[bytes]) -> tuple[int, Iterator[bytes]]:
    """The number by which documents are known that are fed again, made of the first ones; and all of them."""
    from hashlib import blake2b
    first = list(islice(lines, 100))
    return int.from_bytes(blake2b(b"\n".join(first), digest_size=8).digest(), "little") or 1, chain(first, lines)


def _feed(process: Any, lines: Iterable[bytes]) -> int:
    """Writes the lines of documents to the command's standard input, and returns their number. If the command ends
    early, its message says why."""
    feed, index = _Feed(process.stdin), -1
    try:
        for index, line in enumerate(lines):
            feed.add(line)
        if index < 0:
            raise InputError("the inputs contain no documents" + _NONE)
        feed.end()
    except _Unread:
        pass
    return index + 1


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


def command_path(wanted: str) -> str:
    """The path of the command tokmap, which something needs."""
    try:
        from _tokmap_commands import _path
        program = _path("tokmap")
    except ImportError:
        program = None
    if program is None:
        raise ArgumentError(f"{wanted} needs the command tokmap, which this installation lacks: reinstall the package "
                            "(pip install ./src/python), or build it (make)")
    return program


def _command(paths: list[str], out: str, tokenizer: Tokenizer | Path | None, eod: Any, options: dict[str, Any],
             progress: bool | None, documents: Iterable[Any] | None = None, resume: bool = False,
             frames: int = 3) -> Packed:
    """Runs tokmap pack, of files or of documents that it reads from its standard input. frames: from here to the
    program's call."""
    import subprocess
    from tempfile import TemporaryFile
    program = command_path("packing")
    if isinstance(tokenizer, Tokenizer):
        special, pattern, regex, special_tokens, cut_as, lower_case = tokenizer._asked
        options = {"special": None if special == "text" else special, "pattern": pattern, "pattern_regex": regex,
                   "special_tokens": special_tokens, "cut_as": cut_as, "lower_case": lower_case, **options}
        tokenizer = tokenizer.path
    named = paths if tokenizer is None else [*paths, path_of(tokenizer)]
    comma = next((name for name in options["columns"] if "," in name), None)
    if comma is not None:
        raise ArgumentError(f"columns contains {comma!r}, but the command tokmap, which packs this source, splits "
                            "names at commas: pass each name as an item of its own")
    border = ["--no-eod"] if eod is False else [] if eod is None else ["--eod"] if eod is True else [f"--eod={eod}"]
    shown, known = _shown(progress), 0
    lines: Iterator[bytes] = iter(())
    if documents is not None:
        _folder_make(out)
        lines = _lines(documents, options["on_error"] == "skip")
        if resume:
            known, lines = _known(lines)
    process_id, stopping, began = os.getpid(), _stopping(), time()
    command = [program, "pack", "--json", "-o", out, *(["-t", named[-1]] if tokenizer is not None else []), *border,
               *_arguments(options), *([] if documents is None else [f"--feeder={process_id}"]),
               *([f"--feed-id={known}"] if resume and known else []), *([] if shown else ["--progress=none"]), "--",
               *paths]
    with TemporaryFile() as messages:
        started: list[subprocess.Popen[bytes]] = []
        try:
            _start(started, command, stdin=subprocess.DEVNULL if documents is None else subprocess.PIPE,
                   stdout=subprocess.PIPE, stderr=None if shown else messages, bufsize=0)
            process = started[0]
            if documents is not None:
                count = _feed(process, lines)
            printed, _ = process.communicate()
        except BaseException:  # Ctrl-C, or an error of the source: the command removes what it has written
            for process in started if os.getpid() == process_id else ():  # it is not the command of a forked child
                _stop(process, stopping)
                _clear(out, began)
            raise
        messages.seek(0)
        said = messages.read()
    text = _in_python(said.decode("utf-8", "replace")).strip()
    if process.returncode:
        raise _failure(process.returncode, text, out, began, named, count if documents is not None else None)
    skipped, counts, learned, report = 0, {}, {}, None
    try:
        report = json.loads(printed)
        skipped, counts = int(report["records_skipped"]), report.get("columns", {})
        learned = report.get("counted_tokens_of", {})
        if isinstance(getattr(documents, "content", None), Conversations) and not learned:  # which gave ids and a mask
            learned = {"assistant": report["counted_tokens"]}
    except ValueError:
        pass
    if not shown:  # otherwise the command has said so
        for line in text.splitlines():
            _, mark, warning = line.partition("tokmap pack: warning: ")
            if mark and not warning.endswith(": its column is empty"):  # which is said below
                warnings.warn(warning, stacklevel=frames)
        _warn_of_empty((name for name in counts if not counts[name]), frames)
    return _packed(out, skipped, learned, report)


def _shown(progress: bool | None) -> bool:
    return sys.stderr.isatty() if progress is None else progress


def _folder_make(out: str) -> None:
    folder = os.path.dirname(out)
    if folder and "://" not in folder:
        with suppress(OSError):  # whoever writes into it says why it cannot
            os.makedirs(folder, exist_ok=True)


def _in_python(text: str) -> str:
    """What the command says, with the arguments of pack() in place of the command's options, but for commands to type,
    which are in `backquotes`."""
    from .hints import FileOptions  # here, because it needs the module typing
    known = {*FileOptions.__annotations__, *(pack.__kwdefaults__ or ())}

    def argument(found: re.Match[str]) -> str:
        name = found[1].replace("-", "_")
        value = found[2] or ""
        value = value if value.isupper() or not value[:1].isalpha() else repr(value)
        if not value and "bool" in str(FileOptions.__annotations__.get(name)):
            value = "True"
        return "eod=False" if name == "no_eod" else f"{name}={value}" if name in known else found[0]

    text = text.replace("Try 'tokmap pack --help'", "help(tokmap.pack) lists the arguments")
    parts = text.replace(" -t ", " --tokenizer ").split("`")
    option = r"(?<![\w-])--([a-z][a-z0-9-]*)(?:[ =](\d\w*|[A-Z]+\b|skip|(?<=learn )[\w,-]+|\w+=[\w.=%,]*\w))?"
    parts[::2] = [re.sub(option, argument, part) for part in parts[::2]]
    return "`".join(parts)


def _clear(out: str, began: float) -> str:
    """Removes what a command that was killed has left of an output: the files that end in .partial, if they are of this
    call and nobody writes them. Work that the same call continues stays. Returns what became of it."""
    import fcntl
    from glob import escape, iglob
    if os.path.exists(out + ".work"):
        return f"the same call continues (its work so far is in {out}.work)"
    for path in iglob(escape(out) + "[.-]*.partial"):
        with suppress(OSError), open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_mtime > began - 1:
                os.remove(path)
    return "the unfinished output has been removed"


def _failure(code: int, said: str, out: str, began: float, named: Iterable[str], count: int | None) -> TokmapError:
    """The exception for a command that has failed. named: the paths that were passed. count: of documents that were
    fed to it."""
    import errno
    import signal
    text = said or f"tokmap pack ended with {code}"
    if code < 0:
        return error_of("ERROR_INTERRUPTED", f"the command tokmap pack was killed by {signal.Signals(-code).name}, by "
                        f"the system if memory was short (lower threads, or allow more memory); {_clear(out, began)}")
    if "the output already exists; choose another name, or use force=" in text:
        return error_of("ERROR_EXISTS", text.replace("use force=", "pass force=True"))
    if code == 2:
        return ArgumentError(text)
    if text.endswith("choose one with chat_template="):
        return ArgumentError(f'{text}"chatml", for example, a file or folder, or a tokenizer of transformers')
    if count is not None and ("no document is left to pack" in text or "contain no documents" in text):
        return InputError(f"the inputs contain no documents: {count} were left out" + _NONE)
    absent = next((path for path in named if path not in ("-", "bytes") and "://" not in path and
                   set(path).isdisjoint("*?[") and not os.path.exists(path)), None)
    if absent is not None:
        return class_of("ERROR_INPUT", FileNotFoundError)(text, path=absent, status="ERROR_NOT_FOUND")
    system = next((number for number in errno.errorcode if f": {os.strerror(number)}\n" in text + "\n"), 0)
    return error_of("ERROR_MEMORY" if system == errno.ENOMEM else "ERROR_IO" if system else "ERROR_INPUT", text,
                    system=system)


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


def _border(tokenizer: Tokenizer | None, wanted: bool | int | str | None, own: int | None, name: str,
            size: int) -> int | None:
    """The id that eod= or bos= asks for."""
    if wanted is None or wanted is False:
        return own if wanted is None else None
    if tokenizer is None and (wanted is True or isinstance(wanted, str)):
        raise ArgumentError(f"{name} is {wanted!r}, but with vocab_size, which names no tokenizer, it must be an id")
    if tokenizer is None:
        return number(wanted, name, 0, size - 1)
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
    return number(wanted, name, 0, size - 1)


def _check_names(given: Iterable[str]) -> None:
    """Refuses options that neither pack() nor the command has."""
    from .hints import FileOptions  # here, because it needs the module typing
    for name in given:
        if name not in FileOptions.__annotations__:
            known = {*FileOptions.__annotations__, *(pack.__kwdefaults__ or ())}
            raise ArgumentError(f"unknown option {name!r}{did_you_mean(name, known)}")


def pack(source: Any, out: Path, *, tokenizer: Tokenizer | Path | None = None, eod: bool | int | str | None = None,
         bos: bool | int | str = False, field: str | None = None, ids_field: str | None = None,
         mask_field: str | None = None, labels_field: str | None = None, prompt_field: str | None = None,
         completion_field: str | None = None, messages_field: str | None = None, chat_template: Any = None,
         ignore_fields: str | Iterable[str] = (), learn: str | Iterable[str] | None = None,
         columns: str | Iterable[str] = (), min_tokens: int | None = None,
         max_tokens: int | None = None, on_error: str = "stop", threads: int | None = None, force: bool = False,
         progress: bool | None = None, resume: bool = False, **command: Unpack[FileOptions]) -> Packed:
    """Packs documents into a shard, out.bin and out.tmx, with the ids and the content id that `tokmap pack` gives them.

    source     a path or pattern (str or PathLike), or a list of PathLike: the command packs these files; pyarrow reads
               those that end in .arrow, .arrows, or .feather. Or an iterable of documents: str, bytes, or
               dicts (a list of str is a list of texts, and an error if each is the name of a file; a dict is an error,
               too). Or a table or column of any library with __arrow_c_stream__: pyarrow, Polars, DuckDB, pandas; or
               an iterable of such tables. Or a function that returns one of these
    tokenizer  a Tokenizer, or its path; default: "bytes"
    vocab_size
               the documents are token ids, and each is a whole number below this one: no tokenizer is needed. A
               document is a list, an array.array, or a one-dimensional array of NumPy or torch, or a dict with one in
               ids_field. Or source is a two-dimensional array with a document in each row, or a column of Arrow of
               lists (list, large_list, fixed_size_list of int8 to uint64), alone or in tables. An id that is negative,
               too large, null, or no whole number is an InputError with its document and its value
    eod, bos   True, an id, or the name of a special token; eod=None: the vocabulary's, where it names one, and none
               with vocab_size, with which both must be ids. They are added to each document, but not to ids that end or
               begin with them already
    field      the field of dicts, or the column of a table, that has the text; default: "text"
    ids_field, mask_field
               the fields that have ready-made ids, and 1 for each that counts as a target. ids_field needs tokenizer,
               or vocab_size, with which its default is "input_ids", or the only column
    labels_field
               in place of mask_field: the field that has the ids again, with -100 for each that does not
               count as a target, as transformers' labels (not shifted)
    prompt_field, completion_field
               both are encoded, and only the tokens of the completion count
    messages_field, chat_template
               the field that has a conversation, and the name of a template or a file, as for the command; None: the
               template beside the tokenizer. Or, not for files, a tokenizer of transformers whose template, which must
               mark what the assistant says with {% generation %}, renders it, with the record's tools, documents, and
               chat_template_kwargs; the command makes the tokens, so what reads like a special token in a message is
               text. No eod is added then unless asked for. A message with "weight": 0 or "train": False is not learned
    ignore_fields
               keys beside the messages, or in them, that count for nothing though they say something, such as "tools".
               Those that the template does not write are an error otherwise
    learn      which tokens of a conversation are learned, such as "assistant,tool,-thinking" or a list of these words:
               the roles assistant, tool, system, and user, with the tokens that end their turns (None: assistant);
               "-thinking": not what is between thinking tags; "-calls": not the calls of tools; "last": only the
               answers to the last question. A message with "weight" or "train" decides for itself. Packed.learned
               says how many tokens of each role are learned
    columns    fields that the index keeps for each document, such as ["url", "score"] or "url,score"; a field that none
               of them has is a warning
    min_tokens, max_tokens
               documents with fewer or more ids, eod and bos not counted, are left out
    command    the other options of `tokmap pack`, with _ for -: split="train=99%,val=1%", shuffle=7, dedup="exact",
               exclude_ngrams, drop, shard_tokens="1G", seal=True, also, fim, and more; those about how files are found
               and read, such as input_format, only for files. dedup="minhash" reads twice, so it is for files, too
    on_error   "stop": a bad document is an InputError; "skip": it is left out and counted
    threads    how many encode; None: one for each processor. The shard does not depend on it
    force      replaces an existing shard
    progress   True or False; None: on a terminal
    resume     source gives the same documents again if it is asked again: after a kill, or an exception, the same call
               continues. It asks for all documents, from the first one on, and packs those that it has not packed yet.
               Refused for iterators, and other sources that give documents once (pass the function that makes them),
               and where the first 100 documents, or the length of what was packed, have changed. Excludes dedup.
               Files always continue. checkpoint_seconds=4 says how often; no_resume=True starts over

    A missing folder of `out` is made. An exception, Ctrl-C included, leaves nothing behind; with resume, the folder
    out.work. If this process is killed, no shard gets the name `out` unless it is complete; the next call replaces
    files that end in .partial. A child
    process that the source forks must not continue with the documents, which belong to its parent.
    """
    _check_names(command)
    chosen, ignored = names_argument(columns), names_argument(ignore_fields)
    if ignored and messages_field is None:
        raise ArgumentError("ignore_fields is about conversations: pass messages_field")
    if learn is not None and messages_field is None:
        raise ArgumentError("learn is about conversations: pass messages_field")
    words = None if learn is None else Learn(names_argument(learn))
    if on_error not in ("stop", "skip"):
        raise ArgumentError(f"on_error is {on_error!r}, but it must be one of: stop, skip")
    paths = _paths(source)
    if paths is not None and any(path.endswith(_ARROW) and "://" not in path for path in paths):
        source, paths = _ArrowFiles(paths), None
    if paths is not None:
        options = {"bos": bos, "field": field, "ids_field": ids_field, "mask_field": mask_field,
                   "labels_field": labels_field, "prompt_field": prompt_field, "completion_field": completion_field,
                   "messages_field": messages_field, "chat_template": chat_template, "ignore_fields": ignored,
                   "learn": words and words.text, "columns": chosen, "min_tokens": min_tokens,
                   "max_tokens": max_tokens, "on_error": on_error, "threads": threads, "force": force, **command}
        return _command(paths, os.fspath(out), tokenizer, eod, options, progress)
    refused = [name for name in command if name in _OF_FILES]
    if refused:
        raise ArgumentError(f"{', '.join(refused)}: these options are for files, but source is not a path; write the "
                            "documents to files first, such as JSONL or Parquet")
    if resume and "dedup" in command:
        raise ArgumentError("resume and dedup exclude each other, because source is not a path: what was packed "
                            "would have to be compared again; write the documents to files")
    if callable(source) and not hasattr(source, "__iter__") and not is_arrow(source):
        source = source()
    elif resume and (hasattr(source, "__next__") or hasattr(source, "read_next_batch")):
        raise ArgumentError("resume=True needs a source that gives its documents again from the first one on, but "
                            f"source is {of_type(source)}, which gives them once: pass the function that makes it, "
                            "such as lambda: documents()")
    _check_fields(field, ids_field, mask_field, labels_field, prompt_field, completion_field, messages_field,
                  chat_template)
    if threads is not None:
        number(threads, "threads", 1)
    size = command.pop("vocab_size", None)
    options = {"input_format": "jsonl", "bos": bos, "columns": chosen, "min_tokens": min_tokens,
               "max_tokens": max_tokens, "on_error": on_error, "threads": threads, "force": force, **command}
    fields = (ids_field, labels_field if mask_field is None else mask_field, labels_field is not None)
    if size is not None:
        for name, value in (("tokenizer", tokenizer), ("field", field), ("prompt_field", prompt_field),
                            ("messages_field", messages_field)):
            if value is not None:
                raise ArgumentError(f"vocab_size and {name} exclude each other: vocab_size is for documents of token "
                                    "ids without their tokenizer")
        return _pack_ids(source, os.fspath(out), fields, number(size, "vocab_size", 1, 2 ** 32 - 1), eod, options,
                         progress, resume)
    if ids_field is not None and tokenizer is None:
        raise ArgumentError("the ids of ids_field are checked: name their tokenizer with tokenizer=, or only the size "
                            "of its vocabulary with vocab_size=")
    tokenizer = "bytes" if tokenizer is None else tokenizer
    is_text = ids_field is None and prompt_field is None and messages_field is None and not chosen
    documents = _rows_in(source, lambda table: _texts_of(table, field) if is_text else _rows_of(table))
    if messages_field and (chat_template is None or isinstance(chat_template, (str, os.PathLike))):  # of the command
        options.update(messages_field=messages_field, chat_template=chat_template, ignore_fields=ignored,
                       learn=words and words.text)
        return _command(["-"], os.fspath(out), tokenizer, eod, options, progress, documents, resume)
    if messages_field is not None and not hasattr(chat_template, "apply_chat_template"):
        raise ArgumentError("chat_template must be a tokenizer of transformers, the name of a template, or a path")
    opened = tokenizer if isinstance(tokenizer, Tokenizer) else Tokenizer(tokenizer)
    own = None if messages_field is not None and eod is None else opened.eod_id
    eod_id = _border(opened, eod, own, "eod", opened.vocab_size)
    options["bos"] = _border(opened, bos, opened.bos_id, "bos", opened.vocab_size)
    content: Any
    if messages_field is not None:
        content = Conversations(chat_template, opened, messages_field, chosen, ignored, eod_id, words)
    elif ids_field is not None:
        content = _Ids(ids_field, *fields[1:], opened.vocab_size, False)
    elif prompt_field is not None:
        content = _Texts(False, prompt_field=prompt_field, completion_field=completion_field or "")
    else:
        content = _Texts(True, field=field or "text")
    made = _records_pack(documents, content, os.fspath(out), opened, eod_id, options, progress, resume)
    _warn_of_untaught(content.untaught, 2)
    for role in words.roles if words else ():
        if role not in content.messages_of:
            warnings.warn(f"no message has the role {role!r} of learn", stacklevel=2)
    return made


def _records_pack(documents: Generator[Any, None, None], content: Any, out: str, tokenizer: Tokenizer | None,
                  eod: int | None, options: dict[str, Any], progress: bool | None, resume: bool,
                  frames: int = 4) -> Packed:
    """Has the command pack records with that content."""
    records = _Records(documents, content, options["columns"], options["on_error"] == "skip")
    options.update(content.options, **dict(zip(content.fields, records.names)))
    try:
        return _command(["-"], out, tokenizer, False if eod is None else eod, options, progress, records, resume,
                        frames)
    finally:
        documents.close()  # which releases what an Arrow stream gave


def _pack_ids(source: Any, out: str, fields: tuple[str | None, str | None, bool], size: int, eod: Any,
              options: dict[str, Any], progress: bool | None, resume: bool) -> Packed:
    """Packs ids without a tokenizer: here, unless the command has to do more than write them."""
    ids_field, second, labels = fields
    eod_id = _border(None, eod, None, "eod", size)
    options["bos"] = _border(None, options["bos"], None, "bos", size)
    skip = options["on_error"] == "skip"
    more = [name for name, value in options.items() if value not in (None, (), False) and
            name not in ("input_format", "on_error", "threads", "force")]
    if second is None and not more and not resume and "://" not in out:
        _folder_make(out)
        return _packed(out, pack_ids(source, out, ids_field, size, eod_id, skip, options["force"], _shown(progress)))
    is_plain = second is None and not options["columns"]

    def rows_of(table: Any) -> Iterable[Any]:
        return (ids for batch in id_batches(table, ids_field) for ids in batch) if is_plain else _rows_of(table)

    options["vocab_size"] = size
    content = _Ids(ids_field or "input_ids", second, labels, size, ids_field is None or is_plain)
    return _records_pack(_rows_in(source, rows_of), content, out, None, eod_id, options, progress, resume, 5)


def _check_fields(field: str | None, ids: str | None, mask: str | None, labels: str | None, prompt: str | None,
                  completion: str | None, messages: str | None, chat: Any) -> None:
    """Refuses names of fields that exclude each other, or need another one."""
    if mask is not None and labels is not None:
        raise ArgumentError("mask_field and labels_field exclude each other")
    if sum(name is not None for name in (field, ids, prompt, messages)) > 1:
        raise ArgumentError("field, ids_field, prompt_field, and messages_field exclude each other")
    if (prompt is None) != (completion is None):
        raise ArgumentError("prompt_field and completion_field belong together")
    if (mask is not None or labels is not None) and ids is None:
        raise ArgumentError("mask_field and labels_field need ids_field")
    if messages is None and chat is not None:
        raise ArgumentError("messages_field and chat_template belong together")
