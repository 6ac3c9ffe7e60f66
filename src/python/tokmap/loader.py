# SPDX-License-Identifier: MIT
"""Loaders: they deliver a run's rows to one rank, batch by batch."""
from __future__ import annotations

from _thread import RLock, get_ident
from ctypes import byref, c_double, c_size_t, c_uint64, c_void_p, create_string_buffer, sizeof
from json import dumps
from operator import attrgetter, index
from time import monotonic_ns, sleep

from . import _library as c
from . import launcher
from ._library import check, failure, lib, table
from .arrays import choose
from .errors import ArgumentError, error_of
from .handles import LoaderHandle, new
from .opened_run import OpenedRun, Place, Shown, cursor_of_state, cursor_text, state_of_cursor
from .reader import (TOKEN_FIELDS, _SETTLES, Reader, exclusive, exiting, field_bits, parse_fields, parse_values,
                     values_of)
from .records import NamedTuple
from .tokenizer import Tokenizer

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator, Mapping, Sequence

    from typing_extensions import Self

    from .hints import AnyArray, Device, DType, Field, Fields, Framework, Layout, Path, Stream


def _duration(ns: float) -> str:
    """A time for people: "0.4 ms"."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size / 10:
            return f"{ns / size:.3g} {unit}" if ns < 1000 * size else f"{ns / size:,.0f} {unit}"
    return f"{ns:.0f} ns"


class Stats(NamedTuple):
    """What a loader has delivered, and how long next() waited: the members of struct tokmap_stats in tokmap.h, and two
    more. str() is a sentence that says whether the loader slows the program down.

    reading is "mapped" or "pread"; wait_histogram is a tuple. works_ahead is False for a loader with threads=0.
    elapsed_ns is the time from the first call of next() to the end of the last one."""
    batches: int
    rows: int
    tokens: int
    bytes: int
    cold_reads: int
    epoch: int
    ring_bytes: int
    ring_slots: int
    ring_ready: int
    ring_ready_lowest: int
    reading: str
    waits: int
    wait_ns: int
    wait_ns_largest: int
    wait_histogram: tuple[int, ...]
    host_expanded: int
    late_copies: int
    device_bytes: int
    timeouts: int
    io_threads: int
    io_reads: int
    probe_ns: int
    padding: int
    alarms: int
    excluded: int
    excluded_rows: int
    fetch_requests: int
    fetch_bytes: int
    fetch_repeated: int
    fetch_evicted: int
    fetch_storage_ns: int
    fetch_transfer_ns: int
    fetch_disk_ns: int
    works_ahead: bool
    elapsed_ns: int

    def __str__(self) -> str:
        if not self.batches:
            return "no batch was delivered yet"
        batches = f"{self.batches:,} batch{'' if self.batches == 1 else 'es'}"
        if not self.works_ahead:
            return (f"{batches} in {_duration(self.elapsed_ns)}; with threads=0 next() does the work itself, so there "
                    f"are no waits to judge by")
        said = f"{self.waits:,} wait{'' if self.waits == 1 else 's'} in {batches}, {_duration(self.wait_ns)} in all"
        # The longest wait is left out, because it is usually that for the first batches.
        elapsed = max(self.elapsed_ns - self.wait_ns_largest, 1)
        share = (self.wait_ns - self.wait_ns_largest) / elapsed
        if share < 0.01:
            said += ": the loader is not the bottleneck"
            return said if self.wait_ns * 100 < elapsed else \
                f"{said}; its longest wait, usually for the first batch, took {_duration(self.wait_ns_largest)}"
        if self.batches < 100 or self.elapsed_ns < 10 ** 9:  # the loader may still be filling its ring
            return f"{said}: too little to judge by; ask again after 100 batches and a second"
        verdict = "is the bottleneck" if share > 0.1 else "slows the program down a little"
        said += f", {100 * share:.0f}% of the time: the loader {verdict}"
        if self.fetch_requests:
            causes = [(self.fetch_storage_ns, "object storage to answer"), (self.fetch_transfer_ns, "its bandwidth"),
                      (self.fetch_disk_ns, "the disk of the cache")]
            said += "; reads waited " + ", ".join(f"{_duration(ns)} for {what}" for ns, what in causes if ns)
            return said.removesuffix("; reads waited ")
        return f"{said}; {self.cold_reads:,} of {self.rows:,} rows came from storage" if self.cold_reads else said

    def __repr__(self) -> str:
        parts = []
        for name, value in zip(self._fields, self):
            if name == "wait_histogram":  # of its 64 buckets most are empty
                value = {bucket: count for bucket, count in enumerate(self.wait_histogram) if count}
            parts.append(f"{name}={value!r}")
        return f"Stats({', '.join(parts)})"


class SourceStats(NamedTuple):
    """What a loader has delivered of one source: the members of struct tokmap_source_stats in tokmap.h. draws / windows
    is the number of epochs of all ranks, where the length of rows does not change."""
    name: str
    rows: int
    tokens: int
    epoch: int
    bytes: int
    draws: int
    windows: int


class Stall(NamedTuple):
    """What an alarm receives: of the last `calls` calls of next(), the last of which delivered a batch of `step`,
    `stalled` had to wait, wait_ns in all."""
    step: int
    calls: int
    stalled: int
    wait_ns: int


class LoaderDevice(NamedTuple):
    """How a loader delivers: the members of struct tokmap_loader_device in cuda.h, and to whom.

    device is None for a loader that delivers on the host. part says which part of every global batch the loader
    delivers, and where rank and world come from: "rank 1 of 2 from torch.distributed". coherent says whether the GPU
    could read batches in the host's memory in place, as those of GH200 and GB200 can; the loader copies them."""
    device: int | None
    numa_node: int
    kernel: bool
    pinned_bytes: int
    device_bytes: int
    reason: str
    rank: int
    world: int
    part: str
    coherent: bool


#: The longest wait in the library before Python can handle a signal such as Ctrl-C.
_WAIT_NS = c_uint64(50_000_000)
#: A batch without counts has a smaller struct: its size says whether the library has counted.
_BATCH_BYTES, _UNCOUNTED_BYTES = sizeof(c.Batch), c.Batch.counted.offset


def _deadline_ns(seconds: float | None) -> int:
    if seconds is None:
        return 0
    if not 0 < seconds < 2 ** 31:
        raise ArgumentError(f"deadline is {seconds!r}, but it must be a time in seconds above 0, or None")
    return max(1, round(seconds * 1e9))


