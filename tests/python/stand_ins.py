# SPDX-License-Identifier: MIT
"""What torch, CuPy, JAX, Numba, and cuda.core do with a GPU, over the emulated driver, for programs of test_stand_ins.py.

The stand-ins are of those frameworks, never of this package: its own code runs unchanged, down to the driver's calls.
Each does what the framework is documented to do with streams and memory: torch's allocator gives freed memory to the
next tensor of the same stream at once; CuPy passes its current stream; JAX takes an array on one of four private
streams, computes on another, and returns memory while its computation is under way.

The emulated driver then reports every access that the calls do not put in order, and the contents of all batches are
compared. What they cannot show: whether the real frameworks do what is written here, in this version and the next; work
that a framework does in other threads; the time that anything takes.
"""
import atexit
import contextlib
import ctypes
import os
import sys
import types

from tokmap import dlpack

_api = ctypes.PyDLL(None)
_api.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetName.argtypes, _api.PyCapsule_GetName.restype = (ctypes.py_object,), ctypes.c_char_p
_api.PyCapsule_SetName.argtypes = (ctypes.py_object, ctypes.c_char_p)
_USED = {name: ctypes.c_char_p(b"used_" + name) for name in (b"dltensor", b"dltensor_versioned")}
_PLACE = ctypes.c_uint64
_HANDLE = ctypes.c_void_p
CAPTURE_GLOBAL, CAPTURE_THREAD_LOCAL, CAPTURE_RELAXED = 0, 1, 2


