# SPDX-License-Identifier: MIT
"""A run's rows as a map-style dataset, for samplers and DataLoader workers that read by index."""
from __future__ import annotations

import operator
from bisect import bisect_right
from ctypes import byref, c_uint64, sizeof
from math import prod

from . import _library as c
from . import launcher
from ._library import check, lib
from .arrays import choose
from .dlpack import BYTES
from .errors import ArgumentError, error_of
from .handles import LoaderHandle, new
from .opened_run import OpenedRun
from .reader import TOKEN_FIELDS, Reader, exclusive, field_bits, parse_fields, parse_values, values_of

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Iterator, Sequence, SupportsIndex, overload

    import torch.utils.data

    from .arrays import Maker
    from .hints import AnyArray, DType, Fields, Framework

    Row = dict[str, AnyArray]

    class Rows(Reader, torch.utils.data.Dataset[Row]):
        """A RunDataset is what torch calls a map-style Dataset, although it does not need torch."""
else:
    Row, Rows = dict, Reader


class Columns(Row):
    """The fields of several rows by name, each an array of shape [rows, seq_len]. columns.inputs is
    columns["inputs"]."""

    def __getattr__(self, name: str) -> AnyArray:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class _Rows:
    """What __getitems__ returns: to any collate function a list of rows, each a dict; to tokmap.collate whole
    columns."""
    __slots__ = ("columns", "count")

    def __init__(self, columns: Columns, count: int):
        self.columns, self.count = columns, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> Row:
        if not -self.count <= i < self.count:
            raise IndexError(i)
        return {name: array[i] for name, array in self.columns.items()}


def collate(rows: Sequence[Row] | _Rows) -> Columns:
    """The collate_fn for a RunDataset. Rows that one call of __getitems__ read are returned without a copy; other rows
    are stacked."""
    if isinstance(rows, _Rows):
        return rows.columns
    columns = Columns()
    for name, first in rows[0].items() if rows else ():
        values = [row[name] for row in rows]
        framework = type(first).__module__.split(".")[0]
        if framework == "torch":
            import torch
            columns[name] = torch.stack(values)
        elif framework == "numpy":
            import numpy
            columns[name] = numpy.stack(values)
        else:
            columns[name] = values
    return columns


