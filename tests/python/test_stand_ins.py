# SPDX-License-Identifier: MIT
"""Delivery to torch, CuPy, and JAX on a GPU, with stand-ins for the frameworks over the emulated driver: stand_ins.py
says what this shows and what it does not. tests/gpu/test_gpu.py does the same with the frameworks themselves.

Each program runs in its own process. The driver ends it with status 97 if the calls did not put two accesses in order.
"""
import os
import unittest

from support import BUILD_DIR, WithData, needs, python

DRIVER = os.path.join(BUILD_DIR, "tests", "cuda_software", "libcuda.so.1")

# The programs begin with this. flat() is an array of the host as the driver reads one from the GPU.
HEAD = """
import gc, os, sys, types
sys.path.insert(0, os.path.join(os.environ["TOP"], "tests", "python"))
import tokmap
import stand_ins
FIELDS = "inputs targets position_ids document_ids loss_mask rows cu_seqlens labels"
driver = stand_ins.Driver()

def run_of(**more):
    return tokmap.Run(data=sys.argv[1], **{"seq_len": 48, "batch": 6, "seed": 3, "passes": 2, **more})
run = run_of()

def flat(array):
    return [value for row in array.tolist() for value in row]

def refused(kind, call):
    try:
        call()
    except kind as problem:
        return str(problem)
    raise SystemExit("it was taken")
"""


@unittest.skipIf(not os.path.exists(DRIVER), f"{DRIVER} is not built (make harness)")
class StandIns(WithData):
    def program(self, code, software="delay=100,seed=7"):
        return python(HEAD + code + "\ngc.collect()\ndriver.close()\n", self.prefix, TOKMAP_CUDA_DRIVER=DRIVER,
                      TOKMAP_CUDA_SOFTWARE=software)


