# SPDX-License-Identifier: MIT
"""The programs of DISTILL.md: a teacher writes values on 2 ranks, is killed, and continues on 3; students read them with
other rows and ranks, and must have the losses that they have with the teacher itself."""
import contextlib
import io
import os
import re
import subprocess
import unittest

import tokmap
from support import TOKMAP, TOP, needs
from test_distributed import RUNNER, Several
from test_readme import examples

#: Kills a program at its 31st put: with 2 ranks in step 15, after the state of step 9 was saved.
KILLED = """import os, signal, tokmap
put, puts = tokmap.ValuesWriter.put, iter(range(30))
def put_or_die(*given):
    if next(puts, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
    put(*given)
tokmap.ValuesWriter.put = put_or_die
""" + RUNNER
READ = '    ids, shares = b.values["teacher_ids"].long(), b.values["teacher"].float()\n'
#: Asks the teacher in place of reading what it said.
LIVE = """    with torch.no_grad():
        shares, ids = teacher(b.inputs).softmax(-1).topk(32)
"""
STEPS, ROW, CLASSES = 40, 128, 32


def part(name, first, end):
    """Some lines of a program."""
    return re.search(rf"^{first}.*?(?=\n\n{end})", examples()[name], flags=re.S | re.M).group() + "\n"


