# SPDX-License-Identifier: MIT
"""Types, as mypy, pyright, and jedi see them: the package is annotated throughout, correct programs (those of the
READMEs among them) pass, and each kind of misuse is found."""
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import tokmap
from support import TOP, importable, needs, new_folder
from test_readme import examples

PACKAGE = os.path.join(TOP, "src", "python")

#: A correct program. reveal_type() makes both checkers say what they found.
RIGHT = '''
import numpy
import torch
import tokmap

run = tokmap.Run(data="data/web", seq_len=64, batch=8, seed=1, order="sequential", reading="pread")
loader: tokmap.Loader = run.loader(rank=0, world=1, rows=4, device="cuda", fields=["inputs", "targets"],
                                   dtype=torch.int64)
other = run.loader(dtype=numpy.int32, device=torch.device("cuda", 1), framework="dlpack", resume=loader.state_dict())
for b in loader:
    reveal_type(b)
    reveal_type(b.step)
    reveal_type(b.count)
    reveal_type(b.epoch)
    reveal_type(b.last_in_step)
    reveal_type(b.places[0].first_token)
    reveal_type(b.locate(0)[0].origin)
    loss = (b.inputs - b.targets).sum() / b.count
    print(b["inputs"].shape, dict(b), {**b}, b.to("cpu", non_blocking=True).step)
loader.rewind()
reveal_type(loader.next(out=loader.out()).max_seqlen)
reveal_type(next(loader))
reveal_type(loader.stats().wait_ns)
reveal_type(loader.stats().wait_histogram)
reveal_type(loader.delivery().part)
reveal_type(loader.rows)
reveal_type(run.info.steps)
reveal_type(run.vocabulary)
reveal_type(run.sources[0].dataset.info.tokens)
reveal_type(run.locate(0, 0).window)
reveal_type(run.find(document=3)[0].step)
with tokmap.Dataset("data/web", reading="mapped") as ds:
    reveal_type(ds)
    reveal_type(len(ds))
    reveal_type(ds.document(3).tokens)
    reveal_type(ds.origin(3).path)
    reveal_type(ds.verify(progress=lambda done, total: print(done, total)))
    for ids in ds[0:4]:
        print(ids.sum())
rows = run.dataset(fields="inputs", world=1, dtype="int32", framework="numpy")
reveal_type(rows[0:4])
reveal_type(rows.place(17))
reveal_type(rows.index(3, 1))
print(rows[0]["inputs"].sum(), len(rows), rows[0:4].inputs.sum())
batches: "torch.utils.data.DataLoader[dict[str, torch.Tensor]]" = torch.utils.data.DataLoader(
    rows, batch_size=4, collate_fn=tokmap.collate)
reveal_type(tokmap.gpus()[0].memory)
mixture = tokmap.Run(sources={"web": "data/web#docs=0..90%", "wiki": {"data": "data/wiki", "epochs": 4}},
                     weights={"web": 0.8, "wiki": "tokens=3B"}, seq_len=64, batch=8, order=("blocks", 8, 4), stride=32,
                     phases=[{"step": 50, "weights": "natural", "batch": 16}, {"step": 90, "seq_len": 128}],
                     tail="pad", pad=0, passes="2 of wiki", skip=[(3, 5)])
reveal_type(mixture)
reveal_type(mixture.text)
reveal_type(mixture.phases[0].shares[0].weight)
reveal_type(mixture.phases[0].end_step)
reveal_type(mixture.drawn("wiki", 7))
reveal_type(mixture.extents(3, 1)[0].tokens)
reveal_type(mixture.sources[0].data)
reveal_type(mixture.evaluation("web", part="docs=90..100%", batch=32, stride=16, pad=0, steps=9))
reveal_type(mixture.info.tail_pad)


def stalled(stall: tokmap.Stall) -> None:
    reveal_type(stall.wait_ns)


watched = mixture.loader(trace="rank0.trace", deadline=1.5, io_threads=4, alarm=stalled, alarm_percent=20, alarm_calls=50,
                         range_push=lambda name: print(name.upper()), range_pop=lambda: None, fields="targets_ahead")
reveal_type(watched.repartition(0, 3))
watched.reload(mixture)
reveal_type(watched.source_stats()["web"].epoch)
reveal_type(watched.prometheus({"job": "train"}))
reveal_type(watched.next().real_rows)
reveal_type(watched.next().seq_len)
reveal_type(watched.next().share)
reveal_type(watched.next().places[0].name)
first, second = watched.next()
print(first.sum(), watched.next().labels.shape, "labels" in watched.next(), watched.next().values()[0])
run.loader(fields=loader.fields)
run.loader(fields=("inputs", "labels"))
run.dataset(fields=["inputs", "labels"])
print(watched.next().targets_ahead.shape)
reveal_type(watched.stats().timeouts)
reveal_type(ds.info.kind)
reveal_type(ds.info.identity)
reveal_type(ds.info.masked)
print(ds.mask(3, 5).sum())
reveal_type(tokmap.index("raw:train.bin,width=2,eod=50256", replace=True).documents)
with tokmap.ShardWriter("data/mine", vocab_size=9, eod=8, mask=True, columns=["url"], replace=True) as writer:
    reveal_type(writer)
    writer.add([1, 2], mask=numpy.ones(2, dtype=bool), columns={"url": None}, origin=("a.txt", 3))
    writer.add_batch(torch.tensor([1, 2]), [1, 2], columns={"url": ["a", "b"]})
reveal_type(writer.content)
reveal_type(writer.tokens)
reveal_type(ds.columns)
reveal_type(ds.values(3))
reveal_type(tokmap.pack("a.jsonl", "data/a", tokenizer="bytes", split=["val=1%"], shuffle=1, seal=True,
                        shard_tokens="1G", include="*.jsonl", dedup="exact").tokens)
try:
    run.check(run.cursor(3))
except tokmap.PastError as problem:
    reveal_type(problem.line)
    reveal_type(problem.message)
'''

