# SPDX-License-Identifier: MIT
"""The training loop that some tables share, and what it reads from: torch's DataLoader over a memory map, and tokmap.

Each of these tables answers one question about one loop:

    for batch in loader:
        step(batch)

Dataset and step are the same in every row, so that a row differs from the row before in only what its name says. The
dataset is what people write: windows of a flat token file, mapped with np.memmap, widened to int64. The step reads
every element of the batch once. On a GPU it copies the batch there first. It trains no model, because the tables are
about what the loader costs; a model would hide that cost in some rows and compete for the processors in others.

A pass is two epochs, because worker processes are started at the beginning of an epoch. Every row runs for about the
same time, so the rows differ in their number of batches, and two figures are made of a pass:

    without start   all batches but the first of each epoch, divided by their time
    with start      1,000 batches an epoch: 1,000 divided by the time to the first batch (from before the loader is
                    made, or the epoch is asked for), plus 999 batches at the rate without start, plus the time in
                    which workers end; the mean of both epochs

torch, NumPy, and tokmap are imported when they are needed, so that a row can say which of them is missing.
"""
import importlib
import itertools
import os
import random
import statistics
import time
import warnings

import measure
from report import Absent

PACKAGES = ("numpy", "torch")  # a table with PACKAGES runs in the Python that has them


def needed(name):
    """Imports a module. Raises Absent with the reason, for a row that says why it is absent."""
    try:
        return importlib.import_module(name)
    except Exception as problem:  # a broken installation fails in more ways than ImportError
        raise Absent(f"{name} cannot be imported: {one_line(problem)}") from None


def one_line(problem):
    return " ".join(str(problem).split())[:300] or type(problem).__name__


def failure(problem):
    """An exception of a row, as its reason."""
    return f"{type(problem).__name__}: {one_line(problem)}"


def torch_for_tables():
    """torch with one thread of its own, as in the workers of a DataLoader, whose number is what some tables vary."""
    torch = needed("torch")
    needed("numpy")
    torch.set_num_threads(1)
    # torch warns of more workers than processors, which is what a table of worker counts is about.
    warnings.filterwarnings("ignore", message="This DataLoader will create")
    return torch


def setting(options, name, default):
    """An option that the caller may leave out, or give as 0."""
    return getattr(options, name, None) or default


class Windows:
    """A map-style dataset: item i is the tokens [i * seq_len, i * seq_len + seq_len + 1), as one row of int64. Inputs
    and targets are views of the batch (pair()): half as much is collated and sent as with two tensors an item.

    The file is mapped when the first window is read. A worker that is spawned, not forked, receives the path and not
    the tokens: pickling an np.memmap copies the whole file.
    """

    def __init__(self, tokens):
        self.path, self.width, self.seq_len = tokens.path, tokens.width, tokens.seq_len
        self.windows = tokens.windows()
        self.tokens = None

    def __getstate__(self):
        return {**self.__dict__, "tokens": None}

    def opened(self):
        if self.tokens is None:
            import numpy
            self.tokens = numpy.memmap(self.path, numpy.uint16 if self.width == 2 else numpy.uint32, "r")
        return self.tokens

    def __len__(self):
        return self.windows

    def __getitem__(self, i):
        import numpy
        import torch
        first = i * self.seq_len
        return torch.from_numpy(self.opened()[first:first + self.seq_len + 1].astype(numpy.int64))


class BatchedWindows(Windows):
    """The same with __getitems__(), which torch calls with the numbers of a whole batch: one array for all rows, no
    call and no tensor for each, and no collating."""

    def __getitems__(self, numbers):
        import numpy
        import torch
        tokens, length = self.opened(), self.seq_len
        rows = numpy.empty((len(numbers), length + 1), numpy.int64)
        for k, i in enumerate(numbers):
            rows[k] = tokens[i * length:i * length + length + 1]
        return torch.from_numpy(rows)


