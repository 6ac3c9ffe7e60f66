# SPDX-License-Identifier: MIT
"""bench/peers/compare, the scripts of `tokmap-bench compare`: their statistics claim no difference where there is none,
and a system that delivers other tokens, crashes, or cannot be had is a row that says so."""
import importlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import TOKMAP, TOP, importable, needs, pack

COMPARE = os.path.join(TOP, "bench", "peers", "compare")

SYSTEMS = {
    "absent": 'from systems.tokmap import *\nfrom report import Absent\nNAME, ROWS = "absent", {"absent": {}}\n'
              'def open(*_, **__):\n    raise Absent("it is not here,\\nnor there")\n',
    "imports": 'from systems.tokmap import *\nNAME, ROWS = "imports", {"imports": {}}\n'
               'def about():\n    import no_such_module\n',
    # Like litdata, it empties a folder that anyone may have where temporary files are.
    "again": 'import os, shutil, tempfile\nfrom systems.tokmap import *\nNAME, ROWS = "again", {"tokmap again": {}}\n'
             'shutil.rmtree(os.path.join(tempfile.gettempdir(), "data"), ignore_errors=True)\n'
             'os.makedirs(os.path.join(tempfile.gettempdir(), "data", "of again"), exist_ok=True)\n',
    # One token of the batch after the third differs.
    "wrong": """
import array
from systems import tokmap
from systems.tokmap import PACKAGES, about
NAME, ROWS, ORDERS = "wrong", {"wrong": {}}, ("sequential",)
def open(*arguments, **options):
    return Wrong(*arguments, **options)
class Wrong:
    def __init__(self, tokens, *arguments, **options):
        self.loader, self.calls, self.tokens = tokmap.open(tokens, *arguments, **options), 0, tokens
    def next(self):
        self.calls += 1
        arrays = []
        for one in self.loader.next():
            view = one.memoryview() if hasattr(one, "memoryview") else memoryview(one)
            flat = array.array("q", view.tobytes())
            if self.calls == 4:
                flat[self.tokens.seq_len] += 1
            arrays.append(memoryview(flat).cast("B").cast("q", view.shape))
        return arrays
    def state(self):
        return None
    def close(self):
        self.loader.close()
""",
    # Targets that repeat the inputs.
    "shifted": 'from systems.wrong import *\nfrom systems import wrong\nNAME, ROWS, ORDERS = "shifted", {"shifted": {}}, ("own",)\n'
               'class Shifted(wrong.Wrong):\n    def next(self):\n        one = super().next()[0]\n'
               '        return one, one\ndef open(*arguments, **options):\n    return Shifted(*arguments, **options)\n',
    "crashes": """
import os, sys
from systems.tokmap import *
from systems import tokmap
NAME, ROWS = "crashes", {"crashes": {}}
class Crashes:
    def __init__(self, loader):
        self.loader, self.calls = loader, 0
        self.state, self.close = loader.state, loader.close
    def next(self):
        self.calls += 1
        if self.calls == 20:
            print("the last words", file=sys.stderr, flush=True)
            os.abort()
        return self.loader.next()
def open(*arguments, **options):
    return Crashes(tokmap.open(*arguments, **options))
""",
    "raises": 'from systems.tokmap import *\nNAME, ROWS = "raises", {"raises": {}}\n'
              'def open(*_, **__):\n    raise ValueError("a value")\n',
}


class Measure(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, COMPARE)
        cls.measure = importlib.import_module("measure")

    @classmethod
    def tearDownClass(cls):
        sys.path.remove(COMPARE)

    def turns(self, generator, ratio, count=5):
        """Two rows whose turns share the machine's noise and have some of their own."""
        shared = [generator.lognormvariate(0, 0.3) for _ in range(count)]
        one = [ratio * common * generator.lognormvariate(0, 0.03) for common in shared]
        return self.measure.Ratio(one, [common * generator.lognormvariate(0, 0.03) for common in shared])

    def test_no_difference_is_claimed_where_there_is_none(self):
        generator = random.Random(5)
        claimed = sum(self.turns(generator, 1).distinguishable for _ in range(2000))
        self.assertLess(claimed, 60)  # 1% of them are expected to be wrong

    def test_a_difference_is_seen_in_shared_noise(self):
        generator = random.Random(6)
        found = [self.turns(generator, 1.3) for _ in range(500)]
        self.assertGreater(sum(one.distinguishable for one in found), 490)
        self.assertTrue(all(one.low <= 1.45 and one.high >= 1.15 for one in found))

    def test_one_turn_says_nothing(self):
        self.assertFalse(self.measure.Ratio([100.0], [1.0]).distinguishable)
        self.assertFalse(self.measure.Ratio([], []).distinguishable)
        # A difference of 1%, however certain, is not one that matters.
        self.assertFalse(self.measure.Ratio([1.01] * 9, [1.0] * 9).distinguishable)

    def test_turns_run_backwards_every_second_time(self):
        self.assertEqual(list(self.measure.turns("ab", 3)),
                         [(0, "a"), (0, "b"), (1, "b"), (1, "a"), (2, "a"), (2, "b")])

    def test_percentiles(self):
        found = self.measure.percentiles([1000 * n for n in range(1000, 0, -1)])
        self.assertEqual(found, {"p50": 500, "p99": 990, "p999": 999, "max": 1000})

    def test_the_page_cache_is_asked(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "file")
            with open(path, "wb") as file:
                file.write(b"x" * 5000)
            self.measure.warm([folder])
            self.assertEqual(self.measure.resident_bytes(path), 5000)
            self.assertIn(self.measure.evict([folder]), (0.0, 1.0))  # 1 on a file system in memory


