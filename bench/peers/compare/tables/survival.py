# SPDX-License-Identifier: MIT
"""What a loader's way to resume costs over a simulated month: rows lost and repeated, and hours wasted by its restarts.

Nodes fail at random, and the run restarts from its last checkpoint on those that are left; when a node has been
repaired, the run restarts once more, at a checkpoint, with that node. A step takes longer on fewer nodes, because the
global batch stays the same. All policies meet the same failures. What they differ in is where the loader continues:

    exact           at the row after the checkpoint, on any number of ranks
    same world      there, too, but only on as many ranks as before, so the run waits until the node is repaired
    fast-forward    there, too, but the loader gets there by iterating: it reads all rows of the run so far once more
    restart         at the first row of the epoch, since the position is not saved: rows repeat, and as many never come
    none            nowhere: each window is drawn with replacement, so nothing is lost by a restart that was not lost
                    before. Of E windows, N draws show E(1 - (1 - 1/E)^N)

Rows that were trained after a checkpoint and rolled back count as neither lost nor repeated. A row is lost if the run
would have trained on it without failures (and without replacement), and it never did; it is repeated if it was trained
on more often than that. The hours are those in which all ranks wait: opening the loader, resuming, iterating, and
waiting for a node. The training that is done again after a rollback is the same for all policies, and a metric of its
own.

Example: 64 nodes, one failure after 100 h of steps of 2 s, a checkpoint each 30 minutes, 4,096 rows a step. That is
step 180,000; `restart` trains the 737,280,000 rows before it once more, and as many at the end of the epoch never come.
`fast-forward` at 80,000 rows a second and rank reads 1,440,000 rows on each of the 512 ranks: 18 s more than `exact`.
"""
import json
import math
import os
import random

import driver
import setup
from report import Absent

NAME = "survival"
HOURS = 24.0
SEEDS = 9  # simulated months, each of which is a repeat
FORWARD_SECONDS = 0.5
CURVE = 6  # points of the tables by day
POLICIES = ("exact", "same world", "fast-forward", "restart", "none")
# Which rows of the table loaders have the figures of a policy: those whose labels contain one of these words.
SOURCES = {"exact": ("tokmap",), "same world": ("Stateful",), "fast-forward": ("DataLoader", "memmap"),
           "restart": ("DataLoader", "memmap"), "none": ("nanoGPT", "memmap")}


class Figures:
    """What was measured of a loader, in seconds and tokens a second."""

    def __init__(self, source, start, resume, rate):
        self.source, self.start, self.resume, self.rate = source, start, resume, rate


class Setting:
    """The month: everything but the policy and its loader."""

    def __init__(self, nodes=64, ranks=512, days=30.0, rate=0.0038, step=2.0, batch=4096, seq_len=2048, checkpoint=0.5,
                 repair=6.0, spares=0, epoch=None):
        self.nodes, self.ranks, self.hours, self.rate = nodes, ranks, days * HOURS, rate / HOURS
        self.spares = spares
        self.step, self.batch, self.seq_len = step / 3600, batch, seq_len  # the step in hours
        self.checkpoint, self.repair = checkpoint, repair
        self.steps_between = max(1, round(checkpoint / self.step))
        undisturbed = int(self.hours / self.step) * batch
        self.epoch = epoch or undisturbed

    def failures(self, seed):
        """The failures of a month: (hour, node). If fewer nodes run, the simulation leaves those out whose node is not
        below their number."""
        generator, found, hour = random.Random(seed), [], 0.0
        while self.rate > 0:
            hour += generator.expovariate(self.rate * self.nodes)
            if hour >= self.hours:
                break
            found.append((hour, generator.randrange(self.nodes)))
        return found


