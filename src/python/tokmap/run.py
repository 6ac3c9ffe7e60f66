"""Runs: what a training run reads, and the arithmetic over it."""
from __future__ import annotations

import os
import weakref
from collections import namedtuple
from ctypes import byref, c_void_p, create_string_buffer, sizeof

from . import _library as c
from ._library import check, lib
from .dataset import Dataset
from .errors import ArgumentError, ClosedError, TokmapError

RunInfo = namedtuple("RunInfo", "seq_len lookahead batch seed ordering sources steps delivered remainder")
RunInfo.__doc__ = "What a run says: see struct tokmap_run_info in tokmap.h. steps and delivered are None without an end."

Source = namedtuple("Source", "name dataset windows tail")
Source.__doc__ = """A source of a run: its name, its Dataset, the windows of an epoch, the tokens
that lie in none."""

Place = namedtuple("Place", "step row draw source epoch window first_token tokens")
Place.__doc__ = "What a row of a step shows: see struct tokmap_place in tokmap.h."

Shown = namedtuple("Shown", "source number column tokens origin")
Shown.__doc__ = """A document, or the part of it, that a row shows: the source's name, the document's number in its dataset,
the row's column where it begins, how many of the row's tokens are its own, and its Origin (None where none is recorded)."""


def _place(found) -> Place:
    return Place(found.step, found.row, found.draw, found.source, found.epoch, found.window, found.first_token, found.tokens)


