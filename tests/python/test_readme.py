# SPDX-License-Identifier: MIT
"""Runs every program of README and of the pages that it lists, Python and shell, in a folder that README's commands have
made. The small GPT is killed and must resume with identical losses."""
import json
import math
import os
import re
import signal
import subprocess
import sys
import unittest

import tokmap
from support import TOKMAP, TOP, importable, needs, new_folder

sys.path.append(os.path.join(TOP, "tests", "remote"))
from object_server import ObjectServer


def pages():
    """README and the pages: the texts of all Markdown files of the product that have an example, by path."""
    paths, found = [os.path.join(TOP, "README.md")], {}
    for top in ("src", "tokenize_tools"):
        for folder, _, names in os.walk(os.path.join(TOP, top)):
            paths += [os.path.join(folder, name) for name in names if name.endswith(".md")]
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if "<!-- example: " in text:
            found[os.path.relpath(path, TOP)] = text
    return found


def examples(kind="python"):
    """The blocks of one kind, "python" or "sh", of all pages, by name."""
    found, blocks = {}, 0
    for text in pages().values():
        found.update(re.findall(r"<!-- example: (\w+) -->\n```" + kind + r"\n(.*?)^```$", text, flags=re.S | re.M))
        blocks += text.count(f"```{kind}\n")
    assert len(found) == blocks > 1, f"a block of {kind} has no name, or two blocks have the same name"
    return found


def run_shell(folder, *names):
    """Types shell examples, with tokmap in the PATH. Returns what they print, standard error included."""
    said = ""
    for name in names:
        ran = subprocess.run(["sh", "-euc", examples("sh")[name]], cwd=folder, text=True, timeout=600, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT,
                             env={**os.environ, "PATH": f"{os.path.dirname(TOKMAP)}:{os.environ['PATH']}"})
        assert ran.returncode == 0, f"{name}: {ran.stdout}"
        said += ran.stdout
    return said


def prepare(folder):
    """What README's commands make, of the text of the project, which is always available. Returns what they print. The
    programs are beside it."""
    for name in ("README.md", "include", "src", "tokenize_tools"):
        os.symlink(os.path.join(TOP, name), os.path.join(folder, name))
    said = run_shell(folder, "start", "run")
    for name, program in examples().items():
        with open(os.path.join(folder, f"example_{name}.py"), "w", encoding="utf-8") as file:
            file.write(program)
    return said


