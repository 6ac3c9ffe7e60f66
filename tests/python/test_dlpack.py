# SPDX-License-Identifier: MIT
"""Arrays that frameworks take through DLPack: their memory is reused however they are freed, and no exception gets
lost."""
import ctypes
import gc
import threading
import unittest

import tokmap
from tokmap import dlpack
from support import WithData, needs, python, values

_pythonapi = ctypes.PyDLL(None)
_pointer_of = _pythonapi.PyCapsule_GetPointer
_pointer_of.argtypes, _pointer_of.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
_rename = _pythonapi.PyCapsule_SetName
_rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
_used = ctypes.c_char_p(b"used_dltensor")


def take(array):
    """Takes the tensor of a capsule as a framework does."""
    capsule = array.__dlpack__()
    managed = ctypes.cast(_pointer_of(capsule, b"dltensor"), ctypes.POINTER(dlpack._Managed))
    _rename(capsule, _used)
    return managed


def delete(managed):
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.contents.deleter)(ctypes.addressof(managed.contents))


class Exports(WithData):
    def setUp(self):
        self.array = self.run_of().loader(framework="dlpack").next().inputs
        gc.collect()
        dlpack.sweep()
        self.before, self.known = len(dlpack._alive), set(dlpack._alive)

    def left(self):
        dlpack.sweep()
        return len(dlpack._alive) - self.before

    def test_taken_and_deleted(self):
        taken = [take(self.array) for _ in range(5)]
        self.assertEqual(self.left(), 5)
        for managed in taken:
            tensor = managed.contents.tensor
            self.assertEqual((tensor.data, tensor.shape[0], tensor.shape[1]), (self.array.address, *self.array.shape))
            delete(managed)
        self.assertEqual(self.left(), 0)

    def test_capsules_that_nobody_takes(self):
        for version in (None, (1, 1)):
            self.array.__dlpack__(max_version=version)
        self.assertEqual(self.left(), 0)
        kept = [self.array.__dlpack__(max_version=version) for version in (None, (1, 1))]
        self.assertEqual(self.left(), 2)  # somebody may still take their tensors
        del kept
        self.assertEqual(self.left(), 0)

    def test_elements_are_ints(self):
        """As users of NumPy expect: the elements of one dimension are numbers, and rows are arrays."""
        rows = self.array.tolist()
        self.assertEqual([row.tolist() for row in self.array], rows)
        self.assertEqual([list(row) for row in self.array], rows)
        self.assertEqual([type(element) for element in self.array[0][:2]], [int, int])
        self.assertEqual((self.array[0][3], self.array[-1][0]), (rows[0][3], rows[-1][0]))
        self.assertEqual(self.array[0][-1], rows[0][-1])
        self.assertEqual((sum(self.array[0]), max(self.array[1])), (sum(rows[0]), max(rows[1])))
        self.assertEqual(list(self.array[0][:0]), [])
        self.assertIn(rows[0][5], self.array[0])
        with self.assertRaises(IndexError):
            self.array[0][len(rows[0])]

    def test_wrong_requests(self):
        self.assertEqual(self.array.__dlpack_device__(), (1, 0))
        with self.assertRaises(BufferError):
            self.array.__dlpack__(stream=3)
        with self.assertRaises(BufferError):
            self.array.__dlpack__(dl_device=(2, 0))
        self.assertEqual(self.left(), 0)

    def test_many_exports(self):
        """Many arrays stay exported. Later ones are still found when they end."""
        kept = [take(self.array) for _ in range(200)]
        for _ in range(500):
            delete(take(self.array))
        for _ in range(10):
            dlpack.sweep()
        self.assertEqual(self.left(), 200)
        for managed in kept:
            delete(managed)
        for _ in range(10):
            dlpack.sweep()
        self.assertEqual(self.left(), 0)

    def test_an_exception_that_propagates(self):
        """A capsule that a failing call drops is destroyed while that call's exception is set."""
        for version in (None, (1, 1)):
            with self.assertRaisesRegex(TypeError, "int()"):
                int(self.array.__dlpack__(max_version=version))
            with self.assertRaisesRegex(TypeError, "divmod()"):
                divmod(self.array.__dlpack__(max_version=version), 3)
        self.assertEqual(self.left(), 0)

    @needs("numpy")
    def test_an_exception_beside_numpy_s(self):
        import numpy
        with self.assertRaisesRegex(TypeError, "divmod|ufunc|supported"):
            divmod(numpy.from_dlpack(self.array), {})
        for _ in range(10):
            self.assertEqual(numpy.from_dlpack(self.array).tolist(), values(self.array))
        self.assertEqual(self.left(), 0)

    @needs("torch")
    def test_an_exception_beside_torch_s(self):
        import torch
        with self.assertRaisesRegex(TypeError, "add"):
            torch.add(torch.from_dlpack(self.array), "no tensor")
        with self.assertRaisesRegex(TypeError, "divmod"):
            divmod(torch.from_dlpack(self.array), {})
        self.assertEqual(self.left(), 0)

    def test_taken_during_a_sweep(self):
        held, api = [self.array.__dlpack__()], dlpack._api

        class Api:
            @staticmethod
            def PyCapsule_IsValid(capsule, name):
                found = api.PyCapsule_IsValid(capsule, name)
                if held:  # another thread takes the tensor now, and drops the capsule
                    _rename(held.pop(), _used)
                return found
        (number,) = set(dlpack._alive) - self.known
        export = dlpack._alive[number]
        dlpack._api = Api
        try:
            self.assertFalse(export.has_ended())
        finally:
            dlpack._api = api
        self.assertEqual((held, self.left()), ([], 1))
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(export.managed.deleter)(ctypes.addressof(export.managed))
        self.assertEqual(self.left(), 0)

    def test_an_export_lost_from_the_queue(self):
        capsule = self.array.__dlpack__()
        dlpack._queue.clear()
        self.assertEqual(self.left(), 1)
        del capsule
        self.assertEqual(self.left(), 0)

    def test_threads(self):
        wrong = []

        def work():
            for turn in range(300):
                unused, managed = self.array.__dlpack__(), take(self.array)
                if managed.contents.tensor.data != self.array.address or _pointer_of(unused, b"dltensor") is None:
                    wrong.append(turn)
                delete(managed)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for _ in range(20):
            dlpack.sweep()
        self.assertEqual((wrong, self.left()), ([], 0))