def balance(width: int, layers: int, parameters: float = 0) -> float:
    """The q of loader(balance=q) for a model: the cost of a token's attention to one other token, divided by the cost of
    the token in the model's matrices. tokmap_balance() in tokmap.h has the formula.

    width       of attention: heads * dimension of a head; usually that of the model
    layers      that attend
    parameters  that each token is multiplied with: without the table of embeddings, with the output's matrix, and of
                experts only those that a token passes through; 0: 12 * layers * width ** 2
    """
    q, error = c_double(), c.Error()
    if isinstance(parameters, float) and parameters.is_integer():
        parameters = int(parameters)  # such as 7e9
    check(lib.tokmap_balance(c.number(width, "width"), c.number(layers, "layers"), c.number(parameters, "parameters"),
                             byref(q), byref(error)), error)
    return q.value


def _balance(q: float) -> float:
    try:
        return float(q)
    except (TypeError, ValueError):
        raise ArgumentError(f"balance is {q!r}, but it must be a number: 0, or what tokmap.balance(width, layers) "
                            f"returns") from None


class Values(dict[str, "AnyArray"] if TYPE_CHECKING else dict):
    """The values of a batch by name: b.values["teacher"]. Called, the arrays of its fields, as those of a dict."""
    _batch: Batch | None = None

    def __call__(self) -> list[AnyArray]:
        return [] if self._batch is None else [getattr(self._batch, name) for name in self._batch._fields]

    def __missing__(self, name: str) -> AnyArray:
        raise KeyError(f"{name!r} is not one of the batch's values: pass values=\"{' '.join((*self, str(name)))}\" to "
                       f"loader()")