def unchanged(batch):
    """The collate_fn for a dataset that returns whole batches."""
    return batch


def window_order(windows, count, seed=1):
    """`count` window numbers in a seeded random order, each used once before any is used again."""
    draws, numbers = random.Random(seed), []
    while len(numbers) < count:
        epoch = list(range(windows))
        draws.shuffle(epoch)
        numbers += epoch[:count - len(numbers)]
    return numbers


class Variant:
    """A row of a table: a name, and open(numbers) → an iterable that delivers the given windows in batches.

    close() is called after a pass. An iterable whose order is its own ignores the numbers, and sets `own_order`.
    """
    own_order = False

    def __init__(self, name, options=""):
        self.name, self.options = name, options

    def open(self, numbers):
        raise NotImplementedError

    def close(self):
        """Ends processes and threads, which the processor time of a pass includes."""


class TorchVariant(Variant):
    """torch's DataLoader. `settings` are passed to it, and `batched` chooses BatchedWindows."""

    def __init__(self, name, tokens, batched=False, dataset=None, **settings):
        self.settings, self.tokens, self.batched, self.dataset, self.made = settings, tokens, batched, dataset, None
        said = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        super().__init__(name, f"{'__getitems__ and no collating' if batched else '__getitem__'}"
                               f"{', ' if said else ''}{said}")

    def open(self, numbers):
        kind = needed("torch.utils.data").DataLoader
        dataset = self.dataset or (BatchedWindows if self.batched else Windows)(self.tokens)
        collate = {"collate_fn": unchanged} if self.batched else {}
        self.made = kind(dataset, batch_size=self.tokens.rows, sampler=numbers, drop_last=True, **collate,
                         **self.settings)
        return self.made

    def close(self):
        made, self.made = self.made, None
        end = getattr(getattr(made, "_iterator", None), "_shutdown_workers", None)
        if end is not None:
            end()  # persistent workers, and those of an epoch that was not read to its end


class StreamVariant(TorchVariant):
    """torch's DataLoader with a prefetcher: while the step uses a batch, the next one is copied on a stream of its
    own."""

    def __init__(self, name, tokens, device="cuda", **settings):
        super().__init__(name, tokens, **settings)
        self.device = device
        self.options += ", copied on a stream of its own"

    def open(self, numbers):
        super().open(numbers)
        return self

    def __iter__(self):
        torch = needed("torch")
        side, batches = torch.cuda.Stream(), iter(self.made)

        def copy():
            batch = next(batches, None)
            if batch is None:
                return None
            with torch.cuda.stream(side):
                return batch.to(self.device, non_blocking=True)

        following = copy()
        while following is not None:
            current = torch.cuda.current_stream()
            current.wait_stream(side)
            batch = following
            batch.record_stream(current)  # its memory is not used again before the step has ended
            following = copy()
            yield batch


class TokmapVariant(Variant):
    """tokmap's loader, with a thread that works ahead. Its order is that of the run, so it takes no list of windows."""
    own_order = True

    def __init__(self, name, tokens, device="cpu"):
        super().__init__(name, f"run.loader(fields=\"inputs targets\", dtype=int64, device={device}), order shuffle")
        self.tokens, self.device = tokens, device
        self.data = tokens.name or f"raw:{tokens.path},width={tokens.width}"
        self.made = self.run = None

    def open(self, numbers):
        tokmap, torch = needed("tokmap"), needed("torch")
        self.run = tokmap.Run(data=self.data, seq_len=self.tokens.seq_len, batch=self.tokens.rows, seed=1,
                              order="shuffle")
        self.made = self.run.loader(rank=0, world=1, fields="inputs targets", dtype=torch.int64, device=self.device)
        return self

    def __iter__(self):
        return iter(self.made)

    def close(self):
        for each in (self.made, self.run):
            if each is not None:
                each.close()
        self.made = self.run = None


