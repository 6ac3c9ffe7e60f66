# SPDX-License-Identifier: MIT
"""Weights that follow the loss: the program of CONTROLLER.md, on 1, 2, and 3 ranks, killed at random. It delivers the
rows of a program that nobody disturbs. CONTROLLER_KILLS is the number of kills (12)."""
import contextlib
import importlib.util
import json
import os
import random
import signal
import subprocess
import time
import unittest

import tokmap
from support import TOKMAP, needs, new_folder, values
from test_readme import prepare

STEPS = 200


@needs("torch")
class Controller(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()
        prepare(cls.folder)
        path = os.path.join(cls.folder, "example_controller.py")
        spec = importlib.util.spec_from_file_location("example_controller", path)
        cls.program = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(cls.program)

    def rank(self, rank, world, name, log):
        """A rank, in a child of its own, which writes what it gets to a log, and at the end the text of its run."""
        import torch
        os.setpgid(0, 0)
        os.chdir(self.folder)
        torch.set_num_threads(1)
        if world > 1:
            torch.distributed.init_process_group("gloo", init_method=f"file://{self.folder}/{log}.store", rank=rank,
                                                 world_size=world)
        taken = tokmap.Loader.__next__
        with open(os.path.join(self.folder, f"{log}.{rank}"), "w", encoding="utf-8") as file:
            def logged(loader):
                b = taken(loader)
                rows = [(b.step, b.first_row + i, place.name, place.epoch, place.window, hash(tuple(row)))
                        for i, (place, row) in enumerate(zip(b.places, values(b.inputs)))]
                file.write(json.dumps(rows) + "\n")
                file.flush()
                return b
            tokmap.Loader.__next__ = logged
            run = self.program.train(name, STEPS)
            file.write(json.dumps(run.text) + "\n")

    def start(self, world, name, log):
        children = []
        for rank in range(world):
            child = os.fork()
            if not child:
                status = 1
                with contextlib.suppress(BaseException):
                    self.rank(rank, world, name, log)
                    status = 0
                os._exit(status)
            children.append(child)
        return children

    def read(self, world, log):
        """The rows that the ranks have written, and the text if they ended. A kill may cut the last line."""
        rows, texts = {}, set()
        for rank in range(world):
            with open(os.path.join(self.folder, f"{log}.{rank}"), encoding="utf-8") as file:
                for line in file:
                    if not line.endswith("\n"):
                        continue
                    found = json.loads(line)
                    if isinstance(found, str):
                        texts.add(found)
                        continue
                    for step, row, *what in found:
                        self.assertEqual(rows.setdefault((step, row), what), what)
        return rows, texts

    def undisturbed(self, world):
        for child in self.start(world, f"whole{world}.pt", f"whole{world}"):
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        rows, texts = self.read(world, f"whole{world}")
        self.assertEqual(sorted(rows), [(step, row) for step in range(STEPS) for row in range(6)])
        self.assertEqual(len(texts), 1)
        return rows, texts.pop()

    def test_killed(self):
        rows, text = self.undisturbed(2)
        for world in (1, 3):
            self.assertEqual(self.undisturbed(world), (rows, text))
        phases = [line.split()[1:] for line in text.splitlines() if line.startswith("phase")]
        self.assertEqual(len(phases), STEPS // 5)
        self.assertGreater(len({tuple(phase[1:]) for phase in phases}), 5)  # the weights change
        choose, kills, seen = random.Random(int(os.environ.get("SEED", "7"))), 0, set()
        wanted, rounds = int(os.environ.get("CONTROLLER_KILLS", "12")), 0
        while kills < wanted or seen != set(rows):
            world, log, rounds = choose.choice((1, 2, 3)), f"killed{rounds}", rounds + 1
            self.assertLess(rounds, 4 * wanted + 20)
            children = self.start(world, "killed.pt", log)
            if kills < wanted:
                time.sleep(choose.uniform(0.1, 1.2))
            ended = self.wait(children, kill=kills < wanted)
            kills += not ended
            found, texts = self.read(world, log)
            for place, what in found.items():
                self.assertEqual(what, rows[place], place)
            seen.update(found)
            if ended:
                self.assertEqual(texts, {text})
                if kills < wanted:  # from the start again
                    os.unlink(os.path.join(self.folder, "killed.pt"))
        self.check_history(text)

    def wait(self, children, kill):
        """Kills the children that have not ended. Returns whether all had."""
        statuses = []
        for child in children:
            if kill:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            statuses.append(os.waitpid(child, 0)[1])
        self.assertTrue(kill or not any(statuses), statuses)
        return not any(statuses)

    def check_history(self, text):
        """The audit of the last text counts the rows of each source in the whole history."""
        with open(os.path.join(self.folder, "history.run"), "w", encoding="utf-8") as file:
            file.write(text)
        ran = subprocess.run([TOKMAP, "audit", "--ranks", "2", "history.run"], cwd=self.folder, capture_output=True,
                             text=True, timeout=300)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)


if __name__ == "__main__":
    unittest.main()