@needs("torch")
class Torch(StandIns):
    """Few programs, because importing torch takes seconds."""

    def test_batches(self):
        """Every field, on every stream. Tensors are dropped while the step reads them; torch's allocator gives their
        memory to the next batch of the stream."""
        self.program("""
import ctypes
torch = stand_ins.torch_on(driver)
kinds = {2: ctypes.c_uint16, 4: ctypes.c_int32, 8: ctypes.c_int64}
for dtype in (torch.int32, torch.int64):
    options = dict(rows=4, fields=FIELDS, mask_targets=True)
    with run.loader(device="cuda", dtype=dtype, **options) as there, \\
            run.loader(framework="dlpack", dtype=str(dtype)[6:], **options) as here:
        assert (there.device, there._arrays.name) == ("cuda:0", "torch")
        for batch, expected in zip(there, here):
            if batch.step == 9:
                break
            for name, tensor in batch.items():
                assert isinstance(tensor, torch.Tensor) and tuple(tensor.shape) == expected[name].shape
                host = (kinds[tensor.element_size()] * tensor.numel())()
                driver.call("cuMemcpyDtoHAsync_v2", host, ctypes.c_uint64(tensor.data_ptr()),
                            ctypes.c_size_t(ctypes.sizeof(host)), None)
                driver.call("cuStreamSynchronize", None)
                wanted = expected[name].tolist()
                assert list(host) == (wanted if name == "cu_seqlens" else [v for row in wanted for v in row]), name
        del batch, tensor

for raw_stream in (True, False):
    stand_ins.torch_raw_stream(raw_stream)
    for device in ("cuda", torch.device("cuda", 0)):
        with run.loader(device=device, dtype=torch.int64) as there, run.loader(framework="dlpack") as here:
            assert (there._arrays._raw_stream is not None) == raw_stream
            for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
                with torch.cuda.stream(stream):
                    copies, wanted = [], []
                    for _ in range(10):
                        b, h = there.next(), here.next()
                        copies.append(driver.copy(b.targets.data_ptr(), 8 * b.targets.numel(), stream.cuda_stream))
                        wanted.append(flat(h.targets))
                        del b
                    assert [driver.read(copy, 48 * 6 * 8, stream.cuda_stream) for copy in copies] == wanted
            from tokmap.device import owns
            other = torch.cuda.Stream()
            external = torch.cuda.Stream(other.cuda_stream, stream_id=other.cuda_stream)  # get_stream_from_external()
            assert owns(other) and not owns(external)
            assert "current stream" in refused(tokmap.ArgumentError, lambda: there.next(stream=other))
for device in ("cuda:1", torch.device("cuda", 1)):
    assert "only 1 GPUs" in refused(tokmap.DeviceError, lambda: run.loader(device=device, dtype=torch.int64))
""")

    def test_outputs(self):
        said = self.program("""
torch = stand_ins.torch_on(driver)
one, two = torch.cuda.Stream(), torch.cuda.Stream()

# A graph reads the same tensors every time. Its replay is a copy here, on the stream of next().
with run.loader(device="cuda", dtype=torch.int64) as there, run.loader(framework="dlpack") as here:
    out = there.out()
    with torch.cuda.stream(one):
        for mode in (stand_ins.CAPTURE_GLOBAL, stand_ins.CAPTURE_RELAXED):
            with driver.capture(one.cuda_stream, mode):
                assert "capturing" in refused(tokmap.ArgumentError, lambda: there.next(out=out))
        copies, wanted = [], []
        for _ in range(20):
            assert there.next(out=out).inputs is out["inputs"]
            copies.append(driver.copy(out["inputs"].data_ptr(), 8 * 48 * 6, one.cuda_stream))
            wanted.append(flat(here.next().inputs))
        assert [driver.read(copy, 48 * 6 * 8, one.cuda_stream) for copy in copies] == wanted

# When the stream changes, the new one waits for the readers on the old one. While it captures, nothing is enqueued.
with run.loader(device="cuda", dtype=torch.int64) as there, run.loader(framework="dlpack") as here:
    out, other = there.out(), there.out()
    copies = []
    for i in range(20):
        stream = (one, two)[i % 2]
        there.next(out=out, stream=stream)
        copies.append((driver.copy(out["inputs"].data_ptr(), 8 * 48 * 6, stream.cuda_stream), stream.cuda_stream,
                       flat(here.next().inputs)))
    with driver.capture(one.cuda_stream):
        assert "captur" in refused(tokmap.ArgumentError, lambda: there.next(out=out, stream=one))
    there.next(out=out, stream=two)
    there.next(out=out, stream=two.cuda_stream)
    there.next(out=other, stream=one)  # these have no earlier reader
    here.next(), here.next()
    assert flat(here.next().inputs) == driver.read(other["inputs"].data_ptr(), 48 * 6 * 8, one.cuda_stream)
    for copy, stream, wanted in copies:
        assert driver.read(copy, 48 * 6 * 8, stream) == wanted

with run.loader(device="cuda", dtype=torch.int64, fields="inputs") as there:
    make = lambda *shape, **more: torch.empty(shape, **{"dtype": torch.int64, "device": "cuda", **more})
    for wrong in (make(6, 48, device="cpu"), make(6, 48, dtype=torch.int32), make(6, 49)[:, 1:], make(3, 48), [1]):
        print(refused(tokmap.errors.class_of("ERROR_ARGUMENT", TypeError), lambda: there.next(out={"inputs": wrong})))
    whole = make(8, 48)[1:7]  # not at the start of its memory
    batch = there.next(out={"inputs": whole})
    assert batch.step == 0 and whole.data_ptr() == whole.memory.address + 8 * 48
    del wrong, batch, whole
del out, other
""")
        words = ("device", "dtype", "strides", "shape", "kind")
        self.assertEqual(len(said.splitlines()), len(words), said)
        for line, word in zip(said.splitlines(), words):
            self.assertIn(f"wrong {word}", line)


