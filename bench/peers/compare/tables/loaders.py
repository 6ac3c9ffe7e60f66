# SPDX-License-Identifier: MIT
"""The table of loaders: random windows of the same tokens from every system, warm and cold.

Each row is measured three times in different ways.

- Its contents. The first batches in the orders `sequential` and `list` are compared with the file, row by row. Rows of
  a system with only an order of its own are searched for in the file.
- Warm. The file is in the page cache, all systems are open at the same time, each in its own process, and they take
  turns (A B, B A) of --seconds. Each has delivered for half a turn before its first value.
- Cold and alone. No other system is open. Its files are dropped from the page cache, a new process opens the loader,
  and it delivers for --seconds, but not more windows than leave most of the file cold: a page that came with an earlier
  window would make the next one warm, which does not happen in data that is larger than memory. This gives the time
  from process start to the first batch, the cold rate, and what was read from storage. The loader then delivers for
  --seconds again, warm, which gives memory and processes. At last it is closed and opened at its state again.

A system delivers `list` (random windows, the same for all) if it can, otherwise its own random order.
"""
import os

import driver
import measure as m
import setup
from report import Absent

NAME = "loaders"
REPEATS, SECONDS = 5, 1.0
CHECKED = 16  # batches whose rows are compared
SEARCHED = 8  # rows that are searched for
READAHEAD = 128 << 10  # bytes: the kernel's default
WARM_METRICS = (("next_p50_us", "us", "p50"), ("next_p99_us", "us", "p99"), ("next_p999_us", "us", "p999"),
                ("next_max_us", "us", "max"))


class Row:
    """A row: its label, its system, the Python it runs in, and the options of open(). values holds what was measured,
    by metric; lost says why it cannot be measured any more."""

    def __init__(self, label, system, python, more):
        self.label, self.system, self.python, self.more = label, system, python, more
        self.values, self.lost = {}, None

    def add(self, metric, value):
        self.values.setdefault(metric, []).append(value)

    def driver(self, options, tokens):
        return driver.driver_of(options, self.python, self.system, tokens, self.more)

    @property
    def orders(self):
        """The orders that the system has with these options."""
        return self.system.orders_of(self.more) if hasattr(self.system, "orders_of") else self.system.ORDERS

    @property
    def order(self):
        """The order in which it is measured."""
        return next(order for order in ("list", "own", "sequential") if order in self.orders)


def rows_of(report, options):
    """All rows that can be had; the others are reported as absent."""
    found, environments = [], setup.Setup(options, report, setup.systems(options))
    for system in setup.systems(options):
        try:
            python = environments.python_of(system)
        except Absent as problem:
            for label in system.ROWS:
                report.absent(NAME, label, problem)
            continue
        found += [Row(label, system, python, chosen) for label, chosen in system.ROWS.items()]
    return found


class Rows:
    """Some rows while they are measured: a base of tables. name: of the table; steps: for the progress, of a row."""

    def __init__(self, name, report, tokens, options, rows, steps):
        self.name, self.report, self.tokens, self.options, self.rows = name, report, tokens, options, rows
        self.done, self.total = 0, len(rows) * steps

    def step(self, text):
        self.report.progress(self.done, self.total, text)
        self.done += 1

    def attempt(self, row, what, function, *arguments):
        """Calls the function. A row that fails is absent from then on; another one is not affected."""
        if row.lost is None:
            try:
                return function(row, *arguments)
            except (Absent, driver.Failed) as problem:
                row.lost = str(problem) if isinstance(problem, Absent) else f"{what}: {problem}"
                row.values = {}
        return None

    def report_rows(self, metrics):
        """metrics: (name, unit, which way is better) of each. Returns the rows that have figures."""
        for row in self.rows:
            if row.lost is not None:
                self.report.absent(self.name, row.label, row.lost)
                continue
            for metric, unit, better in metrics:
                self.report.row(self.name, row.label, metric, unit, better, row.values.get(metric, []))
        return [row for row in self.rows if row.lost is None]


