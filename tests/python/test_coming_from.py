# SPDX-License-Identifier: MIT
"""The programs of COMING_FROM.md and OTHER_STORES.md, as they are printed: each source is written by its own project,
and the shard has the rows that the project's reader gives.

    python3 test_coming_from.py rates [ROWS LENGTH]    prints the rate and the memory of each program instead"""
import array
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
import unittest

import tokmap
from support import importable, needs, new_folder
from test_readme import examples, pages, run_shell

FIELD, EOD = "input_ids", 50256


def documents(rows=700):
    """Rows of 0 to 200 ids, the smallest and the largest among them. The first is not empty."""
    return [[(i * 7919 + j * 104729) % (EOD + 1) for j in range((i * 37 + 5) % 201)] for i in range(rows)]


def numpy_rows(rows):
    import numpy
    return [numpy.array(row, numpy.uint16) for row in rows]


# ---- writers of the other projects ----

def write_datasets(path, rows):
    import datasets
    kept = datasets.Features({FIELD: datasets.List(datasets.Value("uint16"))})
    datasets.Dataset.from_dict({FIELD: rows}, features=kept).save_to_disk(path, num_shards=3)


def write_mds(path, rows, **options):
    import streaming
    options = {"size_limit": 50000, **options}
    with streaming.MDSWriter(out=path, columns={"tokens": "ndarray:uint16"}, **options) as writer:
        for row in numpy_rows(rows):
            writer.write({"tokens": row})


def write_litdata(path, rows, compression=None, chunk_bytes=50000):
    import torch
    from litdata.streaming.item_loader import TokensLoader
    from litdata.streaming.writer import BinaryWriter
    os.makedirs(path)
    writer = BinaryWriter(path, chunk_bytes=chunk_bytes, compression=compression, item_loader=TokensLoader(),
                          compression_level=compression and "chunk")
    for number, row in enumerate(numpy_rows(rows)):
        writer.add_item(number, torch.from_numpy(row))
    writer.done()
    writer.merge()


def write_array_record(path, rows):
    from array_record.python.array_record_module import ArrayRecordWriter
    os.makedirs(path)
    for name, part in (("a", rows[:600]), ("b", rows[600:])):
        writer = ArrayRecordWriter(os.path.join(path, f"{name}.array_record"), "group_size:1")
        for row in numpy_rows(part):
            writer.write(row.tobytes())
        writer.close()


def write_tfrecord(path, rows, name=FIELD):
    import tfrecord
    os.makedirs(path)
    for part in range(2):
        writer = tfrecord.TFRecordWriter(os.path.join(path, f"{part}.tfrecord"))
        for row in rows[part * 600:(part + 1) * 600 if part == 0 else None]:
            writer.write({name: (list(row), "int")})
        writer.close()


def write_webdataset(path, rows):
    import webdataset
    os.makedirs(path)
    with webdataset.ShardWriter(os.path.join(path, "%06d.tar"), maxcount=300, verbose=0) as writer:
        for number, row in enumerate(numpy_rows(rows)):
            writer.write({"__key__": f"{number:08d}", "npy": row})


def arrow(rows):
    import pyarrow
    return pyarrow.table({FIELD: pyarrow.array(numpy_rows(rows), pyarrow.list_(pyarrow.uint16()))})


def write_lance(path, rows):
    import lance
    lance.write_dataset(arrow(rows), path, max_rows_per_file=300)


def write_parquet(path, rows):
    import pyarrow.parquet
    os.makedirs(path)
    for part, some in enumerate((rows[:600], rows[600:])):
        pyarrow.parquet.write_table(arrow(some), os.path.join(path, f"{part}.parquet"), row_group_size=10000)


# ---- readers of the other projects, other ones than the programs call where there are several ----

def read_datasets(path):
    import datasets
    return [row[FIELD] for row in datasets.load_from_disk(path)]


def read_mds(path):
    import streaming
    source = streaming.LocalDataset(path)
    return [source[i]["tokens"].tolist() for i in range(len(source))]


def read_litdata(path):
    """The tokens of all rows: the reader does not say where these end."""
    import litdata
    from litdata.streaming.item_loader import TokensLoader
    source = litdata.StreamingDataset(path, item_loader=TokensLoader(block_size=1), shuffle=False)
    return [int(source[i][0]) for i in range(len(source))]