class Others(StandIns):
    def test_cupy(self):
        """On the stream of next() and on others, with arrays that are dropped early. Memory comes back either way."""
        self.program("""
cupy = stand_ins.cupy_on(driver)
run = run_of(passes=20)
with run.loader(device="cuda", framework="dlpack") as there, run.loader(framework="dlpack") as here:
    stream = cupy.cuda.Stream()
    for given in (stream, None, stream.ptr, cupy.cuda.ExternalStream(stream.ptr)):
        with stream:
            copies, wanted = [], []
            for i in range(50):
                b = there.next(stream=given)
                copies.append(cupy.from_dlpack(b.inputs).copy())
                wanted.append(here.next().inputs.tolist())
                del b
                if i == 40:
                    before = driver.count("device_frees")
            assert [copy.get() for copy in copies] == wanted
            assert driver.count("device_frees") - before <= 1
""")

    def test_jax(self):
        """It takes every array on a private stream, and returns the memory while it computes. In steady state no
        block is allocated or freed: one wait for the GPU frees 32 of them for reuse."""
        said = self.program("""
jax = stand_ins.Jax(driver)
run = run_of(passes=40)
with run.loader(device="cuda", framework="dlpack") as there, run.loader(framework="dlpack") as here:
    copies, wanted, counts = [], [], []
    made = ("device_allocations_made", "device_frees")
    for step in range(240):
        b, h = there.next(), here.next()
        for name in ("inputs", "targets"):
            copies.append(jax.compute(jax.from_dlpack(b[name])))
            wanted.append(flat(h[name]))
        del b
        if step % 80 == 79:
            counts.append([driver.count(name) for name in made])
    for first, then in zip(counts, counts[1:]):
        allocated, freed = (b - a for a, b in zip(first, then))
        print(allocated - 160, freed)  # the stand-in itself allocates its 160 copies
    assert [driver.read(copy, 48 * 6 * 8, jax.compute_stream) for copy in copies] == wanted
""")
        for line in said.splitlines():
            allocated, freed = map(int, line.split())
            # 160 blocks in 80 steps: 5 waits, each of which frees the byte and allocates it again.
            self.assertLessEqual(allocated, 6, said)
            self.assertLessEqual(freed, 6, said)
            self.assertGreaterEqual(freed, 3, said)
        self.assertEqual(len(said.splitlines()), 2, said)

    def test_jax_and_a_capture(self):
        """XLA captures graphs in other threads. What the pool does to reuse memory does not spoil a capture."""
        self.program("""
jax, captured = stand_ins.Jax(driver), driver.stream()
run = run_of(passes=20)
with run.loader(device="cuda", framework="dlpack") as there:
    before = driver.count("device_frees")
    for mode in (stand_ins.CAPTURE_GLOBAL, stand_ins.CAPTURE_RELAXED):
        for _ in range(40):
            b = there.next()
            taken = jax.from_dlpack(b.inputs)
            with driver.capture(captured, mode):
                there.next()
            del b, taken
    assert driver.count("device_frees") - before >= 2
""")

    def test_a_handle_that_comes_back(self):
        """A destroyed stream's handle is that of a new stream. Memory that was used on the old one is not reused before
        the GPU is done, unless an object keeps the stream alive."""
        self.program("""
from tokmap import device
cupy = stand_ins.cupy_on(driver)
pool = device.Pool("cuda:0")
handle = driver.stream()
first = pool.take(64, handle)
address = first.address
del first  # now the stream is destroyed, and a new one has its handle
assert pool._lent == [(64, address)] and not pool._free
second = pool.take(64, handle)
assert second.address != address
del second
kept = cupy.cuda.Stream()
pool.keep(kept.ptr, kept)
first = pool.take(128, kept.ptr)
address = first.address
del first
second = pool.take(128, kept.ptr)
assert second.address == address  # the pool keeps the object, so it is the same stream
del second
for stream in (0, 1, 2):  # the default streams are always the same
    block = pool.take(256 + stream, stream)
    address = block.address
    del block
    assert pool.take(256 + stream, stream).address == address
pool.close()
del kept
""")

    def test_a_stream_object_lives_as_long_as_its_blocks(self):
        self.program("""
import weakref
cupy = stand_ins.cupy_on(driver)
with run.loader(device="cuda", framework="dlpack") as there:
    stream = cupy.cuda.Stream()
    alive = weakref.ref(stream)
    there.next(stream=stream)
    del stream
    gc.collect()
    assert alive() is not None
gc.collect()
assert alive() is None
""")

    def test_kinds_of_streams(self):
        self.program("""
from tokmap.device import owns, stream_handle
handle = driver.stream()
given = [handle, stand_ins.NumbaStream(handle), stand_ins.CUstream(handle), stand_ins.CoreStream(handle),
         stand_ins.FirstProtocol(handle), types.SimpleNamespace(cuda_stream=handle), types.SimpleNamespace(ptr=handle),
         types.SimpleNamespace(handle=handle)]
with run.loader(device="cuda", framework="dlpack") as there, run.loader(framework="dlpack") as here:
    for stream in given:
        assert stream_handle(stream) == handle and not owns(stream), stream
        b = there.next(stream=stream)
        assert b.inputs.stream == handle and b.inputs.tolist() == here.next().inputs.tolist()
    cupy = stand_ins.cupy_on(driver)
    theirs = cupy.cuda.Stream()
    assert owns(theirs) and owns(cupy.cuda.Stream.from_external(theirs)) and not owns(cupy.cuda.ExternalStream(handle))
    given = cupy.cuda.Stream.from_external(stand_ins.CoreStream(handle))  # which may be destroyed before this object
    assert stream_handle(given) == handle and not owns(given)
    assert there.next(stream=given).inputs.tolist() == here.next().inputs.tolist()
    assert handle not in there._arrays._pool._kept
    for default in (0, 1, 2, stand_ins.NumbaStream(None), stand_ins.NumbaStream(2), stand_ins.CUstream(0)):
        assert there.next(stream=default).inputs.tolist() == here.next().inputs.tolist()
    class Broken:
        def __cuda_stream__(self):
            return 5
    for wrong in ("x", 1.0, True, -1, 2 ** 64, object(), [handle], Broken(), types.SimpleNamespace(handle="x"), b"1"):
        said = refused(tokmap.ArgumentError, lambda: there.next(stream=wrong))
        assert repr(wrong) in said and "pass a CUDA stream" in said, said
    del b
""")

    def test_streams_of_green_contexts(self):
        """A green context has a part of the processors. Its streams are those of torch.cuda.green_contexts and of
        cuda.core. Drivers before CUDA 12.5 do not say that they belong to the primary context."""
        for version, taken in ((12050, True), (12040, False)):
            self.program(f"""
import ctypes
resource, description, green = (ctypes.c_uint8 * 144)(), ctypes.c_void_p(), ctypes.c_void_p()
driver.call("cuDeviceGetDevResource", 0, resource, 1)
driver.call("cuDevResourceGenerateDesc", ctypes.byref(description), resource, 1)
driver.call("cuGreenCtxCreate", ctypes.byref(green), description, 0, 1)
handle = ctypes.c_void_p()
driver.call("cuGreenCtxStreamCreate", ctypes.byref(handle), green, 1, 0)
stream = stand_ins.CoreStream(handle.value)
with run.loader(device="cuda", framework="dlpack") as there, run.loader(framework="dlpack") as here:
    out = there.out()
    if {taken}:
        for step in range(6):
            assert there.next(stream=stream).inputs.tolist() == here.next().inputs.tolist()
            assert there.next(out=out, stream=stream).inputs.tolist() == here.next().inputs.tolist()
    else:
        assert "primary context" in refused(tokmap.ArgumentError, lambda: there.next(stream=stream))
    assert there.next().inputs.tolist() == here.next().inputs.tolist()
    del out
driver.call("cuStreamDestroy_v2", handle)
driver.call("cuGreenCtxDestroy", green)
""", f"version={version}")

    def test_outputs_of_others(self):
        """The stream in __cuda_array_interface__ is the one on which the array may still be in use."""
        self.program("""
cupy = stand_ins.cupy_on(driver)
ours = driver.stream()
with run.loader(device="cuda", framework="dlpack", fields="inputs") as there, \\
        run.loader(framework="dlpack", fields="inputs") as here:
    array, theirs = cupy.empty((6, 48)), cupy.cuda.Stream()
    copies, wanted = [], []
    with theirs:
        for turn in range(10):
            there.next(out={"inputs": array}, stream=ours)
            driver.order(theirs.ptr, ours)
            copies.append(array.copy())  # under way when the next batch is requested
            wanted.append(here.next().inputs.tolist())
        assert [copy.get() for copy in copies] == wanted
        with driver.capture(ours):
            assert "captur" in refused(tokmap.ArgumentError,
                                       lambda: there.next(out={"inputs": array}, stream=ours))
    class Silent:  # before version 3 there is no stream, and None means that nothing is to be waited for
        def __init__(self, **more):
            self.__cuda_array_interface__ = {"shape": (6, 48), "typestr": "<i8", "data": (array.address, False),
                                             "version": 2, **more}
    driver.call("cuCtxSynchronize")
    created = driver.count("events_created")
    for silent in (Silent(), Silent(stream=None), Silent(stream=ours)):
        there.next(out={"inputs": silent}, stream=ours)
    assert driver.count("cuEventRecord") and created <= driver.count("events_created") <= created + 6
    driver.call("cuCtxSynchronize")
""")

    def test_our_own_outputs_on_another_stream(self):
        self.program("""
one, two = driver.stream(), driver.stream()
with run.loader(device="cuda", framework="dlpack") as there, run.loader(framework="dlpack") as here:
    out, copies = there.out(), []
    for i in range(20):
        stream = (one, two)[i % 2]
        there.next(out=out, stream=stream)
        assert out["inputs"].stream == stream
        copies.append((driver.copy(out["targets"].address, 8 * 48 * 6, stream), stream, flat(here.next().targets)))
    for copy, stream, wanted in copies:
        assert driver.read(copy, 48 * 6 * 8, stream) == wanted
    del out
""")


if __name__ == "__main__":
    unittest.main()