class Month:
    """One month with one policy. The results are rows_lost, rows_repeated, hours_wasted, hours_redone, restarts, and
    days: the first three at the end of each day."""

    def __init__(self, policy, figures, setting, failures):
        self.policy, self.figures, self.setting = policy, figures, setting
        self.now, self.progress = 0.0, 0.0  # hours; steps
        self.hours_wasted = self.hours_redone = 0.0
        self.restarts = 0
        self.down = []  # the hours in which nodes are back
        self.begun, self.longest = 0.0, 0.0  # the step at which the loader read row 0; most steps from there on
        self.saved = 0.0  # the step of the last checkpoint that was made for a node that came back
        self.days = []
        self._run(list(failures))
        self.rows_lost = self.rows_repeated = self._twice()

    def _twice(self):
        """The rows that were trained on twice, which are as many as never came."""
        batch, epoch = self.setting.batch, self.setting.epoch
        trained = self.progress * batch
        if self.policy == "none":
            # (1 - 1/E)^N without the loss of digits
            return round(max(0.0, min(trained, epoch) + epoch * math.expm1(trained * math.log1p(-1 / epoch))))
        if self.policy != "restart":
            return 0
        seen = max(self.longest, self.progress - self.begun) * batch
        return round(max(0.0, min(trained, epoch) - min(seen, epoch)))

    def _restart_hours(self, resumed):
        """What the loader needs until its first batch."""
        figures, setting = self.figures, self.setting
        seconds = figures.start
        if resumed and self.policy in ("exact", "same world"):
            seconds = figures.resume
        if resumed and self.policy == "fast-forward":
            rows = self.progress * setting.batch / (setting.ranks * self._alive() / setting.nodes)
            seconds += rows * setting.seq_len / figures.rate
        return seconds / 3600

    def _alive(self):
        """The nodes that run, or would run if the run did not wait."""
        return min(self.setting.nodes, self.setting.nodes + self.setting.spares - len(self.down))

    def _waits(self):
        """Are there too few nodes to go on?"""
        return self._alive() < (self.setting.nodes if self.policy == "same world" else 1)

    def _pass(self, until, speed):
        """Time passes, while the run makes `speed` steps an hour, or waits (0)."""
        until = min(until, self.setting.hours)
        while (len(self.days) + 1) * HOURS <= until + 1e-9:
            day = (len(self.days) + 1) * HOURS
            self._advance(day, speed)
            self.days.append((self._twice(), self.hours_wasted))
        self._advance(until, speed)

    def _advance(self, hour, speed):
        hour = max(hour, self.now)
        if speed:
            self.progress += (hour - self.now) * speed
        else:
            self.hours_wasted += hour - self.now
        self.now = hour

    def _run(self, failures):
        setting = self.setting
        ready = self._restart_hours(False)  # the hour from which on the run makes steps
        while self.now < setting.hours:
            back = min(self.down, default=math.inf)
            failure = failures[0][0] if failures else math.inf
            event = min(failure, back, setting.hours)
            if ready > self.now:
                self._pass(min(ready, event), 0)
            if self.now < event:
                self._pass(event, self._alive() / setting.nodes / setting.step)
            if event >= setting.hours:
                break
            if back <= failure:
                ready = self._repaired(back, ready)
            elif failures.pop(0)[1] < self._alive():
                ready = self._failed()

    def _failed(self):
        """Back to the checkpoint, on the nodes that are left. Returns the hour in which steps go on."""
        setting = self.setting
        last = max(self.saved, math.floor(self.progress / setting.steps_between) * setting.steps_between)
        self.hours_redone += (self.progress - last) * setting.step
        self.down.append(self.now + setting.repair)
        self._loader_starts(last)
        return math.inf if self._waits() else self.now + self._restart_hours(True)

    def _repaired(self, hour, ready):
        """A node is back. If nodes were missing it joins at a checkpoint, which is made for it, so nothing is rolled
        back. Returns the hour in which steps go on."""
        missing = self._alive() < self.setting.nodes
        self.down.remove(hour)
        if not missing or self._waits():
            return ready
        self.saved = self.progress
        self._loader_starts(self.progress)
        return self.now + self._restart_hours(True)

    def _loader_starts(self, at):
        self.restarts += 1
        self.longest = max(self.longest, at - self.begun)
        self.progress = at
        self.begun = at


# ---- the figures ----


def from_file(path):
    """The figures of all rows of the table loaders in a file that `tokmap-bench compare --json` wrote."""
    rows = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip():
                found = json.loads(line)
                if found.get("table") == "loaders" and "row" in found and "value" in found:
                    rows.setdefault(found["row"], {})[found["metric"]] = found["value"]
    figures = {}
    for label, values in rows.items():
        if "start_ms" in values and "tokens_per_s" in values:
            start = values["start_ms"] / 1e3
            figures[label] = Figures(label, start, start + values.get("resume_ms", 0) / 1e3, values["tokens_per_s"])
    if not figures:
        raise Absent(f"{path} has no rows of the table loaders; make it with tokmap-bench compare --json")
    return figures


def measured(report, tokens, options):
    """The same figures of the rows that the policies need, measured at once and shortly: a start, a resume, and half a
    second of reading in order."""
    figures, environments = {}, setup.Setup(options, report, setup.systems(options))
    words = {word for words in SOURCES.values() for word in words}
    for system in setup.systems(options):
        for label, chosen in system.ROWS.items():
            if not any(word in label for word in words):
                continue
            report.progress(0, 0, f"measuring {label}")
            try:
                python = environments.python_of(system)
                figures[label] = measured_row(options, tokens, system, python, chosen, label)
            except (Absent, driver.Failed) as problem:
                report.absent(NAME, label, problem)
            break  # the first row of a system is its best one
    return figures


def measured_row(options, tokens, system, python, more, label):
    order = "sequential" if "sequential" in system.ORDERS else system.ORDERS[0]
    with driver.Driver(options, python, system, tokens, more) as it:
        it.convert()
        start = it.open(order)["start_s"]
        found = it.run(FORWARD_SECONDS)
        state = it.state()["state"]
    with driver.Driver(options, python, system, tokens, more) as it:
        resume = it.open(order, resume=state)["start_s"]
    return Figures(label, start, resume, found["tokens"] / found["seconds"])


