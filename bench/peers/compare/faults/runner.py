# SPDX-License-Identifier: MIT
"""Starts loaders in child processes (child.py), watches them, and says how they ended."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time

import driver
from report import Absent, clean

HERE = os.path.dirname(os.path.abspath(__file__))
START = 180  # seconds that the import of a system may take, which some do when they are opened


class Outcome:
    """What a job did: names of the rows it delivered, and how it ended."""

    def __init__(self):
        self.rows, self.times = [], []  # all rows, and the seconds of each next()
        self.batches = []  # rows of each batch
        self.saved, self.full = 0, None  # the batch of the last state that was saved; why one could not be saved
        self.opened = self.ended = False
        self.error = None  # a dict: error, text, errno, when
        self.signal, self.hang = 0, 0
        self.hits = None  # how often a rule of the preloaded library struck

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
        elif "hits" in event:
            self.hits = event["hits"]
        elif "opened" in event:
            self.opened = True
        elif "end" in event:
            self.ended = True


class Job:
    """A loader in a process. `events` of the outcome are read as they come."""

    def __init__(self, server, number, events, pipe):
        self.server, self.number, self.path = server, number, events
        self._pipe = os.open(events, os.O_RDONLY | os.O_NONBLOCK) if pipe else None
        self.outcome, self.pid, self.exit = Outcome(), 0, None
        self._at, self._rest, self.paused = 0, b"", False
        self.last = time.monotonic()

    def _read(self):
        if self._pipe is not None:
            try:
                return os.read(self._pipe, 1 << 20)
            except BlockingIOError:
                return b""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._at)
                data = file.read()
        except FileNotFoundError:
            return b""
        self._at += len(data)
        return data

    def look(self):
        """Reads new events. Returns whether there were any."""
        self._rest += self._read()
        data, self._rest = self._rest[:self._rest.rfind(b"\n") + 1], self._rest[self._rest.rfind(b"\n") + 1:]
        for line in data.splitlines():
            event = json.loads(line)
            self.paused |= "paused" in event
            self.outcome.add(event)
        if data:
            self.last = time.monotonic()
        return bool(data)

    def wait(self, limit, until=None):
        """Waits until the job ends, or until until() is true. A job without an event for `limit` seconds hangs, and is
        killed; until the loader is open that are START seconds. Returns the outcome."""
        while True:
            self.look()
            self.server.listen()
            if self.exit is not None:
                self.look()
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
            time.sleep(0.003)

    def wait_pause(self, limit):
        """Waits until the job pauses. Returns whether it did."""
        self.wait(limit, lambda: self.paused)
        return self.paused and self.exit is None

    def kill(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (OSError, ProcessLookupError):
            pass


class Server:
    """One child.py: one system in one Python."""

    def __init__(self, options, python, module, folder, shim=None):
        self.folder, self.jobs, self.count = folder, {}, 0
        environment = driver.environment(options)
        if shim:
            old = environment.get("LD_PRELOAD")
            environment["LD_PRELOAD"] = shim + (":" + old if old else "")
        self.errors = open(os.path.join(folder, "stderr"), "wb")
        self.process = subprocess.Popen([python, os.path.join(HERE, "child.py"), module], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, env=environment,
                                        start_new_session=True)
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        line = self._next(START)
        if line is None or "absent" in line:
            reason = line["absent"] if line else self.last_words()
            self.close()
            raise Absent(reason)
        self.about, self.orders = line["about"], line["orders"]

    def last_words(self):
        self.errors.flush()
        with open(self.errors.name, "rb") as file:
            return driver.last_lines(file.read()[-4000:].decode(errors="replace"))

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def _next(self, limit):
        try:
            return self._lines.get(timeout=limit)
        except queue.Empty:
            return None

    def listen(self):
        while not self._lines.empty():
            line = self._lines.get()
            if line is None:
                for job in self.jobs.values():
                    job.exit = job.exit if job.exit is not None else 1
                return
            job = self.jobs[line["job"]]
            if "pid" in line:
                job.pid = line["pid"]
            else:
                job.exit = line["exit"]

    def start(self, **job):
        self.count += 1
        events = os.path.join(self.folder, f"events.{self.count}")
        pipe = "file_limit" in job  # which would stop a file of events, too
        if pipe:
            os.mkfifo(events)
        one = Job(self, self.count, events, pipe)
        self.jobs[self.count] = one
        try:
            self.process.stdin.write((json.dumps(dict(job, job=self.count, events=events)) + "\n").encode())
            self.process.stdin.flush()
        except OSError:
            one.exit = 1
        while not one.pid and one.exit is None:
            self.listen()
            time.sleep(0.001)
        return one

    def close(self):
        for job in self.jobs.values():
            if job.exit is None and job.pid:
                job.kill()
        try:
            self.process.stdin.close()
            self.process.wait(5)
        except (OSError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.errors.close()


class Fuse:
    """The folder `mount`, which shows `back` and fails on request (fuse.py)."""

    def __init__(self, folder):
        self.back, self.mount = os.path.join(folder, "back"), os.path.join(folder, "mount")
        os.makedirs(self.back)
        os.makedirs(self.mount)
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "fuse.py"), self.back, self.mount],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, start_new_session=True)
        if not self.process.stdout.readline():
            reason = self.process.stderr.read().strip()
            self.process.wait()
            raise Absent(reason or "FUSE cannot be used")

    def rule(self, rule):
        """Begins a fault, or ends it (None). Returns what fuse.py says about the last one: "hits" and "written"."""
        self.process.stdin.write(json.dumps({"rule": rule}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


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
