# SPDX-License-Identifier: MIT
"""ValuesWriter: the values of batches of every kind of run are where a model that knows only tokens says, and arrays of
the wrong kind are refused."""
import os
import signal
import struct
import subprocess
import unittest

import tokmap
from support import SEQ, TOKMAP, needs, new_folder, pack, python

VALUES_AT = 4096


class File:
    """A file of values, read from FORMAT.md alone: `present` and `values`, the bytes of each token."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        assert data[:8] == b"\x89TVL\r\n\x1a\n"
        self.version, self.element, self.dimensions, size = struct.unpack_from("<4I", data, 8)
        self.shape = struct.unpack_from("<4Q", data, 24)[:self.dimensions]
        tokens, = struct.unpack_from("<Q", data, 56)
        ones, bitmap_at, file_bytes = struct.unpack_from("<3Q", data, 80)
        assert file_bytes == len(data)
        self.present = [bool(data[bitmap_at + i // 8] >> i % 8 & 1) for i in range(tokens)]
        self.values = [data[VALUES_AT + i * size:VALUES_AT + (i + 1) * size] for i in range(tokens)]
        assert sum(self.present) == ones


class Putting(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()
        cls.prefix = pack(cls.folder, documents=80)
        with tokmap.Dataset(cls.prefix) as dataset:
            cls.tokens = dataset.info.tokens

    def finished(self, what, prefix=None):
        path = f"{prefix or self.prefix}.{what}.values"
        found = File(path)
        os.unlink(path)
        return found


@needs("numpy")
class Batches(Putting):
    def run_of(self, *lines, source=None):
        source = source or f'source web "{self.prefix}"'
        lines = [source, f"seq_len {SEQ}", "lookahead 1", *lines]
        return tokmap.Run(text="\n".join(lines) + "\n")

    def expected(self, run, number=0):
        """The tokens of all steps that are targets: by extents, without those that are excluded or follow one."""
        found = set()
        for step in range(run.info.delivered):
            for row in range(run.info.batch):
                if run.locate(step, row).source != number:
                    continue
                at = 0
                for extent in run.extents(step, row):
                    for i in range(1, extent.tokens):
                        if at + i <= run.info.seq_len and extent.first_token < 2 ** 63:
                            found.add((extent.first_token + i) % self.size(run, number))
                    at += extent.tokens
        return found

    def size(self, run, number):
        return run.sources[number].dataset.info.tokens

    def deliver(self, run, writer, source=None, first=0, number=0, **options):
        """Puts for each target its own number in the dataset, computed from the row's extents, and twice as much."""
        import numpy
        with run.loader(threads=1, **options) as loader:
            for b in loader:
                columns = self.columns(b, options)
                made = numpy.full((b.count, b.inputs.shape[1]), 2 ** 32 - 1, "uint32")
                for i, row in enumerate(b.row_numbers):
                    at, line = 0, [2 ** 32 - 1] * b.seq_len
                    for extent in run.extents(b.step, row):
                        for k in range(1, extent.tokens):
                            if at + k <= b.seq_len and extent.first_token < 2 ** 63:
                                line[at + k - 1] = first + (extent.first_token + k) % self.size(run, number)
                        at += extent.tokens
                    made[i] = [line[j] for j in columns]
                both = numpy.stack([made, made // 2], 2)
                writer.put(b, {"own": made, "pair": both.astype("float32")}, source)

    def columns(self, batch, options):
        count, world, rank = batch.seq_len, options.get("context_world", 1), options.get("context_rank", 0)
        if world == 1:
            return range(count)
        each = count // (2 * world)
        return [*range(rank * each, (rank + 1) * each),
                *range((2 * world - 1 - rank) * each, (2 * world - rank) * each)]

    def writer(self, name=None):
        return tokmap.ValuesWriter(name or self.prefix, [("own", "uint32"), ("pair", "float32", 2)])

    def compare(self, expected, prefix=None):
        own, pair = self.finished("own", prefix), self.finished("pair", prefix)
        self.assertEqual((own.element, own.shape, pair.element, pair.shape), (3, (), 6, (2,)))
        self.assertEqual(own.present, pair.present)
        self.assertEqual({i for i, has in enumerate(own.present) if has}, expected)
        for i, has in enumerate(own.present):
            self.assertEqual(own.values[i], struct.pack("<I", i) if has else bytes(4))
            self.assertEqual(pair.values[i], struct.pack("<2f", i, i // 2) if has else bytes(8))

    def test_windows_in_any_order_and_on_ranks(self):
        run = self.run_of("batch 6", "steps 40", "seed 7")
        with self.writer() as writer:
            for rank in range(3):
                self.deliver(run, writer, rank=rank, world=3)
            result = writer.finish(holes=True)
        expected = self.expected(run)
        self.assertEqual((result.tokens, result.missing, result.files), (self.tokens, self.tokens - len(expected), 2))
        self.assertGreater(result.repeated, 0)
        self.compare(expected)

    def test_slices_of_rows(self):
        run = self.run_of("batch 4", "steps 9")
        with self.writer() as writer:
            for rank in range(2):
                self.deliver(run, writer, context_rank=rank, context_world=2, context_layout="zigzag")
            writer.finish(holes=True)
        self.compare(self.expected(run))

    def test_rows_of_a_plan(self):
        plan = os.path.join(self.folder, "web.plan")
        subprocess.run([TOKMAP, "plan", "-q", "-o", plan, "--seq-len", str(SEQ), self.prefix], check=True)
        run = self.run_of("batch 5", "passes 1", source=f'source web "{self.prefix}" plan "{plan}"')
        with self.writer() as writer:
            self.deliver(run, writer, rows=2)
            result = writer.finish(holes=True)
        self.assertEqual(result.repeated, 0)
        self.compare(self.expected(run))

    def test_an_evaluation_with_padding(self):
        other = pack(self.folder, "trained", 30, seed=9)
        run = self.run_of("batch 7", "steps 5", f'validation held "{self.prefix}"',
                          source=f'source web "{other}"').evaluation()
        with self.writer() as writer:
            self.deliver(run, writer)
            writer.finish(holes=True)
        expected = self.expected(run)
        self.assertEqual(expected, set(range(1, self.tokens)))
        self.compare(expected)

    def test_excluded_documents(self):
        listed = os.path.join(self.folder, "gone.txt")
        with tokmap.Dataset(self.prefix) as dataset:
            gone = [dataset.document(i) for i in (3, 17, 18)]
        with open(listed, "w", encoding="ascii") as file:
            file.writelines(f"web {document.number}\n" for document in gone)
        run = self.run_of("batch 6", "steps 30", f'exclude "{listed}" from 0')
        with self.writer() as writer:
            self.deliver(run, writer, mask_targets=True)
            writer.finish(holes=True)
        without = set()
        for document in gone:  # also the target after it, whose input it is
            without |= set(range(document.first_token, document.first_token + document.tokens + 1))
        self.compare(self.expected(run) - without)

    def test_one_of_several_sources_and_a_part(self):
        other = pack(self.folder, "other", 40, seed=5)
        text = [f'source web "{self.prefix}"', f'source other "{other}#docs=10..35"', "phase 0 web 1 other 1",
                f"seq_len {SEQ}", "lookahead 1", "batch 6", "steps 20"]
        run = tokmap.Run(text="\n".join(text) + "\n")
        with tokmap.Dataset(other) as dataset:
            first = dataset.document(10).first_token
        with self.writer(other) as writer:
            with run.loader() as loader:
                b = next(loader)
                import numpy
                zeros = {"own": numpy.zeros(b.inputs.shape, "uint32"), "pair": numpy.zeros((*b.inputs.shape, 2), "f4")}
                with self.assertRaisesRegex(tokmap.TokmapError, "source must be named"):
                    writer.put(b, zeros)
                with self.assertRaisesRegex(tokmap.TokmapError, "'else' is not in the run"):
                    writer.put(b, zeros, "else")
                with self.assertRaisesRegex(tokmap.DataError, "not the one whose values are written"):
                    writer.put(b, zeros, "web")
                next(loader)
                with self.assertRaisesRegex(tokmap.ArgumentError, "not the last one of a loader"):
                    writer.put(b, zeros, "other")
            self.deliver(run, writer, source="other", first=first, number=1)
            writer.finish(holes=True)
        self.compare({first + token for token in self.expected(run, 1)}, other)


class Arrays(Putting):
    @needs("numpy")
    def test_numpy(self):
        import numpy
        writer = tokmap.ValuesWriter(tokmap.Dataset(self.prefix), "x", numpy.float16, (2, 3))
        made = numpy.arange(self.tokens * 6).reshape(self.tokens, 2, 3).__mod__(60000).astype("f2")
        writer.put_at(0, made[:100])
        writer.put_at(100, numpy.asfortranarray(made[100:]))
        for wrong, said in ((made.astype("f4"), r"'x' are float32 \(\d+, 2, 3\) on cpu, but must be float16 \(\d+, 2, 3\)"),
                            (made[:, :1], r"are float16 \(\d+, 1, 3\) on cpu, but must be float16"),
                            (made.astype(">f2"), "cannot be read in memory|but must be float16"), ([1, 2], "x"),
                            (5, "not an array")):
            with self.assertRaisesRegex((tokmap.ArgumentError, TypeError), said):
                writer.put_at(0, wrong)
        with self.assertRaises(tokmap.TokmapError):
            writer.put_at(self.tokens, made[:1])
        writer.sync()
        self.assertEqual(writer.finish(), (self.tokens, 0, 0, 1))
        writer.close()
        writer.close()
        self.assertEqual(b"".join(self.finished("x").values), made.tobytes())
        with self.assertRaisesRegex(tokmap.ArgumentError, "closed"):
            writer.sync()

    @needs("torch")
    def test_torch_and_bfloat16(self):
        import torch
        made = torch.randn(self.tokens, 4).to(torch.bfloat16)
        with tokmap.ValuesWriter(self.prefix, "x", torch.bfloat16, 4) as writer:
            writer.put_at(0, made)
            writer.put_at(3, made[3:].T.contiguous().T)
            with self.assertRaisesRegex(tokmap.ArgumentError, "float32 .* but must be bfloat16"):
                writer.put_at(0, made.float())
            writer.finish()
        self.assertEqual(b"".join(self.finished("x").values), bytes(made.view(torch.uint8).flatten().tolist()))

    @needs("numpy", "ml_dtypes")
    def test_bfloat16_of_ml_dtypes(self):
        import ml_dtypes
        import numpy
        made = numpy.arange(self.tokens * 2).reshape(self.tokens, 2).astype(ml_dtypes.bfloat16)
        with tokmap.ValuesWriter(self.prefix, "x", ml_dtypes.bfloat16, 2) as writer:
            writer.put_at(0, made)
            writer.put_at(0, made.view("uint16"))
            writer.finish()
        self.assertEqual(b"".join(self.finished("x").values), made.tobytes())

    def test_buffers_and_what_is_refused(self):
        import array
        with tokmap.ValuesWriter(self.prefix, "w", "float32") as writer:
            writer.put_at(0, array.array("f", range(self.tokens)))
            self.assertRegex(repr(writer), "ValuesWriter .*: w>")
            with self.assertRaisesRegex(tokmap.TokmapError, "another writer of these values is open"):
                with tokmap.ValuesWriter(self.prefix, "w", "f32") as other:
                    other.finish()
            with self.assertRaisesRegex(tokmap.DataError, "are f32, but f16 is asked for"):
                tokmap.ValuesWriter(self.prefix, "w", "float16")
            writer.finish()
        with self.assertRaises(FileExistsError):
            tokmap.ValuesWriter(self.prefix, "w", "float32")
        with tokmap.ValuesWriter(self.prefix, "w", "float32", replace=True) as writer:
            writer.put_at(0, array.array("f", [float("nan")] * self.tokens))
            with self.assertRaisesRegex(tokmap.InputError, "token 0 of the shard .* is NaN"):
                writer.finish()
            writer.finish(nan=True)
        self.finished("w")
        for arguments, said in ((("mask", "u8"), "other files of a shard have"), (("W", "u8"), "lower-case"),
                                (("w", "int64"), "must be uint8"), (("w", "u8", 70000), "w:f16"),
                                (([("w", "u8"), ("w", "u8")],), "twice")):
            with self.assertRaisesRegex(tokmap.ArgumentError, said):
                tokmap.ValuesWriter(self.prefix, *arguments)
        with self.assertRaises(tokmap.TokmapError):
            tokmap.ValuesWriter("synthetic:vocab=50,tokens=1000", "w", "u8")

    def test_a_killed_program_continues(self):
        program = """if True:
            import os, sys, signal, tokmap, array
            with tokmap.ValuesWriter(sys.argv[1], "k", "uint16") as writer:
                for at in range(int(sys.argv[2]), int(sys.argv[3])):
                    writer.put_at(at, array.array("H", [at % 65536]))
                writer.sync()
                if sys.argv[4] == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                print(writer.finish())
        """
        half = self.tokens // 2
        ran = python(program, self.prefix, 0, half, "kill", check=False)
        self.assertEqual(ran.returncode, -signal.SIGKILL)
        self.assertIn(f"tokens={self.tokens}, missing=0, repeated=0", python(program, self.prefix, half, self.tokens, "end"))
        found = self.finished("k")
        self.assertEqual([struct.unpack("<H", value)[0] for value in found.values],
                         [i % 65536 for i in range(self.tokens)])

    def test_a_child_does_not_use_its_parents_writer(self):
        import array
        with tokmap.ValuesWriter(self.prefix, "f", "uint8") as writer:
            writer.put_at(0, bytes(self.tokens))
            child = os.fork()
            if not child:
                try:
                    writer.sync()
                except tokmap.ArgumentError:
                    writer.close()
                    del writer
                    os._exit(0)
                os._exit(1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            writer.put_at(0, array.array("B", [1]))
            self.assertEqual(writer.finish().missing, 0)
        self.finished("f")
