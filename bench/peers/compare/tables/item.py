# SPDX-License-Identifier: MIT
"""One item: the time of a single window, warm and cold, and a verdict on a sentence that articles repeat, "a memmap
slice takes less than 0.1 ms".

A slice of an np.memmap is a view: it reads nothing. The read happens when the tokens are used, so the verdict is
about a slice and a copy of its tokens. The two rows are apart so that a reader sees what the sentence measured.

Cold: the file is dropped from the page cache, then each timed window is read for the first time. The share of the file
that the system kept in memory all the same is printed; if more than a tenth stayed, there is no cold row.
"""
import random
import time

import in_torch
import measure as common
import torch_loop as loop

NAME = "item"
CLAIM_NS = 100_000


class Kind:
    """One way to read a window. open() makes the function that is timed, close() lets the file go."""

    def __init__(self, name, about, tokens):
        self.name, self.about, self.tokens = name, about, tokens

    def close(self):
        """Unmaps the file, because pages that a process has mapped stay in the page cache."""


class Slice(Kind):
    def open(self):
        array, length = self.tokens.array(), self.tokens.seq_len
        return lambda i: array[i * length:i * length + length + 1]


class Copy(Kind):
    def open(self):
        import numpy
        array, length = self.tokens.array(), self.tokens.seq_len
        return lambda i: array[i * length:i * length + length + 1].astype(numpy.int64)


class Item(Kind):
    def open(self):
        return loop.Windows(self.tokens).__getitem__


class OfRun(Kind):
    """A row of tokmap's map-style dataset, by its index in the order of the run: sequential, so that index and window
    are equal."""
    run = dataset = None

    def open(self):
        tokmap, torch = loop.needed("tokmap"), loop.needed("torch")
        data = self.tokens.name or f"raw:{self.tokens.path},width={self.tokens.width}"
        self.run = tokmap.Run(data=data, seq_len=self.tokens.seq_len, batch=1, order="sequential", passes=1)
        self.dataset = self.run.dataset(dtype=torch.int64)
        return self.dataset.__getitem__

    def close(self):
        for each in (self.dataset, self.run):
            if each is not None:
                each.close()
        self.run = self.dataset = None


def times(read, numbers):
    """The ns that each call took."""
    clock, found = time.perf_counter_ns, []
    for i in numbers:
        before = clock()
        read(i)
        found.append(clock() - before)
    return found


def same(kind, tokens, numbers):
    """Compares windows with the file. Returns (verdict, text)."""
    import numpy
    read, length, array = kind.open(), tokens.seq_len, tokens.array()
    try:
        for i in numbers:
            found = read(i)
            if isinstance(found, dict):
                found = numpy.append(found["inputs"].numpy(), found["targets"][-1:].numpy())
            if not numpy.array_equal(numpy.asarray(found), array[i * length:i * length + length + 1]):
                return "no", f"window {i} differs from the file"
    finally:
        kind.close()
    return "yes", f"{len(numbers)} windows compared with the file"


def print_times(report, name, temperature, found):
    """found: the ns of each turn's calls."""
    each = [common.percentiles(one) for one in found]
    report.row(NAME, name, f"{temperature}_mean_us", "us", "less", [sum(one) / len(one) / 1e3 for one in found])
    for what in ("p50", "p99", "max"):
        report.row(NAME, name, f"{temperature}_{what}_us", "us", "less", [one[what] for one in each])


def verdict(warm, cold, claim_ns=CLAIM_NS):
    """The verdict on the sentence, from the times of a slice with its copy: a list of ns, warm and cold (or None)."""
    said = []
    for temperature, found in (("warm", warm), ("cold", cold)):
        if not found:
            said.append(f"{temperature}: not measured")
            continue
        below, at = sum(ns < claim_ns for ns in found) / len(found), common.percentiles(found)
        holds = "true" if 1e3 * at["p99"] < claim_ns else "true only in the median" if below >= 0.5 else "false"
        said.append(f"{temperature}: {holds} ({100 * below:.3g}% of the calls are below; p50 {at['p50']:.3g}, p99 "
                    f"{at['p99']:.3g}, mean {sum(found) / len(found) / 1e3:.3g} us)")
    return (f"\"A memmap slice takes less than {claim_ns / 1e6:g} ms\", with the copy that reads it: " +
            "; ".join(said) + ".")