@needs("torch.distributed.run")
class Distill(Several):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = os.path.join(cls.folder, "data", "prose.train")
        subprocess.run([TOKMAP, "pack", "-q", "--eod", "-o", cls.data, os.path.join(TOP, "include")], check=True)
        with open(os.path.join(cls.folder, "killed.py"), "w", encoding="utf-8") as file:
            file.write(KILLED)
        cls.tokens = tokmap.Dataset(cls.data).info.tokens
        cls.teacher = "nn = torch.nn\n" + part("teacher", r"torch\.manual_seed", "for b")
        cls.first = cls("test_teacher").torchrun(2, "killed.py", "example_teacher.py", check=False)
        cls.files = os.listdir(os.path.dirname(cls.data))
        with open(os.path.join(cls.folder, "teacher.cursor"), encoding="utf-8") as file:
            cls.cursor = file.read()
        cls.second = cls("test_teacher").torchrun(3, "example_teacher.py")

    def losses(self, said):
        found = [float(loss) for loss in re.findall(r"(?m)^step \d+ loss (\S+)$", said)]
        self.assertEqual(len(found) % STEPS, 0, said)
        return found

    def student(self, data=None, read=READ, given=(), check=None, **arguments):
        """The losses of the student in this process, with other arguments of its run and loader."""
        program = examples()["student"].replace("data/prose.train", data or self.data)
        for name, value in arguments.items():
            program, times = re.subn(rf"\b{name}=[^,)]+", f"{name}={value}", program)
            self.assertEqual(times, 1, name)
        for before, after in ((READ, read), *given):
            self.assertEqual(program.count(before), 1, before)
            program = program.replace(before, after)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(program, {"check": check})
        return self.losses(said.getvalue())

    def live(self, more="", **arguments):
        """The same, with the teacher in place of its values."""
        return self.student(read=LIVE + more, given=[("loader = ", self.teacher + "loader = ")], **arguments)

    def equal(self, found, wanted, delta):
        self.assertEqual(len(found), len(wanted))
        self.assertLess(max(abs(a - b) for a, b in zip(found, wanted)), delta)

    def test_teacher(self):
        """The second program continues after the last step that the first one has saved, and only then are there
        values: what the teacher says in one process, for every token but the first."""
        import torch
        self.assertNotEqual(self.first.returncode, 0)
        self.assertEqual(self.first.stdout, "saved after step 9\n")
        self.assertRegex(self.cursor, r"^tokmap1 step=10 ")
        self.assertEqual([name for name in self.files if name.endswith(".values")], [])
        run = tokmap.Run(data=self.data, seq_len=ROW, batch=7, tail="pad", passes=1)
        steps = -(-run.sources[0].windows // 32)
        said = self.second.stdout.splitlines()
        self.assertEqual(said[:-1], [f"saved after step {step}" for step in range(19, steps, 10)])
        self.assertRegex(said[-1], rf"^Finished\(tokens={self.tokens}, missing=0, repeated=\d+, files=2\)$")
        # Of steps 10 to 15 the first program may have noted some: it does so every 4 s.
        self.assertLessEqual(int(re.search(r"repeated=(\d+)", said[-1]).group(1)), 6 * 32 * ROW)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "teacher.cursor")))
        tokmap.Dataset(self.data).verify()
        names, seen = {"torch": torch, "run": run}, set()
        exec(self.teacher, names)
        for b in run.loader(values=["teacher", "teacher_ids"], dtype=torch.int64, mask_targets=True, values_present=True):
            with torch.no_grad():
                live = names["teacher"](b.inputs).softmax(-1)
            stored, ids = b.values["teacher"].float(), b.values["teacher_ids"].long()
            counted = b.targets != tokmap.IGNORE
            self.assertTrue(b.values_present["teacher"].bool()[counted].all())
            for wanted in (live.gather(-1, ids), live.topk(CLASSES).values):
                self.assertLess(((stored - wanted).abs() - wanted * 2 ** -11)[counted].max(), 1e-6)
            seen.update(place.window for place in b.places[:b.real_rows])
        self.assertEqual(len(seen), run.sources[0].windows)

    def test_ranks_and_rows(self):
        """The losses of 40 steps are the same for 1, 2, and 3 ranks, and for calls of 8, 4, 2, and 1 rows."""
        alone = self.student()
        self.assertLess(alone[-1], 0.7 * alone[0])
        for rows in (8, 4, 1):
            self.equal(self.student(rows=rows), alone, 1e-6)
        for world in (2, 3):
            said = self.torchrun(world, "example_student.py").stdout
            self.equal(self.losses(said), world * alone, 1e-6)

    def test_live(self):
        """In rows that the teacher had, in any order, its values do what the teacher itself does, but for the rounding
        to f16. In rows of another length its context is another."""
        for order in ("sequential", "shuffle"):
            steps = f"{STEPS}, order='{order}'"
            stored = self.student(steps=steps)
            self.equal(self.live("    shares = shares.half().float()\n", steps=steps), stored, 3e-6)
            self.equal(self.live(steps=steps), stored, 5e-5)
        with self.assertRaises(AssertionError):
            self.equal(self.live(seq_len=96), self.student(seq_len=96), 1e-3)

    def test_gradients(self):
        """A target that is masked has no gradient, whatever its values are, and a token without values that of the
        target alone. The others have that of the divergence."""
        import torch
        data = os.path.join(self.folder, "data", "masked")
        torch.manual_seed(4)
        with tokmap.ShardWriter(data, vocab_size=257, eod=256, mask=True) as writer:
            for n in range(120):
                ids = torch.randint(0, 256, (n * 7 % 400,))
                writer.add(ids, mask=(ids % 3 > 0) & (n % 5 > 0))
        arrays = [("teacher_ids", "uint16", CLASSES), ("teacher", "float16", CLASSES)]
        with tokmap.Dataset(data) as ds, tokmap.ValuesWriter(ds, arrays) as writer:
            for token in range(0, ds.info.tokens - 50, 70):
                shares, ids = (4 * torch.randn(50, 257)).softmax(-1).topk(CLASSES)
                writer.put_at(token, [ids.to(torch.uint16), shares.half()])
            self.assertGreater(writer.finish(holes=True).missing, ds.info.tokens // 4)
        kinds = set()

        def check(b, gradients, logits, ids, shares):
            q, counted = logits.detach().softmax(-1), b.targets != tokmap.IGNORE
            hard = q - torch.nn.functional.one_hot(b.targets.clamp(min=0), 257)
            rest = q.scatter(-1, ids, 0)
            soft = q - torch.zeros_like(q).scatter(-1, ids, shares) - \
                rest * ((1 - shares.sum(-1)) / rest.sum(-1).clamp(min=1e-9))[..., None]
            taught = b.values_present["teacher"].bool()
            wanted = torch.where(taught[..., None], 0.1 * hard + 0.9 * soft, hard) * counted[..., None]
            self.assertLess((gradients * b.counted_in_step - wanted).abs().max(), 1e-5)
            kinds.update((2 * taught + counted).unique().tolist())
        self.student(data, check=check, given=[
            ("    loss.backward()\n", "    logits.retain_grad()\n    loss.backward()\n"
                                      "    check(b, logits.grad, logits, ids, shares)\n")])
        self.assertEqual(kinds, {0, 1, 2, 3})

    def test_divergence(self):
        """With all tokens but one it is the KL divergence over the whole vocabulary."""
        import torch
        names = {}
        exec(part("student", "import torch\n", "if "), names)
        torch.manual_seed(3)
        logits, teacher = torch.randn(2, 2, 5, 9, dtype=torch.float64)
        logits.requires_grad_()
        found = names["divergence"](logits, *reversed(teacher.softmax(-1).topk(8)))
        wanted = torch.nn.functional.kl_div(logits.log_softmax(-1), teacher.log_softmax(-1), log_target=True,
                                            reduction="none").sum(-1)
        self.assertLess((found - wanted).abs().max(), 1e-12)
        gradients = [torch.autograd.grad(each.sum(), logits)[0] for each in (found, wanted)]
        self.assertLess((gradients[0] - gradients[1]).abs().max(), 1e-12)


if __name__ == "__main__":
    unittest.main()
