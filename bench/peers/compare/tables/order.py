# SPDX-License-Identifier: MIT
"""Tail latency with in_order=True and in_order=False: what it costs to wait for the batch whose turn it is.

A step of 2 ms, in which this process sleeps as it would while a GPU computes, gives workers time to work ahead. Two
more rows have one slow item in 256, 20 ms long, as storage that stalls has: it is what in_order=False is for. tokmap
has no slow row, because its reads are made by the library, where no item can be slowed down from outside.
"""
import array
import inspect
import itertools
import time

import in_torch
import measure as common
import torch_loop as loop

NAME = "order"
STEP_S = 0.002
SLOW_EVERY, SLOW_S = 256, 0.020


class Numbered(loop.Windows):
    """Windows with their numbers, so that their order can be seen, and with slow items."""

    def __init__(self, tokens, slow=0.0):
        super().__init__(tokens)
        self.slow = slow

    def __getitem__(self, i):
        if self.slow and i % SLOW_EVERY == 0:
            time.sleep(self.slow)
        return super().__getitem__(i), i


def variants(tokens, workers):
    DataLoader = loop.needed("torch.utils.data").DataLoader
    if "in_order" not in inspect.signature(DataLoader.__init__).parameters:
        raise loop.Absent("this torch has no in_order: version 2.6 was the first")
    return [loop.TorchVariant(f"in_order={in_order}{', slow items' if slow else ''}", tokens,
                              dataset=Numbered(tokens, slow), num_workers=workers, prefetch_factor=2, in_order=in_order)
            for slow in (0.0, SLOW_S) for in_order in (True, False)]


def moved(delivered, numbers, rows):
    """How many batches were delivered at another place than in the list. delivered: the first number of each batch."""
    return sum(one != numbers[k * rows] for k, one in enumerate(delivered))


def run_waits(variant, numbers, rows, step_s):
    """One pass. found.waits: the ns of each call of next() but the first; found.moved: batches in another place."""
    found, waits, delivered, clock = loop.Pass(), array.array("q"), [], time.perf_counter_ns
    read, cpu, began = loop.step_on(), common.own_cpu_seconds(), clock()
    try:
        batches = iter(variant.open(numbers))
        before = began
        for number in range(len(numbers) // rows):
            batch = next(batches)
            after = clock()
            if number:
                waits.append(after - before)
            else:
                found.first.append((after - before) / 1e9)
                first = after
            if not variant.own_order:
                delivered.append(int(batch[1][0]))
            read(batch)
            if step_s:
                time.sleep(step_s)
            before = clock()
        found.batches, found.after_first = number + 1, (before - first) / 1e9
        del batches
    finally:
        variant.close()
    found.cpu, found.wall = common.own_cpu_seconds() - cpu, (clock() - began) / 1e9
    found.waits, found.moved = waits, None if variant.own_order else moved(delivered, numbers, rows)
    return found


def answer(tails):
    """tails: {row: p99 of the turns, in us}."""
    said = []
    for kind in ("", ", slow items"):
        true, false = tails.get(f"in_order=True{kind}"), tails.get(f"in_order=False{kind}")
        if true and false:
            said.append(f"p99 of next() with in_order=False{' and' + kind[1:] if kind else ''} is "
                        f"{loop.compared(false, true, 'the p99 of in_order=True')}")
    if "tokmap" in tails and "in_order=True" in tails:
        said.append(f"tokmap, which keeps its order, has a p99 "
                    f"{loop.compared(tails['tokmap'], tails['in_order=True'], 'the p99 of in_order=True')}")
    return loop.sentence(said) if said else "No two rows could be measured, so there is nothing to compare."


def measure(report, tokens, options):
    in_torch.run_table(report, NAME, tokens, options)


def run(report, tokens, options):
    loop.torch_for_tables()
    workers, step_s = int(loop.setting(options, "workers", 2)), getattr(options, "step_s", STEP_S)
    rows = [loop.TokmapVariant("tokmap", tokens)]
    try:
        rows = variants(tokens, workers) + rows
    except loop.Absent as problem:
        report.absent(NAME, "in_order=False", problem)

    def one(variant, numbers, rows_of_batch, epochs=1, step=None):
        return run_waits(variant, numbers, rows_of_batch, step_s)

    found = loop.run_variants(report, NAME, rows, tokens, options, epochs=1, run=one,
                              checked=lambda variant: "in_order=False" not in variant.name,
                              least=int(loop.setting(options, "order_batches", 200)))
    tails = {}
    for name, passes in found.items():
        each = [common.percentiles(one.waits) for one in passes]
        tails[name] = [one["p99"] for one in each]
        for what in ("p50", "p99", "max"):
            report.row(NAME, name, f"next_{what}_us", "us", "less", [one[what] for one in each])
        report.row(NAME, name, "batches_per_s", "batches/s", "more", [one.rate for one in passes])
        if passes[0].moved is not None:
            report.row(NAME, name, "moved_batches", "batches", "less", [one.moved for one in passes])
    report.note(f"{loop.versions()}; {workers} workers, prefetch_factor=2. A step reads the batch and sleeps "
                f"{1e3 * step_s:g} ms. Slow items: 1 in {SLOW_EVERY} takes {1e3 * SLOW_S:g} ms more. moved_batches "
                f"were delivered at another place than in the list, so the number of a batch does not say what it "
                "held.")
    report.answer(answer(tails))
