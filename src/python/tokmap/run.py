"""Runs: what a training run reads, in which order, computed by arithmetic."""
from __future__ import annotations

import os
import weakref
from collections import namedtuple
from ctypes import byref, c_void_p, sizeof

from . import _library as c
from ._library import check, lib
from .dataset import Dataset, warn_of
from .errors import ArgumentError, ClosedError, TokmapError
from .loader import Loader
from .run_dataset import RunDataset
from .state import cursor_text

RunInfo = namedtuple("RunInfo", "seq_len lookahead batch seed ordering sources steps delivered remainder")
RunInfo.__doc__ = """The properties of a run: the members of struct tokmap_run_info in tokmap.h.

ordering is "shuffle" or "sequential"; steps and delivered are None if the run has no end."""

Source = namedtuple("Source", "name dataset windows tail")
Source.__doc__ = """A source of a run: its name, its Dataset, the number of windows in an epoch, and the number of
tokens after the last window's stride."""

Place = namedtuple("Place", "step row draw source epoch window first_token tokens")
Place.__doc__ = "Which window a row of a step holds: the members of struct tokmap_place in tokmap.h."

Shown = namedtuple("Shown", "source number column tokens origin")
Shown.__doc__ = """A document, or the part of it, that a row contains: the source's name, the document's number in its
dataset, the column of the row at which it begins, how many tokens of the row belong to it, and its Origin (None if the
dataset records no origins)."""


def _place(found) -> Place:
    return Place(found.step, found.row, found.draw, found.source, found.epoch, found.window, found.first_token,
                 found.tokens)


