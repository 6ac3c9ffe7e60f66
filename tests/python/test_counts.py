# SPDX-License-Identifier: MIT
"""How many targets count: of a batch, and of its whole step; and what losses and gradients are made of them."""
import copy
import pickle
import subprocess
import unittest

import tokmap
from support import TOKMAP, WithData, needs, pack, values

SEQ, BATCH = 100, 8


class Counts(WithData):
    """Rows of 100 tokens. Documents have marks; of some of them no token counts."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.chat = f"{cls.folder}/chat"
        with tokmap.ShardWriter(cls.chat, vocab_size=300, eod=299, mask=True) as writer:
            for n in range(90):
                ids = [(n * 31 + k * k) % 299 for k in range(n * 13 % 170)]
                writer.add(ids, mask=[int(n % 5 > 0 and (k * 7 + n) % 3 > 0) for k in range(len(ids))])
        cls.text = f"seq_len {SEQ}\nbatch {BATCH}\npasses 1\nseed 3\ntail pad\nsource chat \"{cls.chat}\"\n"

    def of_step(self, run, step, **how):
        """Every loader's (counted, counted_in_step, arrays) of a step."""
        with run.loader(resume=run.cursor(step), counts=True, framework="dlpack", threads=0, **how) as loader:
            for b in loader:
                if b.step != step:
                    return
                yield b

    def test_targets_and_labels(self):
        """Of the same row, labels have one less: the target of the row's last token. Without masks all but padding
        counts."""
        data = pack(self.folder, "plain", documents=40)
        run = tokmap.Run(text=f"seq_len {SEQ}\nbatch 5\npasses 1\ntail pad\nsource web \"{data}\"\n")
        tokens, padded = run.sources[0].dataset.info.tokens, 0
        for step in range(run.info.steps):
            for b in self.of_step(run, step, fields="inputs targets"):
                found = sum(target != -100 for row in values(b.targets) for target in row)
                self.assertEqual((b.counted, b.counted_in_step), (found, found))
                padded += b.count * SEQ - found
        self.assertEqual(padded, -(-(tokens - 1) // (5 * SEQ)) * 5 * SEQ - (tokens - 1))
        run = tokmap.Run(text=self.text)
        for fields, counts in (("targets loss_mask", lambda b: sum(map(sum, values(b.loss_mask)))),
                               ("labels", lambda b: sum(x != -100 for row in values(b.labels) for x in row)),
                               ("labels loss_mask", lambda b: sum(map(sum, values(b.loss_mask))))):
            for b in self.of_step(run, 0, fields=fields):
                self.assertEqual((b.counted, b.counted_in_step), (counts(b), counts(b)), fields)

    def test_ranks_and_calls(self):
        """The sums over all ranks, calls, and slices are those of the step, which every call of every rank says."""
        run = tokmap.Run(text=self.text)
        for step in (0, 1, run.info.steps - 1):
            whole = next(iter(self.of_step(run, step, fields="labels"))).counted_in_step
            self.assertGreater(whole, 0)
            for world, rows, slices, threads, balance in ((1, 3, 1, 0, 0), (3, 1, 1, 1, 0), (3, 2, 2, 0, 0),
                                                          (8, 0, 5, 0, 0), (2, 2, 1, 0, .1)):
                total = 0
                for rank in range(world * slices):
                    with run.loader(fields="labels", rank=rank // slices, world=world, rows=rows, threads=threads,
                                    context_rank=rank % slices, context_world=slices, counts=True, balance=balance,
                                    resume=run.cursor(step), framework="dlpack") as loader:
                        for b in loader:
                            if b.step != step:
                                break
                            self.assertEqual(b.counted_in_step, whole)
                            self.assertEqual(b.counted, sum(x != -100 for row in values(b.labels) for x in row))
                            total += b.counted
                self.assertEqual(total, whole, (world, rows, slices))

    def test_moves(self):
        """A loader that becomes another rank, goes back, or is copied counts what it then delivers."""
        run = tokmap.Run(text=self.text)
        with run.loader(fields="labels", rank=0, world=1, rows=4, counts=True, framework="dlpack") as loader:
            first = [(b.counted, b.counted_in_step) for b in (next(loader), next(loader))]
            self.assertEqual(sum(counted for counted, _ in first), first[0][1])
            loader.rewind()
            self.assertEqual((next(loader).counted, next(loader).counted_in_step), (first[0][0], first[1][1]))
            loader.repartition(1, 2)
            second = next(loader)
            again = pickle.loads(pickle.dumps(loader))
            with again:
                b = next(again)
                self.assertGreater(b.counted_in_step, 0)
                self.assertEqual((b.step, b.counted_in_step), (second.step + 1, next(loader).counted_in_step))
        kept = copy.copy(b)
        self.assertEqual((kept.counted, kept.counted_in_step), (b.counted, b.counted_in_step))

    def test_refused(self):
        run = tokmap.Run(text=self.text)
        with self.assertRaisesRegex(tokmap.ArgumentError, "counts counts targets or labels, but fields has neither"):
            run.loader(fields="inputs", mask_targets=True, counts=True)
        with run.loader(fields="labels", framework="dlpack") as loader:
            b = next(loader)
            with self.assertRaisesRegex(AttributeError, "no counted, because its loader was opened without counts"):
                print(b.counted)
            self.assertFalse(hasattr(copy.copy(b), "counted_in_step"))
        raw = f"{self.folder}/raw.bin"
        with open(self.chat + ".bin", "rb") as source, open(raw, "wb") as into:
            into.write(source.read())
        text = f"seq_len {SEQ}\nbatch 4\nsource raw \"raw:{raw},width=2,eod=299\"\n"
        foreign = tokmap.Run(text=text)
        with foreign.loader(fields="inputs targets", counts=True, framework="dlpack") as loader:
            self.assertEqual(next(loader).counted_in_step, 4 * SEQ)
        with self.assertRaisesRegex(tokmap.TokmapError, "source 'raw' has no document index; make one with `tokmap index"):
            foreign.loader(fields="labels", counts=True)
        subprocess.run([TOKMAP, "index", "-q", f"raw:{raw},width=2,eod=299"], check=True)
        with tokmap.Run(text=text).loader(fields="labels", counts=True, framework="dlpack") as loader:
            b = next(loader)
            self.assertEqual(b.counted_in_step, sum(x != -100 for row in values(b.labels) for x in row))

    def gradients(self, run, step, world, rows, loss_of):
        """The sum over all ranks and calls of the gradients of their losses, each divided by the step's count."""
        sums, empty = [], 0
        for rank in range(world):
            for b in self.of_step(run, step, fields="inputs targets", mask_targets=True, rank=rank, world=world,
                                  rows=rows):
                empty += b.counted == 0
                for x, y in ((x, y) for row in zip(values(b.inputs), values(b.targets)) for x, y in zip(*row)):
                    if y != -100:
                        sums.append((x, loss_of(x, y) / b.counted_in_step))
        made = [0.0] * 300
        for x, gradient in sums:
            made[x] += gradient
        return made, empty

    def test_gradients(self):
        """The gradient of a step does not depend on how it is cut, also where a call has nothing that counts; and the
        mean of the calls' means does."""
        run, empty = tokmap.Run(text=self.text + "order sequential\n"), 0
        for step in range(run.info.steps):
            whole, _ = self.gradients(run, step, 1, 8, lambda x, y: 2 * (x / 300 - y / 300))
            for world in (1, 2, 3):
                for rows in (8, 4, 2, 1):
                    made, none = self.gradients(run, step, world, rows, lambda x, y: 2 * (x / 300 - y / 300))
                    empty += none
                    for one, other in zip(made, whole):
                        self.assertAlmostEqual(one, other, delta=1e-6 * max(map(abs, whole)))
        self.assertGreater(empty, 0)

    @needs("torch")
    def test_torch(self):
        """The same with a model of torch, its cross entropy, and ranks that add up their gradients."""
        import torch
        run, found = tokmap.Run(text=self.text), []
        for world, rows in ((1, 8), (1, 1), (2, 2), (3, 1)):
            torch.manual_seed(0)
            model = torch.nn.Sequential(torch.nn.Embedding(300, 8), torch.nn.Linear(8, 300)).double()
            for rank in range(world):
                with run.loader(rank=rank, world=world, rows=rows, mask_targets=True, counts=True, dtype=torch.int64,
                                resume=run.cursor(1)) as loader:
                    for b in loader:
                        if b.step != 1:
                            break
                        loss = torch.nn.functional.cross_entropy(model(b.inputs).flatten(0, 1), b.targets.flatten(),
                                                                 reduction="sum")
                        (loss / b.counted_in_step).backward()
            found.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
        for each in found[1:]:
            self.assertLess((each - found[0]).abs().max() / found[0].abs().max(), 1e-6)

    def test_evaluation(self):
        """A perplexity is a sum over the targets of all steps, divided once by their number."""
        text = self.text.replace(f'"{self.chat}"', f'"{self.chat}#docs=0..50%"').replace("tail pad\n", "")
        run = tokmap.Run(text=text).evaluation(batch=3)
        total = sum(next(iter(self.of_step(run, step, fields="labels"))).counted_in_step
                    for step in range(run.info.steps))
        each = sum(b.counted for step in range(run.info.steps)
                   for rank in range(2) for b in self.of_step(run, step, fields="labels", rank=rank, world=2, rows=1))
        self.assertEqual(total, each)
        self.assertGreater(total, 500)


if __name__ == "__main__":
    unittest.main()
