# SPDX-License-Identifier: MIT
"""The Python package on a real GPU, with the frameworks that are installed: what the emulated driver and the stand-ins
of tests/python/stand_ins.py cannot show. test_gpu.sh runs it with $PYTHON. Prints TAP.

With TOKMAP_CUDA_DRIVER=PATH of the emulated driver the tests that need no framework run on that, and with
TOKMAP_TEST_STAND_INS=1 besides the other tests, too: with the stand-ins, so that every line here is known to run. The
frameworks cuda.core and Numba themselves run where the emulated driver is found as libcuda.so.1 (LD_LIBRARY_PATH).
"""
import ctypes
import gc
import os
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python"))
import tap  # noqa: E402

import tokmap  # noqa: E402
from tokmap import _library as library  # noqa: E402
from tokmap.device import Pool  # noqa: E402
from tokmap.device import stream_handle  # noqa: E402

DATA = "synthetic:vocab=50257,tokens=100000007,document=60"
FIELDS = "inputs targets position_ids document_ids loss_mask cu_seqlens rows labels"
# JAX would take three quarters of the GPU's memory at its first use, and tests of other frameworks run beside it.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
STAND_INS = bool(os.environ.get("TOKMAP_TEST_STAND_INS"))
NODES, GRAPHS, TURNS = (4, 6, 40) if STAND_INS else (200, 45, 200)
if STAND_INS:
    import stand_ins
    stand_ins.install()


def usable(name):
    """The reason why a framework cannot be used on a GPU here, or None."""
    try:
        if name == "torch":
            import torch
            return None if torch.cuda.is_available() else "torch finds no GPU"
        if name == "cupy":
            import cupy
            cupy.cuda.runtime.getDeviceCount()
        elif name == "jax":
            import jax
            return None if jax.default_backend() in ("gpu", "cuda") else "jax has no GPU backend"
        elif name == "numba":
            from numba import cuda
            return None if cuda.is_available() else "numba finds no GPU"
        else:
            __import__(name, fromlist=["Device"]).Device().set_current()
    except Exception as problem:  # each library has its own kinds
        return f"{name} is not usable: {type(problem).__name__}: {problem}".splitlines()[0]
    return None


def needs(name):
    reason = usable(name)
    return unittest.skip(reason) if reason else lambda test: test


def run_of(seq_len=333, batch=7, **more):
    return tokmap.Run(data=DATA, seq_len=seq_len, batch=batch, seed=5, **more)


def program(code, framework=False, **environment):
    """Runs a program in a process of its own, because it ends or breaks it. Returns what it prints."""
    head = f"import os, sys\nimport tokmap\nrun = tokmap.Run(data={DATA!r}, seq_len=512, batch=4)\n"
    if framework and STAND_INS:
        head += f"sys.path.insert(0, {sys.path[0]!r})\nimport stand_ins\nstand_ins.install()\n"
    ran = subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True, timeout=120,
                         env={**os.environ, **environment})
    if ran.returncode:
        raise AssertionError(f"exit status {ran.returncode}\n{ran.stdout}\n{ran.stderr}")
    return ran.stdout


