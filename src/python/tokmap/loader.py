"""Loaders: a run's rows to one rank, batch after batch."""
from __future__ import annotations

from _thread import RLock
from collections import namedtuple
from ctypes import byref, c_void_p, sizeof

from . import _library as c
from ._library import check, failure, lib
from .arrays import choose
from .errors import ArgumentError, CursorError, OutputError
from .reader import Reader, alone
from .run import Run, _cursor_text

Stats = namedtuple("Stats", "batches rows tokens bytes cold_reads epoch ring_bytes ring_slots ring_ready ring_ready_lowest "
                   "reading waits wait_ns wait_ns_largest wait_histogram host_expanded late_copies device_bytes")
Stats.__doc__ = "What a loader has done and how long it waited: see struct tokmap_stats in tokmap.h."

LoaderDevice = namedtuple("LoaderDevice", "device numa_node kernel pinned_bytes device_bytes reason")
LoaderDevice.__doc__ = "How a loader delivers: see struct tokmap_loader_device in cuda.h."

#: How long a wait goes on before Python looks whether there was a Ctrl-C.
_PATIENCE_NS = 50_000_000
_MASKS = ("inputs", "targets", "position_ids", "document_ids", "loss_mask")
_FORMAT = 1


def parse_fields(fields) -> tuple[str, ...]:
    """The names in "inputs targets", or in a sequence of them, in the order of the library's bits."""
    names = fields.replace(",", " ").split() if isinstance(fields, str) else list(fields)
    for name in names:
        if name not in c.FIELDS:
            raise ArgumentError(f"fields has {name!r}: {', '.join(c.FIELDS)} may be combined")
    return tuple(name for name in c.FIELDS if name in names)


def stream_handle(stream) -> int:
    """The handle of a CUDA stream: a number, or an object of torch, CuPy or Numba."""
    for name in ("cuda_stream", "ptr", "handle"):
        found = getattr(stream, name, None)
        if found is not None:
            stream = getattr(found, "value", found)
            break
    if not isinstance(stream, int):
        raise ArgumentError(f"stream is {stream!r}: a CUDA stream or its handle as a number is needed")
    return stream


class Batch:
    """What a loader delivered. The arrays are the caller's own.

    inputs, targets, position_ids, document_ids, loss_mask   [count, seq_len]; None where the field was not asked for
    rows             [count, seq_len + lookahead] in the dataset's width
    cu_seqlens       int32, as many elements in every batch: [0] = 0, then where each document ends; the elements behind the
                     last document repeat the end, which attention over sequences of different lengths takes as it is
    documents        sequences in cu_seqlens         max_seqlen   tokens of the longest one, a plain int
    step, first_row, count, last_in_step             which rows of which global batch these are
    batch["inputs"], dict(batch) and model(**batch)  work with the fields that were asked for
    """
    __slots__ = ("inputs", "targets", "position_ids", "document_ids", "loss_mask", "rows", "cu_seqlens", "documents",
                 "max_seqlen", "step", "first_row", "count", "last_in_step", "_run", "_fields")

    def __init__(self):
        self.inputs = self.targets = self.position_ids = self.document_ids = self.loss_mask = None
        self.rows = self.cu_seqlens = self.documents = self.max_seqlen = None

    def keys(self) -> tuple[str, ...]:
        return self._fields

    def __getitem__(self, name: str):
        if name not in self._fields:
            raise KeyError(name)
        return getattr(self, name)

    def items(self) -> list:
        return [(name, getattr(self, name)) for name in self._fields]

    @property
    def places(self) -> list:
        """What each row is: a Place for each."""
        return [self._run.locate(self.step, self.first_row + i) for i in range(self.count)]

    def locate(self, row: int) -> list:
        """The documents that row `row` of this batch shows, with where they came from: see Run.documents()."""
        if not 0 <= row < self.count:
            raise ArgumentError(f"row {row} of a batch of {self.count} rows")
        return self._run.documents(self.step, self.first_row + row)

    def to(self, device, non_blocking: bool = False) -> Batch:
        """The same batch with its torch tensors on another device."""
        moved = Batch.__new__(Batch)
        for name in self.__slots__:
            setattr(moved, name, getattr(self, name))
        for name in self._fields:
            setattr(moved, name, getattr(self, name).to(device, non_blocking=non_blocking))
        return moved

    def __repr__(self) -> str:
        last = ", last in step" if self.last_in_step else ""
        return (f"<tokmap.Batch of step {self.step}: rows {self.first_row} to {self.first_row + self.count - 1}{last}; "
                f"{', '.join(self._fields)}>")