def read_array_record(path):
    from array_record.python.array_record_data_source import ArrayRecordDataSource
    with ArrayRecordDataSource([os.path.join(path, f"{name}.array_record") for name in "ab"]) as source:
        return [array.array("H", source[i]).tolist() for i in range(len(source))]


def read_tfrecord(path):
    from tfrecord.example_pb2 import Example
    from tfrecord.reader import tfrecord_iterator
    return [list(Example.FromString(record).features.feature[FIELD].int64_list.value) for part in range(2)
            for record in tfrecord_iterator(os.path.join(path, f"{part}.tfrecord"))]


def read_webdataset(path):
    import webdataset
    tars = [os.path.join(path, name) for name in sorted(os.listdir(path))]
    return [row.tolist() for row, in webdataset.WebDataset(tars, shardshuffle=False).decode().to_tuple("npy")]


def read_lance(path):
    import lance
    return lance.dataset(path).to_table().column(FIELD).to_pylist()


def read_parquet(path):
    from grain.experimental import ParquetIterDataset
    return [row[FIELD].tolist() for part in range(2)
            for row in ParquetIterDataset(os.path.join(path, f"{part}.parquet"))]


def program(name):
    """The text of a program, and the part of it that imports."""
    text = examples()[f"from_{name}"]
    return text, "".join(re.findall(r"^(?:import|from) .*\n", text, re.M))


def run(folder, name, change=lambda text: text):
    """Runs a program here, because its imports take longer than its work."""
    said, before = io.StringIO(), os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(said):
            exec(compile(change(program(name)[0]), name, "exec"), {})
    finally:
        os.chdir(before)
    return said.getvalue()


