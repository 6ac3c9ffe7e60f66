# SPDX-License-Identifier: MIT
"""The table `ab`: does the user's own data slow the training loop? Real data against synthetic of the same run.

One process holds two loaders of the run: of its data, and of the same run whose sources are `synthetic:`, with as many
tokens, documents of the same mean length, and ids of the same width. Both are asked for the same rows. A loop like that
of `tokmap-bench train` takes batches from them in turns of equal numbers of steps, real and synthetic, synthetic and
real: take a batch, then compute for --step-ms. The loader that is not asked has filled its ring and sleeps.

Two turns beside each other are a pair. The result is the mean difference of a step in these pairs, with an interval of
confidence of 99% by Student's distribution. If 0 is in the interval, the difference is not distinguishable, which the
answer says, with the smallest difference that the interval excludes: no difference was found is not that there is none.
"""
import math
import os
import statistics
import sys
import time

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

import driver
import measure as meter
import setup

NAME = "ab"
TURNS, SECONDS = 12, 1.0  # pairs of turns, and the length of one
ROWS = {"real": "real data", "synthetic": "synthetic data"}


def add_arguments(parser):
    parser.add_argument("--step-ms", type=float, default=24.5, help="computing time of a step")
    parser.add_argument("--wait", choices=("spin", "sleep"), default="spin", help="how a step spends it")
    parser.add_argument("--world", type=int, default=1, help="ranks of the run; the loop is that of rank 0")


class Difference:
    """The mean of paired differences, its interval of confidence of 99%, and whether that excludes 0."""

    def __init__(self, values, others):
        found = [a - b for a, b in zip(values, others)]
        if len(found) < 2:
            raise ValueError("an interval needs at least two pairs")
        self.mean = statistics.fmean(found)
        self.half = meter.student(len(found) - 1) * statistics.stdev(found) / math.sqrt(len(found))
        self.low, self.high = self.mean - self.half, self.mean + self.half
        self.distinguishable = self.low > 0 or self.high < 0


def verdict(difference, step_ms):
    """The answer, from the difference of a step in ms, real minus synthetic, and the step with synthetic data."""
    share = 100 * difference.mean / step_ms
    interval = f"{difference.low:.3g} to {difference.high:.3g} ms, 99%"
    if not difference.distinguishable:
        most = max(abs(difference.low), abs(difference.high))
        return (f"Real and synthetic data are not distinguishable: a step differs by {difference.mean:.3g} ms "
                f"({interval}), so what data loading costs is less than {most:.3g} ms, "
                f"{100 * most / step_ms:.2g}% of a step.")
    if difference.mean < 0:
        return (f"Real data is not slower: a step takes {-difference.mean:.3g} ms ({-share:.2g}%) less than with "
                f"synthetic data ({interval}).")
    return (f"Real data makes a step {difference.mean:.3g} ms ({share:.2g}%) longer than synthetic data ({interval}): "
            f"the data slows this loop.")


# ---- the loop, in a process of its own ----


def synthetic_text(text, sources):
    """The text of a run with synthetic sources and without an end. sources: those of the run, in the order of the
    lines. Returns it, and the text with the real sources and without an end."""
    made, real, left = [], [], list(sources)
    for line in text.splitlines():
        words = line.split()
        if words[:1] in (["steps"], ["passes"], ["skip"]):
            continue
        real.append(line)
        if words[:1] == ["source"]:
            line = f"source {words[1]} {synthetic_name(left.pop(0).dataset.info)}"
        made.append(line)
    return "\n".join(made) + "\n", "\n".join(real) + "\n"


def synthetic_name(info):
    """The synthetic dataset of the same shape."""
    most = 1 << (8 * info.width)
    vocabulary = min(info.vocabulary or most, most)
    mean = max(1, round(info.tokens / max(1, info.documents)))
    return f"synthetic:vocab={vocabulary},tokens={info.tokens},document={mean},width={info.width}"


