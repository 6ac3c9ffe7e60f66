# SPDX-License-Identifier: MIT
"""NumPy arrays and CPU tensors: the same values as the package's own arrays, the caller's own memory, and wrong
outputs."""
import pickle
import sys
import unittest
from unittest import mock

import tokmap
from tokmap.errors import class_of
from support import BATCH, SEQ, WithData, needs, values

FIELDS = "inputs targets position_ids document_ids loss_mask rows cu_seqlens"


class Both:
    """Tests that apply to NumPy and to torch. A subclass supplies the framework's functions."""
    fields = FIELDS

    def test_same_as_ours(self):
        for dtype in ("int32", "int64"):
            run = self.run_of(passes=1)
            ours = run.loader(rows=4, dtype=dtype, framework="dlpack", fields=self.fields)
            theirs = run.loader(rows=4, dtype=self.dtype(dtype), fields=self.fields)
            self.assertEqual(theirs._arrays.name, self.framework)
            for one, other in zip(ours, theirs):
                self.assertEqual(one.count, other.count)
                for name in one.keys():
                    self.assertIsInstance(other[name], self.kind)
                    self.assertIn(one[name].dtype, str(other[name].dtype))
                    self.assertEqual(values(one[name]), values(other[name]), name)

    def test_the_caller_s_own(self):
        loader = self.run_of().loader(dtype=self.dtype("int64"))
        kept = [loader.next() for _ in range(5)]
        before = [values(batch.inputs) for batch in kept]
        for _ in range(20):
            loader.next()
        loader.close()
        self.assertEqual([values(batch.inputs) for batch in kept], before)
        self.assertEqual(before, [self.truth.batch(loader.run, step, 0, BATCH)["inputs"] for step in range(5)])

    def test_static_outputs(self):
        run = self.run_of()
        loader, fresh = run.loader(dtype=self.dtype("int64")), run.loader(dtype=self.dtype("int64"))
        out = loader.out()

        class Outputs:
            inputs, targets = out["inputs"], out["targets"]
        for given in (out, Outputs, out):
            batch = loader.next(out=given)
            self.assertIs(batch.inputs, out["inputs"])
            self.assertEqual(values(batch.targets), values(fresh.next().targets))

    def test_wrong_outputs(self):
        loader = self.run_of().loader(dtype=self.dtype("int64"), fields="inputs")
        shape = (BATCH, SEQ)
        wide = self.empty((BATCH, 2 * SEQ), "int64")
        for wrong, words in ((self.empty(shape, "int32"), ("out.inputs", "dtype", "int64", "int32")),
                             (self.empty((SEQ, BATCH), "int64"), ("out.inputs", "shape", f"({BATCH}, {SEQ})", f"({SEQ}, {BATCH})")),
                             (wide[:, :SEQ], ("out.inputs", "strides", f"({SEQ}, 1)", f"({2 * SEQ}, 1)")),
                             (self.empty((SEQ, BATCH), "int64").T, ("out.inputs", "strides", f"({SEQ}, 1)", f"(1, {BATCH})")),
                             ([[0] * SEQ] * BATCH, ("out.inputs", "kind", "list")),
                             (None, ("no inputs",))):
            with self.assertRaises(class_of("ERROR_ARGUMENT", TypeError)) as caught:
                loader.next(out={"inputs": wrong})
            for word in words:
                self.assertIn(word, str(caught.exception))
        self.assertEqual(loader.next().step, 0)

    def test_an_output_that_was_right_before(self):
        loader = self.run_of().loader(dtype=self.dtype("int64"), fields="inputs")
        out = loader.out()
        loader.next(out=out)
        self.shrink(out["inputs"])
        with self.assertRaises(class_of("ERROR_ARGUMENT", TypeError)) as caught:
            loader.next(out=out)
        self.assertIn(f"expected ({BATCH}, {SEQ}), found (1, {SEQ})", str(caught.exception))

    def test_map_style(self):
        run = self.run_of()
        dataset = run.dataset(dtype=self.dtype("int32"), fields=" ".join(("inputs", "targets", "position_ids")))
        again = pickle.loads(pickle.dumps(dataset))
        self.assertLess(len(pickle.dumps(dataset)), 4096)
        for index in (0, 17, len(dataset) - 1):
            row = self.truth.row(run.locate(*dataset.place(index)), SEQ)
            for name, array in again[index].items():
                self.assertIsInstance(array, self.kind)
                self.assertEqual(values(array), row[name])
        stacked = tokmap.collate([dataset[3], dataset[9]])
        whole = tokmap.collate(dataset.__getitems__([3, 9]))
        for name in whole:
            self.assertEqual(values(stacked[name]), values(whole[name]))
        self.assertEqual(tuple(whole.inputs.shape), (2, SEQ))