class ComingFrom(unittest.TestCase):
    def setUp(self):
        self.folder = new_folder()
        self.rows = documents()
        os.mkdir(os.path.join(self.folder, "data"))

    def old(self, name):
        return os.path.join(self.folder, "old", name)

    def rows_of(self, name):
        with tokmap.Dataset(os.path.join(self.folder, "data", name)) as ds:
            ds.verify()
            self.assertEqual((ds.info.vocabulary, ds.info.eod_id), (EOD + 1, None))
            return [ids.tolist() for ids in ds]

    def compare(self, name, write, read):
        write(self.old(name), self.rows)
        found = read(self.old(name))
        self.assertEqual(found, self.rows)
        said = run(self.folder, name)
        self.assertEqual(self.rows_of(name), found)
        return said

    def refused(self, name, kind, text):
        with self.assertRaisesRegex(kind, text):
            run(self.folder, name)
        self.assertEqual(os.listdir(os.path.join(self.folder, "data")), [])

    def test_programs_are_short(self):
        for name in examples():
            if name.startswith("from_"):
                text, imports = program(name[len("from_"):])
                lines = [line for line in text.split("\n") if line and line not in imports.split("\n")]
                self.assertTrue(2 <= len(lines) <= 10, name)

    @needs("datasets", "numpy")
    def test_datasets(self):
        said = self.compare("datasets", write_datasets, read_datasets)
        self.assertEqual(said, f"700 documents, {sum(map(len, self.rows))} tokens\n")
        run_shell(self.folder, "from_blocks")
        flat, blocks = [token for row in self.rows for token in row], []
        for at in [0] + [at + 1 for at, token in enumerate(flat) if token == EOD]:
            blocks.append(at)
        with tokmap.Dataset(os.path.join(self.folder, "data", "blocks")) as ds:
            ds.verify()
            self.assertEqual([ids.tolist() for ids in ds],
                             [flat[a:b] for a, b in zip(blocks, blocks[1:] + [len(flat)])])

    @needs("datasets", "numpy")
    def test_datasets_of_a_selection(self):
        """Rows in the order of the Dataset that was saved, of a fixed length, and of the type that datasets infers."""
        import datasets
        rows = [list(range(i, i + 8)) for i in range(100)]
        kept = datasets.Features({FIELD: datasets.List(datasets.Value("int32"), length=8)})
        for features in (kept, None):
            ds = datasets.Dataset.from_dict({FIELD: rows}, features=features).shuffle(seed=3).select(range(60))
            self.setUp()
            ds.save_to_disk(self.old("datasets"))
            run(self.folder, "datasets")
            self.assertEqual(self.rows_of("datasets"), [row[FIELD] for row in ds])

    @needs("datasets", "numpy")
    def test_datasets_with_nulls(self):
        """A null is an error, and nothing of it becomes a token."""
        import datasets
        for rows, text in (([[1, 2], None, [3]], "document 1: its ids are null"),
                           ([[1], [3, None]], "document 1: id 1 is null")):
            self.setUp()
            kept = datasets.Features({FIELD: datasets.List(datasets.Value("int32"))})
            datasets.Dataset.from_dict({FIELD: rows}, features=kept).save_to_disk(self.old("datasets"))
            self.refused("datasets", tokmap.InputError, text)

    @needs("datasets", "numpy")
    def test_an_id_that_is_too_large(self):
        self.rows[600][3] = EOD + 1
        write_datasets(self.old("datasets"), self.rows)
        self.refused("datasets", tokmap.InputError, "document 600\\b.*50257")

    @needs("streaming", "numpy")
    def test_mds(self):
        self.rows = list(filter(None, self.rows))  # MDSWriter refuses an empty array
        self.compare("mds", write_mds, read_mds)

    @needs("streaming", "numpy")
    def test_mds_compressed(self):
        self.rows = list(filter(None, self.rows))
        write_mds(self.old("mds"), self.rows, compression="zstd")
        run(self.folder, "mds")
        self.assertEqual(self.rows_of("mds"), self.rows)

    @needs("streaming", "numpy")
    def test_mds_of_bytes(self):
        """Ids in a column of bytes, as the page says."""
        import numpy
        import streaming
        with streaming.MDSWriter(out=self.old("mds"), columns={"tokens": "bytes"}) as writer:
            for row in self.rows:
                writer.write({"tokens": numpy.array(row, numpy.int64).tobytes()})
        run(self.folder, "mds", lambda text: "import numpy as np\n" + text.replace(
            'yield row["tokens"]', 'yield np.frombuffer(row["tokens"], np.int64)'))
        self.assertEqual(self.rows_of("mds"), self.rows)

    @needs("litdata", "numpy")
    def test_litdata(self):
        self.rows = list(filter(None, self.rows))
        write_litdata(self.old("litdata"), self.rows)
        run(self.folder, "litdata")
        found = self.rows_of("litdata")
        self.assertEqual(found, self.rows)
        self.assertEqual([token for row in found for token in row], read_litdata(self.old("litdata")))

    @needs("litdata", "numpy")
    def test_litdata_compressed(self):
        """Refused until they are decompressed in place, as the page says."""
        self.rows = list(filter(None, self.rows))
        write_litdata(self.old("litdata"), self.rows, compression="zstd")
        self.refused("litdata", tokmap.ArgumentError, "of this call ends at id")
        if shutil.which("zstd"):
            said = re.search(r"`(for .* done)`", pages()["src/python/OTHER_STORES.md"]).group(1)
            subprocess.run(["sh", "-euc", said], cwd=self.folder, check=True)
            run(self.folder, "litdata")
            self.assertEqual(self.rows_of("litdata"), self.rows)

    @needs("litdata", "numpy")
    def test_litdata_that_does_not_say_its_length(self):
        """A chunk whose first row is empty has no number of tokens. Nothing of it is left out without an error."""
        self.rows[0] = []
        write_litdata(self.old("litdata"), self.rows)
        self.refused("litdata", Exception, "")

    @needs("array_record.python.array_record_module", "numpy")
    def test_array_record(self):
        self.compare("array_record", write_array_record, read_array_record)

    @needs("tfrecord", "numpy")
    def test_tfrecord(self):
        self.compare("tfrecord", write_tfrecord, read_tfrecord)

    @needs("tfrecord", "numpy")
    def test_tfrecord_of_another_field(self):
        write_tfrecord(self.old("tfrecord"), self.rows, name="tokens")
        self.refused("tfrecord", KeyError, FIELD)

    @needs("webdataset", "numpy")
    def test_webdataset(self):
        self.compare("webdataset", write_webdataset, read_webdataset)

    @needs("lance", "numpy")
    def test_lance(self):
        self.compare("lance", write_lance, read_lance)

    @needs("pyarrow", "grain")
    def test_parquet(self):
        write_parquet(self.old("parquet"), self.rows)
        run_shell(self.folder, "from_parquet")
        self.assertEqual(self.rows_of("parquet"), read_parquet(self.old("parquet")))
        self.assertEqual(self.rows_of("parquet"), self.rows)