def beside(ours, torchs):
    """A sentence about one item of tokmap and of torch, from what measure_kinds() found of them."""
    said = []
    for temperature in ("warm", "cold"):
        if ours[temperature] and torchs[temperature]:
            means = [[loop.mean(one) for one in each[temperature]] for each in (ours, torchs)]
            said.append(f"{temperature} {loop.compared(*means, 'the mean time')}")
    return f" One item of tokmap beside torch's __getitem__: {', '.join(said)}." if said else ""


def measure_kinds(report, kinds, tokens, options):
    """Returns {kind's name: {"warm": [ns of each turn], "cold": [...]}}."""
    repeats, windows, draws = loop.repeats_of(options), tokens.windows(), random.Random(3)
    warm_calls = int(loop.setting(options, "item_calls", 4000))
    cold_calls = min(int(loop.setting(options, "item_cold_calls", 200)), windows)
    found = {kind.name: {"warm": [], "cold": []} for kind in kinds}
    common.warm([tokens.path])
    for done, (_, kind) in enumerate(common.turns(kinds, repeats)):
        report.progress(done, 2 * repeats * len(kinds), f"{NAME}: warm, {kind.name}")
        read = kind.open()
        numbers = [draws.randrange(windows) for _ in range(warm_calls)]
        times(read, numbers)  # the warm-up: the same windows
        found[kind.name]["warm"].append(times(read, numbers))
        del read
        kind.close()
    kept = 0.0
    for done, (_, kind) in enumerate(common.turns(kinds, repeats)):
        report.progress(repeats * len(kinds) + done, 2 * repeats * len(kinds), f"{NAME}: cold, {kind.name}")
        kept = max(kept, common.evict([tokens.path]))
        if kept > 0.1:
            break
        read = kind.open()
        found[kind.name]["cold"].append(times(read, draws.sample(range(windows), cold_calls)))
        del read
        kind.close()
    if kept > 0.1:
        for each in found.values():
            each["cold"] = []
        report.note(f"There is no cold row: the system kept {100 * kept:.0f}% of the file in memory.")
    common.warm([tokens.path])
    report.note(f"Warm-up: the same {warm_calls:,} random windows once before they are timed. Cold: {cold_calls:,} "
                f"windows, each read for the first time after the file was dropped from the page cache; the system's "
                f"readahead makes some of them warm. {repeats} interleaved turns, one call at a time.")
    return found


def measure(report, tokens, options):
    in_torch.run_table(report, NAME, tokens, options)


def run(report, tokens, options):
    loop.torch_for_tables()
    if not tokens.windows():
        raise ValueError(f"the file has {tokens.count} tokens, which make no window of {tokens.seq_len}")
    kinds, work = [Slice("memmap slice", "array[a:b]: a view, which reads no token", tokens),
                   Copy("memmap slice and copy", "array[a:b].astype(int64)", tokens),
                   Item("torch __getitem__", "the slice, its copy, and a tensor", tokens),
                   OfRun("tokmap dataset[i]", "run.dataset(dtype=int64), order sequential", tokens)], []
    for kind in kinds:
        try:
            report.equal(NAME, kind.name, *same(kind, tokens, range(min(8, tokens.windows()))))
            report.about(kind.name, kind.about)
            work.append(kind)
        except loop.Absent as problem:
            report.absent(NAME, kind.name, problem)
    found = measure_kinds(report, work, tokens, options)
    for name, by_temperature in found.items():
        for temperature, turns in by_temperature.items():
            if turns:
                print_times(report, name, temperature, turns)
    report.note(loop.versions() + ". \"Memmap slice\" alone measures no reading, cold or warm.")
    copy = found["memmap slice and copy"]
    text = verdict(sum(copy["warm"], []), sum(copy["cold"], []))
    if "tokmap dataset[i]" in found:
        text += beside(found["tokmap dataset[i]"], found["torch __getitem__"])
    report.answer(text)