class RunDataset(Rows):
    """The run's delivered rows by index, in the order in which a loader delivers them. The rows of a step are
    consecutive: index = base(step) + row, where base is the number of rows in all delivered steps before. A dataset
    with world > 1 holds only the rank's rows of each step, and counts only those. Run.dataset() makes one:

        ds = run.dataset(fields="inputs targets", dtype=torch.int64)
        torch.utils.data.DataLoader(ds, batch_size=64, collate_fn=tokmap.collate, num_workers=4)

    ds[i] is a dict with the fields of one row, and ds[0:4] the Columns of four rows. ds.__getitems__(indices), which
    DataLoader calls, reads many rows at once.

    rank, world    which part of every global batch the dataset holds; 0 <= rank < world. world=1: all rows, which a
                   DistributedSampler can divide. In one of several processes (under torchrun, for example) one of the
                   two has to be chosen; otherwise the dataset holds all rows
    fields         any of "inputs targets labels position_ids document_ids loss_mask", in a text or a sequence
    dtype          int32 or int64, as a name or as a dtype of torch or NumPy
    framework      "torch", "numpy", or "dlpack"; by default that of dtype, otherwise torch if the program has imported
                   it, NumPy if not
    mask_targets   True: a target that does not count, as one in another document than its input, is tokmap.IGNORE
                   (-100). With inputs alone: the program knows which of them count
    trust_files      True: ids are not compared with the vocabulary
    values         names of values beside the tokens, in a text or a sequence: ds[i]["teacher"] is an array
                   [seq_len, ...], as b.values["teacher"][i] of a loader is

    Pickling stores the run's description, in less than 4 KiB; a worker process opens the files again. Any thread may
    use the dataset, and so may a child after fork().
    """
    _ROWS = 64  # read in one call of the library
    _name = "dataset"

    def __init__(self, run: OpenedRun, *, rank: int | None = None, world: int | None = None,
                 fields: Fields = "inputs targets", dtype: DType | None = None,
                 framework: Framework | None = None, mask_targets: bool = False, trust_files: bool = False,
                 values: str | Sequence[str] | None = None) -> None:
        super().__init__(run)
        part, batch = launcher.of_dataset(rank, world), run.info.batch
        for phase in run._shapes():
            if phase.batch != batch or phase.seq_len != run.info.seq_len:
                raise error_of("ERROR_UNSUPPORTED",
                               f"step {phase.first_step} of the run changes the batch or the sequence length, "
                               f"so its rows do not form one dataset: use run.loader()")
        self.rank, self.world = part.rank, part.world
        if not self.rank < self.world <= batch:
            raise error_of("ERROR_RANGE",
                           f"rank is {self.rank} and world is {self.world}, but the run has {batch} rows a step, and "
                           f"0 <= rank < world <= {batch} must hold")
        # Of each step the dataset holds _part rows, from the row _first.
        self._first = self.rank * batch // self.world
        self._part = (self.rank + 1) * batch // self.world - self._first
        self.fields = parse_fields(fields)
        for name in ("cu_seqlens", "cu_seqlens_slice", "rows", "targets_ahead", "source_ids"):
            if name in self.fields:
                raise ArgumentError(f"fields contains {name}, which a dataset of rows does not have: use any of "
                                    f"{', '.join(TOKEN_FIELDS)}")
        self._arrays, self._code, _ = choose(framework, dtype, None)
        names = parse_values(values)
        for name in names:
            if name in c.FIELDS:
                raise ArgumentError(f"values contains {name!r}, which is also the name of a field of a row")
        self._arguments = {"rank": self.rank, "world": self.world, "fields": self.fields, "dtype": self._code,
                           "framework": self._arrays.name, "mask_targets": bool(mask_targets),
                           "trust_files": bool(trust_files), "values": names}
        self._starts, self._spans = _delivered_spans(run, self._part)
        self._made: tuple[int, list[tuple[str, str, Maker]]] = -1, []
        self._open_reader()

    def _open_reader(self) -> None:
        """Opens the library's loader that reads rows by name. It has no thread, so it works in a child after fork()."""
        run = self.run._open()
        info, handle, error = self.run.info, new(LoaderHandle, run), c.Error()
        options = c.LoaderOptions(size=sizeof(c.LoaderOptions), world=1, context_world=1,
                                  rows=min(self._ROWS, info.batch), fields=field_bits(self.fields),
                                  trust_files=self._arguments["trust_files"],
                                  mask_targets=self._arguments["mask_targets"],
                                  values=" ".join(self._arguments["values"]).encode() or None)
        check(lib.tokmap_loader_open(byref(handle), run, byref(options), byref(error)), error)
        self._rows_at_once: int = lib.tokmap_loader_rows(handle)
        self._step, self._row = (c_uint64 * self._rows_at_once)(), (c_uint64 * self._rows_at_once)()
        self._out, self._error = c.Out(sizeof(c.Out), c.I64 if self._code == "int64" else c.I32), error
        self._batch = c.Batch(sizeof(c.Batch))
        self._pointers = [byref(each) for each in (self._step, self._row, self._out, self._batch, self._error)]
        self._columns = [(name, name, (), self._code) for name in self.fields]
        arrays = values_of(handle, self._arguments["values"])
        self._columns += [(f"values{k}", *array) for k, array in enumerate(arrays)]
        self._row_bytes = {member: BYTES[code] * prod(shape) * info.seq_len for member, _, shape, code in self._columns}
        self._handle = handle
        self.run._loaders.add(self)

    def __len__(self) -> int:
        if self.run.info.delivered is None:
            raise TypeError("the run has no end, so its dataset has no length: set steps or passes in the run")
        return self._starts[-1]

    def index(self, step: int, row: int = 0) -> int:
        """The index of a row of the global batch: base(step) + row, if the dataset holds all rows."""
        if not self.run.delivers(step) or not 0 <= row < self.run.rows(step):
            raise error_of("ERROR_RANGE", f"the run does not deliver row {row} of step {step}")
        if not 0 <= row - self._first < self._part:
            raise error_of("ERROR_RANGE",
                           f"row {row} of a step belongs to another rank: rank {self.rank} of {self.world} has rows "
                           f"{self._first} to {self._first + self._part - 1}")
        span = bisect_right(self._spans, (step, 2 ** 64)) - 1
        return self._starts[span] + (step - self._spans[span][0]) * self._part + row - self._first

    def place(self, index: SupportsIndex) -> tuple[int, int]:
        """The step and the row at an index; the inverse of index()."""
        rows = 2 ** 63 if self.run.info.delivered is None else self._starts[-1]
        position = c.position(index, rows, "row", "the dataset")
        span = 0 if len(self._spans) == 1 else bisect_right(self._starts, position) - 1
        step, row = divmod(position - self._starts[span], self._part)
        return self._spans[span][0] + step, self._first + row

    if TYPE_CHECKING:
        @overload
        def __getitem__(self, index: SupportsIndex) -> Row: ...

        @overload
        def __getitem__(self, index: slice) -> Columns: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Row | Columns:
        """The fields of a row; for a slice, the columns of its rows."""
        if isinstance(index, slice):
            end = 2 ** 63 if self.run.info.delivered is None else self._starts[-1]
            if self.run.info.delivered is None and (index.stop is None or index.stop < 0 or (index.start or 0) < 0):
                raise error_of("ERROR_RANGE",
                               f"{index} has no end, because the run has none: pass both ends, or set steps or "
                               f"passes in the run")
            return self.__getitems__(range(*index.indices(end))).columns
        return self.__getitems__([index])[0]

    def __iter__(self) -> Iterator[Row]:
        end = 2 ** 63 if self.run.info.delivered is None else self._starts[-1]
        for first in range(0, end, self._rows_at_once):
            rows = self.__getitems__(range(first, min(first + self._rows_at_once, end)))
            for i in range(len(rows)):
                yield rows[i]

    def __getitems__(self, indices: Sequence[SupportsIndex]) -> _Rows:
        """The rows at many indices, read in as few calls of the library as possible."""
        count, place = len(indices), self.place
        # Most datasets hold all rows of steps from 0 on, and place() is then a division.
        divides = self.world == 1 and len(self._spans) == 1 and self._spans[0][0] == 0
        try:
            numbers = list(map(operator.index, indices))
        except TypeError:
            numbers = []  # place() says which index is not a number
        if divides and numbers and min(numbers) >= 0 and max(numbers) < self._starts[-1]:
            batch = self.run.info.batch
            places = [divmod(number, batch) for number in numbers]
        else:
            places = [place(index) for index in indices]
        columns = Columns()
        pointers = []
        for member, name, make in self._makers(count):
            columns[name], address = make()
            pointers.append((member, address))
        self._read(places, pointers)
        return _Rows(columns, count)

    @exclusive
    def _read(self, places: list[tuple[int, int]], pointers: Sequence[tuple[str, int]]) -> None:
        handle, (steps, rows, out, batch, error) = self._open(), self._pointers
        for first in range(0, len(places), self._rows_at_once):
            part = places[first:first + self._rows_at_once]
            self._step[:len(part)] = [step for step, _ in part]
            self._row[:len(part)] = [row for _, row in part]
            for name, pointer in pointers:
                setattr(self._out, name, pointer + first * self._row_bytes[name])
            check(lib.tokmap_loader_read(handle, steps, rows, len(part), out, batch, error), self._error)

    def _makers(self, count: int) -> list[tuple[str, str, Maker]]:
        """The library's member and the name of each column, and a function that makes an array of `count` rows. The
        last ones are kept, since batches usually have one size."""
        made = self._made  # read once: another thread may store its own meanwhile
        if made[0] != count:
            seq_len = self.run.info.seq_len
            made = self._made = count, [(member, name, self._arrays.maker((count, seq_len, *shape), code))
                                        for member, name, shape, code in self._columns]
        return made[1]

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (self.run, self._arguments))

    def __repr__(self) -> str:
        rows = "rows without end" if self.run.info.delivered is None else c.counted(len(self), "row")
        part = f", rank {self.rank} of {self.world}" if self.world > 1 else ""
        tokens = c.counted(self.run.info.seq_len, "token")
        return (f"<tokmap.RunDataset of {self.run.name!r}: {rows} of {tokens}{part}, "
                f"{', '.join(self.fields)}>")