class Table(Rows):
    """The measurement of some rows."""

    def __init__(self, report, tokens, options, rows):
        self.repeats, self.seconds = options.repeats or REPEATS, options.seconds or SECONDS
        super().__init__(NAME, report, tokens, options, rows, 2 + 2 * self.repeats)
        self.files = list(dict.fromkeys([tokens.path, *getattr(options, "data_files", [])]))

    # ---- its contents ----

    def check(self, row):
        """Compares the first batches with the file. Reports the verdict and what the system says about itself."""
        with row.driver(self.options, self.tokens) as it:
            about = it.about()
            shown = ", ".join(f"{name} {value}" for name, value in row.more.items())
            it.convert()
            verdicts = [self._check_order(row, it, order) for order in ("sequential", "list", "own")
                        if order in row.orders]
        self.report.about(row.label, f"{about}; order {row.order}{'; ' + shown if shown else ''}")
        wrong = [text for verdict, text in verdicts if verdict is False]
        if wrong:
            self.report.equal(NAME, row.label, False, wrong[0])
        else:
            known = any(verdict for verdict, _ in verdicts)
            self.report.equal(NAME, row.label, True if known else None, "; ".join(text for _, text in verdicts))

    def _check_order(self, row, it, order):
        sums = [tuple(pair) for pair in it.open(order)["sums"]]
        found = it.take(CHECKED - 1, SEARCHED if order == "own" else 0)
        sums += [tuple(pair) for pair in found["sums"]]
        it.close_loader()
        disjoint = getattr(row.system, "DISJOINT", False)
        if order == "own":
            if found["shifted"]:
                return False, f"its own order: in {found['shifted']} rows the targets are not the next tokens"
            missing = found["places"].count(-1)
            if missing:
                return False, f"its own order: {missing} of {len(found['places'])} rows do not occur in the data"
            return None, f"its own order: {len(found['places'])} rows were found in the data"
        wanted = self.tokens.row_sums(self.tokens.first_windows(order, len(sums), disjoint), disjoint)
        difference = m.first_difference(sums, wanted, self.tokens.rows)
        if difference:
            return False, f"order {order}: {difference}"
        return True, f"order {order}: {len(sums)} rows, checksum {m.checksum(sums)}"

    # ---- warm ----

    def warm(self):
        opened = {}
        m.warm(self.files)
        for row in self.rows:
            self.step(f"warming {row.label}")
            self.attempt(row, "it failed while it was opened", self._warm_open, opened)
        for _, row in m.turns(self.rows, self.repeats):
            self.step(f"warm: {row.label}")
            self.attempt(row, "it failed while it delivered", self._warm_turn, opened)
        for it in opened.values():
            it.close()

    def _warm_open(self, row, opened):
        it = opened[row] = row.driver(self.options, self.tokens)
        it.open(row.order)
        it.run(self.seconds / 2)

    def _warm_turn(self, row, opened):
        found = opened[row].run(self.seconds)
        row.add("tokens_per_s", found["tokens"] / found["seconds"])
        row.add("cpu_s_per_mtok", found["cpu_s"] / found["tokens"] * 1e6)
        for metric, _, name in WARM_METRICS:
            row.add(metric, found[name])

    # ---- cold and alone ----

    def alone(self):
        for _, row in m.turns(self.rows, self.repeats):
            self.step(f"cold: {row.label}")
            self.attempt(row, "it failed while it ran alone", self._alone_turn)

    def _alone_turn(self, row):
        own = os.path.join(self.tokens.work, row.system.NAME)
        data = [*self.files, own]
        left = m.evict(data)
        with row.driver(self.options, self.tokens) as it:
            it.about()
            read, requests = m.read_bytes(m.tree(it.pid)), m.requests_read(self.tokens.path)
            found = it.open(row.order, seconds=self.seconds, most=self.cold_batches())
            row.add("start_ms", 1e3 * found["start_s"])
            if it.import_seconds() is not None:
                row.add("import_ms", 1e3 * it.import_seconds())
            pids = m.tree(it.pid)
            if left < 0.05:
                row.add("cold_tokens_per_s", found["tokens"] / found["seconds"])
                row.add("cold_cpu_s_per_mtok", found["cpu_s"] / found["tokens"] * 1e6)
                delivered = found["tokens"] + self.tokens.rows * self.tokens.seq_len
                row.add("amplification", (m.read_bytes(pids) - read) / (delivered * self.tokens.width))
                row.add("cold_requests_per_mtok", (m.requests_read(self.tokens.path) - requests) / delivered * 1e6)
                row.add("readahead_kib", m.device_figure(self.tokens.path, "queue/read_ahead_kb"))
            it.run(self.seconds / 2)
            pids = m.tree(it.pid)
            row.add("memory_mib", m.memory_bytes(pids, data) / 2 ** 20)
            row.add("processes", len(pids))
            self._resume(row, it)
        self.left = max(left, getattr(self, "left", 0))

    def cold_batches(self):
        """The most batches of a cold turn: even if each window brings READAHEAD bytes with it, half of the file stays
        cold."""
        return max(1, self.tokens.count * self.tokens.width // (2 * READAHEAD * self.tokens.rows))

    def _resume(self, row, it):
        state = it.state()
        if state["state"] is None:
            return
        wanted = it.take(1)["sums"]
        it.close_loader()
        found = it.open(row.order, resume=state["state"])
        row.add("resume_ms", 1e3 * (found["open_s"] + found["first_s"]))
        row.add("state_bytes", state["bytes"])
        row.add("resume_other_rows", sum(one != two for one, two in zip(found["sums"], wanted)))

    # ---- results ----

    UNITS = (("tokens_per_s", "tokens/s", "more"), ("cold_tokens_per_s", "tokens/s", "more"),
             ("cpu_s_per_mtok", "s/Mtoken", "less"), ("cold_cpu_s_per_mtok", "s/Mtoken", "less"),
             *((metric, unit, "less") for metric, unit, _ in WARM_METRICS),
             ("start_ms", "ms", "less"), ("import_ms", "ms", "less"), ("resume_ms", "ms", "less"),
             ("resume_other_rows", "rows", "less"),
             ("state_bytes", "bytes", "less"), ("memory_mib", "MiB", "less"), ("processes", "processes", "less"),
             ("amplification", "times", "less"), ("cold_requests_per_mtok", "requests/Mtoken", "less"),
             ("readahead_kib", "KiB", "-"))

    def results(self):
        present = self.report_rows(self.UNITS)
        if getattr(self, "left", 0) >= 0.05:
            self.report.note(f"No cold figures: {100 * self.left:.0f}% of the data stayed in the page cache, as on a "
                             f"file system in memory, or because another program has it open.")
        self.report.note(f"Warm: {self.repeats} interleaved turns of {self.seconds:g} s after {self.seconds / 2:g} s "
                         f"of warm-up. Cold: {self.repeats} new processes, at most {self.cold_batches():,} batches "
                         f"each. Memory is the proportional set size of all processes, without the mapped data.")
        self.report.answer(self.answer(present))

    @staticmethod
    def answer(present):
        """How tokmap compares with the best other row, warm and cold."""
        if not present or present[0].system.NAME != "tokmap":
            return "tokmap itself could not be measured; its row says why."
        present[1:] = [row for row in present[1:] if not row.system.NAME.startswith("tokmap")]
        if len(present) == 1:
            return "No other system could be had here; the rows say why."
        warm = m.against(present, "tokens_per_s", "from memory")
        cold = m.against(present, "cold_tokens_per_s", "from storage")
        return " ".join(sentence for sentence in (warm, cold) if sentence)


def measure(report, tokens, options):
    """The table of all systems."""
    if tokens is None:
        raise Absent("the table loaders needs --data and --bin")
    table = Table(report, tokens, options, rows_of(report, options))
    for row in table.rows:
        table.step(f"checking {row.label}")
        table.attempt(row, "it failed while it was checked", table.check)
    table.warm()
    table.alone()
    table.results()
