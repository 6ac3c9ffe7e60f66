# SPDX-License-Identifier: MIT
"""Delivery to a GPU, with the emulated driver. The same batches must arrive as on the host, in the order of the
consumer's stream, also through DLPack; every failure must be an exception; and a program that ends must leave nothing
behind.

Each program runs in its own process, because the driver is chosen when it is opened, and reports errors when it ends.
"""
import os
import subprocess
import sys
import unittest

from support import BUILD_DIR, WithData, needs, python

DRIVER = os.path.join(BUILD_DIR, "tests", "cuda_software", "libcuda.so.1")

# The programs begin with this.
HEAD = """
import ctypes, gc, os, sys
sys.path.insert(0, os.path.join(os.environ["TOP"], "tests", "python"))
import tokmap
from tokmap import _library
from support import Truth
prefix = sys.argv[1]
FIELDS = "inputs targets position_ids document_ids loss_mask rows cu_seqlens labels"
run = tokmap.Run(data=prefix, seq_len=48, batch=6, seed=3, passes=2)

def new_stream(device=b"cuda:0"):
    made, error = ctypes.c_void_p(), _library.Error()
    _library.check(_library.lib.tokmap_cuda_stream_new(device, ctypes.byref(made), ctypes.byref(error)), error)
    return made.value

def same(one, other):
    for name in one.keys():
        assert one[name].tolist() == other[name].tolist(), (one.step, name)
    assert one.count == other.count and ("cu_seqlens" not in one.keys() or
        (one.documents, one.max_seqlen) == (other.documents, other.max_seqlen))
"""