def pair(batch):
    """Inputs and targets of what a loader delivered."""
    if hasattr(batch, "inputs"):
        return batch.inputs, batch.targets
    rows = batch[0] if isinstance(batch, (list, tuple)) else batch
    return rows[:, :-1], rows[:, 1:]


def step_on(device="cpu", non_blocking=False):
    """The step of the loop: reads every input and target. Returns a function of the batch."""
    def step(batch):
        inputs, targets = pair(on(batch, device, non_blocking))
        return int(inputs.sum() + targets.sum())  # waits for a GPU
    return step


def on(batch, device, non_blocking=True):
    """The batch on a device: itself, if it is there."""
    return batch if device == "cpu" or hasattr(batch, "inputs") else batch.to(device, non_blocking=non_blocking)


#: The batches of the epoch that "with start" speaks of, and the epochs of a pass.
EPOCH, EPOCHS = 1000, 2


class Pass:
    """What one pass took. Times are in seconds. first[e] is the wait for the first batch of epoch e, and last[e] the
    time after its last step, in which worker processes end."""

    def __init__(self):
        self.batches = 0
        self.after_first = self.cpu = self.wall = self.opened = 0.0
        self.first, self.last = [], []

    @property
    def rate(self):
        return (self.batches - len(self.first)) / self.after_first

    @property
    def rate_with_start(self):
        around = statistics.fmean(one + other for one, other in zip(self.first, self.last))
        return EPOCH / (around + (EPOCH - 1) / self.rate)


def run_pass(variant, numbers, rows, step, epochs=EPOCHS):
    """Runs the loop over `epochs` epochs, each of len(numbers) // rows batches. The loader is made and closed
    inside."""
    found, batches, clock = Pass(), len(numbers) // rows, time.perf_counter
    if batches < 2:
        raise ValueError(f"an epoch has {batches} batches: at least 2 are needed to leave out the first one")
    cpu, began = measure.own_cpu_seconds(), clock()
    try:
        loader = variant.open(numbers)
        found.opened = clock() - began
        for epoch in range(epochs):
            asked, number = clock() if epoch else began, -1
            for number, batch in enumerate(itertools.islice(loader, batches)):
                if not number:
                    first = clock()
                step(batch)
                if number == batches - 1:
                    ended = clock()  # the loop ends its iterator, and so its workers, after this
            if number != batches - 1:
                raise RuntimeError(f"{variant.name} delivered {number + 1} of {batches} batches in epoch {epoch}")
            found.first.append(first - asked)
            found.last.append(clock() - ended)
            found.after_first += ended - first
            found.batches += batches
    finally:
        variant.close()
    found.wall = clock() - began
    found.cpu = measure.own_cpu_seconds() - cpu
    return found


#: Batches of the pass before the first turn, and the most and the least batches of an epoch.
WARM_UP, MOST, LEAST = 16, 20000, 8


def warm_up(variant, tokens, seconds, run):
    """Runs a short pass, and returns how many batches an epoch has so that a pass takes about `seconds`."""
    found = run(variant, window_order(tokens.windows(), WARM_UP * tokens.rows), tokens.rows, epochs=1)
    return max(LEAST, min(MOST, int(seconds / EPOCHS * found.rate)))


def check(variant, tokens, batches=8):
    """Compares the first batches with the file itself, element by element. Returns (verdict, text) for Report.equal().

    A variant that takes numbers must deliver exactly these windows in this order. tokmap's order is its own: each of
    its rows is compared with the tokens at the place that the batch names.
    """
    import numpy
    rows, length, array = tokens.rows, tokens.seq_len, tokens.array()
    numbers = window_order(tokens.windows(), batches * rows, seed=2)
    done = 0
    try:
        for batch in itertools.islice(variant.open(numbers), batches):
            inputs, targets = (numpy.asarray(each.cpu()) for each in pair(batch))
            if variant.own_order:
                firsts = [place.first_token for place in batch.places]
            else:
                firsts = [i * length for i in numbers[done:done + rows]]
            wanted = numpy.stack([array[first:first + length + 1] for first in firsts]).astype(numpy.int64)
            if not (numpy.array_equal(inputs, wanted[:, :-1]) and numpy.array_equal(targets, wanted[:, 1:])):
                return "no", f"batch {done // rows} differs from the file at its windows"
            done += rows
    finally:
        variant.close()
    if done != batches * rows:
        return "no", f"{done} of {batches * rows} rows were delivered"
    return "yes", f"{done} rows compared with the file, " + (
        "each at the place that tokmap names" if variant.own_order else "in the order of the list of windows")


