# SPDX-License-Identifier: MIT
"""Rows that are assigned to ranks and calls by what they cost."""
import copy
import json
import pickle
import random
import subprocess
import unittest
from fractions import Fraction

import tokmap
from support import TOKMAP, WithData, needs, pack, values

SEQ, BATCH, Q = 48, 23, 0.01


def costs_of(run, step):
    """The cost of each row of a step, from its cu_seqlens."""
    q = Fraction(round(Q * 2**40), 2**40)
    how = {"fields": "cu_seqlens", "threads": 0, "rows": 1, "world": 1, "framework": "dlpack"}
    with run.loader(**how, resume=run.cursor(step)) as loader:
        costs = []
        for b in loader:
            if b.step != step:
                break
            ends = values(b.cu_seqlens)[:b.documents + 1]
            costs.append(sum(end - start + q * (end - start)**2 for start, end in zip(ends, ends[1:])))
        return costs


def expected(costs, world, rows):
    """Which rows each call of each rank gets, as tokmap_balance() in loader.h says."""
    calls = -(-(-(-len(costs) // world)) // rows) if rows else 1
    room = []
    for number in range(world * calls):
        call, rank = divmod(number, world)
        held = (rank + 1) * len(costs) // world - rank * len(costs) // world
        room.append((call + 1) * held // calls - call * held // calls)
    cells = [[] for _ in room]
    for row in sorted(range(len(costs)), key=lambda row: (-costs[row], row)):
        number = min((number for number in range(len(cells)) if len(cells[number]) < room[number]),
                     key=lambda number: (sum(costs[held] for held in cells[number]), number))
        cells[number].append(row)
    return [[sorted(cell) for cell in cells[rank::world]] for rank in range(world)]


class Balance(WithData):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        other = pack(cls.folder, "other", documents=90, seed=9)
        plan = f"{cls.folder}/other.plan"
        subprocess.run([TOKMAP, "plan", "-q", "-o", plan, "--seq-len", str(SEQ), other], check=True,
                       stderr=subprocess.DEVNULL)
        cls.text = (f"seq_len {SEQ}\nbatch {BATCH}\nseed 8\ntail pad\nsource web \"{cls.prefix}\"\n"
                    f"source whole \"{other}\" plan \"{plan}\"\nphase 0 web 2 whole 1\nphase 6 web 1 whole 1 batch 9\n"
                    f"passes 2 of web\n")
        cls.run_file = tokmap.Run(text=cls.text)
        cls.costs = [costs_of(cls.run_file, step) for step in range(cls.run_file.info.steps)]

    def loader(self, **how):
        return self.run_file.loader(**{"fields": "rows inputs labels", "framework": "dlpack", "balance": Q, **how})

    def test_rows(self):
        """Every rank gets the rows that the manual says, with their contents, in calls of the same sizes as before."""
        run = self.run_file
        whole = {}
        with run.loader(fields="rows inputs labels", framework="dlpack") as loader:
            for b in loader:
                whole.update({(b.step, row): (values(b.rows)[i], values(b.labels)[i], place)
                              for i, (row, place) in enumerate(zip(b.row_numbers, b.places))})
        moved = 0
        for world, rows, threads in ((1, 4, 0), (2, 0, 1), (3, 2, 0), (5, 1, 1), (9, 0, 0), (4, 3, 1)):
            wanted = [expected(costs, world, rows) for costs in self.costs]
            for rank in range(world):
                how = {"rank": rank, "world": world, "rows": rows, "threads": threads}
                with self.loader(**how) as loader, self.loader(**how, balance=0) as plain:
                    for b, other in zip(loader, plain):
                        self.assertEqual((b.step, b.count, b.last_in_step),
                                         (other.step, other.count, other.last_in_step))
                        self.assertEqual(loader.state_dict(), plain.state_dict())
                        call = wanted[b.step][rank].pop(0)
                        self.assertEqual(list(b.row_numbers), call)
                        self.assertEqual([place.row for place in b.places], call)
                        self.assertEqual(b.real_rows, sum(row < run.real_rows(b.step) for row in call))
                        for i, row in enumerate(call):
                            self.assertEqual((values(b.rows)[i], values(b.labels)[i], b.places[i]), whole[b.step, row])
                        moved += list(other.row_numbers) != call
                    self.assertFalse(any(step[rank] for step in wanted))
        self.assertGreater(moved, 100)

    def test_many_documents(self):
        """Rows with more documents than are read at once, and with windows that pass the end of the data."""
        prefix, choose = f"{self.folder}/tiny", random.Random(8)
        with tokmap.ShardWriter(prefix, vocab_size=100, sync=False) as writer:
            for _ in range(20_000):
                writer.add([1] * choose.choice((1, 1, 2, 3, 40)))
        with tokmap.Run(data=prefix, seq_len=4000, batch=12, seed=2, passes=3) as run:
            self.assertGreater(len(run.documents(0, 0)), 300)
            for step in range(run.info.steps):
                wanted = expected(costs_of(run, step), 3, 2)
                for rank in range(3):
                    with run.loader(rank=rank, world=3, rows=2, balance=Q, resume=run.cursor(step), fields="rows",
                                    framework="dlpack") as loader:
                        self.assertEqual([list(next(loader).row_numbers) for _ in range(2)], wanted[rank])

    def test_what_a_batch_says(self):
        """All that names a row of a batch names the right one, also after the loader has moved on."""
        with self.loader(rank=1, world=2, rows=4) as loader:
            b = next(loader)
            copies = [b, copy.copy(b)]
            next(loader)
        for b in copies:
            numbers = list(b.row_numbers)
            self.assertNotEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
            self.assertEqual(b.first_row, numbers[0])
            for i, row in enumerate(numbers):
                self.assertEqual(b.locate(i), self.run_file.documents(b.step, row))
                self.assertEqual(b.places[i], self.run_file.locate(b.step, row))
            self.assertEqual(b.epoch, max(place.epoch for place in b.places))
            self.assertIn(", ".join(map(str, numbers)), repr(b))

    @needs("numpy")
    def test_rows_of_loss(self):
        import numpy
        with self.loader(rank=1, world=2, rows=4, framework="numpy") as loader:
            for b in loader:
                lines = [json.loads(line) for line in b.rows_of_loss(numpy.arange(b.count) / 2).splitlines()]
                self.assertEqual([(line["step"], line["row"], line["loss"]) for line in lines],
                                 [(b.step, row, i / 2) for i, row in enumerate(b.row_numbers[:b.real_rows])])

    def test_text(self):
        with self.loader(rank=0, world=2, rows=4) as loader:
            b = next(loader)
            texts = [b.text(i) for i in range(b.count)]
        for text, inputs in zip(texts, values(b.inputs)):
            self.assertTrue(text.encode().startswith(bytes(inputs[:3])) or inputs[0] > 127, (text, inputs))

    def test_moves(self):
        """Another place in the run, another number of ranks, and another process get what a loader there would get."""
        choose = random.Random(4)
        def rows(b):
            return b.step, list(b.row_numbers), values(b.rows)
        for threads in (0, 1):
            for _ in range(6):
                world, rows_most = choose.choice((1, 2, 4)), choose.choice((0, 3))
                how = {"rank": choose.randrange(world), "world": world, "rows": rows_most, "threads": threads}
                with self.loader(**how) as loader:
                    first = [rows(next(loader)) for _ in range(5)]
                    state = loader.state_dict()
                    loader.rewind()
                    self.assertEqual([rows(next(loader)) for _ in range(5)], first)
                    with self.loader(**how, resume=state) as other, pickle.loads(pickle.dumps(loader)) as third:
                        again = [rows(b) for b in other]
                        self.assertEqual([rows(b) for b in third], again)
                    world = choose.choice((3, 5))
                    loader.repartition(world - 1, world)
                    how.update(rank=world - 1, world=world)
                    with self.loader(**how, resume=state) as other:
                        self.assertEqual([rows(b) for b in loader], [rows(b) for b in other])

    def test_replay(self):
        """A trace says how rows were balanced, so ranks with and without it, and others after them, are one run."""
        folder, run_file = f"{self.folder}/traces", self.file("replayed.run", self.text)
        subprocess.run(["mkdir", folder], check=True)
        paths, state = [], None
        for world, rows, q, end in ((2, 3, Q, 4), (3, 2, 2 * Q, 7), (2, 0, 0, None)):
            for rank in range(world):
                path = f"{folder}/{world}-{rank}-{rows}.trace"
                paths.append(path)
                with tokmap.Run(run_file) as run, run.loader(rank=rank, world=world, rows=rows, balance=q, trace=path,
                                                             resume=state, fields="rows") as loader:
                    for b in loader:
                        if b.last_in_step and b.step + 1 == end:
                            break
                    after = loader.state_dict()
            state = after

        def replay(*paths):
            ran = subprocess.run([TOKMAP, "replay", run_file, "--json", "--trace", *paths], capture_output=True,
                                 text=True, timeout=300)
            return json.loads(ran.stdout) if ran.stdout else ran.stderr
        found = replay(*paths)
        self.assertTrue(found["same"], found)
        self.assertEqual(found["steps"], self.run_file.info.steps)
        for i in range(5):  # each of these is missing, and named
            found = replay(*paths[:i], *paths[i + 1:])
            self.assertFalse(found["same"])
            self.assertEqual((found["first"]["kind"], found["first"]["step"], found["first"]["rank"]),
                             ("missing", 0 if i < 2 else 4, i if i < 2 else i - 2))

    def test_failing_index(self):
        """An index that is damaged under a loader: next() says so, and continues once it is restored."""
        prefix, choose = f"{self.folder}/damaged", random.Random(6)
        with tokmap.ShardWriter(prefix, vocab_size=100, sync=False) as writer:
            for _ in range(60_000):  # so many that the index stays in its file
                writer.add([1] * choose.randrange(1, 20))
        with open(prefix + ".tmx", "rb") as file:
            sound = file.read()

        def write(data):
            with open(prefix + ".tmx", "r+b") as file:
                file.seek(256)
                file.write(data)
        for threads in (0, 1):
            with tokmap.Run(data=prefix, seq_len=16, batch=8, steps=200) as run:
                how = {"rank": 1, "world": 2, "rows": 2, "threads": threads, "fields": "rows", "framework": "dlpack",
                       "balance": Q}
                with run.loader(**how) as loader:
                    wanted = [(b.step, list(b.row_numbers)) for b in loader]
                with run.loader(**how) as loader:
                    found = [(b.step, list(b.row_numbers)) for _, b in zip(range(20), loader)]
                    write(b"\xff" * (len(sound) - 512))
                    with self.assertRaises(tokmap.DataError):
                        while True:
                            b = next(loader)
                            found.append((b.step, list(b.row_numbers)))
                    write(sound[256:])
                    self.assertLess(len(found), len(wanted))
                    while len(found) < len(wanted):
                        try:
                            b = next(loader)
                        except tokmap.DataError:  # read before the index was restored
                            continue
                        found.append((b.step, list(b.row_numbers)))
                    self.assertEqual(found, wanted)

    def test_show(self):
        """`tokmap show` prints the rows of a rank."""
        run_file = self.file("shown.run", self.text)
        for step in (0, self.run_file.info.steps - 1):
            for rank in range(3):
                with self.loader(rank=rank, world=3, rows=2, resume=self.run_file.cursor(step)) as loader:
                    wanted = [row for b in loader if b.step == step for row in b.row_numbers]
                shown = subprocess.run([TOKMAP, "show", run_file, "--step", str(step), "--rank", str(rank), "--ranks",
                                        "3", "--balance", str(Q), "--rows", "2", "--json", "-q"], capture_output=True,
                                       text=True, timeout=300)
                self.assertEqual([json.loads(line)["row"] for line in shown.stdout.splitlines()], wanted, shown.stderr)

    def test_model(self):
        self.assertEqual(tokmap.balance(4096, 32), 1 / (12 * 4096))
        self.assertEqual(tokmap.balance(4096, 32, 6_600_000_000), 4096 * 32 / 6_600_000_000)
        self.assertEqual(tokmap.balance(4096, 32, 6.6e9), 4096 * 32 / 6_600_000_000)
        for given in ((0, 1), (1, 0), (2**33, 1), (1, 2**33), (100, 100, 10), (1, 1, 2**60)):
            with self.assertRaises(IndexError, msg=given):
                tokmap.balance(*given)
        with self.assertRaises(tokmap.ArgumentError):
            tokmap.balance(4096.5, 1)

    def test_wrong(self):
        for q in (-1, 1.001, 1e-13, float("nan"), float("inf")):
            with self.assertRaisesRegex(IndexError, "^balance is ", msg=q):
                self.loader(balance=q)
        with self.assertRaisesRegex(tokmap.ArgumentError, "balance is 'much', but it must be a number"):
            self.loader(balance="much")
        with open(f"{self.folder}/ids.bin", "wb") as file:
            file.write(bytes(range(100)) * 200)
        raw = f"raw:{self.folder}/ids.bin,width=2,eod=7,vocab=65536"
        with tokmap.Run(data=raw, seq_len=SEQ, batch=4, steps=3) as run:
            with self.assertRaisesRegex(tokmap.TokmapError, "balance needs to know where documents end, but source "
                                                            "'data' has no document index; make one with"):
                run.loader(balance=Q)
            next(run.loader())
        with tokmap.Run(data=self.prefix, seq_len=1, batch=2**24 + 1, steps=1) as run:
            with self.assertRaisesRegex(tokmap.TokmapError, "at most 2.24 rows of a step"):
                run.loader(balance=Q, rows=1, world=2**20, rank=0)


if __name__ == "__main__":
    unittest.main()
