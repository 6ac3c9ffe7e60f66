# SPDX-License-Identifier: MIT
"""What ELSEWHERE.md says of tokmap, where no other test shows it: the same situations in which other loaders, formats,
and tables surprised. The page's table names real files and tests."""
import importlib
import json
import os
import random
import re
import subprocess
import unittest
import warnings

import tokmap
from support import TOKMAP, TOP, needs, new_folder

PAGE = os.path.join(TOP, "src", "python", "ELSEWHERE.md")
LENGTH = 20  # of each document, and of each window


class Elsewhere(unittest.TestCase):
    """A document of these datasets is LENGTH times one id, so a window tells which document it is. One more token comes
    last, the target of the last window's last token."""

    def setUp(self):
        self.folder = new_folder()
        warnings.simplefilter("ignore")  # ids without a tokenizer, in two sources

    def write(self, name, documents, first=0):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with tokmap.ShardWriter(path, vocab_size=60000) as writer:
            for i in range(documents):
                writer.add([first + i] * LENGTH)
            writer.add([first + documents])
        return path

    def run_of(self, **options):
        return tokmap.Run(**{"seq_len": LENGTH, "batch": 4, "seed": 1, **options})

    def ids(self, run, world=1, resume=None, **options):
        """The first ids of the rows that each rank of a run delivers."""
        found = []
        for rank in range(world):
            with run.loader(rank=rank, world=world, framework="dlpack", fields="rows", resume=resume,
                            **options) as loader:
                found.append([row[0] for batch in loader for row in batch.rows.tolist()])
        return found


class Ranks(Elsewhere):
    def test_held_out_documents_stay_held_out(self):
        path = self.write("web", 100, 1)
        with self.run_of(data=path + "#docs=0..80", batch=8, passes=2, validation={"val": path + "#docs=80..100"}) as run:
            with run.evaluation() as held_out:
                self.assertEqual(set(self.ids(held_out)[0]) - {0}, set(range(81, 101)))  # 0: rows of padding
            whole = sorted(self.ids(run)[0])
            # 80 is the last document: the target of its last token is held out, so it has no window.
            self.assertEqual(set(whole), set(range(1, 80)))
            for world in (2, 3, 4, 7):
                self.assertEqual(sorted(i for rank in self.ids(run, world) for i in rank), whole)

    def test_each_rank_has_both_sources(self):
        """Also where a rank has one row of each step, so that it could always be the same source's turn."""
        sources = {"a": self.write("a", 200), "b": self.write("b", 200, 1000)}
        with self.run_of(sources=sources, weights={"a": 1, "b": 1}, batch=4, steps=50) as run:
            whole = sorted(self.ids(run)[0])
            for world in (2, 4):
                ranks = self.ids(run, world)
                self.assertEqual(sorted(i for rank in ranks for i in rank), whole)
                for rank in ranks:
                    of_a = sum(i < 1000 for i in rank) / len(rank)
                    self.assertTrue(0.25 < of_a < 0.75, of_a)


