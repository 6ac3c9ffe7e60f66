# SPDX-License-Identifier: MIT
"""tokmap.pack() with vocab_size: documents of token ids without a tokenizer. Each kind of source gives the shard that
the command makes of a file with the same ids, and a wrong id is named with its document."""
import array
import json
import os
import pathlib
import random
import unittest

import tokmap
from support import needs, new_folder, python
from test_pack_sources import contents

SIZE = 50000


def documents(seed=0, count=400):
    """Lists of ids: some are empty, some end with id 7, which tests take as the eod, and one is longer than a batch."""
    drawn = random.Random(seed)
    made = [[drawn.randrange(SIZE) for _ in range(drawn.choice((0, 1, 2, 30, 500)))] for _ in range(count)]
    made[5], made[6], made[count // 2] = [7], [1, 2, 7], [drawn.randrange(SIZE) for _ in range(400000)]
    return made


class PackIds(unittest.TestCase):
    def setUp(self):
        self.folder = new_folder()

    def at(self, name):
        return os.path.join(self.folder, name)

    def made(self, source, **options):
        return tokmap.pack(source, self.at("made"), force=True, progress=False, **{"vocab_size": SIZE, **options})

    def of_command(self, rows, **options):
        with open(self.at("in.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"input_ids": row}) + "\n" for row in rows)
        return tokmap.pack(self.at("in.jsonl"), self.at("wanted"), force=True, progress=False,
                           ids_field="input_ids", **{"vocab_size": SIZE, **options})

    def same(self, rows, sources):
        """Every source gives the shard of the command, with an eod and without."""
        for options in {"eod": 7}, {}, {"eod": False}:
            wanted = self.of_command(rows, **options)
            for number, source in enumerate(sources):
                given = source() if callable(source) else source
                made = self.made(given, **options)
                self.assertEqual((made.documents, made.tokens, made.content),
                                 (wanted.documents, wanted.tokens, wanted.content), (number, options))
                with tokmap.Dataset(made.path) as mine, tokmap.Dataset(wanted.path) as other:
                    self.assertEqual(os.path.getsize(made.path + ".bin"), os.path.getsize(wanted.path + ".bin"))
                    self.assertEqual([mine.origin(i).record for i in (0, 3)], [other.origin(i).record for i in (0, 3)])

    def test_lists(self):
        rows = documents()
        self.same(rows, [rows, lambda: iter(rows), lambda: map(tuple, rows), [{"input_ids": row} for row in rows],
                         lambda: (array.array("iHqI"[i % 4], row) for i, row in enumerate(rows))])
        self.assertEqual(self.made([{"x": row} for row in rows], ids_field="x").content, self.made(rows).content)
        self.assertEqual(self.made([range(9)]).tokens, 9)

    def test_an_eod_is_not_added_unless_given(self):
        self.made([[1, 2], [], [7]])
        self.assertEqual(contents(self.at("made")), [[1, 2], [], [7]])
        self.made([[1, 2], [], [7], [7, 7]], eod=7)
        self.assertEqual(contents(self.at("made")), [[1, 2, 7], [7], [7], [7, 7]])

    @needs("numpy")
    def test_numpy(self):
        import numpy
        rows = documents(1)
        kinds = ["uint16", "int32", "int64", "uint32", "uint64", ">i4"]
        for kind in kinds:
            arrays = [numpy.array(row, kind) for row in rows]
            self.same(rows, [arrays, lambda arrays=arrays: iter(arrays)])
        mixed = [numpy.array(row, kinds[i // 3 % 6]) if i % 3 else row for i, row in enumerate(rows)]
        backward = [numpy.array(row[::-1], "int64")[::-1] for row in rows]
        spaced = [numpy.repeat(numpy.array(row, "int32"), 2)[::2] for row in rows]
        empty = [numpy.array(row) for row in rows]  # NumPy makes doubles of empty lists
        self.same(rows, [mixed, lambda: iter(mixed), backward, spaced, lambda: iter(spaced), empty,
                         lambda: iter(empty)])
        self.same(rows[:9], [numpy.array([numpy.array(row, "uint16") for row in rows[:9]], object)])

    @needs("numpy")
    def test_memory_that_is_used_again(self):
        """An iterator may make each row where the one before it was."""
        import numpy

        def rows():
            row = numpy.zeros(3, "int32")
            for i in range(1000):
                row[:] = i
                yield row

        self.made(rows())
        self.assertEqual(contents(self.at("made")), [[i] * 3 for i in range(1000)])

    @needs("numpy")
    def test_matrices(self):
        import numpy
        matrix = numpy.arange(40000, dtype="uint16").reshape(-1, 8)
        rows = matrix.tolist()
        numpy.save(self.at("m.npy"), matrix)
        self.same(rows, [matrix, matrix.astype("int64"), numpy.asfortranarray(matrix),
                         numpy.load(self.at("m.npy"), mmap_mode="r"), matrix.astype(">u2")])
        self.same(matrix[::3, ::2].tolist(), [matrix[::3, ::2]])
        self.same([[]] * 4, [numpy.zeros((4, 0), "int32")])
        for alone in numpy.arange(5), array.array("i", [1]):
            with self.assertRaisesRegex(tokmap.TokmapError, r"pass \[source\]|it is an int, but must be ids"):
                self.made(alone)

    @needs("torch")
    def test_torch(self):
        import torch
        rows = documents(2)
        self.same(rows, [[torch.tensor(row, dtype=torch.int64) for row in rows]])
        self.same([[1, 2], [3, 4]] * 2, [torch.tensor([[1, 2], [3, 4]] * 2)])

    @needs("pyarrow")
    def test_arrow(self):
        import pyarrow
        rows = documents(3)
        for inner in pyarrow.uint16(), pyarrow.int32(), pyarrow.int64(), pyarrow.uint32(), pyarrow.uint64():
            for kind in pyarrow.list_, pyarrow.large_list:
                column = pyarrow.array([[1], None, *rows, [2]], kind(inner))[2:-1]  # with offsets, and nulls outside
                table = pyarrow.table({"input_ids": column, "other": range(len(rows))})
                self.same(rows, [column, table, pyarrow.table({"any name": column}), lambda: iter([table]),
                                 pyarrow.chunked_array([column[:9], column[9:9], column[9:]]),
                                 table.to_batches(max_chunksize=7), lambda: table.to_reader(max_chunksize=50)])
        self.assertEqual(self.made(table.rename_columns(["x", "y"]), ids_field="x").content, self.made(rows).content)
        self.same(rows, [lambda: iter([table.schema.empty_table(), table, table[:0]])])
        fixed = [[i, i + 1, 7] for i in range(100)]
        column = pyarrow.array([[0, 0, 0], *fixed], pyarrow.list_(pyarrow.int32(), 3))[1:]
        self.same(fixed, [column, pyarrow.table({"x": column})])
        self.same(rows, [[pyarrow.array(row, pyarrow.int32()) for row in rows],
                         lambda: (pyarrow.chunked_array([row[:1], row[1:]], pyarrow.int64()) for row in rows)])

    @needs("polars")
    def test_polars(self):
        import polars
        rows = documents(4)
        frame = polars.DataFrame({"input_ids": rows, "n": range(len(rows))})
        self.same(rows, [frame, frame["input_ids"], lambda: frame.iter_slices(33),
                         lambda: frame.lazy().collect_batches(chunk_size=60, maintain_order=True)])

    @needs("duckdb", "polars")
    def test_duckdb(self):
        import duckdb
        import polars
        rows = documents(5)
        duckdb.register("frame", polars.DataFrame({"n": range(len(rows)), "input_ids": rows}))
        self.same(rows, [lambda: duckdb.sql("select input_ids from frame order by n")])

    # ---- wrong ids ----

    def refused(self, source, message, **options):
        """The message names the document and the value, however it is packed; it can be left out instead."""
        for more in {}, {"checkpoint_seconds": 3}:
            before = sorted(os.listdir(self.folder))
            with self.assertRaisesRegex(tokmap.TokmapError, message):
                self.made(source() if callable(source) else source, **options, **more)
            self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_wrong_ids(self):
        for wrong, message in (([1, SIZE], rf"document 2\b.* {SIZE}, which is not in the vocabulary"),
                               ([4, -1], r"document 2\b.* -1\b"), ([1, 2.0], r"document 2\b.* 1 is 2\.0"),
                               ([1, 2 ** 40], rf"document 2\b.* {2 ** 40}\b"), ([0, None], r"document 2\b.* 1 is None"),
                               (None, "document 2.* null"), ("ab", "document 2.* a str"), (5, "document 2.* an int"),
                               ([[1]], r"document 2\b.* 0 is \[1\]"), ({"x": 1}, "document 2.* no field 'input_ids'")):
            rows = [[1], [2, 3], wrong, [4]]
            self.refused(rows, message)
            self.refused(lambda rows=rows: iter(rows), message)
            for more in {}, {"checkpoint_seconds": 3}:
                made = self.made(rows, on_error="skip", eod=7, **more)
                self.assertEqual((made.documents, made.skipped), (3, 1), (wrong, more))
                self.assertEqual(contents(made.path), [[1, 7], [2, 3, 7], [4, 7]])
                os.remove(made.path + ".bin")
                os.remove(made.path + ".tmx")

    @needs("numpy", "pyarrow")
    def test_wrong_arrays(self):
        import numpy
        import pyarrow
        for kind, wrong, message in (("int32", [1, -5], "document 1.* -5"), ("uint16", [9, 60000], "document 1.* 60000"),
                                     ("float64", [1, 2.5], r"document 1.* 2\.5|document 1.* 0 is 1\.0")):
            rows = [numpy.array([1], "int32"), numpy.array(wrong, kind), numpy.array([3], "int32")]
            self.refused(rows, message)
            self.assertEqual(self.made(rows, on_error="skip").skipped, 1)
            os.remove(self.at("made.bin"))
            os.remove(self.at("made.tmx"))
        masked = numpy.ma.masked_array([1, 2], [0, 1])
        self.refused([[1], masked], "document 1: id 1 is None|document 1.* list of token ids")
        for column, message in ((pyarrow.array([[1], [2], None, [3]]), "document 2.* null"),
                                (pyarrow.array([[1], [2], [4, None], [3]]), "document 2.* null"),
                                (pyarrow.array([[1], [2], [4, SIZE], [3]]), rf"document 2.* {SIZE}\b"),
                                (pyarrow.array([[1], [2], [-4], [3]], pyarrow.list_(pyarrow.int16())), "document 2.* -4")):
            chunks = pyarrow.chunked_array([column[:1], column[1:]])
            for source in column, chunks, pyarrow.table({"x": chunks}):
                self.refused(source, message)
                self.assertEqual(self.made(source, on_error="skip").skipped, 1)
                self.assertEqual(contents(self.at("made")), [[1], [2], [3]])
                os.remove(self.at("made.bin"))
                os.remove(self.at("made.tmx"))
        self.refused(pyarrow.array([[1.5]]), "Arrow type '.l' of 'g', but documents of ids must be lists of whole numbers")
        self.refused(pyarrow.array(["a"]), "Arrow type 'u', but documents of ids must be lists")
        self.refused(pyarrow.array([1, 2]), r"one document of ids: pass \[source\]")
        self.refused(pyarrow.table({"x": [1, 2]}), "the column 'x' has the Arrow type 'l', but documents")
        self.refused(pyarrow.table({"a": [[1]], "b": [[2]]}), r"several columns \('a', 'b'\); choose one with ids_field=")

    def test_ids_without_a_vocabulary(self):
        """They would be taken as ids of the tokenizer of bytes, and each document would get its eod."""
        for options in {"ids_field": "ids"}, {"ids_field": "ids", "mask_field": "mask"}:
            with self.assertRaisesRegex(tokmap.ArgumentError, "with tokenizer=, or only the size of its vocabulary with "
                                        "vocab_size="):
                tokmap.pack([{"ids": [1], "mask": [1]}], self.at("made"), **options)
        with open(self.at("in.jsonl"), "w", encoding="utf-8") as file:
            file.write('{"ids": [1]}\n')
        with self.assertRaisesRegex(tokmap.ArgumentError, "or only the size of its vocabulary with vocab_size="):
            tokmap.pack(self.at("in.jsonl"), self.at("made"), ids_field="ids")
        for source in [[1, 2]], [array.array("i", [1])], [[]]:
            with self.assertRaisesRegex(tokmap.InputError, "document 0 is .*; vocab_size= takes token ids"):
                tokmap.pack(source, self.at("made"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["in.jsonl"])

    @needs("pyarrow")
    def test_columns_of_ids_without_a_vocabulary(self):
        import pyarrow
        with self.assertRaisesRegex(tokmap.TokmapError, "or pass vocab_size= if it has token ids"):
            tokmap.pack(pyarrow.array([[1]]), self.at("made"))

    def test_misuse(self):
        for options, message in (({"tokenizer": "bytes"}, "vocab_size and tokenizer exclude"), ({"field": "a"}, "exclude"),
                                 ({"eod": True}, "it must be an id"), ({"eod": "eos"}, "it must be an id"),
                                 ({"eod": SIZE}, "eod is 50000, but it must be from 0 to 49999"),
                                 ({"vocab_size": 0}, "vocab_size is 0"), ({"vocab_size": "many"}, "must be a whole number"),
                                 ({"mask_field": "m"}, "need ids_field"), ({"messages_field": "m"}, "exclude")):
            with self.assertRaisesRegex(tokmap.TokmapError, message):
                self.made([[1]], **options)
        self.made([[1]])
        with self.assertRaises(FileExistsError):
            tokmap.pack([[1]], self.at("made"), vocab_size=9)
        for nothing in [], iter([]):
            with self.assertRaisesRegex(tokmap.InputError, "contain no documents"):
                self.made(nothing)
        self.assertEqual(contents(self.at("made")), [[1]])

    # ---- with the command ----

    def test_options(self):
        """Options that the command has give what it makes of a file with these ids."""
        rows = documents(6, 60)
        for options in ({"shuffle": 3}, {"min_tokens": 2, "max_tokens": 400}, {"bos": 9}, {"seal": True},
                        {"shard_tokens": 5000, "shuffle": 1}, {"dedup": "exact", "bos": 9, "eod": 7}):
            for name in os.listdir(self.folder):
                os.remove(self.at(name))
            options = {"max_record": "100M", **options}
            wanted = self.of_command(rows, **options)
            options.pop("max_record")
            for source in rows, [{"input_ids": row} for row in rows]:
                made = self.made(source, **options)
                self.assertEqual((made.documents, made.content), (wanted.documents, wanted.content), options)

    @needs("pyarrow")
    def test_columns_and_masks(self):
        import pyarrow
        rows = [{"input_ids": [i, 2, 3], "mask": [1, 0, 1], "url": f"u{i}"} for i in range(50)]
        for source in rows, pyarrow.Table.from_pylist(rows):
            made = self.made(source, columns="url")
            with tokmap.Dataset(made.path) as dataset:
                self.assertEqual((dataset.value(49, "url"), [ids.tolist() for ids in dataset][49]), ("u49", [49, 2, 3]))
            made = self.made(source, ids_field="input_ids", mask_field="mask")
            with tokmap.Dataset(made.path) as dataset:
                self.assertEqual(dataset.mask(0, 3).tolist(), [True, False, True])

    def test_what_it_leaves(self):
        def cut():
            yield from documents(7, 50)
            raise KeyError("of the source")

        with self.assertRaisesRegex(KeyError, "of the source"):
            self.made(cut())
        self.assertEqual(os.listdir(self.folder), [])
        deep = os.path.join(self.folder, "new", "deep", "made")
        self.assertEqual(tokmap.pack([[1]], deep, vocab_size=2).documents, 1)

    @needs("numpy")
    def test_without_numpy(self):
        """Nothing of this needs NumPy."""
        code = ("import sys\nsys.modules['numpy'] = None\nimport tokmap\nfrom test_pack_ids import documents\n"
                "print(tokmap.pack(documents(), sys.argv[1], vocab_size=50000, eod=7, progress=False).content)")
        path = pathlib.Path(__file__).parent
        found = python(code, self.at("plain"), PYTHONPATH=f"{path}:{os.environ.get('PYTHONPATH', '')}")
        self.assertEqual(found.strip(), self.made(documents(), eod=7).content)

    def test_progress(self):
        code = ("import sys, time, tokmap\n"
                "rows = ([i % 9] * 70000 for i in range(40) if not time.sleep(0.02))\n"
                "tokmap.pack(rows, sys.argv[1], vocab_size=9, progress=True)")
        said = python(code, self.at("shown"), check=False).stderr
        self.assertRegex(said, r"^\npacking  \d+ documents, [\d,]+ tokens\x1b\[K\n")
        self.assertTrue(said.endswith("\n\x1b[K"), said)  # each a carriage return, which is read as a line's end


if __name__ == "__main__":
    unittest.main()
