# SPDX-License-Identifier: MIT
"""A run with everything that can change under way: weights that a controller changes, documents that are taken out,
rows that are balanced over ranks, and rows that are cut for context parallelism. A program that reads it is killed at
random, and continues with other ranks, another balance, and other slices. It delivers the rows of a program that nobody
disturbs. CHANGES_KILLS is the number of kills (50)."""
import contextlib
import json
import os
import random
import signal
import time
import unittest
import zlib

import tokmap
from support import new_folder, pack, values

STEPS, EVERY, AHEAD, SEQ = 60, 5, 2, 48


def joined(slices, layout):
    """The columns of a row, from those of each context rank."""
    if layout == "contiguous":
        return [value for part in slices for value in part]
    half = len(slices[0]) // 2
    return [value for part in slices for value in part[:half]] + \
           [value for part in reversed(slices) for value in part[half:]]


class Ranks:
    """All ranks of a program, in one process: a loader for each rank and each slice of its rows."""

    def __init__(self, run, world, parts, layout, state, **options):
        self.layout = layout
        self.loaders = [[tokmap.Loader(run, rank=rank, world=world, context_rank=part, context_world=parts,
                                       context_layout=layout, rows=2, resume=state, mask_targets=True, **options)
                         for part in range(parts)] for rank in range(world)]

    def step(self):
        """The rows of the next step, by number; none at the end."""
        rows = {}
        for slices in self.loaders:
            last = False
            while not last:
                batches = [next(loader, None) for loader in slices]
                if batches[0] is None:
                    return {}
                inputs, targets = [values(b.inputs) for b in batches], [values(b.targets) for b in batches]
                for i, place in enumerate(batches[0].places):
                    assert {b.places[i].row for b in batches} == {place.row}
                    rows[place.row] = [place.name, place.epoch, place.window,
                                       joined([part[i] for part in inputs], self.layout),
                                       joined([part[i] for part in targets], self.layout)]
                last = batches[0].last_in_step
        return rows

    def state(self):
        return self.loaders[0][0].state_dict()

    def reload(self, run):
        for slices in self.loaders:
            for loader in slices:
                loader.reload(run)

    def close(self):
        for slices in self.loaders:
            for loader in slices:
                loader.close()


class Changes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()
        for name, seed in (("web", 1), ("wiki", 2), ("code", 3)):
            pack(cls.folder, name, 60, seed)
        for number, listed in enumerate((("web", range(0, 60, 2)), ("code", range(1, 60, 3)))):
            with open(os.path.join(cls.folder, f"out{number}.list"), "w", encoding="utf-8") as file:
                file.writelines(f"{listed[0]} {document}\n" for document in listed[1])
        cls.text = "\n".join([f"seq_len {SEQ}", "batch 6", "seed 5", "source web web", "source wiki wiki",
                              "source code code", "phase 0 web 0.5 wiki 0.3 code 0.2",
                              "exclude out0.list from 20", "exclude out1.list from 41", f"steps {STEPS}", ""])

    def deliver(self, name, seed):
        """Reads the run to its end, from where `name` was saved last, and writes a line for each step."""
        choose, saved = random.Random(seed), os.path.join(self.folder, f"{name}.json")
        os.chdir(self.folder)
        text, step, state = self.text, 0, None
        with contextlib.suppress(FileNotFoundError), open(saved, encoding="utf-8") as file:
            text, step, state = json.load(file)
        run = tokmap.Run(text=text)
        world, parts = choose.choice((1, 2, 3, 4)), choose.choice((1, 2, 4))
        ranks = Ranks(run, world, parts, choose.choice(("contiguous", "zigzag")), state,
                      balance=choose.choice((0, 0.01)), threads=choose.choice((0, 1)))
        with open(f"{name}.{seed}", "w", encoding="utf-8") as log:
            while rows := ranks.step():
                log.write(f"{step} {zlib.crc32(json.dumps(sorted(rows.items())).encode()):08x}\n")
                log.flush()
                step += 1
                if step % EVERY == 0 and step + AHEAD < STEPS:
                    web = 1 + step * 7 % 50
                    run = run.with_phase(step + AHEAD, weights={"web": web, "wiki": 25, "code": 75 - web})
                    ranks.reload(run)
                with open(f"{saved}.new", "w", encoding="utf-8") as file:
                    json.dump((run.text, step, ranks.state()), file)
                os.replace(f"{saved}.new", saved)
            log.write(f"end {run.text!r}\n")
        ranks.close()

    def start(self, name, seed):
        child = os.fork()
        if not child:
            status = 1
            with contextlib.suppress(BaseException):
                self.deliver(name, seed)
                status = 0
            os._exit(status)
        return child

    def read(self, name, seed):
        """The steps that a program has delivered, and whether it ended. A kill may cut the last line."""
        steps, ended = {}, False
        with contextlib.suppress(FileNotFoundError), open(os.path.join(self.folder, f"{name}.{seed}"),
                                                          encoding="utf-8") as file:
            for line in file:
                if line.endswith("\n"):
                    number, _, what = line.rstrip("\n").partition(" ")
                    ended = ended or number == "end"
                    steps[number] = what
        return steps, ended

    def test_killed(self):
        self.assertEqual(os.waitpid(self.start("whole", 0), 0)[1], 0)
        whole, ended = self.read("whole", 0)
        self.assertTrue(ended)
        self.assertEqual(len(set(whole.values())), STEPS + 1)
        wanted, kills, seen = int(os.environ.get("CHANGES_KILLS", "50")), 0, set()
        choose, seed = random.Random(int(os.environ.get("SEED", "7"))), 0
        while kills < wanted or seen != set(whole):
            seed += 1
            self.assertLess(seed, 4 * wanted + 20)
            child = self.start("killed", seed)
            if kills < wanted:
                time.sleep(choose.uniform(0.0, 0.25))
                os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
            self.assertIn(status, (0, signal.SIGKILL), f"seed {seed}")
            steps, ended = self.read("killed", seed)
            self.assertEqual(steps, {number: whole[number] for number in steps}, f"seed {seed}")
            seen.update(steps)
            kills += status != 0
            if ended:  # from the start again
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.folder, "killed.json"))


if __name__ == "__main__":
    unittest.main()