class Habits(unittest.TestCase):
    """What the table of COMING_FROM.md says of tokmap."""
    @classmethod
    def setUpClass(cls):
        cls.folder = os.path.join(new_folder(), "all")
        os.mkdir(cls.folder)
        flat = [token for row in documents() for token in row]
        for part in range(2):  # as two processes write them
            with tokmap.ShardWriter(os.path.join(cls.folder, f"{part:02}"), vocab_size=EOD + 1) as writer:
                writer.add_batch(flat[part::2], list(range(100, len(flat) // 2, 100)) + [len(flat[part::2])])
        cls.tokens = len(flat)

    def windows(self, **options):
        """For each step, its rows' passes and windows."""
        run = tokmap.Run(data=self.folder, seq_len=128, batch=8, seed=1, **options)
        self.addCleanup(run.close)
        with run.loader(rows=3) as loader:
            steps = {}
            for b in loader:
                steps.setdefault(b.step, []).extend((p.epoch, p.window) for p in b.places[:b.real_rows])
                if b.last_in_step and b.step == 3:
                    self.state = loader.state_dict()
            return run, steps

    def test_passes(self):
        """Two passes in one loop: each has all windows once, in another order, and only the last step has a rest."""
        _, steps = self.windows(passes=2, tail="pad")
        self.assertEqual({len(steps[step]) for step in sorted(steps)[:-1]}, {8})
        rows = [row for step in sorted(steps) for row in steps[step]]
        orders = [[window for epoch, window in rows if epoch == each] for each in (0, 1)]
        for order in orders:
            self.assertEqual(sorted(order), list(range(-(-(self.tokens - 1) // 128))))
        self.assertNotEqual(*orders)
        _, dropped = self.windows(passes=2, tail="drop")
        self.assertEqual({len(rows) for rows in dropped.values()}, {8})

    def test_orders(self):
        for order in ("shuffle", ("blocks", 4, 8)):
            self.assertEqual(self.windows(passes=1, order=order)[1], self.windows(passes=1, order=order)[1])

    def test_ranks(self):
        """Ranks divide the rows of each step, and a state of one process continues on three."""
        run, steps = self.windows(passes=2)
        rows, states = {}, set()
        for rank in range(3):
            with run.loader(rank=rank, world=3, resume=self.state) as loader:
                for b in loader:
                    rows.setdefault(b.step, []).extend((p.epoch, p.window) for p in b.places[:b.real_rows])
                    if b.step == 5 and b.last_in_step:
                        states.add(loader.state_dict()["cursor"])
        self.assertEqual(rows, {step: each for step, each in steps.items() if step > 3})
        self.assertEqual(len(states), 1)


# ---- rates ----

def most_memory():
    """The largest resident memory of this process so far, in MB. (getrusage() begins with that of the parent.)"""
    with open("/proc/self/status", encoding="ascii") as file:
        return int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)) / 1000


def rate(name):
    """Runs a program in this folder and prints the processor time of all its threads, without that of its imports."""
    text, imports = program(name)
    exec(imports, {})
    memory = most_memory()
    began = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(text, name, "exec"), {})
    taken = time.process_time() - began
    print(json.dumps([taken, most_memory() - memory]))


def rates(count=40000, length=500):
    import numpy
    ids = numpy.random.default_rng(1).integers(0, EOD, (count, length), numpy.uint16)
    folder = new_folder()
    for name, module in {"datasets": "datasets", "mds": "streaming", "litdata": "litdata", "lance": "lance",
                         "array_record": "array_record", "tfrecord": "tfrecord", "webdataset": "webdataset"}.items():
        if importable(module) is not None:
            continue
        writing = {"mds": {"size_limit": 1 << 26}, "litdata": {"chunk_bytes": 1 << 26}}.get(name, {})
        globals()[f"write_{name}"](os.path.join(folder, "old", name), ids, **writing)
        os.makedirs(os.path.join(folder, "data"), exist_ok=True)
        said = subprocess.run([sys.executable, os.path.abspath(__file__), "rate", name], cwd=folder, text=True,
                              stdout=subprocess.PIPE, check=True).stdout
        taken, memory = json.loads(said.splitlines()[-1])
        print(f"{name:12} {count * length / taken / 1e6:6.1f} M tokens/s, {memory:.0f} MB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["rate"]:
        rate(sys.argv[2])
    elif sys.argv[1:2] == ["rates"]:
        rates(*map(int, sys.argv[2:]))
    else:
        unittest.main()
