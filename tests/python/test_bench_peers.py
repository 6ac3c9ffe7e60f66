"""bench/peers/python_loader.py, whose figures are in bench/RESULTS.md: it runs, prints each of its figures, measures the
same rows as its peers, and leaves nothing behind."""
import os
import re
import runpy
import subprocess
import sys
import tempfile
import unittest

import tokmap
from support import TOKMAP, TOP, importable, needs

SCRIPT = os.path.join(TOP, "bench", "peers", "python_loader.py")
FIGURE = re.compile(r"^(.*\S) +(-?\d+\.\d{3}) (ms|us|bytes|rows/s|x)\b", re.MULTILINE)


class PythonLoader(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="a folder ")
        text = os.path.join(cls.folder.name, "text.txt")
        with open(text, "w", encoding="ascii") as file:
            file.write("".join(f"line {i} of a text\n" for i in range(20000)))
        cls.data = os.path.join(cls.folder.name, "web")
        subprocess.run([TOKMAP, "pack", "-q", "-o", cls.data, text], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_prints_every_figure(self):
        temporary = os.path.join(self.folder.name, "temporary")
        os.mkdir(temporary)
        done = subprocess.run([sys.executable, SCRIPT, self.data, "--seconds", "0.02"], capture_output=True, text=True,
                              env={**os.environ, "TMPDIR": temporary})
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = {what: (float(value), unit) for what, value, unit in FIGURE.findall(done.stdout)}
        wanted = ["import tokmap, wall", "pickle of a run", "pickle of a map-style dataset",
                  "tokmap_loader_next() in C, 8 rows of 2048, int64", "loader.next(), dlpack: what Python adds"]
        if importable("numpy") is None:
            wanted.append("loader.next(out=static), numpy: what Python adds")
        if importable("torch") is None and importable("numpy") is None:
            wanted += ["loader.next(), torch: what Python adds",
                       "DataLoader, batches of 64 rows of 2048: tokmap Dataset.__getitems__, collate_fn=tokmap.collate",
                       "DataLoader, batches of 64 rows of 2048: NumPy memmap, whole batches"]
        for what in wanted:
            self.assertIn(what, figures, done.stdout)
        self.assertGreater(figures["import tokmap, wall"][0], 0)
        self.assertLess(figures["pickle of a run"][0], 4096)
        self.assertEqual(os.listdir(temporary), [])

    def test_wrong_data(self):
        done = subprocess.run([sys.executable, SCRIPT, os.path.join(self.folder.name, "nowhere")], capture_output=True,
                              text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("nowhere", done.stderr)

    @needs("numpy", "torch")
    def test_peers_read_the_same_rows(self):
        import numpy
        import torch
        peers = runpy.run_path(SCRIPT)
        path = os.path.join(self.folder.name, "sequential.run")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"seq_len {peers['SEQ']}\nbatch 1\norder sequential\nsource web web\npasses 1\n")
        ours = tokmap.Run(path).dataset(dtype=torch.int64)
        rows = peers["MemmapRows"](self.data + ".bin", torch, numpy)
        indices = [0, len(rows) - 1, 17]
        for kind in "MemmapBatches", "MemmapViews":
            inputs, targets = peers[kind](self.data + ".bin", torch, numpy).__getitems__(indices)
            for k, i in enumerate(indices):
                self.assertTrue(torch.equal(inputs[k], rows[i][0]) and torch.equal(targets[k], rows[i][1]))
        self.assertEqual(len(ours), len(rows))
        for i in indices:
            row = ours[i]
            self.assertTrue(torch.equal(row["inputs"], rows[i][0]), i)
            self.assertTrue(torch.equal(row["targets"], rows[i][1]), i)


if __name__ == "__main__":
    unittest.main()
