# SPDX-License-Identifier: MIT
"""Everything that takes a program's memory gets every kind of view of it: slices, reversed, cast, read-only, empty, in
other types and orders of bytes, with 0 and 2 dimensions, of all that has memory. The values say which elements they
are, so a view that is read at another place, or with another length, stride, or type, gives others."""
import array
import ctypes
import mmap
import os
import sys
import unittest

import tokmap
from tokmap.errors import class_of
from support import WithData, importable, needs, values

REFUSED = (tokmap.TokmapError, TypeError, ValueError)  # ValueError: of NumPy, for a read-only output
WHOLE = list(range(40, 100))


def sliced(whole):
    """Views of something with the elements WHOLE, by name: each with its elements, which are None if it is refused."""
    view = memoryview(whole)
    yield "whole", whole, WHOLE
    for name, of in (("view", view), ("read-only", view.toreadonly())):
        for part in (slice(None), slice(10, 20), slice(59, None), slice(20, 20), slice(None, None, 7),
                     slice(None, None, -1), slice(50, 9, -3)):
            yield f"{name} {part}", of[part], WHOLE[part]
    yield "slice of a slice", view[10:50][5:9], WHOLE[15:19]
    yield "reversed of reversed", view[::-1][::-1][3:6], WHOLE[3:6]
    if view.itemsize > 1 and view.format[-1] in "BHIQLbhiql":
        code = view.format[-1]
        yield "cast", view[10:12].cast("B").cast(code), WHOLE[10:12]
        yield "cast to bytes", view[10:12].cast("B")[::view.itemsize], WHOLE[10:12]
    if view.itemsize == 1 and view.format[-1] in "Bb":
        yield "two dimensions", view.cast("B", (6, 10)), None
        yield "no dimension", view[:1].cast("B", ()), None
        yield "characters", view.cast("c"), None
    if view.itemsize == 4 and view.format[-1] in "iI":
        yield "floats", view.cast("B").cast("f"), None
    released = memoryview(whole)
    released.release()
    yield "released", released, None


def plain():
    """Of Python's own kinds of memory."""
    yield from sliced(bytearray(WHOLE))
    yield from sliced(bytes(WHOLE))
    for code in "bBhHiIlLqQ":
        yield from sliced(array.array(code, WHOLE))
    for kind in (ctypes.c_int8, ctypes.c_uint16, ctypes.c_int32, ctypes.c_uint64):
        yield from sliced((kind * 60)(*WHOLE))
    mapped = mmap.mmap(-1, 60)
    mapped[:] = bytes(WHOLE)
    yield from sliced(mapped)
    yield "floats", array.array("d", WHOLE), None
    yield "another order of bytes", (ctypes.c_int32.__ctype_be__ * 3)(1, 2, 3), None
    yield "a view of another order", memoryview((ctypes.c_int32.__ctype_be__ * 3)(1, 2, 3)), None
    yield "a pointer", ctypes.pointer(ctypes.c_int(7)), None
    yield "a number of ctypes", ctypes.c_int(7), None
    yield "two dimensions", (ctypes.c_int * 2 * 3)(), None
    yield "structs", (type("Two", (ctypes.Structure,), {"_fields_": [("a", ctypes.c_int)]}) * 2)(), None
    yield "a generator", (value for value in WHOLE), WHOLE
    yield "a tuple", tuple(WHOLE), WHOLE
    yield "text", "abc", None
    yield "an array of this package", ours(), WHOLE
    yield "rows of it", ours()[5:9], WHOLE[5:9]


def ours():
    made = tokmap.Array.on_host((60,), "int32")
    made.memoryview()[:] = memoryview(array.array("i", WHOLE))
    return made


