# SPDX-License-Identifier: MIT
"""An open run, without the methods that open loaders of it: what a training run reads, in which order, computed by
arithmetic. run.py adds these methods; loaders refer to the run that is defined here."""
from __future__ import annotations

import os
import warnings
import weakref
from ctypes import byref, c_uint64, create_string_buffer, sizeof

from . import _library as c
from ._library import check, lib, table
from .dataset import Dataset, Origin, absolute_name, warn_of
from .errors import ArgumentError, TokmapError, error_of
from .handles import Handle, RunHandle, new
from .records import NamedTuple
from .run_text import text_of

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping, Sequence

    from typing_extensions import Self

    from .hints import Order, Path, Phase as PhaseOptions, Reading, SourceOptions, Tail, Weights


class RunInfo(NamedTuple):
    """The properties of a run: the members of struct tokmap_run_info in tokmap.h.

    order is "shuffle", "sequential", "blocks", or "even"; steps and delivered are None if the run has no end. batch and
    seq_len are those of the first phase, batch_most and seq_len_most the largest of any. real_rows_last is the number
    of rows of the last step that are not padding."""
    seq_len: int
    lookahead: int
    batch: int
    seed: int
    order: str
    sources: int
    steps: int | None
    delivered: int | None
    remainder: int
    phases: int
    stride: int
    batch_most: int
    seq_len_most: int
    pad_id: int
    tail_pad: bool
    blocks: int
    span: int
    real_rows_last: int
    width: int


class Source(NamedTuple):
    """A source of a run: its name, its Dataset, the number of windows in an epoch of the first phase, and the number of
    tokens after the last window's stride; the plan whose rows it draws (None: it draws windows), the epochs that
    the run may not exceed (None: no limit), and data, the name of the dataset."""
    name: str
    dataset: Dataset
    windows: int
    tail: int
    plan: str | None = None
    epochs_most: int | None = None
    data: str = ""


class Share(NamedTuple):
    """What a source has in a phase: weight / weights of the rows. draws is the number of its rows in the phase, in
    skipped steps too; of an epoch it has `windows`. Its first row in the phase is row first_draw of epoch
    first_epoch."""
    source: str
    weight: int
    weights: int
    windows: int
    first_epoch: int
    first_draw: int
    draws: int


class Phase(NamedTuple):
    """Steps [first_step, end_step) with one mixture, batch, and sequence length. end_step is None in the last phase of a
    run without an end. shares has the sources of the mixture, in order of their names."""
    first_step: int
    end_step: int | None
    batch: int
    seq_len: int
    shares: tuple[Share, ...]


class Place(NamedTuple):
    """Which window a row of a step holds: the members of struct tokmap_place in tokmap.h, and the name of the source.
    source and name are None if the row is padding. The tokens of a part of a dataset (#docs=) are counted from its
    first one."""
    step: int
    row: int
    draw: int
    source: int | None
    epoch: int
    window: int
    first_token: int
    tokens: int
    name: str | None = None


class Extent(NamedTuple):
    """Tokens [first_token, first_token + tokens) of a source's dataset. After its last token they continue with its
    first."""
    first_token: int
    tokens: int


class Shown(NamedTuple):
    """A document, or the part of it, that a row contains: the source's name, the document's number in its dataset, the
    column of the row at which it begins, how many tokens of the row belong to it, its Origin (None if the dataset
    records no origins), and whether the run excludes it, so that the row has the pad id in its place."""
    source: str
    number: int
    column: int
    tokens: int
    origin: Origin | None
    excluded: bool = False


def _place(found: c.Place, names: Sequence[str]) -> Place:
    source = None if found.source == c.FOREVER else found.source
    return Place(found.step, found.row, found.draw, source, found.epoch, found.window, found.first_token, found.tokens,
                 None if source is None else names[source])


_STATE_VERSION = 1


def cursor_text(cursor: c.Cursor) -> str:
    """The text of a struct tokmap_cursor: one line."""
    text = create_string_buffer(c.CURSOR_TEXT)
    lib.tokmap_cursor_print(byref(cursor), text)
    return text.value.decode()


def state_of_cursor(cursor: str) -> dict[str, Any]:
    """What state_dict() returns."""
    return {"tokmap": _STATE_VERSION, "cursor": cursor, "step": int(cursor.split("step=")[1].split()[0])}


