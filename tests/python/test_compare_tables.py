# SPDX-License-Identifier: MIT
"""The tables of `tokmap-bench compare` that run torch's DataLoader in one loop: every table prints its rows in the form
of the protocol, its answer follows from its figures, and what was delivered is compared with the file.

The tables run once, all in one process and with tiny sizes, so nothing here depends on their figures.
"""
import json
import math
import os
import random
import stat
import subprocess
import sys
import tempfile
import unittest

from support import TOKMAP, TOP, needs

PEERS = os.path.join(TOP, "bench", "peers", "compare")
TABLES = ("progressive", "pin", "overlap")
TINY = {"repeats": 2, "seconds": 0.01, "workers": 1, "pin_calls": 8}

# Runs in a process of its own, because the scripts' modules have names like `report` and `setup`.
RUN_ALL = """
import argparse, contextlib, importlib, json, os, sys
sys.path.insert(0, sys.argv[1])
from report import Report
from tokens import Tokens
import torch_loop as loop
settings = json.loads(sys.argv[2])
work, report = settings["work"], Report(os.dup(1))
os.dup2(2, 1)
tokens = Tokens(settings["bin"], 2, settings["count"], 64, 4, work)
torch = loop.torch_for_tables()
torch.cuda.is_available = lambda: False  # these sizes are too small to measure a GPU with
for table in settings["tables"]:
    importlib.import_module(f"tables.{table}").measure(report, tokens, argparse.Namespace(**settings))


class Shifted(loop.Windows):
    def __getitem__(self, i):
        return super().__getitem__((i + 1) % self.windows)


right = loop.TorchVariant("right", tokens, num_workers=0)
for name, dataset in ("right", None), ("wrong", Shifted(tokens)):
    variant = loop.TorchVariant(name, tokens, dataset=dataset, num_workers=0)
    report.equal("check", name, *loop.check(variant, tokens))
short = loop.TorchVariant("short", tokens, num_workers=0)
short.open = lambda numbers: right.open(numbers[:8])
report.equal("check", "short", *loop.check(short, tokens))

from tables import progressive

names = [getattr(row[0], "name", row[0]) for row in progressive.variants(tokens, argparse.Namespace(**settings), True)]
report.equal("check", "rows with a GPU", names == [
    "baseline: 0 workers", "+ 1 workers and prefetch", "+ pin_memory", "+ persistent_workers",
    "+ prefetcher on its own stream", "+ batched __getitems__", "batched __getitems__, 0 workers", "tokmap"], str(names))
stream = argparse.Namespace(wait_stream=lambda other: None)
torch.cuda.Stream = torch.cuda.current_stream = lambda: stream
torch.cuda.stream = contextlib.nullcontext
torch.Tensor.record_stream = lambda tensor, stream: None
prefetcher = loop.StreamVariant("prefetcher", tokens, device="cpu", batched=True, num_workers=0)
report.equal("check", "prefetcher", *loop.check(prefetcher, tokens))
equal = [loop.TorchVariant(name, tokens, batched=True, num_workers=0) for name in ("one", "other")]
for attempt in range(3):
    found = loop.run_variants(report, "equal", equal, tokens, argparse.Namespace(repeats=8, seconds=0.03),
                              lambda variant, numbers, rows, epochs: loop.run_pass(variant, numbers, rows,
                                                                                   loop.step_on(), epochs))
    one, other = ([each.rate for each in found[name]] for name in ("one", "other"))
    claimed = loop.measure.Ratio(one, other).distinguishable
    if not claimed:
        break
report.equal("check", "two equal rows", not claimed, f"attempt {attempt + 1}")
"""


def fields_of(line):
    return line.split("\t")


class Lines:
    """The lines that scripts wrote, read as tokmap-bench reads them."""

    def __init__(self, case, text):
        self.rows, self.absent, self.equal, self.answers, self.notes = {}, {}, {}, [], []
        for line in text.splitlines():
            kind, *fields = fields_of(line)
            case.assertTrue(all(fields), line)
            getattr(self, "take_" + kind)(case, line, *fields)

    def take_row(self, case, line, table, row, metric, unit, better, values):
        case.assertIn(better, ("more", "less", "-"), line)
        numbers = [float(value) for value in values.split(",")]
        case.assertTrue(all(map(math.isfinite, numbers)), line)
        case.assertNotIn((table, row, metric), self.rows, line)
        self.rows[table, row, metric] = numbers

    def take_absent(self, case, line, table, row, reason):
        self.absent[table, row] = reason

    def take_equal(self, case, line, table, row, verdict, text):
        case.assertIn(verdict, ("yes", "no", "undefined"), line)
        self.equal[table, row] = verdict, text

    def take_about(self, case, line, row, text):
        pass

    def take_note(self, case, line, text):
        self.notes.append(text)

    def take_progress(self, case, line, done, total, text):
        case.assertLessEqual(int(done), int(total), line)

    def take_answer(self, case, line, text):
        self.answers.append(text)

    def names(self, table):
        return list(dict.fromkeys(row for one, row, _ in self.rows if one == table))