class Processes(WithData):
    def test_the_end_of_a_program(self):
        """Tensors that are taken, that nobody takes, and that the C library's exit deletes after Python has ended."""
        said = python("""
import builtins, ctypes, sys
import tokmap
from tokmap import dlpack
from test_dlpack import take
def batch():
    return tokmap.Run(data=sys.argv[1], seq_len=48, batch=6, seed=3).loader(framework="dlpack").next()
builtins.capsule, builtins.taken = batch().inputs.__dlpack__(), take(batch().inputs)
late = take(batch().inputs)
at_exit = ctypes.CDLL(None).__cxa_atexit
at_exit.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
at_exit(late.contents.deleter, ctypes.addressof(late.contents), None)
try:
    import numpy
    builtins.array = numpy.from_dlpack(batch().inputs)
except ImportError:
    pass
print("done")
""", self.prefix, PYTHONPATH=self.path(), MALLOC_PERTURB_="165")
        self.assertEqual(said, "done\n")

    def test_prototypes_of_others(self):
        """The package does not change prototypes of ctypes.pythonapi, and changes by others do not affect it."""
        said = python("""
import ctypes, sys
names = "PyCapsule_New PyCapsule_IsValid Py_IncRef".split()
plain = ctypes.PyDLL(None)
before = [(getattr(plain, name).argtypes, getattr(plain, name).restype) for name in names]
import tokmap
array = tokmap.Run(data=sys.argv[1], seq_len=48, batch=6, seed=3).loader(framework="dlpack").next().inputs
array.__dlpack__()
found = [(getattr(ctypes.pythonapi, name).argtypes, getattr(ctypes.pythonapi, name).restype) for name in names]
assert found == before, found
for name in names:
    getattr(ctypes.pythonapi, name).argtypes, getattr(ctypes.pythonapi, name).restype = (ctypes.c_double,), ctypes.c_int
assert type(array.__dlpack__()).__name__ == "PyCapsule"
print("done")
""", self.prefix)
        self.assertEqual(said, "done\n")

    @staticmethod
    def path():
        import os
        return os.pathsep.join((os.path.dirname(os.path.abspath(__file__)), os.environ.get("PYTHONPATH", "")))


if __name__ == "__main__":
    unittest.main()
