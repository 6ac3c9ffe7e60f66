# SPDX-License-Identifier: MIT
"""A teacher's top 32 of each token, ids and log-probabilities, as batches of a run: tokmap's values, and what trainers
for offline distillation store.

All of them deliver the same batches, in the order of one run, on one processor, from the page cache:

    tokmap       values beside tokens, uint16 [32] and float16 [32], and with them the inputs and targets
    Megatron-LM  pull request 5019, format version 2: an iteration is a member of a tar, torch.save() of values, 16
                 bits of each id, and the 17th bit, compressed with zstd 3; read as its TeacherTarDataset does with one
                 thread
    MaxText      pull request 3382: a step is a record of an ArrayRecord file, pickle of tokens, values, and ids; read
                 as its OfflineArrayRecordIterator does

Megatron-LM's trainer and MaxText are not on PyPI, so the loops of the last two are written here from these pull
requests, with the packages that they use, up to the arrays of a batch. What comes after that in the trainers (slices,
copies to other types) is left out, which favors them. So do ids without any order, which zstd stores as they are.
"""
import io
import itertools
import json
import os
import pickle
import re
import tarfile
import time

import measure as common
import torch_loop as loop

NAME, PACKAGES = "values", ("numpy", "torch", "zstandard", "array_record")
TOP, BATCHES, FLUSH = 32, 128, 16  # entries of a token; batches of the run; iterations in a tar
BYTES = 4 * TOP


def teacher(numpy, tokens):
    """The ids and log-probabilities of all tokens."""
    random = numpy.random.default_rng(1)
    ids = random.integers(0, 50257, (tokens, TOP), numpy.uint16)
    values = -numpy.sort(random.exponential(4, (tokens, TOP)).astype(numpy.float16))
    return ids, values


class Tokmap:
    NAME = "tokmap"

    def __init__(self, tokens, count):
        import tokmap
        path = os.path.join(tokens.work, "values.bin")
        with open(tokens.path, "rb") as whole, open(path, "wb") as part:
            part.write(whole.read(count * tokens.width))
        self.data = f"raw:{path},width={tokens.width}"
        tokmap.index(self.data)
        self.run = tokmap.Run(data=self.data, seq_len=tokens.seq_len, batch=tokens.rows, seed=1)
        self.loader, self.version = None, tokmap.__version__

    def make(self, ids, values):
        import tokmap
        with tokmap.ValuesWriter(self.data, [("ids", "uint16", TOP), ("teacher", "float16", TOP)]) as writer:
            writer.put_at(0, [ids, values])
            writer.finish()
        self.loader = self.run.loader(values="ids teacher", framework="numpy", threads=0)
        self.out = self.loader.out()

    def about(self):
        return f"tokmap {self.version}; numpy, threads=0, next(out=...) into arrays that are used again"

    def next(self):
        batch = self.loader.next(out=self.out)
        return batch.values["ids"], batch.values["teacher"]


class Megatron:
    NAME = "Megatron-LM"

    def __init__(self, folder):
        self.folder, self.pending, self.tars, self.batches = os.path.join(folder, "tars"), [], [], None
        os.makedirs(self.folder)

    def write(self, torch, step, ids, values):
        """Arrays [rows, seq_len, TOP], which it stores as [seq_len, rows, TOP]."""
        indices = torch.from_numpy(ids.astype("<i8")).transpose(0, 1).contiguous()
        buffer = io.BytesIO()
        torch.save({"format_version": 2, "values": torch.from_numpy(values).transpose(0, 1).contiguous(),
                    "indices_low": (indices & 0xFFFF).to(torch.uint16), "bit_17": (indices >> 16).to(torch.bool)},
                   buffer)
        self.pending.append((step, buffer.getvalue()))
        if len(self.pending) == FLUSH:
            self.flush()

    def flush(self):
        import zstandard
        if not self.pending:
            return
        packed = zstandard.ZstdCompressor(level=3)
        self.tars.append(os.path.join(self.folder, f"dp0__{self.pending[-1][0]}.tar"))
        with tarfile.open(self.tars[-1], "w") as tar:
            members = [("_meta.json", json.dumps({"saver": {"format_version": 2}}).encode())]
            for name, data in members + [(f"{step}.pt.zst", packed.compress(data)) for step, data in self.pending]:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        self.pending = []

    def entries(self):
        for path in itertools.cycle(self.tars):
            with open(path, "rb") as stream, tarfile.open(fileobj=stream, mode="r|*") as tar:
                for member in tar:
                    if re.fullmatch(r"\d+\.pt\.zst", member.name):
                        yield tar.extractfile(member).read()

    def about(self):
        import torch
        import zstandard
        return f"zstandard {zstandard.__version__}, torch {torch.__version__}; a loop as in pull request 5019"

    def next(self):
        import torch
        import zstandard
        self.batches = self.batches or self.entries()
        data = zstandard.ZstdDecompressor().decompress(next(self.batches))
        found = torch.load(io.BytesIO(data), weights_only=True)
        return (found["bit_17"].long() << 16) | found["indices_low"].long(), found["values"]