def of_numpy():
    import numpy
    for kind in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"):
        whole = numpy.array(WHOLE, kind)
        yield from sliced(whole)
        for part in (slice(10, 20), slice(None, None, -1), slice(50, 9, -3), slice(5, 5)):
            yield f"numpy {part}", whole[part], WHOLE[part]
            yield f"view of numpy {part}", memoryview(whole[part])[:4], WHOLE[part][:4]
    frozen = numpy.arange(100)
    frozen.flags.writeable = False
    yield "read-only slice", frozen[40:50], WHOLE[:10]
    yield "view of a read-only slice", memoryview(frozen[40:50])[2:], WHOLE[2:10]
    yield "a column", numpy.array([WHOLE, WHOLE]).T[:, 1], WHOLE
    yield "a diagonal", numpy.diag(WHOLE).diagonal(), WHOLE
    yield "broadcast", numpy.broadcast_to(numpy.array(41), (3,)), [41] * 3
    yield "not aligned", numpy.frombuffer(b"\0" + numpy.array(WHOLE).tobytes(), "int64", offset=1), WHOLE
    yield "a field of records", numpy.array([(0, 40), (0, 41)], "u1,i8")["f1"], WHOLE[:2]
    yield "no elements", numpy.array([], "int64"), []
    yield "other bytes", numpy.array([1, 2], sys.byteorder == "little" and ">i4" or "<i4"), None
    for wrong in (numpy.array(5), numpy.int64(5), numpy.array([[1, 2]]), numpy.zeros((0, 3), "int64"), numpy.array([1.5]),
                  numpy.array([1], "datetime64[D]"), numpy.array([1, 2], object), numpy.array(["a"]), numpy.array([1j]),
                  numpy.array([(1, 2)], "i4,i4")):
        yield f"{wrong.dtype} {wrong.shape}", wrong, None
    masked = numpy.ma.array(WHOLE, mask=[i == 30 for i in range(60)])
    yield "masked", masked, None
    yield "a view of masked", memoryview(masked)[:5], None
    yield "a part without a mask", masked[:30], WHOLE[:30]
    yield "compressed", masked.compressed(), WHOLE[:30] + WHOLE[31:]
    yield "masked in a list", list(masked), None


def of_torch():
    import torch
    for kind in ("uint8", "int8", "int16", "int32", "int64"):
        whole = torch.tensor(WHOLE, dtype=getattr(torch, kind))
        yield kind, whole, WHOLE
        yield "slice", whole[10:20], WHOLE[10:20]
        yield "stride", whole[3::7], WHOLE[3::7]
        yield "empty", whole[5:5], []
    yield "a column", torch.tensor([WHOLE, WHOLE]).T[:, 1], WHOLE
    yield "expanded", torch.tensor([41]).expand(3), [41] * 3
    yield "cast", torch.tensor(WHOLE)[10:12].view(torch.int32)[::2], WHOLE[10:12]
    for wrong in (torch.tensor(5), torch.tensor([[1]]), torch.tensor([1.5]), torch.arange(3, device="meta"),
                  torch.tensor([0, 1]).to_sparse()):
        yield str(wrong)[:40], wrong, None
    if importable("torch.masked") is None:
        yield "masked", torch.masked.masked_tensor(torch.arange(3), torch.tensor([True, False, True])), None