class Run:
    """A run with its datasets open. It is immutable: any number of threads may use it, and so may a child after fork().

        tokmap.Run("train.run")                                              from a run file
        tokmap.Run(data="data/web", seq_len=2048, batch=64, seed=1)          from arguments, with one source
        tokmap.Run(text="seq_len 2048\\n...", folder="runs")                  from the text of a run file

    data       the dataset: a prefix, a folder, a manifest, or "synthetic:..."
    seq_len    tokens of a row
    batch      rows of a global batch, over all ranks
    seed       of the order
    lookahead  tokens that a window has beyond seq_len; 1 gives each token its target
    ordering   "shuffle" or "sequential"
    steps      the run ends after this many steps; or
    passes     it ends after this many passes over the data; without either it has no end
    reading    "auto", "mapped", or "pread"
    folder     the folder that relative paths in text start from; by default the current one

    Pickling stores a run's description. Unpickling opens the run again, and raises a PastError if its data has changed.
    """

    def __init__(self, path=None, *, text: str | None = None, folder=None, data=None, seq_len: int | None = None,
                 batch: int = 1, seed: int = 0, lookahead: int = 1, ordering: str = "shuffle", steps: int | None = None,
                 passes: int | None = None, reading: str = "auto"):
        self._handle = None
        self._loaders, self._views = weakref.WeakSet(), weakref.WeakSet()
        # Handles of the library's open loaders. They must be closed before the run, whichever object is finalized
        # first.
        self._readers = set()
        if (path is None) + (text is None) + (data is None) != 2:
            raise ArgumentError("a run is opened from exactly one of path, text and data")
        if data is None and (seq_len, batch, seed, lookahead, ordering, steps, passes, reading) != \
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
            self.name = os.fspath(data)
            if seq_len is None:
                raise ArgumentError("seq_len is missing: pass the number of tokens in a row")
            options = c.RunOptions(
                sizeof(c.RunOptions), c.text_argument(data, "data"), c.number(seq_len, "seq_len"),
                c.number(lookahead, "lookahead"), c.number(batch, "batch"), c.number(seed, "seed"),
                c.choice(ordering, c.ORDERINGS, "ordering"), c.FOREVER if steps is None else c.number(steps, "steps"),
                c.FOREVER if passes is None else c.number(passes, "passes"), c.choice(reading, c.READINGS, "reading"))
            status = lib.tokmap_run_make(byref(handle), byref(options), byref(error))
            data_path = self.name if self.name.startswith("synthetic:") else os.path.abspath(self.name)
            self._description = {"data": data_path, "seq_len": seq_len, "batch": batch, "seed": seed,
                                 "lookahead": lookahead, "ordering": ordering, "steps": steps, "passes": passes,
                                 "reading": reading}
        check(status, error)
        self._handle = handle.value
        found = c.RunInfo(sizeof(c.RunInfo))
        check(lib.tokmap_run_info(self._handle, byref(found)))
        self.info = RunInfo(found.seq_len, found.lookahead, found.batch, found.seed, c.ORDERINGS[found.ordering],
                            found.sources, None if found.steps == c.FOREVER else found.steps,
                            None if found.delivered == c.FOREVER else found.delivered, found.remainder)
        for i in range(self.info.sources):
            source = c.SourceInfo(sizeof(c.SourceInfo))
            check(lib.tokmap_run_source(self._handle, i, byref(source)))
            warn_of(source.dataset, self.name)

    def _open(self) -> int:
        """The handle, for a call of the library."""
        if self._handle is None:
            raise ClosedError(f"the run {self.name} is closed")
        return self._handle

    def close(self) -> None:
        """Closes the run, its loaders, and its datasets. A second close has no effect. Raises a TokmapError while a
        view() of one of its datasets is in use."""
        if self._handle is None:
            return
        if len(self._views):
            raise TokmapError(f"{len(self._views)} views of the datasets of {self.name} are still in use: delete them "
                              f"before you close the run")
        for loader in list(self._loaders):
            loader.close()
        while self._readers:  # left over where Ctrl-C interrupted a loader's close()
            lib.tokmap_loader_close(self._readers.pop())
        handle, self._handle = self._handle, None
        lib.tokmap_run_close(handle)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __del__(self, close=lib.tokmap_run_close, close_reader=lib.tokmap_loader_close):
        # A loader refers to its run, but Python finalizes the members of a reference cycle in any order.
        if getattr(self, "_handle", None) is not None:
            while self._readers:
                close_reader(self._readers.pop())
            close(self._handle)
            self._handle = None

    def __reduce__(self):
        # The cursor of step 1 covers everything that decides the order, so a different run under the same name is
        # detected.
        self._open()
        past = self.cursor(1) if self.info.steps is None or self.info.steps > 0 else self.cursor(0)
        return (_rebuild, (self._description, past))

    def __repr__(self) -> str:
        if self._handle is None:
            return f"<tokmap.Run {self.name!r}, closed>"
        info = self.info
        end = "endless, steps" if info.steps is None else f"{info.steps} steps"
        return f"<tokmap.Run {self.name!r}: {end} of {info.batch} rows of {info.seq_len} tokens>"

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

    def delivers(self, step: int) -> bool:
        """Whether `step` is delivered: it is before the run's end and not skipped."""
        return bool(lib.tokmap_run_delivers(self._open(), c.number(step, "step")))

    def rows(self, step: int) -> int:
        """The number of rows in the global batch of `step`; 0 after the run's end."""
        return lib.tokmap_run_rows(self._open(), c.number(step, "step"))

    def locate(self, step: int, row: int) -> Place:
        """Which window row `row` of step `step` holds. This is arithmetic: it reads no file."""
        found, error = c.Place(), c.Error()
        check(lib.tokmap_run_locate(self._open(), c.number(step, "step"), c.number(row, "row"), byref(found),
                                    byref(error)), error)
        return _place(found)

    def documents(self, step: int, row: int) -> list[Shown]:
        """The documents that the seq_len tokens of a row contain, in order, each with its origin."""
        place = self.locate(step, row)
        source = self.sources[place.source]
        tokens, documents, column = source.dataset.info.tokens, [], 0
        while column < self.info.seq_len:
            token = (place.first_token + column) % tokens
            document = source.dataset.document_at(token)
            count = min(document.first_token + document.tokens - token, self.info.seq_len - column)
            try:
                origin = source.dataset.origin(document.number)
            except FileNotFoundError:
                origin = None
            documents.append(Shown(source.name, document.number, column, count, origin))
            column += count
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
        handle = self._open()
        sources = self.sources
        if isinstance(source, str):
            source = c.choice(source, tuple(each.name for each in sources), "source")
        source = c.number(source, "source", 0, len(sources) - 1)
        if document is not None:
            found = sources[source].dataset.document(document)
            first_token, count = found.first_token, found.tokens
        places, problems = [], []

        def on_found(_user, place):
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

    def loader(self, **options) -> Loader:
        """Opens a loader of this run for one rank. The arguments are those of Loader."""
        return Loader(self, **options)

    def dataset(self, **options) -> RunDataset:
        """The run's rows as a map-style dataset for torch's DataLoader. The arguments are those of RunDataset."""
        return RunDataset(self, **options)


def _rebuild(description: dict, past: str) -> Run:
    run = Run(description["path"]) if "path" in description else Run(**description)
    run.check(past)
    return run