class Package(unittest.TestCase):
    """Without a framework."""

    def stream(self):
        made, error = ctypes.c_void_p(), library.Error()
        library.check(library.lib.tokmap_cuda_stream_new(b"cuda:0", ctypes.byref(made), ctypes.byref(error)), error)
        self.addCleanup(library.lib.tokmap_cuda_stream_free, b"cuda:0", made.value)
        return made.value

    def test_every_field(self):
        self.assertTrue(tokmap.gpus()[0].memory > 0)
        for seq_len in (64, 333):
            for dtype in ("int32", "int64"):
                options = dict(fields=FIELDS, dtype=dtype, framework="dlpack", mask_targets=True, rows=3)
                run = run_of(seq_len, steps=6)
                with run.loader(device="cuda", **options) as there, run.loader(**options) as here:
                    self.assertTrue(there.delivery().kernel, there.delivery())
                    for one, other in zip(there, here):
                        for name in one.keys():
                            self.assertEqual(one[name].tolist(), other[name].tolist(), (one.step, name))
                        self.assertEqual((one.documents, one.max_seqlen), (other.documents, other.max_seqlen))
                    del one

    def test_static_outputs_on_two_streams(self):
        streams = self.stream(), self.stream()
        with run_of().loader(device="cuda", framework="dlpack") as there, run_of().loader(framework="dlpack") as here:
            out = there.out()
            for i in range(40):
                there.next(out=out, stream=streams[i % 2])
                self.assertEqual(out["inputs"].tolist(), here.next().inputs.tolist())
            del out

    def test_lent_memory(self):
        """Blocks that another stream used are reused, after a wait for the GPU for 32 of them."""
        stream, addresses = self.stream(), set()
        with run_of().loader(device="cuda", framework="dlpack", fields="inputs") as there, \
                run_of().loader(framework="dlpack", fields="inputs") as here:
            for _ in range(150):
                batch = there.next()
                batch.inputs.__dlpack__(stream=stream)
                self.assertEqual(batch.inputs.tolist(), here.next().inputs.tolist())
                addresses.add(batch.inputs.address)
                del batch
        self.assertLess(len(addresses), 50)

    def test_programs_that_close_nothing(self):
        for ending in ("", "cycle = [loader]; cycle.append(cycle)",
                       "import ctypes; ctypes.pythonapi.Py_IncRef(ctypes.py_object(loader))",
                       "import threading\n"
                       "def use():\n"
                       "    while True: loader.next()\n"
                       "threading.Thread(target=use, daemon=True).start()"):
            with self.subTest(ending):
                said = program("loader = run.loader(device='cuda', framework='dlpack')\n"
                               f"loader.next()\n{ending}\nprint('done')\n")
                self.assertEqual(said, "done\n")

    def test_forked_children(self):
        program("""
loader, host = run.loader(device="cuda", framework="dlpack"), run.loader(framework="dlpack")
assert loader.next().inputs.tolist() == host.next().inputs.tolist()
for turn in range(3):
    child = os.fork()
    if child == 0:
        try:
            loader.next()
            os._exit(3)
        except tokmap.TokmapError:
            loader.close()
        assert run.loader(framework="dlpack").next().step == 0
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
for _ in range(50):
    assert loader.next().inputs.tolist() == host.next().inputs.tolist()
loader.close()
""")

    def test_a_device_that_was_reset(self):
        """close() ends cleanly, and a loader that is opened afterwards delivers."""
        program("""
import ctypes, time
loader = run.loader(device="cuda", framework="dlpack")
loader.next()
while loader.stats().ring_ready < loader.stats().ring_slots - 1:
    time.sleep(0.001)
driver = ctypes.CDLL(os.environ.get("TOKMAP_CUDA_DRIVER") or "libcuda.so.1")
assert driver.cuDevicePrimaryCtxReset_v2(0) == 0
loader.close()
with run.loader(device="cuda", framework="dlpack") as again, run.loader(framework="dlpack") as host:
    assert again.next().inputs.tolist() == host.next().inputs.tolist()
""")


