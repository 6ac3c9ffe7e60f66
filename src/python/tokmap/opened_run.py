"""An open run, without the methods that open loaders of it: what a training run reads, in which order, computed by
arithmetic. run.py adds these methods; loaders refer to the run that is defined here."""
from __future__ import annotations

import os
import warnings
import weakref
from ctypes import byref, c_uint64, c_void_p, sizeof

from . import _library as c
from ._library import check, lib
from .dataset import Dataset, Origin, warn_of
from .errors import ArgumentError, ClosedError, TokmapError
from .records import NamedTuple
from .state import cursor_text

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Callable

    from typing_extensions import Self

    from .hints import Order, Path, Reading


class RunInfo(NamedTuple):
    """The properties of a run: the members of struct tokmap_run_info in tokmap.h.

    order is "shuffle" or "sequential"; steps and delivered are None if the run has no end."""
    seq_len: int
    lookahead: int
    batch: int
    seed: int
    order: str
    sources: int
    steps: int | None
    delivered: int | None
    remainder: int

    @property
    def ordering(self) -> str:
        """The former name of order."""
        _warn_of_ordering()
        return self.order


class Source(NamedTuple):
    """A source of a run: its name, its Dataset, the number of windows in an epoch, and the number of tokens after the
    last window's stride."""
    name: str
    dataset: Dataset
    windows: int
    tail: int


class Place(NamedTuple):
    """Which window a row of a step holds: the members of struct tokmap_place in tokmap.h."""
    step: int
    row: int
    draw: int
    source: int
    epoch: int
    window: int
    first_token: int
    tokens: int


class Piece(NamedTuple):
    """Tokens [first_token, first_token + tokens) of a source's dataset. After its last token they continue with its
    first."""
    first_token: int
    tokens: int


class Shown(NamedTuple):
    """A document, or the part of it, that a row contains: the source's name, the document's number in its dataset, the
    column of the row at which it begins, how many tokens of the row belong to it, and its Origin (None if the dataset
    records no origins)."""
    source: str
    number: int
    column: int
    tokens: int
    origin: Origin | None


def _warn_of_ordering() -> None:
    warnings.warn("ordering is now called order, as in run files and commands: use order", DeprecationWarning,
                  stacklevel=3)


def _place(found: c.Place) -> Place:
    return Place(found.step, found.row, found.draw, found.source, found.epoch, found.window, found.first_token,
                 found.tokens)