@unittest.skipIf(not os.path.exists(DRIVER), f"{DRIVER} is not built (make harness)")
class Device(WithData):
    def program(self, code, software="", check=True, driver=DRIVER):
        return python(HEAD + code, self.prefix, check=check, TOKMAP_CUDA_DRIVER=driver, TOKMAP_CUDA_SOFTWARE=software)

    def test_every_field(self):
        for software in ("", "delay=300,seed=5", "delay=50,seed=6,fail=cuModuleLoadDataEx:1+:218"):
            with self.subTest(software):
                said = self.program("""
for dtype in ("int32", "int64"):
    for mask in (False, True):
        options = dict(rows=4, fields=FIELDS, dtype=dtype, framework="dlpack", mask_targets=mask)
        with run.loader(device="cuda", **options) as device, run.loader(**options) as host:
            assert device.device == "cuda:0" and device.delivery().device == 0
            for one, other in zip(device, host):
                same(one, other)
            del one
            reached = device.delivery()
            expanded = device.stats().host_expanded
assert (expanded == 0) == reached.kernel and bool(reached.reason) != reached.kernel, (expanded, reached)
print("kernel" if reached.kernel else reached.reason)
""", software)
                if "fail" in software:
                    self.assertIn("CUDA_ERROR_INVALID_PTX", said)

    def test_coherent(self):
        said = self.program("""
for device in ("cuda", "cpu"):
    with run.loader(device=device, framework="dlpack") as loader:
        print(loader.delivery().coherent)
""", "pageable,host_tables")
        self.assertEqual(said, "True\nFalse\n")

    def test_gpus(self):
        said = self.program("print([(gpu.number, gpu.capability) for gpu in tokmap.gpus()])", "devices=2,capability=80")
        self.assertEqual(said, "[(0, (8, 0)), (1, (8, 0))]\n")

    def test_second_device(self):
        self.program("""
with run.loader(device="cuda:1", framework="dlpack") as one, run.loader(framework="dlpack") as other:
    assert one.next().inputs.__dlpack_device__() == (2, 1)
    other.next()
    same(one.next(), other.next())
""", "devices=2,delay=100")

    def test_a_loader_stays_on_its_device(self):
        """Device "cuda" is that of the context that is current when a loader is opened, and not when it moves."""
        self.program("""
from stand_ins import Driver
first, second = Driver(0), Driver(1)  # the second one is current
with run.loader(device="cuda", framework="dlpack") as one, run.loader(framework="dlpack") as other:
    assert one.device == "cuda:1" and one.delivery().device == 1
    state = one.state_dict()
    first.call("cuCtxSetCurrent", first._context)
    for again in (lambda loader: loader.load_state_dict(run.cursor(3)), lambda loader: loader.rewind(),
                  lambda loader: loader.repartition(0, 2), lambda loader: loader.load_state_dict(state)):
        again(one), again(other)
        assert one.delivery().device == 1
        assert one.next().inputs.__dlpack_device__() == (2, 1)
        other.next()
        same(one.next(), other.next())
for each in (second, first):
    each.call("cuCtxSetCurrent", each._context)
    each.close()
""", "devices=2,delay=100")

    def test_static_outputs(self):
        """Every batch is written to the same arrays, and read in the stream's order while the loader works ahead."""
        self.program("""
stream = new_stream()
with run.loader(device="cuda", rows=4, framework="dlpack") as one, run.loader(rows=4, framework="dlpack") as other:
    out = one.out()
    for expected in other:
        got = one.next(out=out, stream=stream)
        assert got.inputs.address == out["inputs"].address
        for name in ("inputs", "targets"):
            assert got[name].tolist() == expected[name].tolist()
    del got, out
    gc.collect()
_library.lib.tokmap_cuda_stream_free(b"cuda:0", stream)
""", "delay=200,seed=9")

    def test_the_stream_of_a_call_is_that_call_s(self):
        """Without stream= a call uses the default stream, whatever the previous call used."""
        self.program("""
stream = new_stream()
with run.loader(device="cuda", framework="dlpack") as one, run.loader(framework="dlpack") as other:
    for given in (stream, None, stream, None):
        got = one.next(stream=given) if given else one.next()
        assert got.inputs.stream == (given or 0), (got.inputs.stream, given)
        same(got, other.next())
    one.next(stream=stream)
    assert one.out()["inputs"].stream == 0
    del got
_library.lib.tokmap_cuda_stream_free(b"cuda:0", stream)
""", "delay=100,seed=4")

    def test_a_collection_of_garbage_inside_the_pool(self):
        """It may return a block to the pool while the pool is taking another."""
        self.program("""
import faulthandler
faulthandler.dump_traceback_later(120, exit=True)
from tokmap.device import Block, Pool
pool = Pool("cuda:0")
class Collecting(dict):
    def get(self, *arguments):
        gc.collect()
        return super().get(*arguments)
pool._free = Collecting({(8, 0): [16]})
cycle = [pool.take(8, 0)]
assert cycle[0].address == 16
cycle.append(cycle)
pool._free[8, 1] = [24]
del cycle
block = pool.take(8, 1)
assert block.address == 24 and pool._free[8, 0] == [16]
pool._free.clear()  # these addresses are not real memory
block.pool = None
""")

    def test_dlpack(self):
        """A consumer with its own stream takes capsules as a framework does, and frees them late."""
        said = self.program("""
from tokmap import dlpack
consumer = new_stream()
api = ctypes.pythonapi
api.PyCapsule_SetName.argtypes = (ctypes.py_object, ctypes.c_char_p)
pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
used = b"used_dltensor"

def take(array, stream):
    capsule = array.__dlpack__(stream=stream)
    managed = ctypes.cast(pointer_of(capsule, b"dltensor"), ctypes.POINTER(dlpack._Managed))
    api.PyCapsule_SetName(capsule, used)
    return managed

def values(managed, stream):
    tensor = managed.contents.tensor
    shape = [tensor.shape[i] for i in range(tensor.dimensions)]
    assert (tensor.device.type, tensor.device.number, tensor.type.code, tensor.type.bits) == (2, 0, 0, 64)
    assert [tensor.strides[i] for i in range(2)] == [shape[1], 1]
    host, error = (ctypes.c_int64 * (shape[0] * shape[1]))(), _library.Error()
    _library.check(_library.lib.tokmap_cuda_memory_read(b"cuda:0", host, tensor.data, ctypes.sizeof(host), stream,
                                                        ctypes.byref(error)), error)
    return [list(host[i * shape[1]:(i + 1) * shape[1]]) for i in range(shape[0])]

delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
with run.loader(device="cuda", framework="dlpack") as one, run.loader(framework="dlpack") as other:
    kept, count = [], 0
    for got, expected in zip(one, other):
        kept.append((take(got.inputs, consumer), expected.inputs.tolist()))
        got.inputs.__dlpack__(stream=consumer)  # nobody takes the tensor of this capsule
        del got
        if len(kept) == 3:
            for managed, rows in kept:
                assert values(managed, consumer) == rows
                delete(managed.contents.deleter)(ctypes.addressof(managed.contents))
                count += 1
            kept = []
    for managed, _ in kept:
        values(managed, consumer)
        delete(managed.contents.deleter)(ctypes.addressof(managed.contents))
    array = one.out()["inputs"]
    for wrong in (0, -2):
        try:
            array.__dlpack__(stream=wrong)
            raise SystemExit("stream taken")
        except BufferError:
            pass
    interface = array.__cuda_array_interface__
    assert interface["shape"] == (6, 48) and interface["typestr"] == "<i8" and interface["stream"] == 1
    assert not hasattr(array, "__array_interface__")
    del array
assert not dlpack._alive
_library.lib.tokmap_cuda_stream_free(b"cuda:0", consumer)
print(count)
""", "delay=150,seed=2")
        self.assertGreater(int(said), 20)

    @needs("numpy")
    def test_numpy_takes_a_copy(self):
        self.program("""
import numpy
with run.loader(device="cuda", framework="dlpack") as one, run.loader(framework="dlpack") as other:
    got, expected = one.next().inputs, other.next().inputs
    assert numpy.asarray(got.to_host()).tolist() == expected.tolist()
    capsule = got.__dlpack__(dl_device=(1, 0))
    del got, capsule
""", "delay=100")

    def test_memory_is_used_again(self):
        self.program("""
with run.loader(device="cuda", framework="dlpack", fields="inputs") as one:
    addresses = set()
    for batch in one:
        addresses.add(batch.inputs.address)
    del batch
    assert len(addresses) <= 3, len(addresses)
""", "delay=100")

    def test_arrays_outlive_the_loader(self):
        self.program("""
one = run.loader(device="cuda", framework="dlpack")
expected = run.loader(framework="dlpack").next().inputs.tolist()
batch = one.next()
one.close()
one.close()
assert batch.inputs.tolist() == expected
try:
    one.next()
    raise SystemExit("a closed loader was used")
except tokmap.ArgumentError:
    pass
""", "delay=300")

    def test_state_goes_anywhere(self):
        self.program("""
with run.loader(device="cuda", framework="dlpack", rank=1, world=3) as one:
    for batch in one:
        if batch.step == 4:
            break
    del batch
    state = one.state_dict()
    with run.loader(framework="dlpack", resume=state) as other:
        assert other.next().step == 5
    one.load_state_dict(run.cursor(2))
    assert one.next().step == 2
""", "delay=50")

    def test_rewind(self):
        self.program("""
for options in ({}, {"threads": 0}):
    loader = run.loader(device="cuda", framework="dlpack", rows=2, **options)
    host = [b.inputs.tolist() for b, _ in zip(run.loader(framework="dlpack", rows=2), range(9))]
    for turn in range(4):
        batches = [next(loader) for _ in range(3 * turn)]
        loader.rewind()  # before anything waits for the device
        assert [b.inputs.to_host().tolist() for b in batches] == host[:3 * turn]
""", "delay=200")

    def test_no_device(self):
        for software, driver, words in (("", "/no/such/libcuda.so.1", ("/no/such/libcuda.so.1",)),
                                        ("stub", DRIVER, ("stub",)), ("devices=0", DRIVER, ("",))):
            said = self.program("""
assert tokmap.gpus() == []
try:
    run.loader(device="cuda", framework="dlpack")
    raise SystemExit("there is a GPU")
except RuntimeError as problem:
    assert isinstance(problem, tokmap.errors.class_of("ERROR_NO_DEVICE")) and problem.status == "ERROR_NO_DEVICE"
    print(problem)
assert run.loader(framework="dlpack").next().step == 0
""", software, driver=driver)
            for word in words:
                self.assertIn(word, said)
        said = self.program("""
try:
    run.loader(device="cuda:7", framework="dlpack")
except tokmap.errors.class_of("ERROR_NO_DEVICE") as problem:
    print(problem)
""")
        self.assertIn("7", said)

    def test_no_memory(self):
        self.program("""
for options in ({"ring_bytes": 1 << 22}, {}):
    try:
        with run.loader(device="cuda", framework="dlpack", **options) as one:
            kept = [one.next() for _ in range(500)]
        raise SystemExit("there was memory")
    except MemoryError as problem:
        assert isinstance(problem, tokmap.TokmapError)
    kept = None
gc.collect()
""", "memory=200000")

    def test_a_failing_device(self):
        """An error has the CUDA code and its name, the next call fails again or succeeds, and the loader can be
        closed."""
        said = self.program("""
one = run.loader(device="cuda", framework="dlpack", ring_bytes=20000)
try:
    for _ in range(40):
        one.next()
    raise SystemExit("nothing failed")
except tokmap.errors.class_of("ERROR_DEVICE") as problem:
    assert problem.device == 999 and problem.status == "ERROR_DEVICE"
    print(problem)
one.close()
""", "fail=cuMemcpyHtoDAsync:7+:999,lenient")
        self.assertIn("CUDA_ERROR_UNKNOWN", said)

    def test_wrong_outputs(self):
        said = self.program("""
with run.loader(device="cuda", framework="dlpack", fields="inputs") as one:
    for wrong in (run.loader(framework="dlpack").out()["inputs"], one.out()["inputs"][:3], [1]):
        try:
            one.next(out={"inputs": wrong})
        except tokmap.errors.class_of("ERROR_ARGUMENT", TypeError) as problem:
            print(problem)
    class Strange:
        right = {"shape": (6, 48), "typestr": "<i8", "data": (64, False), "version": 3}
    for other in ({"typestr": "<i4"}, {"strides": (8, 48)}, {"data": (64, True)}, {"shape": (48, 6)}):
        Strange.__cuda_array_interface__ = {**Strange.right, **other}
        try:
            one.next(out={"inputs": Strange})
        except tokmap.errors.class_of("ERROR_ARGUMENT", TypeError) as problem:
            print(problem)
    wrong = None
""")
        words = ("device: expected cuda:0, found cpu", "shape: expected (6, 48), found (3, 48)", "kind",
                 "dtype: expected int64, found int32", "strides: expected (384, 8) bytes (C-contiguous), found (8, 48)",
                 "access: expected a writable array", "shape: expected (6, 48), found (48, 6)")
        self.assertEqual(len(said.splitlines()), len(words), said)
        for line, word in zip(said.splitlines(), words):
            self.assertIn(f"out.inputs has the wrong {word}", line)

    def test_a_stream_of_another_device(self):
        said = self.program("""
stream = new_stream(b"cuda:1")
with run.loader(device="cuda:0", framework="dlpack") as one, run.loader(framework="dlpack") as other:
    out = one.out()
    for options in ({}, {"out": out}):
        try:
            one.next(stream=stream, **options)
        except tokmap.ArgumentError as problem:
            print(problem)
        same(one.next(**options), other.next())  # no batch was lost
    del out
_library.lib.tokmap_cuda_stream_free(b"cuda:1", stream)
""", "devices=2,delay=50")
        self.assertEqual([("cuda:1" in line, "cuda:0" in line) for line in said.splitlines()], [(True, True)] * 2, said)

    def test_other_arrays_as_outputs(self):
        """Arrays with __cuda_array_interface__, such as those of CuPy and torch, can be outputs."""
        self.program("""
with run.loader(device="cuda", framework="dlpack", fields="inputs") as one, run.loader(framework="dlpack") as other:
    ours = one.out()["inputs"]
    class Foreign:
        __cuda_array_interface__ = ours.__cuda_array_interface__
    for _ in range(5):
        assert one.next(out={"inputs": Foreign}).inputs is Foreign
        assert ours.tolist() == other.next().inputs.tolist()
    del ours
""", "delay=100")

    def test_forked_child(self):
        self.program("""
one = run.loader(device="cuda", framework="dlpack")
batch = one.next()
child = os.fork()
if child == 0:
    try:
        one.next()
        os._exit(3)
    except tokmap.TokmapError:
        pass
    del batch
    one.close()
    assert run.loader(framework="dlpack").next().step == 0
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert one.next().step == 1
del batch
one.close()
""", "delay=50")

    def test_the_end_of_a_program(self):
        """A program that closes nothing ends normally, and leaves nothing on the GPU: also with a loader that is part
        of a cycle, that an extension never releases, or that a daemon thread is using."""
        for keeping in ("loader = made()", "loader = made(); cycle = [loader]; cycle.append(cycle)",
                        "loader = made(); ctypes.pythonapi.Py_IncRef(ctypes.py_object(loader))",
                        """
import threading
loader, began = made(), threading.Event()
def use():
    while True:
        loader.next()
        began.set()
threading.Thread(target=use, daemon=True).start()
began.wait()""", """
import threading
from tokmap import loader as module
loader, began = made(), threading.Event()
class Slow:  # the library, whose loader never has the next batch
    def tokmap_loader_wait(self, *arguments):
        began.set()
        return 0
    def __getattr__(self, name):
        return getattr(_library.lib, name)
module.lib = Slow()
threading.Thread(target=loader.next, daemon=True).start()
began.wait()"""):
            with self.subTest(keeping):
                ran = self.program("""
run = tokmap.Run(data=prefix, seq_len=48, batch=6, seed=3)
def made():
    loader = run.loader(device="cuda", framework="dlpack")
    for batch in loader:
        if batch.step == 3:
            return loader
""" + keeping + """
print("done")
""", "delay=50", check=False)
                self.assertEqual((ran.returncode, ran.stdout), (0, "done\n"), ran.stderr)
                self.assertEqual(ran.stderr, "")

    def test_a_device_that_was_reset(self):
        """Closing what was on it ends cleanly, and what is opened afterwards works."""
        self.program("""
import time
driver = ctypes.CDLL(os.environ["TOKMAP_CUDA_DRIVER"])
run = tokmap.Run(data=prefix, seq_len=48, batch=6, seed=3)
loader = run.loader(device="cuda", framework="dlpack")
batch, lent = loader.next(), loader.next()
while loader.stats().ring_ready < loader.stats().ring_slots - 1:
    time.sleep(0.001)
lent.inputs._share(None)
del lent
assert driver.cuDevicePrimaryCtxReset_v2(0) == 0
loader.close()
del batch
with run.loader(device="cuda", framework="dlpack") as again, run.loader(framework="dlpack") as host:
    assert again.next().inputs.tolist() == host.next().inputs.tolist()
""", "delay=50")

    def test_a_device_that_is_reset_while_the_producer_works(self):
        """Each thread finds it before it uses what was destroyed, and next() says what has happened."""
        self.program("""
import time
driver = ctypes.CDLL(os.environ["TOKMAP_CUDA_DRIVER"])
run = tokmap.Run(data=prefix, seq_len=48, batch=6, seed=3)
for turn in range(60):
    loader = run.loader(device="cuda", framework="dlpack", ring_bytes=4096 << turn % 3, threads=turn % 4 != 0)
    for _ in range(turn % 5):
        batch = loader.next()
    time.sleep(turn % 7 / 5000)
    assert driver.cuDevicePrimaryCtxReset_v2(0) == 0
    try:
        batch = loader.next()
        raise SystemExit("next() has delivered a batch")
    except tokmap.errors.class_of("ERROR_DEVICE") as error:
        assert "the program has reset the device" in str(error), error
    batch = None
    loader.close()
""", "delay=50")

    def test_functions_that_run_at_the_end(self):
        """Those of the program run first, and still have their loader."""
        said = self.program("""
import atexit
loader = run.loader(device="cuda", framework="dlpack")
keep = [loader]
keep.append(keep)
atexit.register(lambda: print(loader.next().step))
""", "delay=50")
        self.assertEqual(said, "0\n")

    def test_a_child_that_ends(self):
        """A child after fork() runs what is registered for the end of the program, and has all locks in the state in
        which the parent's other threads had them. It uses neither them nor the GPU."""
        said = self.program("""
import threading
loader = run.loader(device="cuda", framework="dlpack")
batch, other = loader.next(), loader.next()
other.inputs._share(None)
del other
pool, held, end = loader._arrays._pool, threading.Event(), threading.Event()
def hold():
    with pool._lock:
        held.set()
        end.wait()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    import faulthandler
    faulthandler.dump_traceback_later(20, exit=True)
    del batch
    loader.close()
    sys.exit(5)
end.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
assert loader.next().step == 2
del batch
loader.close()
""", "delay=50")
        self.assertEqual(said, "5\n")

    def test_the_tests_on_a_machine_with_a_gpu(self):
        """They pass there, too: none assumes that a driver is missing. The emulated driver is the machine's."""
        tests = os.path.dirname(os.path.abspath(__file__))
        environment = {**os.environ, "LD_LIBRARY_PATH": os.path.dirname(DRIVER), "TOKMAP_CUDA_SOFTWARE": "quiet"}
        environment.pop("TOKMAP_CUDA_DRIVER", None)
        ran = subprocess.run([sys.executable, os.path.join(tests, "tap.py"), "test_core.BadInput"], env=environment,
                             capture_output=True, text=True, timeout=300)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn("ok - test_core.BadInput.test_no_driver", ran.stdout)


if __name__ == "__main__":
    unittest.main()
