# SPDX-License-Identifier: MIT
"""Values beside tokens, as loaders deliver them: the same rows as tokens, whatever the order, the ranks, and the arrays
that they are delivered in. What is written and finished: test_values_writer.py."""
import array
import copy
import os
import pickle
import shutil
import subprocess
import unittest

import tokmap
from support import TOKMAP, WithData, needs, pack, values

SEQ, BATCH = 24, 5


class Values(WithData):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with tokmap.Dataset(cls.prefix) as ds:
            cls.tokens = ds.info.tokens
        cls.pairs = [[i % 65521, i * 7 % 65521] for i in range(cls.tokens)]
        cls.weights = [0.5 + i % 9 / 8 for i in range(cls.tokens)]
        cls.give(cls.prefix)

    @classmethod
    def give(cls, name, first=0, holes=()):
        """Gives a dataset values: its token i has those of token first + i."""
        with tokmap.Dataset(name) as ds, tokmap.ValuesWriter(ds, [("pair", "uint16", 2), ("weight", "float32", ())]) as writer:
            count = ds.info.tokens
            pairs = array.array("H", sum(cls.pairs[first:first + count], []))
            at = 0
            for end in (*holes, count):
                if end > at:
                    writer.put_at(at, [memoryview(pairs)[2 * at:2 * end].cast("B").cast("H", (end - at, 2)),
                                       array.array("f", cls.weights[first + at:first + end])])
                at = end + 1
            writer.finish(holes=bool(holes))

    def run_of(self, **options):
        return super().run_of(seq_len=SEQ, batch=BATCH, **options)

    def right(self, b, shown=None):
        """Compares the values of a batch with those of its targets."""
        columns = shown or range(SEQ)
        for i, place in enumerate(b.places[:b.real_rows]):
            at = [(place.first_token + 1 + j) % self.tokens for j in columns]
            self.assertEqual(values(b.values["pair"])[i], [self.pairs[x] for x in at])
            self.assertEqual(values(b.values["weight"])[i], [self.weights[x] for x in at])

    def test_frameworks(self):
        """NumPy, torch, and DLPack have them, with the right dtypes, in new arrays and in the caller's."""
        for framework in ("dlpack", "numpy", "torch"):
            try:
                __import__(framework if framework != "dlpack" else "array")
            except ImportError:
                continue
            for threads in (0, 1):
                with self.run_of().loader(values="pair weight", framework=framework, threads=threads, rows=2,
                                          values_present=True) as loader:
                    out = loader.out()
                    self.assertEqual(sorted(out), ["inputs", "targets", "values", "values_present"])
                    for number, b in enumerate(loader):
                        if number % 3 == 2:
                            b = loader.next(out=out)
                            self.assertEqual(b.count < loader.rows or b.values["pair"] is out["values"]["pair"], True)
                        self.right(b)
                        self.assertEqual(b.values["pair"].shape, (b.count, SEQ, 2))
                        self.assertIn("uint16", str(b.values["pair"].dtype))
                        self.assertIn("float32", str(b.values["weight"].dtype))
                        self.assertEqual({x for row in values(b.values_present["weight"]) for x in row}, {1})
                        if number > 30:
                            break

    def test_batches(self):
        """The values of a batch do not change the way in which it is a mapping of its fields."""
        with self.run_of().loader(values=["weight"], framework="dlpack") as loader:
            b = next(loader)
            self.assertEqual([each.shape for each in b.values()], [each.shape for each in b])
            self.assertEqual(list(dict(b)), ["inputs", "targets"])
            self.assertEqual(list(b.values), ["weight"])
            self.assertIs(copy.copy(b).values["weight"], b.values["weight"])
            with self.assertRaisesRegex(KeyError, "pass values=\\\\?\"weight pair"):
                b.values["pair"]
            with self.assertRaisesRegex(AttributeError, "values_present=True"):
                b.values_present["weight"]
            again = pickle.loads(pickle.dumps(loader))
            with again:
                self.right_weights(next(again))
            loader.repartition(1, 2)
            self.right_weights(next(loader))
            loader.rewind()
            self.right_weights(next(loader))
        with self.run_of().loader(fields="", values="weight", framework="dlpack") as loader:
            self.right_weights(next(loader))

    def right_weights(self, b):
        for i, place in enumerate(b.places):
            self.assertEqual(values(b.values["weight"])[i],
                             [self.weights[(place.first_token + 1 + j) % self.tokens] for j in range(SEQ)])

    def test_ranks(self):
        """Another number of ranks, calls, and another order: each row has the values of its tokens."""
        for order in ("shuffle", "sequential", ("blocks", 3, 2)):
            for rank, world, rows in ((0, 1, 0), (1, 3, 1), (2, 5, 0)):
                with self.run_of(order=order).loader(values="pair weight", rank=rank, world=world, rows=rows,
                                                     framework="dlpack") as loader:
                    for b, _ in zip(loader, range(20)):
                        self.right(b)

    def test_map_style(self):
        ds = self.run_of().dataset(values="pair", framework="dlpack")
        for i in (0, 7, len(ds) - 1):
            place = ds.run.locate(*ds.place(i))
            self.assertEqual(values(ds[i]["pair"]), [self.pairs[(place.first_token + 1 + j) % self.tokens] for j in range(SEQ)])
        self.assertEqual(values(pickle.loads(pickle.dumps(ds))[3:5]["pair"]), values(ds[3:5]["pair"]))
        with self.assertRaisesRegex(FileNotFoundError, "web.no_such.values"):
            self.run_of().dataset(values="no_such")

    def test_many_shards(self):
        """A folder of shards, a part of it, and a mixture: token numbers go through all."""
        folder = os.path.join(self.folder, "shards")
        os.mkdir(folder)
        with tokmap.Dataset(self.prefix) as ds:
            tokens, ends, first = list(ds.tokens()), [], 0
            for n in range(len(ds)):
                ends.append(ds.document(n).first_token + ds.document(n).tokens)
        for number, documents in enumerate((10, 25, 60)):
            last = ends[documents - 1]
            with tokmap.ShardWriter(f"{folder}/{number}", vocab_size=257, eod=256) as writer:
                at = first
                for end in ends[(0, 10, 25)[number]:documents]:
                    writer.add(tokens[at:end - 1])
                    at = end
            first = last
        with tokmap.Dataset(folder) as ds:
            self.assertEqual(list(ds.tokens()), tokens)
        self.give(folder)
        part = f"{folder}#docs=5..50"
        for name, skipped in ((folder, 0), (part, ends[4])):
            run = tokmap.Run(data=name, seq_len=SEQ, batch=3, seed=1, passes=1)
            with run.loader(values="weight", framework="dlpack") as loader, tokmap.Dataset(name) as ds:
                for b in loader:
                    for i, place in enumerate(b.places):
                        at = [(place.first_token + 1 + j) % ds.info.tokens + skipped for j in range(SEQ)]
                        self.assertEqual(values(b.values["weight"])[i], [self.weights[x] for x in at])

    def test_refused(self):
        """What is missing, of another type, or of other tokens, is an error when the loader opens, with the file."""
        other = pack(self.folder, "other", documents=30, seed=4)
        mixed = tokmap.Run(sources={"a": self.prefix, "b": other}, weights={"a": 1, "b": 1}, seq_len=SEQ, batch=2, steps=9)
        with self.assertRaisesRegex(FileNotFoundError, "other.weight.values.*make them with a writer"):
            mixed.loader(values="weight")
        with tokmap.ValuesWriter(other, "weight", "float16", 2) as writer:
            writer.finish(holes=True)
        with self.assertRaisesRegex(tokmap.TokmapError, "source 'b' are f16\\[2\\], but those of source 'a' are f32"):
            mixed.loader(values="weight")
        shutil.copy(f"{self.prefix}.weight.values", f"{other}.pair.values")
        with self.assertRaisesRegex(tokmap.TokmapError, "belong to the tokens with content id"):
            mixed.loader(values="pair")
        for names, wanted in (("weight weight", "twice"), ("Weight", "lower-case"), ("bin", "other files"),
                              (" ".join("abcdefghi"), "more than 8|cannot be opened")):
            with self.assertRaisesRegex((tokmap.ArgumentError, OSError), wanted):
                self.run_of().loader(values=names)
        with self.assertRaisesRegex(tokmap.ArgumentError, "values_present"):
            self.run_of().loader(values_present=True)
        synthetic = tokmap.Run(data="synthetic:vocab=9,tokens=999", seq_len=SEQ, batch=2, steps=2)
        with self.assertRaisesRegex(tokmap.TokmapError, "shards"):
            synthetic.loader(values="weight")

    def test_cut_while_open(self):
        """A file that is cut while a loader reads it is an error that says where, and the loader continues when it is
        whole again."""
        name = pack(self.folder, "cut", documents=50)
        with tokmap.Dataset(name) as ds, tokmap.ValuesWriter(ds, "v", "float32", 64) as writer:
            count = ds.info.tokens
            writer.put_at(0, [memoryview(array.array("f", range(64 * count))).cast("B").cast("f", (count, 64))])
            writer.finish()
        path = f"{name}.v.values"
        with open(path, "rb") as file:
            whole = file.read()
        for reading in ("mapped", "pread"):
            for threads in (0, 1):
                run = tokmap.Run(data=name, seq_len=SEQ, batch=3, seed=1, passes=9, reading=reading)
                with run.loader(values="v", framework="dlpack", threads=threads, ring_bytes=200000) as loader:
                    for _ in range(60):
                        next(loader)
                    os.truncate(path, 70000)
                    with self.assertRaisesRegex(tokmap.TokmapError, "cut.v.values"):
                        for _ in range(300):
                            next(loader)
                    with open(path, "r+b") as file:
                        file.write(whole)
                    b = next(loader)
                    for i, place in enumerate(b.places):
                        at = [(place.first_token + 1 + j) % count for j in range(SEQ)]
                        self.assertEqual([row[1] for row in values(b.values["v"])[i]], [64.0 * x + 1 for x in at])

    @needs("torch")
    def test_torch_moves(self):
        import torch
        with self.run_of().loader(values="pair", dtype=torch.int64) as loader:
            b = next(loader)
            moved = b.to("cpu")
            self.assertTrue(torch.equal(moved.values["pair"].int(), b.values["pair"].int()))

    def test_bfloat16(self):
        """torch's own type; 16 bits in NumPy and to Python."""
        with tokmap.Dataset(self.prefix) as ds, tokmap.ValuesWriter(ds, "half", "bfloat16", ()) as writer:
            writer.put_at(0, [array.array("H", [x & 0x3fff for x in range(ds.info.tokens)])])
            writer.finish()
        with self.run_of().loader(values="half", framework="dlpack") as loader:
            b = next(loader)
            self.assertEqual(b.values["half"].dtype, "bfloat16")
            self.assertEqual(values(b.values["half"])[0][0], b.places[0].first_token + 1 & 0x3fff)


if __name__ == "__main__":
    unittest.main()