def of_arrow():
    import pyarrow
    for kind in ("uint8", "int16", "int32", "uint64", "int64"):
        whole = pyarrow.array(WHOLE, getattr(pyarrow, kind)())
        yield kind, whole, WHOLE
        yield "slice", whole.slice(10, 7), WHOLE[10:17]
        yield "chunks", pyarrow.chunked_array([whole.slice(20, 3), whole.slice(5, 2)]), WHOLE[20:23] + WHOLE[5:7]
        buffer = memoryview(whole.buffers()[1]).cast("B").cast({1: "B", 2: "h", 4: "i", 8: "q"}[whole.type.bit_width // 8])
        yield "buffer", buffer[10:20], WHOLE[10:20]
    yield "nulls", pyarrow.array([1, None, 3]), None


def all_views():
    yield from plain()
    for module, made in (("numpy", of_numpy), ("torch", of_torch), ("pyarrow", of_arrow)):
        if importable(module) is None:
            yield from ((f"{module}: {name}", view, wanted) for name, view, wanted in made())


class Doors(WithData):
    """Each way in, with all views."""

    def refuses(self, name, function):
        with self.assertRaises(REFUSED, msg=name):
            function()

    def test_ids_of_a_writer(self):
        expected, path = [], os.path.join(self.folder, "ids")
        with tokmap.ShardWriter(path, vocab_size=100) as writer:
            for name, view, wanted in all_views():
                if wanted is None:
                    self.refuses(name, lambda: writer.add(view))
                    continue
                writer.add(view)
                expected.append((name, wanted))
        with tokmap.Dataset(path) as dataset:
            self.assertEqual(list(zip((name for name, _ in expected), (values(ids) for ids in dataset))), expected)

    def test_batches_of_a_writer(self):
        """The ids, and where documents end: at each of them as a count of tokens."""
        path, expected = os.path.join(self.folder, "batches"), []
        with tokmap.ShardWriter(path, vocab_size=100) as writer:
            for name, view, wanted in all_views():
                if wanted is None:
                    self.refuses(name, lambda: writer.add_batch(view, [1]))
                    self.refuses(name, lambda: writer.add_batch([1], view))
                    continue
                copies = [view, view] if not hasattr(view, "send") else [wanted, wanted]
                writer.add_batch(copies[0], [len(wanted)])
                expected.append((name, wanted))
                if wanted == sorted(wanted) and wanted:
                    writer.add_batch([7] * wanted[-1], copies[1])
                    expected += [(name, [7] * (end - begin)) for begin, end in zip([0, *wanted], wanted)]
        with tokmap.Dataset(path) as dataset:
            self.assertEqual(list(zip((name for name, _ in expected), (values(ids) for ids in dataset))), expected)

    def test_masks_of_a_writer(self):
        """Views of 0 and 1: the lowest bit of the elements, so that places differ."""
        expected, path = [], os.path.join(self.folder, "masks")
        zero_one = [i // 3 % 2 for i in range(60)]
        views = [(name, array.array(code, zero_one), part) for code in "bBhHiIqQ"
                 for name, part in (("all", slice(None)), ("end", slice(50, 60)), ("reversed", slice(None, None, -1)))]
        with tokmap.ShardWriter(path, vocab_size=100, mask=True) as writer:
            for name, whole, part in views:
                for view in (memoryview(whole)[part], memoryview(whole).toreadonly()[part]):
                    writer.add(WHOLE[part], mask=view)
                    expected += zero_one[part]
            if importable("numpy") is None:
                import numpy
                for kind in ("bool", "uint8", "int64"):
                    whole = numpy.array(zero_one, kind)
                    for view in (whole[50:60], memoryview(whole)[50:60], memoryview(whole[::-1])[0:10][::-1]):
                        writer.add(WHOLE[50:60], mask=view)
                        expected += zero_one[50:60]
                hidden = numpy.ma.array(zero_one, mask=zero_one)
                for view in (hidden, memoryview(hidden)):
                    self.refuses("masked", lambda: writer.add(WHOLE, mask=view))
            self.refuses("2", lambda: writer.add([1, 2], mask=memoryview(array.array("q", [5, 1, 2]))[1:]))
        with tokmap.Dataset(path) as dataset:
            self.assertEqual([int(bit) for bit in dataset.mask()], expected)

    def test_decoding(self):
        with tokmap.Tokenizer("bytes") as tokenizer:
            for name, view, wanted in all_views():
                again = list(view) if hasattr(view, "send") else view
                if "other bytes" in name or "object" in name:
                    wanted = [1, 2]  # which decode() copies
                if wanted is None:
                    self.refuses(name, lambda: tokenizer.decode(again))
                    self.refuses(name, lambda: tokenizer.decode_bytes(again))
                    continue
                self.assertEqual((name, tokenizer.decode(again)), (name, bytes(wanted).decode()))
                self.assertEqual((name, tokenizer.decode_bytes(again)), (name, bytes(wanted)))
                self.assertEqual((name, tokenizer.decode_batch([again, [65]])), (name, [bytes(wanted).decode(), "A"]))

    @needs("numpy")
    def test_ids_to_a_caller_s_array(self):
        import numpy
        with tokmap.Tokenizer("bytes") as tokenizer:
            for kind in ("uint16", "int32", "int64", ">i4"):
                whole = numpy.full(20, 7, kind)
                for part in (slice(5, 9), slice(19, 4, -5)):
                    whole[:] = 7
                    wanted = [7] * 20
                    self.assertEqual(tokenizer.encode_array("Hey", out=whole[part]).tolist(), [72, 101, 121])
                    for place, value in zip(range(20)[part], b"Hey"):
                        wanted[place] = value
                    self.assertEqual(whole.tolist(), wanted)
            frozen = numpy.zeros(9, "int64")
            frozen.flags.writeable = False
            masked = numpy.ma.array(numpy.zeros(9, "int64"), mask=[1] * 9)
            for wrong in (frozen, masked, memoryview(numpy.zeros(9, "int64")), numpy.array(5), tokmap.Array.on_host((9,), "int64")):
                self.refuses(type(wrong).__name__, lambda: tokenizer.encode_array("Hi", out=wrong))

    @needs("pyarrow")
    def test_texts_of_arrow(self):
        import pyarrow
        texts = [f"text {i}" * (i % 3) for i in range(50)]
        with tokmap.Tokenizer("bytes") as tokenizer:
            for kind in (pyarrow.string(), pyarrow.large_string(), pyarrow.binary(), pyarrow.string_view()):
                whole = pyarrow.array([text.encode() if kind == pyarrow.binary() else text for text in texts], kind)
                for part in (slice(0, 50), slice(10, 20), slice(49, 50), slice(20, 20)):
                    view = whole[part]
                    self.assertEqual(tokenizer.decode_batch(tokenizer.encode_batch(view, flat=True)), texts[part], kind)
                    chunks = pyarrow.chunked_array([view, whole[3:5]], kind)
                    again = tokenizer.decode_batch(tokenizer.encode_batch(chunks))
                    self.assertEqual(again, texts[part] + texts[3:5], kind)

            for mask, offset in ([True, False, False], 0), (None, 1):
                structs = pyarrow.StructArray.from_arrays([pyarrow.array(["a", "b", "c"])], ["t"], mask=mask and pyarrow.array(mask))
                self.refuses("structs", lambda: tokenizer.encode_batch(structs[offset:], field="t"))

    def test_documents_that_are_packed(self):
        """tokmap.pack() of ids, and of labels, which are the ids again."""
        out, expected, records = os.path.join(self.folder, "packed"), [], []
        for name, view, wanted in all_views():
            if wanted is None:
                if not any(word in name for word in ("other bytes", "object", "(0, 3)")):  # which become lists
                    self.refuses(name, lambda: tokmap.pack([{"ids": view}], out, ids_field="ids", tokenizer="bytes"))
            elif wanted and not isinstance(view, (bytes, str)) and not hasattr(view, "send"):
                records.append({"ids": view, "labels": view})
                expected.append((name, wanted))
            if sum(map(len, (record["ids"] for record in records))) > 20000:
                break
        tokmap.pack(records, out, tokenizer="bytes", ids_field="ids", labels_field="labels", eod=False, progress=False)
        with tokmap.Dataset(out) as dataset:
            self.assertEqual(list(zip((name for name, _ in expected), (values(ids) for ids in dataset))), expected)

    def outputs(self, framework, whole, masked=None):
        """next(out=) into views of memory of the caller: at their place, and nowhere else."""
        loader, fresh = (self.run_of(batch=2, seq_len=8).loader(framework=framework, fields="inputs", dtype="int64")
                         for _ in range(2))
        for row in (0, 3, 5):
            whole[:] = -7
            b = loader.next(out={"inputs": whole[row:row + 2]})
            wanted = [[-7] * 8] * row + values(fresh.next().inputs) + [[-7] * 8] * (7 - 2 - row)
            self.assertEqual((b.inputs.shape, whole.tolist()), ((2, 8), wanted))
        wrong = [whole[:4:2], whole[:2, ::-1] if framework == "numpy" else whole.as_strided((2, 8), (1, 2)), whole[:2, :4], masked]
        for view in wrong if masked is not None else wrong[:3]:
            with self.assertRaises((class_of("ERROR_ARGUMENT", TypeError), tokmap.ArgumentError)):
                loader.next(out={"inputs": view})

    @needs("numpy")
    def test_outputs_of_numpy(self):
        import numpy
        hidden = numpy.ma.array(numpy.zeros((2, 8), "int64"), mask=True)
        self.outputs("numpy", numpy.zeros((7, 8), "int64"), hidden)
        self.outputs("numpy", numpy.zeros((9, 8), "int64")[1:8])
        self.outputs("numpy", numpy.frombuffer(bytearray(8 * 8 * 7 + 8), "int64")[1:].reshape(7, 8))
        loader = self.run_of(batch=2, seq_len=8).loader(framework="numpy", fields="inputs", dtype="int64")
        for wrong in (numpy.zeros((2, 8), ">i8"), numpy.zeros((2, 8), "datetime64[s]"), numpy.zeros((), "int64")):
            with self.assertRaises(tokmap.ArgumentError):
                loader.next(out={"inputs": wrong})

    @needs("torch")
    def test_outputs_of_torch(self):
        import torch
        self.outputs("torch", torch.zeros((7, 8), dtype=torch.int64))
        self.outputs("torch", torch.zeros((9, 16), dtype=torch.int32)[1:8].view(torch.int64))

    def test_outputs_of_this_package(self):
        loader, fresh = (self.run_of(batch=2, seq_len=8).loader(framework="dlpack", fields="inputs", dtype="int64")
                         for _ in range(2))
        whole = tokmap.Array.on_host((7, 8), "int64")
        loader.next(out={"inputs": whole[3:5]})
        self.assertEqual(whole.tolist(), [[0] * 8] * 3 + values(fresh.next().inputs) + [[0] * 8] * 2)


if __name__ == "__main__":
    unittest.main()