#: What the checkers must say about RIGHT, in its order.
REVEALED = ("Batch", "int", "int", "int", "bool", "int", "Origin|None", "int", "Batch", "int", "tuple[int,...]", "str",
            "int", "int|None", "int", "int", "int", "int", "Dataset", "int", "int", "str", "int", "Columns",
            "tuple[int,int]", "int", "int", "Run", "str", "int", "int|None", "int", "int", "str", "Run", "bool", "int",
            "None", "int", "str", "int", "int", "float", "str|None", "int", "str", "str", "bool", "int", "ShardWriter", "str|None", "int", "tuple[str,...]", "dict[str,Any]", "int", "int|None", "str")

#: One misuse a line; each must be an error.
WRONG = '''
import tokmap
run = tokmap.Run("train.run")
loader = run.loader()
b = loader.next()
ds = tokmap.Dataset("data/web")
run.loader(rnk=0)
run.loader(0, 8)
run.loader(rank="0")
run.loader(rows=2.5)
run.loader(fields=5)
run.loader(fields=["inputs", 5])
run.loader(fields=["inptus"])
run.dataset(fields=("inputs", "label"))
run.loader(dtype="float32")
run.loader(framework="keras")
run.loader(resume=5)
run.loader(device=1.5)
run.dataset(filds="inputs")
run.dataset(cu_seqlens=True)
run.dataset(framework="jax")
tokmap.Run(data="data/web", seq_len="64")
tokmap.Run(data="data/web", seq_len=64, order="sorted")
tokmap.Run(data="data/web", seq_len=64, shuffle=True)
tokmap.Run(5)
tokmap.Dataset("data/web", reading="fast")
tokmap.Dataset()
b.stpe
b.step.x
b.inputz
b[0]
b.count + "rows"
b.locate("first")
loader[0]
loader.rewind(0)
loader.nxt()
loader.stats().waits_ns
loader.delivery().rnk
run.locate(1)
run.locate("1", 0)
run.info.seqlen
run.find(dokument=3)
run.cursor("5").step
ds["a"]
ds.info.vocab
ds.tokens("10")
ds.verify(progress=5)
tokmap.gpus()[0].names
tokmap.Stats(batches=3)
tokmap.loadr(run)
run.vocabulary + "x"
tokmap.Run(sources={"web": {"path": "data/web"}}, seq_len=64)
tokmap.Run(sources={"web": "data/web"}, weights="even", seq_len=64)
tokmap.Run(sources={"web": "data/web"}, weights={"web": None}, seq_len=64)
tokmap.Run(sources=["data/web"], seq_len=64)
tokmap.Run(data="data/web", seq_len=64, phases=[{"steps": 5}])
tokmap.Run(data="data/web", seq_len=64, order=("blocks", 8))
tokmap.Run(data="data/web", seq_len=64, tail="padding")
tokmap.Run(data="data/web", seq_len=64, skip=[3])
run.evaluation(strides=8)
run.evaluation(0)
run.drawn("web")
run.phases[0].weights
run.loader(trace=5)
run.loader(deadline="1s")
run.loader(alarm=5)
run.loader(alarm=lambda: None)
run.loader(range_push=lambda: None, range_pop=lambda: None)
loader.repartition("0", 3)
loader.repartition(0)
loader.reload("train.run")
loader.source_stats()[0]
loader.prometheus("train")
b.valids
ds.mask("3")
ds.info.masks
tokmap.index("raw:train.bin", force=True)
tokmap.ShardWriter("data/mine", vocabulary=9)
tokmap.ShardWriter("data/mine", vocab_size="9")
tokmap.ShardWriter("data/mine", vocab_size=9).add()
tokmap.ShardWriter("data/mine", vocab_size=9).add([1], columns=["url"])
tokmap.ShardWriter("data/mine", vocab_size=9).finish()
ds.value("3", "url")
ds.value(3)
tokmap.pack("a.jsonl", "data/a", splt="train=0.9")
tokmap.pack("a.jsonl", "data/a", dedup="fuzzy")
tokmap.pack("a.jsonl", "data/a", shuffle="yes")
'''


