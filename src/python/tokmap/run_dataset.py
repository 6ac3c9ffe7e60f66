"""A run's rows as a map-style dataset: for samplers and DataLoader workers that want indices."""
from __future__ import annotations

from bisect import bisect_right
from ctypes import byref, c_uint64, c_void_p, sizeof

from . import _library as c
from ._library import check, lib
from .arrays import choose
from .errors import ArgumentError, RangeError
from .loader import _MASKS, parse_fields
from .reader import Reader, alone
from .run import Run


class Columns(dict):
    """The fields of some rows by name, each an array [rows, seq_len]; columns.inputs is columns["inputs"]."""

    def __getattr__(self, name: str):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class _Rows:
    """What __getitems__ gives: a list of rows, each a dict, for any collate function; whole for tokmap.collate."""
    __slots__ = ("columns", "count")

    def __init__(self, columns: Columns, count: int):
        self.columns, self.count = columns, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> dict:
        if not -self.count <= i < self.count:
            raise IndexError(i)
        return {name: array[i] for name, array in self.columns.items()}


def collate(rows) -> Columns:
    """The collate_fn for a RunDataset: the rows that __getitems__ read at once, as they are; other rows, stacked."""
    if isinstance(rows, _Rows):
        return rows.columns
    if not rows:
        return Columns()
    made = Columns()
    for name, first in rows[0].items():
        values = [row[name] for row in rows]
        if type(first).__module__.split(".")[0] == "torch":
            import torch
            made[name] = torch.stack(values)
        elif type(first).__module__.split(".")[0] == "numpy":
            import numpy
            made[name] = numpy.stack(values)
        else:
            made[name] = values
    return made


