# SPDX-License-Identifier: MIT
"""Runs loaders in child processes of its own, for the fault matrix.

    python child.py MODULE FD     MODULE is that of a system, such as systems.torch; FD, the descriptor of the answers

Imports the module once. Then each line of standard input is a job, a JSON object, which runs in a process that is
forked for it, the leader of a group of its own. The first answer is {"about": ..., "orders": [...]} or {"absent":
REASON}. Each other line has the number of its job: {"job": J, "pid": P} when it starts,
{"job": J, "exit": status, or minus the signal} when it has ended, and from the job itself, at once, so that nothing is
lost with a process that dies:

    {"opened": seconds}           {"rows": [names], "s": seconds of next()}      {"paused": batch}
    {"saved": batch}              {"full": text} when a state cannot be saved     {"end": batches}
    {"error": type, "text": its text, "when": "open" or "batch N"}

A job has: job, tokens (of Tokens), folder, and optionally convert (true: only convert), order, rank, world, options,
batches (how many are read), resume and save (files of the state), every (batches between states), pause ([batch, file]:
before that batch, wait until the file exists), sleep (seconds after each batch), first (the number of the first batch).
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import select
import signal
import sys
import time

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from faults import places  # noqa: E402
from measure import rows_of  # noqa: E402
from tokens import Tokens  # noqa: E402

# ---- in the job's process ----


def save(state, path, say, batch):
    """Saves a state as a careful program does: in a new file, which takes the place of the old one when it is
    complete."""
    if state is None:
        return
    try:
        with open(path + ".new", "wb") as file:
            pickle.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".new", path)
        say(saved=batch)
    except OSError as problem:
        say(full=str(problem))


def load(path):
    if not path or not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return pickle.load(file)


def deliver(module, job, reader, say, where):
    tokens = Tokens(**job["tokens"])
    if job.get("convert"):
        if hasattr(module, "convert"):
            module.convert(tokens, job["folder"])
        return
    begun = time.monotonic()
    opened = module.open(tokens, job["folder"], order=job.get("order", "sequential"), rank=job.get("rank", 0),
                         world=job.get("world", 1), resume=load(job.get("resume")), **job.get("options", {}))
    say(opened=time.monotonic() - begun)
    pause = job.get("pause") or [-1, ""]
    batch = job.get("first", 0)
    while batch < job["batches"]:
        where[0] = f"batch {batch}"
        if batch == pause[0]:
            say(paused=batch)
            while not os.path.exists(pause[1]):
                time.sleep(0.002)
        begun = time.monotonic()
        try:
            inputs, targets = opened.next()
        except StopIteration:
            break
        seconds = time.monotonic() - begun
        say(rows=[reader.name(*row) for row in rows_of(inputs, targets, tokens.seq_len)], s=seconds)
        batch += 1
        if job.get("save") and batch % job["every"] == 0:
            save(opened.state(), job["save"], say, batch)
        if job.get("sleep"):
            time.sleep(job["sleep"])
    where[0] = "closing"
    opened.close()
    say(end=batch)


def run_job(module, job, reader, say):
    """The status that the process of a job exits with: 0 also if the loader failed with an exception."""
    os.setsid()
    where = ["open"]

    def event(**members):
        say(job=job["job"], **members)
    try:
        deliver(module, job, reader, event, where)
    except BaseException as problem:  # whatever it is, it is the answer to the question what happens
        text = str(problem) or repr(problem)
        name = getattr(problem, "filename", None)
        if name and str(name) not in text:
            text += f" ({name})"
        event(error=type(problem).__name__, text=text[:600], when=where[0])
        if isinstance(problem, (KeyboardInterrupt, SystemExit)):
            return 1
    return 0


# ---- in the first process ----


def reap(jobs, say):
    while jobs:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        if pid in jobs:
            say(job=jobs.pop(pid), exit=os.waitstatus_to_exitcode(status))


def serve(module, say):
    jobs, readers, waiting = {}, {}, b""
    while True:
        ready, _, _ = select.select([0], [], [], 0.005 if jobs else None)
        if ready:
            got = os.read(0, 1 << 16)
            if not got:
                break
            waiting += got
        while b"\n" in waiting:
            line, waiting = waiting.split(b"\n", 1)
            job = json.loads(line)
            count = job["tokens"]["count"]
            if count not in readers:
                readers[count] = places.Reader(count)
            pid = os.fork()
            if not pid:
                os._exit(run_job(module, job, readers[count], say))
            jobs[pid] = job["job"]
            say(job=job["job"], pid=pid)
        reap(jobs, say)
    for pid in jobs:
        os.kill(pid, signal.SIGKILL)


def main():
    out = int(sys.argv.pop())
    os.set_inheritable(out, False)

    def say(**line):  # at most a page, which a pipe takes at once
        os.write(out, (json.dumps(line) + "\n").encode())

    try:
        module = importlib.import_module(sys.argv[1])
        about = module.about() if hasattr(module, "about") else sys.argv[1]
    except BaseException as problem:  # SystemExit, too: a package that cannot be had is a reason and nothing else
        say(absent=f"{type(problem).__name__}: {problem}")
        return
    say(about=str(about), orders=list(getattr(module, "ORDERS", ("own",))))
    serve(module, say)


if __name__ == "__main__":
    main()
