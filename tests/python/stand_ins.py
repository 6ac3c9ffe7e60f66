"""What torch, CuPy, JAX, Numba, and cuda.core do with a GPU, over the emulated driver, for programs of test_stand_ins.py.

The stand-ins are of those frameworks, never of this package: its own code runs unchanged, down to the driver's calls.
Each does what the framework is documented to do with streams and memory: torch's allocator gives freed memory to the
next tensor of the same stream at once; CuPy passes its current stream; JAX takes an array on one of four private
streams, computes on another, and returns memory while its computation is under way.

The emulated driver then reports every access that the calls do not put in order, and the contents of all batches are
compared. What they cannot show: whether the real frameworks do what is written here, in this version and the next; work
that a framework does in other threads; the time that anything takes.
"""
import contextlib
import ctypes
import os
import types

from tokmap import dlpack

_api = ctypes.PyDLL(None)
_api.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_SetName.argtypes = (ctypes.py_object, ctypes.c_char_p)
_USED = ctypes.c_char_p(b"used_dltensor")
_PLACE = ctypes.c_uint64
_HANDLE = ctypes.c_void_p
CAPTURE_GLOBAL, CAPTURE_RELAXED = 0, 2


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

    def call(self, name, *arguments):
        result = getattr(self._lib, name)(*arguments)
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
        made = _PLACE()
        self.call("cuMemAlloc_v2", ctypes.byref(made), ctypes.c_size_t(count))
        self._memory.append(made.value)
        return made.value

    def copy(self, address, count, stream):
        """Enqueues a copy of device memory, which is the work of a training step here. Returns where it will be."""
        into = self.allocate(count)
        self.call("cuMemcpyDtoDAsync_v2", _PLACE(into), _PLACE(address), ctypes.c_size_t(count), _HANDLE(stream))
        return into

    def read(self, address, count, stream):
        """The int64s there, after everything that is enqueued on the stream."""
        host = (ctypes.c_int64 * (count // 8))()
        self.call("cuMemcpyDtoHAsync_v2", host, _PLACE(address), ctypes.c_size_t(count), _HANDLE(stream))
        self.call("cuStreamSynchronize", _HANDLE(stream))
        return list(host)

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

def torch_on(driver):
    """Gives the real torch a GPU: torch.cuda, and tensors on "cuda" from an allocator like torch's own."""
    import torch
    vacant, current, device = {}, [], torch.device("cuda", driver.device)

    class Stream:
        """torch keeps its streams for as long as the program runs."""
        def __init__(self, handle=None):
            self.cuda_stream = driver.stream() if handle is None else handle

        def wait_stream(self, other):
            driver.order(self.cuda_stream, other.cuda_stream)
    Stream.__module__ = "torch.cuda.streams"
    current.append(Stream(0))

    class Memory:
        def __init__(self, count):
            self.key = count, current[-1].cuda_stream
            free = vacant.get(self.key)
            self.address = free.pop() if free else driver.allocate(count)

        def __del__(self):
            vacant.setdefault(self.key, []).append(self.address)

    class CudaTensor(torch.Tensor):
        """A tensor without storage of its own (on "meta"), whose elements are in the emulated GPU's memory."""
        device = property(lambda self: device)

        def data_ptr(self):
            return self.memory.address + self.storage_offset() * self.element_size()

        @classmethod
        def __torch_function__(cls, function, kinds, arguments=(), options=None):
            found = super().__torch_function__(function, kinds, arguments, options or {})
            if isinstance(found, cls):
                found.memory = arguments[0].memory
            return found

    real_empty = torch.empty

    def empty(shape, *, dtype=None, device=None, **more):
        if device is None or torch.device(device).type != "cuda":
            return real_empty(shape, dtype=dtype, device=device, **more)
        made = torch.Tensor._make_subclass(CudaTensor, real_empty(shape, dtype=dtype, device="meta"))
        made.memory = Memory(max(made.numel(), 1) * made.element_size())
        return made

    @contextlib.contextmanager
    def stream(chosen):
        current.append(chosen)
        yield
        current.pop()
    torch.empty = empty
    for name, value in {"is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0,
                        "init": lambda: None, "Stream": Stream, "stream": stream,
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
        self._managed = ctypes.cast(_api.PyCapsule_GetPointer(capsule, b"dltensor"), ctypes.POINTER(dlpack._Managed))
        _api.PyCapsule_SetName(capsule, _USED)
        tensor = self._managed.contents.tensor
        assert tensor.device.type == 2 and tensor.type.bits == 64
        self.shape = tuple(tensor.shape[i] for i in range(tensor.dimensions))
        self.address, self.bytes = tensor.data, 8 * self.shape[0] * self.shape[1]

    def __del__(self):
        managed = self._managed.contents
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)(ctypes.addressof(managed))


# ---- CuPy ----

def cupy_on(driver):
    """Something like the module cupy: streams, arrays, and from_dlpack()."""
    class Stream:
        def __init__(self, null=False):
            self.ptr, self._own = (0, False) if null else (driver.stream(), True)

        def __enter__(self):
            current.append(self)
            return self

        def __exit__(self, *_):
            current.pop()

        def __del__(self):
            if self._own:
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
            return [flat[row * self.shape[1]:(row + 1) * self.shape[1]] for row in range(self.shape[0])]

    def from_dlpack(array):
        assert array.__dlpack_device__() == (2, driver.device)
        taken = Taken(array.__dlpack__(stream=current[-1].ptr or 1))
        return Ndarray(taken.shape, taken.address, taken)

    def empty(shape):
        return Ndarray(shape, driver.allocate(8 * shape[0] * shape[1]))
    return types.SimpleNamespace(from_dlpack=from_dlpack, empty=empty, cuda=types.SimpleNamespace(
        Stream=Stream, ExternalStream=ExternalStream))


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