class Run:
    """A run with its datasets open. Immutable: any number of threads may use it, and a child after fork().

        tokmap.Run("train.run")                                              a run file
        tokmap.Run(data="data/web", seq_len=2048, batch=64, seed=1)          the same from arguments, of one source
        tokmap.Run(text="seq_len 2048\\n...", folder="runs")                  the same from a text

    lookahead  tokens of a window beyond seq_len; 1 gives targets        ordering  "shuffle" or "sequential"
    steps      the end of the run; or passes over the data; or neither   reading   "auto", "mapped" or "pread"
    folder     where a text's relative paths begin, the current one by default

    It pickles as its description, and is opened again where it is unpickled.
    """

    def __init__(self, path=None, *, text: str | None = None, folder=None, data=None, seq_len: int | None = None,
                 batch: int = 1, seed: int = 0, lookahead: int = 1, ordering: str = "shuffle", steps: int | None = None,
                 passes: int | None = None, reading: str = "auto"):
        self._handle = None
        self._loaders, self._views = weakref.WeakSet(), weakref.WeakSet()
        self._readers = set()  # the library's handles of open loaders: they end before the run, whoever is finalized first
        if (path is None) + (text is None) + (data is None) != 2:
            raise ArgumentError("a run is made of one of path, text and data")
        if data is None and (seq_len, batch, seed, lookahead, ordering, steps, passes, reading) != \
                (None, 1, 0, 1, "shuffle", None, None, "auto"):
            raise ArgumentError("a run file or text says seq_len, batch, seed and the rest: only data takes arguments")
        if text is None and folder is not None:
            raise ArgumentError("folder goes with text: a run file's paths are relative to its own folder")
        handle, error = c_void_p(), c.Error()
        if path is not None:
            self.name = os.fspath(path)
            status = lib.tokmap_run_open(byref(handle), c.text_argument(path, "path"), byref(error))
            self._made = {"path": os.path.abspath(self.name)}
        elif text is not None:
            self.name = "a text"
            status = lib.tokmap_run_parse(byref(handle), c.text_argument(text, "text"),
                                          None if folder is None else c.text_argument(folder, "folder"), byref(error))
            self._made = {"text": text, "folder": os.path.abspath(folder or ".")}
        else:
            self.name = os.fspath(data)
            if seq_len is None:
                raise ArgumentError("seq_len is missing: the tokens of a row")
            options = c.RunOptions(
                sizeof(c.RunOptions), c.text_argument(data, "data"), c.number(seq_len, "seq_len"),
                c.number(lookahead, "lookahead"), c.number(batch, "batch"), c.number(seed, "seed"),
                c.choice(ordering, c.ORDERINGS, "ordering"), c.FOREVER if steps is None else c.number(steps, "steps"),
                c.FOREVER if passes is None else c.number(passes, "passes"), c.choice(reading, c.READINGS, "reading"))
            status = lib.tokmap_run_make(byref(handle), byref(options), byref(error))
            whole = self.name if self.name.startswith("synthetic:") else os.path.abspath(self.name)
            self._made = {"data": whole, "seq_len": seq_len, "batch": batch, "seed": seed, "lookahead": lookahead,
                          "ordering": ordering, "steps": steps, "passes": passes, "reading": reading}
        check(status, error)
        self._handle = handle.value
        found = c.RunInfo(sizeof(c.RunInfo))
        check(lib.tokmap_run_info(self._handle, byref(found)))
        self.info = RunInfo(found.seq_len, found.lookahead, found.batch, found.seed, c.ORDERINGS[found.ordering],
                            found.sources, None if found.steps == c.FOREVER else found.steps,
                            None if found.delivered == c.FOREVER else found.delivered, found.remainder)

    def _open(self) -> int:
        if self._handle is None:
            raise ClosedError(f"the run {self.name} is closed")
        return self._handle

    def close(self) -> None:
        """Closes the run, its loaders and its datasets; a second close does nothing. Refused while a view() of one of its
        datasets is alive."""
        if self._handle is None:
            return
        if len(self._views):
            raise TokmapError(f"{len(self._views)} views of the datasets of {self.name} are in use: delete them first")
        for loader in list(self._loaders):
            loader.close()
        while self._readers:  # of one whose end Ctrl-C has interrupted
            lib.tokmap_loader_close(self._readers.pop())
        handle, self._handle = self._handle, None
        lib.tokmap_run_close(handle)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __del__(self, close=lib.tokmap_run_close, close_reader=lib.tokmap_loader_close):
        # A loader keeps its run, but a cycle of both is finalized in any order.
        if getattr(self, "_handle", None) is not None:
            while self._readers:
                close_reader(self._readers.pop())
            close(self._handle)
            self._handle = None

    def __reduce__(self):
        # Step 1 stands on all that the order is made of, so another run under the same name is found out.
        self._open()
        past = self.cursor(1) if self.info.steps is None or self.info.steps > 0 else self.cursor(0)
        return (_again, (self._made, past))

    def __repr__(self) -> str:
        if self._handle is None:
            return f"<tokmap.Run {self.name!r}, closed>"
        info = self.info
        end = "no end" if info.steps is None else f"{info.steps} steps"
        return f"<tokmap.Run {self.name!r}: {end} of {info.batch} rows of {info.seq_len} tokens>"

    @property
    def sources(self) -> tuple[Source, ...]:
        """Its sources, each with its dataset, which lives as long as the run."""
        made = []
        for i in range(self.info.sources):
            found = c.SourceInfo(sizeof(c.SourceInfo))
            check(lib.tokmap_run_source(self._open(), i, byref(found)))
            name = found.name.decode()
            dataset = Dataset._of_run(self, found.dataset, name)
            made.append(Source(name, dataset, found.windows, found.tail))
        return tuple(made)

    def delivers(self, step: int) -> bool:
        """Whether `step` is delivered: below the run's end and not skipped."""
        return bool(lib.tokmap_run_delivers(self._open(), c.number(step, "step")))

    def rows(self, step: int) -> int:
        """Rows of the global batch of `step`, 0 past the end."""
        return lib.tokmap_run_rows(self._open(), c.number(step, "step"))

    def locate(self, step: int, row: int) -> Place:
        """Which window row `row` of step `step` shows. Arithmetic: no file is read."""
        found, error = c.Place(), c.Error()
        check(lib.tokmap_run_locate(self._open(), c.number(step, "step"), c.number(row, "row"), byref(found), byref(error)),
              error)
        return _place(found)

    def documents(self, step: int, row: int) -> list[Shown]:
        """The documents that a row's seq_len tokens show, in their order, with where each came from."""
        place = self.locate(step, row)
        source = self.sources[place.source]
        tokens, shown, column = source.dataset.info.tokens, [], 0
        while column < self.info.seq_len:
            at = (place.first_token + column) % tokens
            document = source.dataset.document_at(at)
            own = min(document.first_token + document.tokens - at, self.info.seq_len - column)
            try:
                origin = source.dataset.origin(document.number)
            except FileNotFoundError:
                origin = None
            shown.append(Shown(source.name, document.number, column, own, origin))
            column += own
        return shown

    def find(self, source: int | str = 0, *, document: int | None = None, first_token: int = 0, count: int = 1,
             first_step: int = 0, end_step: int | None = None, limit: int | None = None) -> list[Place]:
        """The way back: every delivered row of steps [first_step, end_step) that shows a document, or any of the tokens
        [first_token, first_token + count), of a source (its number or name), in order of epoch and window; `limit` at
        most. Without end_step the run must have an end."""
        handle = self._open()
        sources = self.sources
        if isinstance(source, str):
            names = tuple(found.name for found in sources)
            source = c.choice(source, names, "source")
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
            except BaseException as problem:  # Ctrl-C too: to be raised where find() was called
                problems.append(problem)
                return 1

        error = c.Error()
        status = lib.tokmap_run_find(handle, source, c.number(first_token, "first_token"), c.number(count, "count"),
                                     c.number(first_step, "first_step"),
                                     c.FOREVER if end_step is None else c.number(end_step, "end_step"),
                                     c.FOUND(on_found), None, byref(error))
        if problems:
            raise problems[0]
        if limit is None or len(places) < limit:
            check(status, error)
        elif status not in (0, 21):  # 21: INTERRUPTED, by the limit
            check(status, error)
        return places

    def cursor(self, step: int) -> str:
        """The cursor at the start of a step: one line, what resume= of a loader takes."""
        found, error = c.Cursor(), c.Error()
        check(lib.tokmap_run_cursor(self._open(), c.number(step, "step"), byref(found), byref(error)), error)
        return _cursor_text(found)

    def check(self, cursor: str) -> None:
        """Whether the run's past is the one that a cursor stands on: else a PastError names each kind that differs."""
        found, error = c.Cursor(), c.Error()
        check(lib.tokmap_cursor_parse(byref(found), c.text_argument(cursor, "cursor"), byref(error)), error)
        check(lib.tokmap_run_check(self._open(), byref(found), byref(error)), error)

    def loader(self, **options):
        """A loader of this run for one rank: see Loader for the arguments."""
        from .loader import Loader
        return Loader(self, **options)

    def dataset(self, **options):
        """The run's rows as a map-style dataset for torch's DataLoader: see RunDataset for the arguments."""
        from .run_dataset import RunDataset
        return RunDataset(self, **options)


def _cursor_text(cursor) -> str:
    text = create_string_buffer(c.CURSOR_TEXT)
    lib.tokmap_cursor_print(byref(cursor), text)
    return text.value.decode()


def _again(made: dict, past: str) -> Run:
    run = Run(made["path"]) if "path" in made else Run(**made)
    run.check(past)
    return run