def figures_of(policy, figures):
    """The figures of the first loader with this policy; if none of them could be had, those of tokmap, which are the
    kindest there are."""
    for word in (*SOURCES[policy], "tokmap", ""):
        for label, found in figures.items():
            if word in label:
                return found
    raise Absent("no loader could be measured; the rows say why")


# ---- the table ----


def add_arguments(parser):
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--ranks", type=int, default=512, help="ranks on all nodes")
    parser.add_argument("--days", type=float, default=30)
    parser.add_argument("--failures", type=float, default=0.0038, help="failures of a node and day")
    parser.add_argument("--step-ms", type=float, default=2000, help="a step on all nodes")
    parser.add_argument("--global-rows", type=int, default=4096, help="rows of a step")
    parser.add_argument("--checkpoint-minutes", type=float, default=30)
    parser.add_argument("--repair-hours", type=float, default=6)
    parser.add_argument("--spare-nodes", type=int, default=0)
    parser.add_argument("--figures", help="rows that tokmap-bench compare --json wrote; otherwise they are measured")


def setting_of(options):
    checks = (("nodes", options.nodes >= 1), ("ranks", options.ranks >= options.nodes), ("days", options.days > 0),
              ("failures", 0 <= options.failures <= 1000), ("step-ms", options.step_ms > 0),
              ("global-rows", options.global_rows >= options.ranks),
              ("checkpoint-minutes", options.checkpoint_minutes > 0), ("repair-hours", options.repair_hours >= 0),
              ("spare-nodes", options.spare_nodes >= 0))
    for name, good in checks:
        if not good:
            raise SystemExit(f"--{name} is out of range: at least one rank on each node, one row for each rank, and "
                             f"numbers above 0 are needed")
    return Setting(options.nodes, options.ranks, options.days, options.failures, options.step_ms / 1e3,
                   options.global_rows, options.seq_len, options.checkpoint_minutes / 60, options.repair_hours,
                   options.spare_nodes)


def measure(report, tokens, options):
    setting = setting_of(options)
    if options.figures:
        figures = from_file(options.figures)
    elif tokens is None:
        raise Absent("the table survival needs the data of a dataset, or --figures")
    else:
        figures = measured(report, tokens, options)
    if not figures:
        raise Absent("no loader could be measured; the rows say why")
    simulate(report, setting, figures, options.seed, options.repeats or SEEDS)


def curve(report, policy, months):
    """The tables of rows lost and of hours wasted until the end of some days."""
    days = min(len(month.days) for month in months)
    for place, (table, unit) in enumerate((("rows lost", "rows"), ("hours wasted", "hours"))):
        for day in sorted({days * part // CURVE for part in range(1, CURVE + 1)} - {0}):
            report.row(table, policy, f"day_{day}", unit, "less", [month.days[day - 1][place] for month in months])


def simulate(report, setting, figures, seed, count):
    """Reports all policies; each month is a repeat, and all policies meet the same months."""
    months = [setting.failures(f"{seed} {month}") for month in range(count)]
    worst = {}
    for policy in POLICIES:
        chosen = figures_of(policy, figures)
        done = [Month(policy, chosen, setting, failures) for failures in months]
        report.about(policy, f"figures of {chosen.source}: start {chosen.start:.3g} s, resume {chosen.resume:.3g} s, "
                             f"{chosen.rate / 1e6:.3g} M tokens/s")
        for metric, unit, better in (("rows_lost", "rows", "less"), ("rows_repeated", "rows", "less"),
                                     ("hours_wasted", "hours", "less"), ("hours_redone", "hours", "less"),
                                     ("restarts", "restarts", "-")):
            report.row(NAME, policy, metric, unit, better, [getattr(month, metric) for month in done])
        curve(report, policy, done)
        worst[policy] = sorted(month.hours_wasted for month in done)[count // 2]
    failures = sum(map(len, months)) / count
    report.note(f"{count} simulated months of {setting.hours / HOURS:g} days: {setting.nodes} nodes with "
                f"{setting.ranks} ranks, {setting.rate * HOURS:g} failures of a node and day ({failures:.1f} a month), "
                f"steps of {setting.step * 3600:g} s with {setting.batch:,} rows, a checkpoint each "
                f"{setting.checkpoint * 60:g} min, repair {setting.repair:g} h, {setting.spares} spare nodes. Start, "
                f"resume, and rate are those of one process on this machine.")
    report.answer(f"An exact cursor loses no row and {worst['exact'] * 3600:.2g} seconds in such a month; waiting for "
                  f"the same number of ranks costs {worst['same world']:.3g} hours, and iterating to the place "
                  f"{worst['fast-forward']:.2g} hours.")