class OurTensors(unittest.TestCase):
    """The row of tokmap's loader with new tensors, in this process."""

    @needs("numpy", "torch")
    def test_it_delivers_every_list_and_continues(self):
        sys.path.insert(0, COMPARE)
        self.addCleanup(sys.path.remove, COMPARE)
        measure, tokens = importlib.import_module("measure"), importlib.import_module("tokens")
        system = importlib.import_module("systems.tokmap_dataset")
        with tempfile.TemporaryDirectory() as work:
            data = pack(work, documents=200)
            size = os.path.getsize(data + ".bin") // 2
            given = tokens.Tokens(data + ".bin", 2, size, 64, 4, work, data)
            batches = given.windows() // 4 + 3  # into the second epoch
            for order in system.ORDERS:
                loader = system.open(given, work, order=order)
                sums = []
                for _ in range(batches):
                    sums += measure.row_sums(*loader.next(), 64)
                state = loader.state()
                later = measure.row_sums(*loader.next(), 64)
                loader.close()
                if order == "sequential":
                    self.assertEqual(sums[:16], given.row_sums(given.first_windows(order, 16)))
                loader = system.open(given, work, order=order, resume=state)
                self.assertEqual(measure.row_sums(*loader.next(), 64), later)
                loader.close()


class Scripts(unittest.TestCase):
    """The table of loaders, with systems of our own beside those of the tree."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="a folder ")
        cls.compare = os.path.join(cls.folder.name, "compare")
        shutil.copytree(COMPARE, cls.compare, ignore=shutil.ignore_patterns("__pycache__"))
        for name, text in SYSTEMS.items():
            with open(os.path.join(cls.compare, "systems", f"{name}.py"), "w", encoding="ascii") as file:
                file.write(text)
        cls.data = pack(cls.folder.name, documents=800)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_table(self, peers, repeats=1, seconds=0.01, status=0, more=()):
        temporary = tempfile.mkdtemp(dir=self.folder.name)
        os.makedirs(os.path.join(temporary, "data", "of a user"))
        done = subprocess.run(
            [sys.executable, self.compare, "loaders", "--data", self.data, "--bin", self.data + ".bin", "--seq-len",
             "64", "--rows", "4", "--repeats", str(repeats), "--seconds", str(seconds), "--peers", peers, "--offline",
             "--venv", os.path.join(self.folder.name, "nowhere"), "--package", os.path.join(TOP, "src", "python"),
             "--tokmap", TOKMAP, *more],
            capture_output=True, text=True, check=False, env={**os.environ, "TMPDIR": temporary})
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(os.listdir(temporary), ["data"])
        self.assertEqual(os.listdir(os.path.join(temporary, "data")), ["of a user"])
        return [line.split("\t") for line in done.stdout.splitlines()]

    @staticmethod
    def of(lines, word, row=None):
        return [line[2:] for line in lines if line[0] == word and row in (None, line[2])]

    def test_identical_loaders_are_not_distinguished(self):
        """The same loader under two names. By chance, one of a hundred runs finds a difference, and more of them do on
        a machine that is busy with other work, so it takes three in a row to fail."""
        for _ in range(3):
            lines = self.run_table("again", repeats=5, seconds=0.05)
            answer = [line[1] for line in lines if line[0] == "answer"][-1]
            if answer.startswith("From memory, tokmap (") and "cannot be distinguished" in answer.split("From st")[0]:
                break
        else:
            self.fail(answer)
        sums = {line[0]: line[2].split("checksum ")[1].split(";")[0] for line in self.of(lines, "equal")}
        self.assertEqual(sums["tokmap"], sums["tokmap again"])
        rates = {line[0]: line[4].split(",") for line in self.of(lines, "row") if line[1] == "tokens_per_s"}
        self.assertEqual({label: len(values) for label, values in rates.items()}, {"tokmap": 5, "tokmap again": 5})

    def test_rows_that_fail(self):
        lines = self.run_table("absent,imports,wrong,shifted,crashes,raises")
        absent = {line[0]: line[1] for line in self.of(lines, "absent")}
        self.assertEqual(absent["absent"], "it is not here, nor there")
        self.assertIn("no_such_module", absent["imports"])
        self.assertIn("it failed while", absent["crashes"])
        self.assertIn("ended by signal SIGABRT", absent["crashes"])
        self.assertIn("the last words", absent["crashes"])
        self.assertIn("ValueError: a value", absent["raises"])
        self.assertEqual(self.of(lines, "equal", "wrong"),
                         [["wrong", "no", "order sequential: batch 3, row 1: other inputs than the reference"]])
        self.assertEqual(self.of(lines, "equal", "shifted")[0][1], "no")
        self.assertIn("rows the targets are not the next tokens", self.of(lines, "equal", "shifted")[0][2])
        # What fails does not take others with it.
        self.assertEqual(self.of(lines, "equal", "tokmap")[0][1], "yes")
        self.assertTrue([line for line in self.of(lines, "row", "tokmap") if line[1] == "tokens_per_s"])
        self.assertFalse(self.of(lines, "row", "crashes"))

    def test_memmap(self):
        lines = self.run_table("memmap")
        if importable("numpy") is not None:
            self.assertEqual([line[0] for line in self.of(lines, "absent")], ["np.memmap", "np.memmap, MADV_RANDOM"])
            return
        for row in "np.memmap", "np.memmap, MADV_RANDOM":
            self.assertEqual(self.of(lines, "equal", row)[0][1], "yes")
            metrics = {line[1]: line[4] for line in self.of(lines, "row", row)}
            self.assertEqual(metrics["resume_other_rows"], "0.0")
            self.assertGreater(float(metrics["memory_mib"]), 1)

    def test_data_that_is_too_short(self):
        self.assertEqual(self.run_table("memmap", status=1, more=["--count", "100"]), [])

    def test_tables_need_no_package(self):
        """The parent's modules import the standard library only, so that they run before an environment exists."""
        code = ("import sys; sys.path.insert(0, sys.argv[1]); import driver, measure, setup, tokens; "
                "from tables import loaders; import json; print(json.dumps(sorted(sys.modules)))")
        done = subprocess.run([sys.executable, "-S", "-c", code, COMPARE], capture_output=True, text=True, check=True)
        self.assertFalse({"numpy", "torch"} & set(json.loads(done.stdout)))

    def test_an_environment_without_pip(self):
        """Where Debian's Python lacks python3-venv, the message names it, and installing it is enough: what the first
        attempt has left is completed."""
        script = """
import os, sys
sys.path.insert(0, sys.argv[1])
import setup

class Options:
    venv, offline = "venv", False

class Report:
    def progress(self, *_):
        pass

    def say(self, text):
        said.append(text)

said = []
sys.executable = os.path.abspath("python")
environment = setup.Setup(Options, Report())
for has_pip in False, True:
    with open("python", "w") as file:
        file.write(f'''#!/bin/sh
mkdir -p "$3/bin" && echo "#!/bin/sh
exit {int(not has_pip)}" >"$3/bin/python" && chmod +x "$3/bin/python"
echo "The virtual environment was not created, because ensurepip is not available."
echo "Failing command: $3"
exit {int(not has_pip)}
''')
    os.chmod("python", 0o755)
    try:
        print(environment.python_with(["numpy"]))
    except setup.Absent as problem:
        print(problem)
print(len(said), said[0])
"""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-c", script, COMPARE], capture_output=True, text=True, check=True,
                                  cwd=folder)
        first, second, said = done.stdout.splitlines()
        self.assertIn("cannot be made in venv: this Python has no pip", first)
        self.assertIn("apt-get install python3-venv", first)
        self.assertEqual(second, "venv/bin/python")
        self.assertRegex(said, "^1 what is missing will be downloaded and installed with pip into venv: .*--peers NAMES")


if __name__ == "__main__":
    unittest.main()