def compared(after, before, word="that rate"):
    """A clause about two rows that were measured in the same turns: "2.1 (1.9 to 2.3) times the rate", or that they
    cannot be distinguished. The interval has 99% confidence."""
    ratio = measure.Ratio(after, before)
    if ratio.distinguishable:
        return f"{ratio} times {word}"
    return f"not distinguishable from {word} (ratio {ratio})"


def ratios(after, before):
    """The ratio of two rows in each turn."""
    return [one / other for one, other in zip(after, before)]


def turn_seconds(options, turns, whole=30.0):
    """How long each turn may take: what --seconds says, but all together about `whole` seconds."""
    return min(setting(options, "seconds", 1.0), whole / max(1, turns))


def repeats_of(options):
    return int(setting(options, "repeats", 7))


def run_variants(report, table, variants, tokens, options, run):
    """Checks, warms up, and measures the variants in turns. Prints what is known of each and returns {name: [passes]}
    of the rows that work. run(variant, numbers, rows, epochs): run_pass() with the step of the row."""
    repeats, batches = repeats_of(options), {}
    seconds = turn_seconds(options, repeats * len(variants))
    for done, variant in enumerate(variants):
        report.progress(done, (1 + repeats) * len(variants), f"{table}: checking {variant.name}")
        try:
            equal = check(variant, variant.tokens)
            batches[variant.name] = warm_up(variant, tokens, seconds, run)
        except Exception as problem:
            report.absent(table, variant.name, str(problem) if isinstance(problem, Absent) else failure(problem))
            continue
        report.about(variant.name, variant.options)
        report.equal(table, variant.name, *equal)
    work = [variant for variant in variants if variant.name in batches]
    found = {variant.name: [] for variant in work}
    numbers = window_order(tokens.windows(), max(batches.values(), default=0) * tokens.rows)
    for done, (_, variant) in enumerate(measure.turns(work, repeats)):
        report.progress(len(variants) + done, (1 + repeats) * len(variants), f"{table}: {variant.name}")
        if variant.name not in found:
            continue
        try:
            found[variant.name].append(run(variant, numbers[:batches[variant.name] * tokens.rows], tokens.rows, EPOCHS))
        except Exception as problem:
            del found[variant.name]
            report.absent(table, variant.name, f"it failed while it was measured: {failure(problem)}")
    if found:
        least, most = min(batches.values()), max(batches.values())
        report.note(f"Warm-up: {WARM_UP} batches of every row. Then {repeats} interleaved passes a row, each "
                    f"of about {seconds:.2g} s: {EPOCHS} epochs of {least:,} to {most:,} batches of {tokens.rows} rows "
                    f"of {tokens.seq_len} tokens, int64. Every pass makes its loader and ends it.")
    return found


def versions():
    """The versions of what all tables use."""
    said = []
    for name in ("torch", "numpy", "tokmap"):
        try:
            said.append(f"{name} {needed(name).__version__}")
        except Absent:
            said.append(f"no {name}")
    return ", ".join(said)


def median(values):
    return statistics.median(values)


def sentence(clauses):
    """One sentence of several clauses."""
    text = "; ".join(clause for clause in clauses if clause)
    return text[:1].upper() + text[1:] + "."
