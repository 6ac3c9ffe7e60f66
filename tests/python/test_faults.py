# SPDX-License-Identifier: MIT
"""The fault matrix of `tokmap-bench faults`."""
import array
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PEERS = os.path.join(TOP, "bench", "peers", "compare")
sys.path.insert(0, PEERS)

from faults import places  # noqa: E402
from faults.runner import kind_of, said  # noqa: E402

BUILD = os.environ.get("BUILD_DIR", os.path.join(TOP, "build"))
TOKMAP = ("tokmap", "tokmap, checked")
# What only a comparison with the data's hashes finds.
CONTENT = ("flipped bit", "swapped shard")
# By default the faults that take little time; TOKMAP_TEST_FAULTS=all injects all of them.
SHORT = ("flipped bit", "cut under the run", "swapped shard", "EIO", "full disk", "SIGKILL and resume")
LONG = (*SHORT, "cut before opening", "stale index", "short read", "stall", "other number of ranks", "slow rank")
ALL = os.environ.get("TOKMAP_TEST_FAULTS") == "all"
FAULTS = LONG if ALL else SHORT


def run(*arguments):
    """The lines of the script, as lists of fields."""
    command = [sys.executable, PEERS, *arguments, "--tokmap", os.path.join(BUILD, "bin", "tokmap"),
               "--package", os.path.join(TOP, "src", "python"), "--offline"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"exit status {done.returncode}: {done.stderr[-2000:]}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def wide(numbers):
    return array.array("q", numbers).tobytes()


class Places(unittest.TestCase):
    def test_every_row_tells_its_place(self):
        count = 50000
        data, reader = places.stream(count), places.Reader(count)
        for place in (0, 1, 2, 3, 4, 4 * places.DIGIT - 5, 4 * places.DIGIT + 3, count - 17):
            row = list(data[place:place + 17])
            self.assertEqual(reader.name(wide(row[:-1]), wide(row[1:])), place)

    def test_a_wrong_token_is_seen_wherever_it_is(self):
        data, reader = places.stream(1000), places.Reader(1000)
        for at in range(17):
            row = list(data[100:117])
            row[at] ^= 1
            self.assertIsInstance(reader.name(wide(row[:-1]), wide(row[1:])), str)

    def test_targets_that_are_not_the_inputs_moved_by_one_are_garbage(self):
        data, reader = places.stream(1000), places.Reader(1000)
        row = list(data[100:116])
        self.assertIsInstance(reader.name(wide(row), wide(row)), str)
        self.assertIsInstance(reader.name(wide([-1] + row[1:]), wide(row[1:] + [0])), str)

    def test_other_data_has_no_place(self):
        other, reader = list(places.stream(1000, places.OTHER)), places.Reader(1000)
        self.assertIsInstance(reader.name(wide(other[:16]), wide(other[1:17])), str)

    def test_rows_are_counted(self):
        self.assertEqual(places.compare([1, 2, 3], [3, 1, 2]), (0, 0, 0, 0))
        self.assertEqual(places.compare([1, 2, 3], [1, 1, 1]), (2, 2, 0, 0))
        self.assertEqual(places.compare([1, 2, 3], [1, 2, "x"]), (1, 0, 1, 0))
        self.assertEqual(places.compare([1, 2, 3], [1, 2, 7]), (1, 0, 0, 1))
        self.assertEqual(places.compare([1, "x"], ["x", 1]), (0, 0, 0, 0))  # a row that mixes documents


class Errors(unittest.TestCase):
    def test_the_word_of_an_error(self):
        for text, word in (("a.bin: cannot read (byte 17)", "place"), ("a.bin is empty", "status"),
                           ("mmap length is greater than file size", "exception"),
                           ("index 7 is out of bounds", "exception"), ("got 7 of a.binary", "exception")):
            self.assertEqual(kind_of({"text": text}, {"a.bin"}), word)

    def test_folders_are_left_out(self):
        error = {"error": "OSError", "when": "open", "text": "No such file: '/tmp/x/y/a.bin'"}
        self.assertEqual(said(error), "OSError in open: No such file: 'a.bin'")
        error["text"] = "/tmp/a folder/x/a.bin: cut"
        self.assertEqual(said(error, ["/tmp/a folder", "/tmp/a folder/x"]), "OSError in open: a.bin: cut")


class Matrix(unittest.TestCase):
    """tokmap's columns, for real. Other systems are absent if their packages are, and then each cell says so."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.lines = run("faults", "--stall", "1", "--peers", "memmap", "--work", cls.folder, "--faults", ",".join(FAULTS))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @staticmethod
    def cells(lines):
        return {(line[2], line[1]): (line[3], line[4]) for line in lines if line[0] == "cell"}

    def note(self):
        return next(line[1] for line in self.lines if line[0] == "note")

    def has_fuse(self):
        return "FUSE: it reaches" in self.note()

    def test_no_cell_is_empty(self):
        cells = self.cells(self.lines)
        systems = {system for system, _ in cells}
        self.assertLessEqual({*TOKMAP, "np.memmap"}, systems)
        self.assertEqual(len(cells), len(systems) * len(FAULTS))
        for word, text in cells.values():
            self.assertIn(word, ("place", "status", "exception", "crash", "hang", "garbage", "lost", "repeated", "none",
                                 "unreachable", "absent"))
            self.assertGreater(len(text), 10)

    def test_tokmap_has_statuses_and_zeros(self):
        for (system, fault), (word, text) in self.cells(self.lines).items():
            if system not in TOKMAP:
                continue
            with self.subTest(system=system, fault=fault, text=text):
                self.assertIn(word, ("place", "none", "unreachable"))

    def test_faults_strike(self):
        cells = self.cells(self.lines)
        strike = set(FAULTS) & {"flipped bit", "cut before opening", "cut under the run", "swapped shard", "stale index"}
        for fault in strike | (set(FAULTS) & {"full disk"} if self.has_fuse() else set()):
            self.assertEqual(cells["tokmap, checked", fault][0], "place", fault)
        for fault in CONTENT:
            self.assertEqual(cells["tokmap", fault][0], "place", fault)
            self.assertIn("do not match their hash", cells["tokmap", fault][1])
        if cells["np.memmap", "flipped bit"][0] != "absent":
            self.assertRegex(cells["np.memmap", "flipped bit"][1], "[12] rows? of 1,536")  # a target, too

    def test_fuse_strikes_where_it_is(self):
        if not self.has_fuse():
            self.skipTest(self.note())
        cells = self.cells(self.lines)
        for system in TOKMAP:
            self.assertIn("Input/output error", cells[system, "EIO"][1])
        if not ALL:
            return
        self.assertRegex(cells["tokmap, checked", "stall"][1], "IoError.*longer than deadline")
        self.assertRegex(cells["tokmap", "stall"][1], r"slowest next\(\) took (0\.[5-9]|1|2)")

    def test_nothing_is_left(self):
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