class RunDataset(Reader):
    """The run's delivered rows by index, in the order in which a loader delivers them: the rows of a step lie together, and
    index = base(step) + row, base being the rows of all delivered steps before it. Made by Run.dataset():

        ds = run.dataset(fields="inputs targets", dtype=torch.int64)
        torch.utils.data.DataLoader(ds, batch_size=64, collate_fn=tokmap.collate, num_workers=4)

    ds[i] is a dict of one row's fields; ds.__getitems__(indices) reads many rows in one call, which DataLoader uses by
    itself. It pickles in less than 4 KiB, as the run's description, and opens again where it is unpickled or forked. Arrays
    are torch's if dtype or framework say so, else NumPy's if it is installed. Any thread may use it.
    """
    _ROWS = 64  # read in one call of the library
    _name = "dataset"

    def __init__(self, run: Run, *, fields="inputs targets", dtype=None, framework: str | None = None,
                 mask_targets: bool = False, unchecked: bool = False):
        super().__init__(run)
        self.fields = parse_fields(fields)
        for name in ("cu_seqlens", "rows"):
            if name in self.fields:
                raise ArgumentError(f"a dataset of rows has no {name}: {', '.join(_MASKS)} may be combined")
        self._arrays, self._code, _ = choose(framework, dtype, "cpu")
        self._options = {"fields": self.fields, "dtype": self._code, "framework": self._arrays.name,
                         "mask_targets": bool(mask_targets), "unchecked": bool(unchecked)}
        self._starts, self._spans = _spans(run)
        self._made = -1, None
        self._reader()

    def _reader(self) -> None:
        """The library's loader that reads rows by name. It has no thread, so it goes on in a child after fork()."""
        info, handle, error, mask = self.run.info, c_void_p(), c.Error(), 0
        for name in self.fields:
            mask |= c.FIELDS[name]
        options = c.LoaderOptions(size=sizeof(c.LoaderOptions), world=1, rows=min(self._ROWS, info.batch), fields=mask,
                                  unchecked=self._options["unchecked"], mask_targets=self._options["mask_targets"])
        check(lib.tokmap_loader_open(byref(handle), self.run._open(), byref(options), byref(error)), error)
        self._take(handle.value)
        self._most = lib.tokmap_loader_rows(self._handle)
        self._step, self._row = (c_uint64 * self._most)(), (c_uint64 * self._most)()
        self._out, self._error = c.Out(sizeof(c.Out), c.I64 if self._code == "int64" else c.I32), error
        self._batch = c.Batch(sizeof(c.Batch))
        self._at = [byref(one) for one in (self._step, self._row, self._out, self._batch, self._error)]
        self._row_bytes = info.seq_len * (8 if self._code == "int64" else 4)
        self.run._loaders.add(self)

    def __len__(self) -> int:
        if self.run.info.delivered is None:
            raise TypeError("the run has no end: give it steps or passes")
        return self._starts[-1]

    def index(self, step: int, row: int = 0) -> int:
        """base(step) + row: where a row lies in the dataset."""
        if not self.run.delivers(step) or not 0 <= row < self.run.rows(step):
            raise RangeError(f"row {row} of step {step} is not delivered by the run")
        span = bisect_right(self._spans, (step, 2 ** 64)) - 1
        return self._starts[span] + (step - self._spans[span][0]) * self.run.info.batch + row

    def place(self, index: int) -> tuple[int, int]:
        """The step and the row of an index."""
        if self.run.info.delivered is None:
            end = 2 ** 63
        else:
            end = self._starts[-1]
        found = index.__index__()
        if found < 0:
            found += end
        if not 0 <= found < end:
            raise IndexError(f"index {index} of a dataset of {end} rows")
        span = 0 if len(self._spans) == 1 else bisect_right(self._starts, found) - 1
        step, row = divmod(found - self._starts[span], self.run.info.batch)
        return self._spans[span][0] + step, row

    def __getitem__(self, index: int) -> dict:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices) -> _Rows:
        """The rows of many indices, read in one call."""
        count, place = len(indices), self.place
        if len(self._spans) == 1 and self.run.info.delivered is not None:
            end, batch, first = self._starts[-1], self.run.info.batch, self._spans[0][0]
            places = [divmod(i, batch) for i in indices]
            if count and (min(indices) < 0 or max(indices) >= end or first):
                places = [place(i) for i in indices]
        else:
            places = [place(i) for i in indices]
        columns = Columns()
        pointers = []
        for name in self.fields:
            array = columns[name] = self._maker(count)()
            pointers.append((name, self._arrays.pointer(array)))
        self._read(places, pointers)
        return _Rows(columns, count)

    @alone
    def _read(self, places: list, pointers: list) -> None:
        handle, (steps, rows, out, batch, error) = self._open(), self._at
        for first in range(0, len(places), self._most):
            part = places[first:first + self._most]
            self._step[:len(part)] = [step for step, _ in part]
            self._row[:len(part)] = [row for _, row in part]
            for name, pointer in pointers:
                setattr(self._out, name, pointer + first * self._row_bytes)
            check(lib.tokmap_loader_read(handle, steps, rows, len(part), out, batch, error), self._error)

    def _maker(self, count: int):
        """What makes the arrays of so many rows: one is kept, for the batches of a loader, which are of one size."""
        made = self._made  # read once: another thread may put its own there
        if made[0] != count:
            made = self._made = count, self._arrays.maker((count, self.run.info.seq_len), self._code)
        return made[1]

    def __reduce__(self):
        return (_again, (self.run, self._options))

    def __repr__(self) -> str:
        rows = "rows without end" if self.run.info.delivered is None else f"{len(self)} rows"
        return (f"<tokmap.RunDataset of {self.run.name!r}: {rows} of {self.run.info.seq_len} tokens, "
                f"{', '.join(self.fields)}>")


def _spans(run: Run) -> tuple[list, list]:
    """Where the delivered steps lie: starts[i] is the index of the first row of spans[i] = (first step, end step), with the
    number of all rows behind. What was skipped before a step is what its cursor does not count; halving finds each range of
    skipped steps in as many looks as a step number has bits."""
    info = run.info
    end = info.steps if info.steps is not None else (2 ** 63 - 1) // info.batch
    if info.delivered == info.steps and info.steps is not None:
        return [0, end * info.batch], [(0, end)]
    spans, unit = [], info.batch * info.seq_len

    def delivered(step: int) -> int:
        found, error = c.Cursor(), c.Error()
        check(lib.tokmap_run_cursor(run._open(), step, byref(found), byref(error)), error)
        return found.tokens // unit if found.tokens != c.FOREVER else None

    def look(first: int, last: int, before: int, after: int) -> None:
        if before == after:
            return
        if after - before == last - first:
            if spans and spans[-1][1] == first:
                spans[-1] = (spans[-1][0], last)
            else:
                spans.append((first, last))
            return
        middle = (first + last) // 2
        between = delivered(middle)
        look(first, middle, before, between)
        look(middle, last, between, after)

    if info.steps is None:
        # Tokens are counted up to 2^64 only; no list of skips reaches as far.
        end = min(end, (2 ** 64 - 2) // unit)
    look(0, end, 0, delivered(end))
    starts = [0]
    for first, last in spans:
        starts.append(starts[-1] + (last - first) * info.batch)
    return starts, spans or [(0, 0)]


def _again(run: Run, options: dict) -> RunDataset:
    return RunDataset(run, **options)
