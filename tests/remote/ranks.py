# SPDX-License-Identifier: MIT
"""Ranks of several nodes that read one run from object storage, are killed, and continue. Every row that they deliver
is compared with that of the same run on local files. Used by test_remote_kills.py and test_remote_faults.py.

From the environment: DATA_MB, the size of the datasets (6); RANKS_SHARDS, the number of small shards (30): many make
many requests; RANKS_SEED (1); RANKS_QUERY, what follows the ? of each
name (block=1M); RANKS_NAMES=local, local names in place of s3://, which tests the test.
"""
import hashlib
import inspect
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TOP = os.environ.get("TOP") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, "tests", "remote"), os.path.join(TOP, "tests", "python")]
import tokmap
from object_server import FINAL, ObjectServer
from support import TOKMAP

NODES, RANKS = 2, 3  # ranks of a node
LOCAL = os.environ.get("RANKS_NAMES") == "local"
SHARDS = int(os.environ.get("RANKS_SHARDS", "30"))
QUERY = os.environ.get("RANKS_QUERY", "block=1M")


def digests(batch):
    """A digest of each row of a batch and its values, by its number in the global batch, with how many targets of the
    step count."""
    arrays = (batch.inputs, batch.targets, batch.values["v"], batch.values_present["v"])
    views, digests_of = [view.memoryview().cast("B") for view in arrays], {}
    sizes = [len(view) // len(batch.row_numbers) for view in views]
    for i, number in enumerate(batch.row_numbers):
        row = b"".join(view[i * size:(i + 1) * size] for view, size in zip(views, sizes))
        digests_of[str(number)] = f"{hashlib.blake2b(row, digest_size=8).hexdigest()} of {batch.counted_in_step}"
    return digests_of


# A rank: it writes, for each step, its rows and how it would continue in one line. It does not import this module,
# because that takes longer than to import tokmap.
RANK = """
import hashlib, json, os, sys, time
import tokmap

""" + inspect.getsource(digests) + """
run, log, rank, world, pause = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
state = json.loads(sys.argv[6])
out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
write = lambda line: os.write(out, (json.dumps(line) + "\\n").encode())
try:
    with tokmap.Run(run).loader(rank=rank, world=world, threads=rank % 2, mask_targets=True, counts=True,
                                values="v", values_present=True, framework="dlpack") as loader:
        if state:
            loader.load_state_dict(state)
        rows = {}
        for batch in loader:
            rows.update(digests(batch))
            if batch.last_in_step:
                write({"step": batch.step, "rows": rows, "state": loader.state_dict()})
                rows = {}
                time.sleep(pause)
except tokmap.TokmapError as problem:
    write({"error": problem.status, "text": str(problem)})
    sys.exit(3)
"""


def pack(prefix, source, *options):
    subprocess.run([TOKMAP, "pack", "-q", *options, "-o", prefix, source], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL)


def make_data(top, megabytes, chance):
    """Datasets of several kinds: many small shards, one large one, a sealed one, one with a mask; most tokens have
    values. Returns their names."""
    os.makedirs(os.path.join(top, "bucket", "data"))
    text = os.path.join(top, "text")
    letters = bytes(97 + i % 26 for i in range(256))

    def documents(count, size):
        return [chance.randbytes(chance.randrange(1, 2 * size)).translate(letters).decode() for _ in range(count)]
    names = {}
    tokens = int(megabytes * 5e5)
    for name, share, options in (("small", 0.3, ["--shard-tokens", str(int(tokens * 0.3) // SHARDS)]), ("large", 0.4, []),
                                 ("sealed", 0.2, ["--seal", "--shard-tokens", str(tokens // 10)]),
                                 ("masked", 0.1, ["--prompt-field", "p", "--completion-field", "c"])):
        with open(text + ".jsonl", "w", encoding="utf-8") as file:
            for i, document in enumerate(documents(int(tokens * share / 500) + 1, 500)):
                line = {"text": document} if name != "masked" else {"p": f"prompt {i}", "c": document}
                file.write(json.dumps(line) + "\n")
        names[name] = os.path.join("bucket", "data", name)
        pack(os.path.join(top, names[name]), text + ".jsonl", *options)
        with tokmap.Dataset(os.path.join(top, names[name])) as ds, tokmap.ValuesWriter(ds, "v", "uint16", ()) as writer:
            count = ds.info.tokens - chance.randrange(1000)
            writer.put_at(0, [memoryview(chance.randbytes(2 * count)).cast("H")])
            writer.finish(holes=True)
    os.unlink(text + ".jsonl")
    return names


class Rank:
    """A rank of a node: its process, where it is in the run, and what it may do next."""

    def __init__(self, ranks, node, number):
        self.ranks, self.node, self.number = ranks, node, number
        self.log = os.path.join(ranks.folder, f"log{number}")
        self.process, self.state, self.next_step, self.laps, self.finals = None, None, 0, 0, 0

    def start(self):
        open(self.log, "w").close()
        self.finals = self.ranks.final_faults()
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", RANK, self.ranks.run, self.log, str(self.number), str(NODES * RANKS),
             str(self.ranks.pause), json.dumps(self.state)],
            env={**os.environ, **self.ranks.environment, "TOKMAP_CACHE": self.node.cache},
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)

    def reap(self):
        """Compares what the process delivered, after it has ended."""
        ranks = self.ranks
        said = self.process.communicate()[1].decode(errors="replace")
        status, self.process = self.process.returncode, None
        with open(self.log, encoding="utf-8") as file:
            lines = file.read().split("\n")[:-1]  # a line that was cut off does not count
        for line in map(json.loads, lines):
            if "error" in line:
                ranks.errors.append(line)
                ranks.judge_error(self, line)
                continue
            ranks.check(line["step"] == self.next_step, f"rank {self.number} delivers step {line['step']} in place of "
                        f"{self.next_step}")
            ranks.check(line["rows"] == {number: ranks.truth[line["step"]].get(number) for number in line["rows"]},
                        f"rank {self.number} delivers other rows of step {line['step']}: {line['rows']}")
            ranks.rows += len(line["rows"])
            ranks.delivered.setdefault((self.number, self.laps), {})[line["step"]] = set(line["rows"])
            self.next_step, self.state = line["step"] + 1, line["state"]
        ranks.check(status in (0, 3, -signal.SIGKILL), f"rank {self.number} ended with {status}: {said[-2000:]}")
        if status == 0:
            ranks.check(self.next_step == len(ranks.truth), f"rank {self.number} ended after {self.next_step} steps of "
                        f"{len(ranks.truth)}")
            self.state, self.next_step, self.laps = None, 0, self.laps + 1
        return status


class Node:
    """Ranks that share a cache folder."""

    def __init__(self, ranks, number):
        self.cache = os.path.join(ranks.folder, f"cache{number}")
        os.mkdir(self.cache, 0o700)
        self.ranks = [Rank(ranks, self, number * RANKS + i) for i in range(RANKS)]

    def wipe(self):
        shutil.rmtree(self.cache)
        os.mkdir(self.cache, 0o700)

    def files(self, *endings):
        return sorted(os.path.join(folder, name) for folder, _, names in os.walk(self.cache) for name in names
                      if name.endswith(endings))

    def poison(self, chance, *endings):
        """Changes bytes of files of the cache, while no rank of the node runs. Returns how many."""
        changed = 0
        for path in self.files(*endings):
            with open(path, "r+b") as file:
                size = os.path.getsize(path)
                for _ in range(chance.randrange(4)):
                    # Only what is there: a byte in a hole would not be looked at.
                    try:
                        at = os.lseek(file.fileno(), chance.randrange(max(size, 1)), os.SEEK_DATA)
                    except OSError:
                        continue
                    at = min(at + chance.randrange(4096), size - 1)
                    byte = os.pread(file.fileno(), 1, at)[0]
                    how = chance.random()
                    if how < 0.7:
                        os.pwrite(file.fileno(), bytes([byte ^ 1 << chance.randrange(8)]), at)
                    elif how < 0.9:
                        os.pwrite(file.fileno(), bytes(min(65536, size - at)), at)
                    else:
                        os.pwrite(file.fileno(), chance.randbytes(min(4096, size - at)), at)
                    changed += 1
        return changed


class Ranks:
    """All of it. finals: whether faults that cannot be survived are injected, so that errors are right."""

    def __init__(self, test, pause=0.008, **settings):
        self.seed = int(os.environ.get("RANKS_SEED", "1"))
        self.chance, self.pause = random.Random(self.seed), pause
        self.folder = tempfile.mkdtemp(prefix="ranks-", dir=os.environ.get("TMPDIR"))
        self.top = os.path.join(self.folder, "top")
        names = make_data(self.top, float(os.environ.get("DATA_MB", "6")), self.chance)
        self.server = ObjectServer(self.top, seed=self.seed, **settings)
        test.addCleanup(self.close)
        self.environment = self.server.environment
        self.ranks, self.truth, self.delivered, self.errors, self.rows = [], [], {}, [], 0
        local = self.write_run("local.run", {name: os.path.join(self.top, path) for name, path in names.items()})
        with tokmap.Run(local).loader(rank=0, world=1, mask_targets=True, counts=True, values="v",
                                      values_present=True, framework="dlpack") as loader:
            for batch in loader:
                if batch.step == len(self.truth):
                    self.truth.append({})
                self.truth[batch.step].update(digests(batch))
        self.run = local if LOCAL else self.write_run(
            "remote.run", {name: f"s3://{path}?{QUERY}" for name, path in names.items()})
        self.nodes = [Node(self, number) for number in range(NODES)]
        self.ranks = [rank for node in self.nodes for rank in node.ranks]
        self.skip_without_product()

    def write_run(self, name, sources):
        path = os.path.join(self.folder, name)
        order = self.chance.choice(("shuffle", "blocks 16 4")) if name == "local.run" else self.order
        self.order = order
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"seq_len 128\nbatch {16 * NODES * RANKS}\nseed {self.seed}\norder {order}\npasses 1\n")
            file.writelines(f'source {name} "{path}"\n' for name, path in sources.items())
            file.write(f"phase 0 {' '.join(f'{name} natural' for name in sources)}\n")
        return path

    def skip_without_product(self):
        if LOCAL:
            return
        done = subprocess.run([TOKMAP, "info", "s3://bucket/data/large?" + QUERY], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL,
                              env={**os.environ, **self.environment, "TOKMAP_CACHE": self.nodes[0].cache})
        if done.returncode and not self.server.counts()["requests"]:
            raise unittest.SkipTest(f"this build reads no datasets from object storage: {done.stderr.strip()}")
        self.check(not done.returncode, done.stderr)
        self.nodes[0].wipe()

    def close(self):
        for rank in self.ranks:
            if rank.process:
                rank.kill()
                rank.process.communicate()
        self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def check(right, text):
        if not right:
            raise AssertionError(text)

    def final_faults(self):
        counts = self.server.counts()
        return sum(counts["fault " + name] for name in FINAL)

    def judge_error(self, rank, line):
        self.check(self.final_faults() > rank.finals, f"rank {rank.number} failed although every fault can be "
                   f"survived: {line}")
        self.check("bucket/data/" in line["text"], f"an error that does not name the object: {line}")

    def step(self, restart=True):
        """Looks after the ranks: those that have ended are compared and started again. Returns whether any runs."""
        for rank in self.ranks:
            if rank.process and rank.process.poll() is not None:
                rank.reap()
                if restart or rank.next_step or rank.state:
                    rank.start()
        return any(rank.process for rank in self.ranks)

    def start(self, ranks=None):
        for rank in ranks or self.ranks:
            if not rank.process:
                rank.start()

    def started(self):
        """Starts all ranks; returns how many seconds it took until each had delivered a step."""
        began = time.monotonic()
        self.start()
        while not all(os.path.getsize(rank.log) for rank in self.ranks):
            self.check(time.monotonic() < began + 120, "the ranks do not start within 120 s")
            time.sleep(0.01)
        return time.monotonic() - began

    def kill(self, ranks):
        """Kills ranks that run; returns how many."""
        running = [rank for rank in ranks if rank.process]
        for rank in running:
            rank.kill()
        return sum(rank.reap() == -signal.SIGKILL for rank in running)

    def finish(self, seconds=600):
        """Lets every rank end its pass, and looks whether all rows came, each once."""
        until = time.monotonic() + seconds
        while self.step(restart=False):
            self.check(time.monotonic() < until, f"the ranks do not end within {seconds} s")
            time.sleep(0.02)
        self.check(self.rows > 0, "no row was delivered")
        for lap in range(min(rank.laps for rank in self.ranks)):
            for number, rows in enumerate(self.truth):
                parts = [self.delivered[rank.number, lap][number] for rank in self.ranks]
                self.check(sum(map(len, parts)) == len(rows) and set().union(*parts) == set(rows),
                           f"lap {lap}: the rows of step {number} are not each delivered once")
        self.check(not self.server.counts()["secrets elsewhere"], "credentials were sent to another host")