class Readme(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()
        cls.prepared = prepare(cls.folder)

    def start(self, name, *arguments, **environment):
        return subprocess.Popen([sys.executable, f"example_{name}.py", *arguments], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "",
                                     "PATH": f"{os.path.dirname(TOKMAP)}:{os.environ['PATH']}", **environment})

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

    def test_start(self):
        """README's own commands: the run is audited, and a row is shown with its document and input file."""
        self.assertRegex(self.prepared, r"(?m)^ok     coverage  counted all 480 draws of 2 sources: each window appears once")
        self.assertRegex(self.prepared, r"(?m)^step 12 row 3: draw \d+, source \w+, epoch 0, window \d+: tokens \d+\.\.\d+$")
        self.assertRegex(self.prepared, r"(?m)^  document \d+, .*\.(md|h|c)\b")

    def test_clean(self):
        said = run_shell(self.folder, "clean")
        self.assertRegex(said, r"(?m)^input files: ")
        self.assertTrue(os.path.exists(os.path.join(self.folder, "data", "clean.val")))

    def test_filter(self):
        self.assertEqual(self.finish(self.start("filter")), "2 documents\n")

    def test_tasks(self):
        said = run_shell(self.folder, "tasks")
        self.assertIn("data/many: the output is complete, and no task works on it", said)
        self.assertRegex(said, r"(?m)^dataset +data/many$")

    def test_formats(self):
        run_shell(self.folder, "formats")
        with tokmap.Dataset(os.path.join(self.folder, "data", "prose.train")) as ds, \
                tokmap.Dataset(os.path.join(self.folder, "data", "back")) as back, \
                tokmap.Dataset(os.path.join(self.folder, "out", "prose")) as away:
            self.assertEqual(ds.info.content, back.info.content)
            self.assertEqual((ds.info.documents, "full"), (away.info.documents, away.info.identity))

    def test_spike(self):
        said = run_shell(self.folder, "spike")
        self.assertRegex(said, r"(?m)^step 33 row 5: draw \d+, source \w+, epoch 0, window \d+: ")
        # Which document this is changes with the project's text, and the run may not show it.
        rows = re.findall(r"(?m)^step \d+ row \d source prose epoch 0 window \d+ shows \d+ of \d+ tokens$", said)
        self.assertRegex(said, f"shown in {len(rows)} row")
        self.assertIn("skipped.run: 60 steps (last: 59), 1 skipped", said)
        with open(os.path.join(self.folder, "step33.jsonl"), encoding="utf-8") as file:
            self.assertEqual([json.loads(line)["row"] for line in file], list(range(8)))

    def test_exclude(self):
        said = run_shell(self.folder, "exclude")
        self.assertRegex(said, r"(?m)^tokmap show: the run shows [1-9]\d* of [1-9]\d* documents, \d+ times in steps \d+ to")
        self.assertIn("the run excludes all of them, and only steps before that were searched", said)
        self.assertRegex(said, r"(?m)^ok     excluded  from step 33 on, the pad id replaces [\d,]+ tokens? of \d+ documents?")
        said = self.finish(self.start("taken")).splitlines()
        self.assertRegex(said[0], r"^33 \w+ \d+ shown$")
        self.assertRegex(said[-1], r"^\d+ tokens are padding instead$")
        said = subprocess.run([TOKMAP, "replay", "taken.run", "--trace", "rank0.trace"], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, check=True).stdout
        self.assertIn("taken.run: the same: 41 steps", said)

    def test_located(self):
        said = self.finish(self.start("located")).splitlines()
        self.assertRegex(said[0], r"^0 (prose|code) \d+ \d+ Origin\(path='\S+', record=\d+\)$")
        self.assertRegex(said[-1], r"^\[(\(\d+, \d\)(, )?)*\(33, \d\)(, \(\d+, \d\))*\]$")

    def test_delivered(self):
        said = self.finish(self.start("delivered"))
        self.assertRegex(said, r"(?m)^ok     coverage ")
        self.assertRegex(said, r"the same: 60 steps, 480 rows")

    @needs("torch")
    def test_first(self):
        self.assertIn("in 6 batches, ", self.finish(self.start("first")))

    @needs("torch")
    def test_mixture(self):
        """Its shares, its phases, and its perplexity, which learning must reduce."""
        said = self.finish(self.start("mixture"))
        self.assertIn("phase    12 prose 1 code 1 batch 16\n", said)
        rows = {name: int(count) for name, count in re.findall(r"^(\w+): (\d+) rows, \S+ epochs, ", said, flags=re.M)}
        self.assertEqual(sum(rows.values()), 12 * 8 + 8 * 16)
        self.assertAlmostEqual(rows["code"], 12 * 8 * 0.2 + 8 * 8, delta=1)
        before, after = map(float, re.search(r"perplexity (\S+) before, (\S+) after", said).groups())
        self.assertLess(after, 0.9 * before)

    def test_balance(self):
        """Ranks wait for less."""
        said = self.finish(self.start("balance"))
        before, after = map(float, re.findall(r"(\S+) of the time of equal ranks; rows of the last call: \d+ \d+\n", said))
        self.assertTrue(1 <= after < before, said)

    def test_ahead(self):
        said = self.finish(self.start("ahead")).splitlines()
        self.assertEqual(said[:2], ["raw sampled", "shards full 90 documents, 450 tokens count"])
        self.assertEqual(said[2], "[0, 1, 2, 3, 50256, 1, 2, 3, 4, 50256] [1, 2, 3]")

    def test_watching(self):
        said = self.finish(self.start("watching"))
        self.assertRegex(said, r"prose \d+ rows, \d+ tokens, epoch \d+\n")
        self.assertRegex(said.splitlines()[-1], r'^tokmap_loader_\w+\{.*rank="0".*\} \S+$')
        self.assertIn('job="train"', said)
        traced = os.path.getsize(os.path.join(self.folder, "rank0.trace"))
        self.assertGreaterEqual(traced, 12 * 16)

    def test_prometheus(self):
        said = self.finish(self.start("prometheus"))
        self.assertRegex(said, r'(?m)^# TYPE tokmap_loader_\w+ counter$')
        self.assertRegex(said, r'(?m)^tokmap_\w+\{.*job="train".*\} \S+$')
        self.assertIn(" in 120 batches", said)

    def test_signals(self):
        self.assertRegex(self.finish(self.start("signals")), r"^saved: tokmap1 step=8 tokens=8192 past=")

    def test_documents(self):
        said = self.finish(self.start("documents"))
        self.assertRegex(said, r"\d+ documents; the longest has \d+ tokens, from .*\n\d+ bytes verified")

    def test_writing(self):
        said = self.finish(self.start("writing")).splitlines()
        self.assertIn("which is not in the vocabulary of 50257 ids", said[0])
        self.assertEqual(said[1], "True [[464, 3290, 318, 50256], [1, 2, 50256], [3, 4, 5, 50256]] "
                         "{'url': 'https://example.org', 'score': 0.5} Origin(path='notes.jsonl', record=2)")

    def test_pack_ids(self):
        self.assertEqual(self.finish(self.start("pack_ids")), "True 7\n")

    def test_chat(self):
        """The assistant's answers count, and the questions and the rest of the template do not."""
        said = run_shell(self.folder, "conversations")
        self.assertIn("\n\u27e74, of course<|im_end|>\u27e6\n", said)
        said = self.finish(self.start("chat"))
        self.assertEqual(said.count("<|im_start|>assistant\n"), 2)
        learned = int(re.search(r"tokens that are learned: (\d+) of 128", said).group(1))
        self.assertTrue(8 <= learned <= 32, said)
        if importable("torch") is None:
            losses = [float(line.split()[1]) for line in self.finish(self.start("finetune")).splitlines()]
            self.assertEqual(len(losses), 20)
            self.assertLess(losses[-1], 0.8 * losses[0])

    @needs("torch")
    def test_top(self):
        said = self.finish(self.start("top")).splitlines()
        self.assertEqual([line.split()[0] for line in said], [str(step) for step in range(40)])
        self.assertLess(float(said[-1].split()[1]), 0.8 * float(said[0].split()[1]))

    @needs("torch")
    def test_gpu(self):
        said = self.finish(self.start("gpu")).splitlines()
        self.assertEqual([line.split()[:2] for line in said[1:4]], [[str(step), "cpu"] for step in range(3)])

    @needs("torch")
    def test_dataset(self):
        rows = len(tokmap.Run(os.path.join(self.folder, "train.run")).dataset(framework="dlpack"))
        self.assertIn(f"{rows} rows", self.finish(self.start("dataset")))

    @needs("numpy")
    def test_storage(self):
        """From a server of objects, and a run that a copy on the disk continues."""
        said = subprocess.run([TOKMAP, "encode", "http://127.0.0.1:1/x"], text=True, stderr=subprocess.PIPE,
                              env={**os.environ, "AWS_MAX_ATTEMPTS": "1"}, check=False).stderr
        if "without libcurl" in said or "cannot be loaded" in said:
            self.skipTest(said)
        os.makedirs(os.path.join(self.folder, "buckets"))
        os.symlink(self.folder, os.path.join(self.folder, "buckets", "corpus"))
        with ObjectServer(os.path.join(self.folder, "buckets")) as server:
            here = {**server.environment, "TOKMAP_CACHE": os.path.join(self.folder, "cache")}
            self.assertRegex(self.finish(self.start("storage", **here)), r"waits? in 43 batches")
            self.assertGreater(server.counts()["status 206"], 2)

    @needs("torch", "lightning")
    def test_lightning(self):
        """Ends after step 5, and continues there."""
        out = self.out("fit")
        said = [self.finish(self.start("lightning", out, "1", steps)) for steps in ("5", "12")]
        self.assertEqual([re.findall(r"(?m)^step (\d+) ", each) for each in said],
                         [[str(step) for step in steps] for steps in (range(5), range(5, 12))])

    @needs("numpy", "jax")
    def test_jax(self):
        """A table of zeros has the loss log(vocabulary), if the sum is divided by the right number; then the loss falls."""
        said = re.findall(r"(?m)^step (\d+) loss (\S+)$", self.finish(self.start("jax", JAX_PLATFORMS="cpu")))
        run = tokmap.Run(os.path.join(self.folder, "train.run"))
        self.assertEqual([int(step) for step, _ in said], list(range(run.info.steps)))
        self.assertAlmostEqual(float(said[0][1]), math.log(run.vocabulary), places=4)
        self.assertLess(float(said[-1][1]), float(said[0][1]))

    @needs("torch", "transformers", "accelerate")
    def test_huggingface(self):
        """The losses of a run that was resumed are those of an undisturbed one."""
        losses = []
        for name, ends in (("trained", ("12",)), ("resumed", ("5", "12"))):
            out = self.out(name)
            for steps in ends:
                self.finish(self.start("huggingface", out, steps))
            with open(os.path.join(out, "checkpoint-12", "trainer_state.json"), encoding="utf-8") as file:
                losses.append({line["step"]: line["loss"] for line in json.load(file)["log_history"] if "loss" in line})
        self.assertEqual(sorted(losses[0]), list(range(1, 13)))
        self.assertEqual(losses[0], losses[1])

    @needs("torch", "transformers")
    def test_apart(self):
        """The fields keep documents apart, and the program finds it where they are not passed."""
        run_shell(self.folder, "apart_plans")
        said = self.finish(self.start("apart")).splitlines()
        found = {line[:12].strip(): list(map(float, re.findall(r"\d+\.\d+", line))) for line in said}
        self.assertEqual(list(found), ["position_ids", "cu_seqlens", "document_ids", "a cache", "nothing"])
        for name, (windows, packed, loss) in found.items():
            if name in ("a cache", "nothing"):
                self.assertGreater(min(windows, packed, loss), 1e-3, name)
            else:
                self.assertEqual((windows, packed), (0, 0), name)
                self.assertLess(loss, 1e-5, name)

    def test_every_example_has_a_test(self):
        tested = {name[len("test_"):] for name in dir(self) if name.startswith("test_")}
        tested |= {"run", "nanogpt", "conversations", "apart_plans", "taken", "finetune"}  # prepare(), and tests with other names
        tested |= {"torchrun", "torchtitan", "megatron", "sampler", "context"}  # test_distributed.py
        tested |= {"teacher", "student"}                              # test_distill.py
        tested |= {"controller"}                                      # test_controller.py
        tested |= {"delta", "iceberg", "duckdb", "polars", "ray_data"}  # test_lakes.py
        tested |= {"from_" + name for name in ("datasets", "blocks", "mds", "litdata", "array_record", "tfrecord",
                                               "webdataset", "lance", "parquet")}  # test_coming_from.py
        self.assertEqual(sorted({*examples(), *examples("sh")} - tested), [])

    def test_each_page_begins_with_an_example(self):
        for path, text in pages().items():
            first = text[:text.index("<!-- example: ")].count("\n")
            self.assertLess(first, 60 if path == "README.md" else 20, path)

    def test_options_on_the_pages(self):
        """Each option that README and the pages name is in a manual page, unless it is another program's."""
        known = {"nproc-per-node", "micro-batch-size", "ntasks-per-node", "nnodes", "rdzv-backend", "rdzv-id",
                 "rdzv-endpoint", "recursive", "format"}
        manual = []
        for folder in (os.path.join(TOP, "tokenize_tools", "man"), os.path.join(TOP, "bench", "man")):
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    manual.append(file.read().replace("\\-", "-"))
        known.update(re.findall(r"Fl (?:Fl |-)([a-z][a-z0-9-]*)", "\n".join(manual)))
        for path, text in pages().items():
            self.assertEqual(sorted(set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*)", text)) - known), [], path)

    @needs("torch")
    def test_a_gpt_that_is_killed(self):
        with open(os.path.join(self.folder, "small.run"), "w", encoding="utf-8") as file:
            file.write("seq_len 64\nbatch 8\nseed 5\nsource code data/code\nsteps 60\n")
        undisturbed = self.losses(self.finish(self.start("nanogpt", "small.run", self.out("whole"))))
        self.assertEqual(sorted(undisturbed), list(range(60)))
        first, last = (sum(undisturbed[step] for step in part) / 10 for part in (range(10), range(50, 60)))
        self.assertLess(last, 0.75 * first)
        self.assertTrue(all(math.isfinite(loss) for loss in undisturbed.values()))

        out = self.out("killed")
        lines, kills = [], 0
        for stop in (7, 26, 48, None):
            program = self.start("nanogpt", "small.run", out)
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
