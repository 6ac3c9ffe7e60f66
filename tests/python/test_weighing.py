# SPDX-License-Identifier: MIT
"""The training programs of the pages, on data most of whose targets are masked, in some rows all of them: with any
number of rows a call and any number of ranks, a step has the gradient of the mean over its targets that count."""
import contextlib
import io
import os
import pickle
import random
import re
import socket
import subprocess
import sys
import traceback
import unittest
from unittest import mock

import tokmap
from support import TOKMAP, importable, needs, new_folder
from test_readme import examples

STEPS = 3
#: By example: the arguments of the program, whether it combines ranks, and the model that follows from its parameters.
PROGRAMS = {"top": ((), False, "linear"), "nanogpt": (("train.run", "OUT"), False, None), "mixture": ((), False, "linear"),
            "finetune": ((), False, "linear"), "torchrun": ((), True, "linear"), "controller": ((), True, "linear"),
            "lightning": (("OUT", "WORLD", str(STEPS)), True, "table")}


losses = {}  # by step, the right ones


class Enough(BaseException):
    """The optimizer has made the steps that are compared."""


@needs("torch")
class Weighing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()
        os.mkdir(os.path.join(cls.folder, "data"))
        choose = random.Random(3)
        for name in ("prose.train", "code", "prose.val", "chat"):
            with tokmap.ShardWriter(os.path.join(cls.folder, "data", name), vocab_size=64, mask=True, tokenizer="5" * 32) as writer:
                for number in range(400):
                    length, share = choose.randrange(20, 200), choose.choice((0, 0, 0.02, 0.5))
                    writer.add([choose.randrange(64) for _ in range(length)],
                               mask=[choose.random() < share for _ in range(length)])
        subprocess.run([TOKMAP, "plan", "-q", "--seq-len", "128", "-o", "data/chat.plan", "data/chat"], cwd=cls.folder, check=True)
        cls.programs = examples()
        with open(os.path.join(cls.folder, "train.run"), "w", encoding="utf-8") as file:
            file.write("seq_len 32\nbatch 8\nseed 5\nsource prose data/prose.train\nsource code data/code\n"
                       "validation val data/prose.val\nphase 0 prose 1 code 1\nsteps 9\n")

    def gradients(self, name, rows, rank=0, world=1, port=0):
        """Runs a program as a rank, in this process, and returns, for each step of its optimizer, the gradients, and those
        of the mean over the targets of the step (None: not known)."""
        import torch
        from torch.optim import optimizer as hooks
        arguments, _, kind = PROGRAMS[name]
        os.chdir(self.folder)
        torch.set_num_threads(1)
        torch.manual_seed(4)
        out = new_folder()
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1",
                          MASTER_PORT=str(port), GROUP_RANK="0", LOCAL_WORLD_SIZE=str(world), CUDA_VISIBLE_DEVICES="")
        if world > 1:
            os.environ["TORCHELASTIC_RUN_ID"] = "here"
        elif PROGRAMS[name][1]:
            for variable in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
                del os.environ[variable]
        open_loader, found, opened = tokmap.Run.loader, [], []

        def loader(run, **options):
            if options.get("rows"):
                options["rows"] = rows
            made = open_loader(run, **options)
            opened.append((run, options))
            return made

        def stepping(optimizer, *_):
            before[:] = [each.detach().clone() for each in optimizer.param_groups[0]["params"]]

        def stepped(optimizer, *_):
            gradients = [each.grad.clone() for each in optimizer.param_groups[0]["params"]]
            found.append((gradients, self.wanted(kind, before, opened, len(found), said.getvalue())))
            if len(found) == STEPS:
                raise Enough
        before, said = [], io.StringIO()
        hooks.register_optimizer_step_pre_hook(stepping)
        hooks.register_optimizer_step_post_hook(stepped)
        sys.argv = [name, *(out if each == "OUT" else str(world) if each == "WORLD" else each for each in arguments)]
        with mock.patch.object(tokmap.Run, "loader", loader), contextlib.suppress(Enough), \
                contextlib.redirect_stdout(said):
            exec(compile(self.programs[name], name, "exec"), {"__name__": "__main__"})  # pylint: disable=exec-used
        return found

    @staticmethod
    def wanted(kind, parameters, opened, step, said):
        """The right gradients, of all rows of a step at once. The loss of the last step that the program has printed is
        compared."""
        import torch
        from torch.nn.functional import cross_entropy, embedding, linear
        world = int(os.environ.get("WORLD_SIZE", 1))
        run, options = next(each for each in opened if each[1].get("rows") or "source_ids" in each[1].get("fields", ""))
        fields = options.get("fields", "inputs targets")
        mine = options | {"rows": 0, "resume": run.cursor(step)}
        b = next(tokmap.Loader(run, **mine, rank=0, world=1))
        if kind is None:
            return None
        copies = [each.requires_grad_() for each in parameters]
        logits = copies[0][b.inputs] if kind == "table" else linear(embedding(b.inputs, copies[0]), *copies[1:])
        loss = cross_entropy(logits.flatten(0, 1), b.targets.flatten())
        loss.backward()
        losses[step] = loss.item()
        printed = re.findall(r"(?m)^(?:step )?(\d+) (?:loss )?(\d+\.\d+)(?: tokmap1 .*)?$", said)
        assert len(printed) in (0, step), said
        if printed and world == 1:
            assert abs(float(printed[-1][1]) - losses[step - 1]) < 1e-4, (said, losses)
        assert "targets" in fields
        return [each.grad for each in copies]

    def ranks(self, name, rows, world):
        """The gradients of all ranks, each in a child."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        children = []
        for rank in range(world):
            path = os.path.join(self.folder, f"gradients.{rank}")
            child = os.fork()
            if not child:
                status = 1
                try:
                    found = self.gradients(name, rows, rank, world, port)
                    with open(path, "wb") as file:
                        pickle.dump([[[each.tolist() for each in some or ()] for some in step] for step in found], file)
                    status = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(status)
            children.append((child, path))
        found = []
        for child, path in children:
            self.assertEqual(os.waitpid(child, 0)[1], 0, (name, rows, world))
            with open(path, "rb") as file:
                found.append(pickle.load(file))
        return found

    def check(self, name, rows, world, first):
        """Compares with the right gradients, or with those of one call a step. Returns the gradients."""
        import torch
        found = self.ranks(name, rows, world)
        for step in range(STEPS if PROGRAMS[name][1] or world == 1 else 1):
            each = [[torch.tensor(one) for one in rank[step][0]] for rank in found]
            if not PROGRAMS[name][1]:  # ranks of a program that does not combine them: each has its part of the mean
                each = [[sum(some) for some in zip(*each)]]
            wanted = [torch.tensor(one) for one in found[0][step][1]] or (first or [each[0]] * STEPS)[step]
            for mine in each:
                for one, right in zip(mine, wanted):
                    self.assertTrue(torch.isfinite(one).all(), (name, rows, world, step))
                    error = ((one - right).norm() / right.norm()).item()
                    self.assertLess(error, 1e-4, (name, rows, world, step))
        return [[torch.tensor(one) for one in step[0]] for step in found[0]]

    def test_some_calls_have_no_target(self):
        """The data is as described above."""
        with tokmap.Run(os.path.join(self.folder, "train.run")) as run:
            counts = [int((b.targets != tokmap.IGNORE).sum()) for b in run.loader(rows=1, mask_targets=True, framework="torch")]
        self.assertGreater(counts[:8 * STEPS].count(0), 2)
        self.assertGreater(sum(counts[:8]), 10)

    def test_every_program_that_trains(self):
        """Each program of a page that computes gradients is among those that are tried; transformers' Trainer weighs by
        itself (num_items_in_batch)."""
        self.assertEqual(sorted(PROGRAMS), sorted(name for name, program in self.programs.items() if ".step()" in program or
                                                  "def training_step" in program))
        for name, program in self.programs.items():
            self.assertFalse(re.search(r"\.mean\(|b\.share", program), name)


def trains(name):
    @needs(*(["lightning"] if name == "lightning" else []))
    def test(self):
        first = None
        for rows, world in ((8, 1), (4, 1), (1, 1), (4, 2), (1, 3)):
            if name != "lightning" or rows in (8, 1):
                made = self.check(name, rows, world, first)
                first = first or made
    return test


for example in PROGRAMS:
    if importable("torch") is None:
        setattr(Weighing, f"test_{example}", trains(example))

if __name__ == "__main__":
    unittest.main()
