# SPDX-License-Identifier: MIT
"""Training from object storage: the same tokens from the same server, by loaders that stream them to a cache.

The server is nginx on this machine with 20 ms of latency and a link of 1 GB/s for all (remote/server.py). Each loader
reads the tokens in its own format, shuffled, through a cache that holds half of them, or all, in the configuration
that its documentation recommends.

- Two passes from an empty cache, alone: the rate of each pass, which ends after --seconds, and what the log of the
  server has of both: bytes for each byte of the tokens that were delivered, and requests. The time from the start of
  the process to the first batch. The proportional set size of all processes without the mapped cache, the largest of
  samples, and their number.
- A kill. The tokens are other ones, so that each row is known by its content. A run without a kill is the reference.
  Another saves its state as documented, delivers some more batches, which count as not trained, and is killed with all
  its workers. A new process resumes from the state on the same cache, and is asked for as many batches as are missing.
"""
import array
import collections
import os
import re
import shutil
import time

import driver
import measure as m
import setup
from remote import server
from report import Absent
from tables import loaders
from tokens import Tokens

NAME = "remote"
REPEATS = 3
SECONDS = 30.0  # most that a pass may take
DELAY, RATE = 0.02, 10**9
HALF, ALL = 0.5, 2.0  # bytes of a cache, for each byte of the tokens
LEAST = 320 << 20  # bytes of a cache: MosaicML streaming refuses less than four shards
PLACES = 24 << 20  # tokens of the kill's data, which is longer than a chunk of the others
KILL_AT, BEHIND = 0.4, 37  # the share of a pass after which the state is saved, and the batches until the kill
SAMPLE = 0.5  # seconds between two samples of memory
BUCKET = "bucket"

# Label: the system, the share of the tokens that the cache holds, the options of open(), and those of its dataset or,
# for tokmap, of its run.
# litdata: its page advises to read 4 chunks ahead, and a worker for each processor.
# MosaicML streaming: its page advises shuffle blocks whose shards fit into the cache; here two shards. Reading further
# ahead fetches shards more often if the cache is small.
AHEAD = {"max_pre_download": 4}
BLOCKS = {"predownload": 1024, "shuffle_block_size": 32768}
ROWS = {
    "tokmap, order blocks": ("tokmap", HALF, {}, {"order": ["blocks", 1024, 16]}),
    "tokmap": ("tokmap", HALF, {}, {}),
    "tokmap, cache for all": ("tokmap", ALL, {}, {}),
    "litdata/0": ("litdata", HALF, {"workers": 0}, AHEAD),
    "litdata/0, cache for all": ("litdata", ALL, {"workers": 0}, AHEAD),
    "litdata/2, cache for all": ("litdata", ALL, {"workers": 2}, AHEAD),
    "MosaicML streaming/0": ("mosaic", HALF, {"workers": 0}, BLOCKS),
    "MosaicML streaming/0, cache for all": ("mosaic", ALL, {"workers": 0}, BLOCKS),
    "MosaicML streaming/2, cache for all": ("mosaic", ALL, {"workers": 2}, BLOCKS),
}
METRICS = (("cold_tokens_per_s", "tokens/s", "more"), ("second_tokens_per_s", "tokens/s", "more"),
           ("fetched", "times", "less"), ("requests_per_mtok", "requests/Mtoken", "less"),
           ("start_ms", "ms", "less"), ("import_ms", "ms", "less"), ("peak_mib", "MiB", "less"),
           ("processes", "processes", "less"), ("lost_rows", "rows", "less"), ("repeated_rows", "rows", "less"),
           ("resume_ms", "ms", "less"))


class Row(loaders.Row):
    def __init__(self, label, system, python, cache, more, settings):
        super().__init__(label, system, python, more)
        self.cache, self.settings = cache, settings


def rows_of(report, options):
    systems = {system.NAME: system for system in setup.systems(options)}
    environments, found = setup.Setup(options, report, list(systems.values())), []
    for label, (name, *rest) in ROWS.items():
        if name not in systems:
            continue
        try:
            found.append(Row(label, systems[name], environments.python_of(systems[name]), *rest))
        except Absent as problem:
            report.absent(NAME, label, problem)
    return found


class Peak:
    """The most memory and processes of samples."""

    def __init__(self, pid, cache):
        self.pid, self.cache, self.next, self.bytes, self.processes = pid, cache, 0.0, 0, 0

    def __call__(self, now=None):
        now = now or time.monotonic()
        if now < self.next:
            return
        pids = m.tree(self.pid)
        self.bytes = max(self.bytes, m.memory_bytes(pids, [self.cache]))
        self.processes = max(self.processes, len(pids))
        self.next = time.monotonic() + SAMPLE