class Loader(Reader):
    """Delivers a run's rows to one rank. Made by Run.loader():

        loader = run.loader(rank=0, world=8, rows=16, device="cuda", dtype=torch.int64)
        for batch in loader: ...

    rank, world    which part of every global batch is delivered here
    rows           rows a call at most; 0: the rank's whole part of a global batch in one call
    fields         "inputs targets position_ids document_ids loss_mask cu_seqlens rows", any of them
    dtype          int32 or int64, of torch, of NumPy or as a text, for all fields but cu_seqlens (int32) and rows
    device         "cpu", "cuda", "cuda:N", or a torch.device
    framework      "torch", "numpy" or "dlpack" (tokmap.Array); by default that of dtype or device, else torch on a GPU and
                   NumPy on the host if they are installed
    mask_targets   targets that lie in another document than their token are tokmap.IGNORE (-100)
    resume         a state_dict() or the text of a cursor to start from, of any world size and rows
    threads        1: a thread works ahead; 0: next() does the work itself
    ring_bytes, read_ahead, unchecked, drop_behind    see struct tokmap_loader_options in tokmap.h

    iter(loader) is the loader itself: it goes on where it is, and ends with the run. len(loader) is the number of its
    batches from the run's beginning to its end. Any thread may call it, one after the other; a signal handler may ask for
    state_dict() and stats(). A child after fork() must open its own.
    """

    def __init__(self, run: Run, *, rank: int = 0, world: int = 1, rows: int = 0, fields="inputs targets", dtype=None,
                 device="cpu", framework: str | None = None, mask_targets: bool = False, resume=None, threads: int = 1,
                 ring_bytes: int = 0, read_ahead: int = 0, unchecked: bool = False, drop_behind: bool = False):
        super().__init__(run)
        self._asking, self._asked = RLock(), False  # for what does not wait for a next() that waits
        self._arrays, code, device_name = choose(framework, dtype, device)
        self.fields = parse_fields(fields)
        self.rank, self.world = c.number(rank, "rank"), c.number(world, "world")
        self.device = device_name
        mask = 0
        for name in self.fields:
            mask |= c.FIELDS[name]
        self._options = c.LoaderOptions(
            size=sizeof(c.LoaderOptions), rank=self.rank, world=self.world, rows=c.number(rows, "rows"), fields=mask,
            threads=c.number(threads, "threads", 0, 2 ** 32 - 1), ring_bytes=c.number(ring_bytes, "ring_bytes"),
            read_ahead=c.number(read_ahead, "read_ahead", 0, 2 ** 32 - 1), unchecked=bool(unchecked),
            drop_behind=bool(drop_behind), device=None if device_name == "cpu" else device_name.encode(),
            mask_targets=bool(mask_targets))
        self._again = {"rank": rank, "world": world, "rows": rows, "fields": self.fields, "dtype": code,
                       "device": device_name, "framework": self._arrays.name, "mask_targets": mask_targets,
                       "threads": threads, "ring_bytes": ring_bytes, "read_ahead": read_ahead, "unchecked": unchecked,
                       "drop_behind": drop_behind}
        # Made once: what every call is given. Two batches in turn, since a call that fails clears its own.
        self._error = c.Error()
        self._error_at = byref(self._error)
        self._batches = tuple((batch, byref(batch)) for batch in (c.Batch(sizeof(c.Batch)), c.Batch(sizeof(c.Batch))))
        self._position = None  # one of the batches, or the text of a cursor: one assignment moves it from batch to batch
        self._pending = None   # the call that is not over: batch, arrays, whether they are the caller's, stream
        self._out = c.Out(sizeof(c.Out), c.I64 if code == "int64" else c.I32)
        self._out_at = byref(self._out) if self.fields else None
        run._loaders.add(self)  # whatever comes, the run ends it first
        self._start(_cursor_of(resume))
        self._shape(code)

    def _start(self, cursor: str | None) -> None:
        """Opens the library's loader at a cursor; the one that was open before is closed only then."""
        handle, error = c_void_p(), c.Error()
        if cursor is None:
            start = self.run.cursor(0)
        else:
            self.run.check(cursor)
            start = cursor
        self._options.resume = None if cursor is None else cursor.encode()
        check(lib.tokmap_loader_open(byref(handle), self.run._open(), byref(self._options), byref(error)), error)
        self._take(handle.value)
        self._pending, self._position = None, start

    def _shape(self, code: str) -> None:
        """What an output of each field looks like, and how one is made."""
        if self.device != "cpu" and self._arrays.name == "dlpack":
            self.device = f"cuda:{self.delivery().device}"
            self._arrays.opened(self.device)
        self.rows = lib.tokmap_loader_rows(self._handle)
        self.calls = lib.tokmap_loader_calls(self._handle)
        info = self.run.info
        shapes = {name: ((self.rows, info.seq_len), code) for name in _MASKS}
        if "rows" in self.fields:
            width = self.run.sources[0].dataset.info.width  # all sources of a run that can be loaded have one
            shapes["rows"] = ((self.rows, info.seq_len + info.lookahead), "uint16" if width == 2 else "uint32")
        shapes["cu_seqlens"] = ((lib.tokmap_loader_cu_seqlens(self._handle),), "int32")
        self._shapes = {name: shapes[name] for name in self.fields}
        self._makers = [(name, self._arrays.maker(*self._shapes[name])) for name in self.fields]

    # ---- batches ----

    def __iter__(self) -> Loader:
        return self

    def __next__(self) -> Batch:
        return self.next()

    @alone
    def next(self, out=None, stream=None) -> Batch:
        """The next batch. A run that is over is End, a StopIteration.

        out     where to write instead of into new arrays: what out() gave, or any mapping or object with an array for each
                field; the same arrays every time serve a CUDA graph. The batch then has these.
        stream  the CUDA stream that the outputs are enqueued on, by default torch's current one, or the default stream
        """
        handle = self._open()
        if self._pending is not None and self._pending[0][0].row_tokens:
            return self._again_delivered(out)
        while not lib.tokmap_loader_wait(handle, _PATIENCE_NS):
            pass  # between two of these Python takes notice of a Ctrl-C
        arrays, fields = self._arrays, self._out
        stream = arrays.stream() if stream is None else arrays.use_stream(stream_handle(stream), out is None)
        if out is None:
            pointer, given = arrays.pointer, []
            for name, make in self._makers:
                array = make()
                given.append(array)
                setattr(fields, name, pointer(array))
        else:
            given = self._checked(out)
        batch = self._batches[self._position is self._batches[0]]
        batch[0].row_tokens = 0
        self._pending = batch, given, out is not None, stream
        status = lib.tokmap_loader_next(handle, self._out_at, stream or None, batch[1], self._error_at)
        if status:
            self._pending = None
            raise failure(status, self._error)
        return self._delivered()

    def _delivered(self) -> Batch:
        """The batch of the call that the library has done."""
        (found, _), given, lent, stream = self._pending
        if lent:
            self._arrays.written(given, stream)
        batch = Batch()
        batch._run, batch._fields = self.run, self.fields
        batch.step, batch.first_row, batch.count = found.step, found.first_row, found.count
        batch.last_in_step, count = found.last_in_step != 0, batch.count
        whole = count == self.rows
        for name, array in zip(self.fields, given):
            setattr(batch, name, array if whole or name == "cu_seqlens" else array[:count])
        if batch.cu_seqlens is not None:
            batch.documents, batch.max_seqlen = found.documents, found.max_seqlen
        self._position = self._pending[0]
        self._pending = None
        return batch

    def _again_delivered(self, out) -> Batch:
        """The batch of a call that was interrupted, by Ctrl-C say, when the library had done its part: nobody has it yet."""
        _, given, lent, _ = self._pending
        found = self._arrays_of(out) if out is not None else given
        if lent != (out is not None) or any(a is not b for a, b in zip(given, found)):
            raise ArgumentError("the last next() was interrupted when its batch was written already: call it " +
                                ("with the same out again" if lent else "without out again"))
        return self._delivered()

    @alone
    def out(self) -> dict:
        """New arrays to give to next(out=...), again and again."""
        self._arrays.stream()
        return {name: make() for name, make in self._makers}

    def _arrays_of(self, out) -> list:
        """The arrays that a caller gave, in the order of the fields."""
        found = []
        for name in self.fields:
            array = out.get(name) if isinstance(out, dict) else getattr(out, name, None)
            if array is None:
                raise OutputError(f"out has no {name}, which the loader was opened with: give it an array of shape "
                                  f"{self._shapes[name][0]}")
            found.append(array)
        return found

    def _checked(self, out) -> list:
        """A caller's arrays as the library's next outputs. They are checked every time: who has them may have given them
        another shape or other memory since."""
        arrays, found = self._arrays, self._arrays_of(out)
        for name, array in zip(self.fields, found):
            arrays.check(name, array, *self._shapes[name])
            setattr(self._out, name, arrays.pointer(array))
        return found

    def __len__(self) -> int:
        delivered = self.run.info.delivered
        if delivered is None:
            raise TypeError("the run has no end: give it steps or passes")
        return delivered * self.calls

    def __bool__(self) -> bool:
        return True

    # ---- state ----

    def state_dict(self) -> dict:
        """The state after the last batch: text and numbers only. Inside a step it is the beginning of that step, so keep it
        where batch.last_in_step. It is the same on every rank, and good for any number of ranks and any rows."""
        with self._lock:
            at = self._position
            cursor = at if isinstance(at, str) else _cursor_text(at[0].cursor)
        return {"tokmap": _FORMAT, "cursor": cursor, "step": int(cursor.split("step=")[1].split()[0])}

    @alone
    def load_state_dict(self, state) -> None:
        """Goes on from a state_dict(), or from the text of a cursor, of the same run. A state of another one is a PastError
        that names each kind of difference, and the loader stays where it was."""
        cursor = _cursor_of(state)
        if cursor is None:
            raise CursorError("the state is None")
        self._open()
        with self._asking:
            if self._asked:
                raise self._interrupted()
            self._start(cursor)

    def stats(self) -> Stats:
        """What it has done so far."""
        found = c.Stats(sizeof(c.Stats))
        self._ask(lib.tokmap_loader_stats, found)
        values = {name: getattr(found, name) for name in Stats._fields}
        values["reading"] = c.READINGS[found.reading]
        values["wait_histogram"] = tuple(found.wait_histogram)
        return Stats(**values)

    def delivery(self) -> LoaderDevice:
        """How it delivers: on which GPU (None: on the host), and whether the GPU expands the batches or why not."""
        found = c.LoaderDevice(sizeof(c.LoaderDevice))
        self._ask(lib.tokmap_loader_device, found)
        return LoaderDevice(None if found.device < 0 else found.device, found.numa_node, bool(found.kernel),
                            found.pinned_bytes, found.device_bytes, found.reason.decode("utf-8", "replace"))

    def _ask(self, function, found) -> None:
        with self._asking:
            before = self._asked
            try:
                self._asked = True
                check(function(self._open(), byref(found)))
            finally:
                self._asked = before

    # ---- its end ----

    @alone
    def close(self) -> None:
        """Stops its thread and frees its memory; a second close does nothing. Batches stay what they are."""
        with self._asking:
            if self._asked:
                raise self._interrupted()
            handle, self._handle = self._handle, None
            if handle is not None:
                self._pending = None
                self._drop(handle)
                if hasattr(self._arrays, "close"):
                    self._arrays.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __reduce__(self):
        return (_again, (self.run, self._again, self.state_dict()))

    def __repr__(self) -> str:
        if self._handle is None:
            return "<tokmap.Loader, closed>"
        return (f"<tokmap.Loader of rank {self.rank} of {self.world}: {self.rows} rows a call, {self.calls} calls a step, "
                f"{', '.join(self.fields) or 'no fields'} on {self.device}>")


def _cursor_of(state) -> str | None:
    if state is None or isinstance(state, str):
        return state
    try:
        version, cursor = state["tokmap"], state["cursor"]
    except (KeyError, TypeError, IndexError):
        raise CursorError(f"this is no state of a tokmap loader: {type(state).__name__} without \"tokmap\" and \"cursor\"") \
            from None
    if version != _FORMAT or not isinstance(cursor, str):
        raise CursorError(f"the state is of version {version!r}, this package knows {_FORMAT}")
    return cursor


def _again(run: Run, options: dict, state: dict) -> Loader:
    return Loader(run, resume=state, **options)