class OpenedRun:
    """A run with its datasets open. It is immutable: any number of threads may use it, and so may a child after fork().

        tokmap.Run("train.run")                                              from a run file
        tokmap.Run(data="data/web", seq_len=2048, batch=64, seed=1)          from arguments, with one source
        tokmap.Run(text="seq_len 2048\\n...", folder="runs")                  from the text of a run file

    data       the dataset: a prefix, a folder, a manifest, or "synthetic:..."
    seq_len    tokens of a row
    batch      rows of a global batch, over all ranks
    seed       of the order
    lookahead  tokens that a window has beyond seq_len; 1 gives each token its target
    order      "shuffle" or "sequential"
    steps      the run ends after this many steps; or
    passes     it ends after this many passes over the data; without either it has no end
    reading    "auto", "mapped", or "pread"
    folder     the folder that relative paths in text start from; by default the current one
    ordering   the former name of order

    Pickling stores a run's description. Unpickling opens the run again, and raises a PastError if its data has changed.
    """

    name: str
    info: RunInfo
    _handle: int | None
    _description: dict[str, Any]
    _left = False  # the end of `with` was reached while views were in use

    def __init__(self, path: Path | None = None, *, text: str | None = None, folder: Path | None = None,
                 data: Path | None = None, seq_len: int | None = None, batch: int = 1, seed: int = 0,
                 lookahead: int = 1, order: Order = "shuffle", steps: int | None = None, passes: int | None = None,
                 reading: Reading = "auto", ordering: Order | None = None) -> None:
        self._handle = None
        self._loaders: weakref.WeakSet[Any] = weakref.WeakSet()
        self._views: weakref.WeakSet[Any] = weakref.WeakSet()
        # Handles of the library's open loaders. They must be closed before the run, whichever object is finalized
        # first.
        self._readers: set[int] = set()
        if ordering is not None:
            _warn_of_ordering()
            if order not in ("shuffle", ordering):
                raise ArgumentError(f"order is {order!r} and ordering, its former name, is {ordering!r}: pass only "
                                    f"order")
            order = ordering
        if (path is None) + (text is None) + (data is None) != 2:
            raise ArgumentError("a run is opened from exactly one of path (a run file), text, and data (a dataset)")
        if data is None and (seq_len, batch, seed, lookahead, order, steps, passes, reading) != \
                (None, 1, 0, 1, "shuffle", None, None, "auto"):
            raise ArgumentError("a run file or text sets seq_len, batch, seed and the other values itself: pass them "
                                "as arguments only together with data")
        if text is None and folder is not None:
            raise ArgumentError("folder is only for text: relative paths in a run file start from the file's own "
                                "folder")
        handle, error = c_void_p(), c.Error()
        if path is not None:
            self.name = os.fspath(path)
            status = lib.tokmap_run_open(byref(handle), c.text_argument(path, "path"), byref(error))
            self._description = {"path": os.path.abspath(self.name)}
        elif text is not None:
            self.name = "a text"
            status = lib.tokmap_run_parse(byref(handle), c.text_argument(text, "text"),
                                          None if folder is None else c.text_argument(folder, "folder"), byref(error))
            self._description = {"text": text, "folder": os.path.abspath(folder or ".")}
        else:
            self.name = os.fspath(data or "")
            if seq_len is None:
                raise ArgumentError("seq_len is missing: pass the number of tokens in a row")
            if steps is not None and passes is not None:
                raise ArgumentError(f"steps is {steps} and passes is {passes}: pass one of them, because either ends "
                                    f"the run")
            options = c.RunOptions(
                sizeof(c.RunOptions), c.text_argument(self.name, "data"), c.number(seq_len, "seq_len"),
                c.number(lookahead, "lookahead"), c.number(batch, "batch"), c.number(seed, "seed"),
                c.choice(order, c.ORDERS, "order"), c.FOREVER if steps is None else c.number(steps, "steps"),
                c.FOREVER if passes is None else c.number(passes, "passes"), c.choice(reading, c.READINGS, "reading"))
            status = lib.tokmap_run_make(byref(handle), byref(options), byref(error))
            data_path = self.name if self.name.startswith("synthetic:") else os.path.abspath(self.name)
            self._description = {"data": data_path, "seq_len": seq_len, "batch": batch, "seed": seed,
                                 "lookahead": lookahead, "order": order, "steps": steps, "passes": passes,
                                 "reading": reading}
        check(status, error)
        self._handle = opened = handle.value or 0
        found = c.RunInfo(sizeof(c.RunInfo))
        check(lib.tokmap_run_info(opened, byref(found)))
        self.info = RunInfo(found.seq_len, found.lookahead, found.batch, found.seed, c.ORDERS[found.ordering],
                            found.sources, None if found.steps == c.FOREVER else found.steps,
                            None if found.delivered == c.FOREVER else found.delivered, found.remainder)
        for i in range(self.info.sources):
            source = c.SourceInfo(sizeof(c.SourceInfo))
            check(lib.tokmap_run_source(opened, i, byref(source)))
            warn_of(source.dataset, self.name)

    def _open(self) -> int:
        """The handle, for a call of the library."""
        if self._handle is None or self._left:
            raise ClosedError(f"the run {self.name} is closed")
        return self._handle

    def close(self) -> None:
        """Closes the run, its loaders, and its datasets. A second close has no effect. Raises a TokmapError while a
        view() of one of its datasets is in use. The end of `with` raises nothing: the run cannot be used any more, and
        the memory of its datasets stays until their views are gone."""
        if self._handle is None:
            return
        if len(self._views):
            raise TokmapError(f"views of the datasets of {self.name} are still in use, {len(self._views)} in all: "
                              f"delete them before you close the run")
        self._close_loaders()
        handle, self._handle = self._handle, None
        lib.tokmap_run_close(handle)

    def _close_loaders(self) -> None:
        for loader in list(self._loaders):
            loader.close()
        while self._readers:  # left over where Ctrl-C interrupted a loader's close()
            lib.tokmap_loader_close(self._readers.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if len(self._views):
            self._close_loaders()
            self._left = True  # a view refers to its dataset, and that to the run, which __del__() closes
        else:
            self.close()

    def __del__(self, close: Callable[[int], None] = lib.tokmap_run_close,
                close_reader: Callable[[int], None] = lib.tokmap_loader_close) -> None:
        # A loader refers to its run, but Python finalizes the members of a reference cycle in any order.
        handle = getattr(self, "_handle", None)
        if handle is not None:
            while self._readers:
                close_reader(self._readers.pop())
            close(handle)
            self._handle = None

    def __repr__(self) -> str:
        if self._handle is None or self._left:
            return f"<tokmap.Run {self.name!r}, closed>"
        info = self.info
        end = "endless, steps" if info.steps is None else c.counted(info.steps, "step")
        return (f"<tokmap.Run {self.name!r}: {end} of {c.counted(info.batch, 'row')} of "
                f"{c.counted(info.seq_len, 'token')}>")

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources, each with its dataset, which stays open as long as the run."""
        sources = []
        for i in range(self.info.sources):
            found = c.SourceInfo(sizeof(c.SourceInfo))
            check(lib.tokmap_run_source(self._open(), i, byref(found)))
            name = found.name.decode()
            dataset = Dataset._of_run(self, found.dataset, name)
            sources.append(Source(name, dataset, found.windows, found.tail))
        return tuple(sources)

    @property
    def vocabulary(self) -> int:
        """The number of ids that a model of this run's data needs: the largest vocabulary of its sources."""
        return max(source.dataset.info.vocabulary for source in self.sources)

    def delivers(self, step: int) -> bool:
        """Whether `step` is delivered: it is before the run's end and not skipped."""
        return bool(lib.tokmap_run_delivers(self._open(), c.number(step, "step")))

    def rows(self, step: int) -> int:
        """The number of rows in the global batch of `step`; 0 after the run's end."""
        return int(lib.tokmap_run_rows(self._open(), c.number(step, "step")))

    def locate(self, step: int, row: int) -> Place:
        """Which window row `row` of step `step` holds. This is arithmetic: it reads no file."""
        found, error = c.Place(), c.Error()
        check(lib.tokmap_run_locate(self._open(), c.number(step, "step"), c.number(row, "row"), byref(found),
                                    byref(error)), error)
        return _place(found)

    def pieces(self, step: int, row: int) -> list[Piece]:
        """What a row is made of, one piece after another; padding follows them up to seq_len + lookahead tokens. A window
        is one piece. A row of a plan has one for each segment, which is a document, or a part of one that is longer
        than a row. A padding row has none."""
        place, error, used, capacity = c.Place(), c.Error(), c_uint64(), 64
        check(lib.tokmap_run_locate(self._open(), c.number(step, "step"), c.number(row, "row"), byref(place),
                                    byref(error)), error)
        while True:
            found = (c.Piece * capacity)()
            status = lib.tokmap_run_pieces(self._open(), byref(place), found, capacity, byref(used), byref(error))
            if status != c.LIMIT:
                break
            capacity = used.value
        check(status, error)
        return [Piece(piece.first_token, piece.tokens) for piece in found[:used.value]]

    def documents(self, step: int, row: int) -> list[Shown]:
        """The documents that the seq_len tokens of a row contain, in order, each with its origin."""
        documents: list[Shown] = []
        column, end = 0, self.info.seq_len
        for piece in self.pieces(step, row):
            source = self.sources[self.locate(step, row).source]
            after = min(column + piece.tokens, end)
            token = piece.first_token
            while column < after:
                document = source.dataset.document_at(token)
                count = min(document.first_token + document.tokens - token, after - column)
                origin: Origin | None
                try:
                    origin = source.dataset.origin(document.number)
                except FileNotFoundError:
                    origin = None
                documents.append(Shown(source.name, document.number, column, count, origin))
                column += count
                token = (token + count) % source.dataset.info.tokens
        return documents

    def find(self, source: int | str = 0, *, document: int | None = None, first_token: int = 0, count: int = 1,
             first_step: int = 0, end_step: int | None = None, limit: int | None = None) -> list[Place]:
        """The inverse of locate(): every delivered row of steps [first_step, end_step) whose window contains any token
        of a document, or any of the tokens [first_token, first_token + count), of a source, in order of epoch and
        window.

        source    the source's number or name
        document  the number of a document; it takes the place of first_token and count
        end_step  None: the end of the run, which must then have one
        limit     the largest number of places to return; None: all
        """
        handle, sources = self._open(), self.sources
        if isinstance(source, str):
            source = c.choice(source, tuple(each.name for each in sources), "source")
        source = c.number(source, "source", 0, len(sources) - 1)
        if document is not None:
            of_document = sources[source].dataset.document(document)
            first_token, count = of_document.first_token, of_document.tokens
        places: list[Place] = []
        problems: list[BaseException] = []

        def on_found(_user: object, place: Any) -> int:
            try:
                if limit is not None and len(places) >= limit:
                    return 1
                places.append(_place(place.contents))
                return 0
            except BaseException as problem:  # also a KeyboardInterrupt; the caller of find() gets it below
                problems.append(problem)
                return 1

        error = c.Error()
        status = lib.tokmap_run_find(handle, source, c.number(first_token, "first_token"), c.number(count, "count"),
                                     c.number(first_step, "first_step"),
                                     c.FOREVER if end_step is None else c.number(end_step, "end_step"),
                                     c.FOUND(on_found), None, byref(error))
        if problems:
            raise problems[0]
        reached_limit = limit is not None and len(places) >= limit
        if not (reached_limit and status == c.INTERRUPTED):
            check(status, error)
        return places

    def cursor(self, step: int) -> str:
        """The cursor at the start of a step: one line of text, which the argument resume of a loader takes."""
        found, error = c.Cursor(), c.Error()
        check(lib.tokmap_run_cursor(self._open(), c.number(step, "step"), byref(found), byref(error)), error)
        return cursor_text(found)

    def check(self, cursor: str) -> None:
        """Compares the run's past with the past that a cursor records. A PastError names each kind that differs."""
        found, error = c.Cursor(), c.Error()
        check(lib.tokmap_cursor_parse(byref(found), c.text_argument(cursor, "cursor"), byref(error)), error)
        check(lib.tokmap_run_check(self._open(), byref(found), byref(error)), error)