class Table(loaders.Rows):
    def __init__(self, report, tokens, options, rows):
        self.repeats, self.seconds = options.repeats or REPEATS, options.seconds or SECONDS
        super().__init__(NAME, report, tokens, options, rows, 2 + self.repeats)
        self.root = os.path.join(tokens.work, "root")
        self.cache = os.path.join(tokens.work, "cache")
        os.makedirs(os.path.join(self.root, BUCKET))
        self.shared = self.in_shared_memory()

    # ---- the data ----

    def upload(self, tokens, row, name):
        """Puts the tokens into the folder of the server in the system's format; returns what follows s3://."""
        key = f"{BUCKET}/{name}-{row.system.NAME}"
        target = os.path.join(self.root, key)
        if os.path.exists(target):
            return key
        if row.system.NAME == "tokmap":
            os.makedirs(target)
            driver.ask_script(self.options, row.python, os.path.join(os.path.dirname(server.__file__), "shard.py"),
                              {"tokens": tokens.to_json(), "path": os.path.join(target, "tokens")}, 20 * driver.WAIT)
        else:
            with driver.Driver(self.options, row.python, row.system, tokens) as it:
                it.convert()
                os.symlink(os.path.join(self.converted(it.folder), "tokens"), target)
        return key

    @staticmethod
    def converted(folder):
        """The newest copy in the folder of a system."""
        return max((os.path.join(folder, name) for name in os.listdir(folder)), key=os.path.getmtime)

    def places(self):
        path = os.path.join(self.tokens.work, "places-remote.bin")
        count = PLACES // self.tokens.seq_len * self.tokens.seq_len
        if not os.path.exists(path):
            with open(path, "wb") as file:
                for first in range(0, count, 1 << 20):
                    array.array("I", range(first, min(first + (1 << 20), count))).tofile(file)
        return Tokens(path, 4, count, self.tokens.seq_len, self.tokens.rows, self.tokens.work)

    # ---- measurements ----

    @staticmethod
    def in_shared_memory():
        """What MosaicML streaming has there, and does not remove when it is killed: it then refuses the same folder."""
        return {name for name in os.listdir("/dev/shm") if re.fullmatch(r"[0-9]{6}_[a-z_]+", name)}

    def open_cache(self, row, key, tokens, passes, empty=True):
        """The options of open() for a cache, which is empty at first."""
        if empty:
            shutil.rmtree(self.cache, ignore_errors=True)
            os.mkdir(self.cache, 0o700)
            for name in self.in_shared_memory() - self.shared:
                os.unlink(os.path.join("/dev/shm", name))
        limit = max(int(row.cache * tokens.count * tokens.width), LEAST)
        url, settings = f"s3://{key}", row.settings
        if row.system.NAME == "tokmap":
            url += f"/tokens?cache={self.cache}&size={limit >> 20}M"
            settings = {**settings, "passes": passes}
        return {**row.more, "remote": {"url": url, "cache": self.cache, "bytes": limit, "settings": settings}}

    def driver(self, row, tokens, more):
        return driver.Driver(self.options, row.python, row.system, tokens, more)

    def batches(self, row, tokens):
        """Those of a pass."""
        return tokens.windows(getattr(row.system, "DISJOINT", False)) // tokens.rows

    def check(self, row, key):
        """Whether its rows are those of the data."""
        with self.driver(row, self.tokens, self.open_cache(row, key, self.tokens, 1)) as it:
            about = it.about()
            it.open("own")
            found = it.take(16, 8)
            shown = ", ".join(f"{name} {value}" for name, value in {**row.more, **row.settings}.items())
            self.report.about(row.label, f"{about}; {shown}" if shown else about)
            missing = found["places"].count(-1)
            good = not missing and not found["shifted"]
            self.report.equal(NAME, row.label, None if good else False,
                              f"its own order: {len(found['places']) - missing} of {len(found['places'])} rows were "
                              f"found in the data, and {found['shifted']} rows have other targets")

    def passes(self, row, key):
        tokens, batches = self.tokens, self.batches(row, self.tokens)
        more = self.open_cache(row, key, tokens, 2)
        before = self.server.counts()
        with self.driver(row, tokens, more) as it:
            peak = Peak(it.pid, self.cache)
            opened = it.open("own")
            first = it.run(self.seconds, peak, batches - 1)
            second = it.run(self.seconds, peak, batches)
            peak()
            imported = it.import_seconds()
        counts = self.server.counts()
        counts.subtract(before)
        delivered = first["tokens"] + second["tokens"] + tokens.rows * tokens.seq_len
        took = opened["open_s"] + opened["first_s"] + first["seconds"]
        row.add("cold_tokens_per_s", (first["tokens"] + tokens.rows * tokens.seq_len) / took)
        row.add("second_tokens_per_s", second["tokens"] / second["seconds"])
        row.add("fetched", counts["bytes"] / (delivered * tokens.width))
        row.add("requests_per_mtok", counts["requests"] / delivered * 1e6)
        row.add("start_ms", 1e3 * opened["start_s"])
        row.add("import_ms", 1e3 * imported)
        row.add("peak_mib", peak.bytes / 2**20)
        row.add("processes", peak.processes)

    def taken(self, row, key, tokens, *, batches, resume=None):
        """Takes batches, in a process that is still open: the driver and the rows."""
        it = self.driver(row, tokens, self.open_cache(row, key, tokens, 1, empty=resume is None))
        try:
            opened = it.open("own", resume=resume)
            sums = opened["sums"] + it.take(batches - 1)["sums"]
        except BaseException:
            it.kill()
            raise
        return it, opened, list(map(tuple, sums))

    def kill(self, row, key, tokens):
        batches = self.batches(row, tokens)
        saved = int(batches * KILL_AT)
        it, _, wanted = self.taken(row, key, tokens, batches=batches)
        it.close()
        it, _, rows = self.taken(row, key, tokens, batches=saved)
        state = it.state()["state"]
        if state is None:
            it.close()
            return
        it.take(BEHIND)
        it.kill()
        it, opened, more = self.taken(row, key, tokens, batches=batches - saved, resume=state)
        it.close()
        wanted, got = collections.Counter(wanted), collections.Counter(rows + more)
        row.add("lost_rows", (wanted - got).total())
        row.add("repeated_rows", (got - wanted).total())
        row.add("resume_ms", 1e3 * (opened["open_s"] + opened["first_s"]))

    # ---- all of it ----

    def run(self):
        keys, places = {}, self.places()
        for row in self.rows:
            self.step(f"writing the format of {row.label}")
            keys[row] = self.attempt(row, "its format cannot be written", lambda row: [
                self.upload(self.tokens, row, "data"), self.upload(places, row, "places")])
        self.server = server.Server(os.path.join(self.tokens.work, "server"), self.root, DELAY, RATE)
        os.environ.update(self.server.environment())
        try:
            m.warm([self.root])
            for row in self.rows:
                self.step(f"checking and killing {row.label}")
                self.attempt(row, "it failed while it was checked", lambda row: self.check(row, keys[row][0]))
                self.attempt(row, "it failed after it was killed", lambda row: self.kill(row, keys[row][1], places))
            for _, row in m.turns(self.rows, self.repeats):
                self.step(f"two passes: {row.label}")
                self.attempt(row, "it failed while it delivered", lambda row: self.passes(row, keys[row][0]))
        finally:
            self.server.stop()
        self.results()

    def results(self):
        present, said = self.report_rows(METRICS), []
        size = self.tokens.count * self.tokens.width
        small = max(HALF, LEAST / size)
        self.report.note(f"The server has {1e3 * DELAY:g} ms of latency and sends {RATE / 1e9:g} GB/s to all of its "
                         f"connections, so no loader gets more than {RATE / self.tokens.width / 1e6:,.0f} M tokens/s "
                         f"of a pass that it fetches. The tokens have {size / 1e9:.3g} GB. A cache holds {small:.0%} "
                         f"of them, or all. A pass that takes more than {self.seconds:g} s ends then.")
        for share, held in ((HALF, f"{small:.0%} of the"), (ALL, "all")):
            where = f"with a cache for {held} tokens"
            rows = [row for row in present if row.cache == share]
            if rows and rows[0].system.NAME == "tokmap":
                rows[1:] = [row for row in rows[1:] if row.system is not rows[0].system]
                said.append(m.against(rows, "cold_tokens_per_s", where))
        self.report.answer(" ".join(filter(None, said)) or
                           "tokmap itself could not be measured; its rows say why.")


def measure(report, tokens, options):
    if tokens is None:
        raise Absent("the table remote needs --data and --bin")
    server.program()
    server.modules_folder()
    Table(report, tokens, options, rows_of(report, options)).run()