class Batch:
    """What one call of next() delivered. The arrays belong to the caller and never change.

    inputs, targets, position_ids, document_ids, loss_mask, labels
                     arrays of shape [count, columns]; an AttributeError for a field that the loader was not opened with
    targets_ahead    [count, columns, lookahead]: the next `lookahead` tokens of each, for multi-token prediction
    source_ids       [count]: the number of each row's source, an index into run.sources and run.source_names;
                     tokmap.IGNORE (-100) for a row of padding. See tokmap.SourceLoss
    rows             [count, seq_len + lookahead] in the dataset's width: uint16 or uint32
    cu_seqlens       int32, with the same number of elements in every batch: 0, then the end of each document. The
                     elements after the last document repeat its end; variable-length attention reads them as empty
                     documents
    documents        the number of documents in cu_seqlens
    max_seqlen       the number of tokens in the longest of them, as a plain int
    cu_seqlens_slice
                     int32, as cu_seqlens, of the same documents, counted over the columns that this process gets with
                     context_world: some documents may have none. max_seqlen_slice: the most columns of any of them
    step             the number of the global batch that these rows belong to
    first_row        the first of these rows in the global batch
    row_numbers      the numbers of all of them: range(first_row, first_row + count), or a tuple if the loader assigns
    count            the number of rows; it can be less than loader.rows, and 0
    real_rows        of these rows, how many contain data: the first ones. The others are padding, at the end of a run
                     with `tail pad`
    seq_len          the length of a row: that of the step's phase. The arrays have `columns` columns of it, which is
                     less with context_world > 1
    last_in_step     whether this is the rank's last batch of the step: the place to save a state
    epoch            the number of the pass over the data that these rows belong to, from 0; where a pass ends among
                     them, that of the later pass

    counted          with counts=True, how many targets of this batch count (labels, if the batch has no targets)
    counted_in_step  and how many of all batches of all ranks of the step; the same on every rank. The loss of a batch
                     is its sum divided by it: the losses of all batches of all ranks then add up to the step's mean
    share            count / run.rows(step): what a loss averaged over these rows weighs in the step, where every target
                     counts. Where some do not, use counted_in_step
    places           for each row, the Place that says which window it holds
    values           values["teacher"] is an array [count, columns, ...] of values beside the tokens, of a loader with
                     values="teacher": those of the targets, whether these count or not; zeros where there are none, in
                     padding, and where the run excludes documents. bfloat16 is torch's, and uint16 in NumPy
    values_present   with values_present=True, values_present["teacher"] is uint8 [count, columns]: 1 where there are
                     values

    The fields that the loader was opened with, in the order in which they were named, are what a batch unpacks to
    (inputs, targets = batch), and what batch["inputs"], dict(batch), and model(**batch) find by name.
    """
    __slots__ = ("inputs", "targets", "position_ids", "document_ids", "loss_mask", "rows", "cu_seqlens",
                 "targets_ahead", "labels", "source_ids", "documents", "max_seqlen", "step", "first_row",
                 "row_numbers", "count", "real_rows", "seq_len", "last_in_step", "cu_seqlens_slice", "columns",
                 "max_seqlen_slice", "counted", "counted_in_step", "_run", "_fields", "_found", "_values",
                 "values_present")

    inputs: AnyArray
    targets: AnyArray
    position_ids: AnyArray
    document_ids: AnyArray
    loss_mask: AnyArray
    rows: AnyArray
    cu_seqlens: AnyArray
    targets_ahead: AnyArray
    labels: AnyArray
    source_ids: AnyArray
    documents: int
    max_seqlen: int
    step: int
    first_row: int
    row_numbers: Sequence[int]
    count: int
    real_rows: int
    seq_len: int
    last_in_step: bool
    cu_seqlens_slice: AnyArray
    columns: int
    max_seqlen_slice: int
    counted: int
    counted_in_step: int
    _run: OpenedRun
    _fields: tuple[str, ...]
    _found: c.Batch
    _values: Mapping[str, AnyArray]
    values_present: Mapping[str, AnyArray]

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> object:
            """What is not set yet: a member of the library's struct, which few programs read; or an array that the
            loader does not deliver."""
            if name not in _LATER:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}" +
                                     ("" if name[0] == "_" else c.did_you_mean(name, _LATER)))
            field = _OF_FIELD.get(name, name)
            if field in c.FIELDS and field not in self._fields:
                raise AttributeError(f"the batch has no {name}, because its loader was opened without that field: pass "
                                     f"fields=\"{' '.join((*self._fields, field))}\"")
            if name == "values_present":
                raise AttributeError("the batch has no values_present, because its loader was opened without: pass "
                                     "values_present=True to loader()")
            if name in _COUNTS and self._found.size < _BATCH_BYTES:
                raise AttributeError(f"the batch has no {name}, because its loader was opened without counts: pass "
                                     f"counts=True to loader()")
            if name == "row_numbers":
                value: object = range(self.first_row, self.first_row + self.count)
            else:
                value = getattr(self._found, name)
                value = value != 0 if name == "last_in_step" else value
            setattr(self, name, value)
            return value

        def __getstate__(self) -> tuple[None, dict[str, object]]:
            """What copies and pickles have: all members, because the library's struct has pointers."""
            return None, {name: getattr(self, name) for name in self.__slots__
                          if name != "_found" and hasattr(self, name)}

    def keys(self) -> tuple[str, ...]:
        """The names of the fields."""
        return self._fields

    def __getitem__(self, name: str) -> AnyArray:
        if name not in self._fields:
            raise KeyError(f"{name!r} is not one of the batch's fields: pass it with fields= to loader()")
        return getattr(self, name)

    def __iter__(self) -> Iterator[AnyArray]:
        return iter([getattr(self, name) for name in self._fields])

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    @property
    def values(self) -> Values:
        """The values by name: see above. values() are the arrays of the fields."""
        found = Values(getattr(self, "_values", ()))
        found._batch = self
        return found


    def items(self) -> list[tuple[str, AnyArray]]:
        """The fields as pairs of name and array."""
        return [(name, getattr(self, name)) for name in self._fields]

    @property
    def share(self) -> float:
        return self.count / self._run.rows(self.step)

    def rows_of_loss(self, losses: Any) -> str:
        """The losses of the rows, as lines for a file that `tokmap show RUN --losses FILE` reads:

            file.write(b.rows_of_loss(losses))

        losses is a tensor or an array [count], or [count, ...], such as a loss for each token. Of these a row has the
        mean over its targets that count, as the field loss_mask or targets says. A row without any has no line, nor has
        one of padding."""
        if not hasattr(losses, "ndim"):
            raise ArgumentError(f"losses is a {type(losses).__name__}, but it must be a tensor or an array")
        if losses.ndim < 1 or len(losses) != self.count:
            raise ArgumentError(f"losses have the shape {tuple(losses.shape)}, but the batch has {self.count} rows: "
                                f"pass a loss for each row or token (reduction=\"none\"), as [{self.count}] or "
                                f"[{self.count}, ...]")
        of_rows = (losses if losses.ndim == 1 or not self.count else losses.reshape(self.count, -1).mean(1)).tolist()
        targets = self.targets if "targets" in self else None
        counts: Any = self.loss_mask != 0 if "loss_mask" in self else targets != -100
        if getattr(counts, "shape", None) == losses.shape:
            of_rows = [row[one].mean().item() if one.any() else None for row, one in zip(losses, counts)]
        return "".join(dumps({"step": self.step, "row": row, "loss": loss}) + "\n"
                       for row, loss in zip(self.row_numbers, of_rows[:self.real_rows]) if loss is not None)

    @property
    def epoch(self) -> int:
        last = self._run.rows(self.step) - 1
        rows = self.row_numbers or (min(self.first_row, last),)
        return max(self._run.locate(self.step, row).epoch for row in rows)

    @property
    def places(self) -> list[Place]:
        """For each row, the Place that says which window it holds. They are found each time: keep the list."""
        return [self._run.locate(self.step, row) for row in self.row_numbers]

    def locate(self, row: int) -> list[Shown]:
        """The documents in row `row` of this batch, each with its origin: see Run.documents()."""
        if not 0 <= index(row) < self.count:
            raise ArgumentError(f"row {row} is not in this batch, which has {self.count} rows")
        return self._run.documents(self.step, self.row_numbers[row])

    def text(self, row: int, tokenizer: Tokenizer | Path | None = None, *, specials: bool = False) -> str:
        """The inputs of row `row` of this batch as text, read from the dataset: for looking at what the model sees.
        Documents that the run excludes are not in it.

        tokenizer  a Tokenizer, or its path, which each call opens. None: the one that made the dataset, found as
                   Tokenizer.of() does
        specials   special tokens become their names; otherwise they become nothing
        """
        if not 0 <= index(row) < self.count:
            raise ArgumentError(f"row {row} is not in this batch, which has {self.count} rows")
        run, step, row = self._run, self.step, self.row_numbers[row]
        place = run.locate(step, row)
        if place.source is None:
            return ""  # the row is padding
        dataset = run.sources[place.source].dataset
        if tokenizer is None:
            tokenizer = Tokenizer.of(dataset)
        elif not isinstance(tokenizer, Tokenizer):
            tokenizer = Tokenizer(tokenizer)
        # Documents are decoded one by one, so each begins as it does by itself.
        tokens, texts, starts, column = dataset.info.tokens, [], [], 0
        for piece in run.extents(step, row):
            starts.append((column, piece.first_token))
            column += piece.tokens
        for shown in run.documents(step, row):
            if shown.excluded:
                continue
            at, first = max(start for start in starts if start[0] <= shown.column)
            first = (first + shown.column - at) % tokens
            begins = dataset.document(shown.number).first_token == first
            texts.append(tokenizer.decode(dataset.tokens(first, shown.tokens), specials=specials, resumed=not begins))
        return "".join(texts)

    def to(self, device: Device, non_blocking: bool = False) -> Batch:
        """A copy of the batch with its torch tensors on another device."""
        moved = Batch.__new__(Batch)
        for name in self.__slots__:
            if hasattr(self, name):
                setattr(moved, name, getattr(self, name))
        for name in self._fields:
            setattr(moved, name, getattr(self, name).to(device, non_blocking=non_blocking))
        for name in ("_values", "values_present"):
            if hasattr(self, name):
                setattr(moved, name, {what: array.to(device, non_blocking=non_blocking)
                                      for what, array in getattr(self, name).items()})
        return moved

    def _rows_text(self) -> str:
        rows = self.row_numbers
        if isinstance(rows, range):
            return f"{self.first_row} to {self.first_row + self.count - 1}"
        return ", ".join(map(str, rows if len(rows) <= 8 else [*rows[:7], "...", rows[-1]]))

    def _repr_html_(self) -> str:
        return table("tokmap.Batch", {
            "step": self.step, "rows": self._rows_text() if self.count else "0",
            "last in step": "yes" if self.last_in_step else "",
            **{name: f"{tuple(array.shape)} {array.dtype}" for name, array in self.items()}})

    def __repr__(self) -> str:
        last = ", last in step" if self.last_in_step else ""
        return f"<tokmap.Batch of step {self.step}: rows {self._rows_text()}{last}; {', '.join(self._fields)}>"


_OF_FIELD = {"documents": "cu_seqlens", "max_seqlen": "cu_seqlens", "max_seqlen_slice": "cu_seqlens_slice"}
_CU_SEQLENS = ("cu_seqlens", "cu_seqlens_slice")
_COUNTS = ("counted", "counted_in_step")
#: The members of Batch that it reads when somebody asks for them.
_LATER = frozenset(name for name in Batch.__slots__ if name[0] != "_")