class Driver:
    """The emulated driver, as a framework uses it: the primary context of a device, current in this thread."""

    def __init__(self, device=0):
        self._lib, self.device = ctypes.CDLL(os.environ["TOKMAP_CUDA_DRIVER"]), device
        self._lib.cuda_software_count.restype = ctypes.c_uint64
        self._context = _HANDLE()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)
        self.call("cuCtxSetCurrent", self._context)
        self._streams, self._memory = [], []

    def call_any(self, name, *arguments):
        return getattr(self._lib, name)(*arguments)

    def call(self, name, *arguments):
        result = self.call_any(name, *arguments)
        assert result == 0, (name, result)

    def count(self, name):
        return self._lib.cuda_software_count(name.encode())

    def stream(self):
        made = _HANDLE()
        self.call("cuStreamCreate", ctypes.byref(made), 1)  # CU_STREAM_NON_BLOCKING, as all frameworks do
        self._streams.append(made.value)
        return made.value

    def end_stream(self, handle):
        self._streams.remove(handle)
        self.call("cuStreamDestroy_v2", _HANDLE(handle))

    def order(self, waiting, on):
        event = _HANDLE()
        self.call("cuEventCreate", ctypes.byref(event), 2)
        self.call("cuEventRecord", event, _HANDLE(on))
        self.call("cuStreamWaitEvent", _HANDLE(waiting), event, 0)
        self.call("cuEventDestroy_v2", event)

    def allocate(self, count):
        made, mode = _PLACE(), ctypes.c_int(CAPTURE_RELAXED)
        self.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))  # as torch does, which may be capturing
        self.call("cuMemAlloc_v2", ctypes.byref(made), ctypes.c_size_t(count))
        self.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
        self._memory.append(made.value)
        return made.value

    def copy(self, address, count, stream):
        """Enqueues a copy of device memory, which is the work of a training step here. Returns where it will be."""
        into = self.allocate(count)
        self.call("cuMemcpyDtoDAsync_v2", _PLACE(into), _PLACE(address), ctypes.c_size_t(count), _HANDLE(stream))
        return into

    def fetch(self, address, count, stream):
        """The bytes there, after everything that is enqueued on the stream."""
        host = (ctypes.c_uint8 * max(count, 1))()
        self.call("cuMemcpyDtoHAsync_v2", host, _PLACE(address), ctypes.c_size_t(count), _HANDLE(stream))
        self.call("cuStreamSynchronize", _HANDLE(stream))
        return host

    def store(self, address, host, count, stream):
        self.call("cuMemcpyHtoDAsync_v2", _PLACE(address), host, ctypes.c_size_t(count), _HANDLE(stream))

    def read(self, address, count, stream, kind=ctypes.c_int64):
        """The elements there, after everything that is enqueued on the stream."""
        return list((kind * (count // ctypes.sizeof(kind))).from_buffer(self.fetch(address, count, stream)))

    @contextlib.contextmanager
    def capture(self, stream, mode=CAPTURE_GLOBAL):
        """A capture, which must still be valid at its end."""
        graph = _HANDLE()
        self.call("cuStreamBeginCapture_v2", _HANDLE(stream), mode)
        yield
        self.call("cuStreamEndCapture", _HANDLE(stream), ctypes.byref(graph))

    def close(self):
        self.call("cuCtxSynchronize")
        for address in self._memory:
            self.call("cuMemFree_v2", _PLACE(address))
        for handle in self._streams:
            self.call("cuStreamDestroy_v2", _HANDLE(handle))
        self.call("cuCtxSetCurrent", None)
        self.call("cuDevicePrimaryCtxRelease_v2", self.device)


# ---- torch ----

class _Graph:
    """A torch.cuda.CUDAGraph. What was captured is executed by each replay(), on the current stream."""

    def __init__(self):
        self.work = []

    def replay(self):
        for execute in self.work:
            execute()


def _tensor_of(torch, driver, current, vacant, captured):
    """The class of torch's tensors on the emulated GPU. Such a tensor has no storage of its own (it is on "meta"). Its
    elements are in the GPU's memory. torch computes with them on the host, which waits for the current stream, and the
    results are copied back on that stream. During a capture that happens in each replay."""
    from torch.utils._pytree import tree_map
    device = torch.device("cuda", driver.device)

    class Memory:
        def __init__(self, count):
            self.key = count, current[-1].cuda_stream
            free = vacant.get(self.key)
            self.address = free.pop() if free else driver.allocate(count)

        def __del__(self):
            vacant.setdefault(self.key, []).append(self.address)

    class CudaTensor(torch.Tensor):
        device = property(lambda self: device)
        is_cuda = property(lambda self: True)

        @staticmethod
        def made(meta, memory=None):
            tensor = torch.Tensor._make_subclass(CudaTensor, meta)
            tensor.memory = memory or Memory(max(meta.numel(), 1) * meta.element_size())
            return tensor

        def data_ptr(self):
            return self.memory.address + self.storage_offset() * self.element_size()

        def tolist(self):
            return self.cpu().tolist()

        def bytes(self):
            last = sum((length - 1) * stride for length, stride in zip(self.size(), self.stride()))
            return (last + 1) * self.element_size() if self.numel() else 0

        def fetch(self, used=True):
            """A copy on the host, or just memory of the same layout."""
            count = self.bytes()
            stream = current[-1].cuda_stream
            host = driver.fetch(self.data_ptr(), count, stream) if used else (ctypes.c_uint8 * max(count, 1))()
            flat = torch.frombuffer(host, dtype=self.dtype, count=count // self.element_size())
            return flat.as_strided(self.size(), self.stride())

        def store(self, host):
            if not self.is_contiguous():
                whole = self.fetch()
                host = whole.copy_(host)
            else:
                host = host.contiguous()
            driver.store(self.data_ptr(), _HANDLE(host.data_ptr()), self.bytes(), current[-1].cuda_stream)

        @classmethod
        def __torch_dispatch__(cls, function, kinds, arguments=(), options=None):
            options, schema = options or {}, function._schema
            name = schema.name.split("::")[1]
            if name == "_local_scalar_dense":
                return arguments[0].fetch().item()
            if name == "_to_copy" and str(options.get("device")) == "cpu":
                return arguments[0].fetch().clone()
            meta = [tree_map(lambda one: one.plain() if isinstance(one, cls) else one, given)
                    for given in (arguments, options)]
            outcome = schema.returns[0].alias_info if schema.returns else None
            if outcome is not None and not outcome.is_write:  # a view
                return cls.made(function(*meta[0], **meta[1]), arguments[0].memory)
            changed = outcome is not None
            found = arguments[0] if changed else cls.made(function(*meta[0], **meta[1]))
            overwritten = changed and name in ("zero_", "fill_", "copy_") and arguments[0].is_contiguous()

            def execute():
                used = tree_map(lambda one: one.fetch() if isinstance(one, cls) else one, arguments[overwritten:])
                if overwritten:
                    used = (arguments[0].fetch(used=False), *used)
                found.store(function(*used, **options))
            if captured:
                captured[-1].work.append(execute)
            else:
                execute()
            return found

        def plain(self):
            return torch.empty(0, dtype=self.dtype, device="meta").as_strided(self.size(), self.stride(),
                                                                               self.storage_offset())
    return CudaTensor


def torch_on(driver):
    """Gives the real torch a GPU: torch.cuda, tensors on "cuda" from an allocator like torch's own, and graphs."""
    import torch
    vacant, current, captured, sleeping = {}, [], [], {}

    class Stream:
        """torch keeps its streams for as long as the program runs. stream_id is a number of torch's own, or, for a
        stream that torch did not make, its handle."""
        def __init__(self, handle=None, stream_id=None):
            self.cuda_stream = driver.stream() if handle is None else handle
            self.stream_id = stream_id if stream_id is not None else 3 if self.cuda_stream else 0

        def wait_stream(self, other):
            driver.order(self.cuda_stream, other.cuda_stream)
    Stream.__module__ = "torch.cuda.streams"
    current.append(Stream(0))
    default = current[0]
    tensor = _tensor_of(torch, driver, current, vacant, captured)
    real = {name: getattr(torch, name) for name in ("empty", "zeros", "ones")}

    def maker(name, fill):
        def make(*shape, dtype=None, device=None, **more):
            if device is None or torch.device(device).type != "cuda":
                return real[name](*shape, dtype=dtype, device=device, **more)
            made = tensor.made(real["empty"](*shape, dtype=dtype, device="meta"))
            return made if fill is None else made.fill_(fill)
        return make
    for name, fill in (("empty", None), ("zeros", 0), ("ones", 1)):
        setattr(torch, name, maker(name, fill))

    @contextlib.contextmanager
    def stream(chosen):
        current.append(chosen)
        yield
        current.pop()

    @contextlib.contextmanager
    def graph(into, capture_error_mode="global"):
        side = graph.side = getattr(graph, "side", None) or Stream()
        driver.call("cuCtxSynchronize")
        modes = {"global": CAPTURE_GLOBAL, "thread_local": CAPTURE_THREAD_LOCAL, "relaxed": CAPTURE_RELAXED}
        with stream(side), driver.capture(side.cuda_stream, modes[capture_error_mode]):
            captured.append(into)
            yield
            captured.pop()

    class Event:
        def __init__(self):
            self._event = _HANDLE()
            driver.call("cuEventCreate", ctypes.byref(self._event), 2)

        def record(self):
            driver.call("cuEventRecord", self._event, _HANDLE(current[-1].cuda_stream))

        def query(self):
            return driver.call_any("cuEventQuery", self._event) == 0

        def __del__(self):
            driver.call("cuEventDestroy_v2", self._event)

    def sleep(cycles):
        """One operation, which the driver keeps late if TOKMAP_CUDA_SOFTWARE has the word lazy."""
        handle = current[-1].cuda_stream
        sleeping.setdefault(handle, driver.allocate(16) if handle not in sleeping else 0)
        driver.call("cuMemsetD8Async", _PLACE(sleeping[handle]), 0, ctypes.c_size_t(16), _HANDLE(handle))

    def from_dlpack(capsule):
        taken = Taken(capsule)
        kind = {32: torch.int32, 64: torch.int64}[taken.bits]
        return tensor.made(real["empty"](taken.shape, dtype=kind, device="meta"), taken)
    torch._C._from_dlpack = from_dlpack
    for name, value in {"is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0,
                        "init": lambda: None, "Stream": Stream, "stream": stream, "Event": Event, "_sleep": sleep,
                        "CUDAGraph": _Graph, "graph": graph, "default_stream": lambda device=None: default,
                        "synchronize": lambda: driver.call("cuCtxSynchronize"),
                        "current_stream": lambda device=None: current[-1]}.items():
        setattr(torch.cuda, name, value)
    torch_raw_stream(True)
    return torch


def torch_raw_stream(exists):
    """Whether torch has _cuda_getCurrentRawStream(), which is private."""
    import torch
    torch._C._cuda_getCurrentRawStream = None
    if exists:
        torch._C._cuda_getCurrentRawStream = lambda index: torch.cuda.current_stream(index).cuda_stream


# ---- DLPack ----

class Taken:
    """A tensor that a framework took from a capsule."""

    def __init__(self, capsule):
        name = _api.PyCapsule_GetName(capsule)
        kind = dlpack._Versioned if name.endswith(b"versioned") else dlpack._Managed
        self._managed = ctypes.cast(_api.PyCapsule_GetPointer(capsule, name), ctypes.POINTER(kind))
        _api.PyCapsule_SetName(capsule, _USED[name])
        tensor = self._managed.contents.tensor
        assert tensor.device.type == 2
        self.bits = tensor.type.bits
        self.shape = tuple(tensor.shape[i] for i in range(tensor.dimensions))
        self.address, self.bytes = tensor.data, self.bits // 8 * self.shape[0] * self.shape[1]

    def __del__(self):
        managed = self._managed.contents
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)(ctypes.addressof(managed))


# ---- CuPy ----

class _Host(list):
    """What ndarray.get() returns."""

    def tolist(self):
        return list(self)


def cupy_on(driver):
    """Something like the module cupy: streams, arrays, and from_dlpack()."""
    class Stream:
        def __init__(self, null=False, non_blocking=False):
            self.ptr, self._foreign_stream_ref = 0 if null else driver.stream(), None

        @classmethod
        def from_external(cls, other):
            stream = cls.__new__(cls)
            (_, stream.ptr), stream._foreign_stream_ref = other.__cuda_stream__(), other
            return stream

        def __enter__(self):
            current.append(self)
            return self

        def __exit__(self, *_):
            current.pop()

        def __cuda_stream__(self):
            return 0, self.ptr

        def __del__(self):
            if self.ptr and self._foreign_stream_ref is None:
                driver.end_stream(self.ptr)
    Stream.__module__ = "cupy.cuda.stream"
    current = [Stream(null=True)]

    class ExternalStream:
        def __init__(self, ptr):
            self.ptr = ptr

    class Ndarray:
        def __init__(self, shape, address, owner=None):
            self.shape, self.nbytes, self.address, self._owner = shape, 8 * shape[0] * shape[1], address, owner

        @property
        def __cuda_array_interface__(self):
            return {"shape": self.shape, "typestr": "<i8", "data": (self.address, False), "version": 3, "strides": None,
                    "stream": current[-1].ptr or 1}

        def copy(self):
            return Ndarray(self.shape, driver.copy(self.address, self.nbytes, current[-1].ptr))

        def get(self):
            flat = driver.read(self.address, self.nbytes, current[-1].ptr)
            return _Host(flat[row * self.shape[1]:(row + 1) * self.shape[1]] for row in range(self.shape[0]))

    def from_dlpack(array):
        assert array.__dlpack_device__() == (2, driver.device)
        taken = Taken(array.__dlpack__(stream=current[-1].ptr or 1, max_version=(1, 0), copy=None))
        assert taken.bits == 64
        return Ndarray(taken.shape, taken.address, taken)

    def empty(shape, dtype="int64"):
        assert dtype == "int64"
        return Ndarray(shape, driver.allocate(8 * shape[0] * shape[1]))
    return types.SimpleNamespace(from_dlpack=from_dlpack, empty=empty, cuda=types.SimpleNamespace(
        Stream=Stream, ExternalStream=ExternalStream, runtime=types.SimpleNamespace(getDeviceCount=lambda: 1)))


# ---- JAX ----

class Jax:
    """jax.dlpack.from_dlpack() and a computation. The memory returns as soon as nothing refers to it, whatever is under
    way."""

    def __init__(self, driver):
        self._driver, self._turn = driver, 0
        self._private, self.compute_stream = [driver.stream() for _ in range(4)], driver.stream()

    def from_dlpack(self, array):
        stream = self._private[self._turn % 4]
        self._turn += 1
        taken = Taken(array.__dlpack__(stream=stream))
        taken.ready = stream
        return taken

    def compute(self, taken):
        """Enqueues a copy, whose address it returns."""
        self._driver.order(self.compute_stream, taken.ready)
        return self._driver.copy(taken.address, taken.bytes, self.compute_stream)


def jax_on(driver):
    """Something like the module jax: from_dlpack(), and jit() of a product, which is a copy on the GPU whose elements
    are multiplied when the host reads them."""
    import numpy
    jax = Jax(driver)

    class Product:
        def __init__(self, taken, factor):
            self._shape, self._bytes, self._factor = taken.shape, taken.bytes, factor
            self._kind, self._address = {32: ctypes.c_int32, 64: ctypes.c_int64}[taken.bits], jax.compute(taken)

        def __array__(self, dtype=None, copy=None):
            flat = driver.read(self._address, self._bytes, jax.compute_stream, self._kind)
            return numpy.array(flat).reshape(self._shape) * self._factor

    class Array(types.SimpleNamespace):
        def __mul__(self, factor):
            return Product(self.taken, factor)
    return types.SimpleNamespace(
        default_backend=lambda: "gpu", jit=lambda function: function,
        dlpack=types.SimpleNamespace(from_dlpack=lambda array: Array(taken=jax.from_dlpack(array))))


# ---- streams of others ----

class NumbaStream:
    """Its handle is a c_void_p, whose value is None for the default stream."""

    def __init__(self, handle):
        self.handle = ctypes.c_void_p(handle)


class CUstream:
    """Of cuda.bindings: int() is its handle."""

    def __init__(self, handle):
        self._handle = handle

    def __int__(self):
        return self._handle


class CoreStream:
    """Of cuda.core: the protocol, and a handle that is a CUstream."""

    def __init__(self, handle):
        self.handle = CUstream(handle)

    def __cuda_stream__(self):
        return 0, int(self.handle)


class FirstProtocol:
    """The protocol as it was first: a property."""

    def __init__(self, handle):
        self.__cuda_stream__ = 0, handle


# ---- a program that imports the frameworks by their names ----

def install():
    """From here on, the program imports the stand-ins: those of torch and JAX where torch and NumPy are installed.
    Everything is freed when the program ends."""
    driver, process = Driver(), os.getpid()
    atexit.register(lambda: driver.close() if os.getpid() == process else None)
    for name, importable, make in (("torch", "torch", torch_on), ("jax", "numpy", jax_on), ("cupy", None, cupy_on)):
        try:
            if importable:
                __import__(importable)
            sys.modules[name] = make(driver)
        except ImportError:
            pass

    def stream():
        return NumbaStream(driver.stream())
    sys.modules["numba"] = types.SimpleNamespace(cuda=types.SimpleNamespace(
        is_available=lambda: True, default_stream=lambda: NumbaStream(None), stream=stream))
    sys.modules["cuda.core"] = types.SimpleNamespace(Device=lambda: types.SimpleNamespace(
        set_current=lambda: None, create_stream=lambda: CoreStream(driver.stream())))