def _delivered_spans(run: OpenedRun, rows: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Where the delivered steps are, of which a dataset holds `rows` rows each. spans[i] is a range (first step, end
    step) without skipped steps, and starts[i] is the index of its first row; the last element of starts is the number
    of all rows.

    The tokens that the cursor of a step counts reveal how many steps before it are delivered. Bisection therefore finds
    each end of a skipped range with as many cursors as a step number has bits."""
    info = run.info
    end = info.steps if info.steps is not None else (2 ** 63 - 1) // info.batch
    if info.delivered == info.steps and info.steps is not None:
        return [0, end * rows], [(0, end)]
    spans: list[tuple[int, int]] = []
    step_tokens = info.batch * info.seq_len

    def delivered_before(step: int) -> int:
        found, error = c.Cursor(), c.Error()
        check(lib.tokmap_run_cursor(run._open(), step, byref(found), byref(error)), error)
        if found.tokens == c.FOREVER:
            raise error_of("ERROR_RANGE",
                           f"before step {step} the run delivers more tokens than a dataset can count: lower steps, "
                           f"or remove the skipped steps from the run")
        return int(found.tokens // step_tokens)

    def bisect(first: int, last: int, before: int, after: int) -> None:
        if before == after:
            return
        if after - before == last - first:
            if spans and spans[-1][1] == first:
                spans[-1] = (spans[-1][0], last)
            else:
                spans.append((first, last))
            return
        middle = (first + last) // 2
        between = delivered_before(middle)
        bisect(first, middle, before, between)
        bisect(middle, last, between, after)

    if info.steps is None:
        # A cursor counts fewer than 2^64 tokens; no skipped range extends that far.
        end = min(end, (2 ** 64 - 2) // step_tokens)
    bisect(0, end, 0, delivered_before(end))
    starts = [0]
    for first, last in spans:
        starts.append(starts[-1] + (last - first) * rows)
    return starts, spans or [(0, 0)]


def _rebuild(run: OpenedRun, arguments: dict[str, Any]) -> RunDataset:
    return RunDataset(run, **arguments)