class MaxText:
    NAME = "MaxText"

    def __init__(self, folder):
        from array_record.python import array_record_module
        self.module, self.path = array_record_module, os.path.join(folder, "teacher.array_record")
        self.writer = array_record_module.ArrayRecordWriter(self.path, "group_size:1000")
        self.reader, self.left = None, 0

    def write(self, step, inputs, ids, values):
        self.writer.write(pickle.dumps({"tokens": inputs, "top_k_logits": values, "top_k_indices": ids.astype("<i4")}))

    def flush(self):
        self.writer.close()

    def about(self):
        import importlib.metadata
        return f"array_record {importlib.metadata.version('array_record')}; a loop as in pull request 3382"

    def next(self):
        if not self.left:
            self.reader = self.module.ArrayRecordReader(self.path)
            self.left = self.reader.num_records()
        self.left -= 1
        found = pickle.loads(self.reader.read())
        return found["top_k_indices"], found["top_k_logits"]


def make(report, tokens, batches):
    """The three systems, with the same batches."""
    numpy, torch = loop.needed("numpy"), loop.torch_for_tables()
    count = batches * tokens.rows * tokens.seq_len + 1
    ids, values = teacher(numpy, count)
    ours, megatron, maxtext = Tokmap(tokens, count), Megatron(tokens.work), MaxText(tokens.work)
    ours.make(ids, values)
    writing = ours.run.loader(values="ids teacher", framework="numpy", dtype="int32")
    for step in range(batches):
        report.progress(step, batches, "storing the batches of a teacher")
        batch = next(writing)
        megatron.write(torch, step, batch.values["ids"], batch.values["teacher"])
        maxtext.write(step, batch.inputs, batch.values["ids"], batch.values["teacher"])
    writing.close()
    megatron.flush()
    maxtext.flush()
    return ours, megatron, maxtext


def check(report, numpy, systems):
    """Compares a batch of each with tokmap's."""
    wanted = [numpy.array(each).astype(kind) for each, kind in zip(systems[0].next(), ("<i8", "<f2"))]
    for system in systems[1:]:
        found = [numpy.asarray(each) for each in system.next()]
        if system.NAME == Megatron.NAME:
            found = [each.swapaxes(0, 1) for each in found]
        same = all(numpy.array_equal(one, other) for one, other in zip(wanted, found))
        report.equal(NAME, system.NAME, same, "its first batch beside tokmap's")


def turn(system, seconds, batches):
    """Batches in a second, in whole passes over the run: a reader of records decompresses many at once."""
    started, now, passes = time.perf_counter(), 0, 0
    while not passes or now - started < seconds:
        for _ in range(batches):
            system.next()
        passes, now = passes + 1, time.perf_counter()
    return passes * batches / (now - started)


def measure(report, tokens, options):
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    batches = min(BATCHES, tokens.windows() // tokens.rows) // FLUSH * FLUSH or tokens.windows() // tokens.rows
    systems = make(report, tokens, batches)
    check(report, loop.needed("numpy"), systems)
    rates = {system.NAME: [] for system in systems}
    for system in systems:
        report.about(system.NAME, system.about())
        turn(system, 0, batches - 1 if batches > 1 else 1)  # with the batch that was checked, a pass
    for _, system in common.turns(systems, loop.repeats_of(options)):
        rates[system.NAME].append(turn(system, options.seconds or 1, batches) * tokens.rows * tokens.seq_len)
    for name, values in rates.items():
        report.row(NAME, name, "tokens_per_s", "tokens/s", "more", values)
        report.row(NAME, name, "gb_per_s", "GB/s", "more", [each * BYTES / 1e9 for each in values])
    ours = rates[Tokmap.NAME]
    said = [loop.compared(ours, values, name) for name, values in rates.items() if name != Tokmap.NAME]
    report.note(f"{BYTES} bytes a token: {TOP} ids and log-probabilities, of {batches} batches of {tokens.rows} rows "
                f"of {tokens.seq_len} tokens, from the page cache, on one processor.")
    report.answer(f"Teacher's values with tokmap: {'; '.join(said)}.")
