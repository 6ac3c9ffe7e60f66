# SPDX-License-Identifier: MIT
"""Starts loaders in child processes (child.py), watches them, and says how they ended."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
import time

import driver
from report import clean

HERE = os.path.dirname(os.path.abspath(__file__))
START = 180  # seconds that the import of a system may take, which some do when they are opened


class Outcome:
    """What a job did: names of the rows it delivered, and how it ended."""

    def __init__(self):
        self.rows, self.times = [], []  # all rows, and the seconds of each next()
        self.batches = []  # rows of each batch
        self.saved, self.full = 0, None  # the batch of the last state that was saved; why one could not be saved
        self.opened = self.ended = False
        self.error = None  # a dict: error, text, when
        self.signal, self.hang = 0, 0
        self.hits = None  # how often a rule of fuse.py struck

    def slowest(self):
        return max(self.times, default=0)

    def add(self, event):
        if "rows" in event:
            self.rows += event["rows"]
            self.batches.append(event["rows"])
            self.times.append(event["s"])
        elif "saved" in event:
            self.saved = event["saved"]
        elif "full" in event:
            self.full = event["full"]
        elif "error" in event:
            self.error = event
        elif "opened" in event:
            self.opened = True
        elif "end" in event:
            self.ended = True


class Job:
    """A loader in a process."""

    def __init__(self, server):
        self.server, self.outcome, self.pid, self.exit, self.paused = server, Outcome(), 0, None, False
        self.last = time.monotonic()

    def take(self, line):
        """Takes a line of the server that is about this job."""
        self.last = time.monotonic()
        self.pid, self.exit = line.get("pid", self.pid), line.get("exit", self.exit)
        self.paused |= "paused" in line
        self.outcome.add(line)

    def wait(self, limit, until=None):
        """Waits until the job ends, or until until() is true. A job without an event for `limit` seconds hangs, and is
        killed; until the loader is open that are START seconds. Returns the outcome."""
        while True:
            self.server.listen(0.05)
            if self.exit is not None:
                self.kill()  # its workers
                self.outcome.signal = max(0, -self.exit)
                return self.outcome
            if until and until():
                return self.outcome
            allowed = limit if self.outcome.opened else max(limit, START)
            if time.monotonic() - self.last > allowed:
                self.outcome.hang = allowed
                self.kill()
                return self.outcome

    def wait_pause(self, limit):
        """Waits until the job pauses. Returns whether it did."""
        self.wait(limit, lambda: self.paused)
        return self.paused and self.exit is None

    def kill(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (OSError, ProcessLookupError):
            pass


class Server(driver.Child):
    """One child.py: one system in one Python."""

    def __init__(self, options, python, module):
        super().__init__(options, [python, os.path.join(HERE, "child.py"), module])
        self.jobs = {}
        found = self.answer(START)
        self.about, self.orders = found["about"], found["orders"]

    def listen(self, limit):
        """Hands new lines to their jobs, for which it waits at most so many seconds."""
        got = select.select([self._answers], [], [], limit)[0] and os.read(self._answers, 1 << 20)
        *lines, self._rest = (self._rest + (got or b"")).split(b"\n")
        for line in map(json.loads, lines):
            self.jobs[line["job"]].take(line)
        if not got and self._process.poll() is not None:
            for job in self.jobs.values():
                job.exit = job.exit if job.exit is not None else 1

    def start(self, **job):
        number = len(self.jobs) + 1
        one = self.jobs[number] = Job(self)
        self.send("run", job=number, **job)
        while not one.pid and one.exit is None:
            self.listen(0.05)
        return one

    def close(self):
        for job in self.jobs.values():
            if job.exit is None and job.pid:
                job.kill()
        super().close()


class Fuse(driver.Child):
    """The folder `mount`, which shows `back` and fails on request (fuse.py)."""

    def __init__(self, options, folder):
        self.back, self.mount = os.path.join(folder, "back"), os.path.join(folder, "mount")
        os.makedirs(self.back)
        os.makedirs(self.mount)
        super().__init__(options, [sys.executable, os.path.join(HERE, "fuse.py"), self.back, self.mount], True)
        self.answer()

    def rule(self, rule):
        """Begins a fault, or ends it (None). Returns what fuse.py says about the last one: "hits" and "written"."""
        return self.ask("rule", rule=rule)


_POSITION = re.compile(r"\b(byte|offset|line|row|block|token|page|document|step|position)s?\b[^0-9]{0,24}[0-9]", re.I)


def kind_of(error, names):
    """`place` if an error names a file of the data and a position in it, `status` if it names the file, and else
    `exception`. names: of the files of the cell."""
    named = any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", error["text"]) for name in names)
    return "exception" if not named else "place" if _POSITION.search(error["text"]) else "status"


def said(error, folders=()):
    """An error as a sentence's end. Folders are left out, since they are those of this test."""
    text = error["text"]
    for folder in sorted(folders, key=len, reverse=True):
        text = text.replace(folder + "/", "")
    text = re.sub(r"/[^\s'\"():,]*/", "", clean(text))
    text = text if len(text) <= 230 else text[:227] + "..."
    return f"{error['error']} in {error['when']}: {text}"
