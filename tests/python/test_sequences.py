# SPDX-License-Identifier: MIT
"""Datasets and rows as Python sequences, and what runs, batches, and statistics say about themselves."""
import gc
import unittest
import warnings

import tokmap
from tokmap.errors import class_of
from support import WithData, needs, python, values


class Documents(WithData):
    """A Dataset is a sequence of documents."""

    def test_len_index_slice_and_loop(self):
        ds = tokmap.Dataset(self.prefix)
        self.assertEqual(len(ds), ds.info.documents)
        one = [list(ds.document_tokens(i)) for i in range(len(ds))]
        self.assertEqual(list(ds[17]), one[17])
        self.assertEqual(list(ds[-1]), one[-1])
        self.assertEqual([list(d) for d in ds], one)
        self.assertEqual([list(d) for d in ds], one)  # a dataset has no position
        self.assertEqual([list(d) for d in ds[0:4]], one[0:4])
        self.assertEqual([list(d) for d in ds[-3:]], one[-3:])
        self.assertEqual([list(d) for d in ds[9:2:-3]], one[9:2:-3])
        self.assertEqual([token for d in ds for token in d], list(self.truth.tokens))

    def test_outside(self):
        ds = tokmap.Dataset(self.prefix)
        for wrong in (len(ds), -len(ds) - 1, 10 ** 30):
            with self.assertRaisesRegex(IndexError, f"{wrong} is outside .* {len(ds)} documents"):
                ds[wrong]
        for wrong in ("a", 1.5, None, (1, 2)):
            with self.assertRaisesRegex(TypeError, "whole number or a slice"):
                ds[wrong]

    def test_too_many_tokens(self):
        ds = tokmap.Dataset(self.prefix)
        tokens = ds.info.tokens
        for first, count in ((10, 10 ** 12), (0, 10 ** 8), (0, 2 ** 63), (tokens, 1), (tokens - 3, 4), (0, tokens + 1)):
            with self.assertRaises(class_of("ERROR_RANGE")) as caught:
                ds.tokens(first, count)
            self.assertIn(f"{tokens} tokens", str(caught.exception))
            with self.assertRaises(class_of("ERROR_RANGE")):
                ds.view(first, count)
        self.assertEqual(list(ds.tokens(tokens, 0)), [])
        self.assertEqual(list(ds.tokens(tokens)), [])

    def test_too_much_memory(self):
        ds = tokmap.Dataset("synthetic:vocab=300,tokens=4000000000000000")
        with self.assertRaisesRegex(class_of("ERROR_MEMORY"), "8000000000000000 bytes.*read fewer tokens"):
            ds.tokens()

    def test_words(self):
        self.assertIn("60 documents, 1 shard>", repr(tokmap.Dataset(self.prefix)))


class With(WithData):
    """The end of `with` raises nothing, also while views are in use, and replaces no exception of its body."""

    def test_an_exception_of_the_body_arrives(self):
        for make, of in ((lambda: tokmap.Dataset(self.prefix), lambda d: d),
                         (self.run_of, lambda run: run.sources[0].dataset)):
            with self.assertRaises(KeyError) as caught:
                with make() as opened:
                    view = of(opened).view(0, 4)
                    {}["nothing"]
            self.assertEqual(caught.exception.args, ("nothing",))
            self.assertEqual(len(view[0]), 4)  # the memory is still there
            with make() as opened:
                view = of(opened).view(0, 4)
                dataset = of(opened)
            self.assertEqual(len(view[0]), 4)
            for closed in (lambda: dataset.tokens(0, 1), lambda: dataset.view(0, 1)):
                with self.assertRaisesRegex(tokmap.ArgumentError, "is closed"):
                    closed()
            opened.close()  # has no effect after the end of `with`
            self.assertIn("closed", repr(opened))
            self.assertEqual(len(view[0]), 4)

    def test_loaders_end_with_their_run(self):
        with self.run_of() as run:
            view = run.sources[0].dataset.view(0, 4)
            loader = run.loader()
        with self.assertRaisesRegex(tokmap.ArgumentError, "is closed"):
            loader.next()
        with self.assertRaisesRegex(tokmap.ArgumentError, "is closed"):
            run.loader()
        self.assertEqual(len(view[0]), 4)


class Rows(WithData):
    """A RunDataset is a sequence of rows."""

    def test_slices(self):
        rows = self.run_of().dataset(framework="dlpack")
        for part in (slice(0, 4), slice(None, 3), slice(-5, None), slice(20, 2, -7), slice(4, 4)):
            numbers = list(range(*part.indices(len(rows))))
            found = rows[part]
            self.assertIsInstance(found, tokmap.Columns)
            self.assertEqual(values(found.inputs), [values(rows[i]["inputs"]) for i in numbers])
        self.assertEqual(values(rows[0:4].inputs), values(self.run_of().loader(framework="dlpack").next().inputs)[:4])

    def test_loops(self):
        rows = self.run_of(batch=7).dataset(framework="dlpack")
        self.assertEqual([values(row["targets"]) for row in rows], [values(rows[i]["targets"]) for i in range(len(rows))])
        endless = self.run_of(passes=None).dataset(framework="dlpack")
        self.assertEqual([values(row["inputs"]) for row, _ in zip(endless, range(3))], values(endless[0:3].inputs))
        with self.assertRaisesRegex(class_of("ERROR_RANGE"), "no end"):
            endless[3:]

    def test_wrong_indices(self):
        rows = self.run_of().dataset(framework="dlpack")
        for wrong in ("a", 1.5, None):
            with self.assertRaisesRegex(TypeError, "whole number or a slice"):
                rows[wrong]
            with self.assertRaisesRegex(TypeError, "whole number or a slice"):
                rows.__getitems__([0, wrong])
        with self.assertRaisesRegex(IndexError, f"{len(rows)} rows"):
            rows[len(rows)]


