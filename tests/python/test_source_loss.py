# SPDX-License-Identifier: MIT
"""The numbers of rows' sources, and losses that are summed by them."""
import json
import random
import statistics
import subprocess
import unittest

import tokmap
from support import TOKMAP, WithData, needs, pack, python, values

SEQ, BATCH = 32, 7


def run_row(run, step, row):
    """The first tokens of a row, read from its dataset."""
    place = run.locate(step, row)
    with tokmap.Dataset(run.sources[place.source].data) as data:
        return list(map(int, data.tokens(place.first_token, min(SEQ, place.tokens))))


class Sources(WithData):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        others = [pack(cls.folder, f"other{i}", documents=40, seed=5 + i) for i in range(2)]
        cls.mixture = dict(sources={"c": cls.prefix, "a": others[0], "b": others[1]}, seq_len=SEQ, batch=BATCH, seed=4,
                           weights={"c": 3, "a": 1, "b": 2})
        cls.run_file = tokmap.Run(**cls.mixture, passes="2 of a", tail="pad")

    def test_source_ids(self):
        """They are the places' sources, whoever fills a batch, and in whatever form."""
        run = self.run_file
        self.assertEqual(run.source_names, ("c", "a", "b"))
        self.assertEqual([source.name for source in run.sources], list(run.source_names))
        for fields in ("source_ids", "inputs source_ids loss_mask", "cu_seqlens source_ids position_ids"):
            for threads in (0, 1):
                for dtype in ("int32", "int64"):
                    seen = set()
                    with run.loader(fields=fields, dtype=dtype, framework="dlpack", threads=threads, rows=3) as loader:
                        for b in loader:
                            ids = values(b.source_ids)
                            self.assertEqual(ids, [tokmap.IGNORE if place.source is None else place.source
                                                   for place in b.places])
                            self.assertEqual(b.source_ids.shape, (b.count,))
                            seen.update(ids)
                    self.assertTrue({0, 1, 2} <= seen)

    def test_written_directly(self):
        """Beside inputs and targets that are written straight from the file."""
        with tokmap.Run(**self.mixture, steps=30) as run:
            for threads in (0, 1):
                with run.loader(fields="targets source_ids inputs", framework="dlpack", threads=threads) as loader:
                    for b in loader:
                        self.assertEqual(values(b.source_ids), [place.source for place in b.places])
                        self.assertEqual((values(b.inputs), values(b.targets)),
                                         self.rows_of(run, b))

    @needs("torch")
    def test_rows_of_loss(self):
        """`tokmap show --losses` reads them: the largest first, with the median of the step."""
        import torch
        with tokmap.Run(**self.mixture, passes="1 of a", tail="pad") as run:
            path, wanted, choose = f"{self.folder}/losses.jsonl", [], random.Random(2)
            with open(f"{self.folder}/a.run", "w", encoding="utf-8") as file:
                file.write(run.text)
            with open(path, "w", encoding="utf-8") as file, run.loader(rows=3, fields="inputs loss_mask") as loader:
                for b in loader:
                    losses = torch.tensor([[choose.uniform(0, 5) for _ in range(4)] for _ in range(b.count)])
                    losses[0][0] = float("nan") if b.step == 3 else losses[0][0]
                    file.write(b.rows_of_loss(losses if b.step % 2 else losses.mean(1)))
                    wanted += [(loss.item(), b.step, b.first_row + i, place)
                               for i, (loss, place) in enumerate(zip(losses.mean(1), b.places))
                               if place.source is not None]
                with self.assertRaisesRegex(tokmap.ArgumentError, "a loss for each row or token"):
                    b.rows_of_loss(torch.ones(b.count + 1))
                with self.assertRaisesRegex(tokmap.ArgumentError, "losses is a list, but it must be a tensor or an"):
                    b.rows_of_loss([1.0] * b.count)
            shown = subprocess.run([TOKMAP, "show", f"{self.folder}/a.run", "--losses", path, "--json", "--ids", "--top",
                                    "100000"], capture_output=True, text=True, timeout=300)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            found = [json.loads(line) for line in shown.stdout.splitlines()]
            self.assertEqual(len(found), len(wanted))
            wanted.sort(key=lambda each: (0, 0, *each[1:3]) if each[0] != each[0] else (1, -each[0], *each[1:3]))
            for line, (loss, step, row, place) in zip(found, wanted):
                self.assertEqual((line["step"], line["row"], line["name"], line["window"]),
                                 (step, row, place.name, place.window))
                self.assertEqual(line["ids"][:SEQ], run_row(run, step, row))
                if step == 3:
                    continue
                self.assertAlmostEqual(line["loss"], loss, places=5)
                of_step = [each[0] for each in wanted if each[1] == step]
                self.assertAlmostEqual(line["median"], statistics.median(of_step), places=5)
                again = {(other.step, other.row) for other in run.find(
                    place.name, first_token=place.first_token, count=place.tokens)} - {(step, row)}
                self.assertLessEqual({(each["step"], each["row"]) for each in line["also"]}, again)

    def test_losses_of_calls(self):
        """A loss of a rank's call is shown for the rows that the loader delivered in this call, balanced or not."""
        path = f"{self.folder}/calls.jsonl"
        with tokmap.Run(**self.mixture, steps=20) as run:
            with open(f"{self.folder}/calls.run", "w", encoding="utf-8") as file:
                file.write(run.text)
            for world, rows, balance in (1, 0, 0.0), (3, 2, 0.0), (2, 3, 0.01), (5, 1, 0.01):
                wanted = []
                with open(path, "w", encoding="utf-8") as file:
                    for rank in range(world):
                        step = call = -1
                        with run.loader(rank=rank, world=world, rows=rows, balance=balance, fields="inputs",
                                        framework="dlpack") as loader:
                            for b in loader:
                                call = call + 1 if b.step == step else 0
                                step, loss = b.step, len(wanted) + 1
                                wanted.append((loss, step, rank, call, list(b.row_numbers)))
                                file.write(json.dumps({"step": step, "rank": rank, "call": call, "loss": loss}) + "\n")
                shown = subprocess.run(
                    [TOKMAP, "show", f"{self.folder}/calls.run", "--losses", path, "--json", "--ids", "-q", "--top",
                     "100000", "--ranks", str(world), "--rows", str(rows), "--balance", str(balance)],
                    capture_output=True, text=True, timeout=300)
                self.assertEqual(shown.returncode, 0, shown.stderr)
                found = [json.loads(line) for line in shown.stdout.splitlines()]
                self.assertEqual([(line["loss"], line["step"], line["rank"], line["call"], line["row"]) for line in found],
                                 [(*each[:4], row) for each in reversed(wanted) for row in each[4]])

    def rows_of(self, run, b):
        rows = []
        for place in b.places:
            with tokmap.Dataset(run.sources[place.source].data) as data:
                tokens = list(map(int, data.tokens()))
                rows.append([tokens[(place.first_token + j) % len(tokens)] for j in range(SEQ + 1)])
        return [row[:-1] for row in rows], [row[1:] for row in rows]

    def check(self, make, **how):
        """Compares sums with those that a program makes row by row."""
        run, choose = self.run_file, random.Random(3)
        by_source = tokmap.SourceLoss(run)
        self.assertEqual(by_source.result(), {})
        for tokens in (False, True):
            for weighted in (False, True):
                wanted = {}
                with run.loader(fields="inputs source_ids loss_mask", threads=0, **how) as loader:
                    for b in loader:
                        shape = (b.count, SEQ) if tokens else (b.count,)
                        count = b.count * SEQ if tokens else b.count
                        flat = [choose.uniform(0, 9) for _ in range(count)]
                        weights = [choose.choice((0, 1, 2.5)) for _ in range(count)] if weighted else [1] * count
                        flat = [loss if weight else float("nan") for loss, weight in zip(flat, weights)]
                        by_source.add(b.source_ids, make(flat, shape), make(weights, shape) if weighted else None)
                        for i, (loss, weight) in enumerate(zip(flat, weights)):
                            place = b.places[i // SEQ if tokens else i]
                            if place.source is not None and weight:
                                into = wanted.setdefault(f"loss/{place.name}", [0, 0])
                                into[0] += loss * weight
                                into[1] += weight
                kept = by_source.result(keep=True)
                self.assertEqual(kept, by_source.result())
                self.assertEqual(by_source.result(), {})
                self.assertEqual(set(kept), {"loss/a", "loss/b", "loss/c"})
                for name, (total, weight) in wanted.items():
                    self.assertAlmostEqual(kept[name], total / weight, places=9)
        for losses, weights in ((make([1.0] * 6, (6,)), None), (make([1.0] * 7, (7,)), make([1.0] * 6, (6,)))):
            with self.assertRaisesRegex(tokmap.ArgumentError, "a loss for each row or token"):
                by_source.add(make([0.0] * 7, (7,)), losses, weights)
        with self.assertRaisesRegex(tokmap.ArgumentError, "source_ids is None: add .source_ids. to the loader's fields"):
            by_source.add(None, make([1.0] * 7, (7,)))

    @needs("numpy")
    def test_numpy(self):
        import numpy
        self.check(lambda flat, shape: numpy.array(flat).reshape(shape), framework="numpy", dtype="int32")

    @needs("torch")
    def test_torch(self):
        import torch
        for dtype in (torch.int32, torch.int64):
            self.check(lambda flat, shape: torch.tensor(flat, dtype=torch.float64).reshape(shape), dtype=dtype)
        losses = torch.ones(2, requires_grad=True) * 2
        by_source = tokmap.SourceLoss(["x", "y"])
        by_source.add(torch.tensor([1, 1]), losses.to(torch.bfloat16))
        self.assertEqual(by_source.result("train/"), {"train/y": 2.0})

    @needs("torch")
    def test_reload(self):
        """A batch knows its sources, whose numbers a move to an edited run changes; losses are summed by name."""
        import numpy
        import torch
        text = "seq_len 8\nbatch 6\nsource {} synthetic:vocab=50,tokens=900,seed={}\n".format
        more = "source {} synthetic:vocab=50,tokens=900,seed={}\n".format
        first = text("a", 1) + more("b", 2) + "phase 0 a 1 b 1\nsteps 9\n"
        then = text("z", 3) + more("b", 2) + more("a", 1) + "phase 0 a 1 b 1\nphase 3 a 1 b 1 z 1\nsteps 9\n"
        for framework, of in (("torch", torch.tensor), ("numpy", numpy.array)):
            with tokmap.Run(text=first) as run, tokmap.Run(text=then) as edited, \
                    run.loader(fields="inputs source_ids", framework=framework) as loader:
                by_source, wanted = tokmap.SourceLoss(run), {}
                for step in range(9):
                    b = next(loader)
                    for place in b.places:
                        wanted.setdefault(f"loss/{place.name}", []).append(float(ord(place.name) + step))
                    by_source.add(b, of([float(ord(place.name) + step) for place in b.places]))
                    if step == 2:
                        loader.reload(edited)
                self.assertEqual(set(wanted), {"loss/a", "loss/b", "loss/z"})
                found = by_source.result()
                self.assertEqual(set(found), set(wanted))
                for name, losses in wanted.items():
                    self.assertAlmostEqual(found[name], statistics.mean(losses))

    @needs("torch")
    def test_ranks(self):
        """Each rank has the sums of all, also one without rows."""
        said = python("""
            import os, sys, torch
            import torch.multiprocessing as processes
            import tokmap

            def main(rank, file):
                torch.distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=3)
                by_source = tokmap.SourceLoss(["x", "y", "z"])
                if rank:
                    by_source.add(torch.tensor([rank - 1, 0]), torch.tensor([rank * 1.0, 6.0]))
                right = by_source.result() == {"loss/x": 13 / 3, "loss/y": 2.0}
                os.write(1, b"True " if right else b"False ")
                torch.distributed.destroy_process_group()

            if __name__ == "__main__":
                processes.start_processes(main, (sys.argv[1],), 3, start_method="fork")
        """.replace("\n            ", "\n"), f"{self.folder}/store")
        self.assertEqual(said.split(), ["True"] * 3)


if __name__ == "__main__":
    unittest.main()