#: Arguments that only the library's options have: those that say which part of the rows a loader delivers, which a move
#: changes there, and others.
_PLACE = ("rank", "world", "nodes", "context_rank", "context_world")
_KEPT = ("rows", "balance", "mask_targets", "threads", "ring_bytes", "read_ahead", "trust_files", "drop_behind",
         "io_threads", "alarm_percent", "alarm_calls", "counts", "values_present")


class Loader(Reader):
    """Delivers a run's rows to one rank. Run.loader() makes one:

        loader = run.loader(rank=0, world=8, rows=16, device="cuda", dtype=torch.int64)
        for batch in loader: ...

    rank, world    which part of every global batch this loader delivers; 0 <= rank < world. Without them, those of an
                   initialized torch.distributed or jax.distributed, or of the launcher (torchrun, Slurm, MPI); else 0
                   and 1. delivery().part says which. With tensor, pipeline, or context parallelism pass the data
                   parallel rank and size, because ranks that share a row's work need the same row
    rows           the largest number of rows in one batch; 0: the rank's whole part of a global batch in one batch
    balance        q, as tokmap.balance(width, layers) computes it for a model: the rows of a step are assigned to the
                   batches of all ranks so that what they cost differs little, for models whose attention stays inside
                   documents. The step keeps its rows; batch.row_numbers says which a batch has. balance and rows must
                   be the same on all ranks. 0: off
    nodes          the number of nodes (machines) that the ranks are on, in order, as torchrun numbers them: with `order
                   even W SPAN`, rows of a block go to few nodes, so that all nodes together read each block about once
                   instead of once each. The step keeps its rows; batch.row_numbers says which a batch has. 0: off.
                   repartition() changes loader.nodes, which loaders that join then are opened with
    fields         any of "inputs targets labels position_ids document_ids loss_mask cu_seqlens rows targets_ahead
                   source_ids", as a text or a sequence; a batch unpacks in this order. labels are for models that shift
                   targets themselves, such as those of transformers. Where some targets do not count, because the data
                   has a mask, for example, targets need mask_targets or loss_mask, and inputs without targets need
                   labels
    dtype          int32 or int64, as a name or as a dtype of torch or NumPy, of every field but cu_seqlens (always
                   int32) and rows
    device         "cpu", "cuda", "cuda:N", or a torch.device
    framework      "torch", "numpy", or "dlpack" (tokmap.Array). By default that of dtype; otherwise torch if a device
                   is named or the program has imported torch, NumPy if not
    mask_targets   True: a target that does not count, as one in another document than its input, is tokmap.IGNORE
                   (-100). With inputs alone: the program knows which of them count
    counts         True: batches have counted and counted_in_step, by which a step's loss is divided. Every rank
                   computes them by itself
    values         names of values beside the tokens, in a text or a sequence, for b.values: see tokmap.ValuesWriter
    values_present True: b.values_present says which tokens have values
    resume         a state_dict(), or the text of a cursor, to start from; it may come from any world size and any rows
    threads        1: a producer thread works ahead; 0: next() does the work itself
    ring_bytes, read_ahead, trust_files, drop_behind, io_threads
                   see struct tokmap_loader_options in tokmap.h
    context_rank, context_world, context_layout
                   context parallelism: this process shares its rows with context_world - 1 others, which pass the same
                   rank and world, and gets seq_len / context_world columns of each: "contiguous", one run of them;
                   "zigzag", chunks c and 2C - 1 - c of 2C, which balances causal attention; "zigzag_documents", those
                   chunks of each document of a plan made with `tokmap plan --pad-documents` 2C, as Transformer Engine's
                   THD layout has them. Each element is that of its column in the whole row
    mesh, data, context
                   a torch DeviceMesh in place of rank, world, context_rank, and context_world: the name of its axis
                   along which processes read other rows, or a tuple of such names, and of that along which they share
                   them: run.loader(mesh=mesh, data="dp", context="cp")
    trace          a file, of this rank alone, to which 16 bytes are appended for each step that was delivered:
                   `tokmap replay` compares it with the data. state_dict() writes what belongs to the state
    deadline       seconds; a read of tokens or masks that takes longer raises a TimeoutError. None: reads have none
    alarm          called with a Stall when alarm_percent percent (0: 10) or more of alarm_calls calls of next() (0:
                   100) had to wait, and fewer of those before them
    range_push, range_pop
                   called with the name of a range, and without arguments, for a profiler such as NVTX; "tokmap fill" is
                   a range of the producer's thread

    Where the phases of a run differ in batch or seq_len, the arrays of a batch have the shape of its phase, and rows
    and calls are the largest of any phase.

    iter(loader) is the loader itself: a loop continues where the last one was left, by break or an exception, and ends
    with the run. A loop that begins after that is an ArgumentError; rewind() returns to where the loader was opened.
    len(loader) is the number of batches from where the loader was opened, resumed, or moved to, to the end of the run:
    what a progress bar over it shows after a resume, too.

    Any thread may call any method; calls run one at a time. A signal handler may call state_dict() and stats(). A child
    after fork() cannot use the loader and must open its own. A loader that is open at the end of the program is closed
    then.
    """

    fields: tuple[Field, ...]
    rank: int
    world: int
    nodes: int
    rows: int
    calls: int
    device: str
    context_rank: int
    context_world: int
    if not TYPE_CHECKING:
        rank, world, nodes, context_rank, context_world = (property(attrgetter(f"_options.{name}")) for name in _PLACE)

    def __init__(self, run: OpenedRun, *, rank: int | None = None, world: int | None = None, rows: int = 0,
                 fields: Fields = "inputs targets", dtype: DType | None = None,
                 device: Device | None = None, framework: Framework | None = None, mask_targets: bool = False,
                 resume: Mapping[str, Any] | str | None = None, balance: float = 0, nodes: int = 0, threads: int = 1,
                 ring_bytes: int = 0, read_ahead: int = 0, trust_files: bool = False, drop_behind: bool = False,
                 io_threads: int = 0, trace: Path | None = None, deadline: float | None = None,
                 alarm: Callable[[Stall], object] | None = None, alarm_percent: int = 0, alarm_calls: int = 0,
                 range_push: Callable[[str], object] | None = None,
                 range_pop: Callable[[], object] | None = None, context_rank: int | None = None, context_world: int = 1,
                 context_layout: Layout = "contiguous", mesh: Any = None, data: str | Sequence[str] | None = None,
                 context: str | None = None, counts: bool = False,
                 values: str | Sequence[str] | None = None, values_present: bool = False) -> None:
        super().__init__(run)
        # Queries such as stats() do not wait for a next() that waits, so they have a lock of their own.
        self._query_lock, self._in_query, self._moving = RLock(), False, False
        self._arrays, code, device_name = choose(framework, dtype, device)
        self.fields, self._value_names = parse_fields(fields), parse_values(values)
        self._part, slice_ = launcher.of_mesh(mesh, data, context, rank, world, context_rank, context_world)
        layout = c.choice(context_layout, c.LAYOUTS, "context_layout")
        self.device = device_name
        self._options = c.LoaderOptions(
            size=sizeof(c.LoaderOptions), rank=self._part.rank, world=self._part.world, rows=c.number(rows, "rows"),
            fields=field_bits(self.fields), threads=c.number(threads, "threads", 0, 2 ** 32 - 1),
            ring_bytes=c.number(ring_bytes, "ring_bytes"),
            read_ahead=c.number(read_ahead, "read_ahead", 0, 2 ** 32 - 1), trust_files=bool(trust_files),
            drop_behind=bool(drop_behind), device=None if device_name == "cpu" else device_name.encode(),
            mask_targets=bool(mask_targets), io_threads=c.number(io_threads, "io_threads", 0, 2 ** 32 - 1),
            trace=None if trace is None else c.text_argument(trace, "trace"), deadline_ns=_deadline_ns(deadline),
            alarm_percent=c.number(alarm_percent, "alarm_percent", 0, 100),
            alarm_calls=c.number(alarm_calls, "alarm_calls", 0, 2 ** 32 - 1), balance=_balance(balance),
            context_rank=slice_.rank, context_world=slice_.world, context_layout=layout, nodes=c.number(nodes, "nodes"),
            counts=bool(counts), values_present=bool(values_present),
            values=c.text_argument(" ".join(self._value_names), "values") if self._value_names else None)
        self._batch_bytes = _BATCH_BYTES if counts else _UNCOUNTED_BYTES
        self._set_hooks(alarm, range_push, range_pop)
        self._arguments: dict[str, Any] = {"fields": self.fields, "dtype": code, "device": device_name,
                                           "framework": self._arrays.name, "deadline": deadline,
                                           "context_layout": context_layout, "values": self._value_names}
        # A trace has one writer, so a pickled loader does not take it along.
        self._arguments.update((name, hook) for name, hook in (("alarm", alarm), ("range_push", range_push),
                                                               ("range_pop", range_pop)) if hook is not None)
        # The structs that every call passes are made once.
        self._error = c.Error()
        self._error_pointer = byref(self._error)
        # Where the loader is: the library's struct of the last delivered batch, or the text of a cursor. A single
        # assignment advances it.
        self._last: Any = None
        # The last call: its struct, arrays, whether the caller passed them, its stream. If the library has completed
        # the struct and it is not _last, the call was interrupted.
        self._pending: Any = None
        self._ended = False  # whether next() has reported the end of the run
        self._first_ns = self._last_ns = 0  # when the first next() began, and the last one ended
        self._out = c.Out(sizeof(c.Out), c.I64 if code == "int64" else c.I32)
        self._out_pointer = byref(self._out) if self.fields or self._value_names else None
        self._works_ahead, self._on_device = self._options.threads != 0, device_name != "cpu"
        run._loaders.add(self)  # before the library opens anything, so that run.close() always closes it
        self._code = code
        self._origin = self._start(cursor_of_state(resume))
        if self._on_device and self._arrays.name == "dlpack":
            self.device = f"cuda:{self.delivery().device}"
            self._options.device = self.device.encode()  # load_state_dict() and rewind() open the loader there again
            self._arrays.opened(self.device)
        self._arrive()

    def _set_hooks(self, alarm: Callable[[Stall], object] | None, push: Callable[[str], object] | None,
                   pop: Callable[[], object] | None) -> None:
        """Makes the functions that the library calls. ctypes prints what they raise."""
        if (push is None) != (pop is None):
            raise ArgumentError("range_push and range_pop belong together: pass both or neither")
        if alarm is not None:
            def on_alarm(_: object, found: Any) -> None:
                stall = found.contents
                alarm(Stall(stall.step, stall.calls, stall.stalled, stall.wait_ns))
            self._options.alarm = c.ALARM(on_alarm)
        if push is not None and pop is not None:
            self._options.event = c.EVENT(lambda _, name, begin: push(name.decode()) if begin else pop())

    def _start(self, cursor: str | None) -> str:
        """Opens the library's loader at a cursor, which it returns. None is the start of the run. The previous loader
        stays open until this has succeeded."""
        run = self.run._open()
        handle, error = new(LoaderHandle, run), c.Error()
        if cursor is None:
            start = self.run.cursor(0)
        else:
            self.run.check(cursor)
            start = cursor
        self._options.resume = None if cursor is None else cursor.encode()
        if self._options.trace is not None and self._handle is not None:
            self._handle = None  # a trace has one writer
        check(lib.tokmap_loader_open(byref(handle), run, byref(self._options), byref(error)), error)
        self._moving = True
        self._handle = handle
        self._opened_at = start
        self._stand_at(start)
        return start

    def _stand_at(self, cursor: str) -> None:
        """The library's loader delivers next what follows a cursor."""
        self._pending, self._ended = None, False
        self._last = cursor

    def _arrive(self) -> None:
        """The end of every move: finds what follows from where the loader is. If an exception such as that of Ctrl-C
        ends a move before, next() refuses to run, because its arrays could have the shapes of another phase."""
        self.rows = lib.tokmap_loader_rows(self._handle)
        self.calls = self._calls_of(self.run.info.batch_most)
        self._assigns = self._options.balance != 0 or self.nodes > 1
        self._known_makers: dict[tuple[int, int], Any] = {}
        self._enter_phase()
        self._moving = False

    def _cursor(self) -> str:
        """The text of the cursor after the last delivered batch."""
        last = self._last
        return last if isinstance(last, str) else cursor_text(last.cursor)

    def _next_step(self) -> int:
        """The step of the next batch."""
        last = self._last
        if isinstance(last, str):
            return int(last.split("step=")[1].split()[0])
        step: int = last.cursor.step if last.last_in_step else last.step
        return step

    def _enter_phase(self) -> None:
        """Computes the shape and type of each field's array in the phase of the next step, and prepares how to make
        one."""
        run, found = self.run._open(), c.PhaseInfo(sizeof(c.PhaseInfo))
        check(lib.tokmap_run_phase(run, lib.tokmap_run_phase_at(run, self._next_step()), byref(found)))
        slice_rows = found.batch * (self.rank + 1) // self.world - found.batch * self.rank // self.world
        rows, seq_len, lookahead = -(-slice_rows // self._calls_of(found.batch)), found.seq_len, self.run.info.lookahead
        self._phase_rows = rows
        known: Any = self._known_makers.get((rows, seq_len))
        if known is None:
            code = self._code
            shapes: dict[str, tuple[tuple[int, ...], str]] = {}
            columns = seq_len // self.context_world
            for name in TOKEN_FIELDS:
                shapes[name] = (rows, columns), code
            shapes["targets_ahead"] = (rows, columns, lookahead), code
            shapes["source_ids"] = (rows,), code
            if "rows" in self.fields:
                width = max(source.dataset.info.width for source in self.run.sources)
                shapes["rows"] = (rows, seq_len + lookahead), "uint16" if width == 2 else "uint32"
            for name in _CU_SEQLENS:
                shapes[name] = ((lib.tokmap_loader_cu_seqlens(self._handle),), "int32")
            wanted = [(name, *shapes[name]) for name in self.fields]
            arrays = list(enumerate(values_of(self._handle, self._value_names)))
            wanted += [(f"values{k}", (rows, columns, *shape), dtype) for k, (_, shape, dtype) in arrays]
            if self._options.values_present:
                wanted += [(f"values_present{k}", (rows, columns), "uint8") for k, _ in arrays]
            known = wanted, [(name, self._arrays.maker(shape, dtype)) for name, shape, dtype in wanted]
            if len(self._known_makers) < 64:  # of a run with many lengths, not all are kept
                self._known_makers[rows, seq_len] = known
        self._shapes: list[tuple[str, tuple[int, ...], str]] = known[0]
        self._makers: list[tuple[str, Any]] = known[1]
        # The last assignment, because until then next() comes here. A run without phases never does.
        self._phase_end: int | None = found.end_step if self.run.info.phases > 1 else None

    # ---- batches ----

    def __iter__(self) -> Self:
        if self._ended:
            raise ArgumentError("the loader has delivered the whole run, so a loop over it would get nothing: call "
                                "loader.rewind() to read the same rows again, loader.load_state_dict() to continue "
                                "from a saved state, or open another loader with run.loader()")
        return self

    if not TYPE_CHECKING:
        def __getitem__(self, index):
            """Explains the error to programs that give a loader to torch's DataLoader, which reads by index."""
            raise TypeError("a tokmap.Loader delivers batches in order and reads ahead by itself, so it has no index: "
                            "use it as it is (for b in loader) in place of a torch DataLoader, or give the DataLoader "
                            "run.dataset(), which has one")

    def next(self, out: Any = None, stream: Stream | None = None) -> Batch:
        """Delivers the next batch. At the end of the run it raises a StopIteration, which is a TokmapError, too.

        out     where to write instead of new arrays: what out() returned, or a mapping or object with an array for each
                field. The batch then refers to these arrays. Passing the same arrays every time suits a CUDA graph
        stream  the CUDA stream that the outputs are enqueued on: of torch, CuPy, Numba, or cuda.core, any object with
                __cuda_stream__, or a handle; by default torch's current stream, or the device's default stream. If it
                is another one than that of the last batch in the same out, it waits for the work on that one
        """
        before = made = None
        try:
            while True:
                if self._lock._is_owned() or self._returning == get_ident():  # type: ignore[attr-defined]
                    raise self._interrupted()
                with self._lock:
                    if not self._returning:
                        before = self._last
                        batch, made = self._fetch(out, stream)
                        self._returning = get_ident()
                        break
                sleep(_SETTLES)
            # The batch counts as delivered from here on. Python runs signal handlers and other threads after calls, in
            # loops, and at the start of functions: neither between this assignment and the return. An interrupt arrives
            # either before it, and the next call returns the batch, or after next() has returned it.
            self._last = made
            self._returning = 0
            return batch
        except BaseException:
            if self._returning == get_ident():
                if self._last is made:  # Python before 3.11 handles signals between any two instructions
                    self._last = before
                self._returning = 0
            self._stop_at_exit()
            raise

    __next__ = next  # not a function that calls it, which would be another place to be interrupted at

    def _fetch(self, out: Any, stream: Stream | None) -> tuple[Batch, Any]:
        """Gets a batch from the library. Returns it, and what _last becomes when it is delivered."""
        handle = self._handle or self._open()
        if not self._first_ns:
            launcher.confirm(self._part)  # that torch.distributed, if it has started meanwhile, says the same
            self._first_ns = monotonic_ns()
        pending = self._pending
        if self._moving:
            raise self._unsettled()
        if pending is not None and pending[0] is not self._last and pending[0].row_tokens:
            return self._fetch_interrupted(out)
        if self._works_ahead:
            while not lib.tokmap_loader_wait(handle, _WAIT_NS):
                if exiting():  # Python handles signals between two calls
                    del handle  # because the exception refers to this frame
                    raise ArgumentError("the loader is closed, because the program ends")
        if self._phase_end is not None and self._next_step() >= self._phase_end:
            self._enter_phase()
        arrays, outputs = self._arrays, self._out
        if stream is not None:
            stream = arrays.use_stream(stream, out is None)
        else:
            stream = arrays.stream() if self._on_device else 0
        if out is None:
            written = []
            for name, make in self._makers:
                array, address = make()
                written.append(array)
                setattr(outputs, name, address)
        else:
            written = self._arrays_of(out)
            arrays.use(outputs, self._shapes, written)
            if self._on_device:
                arrays.order(written, stream)
        # The library sets row_tokens: until then the call has not delivered. The struct is a new one, because a call
        # that fails clears it, the state needs the previous one, and batches read theirs later.
        found = c.Batch(self._batch_bytes)
        self._pending = found, written, out is not None, stream
        status = lib.tokmap_loader_next(handle, self._out_pointer, c_void_p(stream) if stream else None, byref(found),
                                        self._error_pointer)
        if status:
            self._pending = None
            raise self._failure(status)
        return self._fetched()

    def _failure(self, status: int) -> BaseException:
        """The exception for a status of next(). If the frame that raises it had it in a variable, the two would form a
        cycle, and the loader would stay open until Python collects cycles."""
        problem = failure(status, self._error)
        self._ended = isinstance(problem, StopIteration)
        return problem

    def _fetched(self) -> tuple[Batch, Any]:
        """The batch of the pending call, which the library has completed."""
        found, written, by_caller, stream = self._pending
        if by_caller and self._on_device:
            self._arrays.written(written, stream)
        batch = Batch()
        batch._run, batch._fields, batch._found = self.run, self.fields, found
        count = found.count
        if self._assigns:  # now, because the loader will write other rows to the memory that the struct refers to
            batch.row_numbers = tuple(place.row for place in (c.Place * count).from_address(found.places))
        whole = count == self._phase_rows
        for name, array in zip(self.fields, written):
            setattr(batch, name, array if whole or name in _CU_SEQLENS else array[:count])
        if self._value_names:
            self._set_values(batch, [array if whole else array[:count] for array in written[len(self.fields):]])
        self._last_ns = monotonic_ns()
        return batch, found

    def _set_values(self, batch: Batch, arrays: list[AnyArray]) -> None:
        names = self._value_names
        batch._values = dict(zip(names, arrays))
        if self._options.values_present:
            batch.values_present = dict(zip(names, arrays[len(names):]))

    def _unsettled(self) -> ArgumentError:
        return ArgumentError("an exception, such as that of Ctrl-C, ended load_state_dict(), rewind(), repartition(), "
                             "or reload() before its end: call it again before next()")

    def _fetch_interrupted(self, out: Any) -> tuple[Batch, Any]:
        """The batch of a call that was interrupted (by Ctrl-C, for example) after the library had written it."""
        _, written, by_caller, _ = self._pending
        outputs = self._arrays_of(out) if out is not None else written
        if by_caller != (out is not None) or any(a is not b for a, b in zip(written, outputs)):
            raise ArgumentError("the last next() was interrupted after its batch had been written: call next() again " +
                                ("with the same out" if by_caller else "without out"))
        return self._fetched()

    @exclusive
    def out(self) -> dict[str, AnyArray]:
        """New arrays of the right shapes, by field name, to pass to every next(out=...). In another phase of the run
        they may have to have other shapes; next() then says which."""
        self._arrays.stream()
        if self._moving:
            raise self._unsettled()
        if self._phase_end is not None and self._next_step() >= self._phase_end:
            self._enter_phase()
        made = iter([make()[0] for _, make in self._makers])
        found: dict[str, Any] = {name: next(made) for name in self.fields}
        found.update((kind, {name: next(made) for name in self._value_names}) for kind in self._kinds)
        return found

    @property
    def _kinds(self) -> tuple[str, ...]:
        """The members of out, or of a batch, that have an array for each name of values."""
        return () if not self._value_names else ("values", "values_present")[:1 + self._options.values_present]

    def _arrays_of(self, out: Any) -> list[AnyArray]:
        """The caller's arrays, in the order of the fields. Every call checks them, because the caller may have changed
        their shape or memory since the last one."""
        names = (*self.fields, *self._kinds)
        given = list(map(out.get, names)) if isinstance(out, dict) else [getattr(out, name, None) for name in names]
        found = given[:len(self.fields)]
        for arrays in given[len(self.fields):]:
            found += [(arrays or {}).get(name) for name in self._value_names]
        for array in found:
            if array is None:
                name, shape, _ = next(wanted for wanted, one in zip(self._shapes, found) if one is None)
                raise error_of("ERROR_ARGUMENT", f"out has no {name}, but the loader was opened with that field: pass "
                               f"an array of shape {shape}", TypeError)
        return found

    def __len__(self) -> int:
        if self.run.info.delivered is None:
            raise TypeError("the run has no end, so its loader has no length: set steps or passes in the run")
        start = int(self._opened_at.split("step=")[1].split()[0])
        if not start and self.run.info.phases == 1:
            return self.run.info.delivered * self.calls
        return sum(self._calls_of_phase(number, start) for number in range(self.run.info.phases))

    def _calls_of(self, batch: int) -> int:
        """The number of calls of a step of so many rows, which is the same on every rank."""
        widest, most = -(-batch // self.world), self._options.rows
        return -(-widest // most) if most else 1

    def _calls_of_phase(self, number: int, start: int) -> int:
        """The number of batches, from a step on, of a phase of a run that has an end."""
        handle, found = self.run._open(), c.PhaseInfo(sizeof(c.PhaseInfo))
        check(lib.tokmap_run_phase(handle, number, byref(found)))
        # Cursors count the tokens that were delivered, which gives the delivered steps without those that are skipped.
        first, end = (int(self.run.cursor(step).split("tokens=")[1].split()[0])
                      for step in (max(start, found.first_step), max(start, found.end_step)))
        return self._calls_of(found.batch) * int(-(-(end - first) // (found.batch * found.seq_len)))

    def __bool__(self) -> bool:
        return True

    # ---- state ----

    def state_dict(self) -> dict[str, Any]:
        """The state after the last batch, as text and numbers. Inside a step it is the state at the start of that step,
        so save it where batch.last_in_step is true. It is the same on every rank, and any number of ranks with any rows
        can resume from it."""
        with self._lock:
            if self._options.trace is not None and self._handle is not None:
                error = c.Error()
                check(lib.tokmap_loader_flush(self._handle, byref(error)), error)
            cursor = self._cursor()
        return state_of_cursor(cursor)

    @exclusive
    def load_state_dict(self, state: Mapping[str, Any] | str) -> None:
        """Continues from a state_dict(), or from the text of a cursor, of the same run. A state of another run raises a
        PastError that names each kind of difference, and the loader then stays where it was."""
        cursor = cursor_of_state(state)
        if cursor is None:
            raise error_of("ERROR_CURSOR", "state is None: pass what state_dict() returned, or the text of a cursor")
        self._open()
        with self._query_lock:
            if self._in_query:
                raise self._interrupted()
            self._start(cursor)
            self._arrive()

    @exclusive
    def rewind(self) -> None:
        """Returns to where the loader was opened: to the state that was passed as resume, or to the start of the run.
        The same batches follow in the same order. It works at any time, also in the middle of a step, and costs no more
        than the batches that were read ahead. load_state_dict() does not change where rewind() returns to."""
        handle, error = self._open(), c.Error()
        if self._opened_at == self._origin:
            self._moving = True
            check(lib.tokmap_loader_rewind(handle, byref(error)), error)
            self._stand_at(self._origin)
            self._arrive()
            return
        with self._query_lock:
            if self._in_query:
                raise self._interrupted()
            self._start(self._origin)
            self._arrive()

    @exclusive
    def repartition(self, rank: int, world: int) -> None:
        """Continues as another rank of another number of ranks, from the start of the first step of which not all
        batches were delivered: for training that continues when machines fail or come back. Every rank calls it after
        the same step.
        The arrays of later batches may have other shapes. rewind() returns to here."""
        self._move(lib.tokmap_loader_repartition, self.run, c.number(rank, "rank"), c.number(world, "world"))

    @exclusive
    def reload(self, run: OpenedRun) -> None:
        """Continues with another run, usually the same file opened again after it was edited, from the start of the
        first step of which not all batches were delivered. Its past before that step must be that of the old run, or a
        PastError names what differs; its future may be another. The old run may be closed afterwards. rewind()
        returns to here."""
        if not isinstance(run, OpenedRun):
            raise ArgumentError(f"run is {run!r}, but it must be a tokmap.Run")
        self._move(lib.tokmap_loader_reload, run)

    def _move(self, function: Callable[..., int], run: OpenedRun, *place: int) -> None:
        handle, error = self._open(), c.Error()
        with self._query_lock:
            if self._in_query:
                raise self._interrupted()
            cursor, before, after = self._cursor(), handle.keeps, run._open()
            arguments = place or (after,)
            handle.keeps = before, after  # until it is certain which of them the library uses
            was, self._moving = self._moving, True
            status = function(handle, *arguments, byref(error))
            if status:
                self._moving, handle.keeps = was, before
                check(status, error)
            handle.keeps = after
            if place:
                self._options.rank, self._options.world = place
                self._options.nodes = lib.tokmap_loader_nodes(handle)
                self._part = launcher.of_loader(*place)
            elif run is not self.run:
                run._loaders.add(self)
                self.run._loaders.discard(self)
                self.run = run
            self._origin = self._opened_at = cursor
            self._stand_at(cursor)
            self._arrive()

    def source_stats(self) -> dict[str, SourceStats]:
        """What the loader has delivered of each source, by the source's name."""
        found, stats = c.SourceStats(sizeof(c.SourceStats)), {}
        with self._query_lock:  # no reload() comes between; and another thread may close the run of found.name
            for number, name in enumerate(self.run.source_names):
                self._query(lambda handle, into: lib.tokmap_loader_source_stats(handle, number, into), found)
                stats[name] = SourceStats(name, found.rows, found.tokens, found.epoch, found.bytes, found.draws,
                                          found.windows)
        return stats

    def prometheus(self, labels: Mapping[str, str] | None = None) -> str:
        """The statistics of the loader and its sources in the text format of Prometheus. labels are written into every
        sample, besides the rank."""
        def escaped(value: str) -> str:
            return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        given = ",".join(f'{name}="{escaped(str(value))}"' for name, value in (labels or {}).items())
        label_text = c.text_argument(given, "labels") if given else None
        capacity = 16384 + 2048 * self.run.info.sources
        while True:
            text, count = create_string_buffer(capacity), c_size_t()
            with self._query_lock:
                before = self._in_query
                try:
                    self._in_query = True
                    status = lib.tokmap_loader_prometheus(self._open(), label_text, text, capacity, byref(count))
                finally:
                    self._in_query = before
            if not status:
                return text.value.decode()
            if count.value < capacity:
                raise ArgumentError(f"labels are {labels!r}, but a name of a label has letters, digits, and _ only")
            capacity = count.value + 1

    def stats(self) -> Stats:
        """What the loader has delivered so far, and how long next() waited."""
        found = c.Stats(sizeof(c.Stats))
        self._query(lib.tokmap_loader_stats, found)
        values = {name: getattr(found, name) for name, *_ in c.Stats._fields_ if name != "size"}
        values["reading"] = c.READINGS[found.reading]
        values["wait_histogram"] = tuple(found.wait_histogram)
        return Stats(**values, works_ahead=bool(self._options.threads),
                     elapsed_ns=max(self._last_ns - self._first_ns, 0))

    def delivery(self) -> LoaderDevice:
        """How the loader delivers: on which GPU (None: on the host), and whether that GPU expands the batches or, if
        not, the reason; and to which rank, and what said so."""
        found = c.LoaderDevice(sizeof(c.LoaderDevice))
        self._query(lib.tokmap_loader_device, found)
        return LoaderDevice(None if found.device < 0 else found.device, found.numa_node, bool(found.kernel),
                            found.pinned_bytes, found.device_bytes, found.reason.decode("utf-8", "replace"),
                            self.rank, self.world, str(self._part), bool(found.coherent))

    def _query(self, function: Callable[[LoaderHandle, Any], int], found: Any) -> None:
        with self._query_lock:
            before = self._in_query
            try:
                self._in_query = True
                check(function(self._open(), byref(found)))
            finally:
                self._in_query = before

    # ---- closing ----

    @exclusive
    def close(self) -> None:
        """Stops the producer thread and frees its memory. A second close has no effect. Batches that were delivered
        stay valid. The end of the program closes a loader that is still open."""
        self._finish()

    def _finish(self) -> None:
        with self._query_lock:
            if self._in_query:
                raise self._interrupted()
            if self._handle is not None:
                self._pending = None
                self._handle = None
                self._arrays.close()

    def _renew(self) -> None:
        super()._renew()
        if not self._query_lock._is_owned():  # type: ignore[attr-defined]
            self._query_lock, self._in_query = RLock(), False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = {name: getattr(self._options, name) for name in _PLACE + _KEPT}
        return (_rebuild, (self.run, {**arguments, **self._arguments}, self.state_dict(), self._part, self._origin))

    def _repr_html_(self) -> str:
        if self._handle is None:
            return table(repr(self), {})
        return table("tokmap.Loader", {
            "run": self.run.name, "rank": f"{self.rank} of {self.world}", "rows of a call": self.rows,
            "calls of a step": self.calls, "fields": ", ".join(self.fields), "device": self.device,
            "arrays": f"{self._arrays.name}, {self._code}", "next step": self._next_step(), "so far": str(self.stats())})

    def __repr__(self) -> str:
        if self._handle is None:
            return "<tokmap.Loader, closed>"
        return (f"<tokmap.Loader of rank {self.rank} of {self.world}: {c.counted(self.rows, 'row')} a call, "
                f"{c.counted(self.calls, 'call')} a step, {', '.join(self.fields) or 'no fields'} on {self.device}>")


def _rebuild(run: OpenedRun, arguments: dict[str, Any], state: dict[str, Any], part: launcher.Part,
             origin: str) -> Loader:
    loader = Loader(run, resume=state, **arguments)
    loader._part = part  # with its source: the first batch confirms that it is true in this process too
    loader._origin = origin
    return loader