@needs("torch")
class Torch(unittest.TestCase):
    def loaders(self, run, **options):
        """A loader of tensors on the GPU, and one of the same rows on the host."""
        import torch
        there = run.loader(device="cuda", dtype=torch.int64, **options)
        here = run.loader(dtype=torch.int64, **options)
        self.addCleanup(there.close)
        self.addCleanup(here.close)
        return there, here

    def test_late_streams_and_freed_tensors(self):
        """The GPU is kept late, and tensors are dropped at once, so torch's allocator gives out their memory again."""
        import torch
        there, here = self.loaders(run_of(2048, 8))
        for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
            found, wanted = [], []
            with torch.cuda.stream(stream):
                for turn in range(TURNS):
                    if turn % 10 == 0:
                        torch.cuda._sleep(4_000_000)
                    batch, expected = there.next(), here.next()
                    found.append(torch.stack([(batch.inputs * 3).sum(), (batch.targets * 5).sum()]))
                    wanted.append([(expected.inputs * 3).sum().item(), (expected.targets * 5).sum().item()])
                    del batch
            torch.cuda.synchronize()
            self.assertEqual(torch.stack(found).tolist(), wanted)

    def test_graphs(self):
        """A graph reads static outputs. next() is refused while its stream captures, and does not spoil the capture."""
        import torch
        there, here = self.loaders(run_of(512, 8))
        out = there.out()
        result = torch.zeros(2, dtype=torch.int64, device="cuda")
        for tensor in out.values():
            tensor.zero_()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result[0] = (out["inputs"] * 3).sum()
            with self.assertRaisesRegex(tokmap.ArgumentError, "capturing a graph"):
                there.next(out=out)
            result[1] = (out["targets"] * 5).sum()
        found, wanted = [], []
        for _ in range(200):
            there.next(out=out)
            graph.replay()
            found.append(result.clone())
            expected = here.next()
            wanted.append([(expected.inputs * 3).sum().item(), (expected.targets * 5).sum().item()])
        self.assertEqual(torch.stack(found).tolist(), wanted)

    def test_changed_streams(self):
        import torch
        there, here = self.loaders(run_of(512, 8))
        out, streams = there.out(), (torch.cuda.Stream(), torch.cuda.Stream())
        found, wanted = [], []
        for turn in range(100):
            stream = streams[turn % 2]
            there.next(out=out, stream=stream)
            with torch.cuda.stream(stream):
                torch.cuda._sleep(400_000)
                found.append(out["inputs"].clone())
            wanted.append(here.next().inputs)
        torch.cuda.synchronize()
        for one, other in zip(found, wanted):
            self.assertTrue(torch.equal(one.cpu(), other))

    def captures_beside(self, loader, take):
        """Captures graphs in this thread while another one takes batches."""
        import torch
        problems, end, batches = [], threading.Event(), [0]

        def use():
            try:
                while not end.is_set():
                    take(loader)
                    batches[0] += 1
            except Exception as problem:
                problems.append(problem)
        thread = threading.Thread(target=use)
        x = torch.ones(64, device="cuda")
        thread.start()
        try:
            for mode in ("global", "thread_local", "relaxed") * (GRAPHS // 3):
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, capture_error_mode=mode):
                    y = x
                    for _ in range(NODES):
                        y = y + 1
                graph.replay()
                torch.cuda.synchronize()
                self.assertEqual(y[0].item(), NODES + 1)
        finally:
            end.set()
            thread.join()
        self.assertEqual(problems, [])
        self.assertGreater(batches[0], GRAPHS)

    def test_captures_beside_static_outputs(self):
        import torch
        there, _ = self.loaders(run_of(512, 4), ring_bytes=1 << 16)
        out, side = there.out(), torch.cuda.Stream()
        torch.cuda.synchronize()
        self.captures_beside(there, lambda loader: loader.next(out=out, stream=side))

    def test_captures_beside_lent_memory(self):
        """What the pool does to reuse lent memory does not spoil a capture in another thread."""
        import torch
        lent = torch.cuda.Stream()
        with run_of(512, 4).loader(device="cuda", framework="dlpack") as there:
            own = torch.cuda.Stream()
            self.captures_beside(there, lambda loader: loader.next(stream=own).inputs.__dlpack__(
                stream=lent.cuda_stream))

    def test_the_pool_waits_for_all_streams(self):
        """Lent memory is reused because of this: the driver frees memory after all work, also of other streams."""
        import torch
        pool, side, event = Pool("cuda:0"), torch.cuda.Stream(), torch.cuda.Event()
        block = pool.take(8, 0)
        for _ in range(5):
            with torch.cuda.stream(side):
                torch.cuda._sleep(200_000_000)
                event.record()
            self.assertFalse(event.query())
            pool._wait()
            self.assertTrue(event.query())
        del block
        pool.close()

    def test_dlpack_both_ways(self):
        import torch
        run = run_of(512, 8)
        _, here = self.loaders(run)
        with run.loader(device="cuda", framework="dlpack", dtype="int64") as there:
            side = torch.cuda.Stream()
            for turn in range(100):
                batch, expected = there.next(), here.next()
                with torch.cuda.stream(side if turn % 2 else torch.cuda.default_stream()):
                    taken = torch.from_dlpack(batch.inputs)
                    del batch
                    self.assertTrue(torch.equal(taken.cpu(), expected.inputs))
            out = {name: torch.empty((8, 512), dtype=torch.int64, device="cuda") for name in ("inputs", "targets")}
            for _ in range(20):
                there.next(out=out, stream=torch.cuda.current_stream())
                self.assertTrue(torch.equal(out["targets"].cpu(), here.next().targets))

    def test_wrong_outputs(self):
        import torch
        there, here = self.loaders(run_of(), fields="inputs")
        for wrong in (torch.zeros(7, 333, dtype=torch.int64),
                      torch.zeros(7, 334, dtype=torch.int64, device="cuda")[:, 1:]):
            with self.assertRaises(tokmap.errors.class_of("ERROR_ARGUMENT", TypeError)):
                there.next(out={"inputs": wrong})
        uneven = torch.zeros(7 * 333 + 1, dtype=torch.int64, device="cuda")[1:].view(7, 333)  # 8 past a multiple of 16
        there.next(out={"inputs": uneven})
        self.assertTrue(torch.equal(uneven.cpu(), here.next().inputs))

    @unittest.skipIf(STAND_INS, "it is a matter of torch's own allocator")
    def test_expandable_segments(self):
        program("""
import torch
there, here = run.loader(device="cuda", dtype=torch.int64), run.loader(dtype=torch.int64)
assert there.delivery().kernel
for _ in range(50):
    assert torch.equal(there.next().inputs.cpu(), here.next().inputs)
""", True, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True", PYTORCH_ALLOC_CONF="expandable_segments:True")

    def test_programs_that_close_nothing(self):
        program("""
import torch
loader = run.loader(device="cuda", dtype=torch.int64)
batch = loader.next()
cycle = [loader]
cycle.append(cycle)
torch.cuda._sleep(200_000_000)
""", True)

    def test_streams(self):
        import torch
        stream = torch.cuda.Stream()
        self.assertEqual(stream_handle(stream), stream.cuda_stream)
        there, here = self.loaders(run_of())
        self.assertEqual(there._arrays.stream(), torch.cuda.current_stream().cuda_stream)
        with torch.cuda.stream(stream):
            self.assertEqual(there._arrays.stream(), stream.cuda_stream)
            self.assertTrue(torch.equal(there.next(stream=stream).inputs.cpu(), here.next().inputs))


@needs("cupy")
class Cupy(unittest.TestCase):
    def test_batches(self):
        import cupy
        run = run_of(512, 8)
        with run.loader(device="cuda", framework="dlpack") as there, run.loader(framework="dlpack") as here:
            stream = cupy.cuda.Stream(non_blocking=True)
            for given in (stream, None, stream.ptr):
                with stream:
                    for _ in range(60):
                        taken = cupy.from_dlpack(there.next(stream=given).inputs)
                        self.assertEqual(taken.get().tolist(), here.next().inputs.tolist())
                    del taken

    def test_outputs(self):
        import cupy
        run = run_of(512, 8)
        with run.loader(device="cuda", framework="dlpack") as there, run.loader(framework="dlpack") as here, \
                cupy.cuda.Stream(non_blocking=True) as stream:
            out = {name: cupy.empty((8, 512), dtype="int64") for name in ("inputs", "targets")}
            for _ in range(60):
                there.next(out=out, stream=stream)
                self.assertEqual(out["targets"].get().tolist(), here.next().targets.tolist())


@needs("jax")
class Jax(unittest.TestCase):
    def test_batches(self):
        """Arrays are dropped while the computation reads them."""
        import jax
        import numpy
        run = run_of(512, 8)
        double = jax.jit(lambda array: array * 2)
        with run.loader(device="cuda", framework="dlpack", dtype="int32") as there, \
                run.loader(framework="dlpack", dtype="int32") as here:
            found, wanted = [], []
            for _ in range(200):
                found.append(double(jax.dlpack.from_dlpack(there.next().inputs)))
                wanted.append(2 * numpy.asarray(here.next().inputs))
            for one, other in zip(found, wanted):
                self.assertTrue((numpy.asarray(one) == other).all())


@needs("numba")
class Numba(unittest.TestCase):
    def test_streams(self):
        from numba import cuda
        run = run_of()
        with run.loader(device="cuda", framework="dlpack") as there, run.loader(framework="dlpack") as here:
            for stream in (cuda.default_stream(), cuda.stream()):
                self.assertEqual(there.next(stream=stream).inputs.tolist(), here.next().inputs.tolist())


@needs("cuda.core")
class CudaCore(unittest.TestCase):
    def test_streams(self):
        from cuda.core import Device
        run = run_of()
        with run.loader(device="cuda", framework="dlpack") as there, run.loader(framework="dlpack") as here:
            stream = Device().create_stream()
            for given in (stream, stream.handle):
                self.assertEqual(there.next(stream=given).inputs.tolist(), here.next().inputs.tolist())


def main():
    if not tokmap.gpus():
        print("skipped: there is no GPU that the library can use")
        sys.exit(77)
    result = tap.Result()
    for case in (Package, Torch, Cupy, Jax, Numba, CudaCore):
        unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
        gc.collect()
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
