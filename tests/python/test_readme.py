# SPDX-License-Identifier: MIT
"""Runs every Python program in the two READMEs. The small GPT is killed and must resume with identical losses."""
import math
import os
import re
import signal
import subprocess
import sys
import unittest

import tokmap
from support import TOKMAP, TOP, importable, needs, new_folder

RUN = "seq_len 64\nbatch 8\nseed 5\nsource web data/web\nsteps 60\n"


def examples():
    """The Python blocks of both READMEs, by name."""
    found, blocks = {}, 0
    for path in (os.path.join("src", "python", "README.md"), "README.md"):
        with open(os.path.join(TOP, path), encoding="utf-8") as file:
            text = file.read()
        found.update(re.findall(r"<!-- example: (\w+) -->\n```python\n(.*?)^```$", text, flags=re.S | re.M))
        blocks += text.count("```python")
    assert len(found) == blocks, "a Python block has no name, or two blocks have the same name"
    return found


class Readme(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """The corpus is tokmap's own source text, which is always available."""
        cls.folder = new_folder()
        cls.programs = examples()
        os.mkdir(os.path.join(cls.folder, "data"))
        subprocess.run([TOKMAP, "pack", "--eod", "-o", os.path.join(cls.folder, "data", "web"),
                        os.path.join(TOP, "include"), os.path.join(TOP, "src", "run"), os.path.join(TOP, "src", "order")],
                       check=True, stdout=subprocess.DEVNULL)
        subprocess.run([TOKMAP, "pack", "--eod", "-o", os.path.join(cls.folder, "data", "wiki"),
                        os.path.join(TOP, "src", "format", "FORMAT.md")], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([TOKMAP, "pack", "-q", "--eod", "--split", "train=0.9,val=0.1", "-o",
                        os.path.join(cls.folder, "data", "books"), os.path.join(TOP, "include"),
                        os.path.join(TOP, "src", "run"), os.path.join(TOP, "src", "order")], check=True)
        with open(os.path.join(cls.folder, "train.run"), "w", encoding="utf-8") as file:
            file.write(RUN)
        for name, program in cls.programs.items():
            with open(os.path.join(cls.folder, f"example_{name}.py"), "w", encoding="utf-8") as file:
                file.write(program)

    def start(self, name, *arguments):
        return subprocess.Popen([sys.executable, f"example_{name}.py", *arguments], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""})

    def finish(self, program, status=0):
        said, errors = program.communicate(timeout=600)
        self.assertEqual(program.returncode, status, f"{said}\n{errors}")
        return said

    def out(self, name):
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        return path

    def test_text(self):
        said = self.finish(self.start("text"))
        self.assertRegex(said, r"^bytes 257 [0-9a-f]{32} 256\n")
        self.assertGreater(len(said), 100)

    @needs("torch")
    def test_batches(self):
        self.assertIn("256", self.finish(self.start("batches")))

    def test_pack(self):
        self.assertRegex(self.finish(self.start("pack")), r"^1000 12890 [0-9a-f]{32}$")

    @needs("ray", "ray.data", "pyarrow")
    def test_ray(self):
        self.assertRegex(self.finish(self.start("ray")), r"(?m)^1000 12890 [0-9a-f]{32}$")

    @needs("torch")
    def test_first(self):
        self.assertIn("in 6 batches, ", self.finish(self.start("first")))

    def test_evaluation(self):
        self.assertRegex(self.finish(self.start("evaluation")), r"evaluated \d+ rows twice")

    @needs("torch")
    def test_mixture(self):
        """Its shares, its phases, and its perplexity, which learning must reduce."""
        said = self.finish(self.start("mixture"))
        self.assertIn("phase    12 web 1 wiki 1 batch 16\n", said)
        self.assertIn("from step 0, 8 rows a step: web 80%, wiki 20%\nfrom step 12, 16 rows a step: web 50%, wiki 50%\n",
                      said)
        rows = {name: int(count) for name, count in re.findall(r"^(\w+): (\d+) rows, \S+ epochs$", said, flags=re.M)}
        self.assertEqual(sum(rows.values()), 12 * 8 + 8 * 16)
        self.assertAlmostEqual(rows["wiki"], 12 * 8 * 0.2 + 8 * 8, delta=1)
        before, after = map(float, re.search(r"perplexity (\S+) before, (\S+) after", said).groups())
        self.assertLess(after, 0.9 * before)

    def test_ahead(self):
        said = self.finish(self.start("ahead")).splitlines()
        self.assertEqual(said[:2], ["raw sampled", "shards full 90 documents, 450 tokens count"])
        self.assertEqual(said[2], "[0, 1, 2, 3, 50256, 1, 2, 3, 4, 50256] [1, 2, 3]")

    def test_watching(self):
        said = self.finish(self.start("watching"))
        self.assertRegex(said, r"web \d+ rows, \d+ tokens, epoch \d+\n")
        self.assertRegex(said.splitlines()[-1], r'^tokmap_loader_\w+\{.*rank="0".*\} \S+$')
        self.assertIn('job="train"', said)
        traced = os.path.getsize(os.path.join(self.folder, "rank0.trace"))
        self.assertGreaterEqual(traced, 12 * 16)

    def test_documents(self):
        said = self.finish(self.start("documents"))
        self.assertRegex(said, r"\d+ documents; the longest has \d+ tokens, from .*\n\d+ bytes verified")

    def test_own(self):
        self.assertEqual(self.finish(self.start("own")), "https://example.org/17\n")

    def test_writing(self):
        said = self.finish(self.start("writing")).splitlines()
        self.assertIn("which is not in the vocabulary of 50257 ids", said[0])
        self.assertEqual(said[1], "True [[464, 3290, 318, 50256], [1, 2, 50256], [3, 4, 5, 50256]] "
                         "{'url': 'https://example.org', 'score': 0.5} Origin(path='notes.jsonl', record=2)")

    @needs("torch")
    def test_top(self):
        self.assertEqual(len(self.finish(self.start("top")).splitlines()), 60)

    @needs("torch")
    def test_dataset(self):
        rows = len(tokmap.Run(os.path.join(self.folder, "train.run")).dataset(framework="dlpack"))
        self.assertIn(f"{rows} rows", self.finish(self.start("dataset")))

    @needs("torch")
    def test_torchtitan(self):
        reason = importable("torch.distributed.checkpoint")
        if reason or not hasattr(sys.modules["torch.distributed.checkpoint"], "save"):
            self.skipTest(f"torch has no distributed checkpoint of this form: {reason}")
        self.assertIn("resumed at step 3", self.finish(self.start("torchtitan", self.out("titan"))))

    @needs("torch", "lightning")
    def test_lightning(self):
        self.assertIn("lightning: resumed at step 5", self.finish(self.start("lightning", self.out("fit"), "1")))

    @needs("torch", "transformers", "accelerate")
    def test_huggingface(self):
        self.assertIn("losses equal, at step 8", self.finish(self.start("huggingface", self.out("trainer"))))

    @needs("torch")
    def test_a_gpt_that_is_killed(self):
        undisturbed = self.losses(self.finish(self.start("nanogpt", "train.run", self.out("whole"))))
        self.assertEqual(sorted(undisturbed), list(range(60)))
        first, last = (sum(undisturbed[step] for step in part) / 10 for part in (range(10), range(50, 60)))
        self.assertLess(last, 0.75 * first)
        self.assertTrue(all(math.isfinite(loss) for loss in undisturbed.values()))

        out = self.out("killed")
        lines, kills = [], 0
        for stop in (7, 26, 48, None):
            program = self.start("nanogpt", "train.run", out)
            for line in program.stdout:
                lines.append(line)
                if stop is not None and int(line.split()[1]) >= stop:
                    program.send_signal(signal.SIGKILL)
                    kills += 1
                    break
            program.communicate(timeout=600)
            self.assertEqual(program.returncode, 0 if stop is None else -signal.SIGKILL)
        self.assertEqual(kills, 3)
        steps = [int(line.split()[1]) for line in lines if line.endswith("\n")]
        self.assertGreater(len(steps), 60)  # steps after the last checkpoint ran twice
        self.assertEqual(sorted(set(steps)), list(range(60)))
        for line in lines:
            self.assertEqual(float.fromhex(line.split()[3]), undisturbed[int(line.split()[1])], line)

    @staticmethod
    def losses(said):
        return {int(line.split()[1]): float.fromhex(line.split()[3]) for line in said.splitlines()}


if __name__ == "__main__":
    unittest.main()