@needs("numpy")
class Numpy(Both, WithData):
    framework = "numpy"

    def dtype(self, name):
        import numpy
        return numpy.dtype(name) if name == "int64" else getattr(numpy, name)

    @property
    def kind(self):
        import numpy
        return numpy.ndarray

    def empty(self, shape, name):
        import numpy
        return numpy.zeros(shape, name)

    def shrink(self, array):
        array.resize((1, SEQ), refcheck=False)

    def test_default(self):
        with mock.patch.dict(sys.modules, {"torch": None}):  # as if the program had not imported it
            self.assertIsInstance(self.run_of().loader().next().inputs, self.kind)

    def test_an_output_whose_memory_moves(self):
        loader = self.run_of().loader(dtype=self.dtype("int64"), fields="inputs")
        out, moved = loader.out(), 0
        out["inputs"] = self.empty((BATCH, SEQ), "int64")  # malloc's memory, which resize() can move
        for step in range(20):
            loader.next(out=out)
            self.assertEqual(values(out["inputs"][0]), self.truth.row(loader.run.locate(step, 0), SEQ)["inputs"])
            before = out["inputs"].ctypes.data
            out["inputs"].resize((1 << 16 + step % 2, SEQ), refcheck=False)
            out["inputs"].resize((BATCH, SEQ), refcheck=False)
            out["inputs"][:] = -1
            moved += out["inputs"].ctypes.data != before
        self.assertGreater(moved, 0)

    def test_read_only_output(self):
        loader = self.run_of().loader(framework="numpy", fields="inputs")
        array = self.empty((BATCH, SEQ), "int64")
        array.flags.writeable = False
        with self.assertRaises(class_of("ERROR_ARGUMENT", TypeError)) as caught:
            loader.next(out={"inputs": array})
        self.assertIn("read-only", str(caught.exception))

    def test_views(self):
        dataset = tokmap.Dataset(self.prefix)
        view = dataset.view(5, 100)[0]
        self.assertEqual((view.dtype.name, view.flags.writeable, view.base is not None), ("uint16", False, True))
        self.assertEqual(values(view), values(dataset.tokens(5, 100)))
        with self.assertRaises(tokmap.TokmapError):
            dataset.close()

    def test_takes_our_own(self):
        import numpy
        ours = self.run_of().loader(framework="dlpack").next().inputs
        self.assertEqual(values(numpy.asarray(ours)), values(ours))
        self.assertEqual(numpy.asarray(ours).ctypes.data, ours.address)
        taken = numpy.from_dlpack(ours)
        self.assertEqual((taken.ctypes.data, values(taken)), (ours.address, values(ours)))
        expected = values(ours)
        del ours
        self.assertEqual(values(taken), expected)

    def test_no_numpy_on_a_gpu(self):
        with self.assertRaises(tokmap.ArgumentError) as caught:
            self.run_of().loader(device="cuda", framework="numpy")
        self.assertIn("NumPy", str(caught.exception))


@needs("torch")
class Torch(Both, WithData):
    framework = "torch"

    @property
    def fields(self):
        import torch
        return FIELDS if hasattr(torch, "uint16") else FIELDS.replace(" rows", "")

    def dtype(self, name):
        import torch
        return getattr(torch, name)

    @property
    def kind(self):
        import torch
        return torch.Tensor

    def empty(self, shape, name):
        import torch
        return torch.zeros(shape, dtype=getattr(torch, name))

    def shrink(self, array):
        array.resize_((1, SEQ))

    def test_by_device(self):
        import torch
        self.assertIsInstance(self.run_of().loader(device=torch.device("cpu")).next().inputs, torch.Tensor)

    def test_state_survives_a_safe_load(self):
        import io
        import torch
        loader = self.run_of().loader(dtype=torch.int64)
        loader.next()
        file = io.BytesIO()
        torch.save(loader.state_dict(), file)
        file.seek(0)
        self.assertEqual(torch.load(file, weights_only=True), loader.state_dict())

    def test_takes_our_own(self):
        import torch
        ours = self.run_of().loader(framework="dlpack").next().inputs
        taken = torch.from_dlpack(ours)
        self.assertEqual((taken.data_ptr(), taken.tolist()), (ours.address, values(ours)))

    def test_no_gpu(self):
        import torch
        if torch.cuda.is_available():
            self.skipTest("there is a GPU")
        with self.assertRaises(class_of("ERROR_NO_DEVICE")) as caught:
            self.run_of().loader(device="cuda", dtype=torch.int64)
        for said in ("torch", "or pass device="):
            self.assertIn(said, str(caught.exception))

    def test_an_output_elsewhere(self):
        import torch
        loader = self.run_of().loader(dtype=torch.int64, fields="inputs")
        with self.assertRaises(class_of("ERROR_ARGUMENT", TypeError)) as caught:
            loader.next(out={"inputs": torch.zeros((BATCH, SEQ), dtype=torch.int64, device="meta")})
        self.assertIn("out.inputs has the wrong device: expected cpu, found meta", str(caught.exception))

    def test_moved(self):
        import torch
        batch = self.run_of().loader(dtype=torch.int64).next()
        moved = batch.to("cpu", non_blocking=True)
        self.assertEqual((moved.step, moved.inputs.tolist()), (batch.step, batch.inputs.tolist()))

    def test_dataloader(self):
        """Forked and spawned workers, with and without tokmap.collate, and a random sampler."""
        import torch
        from torch.utils.data import DataLoader
        run = self.run_of()
        dataset = run.dataset(dtype=torch.int64)
        expected = {batch.step: batch.inputs for batch in run.loader(dtype=torch.int64)}
        for workers, method in ((0, None), (2, "fork"), (2, "spawn")):
            for collate in (tokmap.collate, None):
                loader = DataLoader(dataset, batch_size=BATCH, num_workers=workers, collate_fn=collate,
                                    multiprocessing_context=method)
                for step, batch in enumerate(loader):
                    self.assertTrue(torch.equal(batch["inputs"], expected[step]))
                self.assertEqual(step + 1, run.info.steps)
        generator = torch.Generator().manual_seed(1)
        rows = [row for batch in DataLoader(dataset, batch_size=5, shuffle=True, generator=generator,
                                            collate_fn=tokmap.collate) for row in batch.inputs.tolist()]
        self.assertEqual(sorted(rows), sorted(row for batch in expected.values() for row in batch.tolist()))


if __name__ == "__main__":
    unittest.main()