def run_tool(*command, folder):
    return subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, timeout=500,
                          env={**os.environ, "MYPYPATH": PACKAGE, "PYTHONPATH": PACKAGE, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"})


class Checked(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()
        for name, text in {"right": RIGHT, "wrong": WRONG,
                           **{f"example_{name}": text for name, text in examples().items()}}.items():
            with open(os.path.join(cls.folder, f"{name}.py"), "w", encoding="utf-8") as file:
                file.write(text)

    def check_revealed(self, said, pattern):
        found = []
        for kind in re.findall(pattern, said):
            kind = re.sub(r"\b(?:builtins|tokmap\.\w+)\.", "", kind).replace(" ", "")
            kind = re.sub(r"^Union\[(.*),None\]$", r"\1|None", kind)
            found.append(re.sub(r"tuple\[.*,fallback=(\w+)\]", r"\1", kind))
        self.assertEqual(found, list(REVEALED), said)

    def check_wrong(self, found):
        first = WRONG[:WRONG.index("run.loader(rnk")].count("\n") + 1
        lines = WRONG.split("\n")
        missed = [lines[number - 1] for number in range(first, len(lines)) if number not in found]
        self.assertEqual(missed, [])
        self.assertEqual([number for number in found if number < first], [])


@needs("mypy")
class Mypy(Checked):
    def mypy(self, *arguments):
        return run_tool(sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir",
                        os.path.join(os.environ.get("TMPDIR") or self.folder, "mypy cache"), *arguments,
                        folder=self.folder)

    @needs("numpy", "torch")
    def test_the_package(self):
        said = self.mypy(*(os.path.join(PACKAGE, name) for name in ("tokmap", "_tokmap_commands.py")))
        self.assertEqual((said.returncode, said.stdout), (0, ""), said.stderr)

    @needs("numpy", "torch")
    def test_a_right_program(self):
        said = self.mypy("right.py")
        self.assertNotIn("error:", said.stdout)
        self.check_revealed(said.stdout, r'Revealed type is "(.*)"')

    @needs("numpy", "torch")
    def test_misuse(self):
        said = self.mypy("wrong.py").stdout
        self.check_wrong({int(line) for line in re.findall(r"^wrong\.py:(\d+): error:", said, flags=re.M)})

    @needs("numpy", "torch", "transformers", "lightning", "ray")
    def test_the_examples(self):
        """The examples' own functions have few annotations, and torch has some functions without any. What they call of
        this package is checked strictly."""
        said = self.mypy("--allow-untyped-defs", "--allow-incomplete-defs", "--allow-untyped-calls",
                         "--implicit-reexport", *(f"example_{name}.py" for name in sorted(examples())))
        self.assertEqual(said.stdout, "", said.stderr)


@needs("pyright")
class Pyright(Checked):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(os.path.join(cls.folder, "pyrightconfig.json"), "w", encoding="utf-8") as file:
            json.dump({"extraPaths": [PACKAGE], "reportPrivateImportUsage": False, "reportUnusedExpression": False}, file)

    def pyright(self, *arguments):
        ran = run_tool(sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", *arguments,
                       folder=self.folder)
        try:
            return json.loads(ran.stdout)["generalDiagnostics"]
        except ValueError:
            self.skipTest(f"pyright does not run here: {(ran.stderr or ran.stdout).strip()[-200:]}")

    def errors(self, *arguments):
        return [(os.path.basename(each["file"]), each["range"]["start"]["line"] + 1, each["message"])
                for each in self.pyright(*arguments) if each["severity"] == "error"]

    @needs("numpy", "torch")
    def test_the_package(self):
        self.assertEqual(self.errors(os.path.join(PACKAGE, "tokmap")), [])

    @needs("numpy", "torch")
    def test_a_right_program(self):
        found = self.pyright("right.py")
        self.assertEqual([each for each in found if each["severity"] == "error"], [])
        self.check_revealed("\n".join(each["message"] for each in found), r'Type of ".*" is "(.*)"')

    @needs("numpy", "torch")
    def test_misuse(self):
        self.check_wrong({line for _, line, _ in self.errors("wrong.py")})

    @needs("numpy", "torch", "transformers", "lightning", "ray")
    def test_the_examples(self):
        self.assertEqual(self.errors(*(f"example_{name}.py" for name in sorted(examples()))), [])


@needs("jedi")
class Jedi(unittest.TestCase):
    """What editors complete."""

    def completed(self, code):
        import jedi
        project = jedi.Project(new_folder(), added_sys_path=[PACKAGE])
        lines = code.split("\n")
        return {found.name for found in jedi.Script(code, project=project).complete(len(lines), len(lines[-1]))}

    def test_arguments(self):
        code = "import tokmap\nrun = tokmap.Run('train.run')\nrun."
        self.assertLessEqual({"loader", "dataset", "vocabulary", "info", "find", "locate", "evaluation", "phases", "text", "drawn"}, self.completed(code))
        self.assertLessEqual({"rank=", "world=", "rows=", "fields=", "dtype=", "device=", "framework=", "resume="},
                             self.completed(code + "loader("))
        self.assertLessEqual({"fields=", "dtype=", "world="}, self.completed(code + "dataset("))
        self.assertLessEqual({"data=", "seq_len=", "batch=", "order="}, self.completed("import tokmap\ntokmap.Run("))

    def test_members(self):
        start = "import tokmap\nrun = tokmap.Run('train.run')\n"
        batch = {"step", "count", "epoch", "inputs", "targets", "last_in_step", "max_seqlen", "places", "locate", "to"}
        self.assertLessEqual(batch, self.completed(start + "for b in run.loader():\n    b."))
        self.assertLessEqual(batch, self.completed(start + "b = next(run.loader())\nb."))
        self.assertLessEqual(batch, self.completed("import tokmap\ndef f(loader: tokmap.Loader):\n    b = loader.next()\n    b."))
        self.assertLessEqual({"next", "rewind", "state_dict", "load_state_dict", "stats", "delivery", "close", "out"},
                             self.completed(start + "run.loader()."))
        self.assertLessEqual({"waits", "wait_ns", "batches"}, self.completed(start + "run.loader().stats()."))
        self.assertLessEqual({"seq_len", "steps", "order"}, self.completed(start + "run.info."))
        self.assertLessEqual({"tokens", "verify", "document", "info"}, self.completed("import tokmap\ntokmap.Dataset('d')."))


class Signatures(unittest.TestCase):
    """What needs no tool: everything public is annotated, and Run's methods have the arguments of the classes."""

    def functions(self):
        for name in tokmap.__all__:
            thing = getattr(tokmap, name)
            if inspect.isfunction(thing):
                yield name, thing
            elif inspect.isclass(thing):
                for member, value in vars(thing).items():
                    value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
                    if inspect.isfunction(value) and value.__module__.split(".")[0] == "tokmap":
                        yield f"{name}.{member}", value

    def test_everything_is_annotated(self):
        checked = 0
        for name, function in self.functions():
            if name == "Loader.__getitem__":
                continue  # hidden from tools, so that they find programs that use it
            signature = inspect.signature(inspect.unwrap(function))
            self.assertIsNot(signature.return_annotation, inspect.Signature.empty, name)
            for parameter in list(signature.parameters.values()):
                if parameter.name not in ("self", "cls"):
                    self.assertIsNot(parameter.annotation, inspect.Parameter.empty, f"{name}({parameter.name})")
            checked += 1
        self.assertGreater(checked, 100)

    def test_run_has_the_arguments_of_the_classes(self):
        for method, kind in ((tokmap.Run.loader, tokmap.Loader), (tokmap.Run.dataset, tokmap.RunDataset)):
            of_method = [str(each) for each in list(inspect.signature(method).parameters.values())[1:]]
            of_class = [str(each) for each in list(inspect.signature(kind).parameters.values())[1:]]
            self.assertEqual(of_method, of_class)
            for name in inspect.signature(method).parameters:
                if name != "self":
                    self.assertIn(name, kind.__doc__)

    def test_named_tuples(self):
        """They are those of the module collections, with annotations."""
        place = tokmap.Place(1, 2, 3, 0, 0, 5, 6, 7)
        self.assertEqual((place.window, place._replace(step=9).step, place._fields[0]), (5, 9, "step"))
        self.assertEqual(list(tokmap.Place.__annotations__), list(tokmap.Place._fields))
        self.assertIn("tokmap.h", tokmap.Place.__doc__)
        self.assertEqual(repr(place).split("(")[0], "Place")

    def test_old_pythons_can_read_it(self):
        """The package's syntax is that of Python 3.9."""
        import ast
        for folder in (os.path.join(PACKAGE, "tokmap"), PACKAGE):
            for name in os.listdir(folder):
                if name.endswith(".py"):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        ast.parse(file.read(), name, feature_version=(3, 9))
        if shutil.which("vermin"):
            ran = subprocess.run(["vermin", "--target=3.9-", "--no-tips", "--eval-annotations", PACKAGE + "/tokmap"],
                                 capture_output=True, text=True)
            self.assertNotIn("Minimum required versions: 3.1", ran.stdout)


if __name__ == "__main__":
    unittest.main()