class Order(Elsewhere):
    def test_equal_sources_are_not_paired(self):
        sources = {"a": self.write("a", 100), "b": self.write("b", 100, 1000)}
        with self.run_of(sources=sources, weights={"a": 1, "b": 1}, batch=10, steps=20) as run:
            rows = self.ids(run)[0]
        a, b = ([i % 1000 for i in rows if i // 1000 == source] for source in (0, 1))
        self.assertEqual((sorted(a), sorted(b)), (list(range(100)), list(range(100))))
        self.assertLess(sum(x == y for x, y in zip(a, b)), 10)

    def test_each_pass_has_its_own_order(self):
        """And the program's own random numbers are left alone."""
        random.seed(7)
        expected = random.random()
        random.seed(7)
        with self.run_of(data=self.write("web", 100), batch=10, passes=3) as run:
            rows = self.ids(run)[0]
        self.assertEqual(random.random(), expected)
        passes = [rows[i:i + 100] for i in range(0, 300, 100)]
        for order in passes:
            self.assertEqual(sorted(order), list(range(100)))
        self.assertEqual(len(set(map(tuple, passes))), 3)

    def test_a_pass_repeats_nothing(self):
        """Whatever the number of rows and ranks is; what does not fill a step is left out, and counted."""
        for documents in (20, 101, 130):
            path = self.write(f"web{documents}", documents)
            for batch, world in ((4, 1), (6, 3), (8, 2)):
                with self.run_of(data=path, batch=batch, passes=1) as run:
                    rows = [i for rank in self.ids(run, world) for i in rank]
                    self.assertEqual(len(rows), len(set(rows)))
                    self.assertEqual(len(rows) + run.info.remainder, documents)
                    self.assertLess(run.info.remainder, batch)

    def test_edited_weights_continue_in_each_source(self):
        sources = {"a": self.write("a", 2000), "b": self.write("b", 2000, 10000)}
        with self.run_of(sources=sources, weights={"a": 1, "b": 1}, batch=10, steps=200) as run, \
                run.with_phase(100, weights={"a": 4, "b": 1}) as edited:
            before, after = self.ids(run)[0][:1000], self.ids(edited, resume=run.cursor(100))[0]
            self.assertEqual(len(before + after), 2000)
            self.assertEqual(len(set(before + after)), 2000)  # nothing comes again
            for source in (0, 1):
                # What came of each source is the beginning of its own order (10 rows a step): nothing is left out.
                name = "ab"[source]
                with self.run_of(sources=sources, weights={"a": 0, "b": 0, name: 1}, batch=10, steps=200) as alone:
                    own = self.ids(alone)[0]
                seen = {i for i in before + after if i // 10000 == source}
                whole_steps = len(seen) // 10 * 10
                self.assertLessEqual(set(own[:whole_steps]), seen)
                self.assertLessEqual(seen, set(own[:whole_steps + 10]))
            with self.run_of(sources=sources, weights={"a": 4, "b": 1}, batch=10, steps=200) as other:
                with self.assertRaises(tokmap.PastError):
                    self.ids(other, resume=run.cursor(100))

    def test_a_mixture_continues(self):
        """The state of any rank is that of the whole mixture, and another number of ranks continues it."""
        sources = {"a": self.write("a", 200), "b": self.write("b", 200, 1000)}
        with self.run_of(sources=sources, weights={"a": 1, "b": 1}, batch=4, steps=100) as run:
            whole = self.ids(run)[0]
            for world in (1, 2, 4):
                ranks = self.ids(run, world, resume=run.cursor(10))
                self.assertEqual(sorted(i for rank in ranks for i in rank), sorted(whole[40:]))
            self.assertEqual(self.ids(run, resume=run.cursor(10))[0], whole[40:])

    def test_the_end_of_a_long_document_comes_after_a_resume(self):
        path = os.path.join(self.folder, "long")
        with tokmap.ShardWriter(path, vocab_size=60000) as writer:
            writer.add([0] * LENGTH)
            writer.add(range(10 * LENGTH + 1))
        with self.run_of(data=path, batch=1, passes=1) as run:
            whole = self.ids(run)[0]
            self.assertEqual(len(whole), 11)
            for step in (2, 4, 10):
                self.assertEqual(self.ids(run, resume=run.cursor(step))[0], whole[step:])

    def test_another_batch_continues(self):
        """After 40 rows in steps of 8, steps of another size and on two ranks give the other 60 windows of the pass."""
        with self.run_of(data=self.write("web", 100), batch=8, steps=40) as run:
            before = self.ids(run)[0][:40]
            for batch in (2, 4, 20, 30):
                with run.with_phase(5, batch=batch) as edited:
                    ranks = self.ids(edited, world=2, resume=run.cursor(5))
                after = [i for rank in ranks for i in rank[:30]]
                self.assertEqual(sorted(before + after), list(range(100)), batch)


class Files(Elsewhere):
    def test_files_of_one_name_are_read_each(self):
        sources = {name: self.write(f"{name}/000", 10, first) for name, first in (("web", 0), ("code", 100))}
        with self.run_of(sources=sources, weights={"web": 1, "code": 1}, batch=4, steps=5) as run:
            self.assertEqual(sorted(self.ids(run)[0]), [*range(10), *range(100, 110)])

    def test_a_shard_that_is_absent_is_an_error(self):
        for i in range(3):
            self.write(f"all/web-{i}", 10, 10 * i)
        folder = os.path.join(self.folder, "all")
        with tokmap.Dataset(folder) as dataset:
            self.assertEqual(len(dataset), 33)
        os.rename(os.path.join(folder, "web-1.bin"), os.path.join(self.folder, "kept"))
        with self.assertRaisesRegex(tokmap.IoError, r"web-1\.bin"):
            tokmap.Dataset(folder)
        with self.assertRaisesRegex(tokmap.IoError, r"web-1\.bin"):
            self.run_of(data=folder, passes=1)

    def test_cut_and_joined_files_are_errors(self):
        path = self.write("web", 100)
        with open(path + ".bin", "rb") as file:
            whole = file.read()
        for content in (whole[:-8], whole[:-2], whole[:LENGTH * 2], b"", whole * 2):
            with open(path + ".bin", "wb") as file:
                file.write(content)
            with self.assertRaisesRegex(tokmap.DataError, r"web\.bin"):
                tokmap.Dataset(path)

    def test_empty_documents_stay(self):
        path = os.path.join(self.folder, "web")
        with tokmap.ShardWriter(path, vocab_size=300) as writer:
            for ids in ([1, 2], [], [3]):
                writer.add(ids)
        with tokmap.Dataset(path) as dataset:
            self.assertEqual([ids.tolist() for ids in dataset], [[1, 2], [], [3]])

    def test_ids_that_do_not_fit_are_refused(self):
        path = os.path.join(self.folder, "web")
        for ids in ([1, 70000], [1, -1], [1, None]):
            with self.assertRaises((tokmap.InputError, tokmap.ArgumentError)):
                with tokmap.ShardWriter(path, vocab_size=60000) as writer:
                    writer.add(ids)
            self.assertEqual(os.listdir(self.folder), [])

    @needs("numpy")
    def test_views_have_their_own_elements(self):
        import numpy
        ids = numpy.arange(12, dtype=numpy.int32)
        matrix = ids.reshape(3, 4)
        path = os.path.join(self.folder, "views")
        rows = [ids[::2], ids[::-1], matrix[:, 1], matrix.T[2]]
        with tokmap.ShardWriter(path, vocab_size=300) as writer:
            for row in rows:
                writer.add(row)
        with tokmap.Dataset(path) as dataset:
            self.assertEqual([row.tolist() for row in dataset], [row.tolist() for row in rows])

    def test_texts_like_dates_and_numbers_are_texts(self):
        texts = ["2024-01-01", "2024-01-01T10:00:00", "007", "1e3"]
        source = os.path.join(self.folder, "texts.jsonl")
        with open(source, "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
        subprocess.run([TOKMAP, "pack", "-q", "-o", os.path.join(self.folder, "texts"), source], check=True)
        with tokmap.Dataset(os.path.join(self.folder, "texts")) as dataset:
            self.assertEqual([bytes(i for i in ids if i < 256).decode() for ids in dataset], texts)


class Page(unittest.TestCase):
    def test_the_table_names_what_exists(self):
        with open(PAGE, encoding="utf-8") as file:
            rows = [line for line in file if line.startswith("| ")][1:]
        self.assertGreater(len(rows), 20)
        for row in rows:
            finding, module, group, test = re.search(r"\| `([a-z0-9-]+)`; `(\w+)\.(\w+)\.(\w+)` \|$", row).groups()
            self.assertTrue(os.path.exists(os.path.join(TOP, "findings", f"{finding}.sh")), row)
            self.assertTrue(callable(getattr(getattr(importlib.import_module(module), group), test)), row)


if __name__ == "__main__":
    unittest.main()