def environment(folder):
    return {**os.environ, "TMPDIR": folder}


def write_tokens(folder, count=20000):
    path = os.path.join(folder, "tokens.bin")
    with open(path, "wb") as file:
        file.write(random.Random(1).randbytes(2 * count))
    return path


@needs("numpy", "torch")
class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="a folder ")
        cls.addClassCleanup(cls.folder.cleanup)
        settings = {**TINY, "bin": write_tokens(cls.folder.name), "count": 20000, "work": cls.folder.name,
                    "tables": TABLES}
        done = subprocess.run([sys.executable, "-c", RUN_ALL, PEERS, json.dumps(settings)], capture_output=True,
                              text=True, env=environment(cls.folder.name))
        cls.status, cls.errors, cls.output = done.returncode, done.stderr, done.stdout

    def setUp(self):
        self.assertEqual(self.status, 0, self.errors)
        self.lines = Lines(self, self.output)

    def test_every_table_has_its_rows(self):
        wanted = {
            "progressive": ["baseline: 0 workers", "+ 1 workers and prefetch", "+ persistent_workers",
                            "+ batched __getitems__", "batched __getitems__, 0 workers", "tokmap"],
        }
        for table, rows in wanted.items():
            self.assertEqual(self.lines.names(table), rows)
        self.assertEqual(len(self.lines.answers), len(TABLES))
        for table in ("progressive", "pin", "overlap"):
            reasons = [reason for (one, _), reason in self.lines.absent.items() if one == table]
            self.assertTrue(reasons and all("no GPU" in reason for reason in reasons), (table, reasons))

    def test_every_turn_has_a_value(self):
        for (table, row, metric), values in self.lines.rows.items():
            self.assertEqual(len(values), TINY["repeats"], (table, row, metric))

    def test_what_was_delivered_is_compared(self):
        self.assertEqual({key: found for key, found in self.lines.equal.items()
                          if found[0] != "yes" and key[0] != "check"}, {})
        checked = {table for table, _ in self.lines.equal}
        self.assertEqual(checked - {"check", "equal"}, set(TABLES) - {"pin", "overlap"})

    def test_a_difference_is_found(self):
        for row in ("right", "prefetcher", "rows with a GPU"):
            self.assertEqual(self.lines.equal["check", row][0], "yes", self.lines.equal["check", row][1])
        for row in ("wrong", "short"):
            self.assertEqual(self.lines.equal["check", row][0], "no", row)

    def test_two_equal_rows_claim_no_gain(self):
        self.assertEqual(self.lines.equal["check", "two equal rows"][0], "yes")

    def test_speedups_multiply(self):
        product = [1.0] * TINY["repeats"]
        rows = self.lines.names("progressive")
        for row in rows:
            gains = self.lines.rows["progressive", row, "over_row_before"]
            product = [one * gain for one, gain in zip(product, gains)]
            for one, other in zip(product, self.lines.rows["progressive", row, "speedup"]):
                self.assertAlmostEqual(one / other, 1, 9)
        rates = [self.lines.rows["progressive", row, "batches_per_s"] for row in (rows[0], rows[-1])]
        for first, last, speedup in zip(*rates, product):
            self.assertAlmostEqual(last / first / speedup, 1, 9)

    def test_nothing_stays(self):
        self.assertEqual(os.listdir(self.folder.name), ["tokens.bin"])


# Calls functions of the tables with figures that are known: answers.py NAME ARGUMENTS → JSON
CALL = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
for module, function, arguments in json.loads(sys.argv[2]):
    arguments = [eval(each) for each in arguments]
    print(json.dumps(getattr(importlib.import_module(module), function)(*arguments)))