def cursor_of_state(state: Mapping[str, Any] | str | None) -> str | None:
    """The text of the cursor in a state_dict(). The text of a cursor, and None, are returned unchanged."""
    if state is None or isinstance(state, str):
        return state
    try:
        version, cursor = state["tokmap"], state["cursor"]
    except (KeyError, TypeError, IndexError):
        raise error_of("ERROR_CURSOR",
                       f"the state is {c.of_type(state)} without the keys \"tokmap\" and \"cursor\": pass "
                       f"what state_dict() of a tokmap loader returned, or the text of a cursor") from None
    if version != _STATE_VERSION or not isinstance(cursor, str):
        raise error_of("ERROR_CURSOR",
                       f"the state has version {version!r}, but this package reads version {_STATE_VERSION}: "
                       f"install the version of tokmap that wrote it")
    return cursor


class OpenedRun:
    """A run with its datasets open. It is immutable: any number of threads may use it, and so may a child after fork().
    One thread may close it while others use it: their calls end as usual, later ones raise an ArgumentError.

        tokmap.Run("train.run")                                              from a run file
        tokmap.Run(data="data/web", seq_len=2048, batch=64, seed=1)          from arguments, with one source
        tokmap.Run(text="seq_len 2048\\n...", folder="runs")                  from the text of a run file
        tokmap.Run(sources={"web": "data/web", "wiki": dict(data="data/wiki", epochs=4)},
                   weights={"web": 0.8, "wiki": 0.2}, seq_len=2048, batch=64, steps=200000,
                   phases=[dict(step=150000, weights={"web": 1, "wiki": 1}, batch=128)],
                   validation={"val": "data/web.val"})                       a mixture, and what it holds out
        tokmap.Run({"data": "data/web", "seq_len": 2048})                    from a dict of such arguments

    data       the dataset: a prefix, a folder, a manifest, a name in object storage ("s3://bucket/data/web"), a file of
               another project, or "synthetic:..."
    sources    in place of data: a dataset for each name, or a dict with data, epochs (the most that may be read), and
               plan (the file of rows that it draws)
    weights    of the sources at step 0: a number for each name, "natural", or texts as in a run file ("tokens=300B")
    phases     dicts with step, and what changes there: weights, batch, seq_len
    validation datasets by name that no step draws, which run.evaluation() reads; the run is refused if it trains on one
    seq_len    tokens of a row
    batch      rows of a global batch, over all ranks; without it 1, and a warning says so
    seed       of the order
    lookahead  tokens that a window has beyond seq_len; 1 gives each token its target
    order      "shuffle", "sequential", ("blocks", W, SPAN), or ("even", W, SPAN)
    stride     tokens from one window to the next; less than seq_len counts each target once
    tail       "pad": the end of the data and of the last step is padded; "drop" (default): it is left out
    pad        the id of padding
    steps      the run ends after this many steps; or
    passes     it ends after this many passes over the data, or "2 of web"; without either it has no end
    skip       ranges (first, end) of steps that are not delivered
    exclude    pairs (list, step): the documents that a list of `tokmap find` names are not shown from the step on
    reading    "auto", "mapped", or "pread": how the tokens of all sources are read; a run file has only "auto"
    folder     the folder that relative paths in text or sources start from; by default the current one

    text is the run file that the run equals, however it was opened.

    Pickling stores a run's description. Unpickling opens the run again, and raises a PastError if its data has changed.
    """

    name: str
    info: RunInfo
    _names: tuple[str, ...]  # of the sources and validation sets
    _handle: RunHandle | None
    _description: dict[str, Any]
    _frames = 0  # between the program's call and __init__(), for warnings, which point at the program

    def __init__(self, path: Path | Mapping[str, Any] | None = None, *, text: str | None = None,
                 folder: Path | None = None, data: Path | None = None, seq_len: int | None = None,
                 batch: int | None = None, seed: int = 0, lookahead: int = 1, order: Order = "shuffle",
                 steps: int | None = None, passes: int | str | None = None, reading: Reading = "auto",
                 sources: Mapping[str, Path | SourceOptions] | None = None, weights: Weights | None = None,
                 phases: Iterable[PhaseOptions] | None = None, stride: int | None = None, tail: Tail | None = None,
                 pad: int | None = None, skip: Iterable[tuple[int, int]] | None = None,
                 validation: Mapping[str, Path] | None = None,
                 exclude: Iterable[tuple[Path, int]] | None = None) -> None:
        self._handle = None
        self._loaders: weakref.WeakSet[Any] = weakref.WeakSet()
        self._views: weakref.WeakSet[Any] = weakref.WeakSet()
        if path is not None and not isinstance(path, (str, bytes, os.PathLike)):
            passed: tuple[Any, ...] = (
                text, folder, data, seq_len, batch, seed, lookahead, order, steps, passes, reading, sources, weights,
                phases, stride, tail, pad, skip, validation, exclude)
            if passed != (None,) * 5 + (0, 1, "shuffle", None, None, "auto") + (None,) * 9:
                raise ArgumentError("a run is opened from a dict or from arguments, not from both: put them together")
            if not hasattr(path, "keys"):
                raise ArgumentError(f"path is {path!r}, but it must be the path of a run file, or a dict of arguments")
            self._frames = 1
            self.__init__(**path)  # type: ignore[misc]
            return
        if (path is None) + (text is None) + (data is None) + (sources is None) != 3:
            raise ArgumentError("a run is opened from exactly one of path (a run file), text, data (a dataset), and "
                                "sources (datasets by name)")
        more = (weights, phases, stride, tail, pad, skip, validation, exclude)
        given = (seq_len, batch, seed, lookahead, order, steps, passes, "auto" if path is None else reading) + more
        unset = given == (None, None, 0, 1, "shuffle", None, None, "auto") + (None,) * 8
        if data is None and sources is None and not unset:
            raise ArgumentError("a run file or text sets seq_len, batch, seed and the other values itself: pass them "
                                "as arguments only together with data")
        if text is None and sources is None and folder is not None:
            raise ArgumentError("folder is only for text and sources: relative paths in a run file start from the "
                                "file's own folder")
        plain = more == (None,) * 8 and order in c.ORDERS[:2] and not isinstance(passes, str)
        if data is not None or sources is not None:
            if seq_len is None:
                raise ArgumentError("seq_len is missing: pass the number of tokens in a row")
            if steps is not None and passes is not None:
                raise ArgumentError(f"steps is {steps} and passes is {passes}: pass one of them, because either ends "
                                    f"the run")
            if batch is None:
                warnings.warn("batch is missing, so each step has 1 row: pass batch=", stacklevel=2 + self._frames)
            text = text_of({"data": os.fsdecode(data)} if data is not None else sources,  # type: ignore[arg-type]
                           seq_len=seq_len, batch=1 if batch is None else batch, seed=seed, lookahead=lookahead,
                           order=order, weights=weights, phases=phases, stride=stride, tail=tail, pad=pad, steps=steps,
                           passes=passes, skip=skip, validation=validation, exclude=exclude)
        handle, error = new(RunHandle), c.Error()
        if path is not None:
            self.name = os.fspath(path)
            of_path = c.text_argument(path, "path")
            status = c.waited(lambda: lib.tokmap_run_open(byref(handle), of_path, None, byref(error)), None)
            self._description = {"path": os.path.abspath(self.name)}
        else:
            self.name = "a text" if data is None and sources is None else "a run"
            if data is not None and plain:
                self.name = os.fspath(data)
            options = c.RunOptions(sizeof(c.RunOptions), None if folder is None else c.text_argument(folder, "folder"),
                                   c.choice(reading, c.READINGS, "reading"))
            given_text = c.text_argument(text, "text")  # type: ignore[arg-type]
            status = c.waited(lambda: lib.tokmap_run_parse(byref(handle), given_text, byref(options), byref(error)),
                              given_text)
            self._description = {"text": text, "folder": os.path.abspath(folder or "."), "reading": reading}
        if status and text is not None and self.name != "a text" and error.line:
            # The text has no line that the caller wrote. What it says shows the argument.
            line = text.splitlines()[error.line - 1].encode()
            error.message = (error.message + b" (" + line[:200] + b")")[:c.Error.message.size - 1]
            error.line = 0
        check(status, error)
        self._opened(handle)

    def _opened(self, opened: RunHandle) -> None:
        """Takes the library's handle of the run."""
        found = c.RunInfo(sizeof(c.RunInfo))
        check(lib.tokmap_run_info(opened, byref(found)))
        self.info = RunInfo(found.seq_len, found.lookahead, found.batch, found.seed, c.ORDERS[found.order],
                            found.sources, None if found.steps == c.FOREVER else found.steps,
                            None if found.delivered == c.FOREVER else found.delivered, found.remainder, found.phases,
                            found.stride, found.batch_most, found.seq_len_most, found.pad_id, bool(found.tail_pad),
                            found.blocks, found.span, found.real_rows_last, found.width)
        if found.warning:
            warnings.warn(f"{self.name}: {os.fsdecode(found.warning)}", stacklevel=3 + self._frames)
        names = []
        for i in range(found.sources + found.validations):
            source = c.SourceInfo(sizeof(c.SourceInfo))
            check(lib.tokmap_run_source(opened, i, byref(source)))
            warn_of(source.dataset, self.name, 4 + self._frames)
            names.append(source.name.decode())
        self._names = tuple(names)
        self._handle = opened

    def _open(self) -> RunHandle:
        """The handle, for a call of the library."""
        handle = self._handle  # read once: another thread may close the run
        if handle is None:
            raise ArgumentError(f"the run {self.name} is closed")
        return handle

    def close(self) -> None:
        """Closes the run, its loaders, and its datasets. A second close has no effect. Raises a TokmapError while a
        view() of one of its datasets is in use. The end of `with` raises nothing: the run cannot be used any more, and
        the memory of its datasets stays until their views are gone. It also stays until calls in other threads have
        returned; for a loader's call close() waits."""
        if self._handle is None:
            return
        if len(self._views):
            raise TokmapError(f"views of the datasets of {self.name} are still in use, {len(self._views)} in all: "
                              f"delete them before you close the run")
        self._close_loaders()
        self._handle = None

    def _close_loaders(self) -> None:
        for loader in list(self._loaders):
            loader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        self._close_loaders()
        self._handle = None  # views of its datasets keep the handle, too

    def __repr__(self) -> str:
        if self._handle is None:
            return f"<tokmap.Run {self.name!r}, closed>"
        info = self.info
        end = "endless, steps" if info.steps is None else c.counted(info.steps, "step")
        return (f"<tokmap.Run {self.name!r}: {end} of {c.counted(info.batch, 'row')} of "
                f"{c.counted(info.seq_len, 'token')}>")

    def _repr_html_(self) -> str:
        if self._handle is None:
            return table(repr(self), {})
        info = self.info
        return table(f"tokmap.Run {self.name}", {
            "steps": "endless" if info.steps is None else info.steps, "rows of a step": info.batch,
            "tokens of a row": info.seq_len, "order": info.order, "seed": info.seed, "phases": info.phases,
            **{f"source {each.name}": f"{each.data}: {c.counted(each.windows, 'row')} an epoch"
               for each in self.sources}})

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources, each with its dataset, which stays open as long as the run."""
        return self._described(range(self.info.sources))

    @property
    def source_names(self) -> tuple[str, ...]:
        """The names of the sources: what source_ids of a batch are numbers of."""
        return tuple(self._names[:self.info.sources])

    @property
    def validations(self) -> tuple[Source, ...]:
        """The datasets that the run holds out, by the lines `validation` of its text: no step draws them, and
        evaluation() reads them. windows is the number that an evaluation has by default."""
        return self._described(range(self.info.sources, len(self._names)))

    def _described(self, numbers: Iterable[int]) -> tuple[Source, ...]:
        run, sources = self._open(), []
        for i in numbers:
            found = c.SourceInfo(sizeof(c.SourceInfo))
            check(lib.tokmap_run_source(run, i, byref(found)))
            name = found.name.decode()
            dataset = Dataset._of_run(self, new(Handle, run, found.dataset), os.fsdecode(found.data), name)
            sources.append(Source(name, dataset, found.windows, found.tail,
                                  None if found.plan is None else os.fsdecode(found.plan), found.epochs_most or None,
                                  os.fsdecode(found.data)))
        return tuple(sources)

    @property
    def text(self) -> str:
        """The run file that this run equals, in one form however the run was opened. Relative paths start from the
        current folder."""
        text = lib.tokmap_run_text(self._open())
        if text is None:
            raise error_of("ERROR_UNSUPPORTED",
                           "a name of the run has a control character, so no run file describes it: rename it")
        return os.fsdecode(text)

    def _shapes(self) -> list[c.PhaseInfo]:
        """The phases without their shares."""
        phases = []
        for i in range(self.info.phases):
            phase = c.PhaseInfo(sizeof(c.PhaseInfo))
            check(lib.tokmap_run_phase(self._open(), i, byref(phase)))
            phases.append(phase)
        return phases

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases, each with the shares of its sources. A run without phases has one."""
        run, names, phases = self._open(), self._names, []
        for i, phase in enumerate(self._shapes()):
            shares = []
            for k in range(phase.shares):
                found = c.ShareInfo(sizeof(c.ShareInfo))
                check(lib.tokmap_run_share(run, i, k, byref(found)))
                shares.append(Share(names[found.source], found.weight, found.weights, found.windows,
                                    found.first_epoch, found.first_draw, found.draws))
            phases.append(Phase(phase.first_step, None if phase.end_step == c.FOREVER else phase.end_step, phase.batch,
                                phase.seq_len, tuple(shares)))
        return tuple(phases)

    def drawn(self, source: int | str, step: int) -> int:
        """The number of rows of steps [0, step), skipped steps included, that show a source, by its number or name."""
        if isinstance(source, str):
            source = c.choice(source, tuple(each.name for each in self.sources), "source")
        draws = c_uint64()
        check(lib.tokmap_run_drawn(self._open(), c.number(source, "source"), c.number(step, "step"), byref(draws)))
        return draws.value

    def real_rows(self, step: int) -> int:
        """The number of rows of `step` that are not padding: rows(step), except in the last step with tail "pad"."""
        return int(lib.tokmap_run_real_rows(self._open(), c.number(step, "step")))

    @property
    def vocabulary(self) -> int:
        """The number of ids that a model of this run's data needs: the largest vocabulary of its sources and validation
        sets."""
        return max(source.dataset.info.vocabulary for source in (*self.sources, *self.validations))

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
        return _place(found, self._names)

    def extents(self, step: int, row: int) -> list[Extent]:
        """What a row is made of, one piece after another; padding follows them up to seq_len + lookahead tokens. A window
        is one piece. A row of a plan has one for each segment, which is a document, or a part of one that is longer
        than a row; if the plan pads documents, a piece of padding may follow each, whose first_token is 2**64 - 1. A
        padding row has none."""
        place, error, used, capacity = c.Place(), c.Error(), c_uint64(), 64
        check(lib.tokmap_run_locate(self._open(), c.number(step, "step"), c.number(row, "row"), byref(place),
                                    byref(error)), error)
        while True:
            found = (c.Extent * capacity)()
            status = lib.tokmap_run_extents(self._open(), byref(place), found, capacity, byref(used), byref(error))
            if status != c.LIMIT:
                break
            capacity = used.value
        check(status, error)
        return [Extent(extent.first_token, extent.tokens) for extent in found[:used.value]]

    def documents(self, step: int, row: int) -> list[Shown]:
        """The documents that the tokens of a row contain, in order, each with its origin; those of its lookahead are
        left out."""
        place = self.locate(step, row)
        if place.source is None:
            return []
        source = self.sources[place.source]
        phase = c.PhaseInfo(sizeof(c.PhaseInfo))
        check(lib.tokmap_run_phase(self._open(), lib.tokmap_run_phase_at(self._open(), step), byref(phase)))
        documents: list[Shown] = []
        column, end, tokens = 0, phase.seq_len, source.dataset.info.tokens
        for piece in self.extents(step, row):
            after: int = min(column + piece.tokens, end)
            token = piece.first_token
            if token == c.NO_OFFSET:
                column = after
            while column < after:
                document = source.dataset.document_at(token)
                count = min(document.first_token + document.tokens - token, after - column)
                origin: Origin | None
                try:
                    origin = source.dataset.origin(document.number)
                except FileNotFoundError:
                    origin = None
                excluded = lib.tokmap_run_excluded(self._open(), place.source, token) <= step
                documents.append(Shown(source.name, document.number, column, count, origin, excluded))
                column += count
                token = (token + count) % tokens
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
                places.append(_place(place.contents, self._names))
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
        check(lib.tokmap_run_check_cursor(self._open(), byref(found), byref(error)), error)