class Loop:
    """Answers the requests of the parent: open, turn."""

    def answer(self, do, **request):
        return getattr(self, "do_" + do)(**request)

    def do_open(self, run, data, seq_len, rows, world, seed):
        import tokmap
        folder = os.path.dirname(os.path.abspath(run)) if run else None
        opened = tokmap.Run(run) if run else tokmap.Run(data=data, seq_len=seq_len, batch=rows * world, seed=seed)
        synthetic, real = synthetic_text(opened.text, opened.sources)
        framework = "dlpack"
        self.loaders, self.outputs = {}, {}
        for name, text in (("real", real), ("synthetic", synthetic)):
            loader = tokmap.Run(text=text, folder=folder).loader(rank=0, world=world, dtype="int64",
                                                                framework=framework)
            self.loaders[name], self.outputs[name] = loader, loader.out()
        planned = [source.name for source in opened.sources if source.plan]
        return {"tokens": next(iter(self.loaders.values())).rows * opened.info.seq_len, "planned": planned,
                "about": f"tokmap {tokmap.__version__}, its Python package, int64 inputs and targets, one producer "
                         f"thread, rank 0 of {world}, seq_len {opened.info.seq_len}, batch {opened.info.batch}"}

    def do_turn(self, name, steps, step_s, spin):
        """Seconds of so many steps, the sum of waits in next(), and the tokens that were taken."""
        loader, out, tokens, waited = self.loaders[name], self.outputs[name], 0, 0.0
        begun = time.perf_counter()
        for _ in range(steps):
            before = time.perf_counter()
            batch = loader.next(out=out)
            after = time.perf_counter()
            waited += after - before
            tokens += batch.count * batch.seq_len
            compute(step_s, spin, after)
        return {"seconds": time.perf_counter() - begun, "waited": waited, "tokens": tokens}


def compute(seconds, spin, begun):
    """The computing of a step, which no loader can do meanwhile if it spins."""
    if not spin:
        time.sleep(seconds)
        return
    while time.perf_counter() - begun < seconds:
        pass


# ---- the table ----


def measure(report, tokens, options):
    python = setup.Setup(options, report).python_with([])
    turns, seconds = options.repeats or TURNS, options.seconds or SECONDS
    step_s = options.step_ms / 1e3
    steps = max(4, round(seconds / step_s))
    values = {name: {"step_ms": [], "rate": [], "wait_us": []} for name in ROWS}
    with driver.Child(options, [python, os.path.abspath(__file__)]) as loop:
        opened = loop.ask("open", run=options.run, data=options.data, seq_len=options.seq_len, rows=options.rows,
                          world=options.world, seed=options.seed)

        def turn(name):
            return loop.ask("turn", 60 + 20 * seconds, name=name, steps=steps, step_s=step_s,
                            spin=options.wait == "spin")
        for name in ROWS:  # warm-up: rings are filled, pages are in the cache
            turn(name)
        for done, (_, name) in enumerate(meter.turns(ROWS, max(2, turns))):
            report.progress(done, 2 * turns, ROWS[name])
            found = turn(name)
            values[name]["step_ms"].append(1e3 * found["seconds"] / steps)
            values[name]["rate"].append(found["tokens"] / found["seconds"])
            values[name]["wait_us"].append(1e6 * found["waited"] / steps)
    for name, label in ROWS.items():
        report.row(NAME, label, "step_ms", "ms", "less", values[name]["step_ms"])
        report.row(NAME, label, "tokens_per_s", "tokens/s", "more", values[name]["rate"])
        report.row(NAME, label, "wait_us", "us", "less", values[name]["wait_us"])
        report.about(label, opened["about"])
    difference = Difference(values["real"]["step_ms"], values["synthetic"]["step_ms"])
    for metric, value in (("difference", difference.mean), ("lowest", difference.low), ("highest", difference.high)):
        report.row(NAME, "real - synthetic", metric, "ms", "-", value)
    report.note(f"{max(2, turns)} pairs of turns of {steps} steps after one turn each that does not count; a step "
                f"computes for {options.step_ms:g} ms ({options.wait}).")
    if opened["planned"]:
        report.note(f"The plan of {', '.join(opened['planned'])} is used with real data only: synthetic data has none.")
    report.answer(verdict(difference, statistics.median(values["synthetic"]["step_ms"])))


if __name__ == "__main__":
    driver.answer_requests(Loop().answer)