"""


def call(*calls):
    done = subprocess.run([sys.executable, "-c", CALL, PEERS, json.dumps(calls)], capture_output=True, text=True,
                          check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def around(middle, spread=0.02, turns=5, seed=1):
    draws = random.Random(f"{seed} {middle}")
    return [middle * (1 + spread * draws.uniform(-1, 1)) for _ in range(turns)]


class Answers(unittest.TestCase):
    """The sentences below the tables, from figures that are made up here. They need neither torch nor NumPy."""

    def test_progressive(self):
        names = ["base", "+ workers", "+ more", "tokmap"]
        slow, fast = around(100), around(300)
        rates = (slow, fast, around(301), around(900)), [around(100, seed=i) for i in range(4)], (fast, slow, slow,
                                                                                                around(150))
        gained, same, lost = call(*[("tables.progressive", "answer", [repr(names), repr(dict(zip(names, each)))])
                                    for each in rates])
        self.assertIn("gained over the row before: + workers;", gained)
        self.assertRegex(gained, r"tokmap beside that row: (2\.9|3|3\.0)\d? \(")
        self.assertIn("No step gained", same)
        self.assertIn("tokmap beside that row: not distinguishable", same)
        self.assertIn("No step gained", lost)
        self.assertIn("no row of torch is faster than base", lost)
        self.assertRegex(lost, r"tokmap beside that row: 0\.\d+ \(")


class InAnotherPython(unittest.TestCase):
    """The way from __main__.py to itself in another Python."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="a folder ")
        self.addCleanup(self.folder.cleanup)

    def compare(self, table, venv, *more):
        done = subprocess.run(
            [sys.executable, PEERS, table, "--bin", write_tokens(self.folder.name), "--seq-len", "64", "--rows", "4",
             "--venv", venv, "--offline", "--tokmap", TOKMAP, "--repeats", "2", "--seconds", "0.02", *more],
            capture_output=True, text=True, env=environment(self.folder.name))
        self.assertEqual(done.returncode, 0, done.stderr)
        return Lines(self, done.stdout)

    @needs("numpy", "torch")
    def test_lines_come_back(self):
        found = self.compare("overlap", os.path.join(self.folder.name, "no venv"))
        self.assertEqual(len(found.answers), 1)
        self.assertTrue(found.absent or found.rows)
        self.assertNotIn(("overlap", "torch"), found.absent)

    @needs("numpy", "torch", "zstandard", "array_record")
    def test_values_of_a_teacher(self):
        found = self.compare("values", os.path.join(self.folder.name, "no venv"))
        self.assertEqual(found.names("values"), ["tokmap", "Megatron-LM", "MaxText"])
        self.assertEqual({row: verdict for (_, row), (verdict, *_) in found.equal.items()},
                         {"Megatron-LM": "yes", "MaxText": "yes"})
        self.assertEqual({len(values) for values in found.rows.values()}, {2})

    def test_a_python_without_torch(self):
        """Isolated and without its packages: `import torch` fails in it."""
        python = os.path.join(self.folder.name, "venv", "bin", "python")
        os.makedirs(os.path.dirname(python))
        with open(python, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexec '{sys.executable}' -S -E -B \"$@\"\n")
        os.chmod(python, stat.S_IRWXU)
        found = self.compare("pin", os.path.join(self.folder.name, "venv"))
        self.assertEqual(list(found.absent), [("pin", "torch")])
        self.assertIn("torch cannot be imported", found.absent["pin", "torch"])
        self.assertEqual((len(found.answers), found.rows), (1, {}))


# What a fault does to a cell of the fault matrix: the file of tokens changes after a system has made its copy of it.
CHANGE_FILE = """
import os, sys
sys.path.insert(0, sys.argv[1])
from systems import _common
from tokens import Tokens
path, folder = sys.argv[2], sys.argv[3]
for time, key in enumerate((None, "cell"), 1):
    tokens = Tokens(path, 2, 100, 8, 2, folder, key=key)
    made = _common.convert(tokens, folder, lambda new: open(os.path.join(new, "tokens"), "wb").close())
    with open(path, "r+b") as file:
        file.write(b"!")
    os.utime(path, ns=(time, time))
    print(os.path.exists(os.path.join(_common.place(Tokens.from_json(tokens.to_json()), folder), "tokens")))
"""


class Copies(unittest.TestCase):
    def test_a_copy_with_a_key_is_found_after_its_file_changed(self):
        """A folder that is kept for other files must not give an old copy; the folder of one cell must."""
        with tempfile.TemporaryDirectory(prefix="a folder ") as folder:
            path = os.path.join(folder, "tokens.bin")
            with open(path, "wb") as file:
                file.write(bytes(200))
            copies = os.path.join(folder, "copies")
            done = subprocess.run([sys.executable, "-B", "-c", CHANGE_FILE, PEERS, path, copies],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.stdout.split(), done.stderr), (["False", "True"], ""))


if __name__ == "__main__":
    unittest.main()