class Order(WithData):
    """The order has one name, and gives no warning."""

    def test_order(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run = self.run_of(order="sequential")
            self.assertEqual(run.info.order, "sequential")
        with self.assertRaisesRegex(tokmap.ArgumentError, "order is 'sorted'.* 'sequential', .'blocks', W, SPAN"):
            self.run_of(order="sorted")

    def test_another_name(self):
        with self.assertRaisesRegex(TypeError, r"Run\(\) has no argument 'ordering'; did you mean 'order'\?"):
            self.run_of(ordering="sequential")


class Words(WithData):
    def test_epoch(self):
        run = self.run_of(batch=7, passes=3)
        seen = set()
        for b in run.loader(framework="dlpack", rows=3):
            expected = max(place.epoch for place in b.places)
            self.assertEqual(b.epoch, expected)
            seen.add(b.epoch)
        self.assertEqual(seen, {0, 1, 2})
        empty = run.loader(framework="dlpack", rank=0, world=4, rows=1).next()
        self.assertEqual((empty.count, empty.epoch), (0, 0))

    def test_vocabulary(self):
        run = self.run_of()
        self.assertEqual(run.vocabulary, run.sources[0].dataset.info.vocabulary)

    def test_plural(self):
        run = self.run_of(batch=1)
        self.assertIn("1 row a call, 1 call a step", repr(run.loader(framework="dlpack")))
        self.assertIn("6 rows a call, 1 call a step", repr(self.run_of().loader(framework="dlpack")))
        self.assertIn("1 step of 1 row of", repr(self.run_of(batch=1, passes=None, steps=1)))

    def test_stats(self):
        loader = self.run_of().loader(framework="dlpack")
        self.assertEqual(str(loader.stats()), "no batch was delivered yet")
        for _ in loader:
            pass
        stats = loader.stats()
        self.assertRegex(str(stats), rf"^\d+ waits? in {stats.batches} batches, .* in all.*: (the loader|too little) ")
        self.assertLess(len(repr(stats)), 700)
        self.assertIn(f"Stats(batches={stats.batches}, ", repr(stats))
        self.assertEqual(len(stats.wait_histogram), 64)
        self.assertGreater(stats.elapsed_ns, 0)
        inline = self.run_of().loader(framework="dlpack", threads=0)
        next(inline)
        self.assertRegex(str(inline.stats()), "^1 batch in .*threads=0")

    def test_verdict(self):
        base = self.run_of().loader(framework="dlpack").stats()._replace(batches=12345, rows=98760, waits=3)
        second = 10 ** 9

        def said(wait_ns, largest, elapsed_ns, **more):
            return str(base._replace(wait_ns=wait_ns, wait_ns_largest=largest, elapsed_ns=elapsed_ns, **more))
        self.assertEqual(said(400_000, 200_000, 60 * second),
                         "3 waits in 12,345 batches, 0.4 ms in all: the loader is not the bottleneck")
        self.assertEqual(said(second, second - 5000, 10 * second),
                         "3 waits in 12,345 batches, 1 s in all: the loader is not the bottleneck; "
                         "its longest wait, usually for the first batch, took 1 s")
        for few in ({"batches": 6}, {"elapsed_ns": second // 2}):
            self.assertIn("batches, 0.2 s in all: too little to judge by", said(**{
                "wait_ns": second // 5, "largest": second // 10, "elapsed_ns": 60 * second // 100, **few}))
        self.assertEqual(said(4 * second, second, 61 * second), "3 waits in 12,345 batches, 4 s in all, 5% of the time: "
                                                                "the loader slows the program down a little")
        self.assertEqual(said(31 * second, second, 61 * second, cold_reads=98000),
                         "3 waits in 12,345 batches, 31 s in all, 50% of the time: the loader is the bottleneck; "
                         "98,000 of 98,760 rows came from storage")

    def test_gpus(self):
        self.assertEqual(python("import tokmap; print(tokmap.gpus())", TOKMAP_CUDA_DRIVER="/no/such/driver.so"), "[]\n")

    @needs("torch")
    def test_a_loader_in_a_dataloader(self):
        import torch
        loader = self.run_of().loader(dtype=torch.int64)
        for options in ({"batch_size": None}, {}, {"shuffle": True}, {"num_workers": 1}):
            with self.assertRaisesRegex(TypeError, r"for b in loader(.|\n)*run\.dataset\(\)"):
                next(iter(torch.utils.data.DataLoader(loader, **options)))


if __name__ == "__main__":
    unittest.main()
