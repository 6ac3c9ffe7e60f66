"""The arrays that batches are delivered in: NumPy's, torch's, or this package's own (dlpack.Array).

Each kind knows how to make one, where its memory is, and whether one that was given is fit to be written to.
"""
from __future__ import annotations

from ctypes import addressof, c_uint8
from functools import partial

from .dlpack import BYTES, Array, sweep
from .errors import ArgumentError, NoDeviceError, OutputError, TokmapError


def _dtype_name(dtype) -> tuple[str | None, str | None]:
    """("int64", "torch") of torch.int64; the framework is None of a text."""
    if dtype is None or isinstance(dtype, str):
        return dtype, None
    module = (dtype if isinstance(dtype, type) else type(dtype)).__module__.split(".")[0]
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return str(name).split(".")[-1], module if module in ("numpy", "torch") else None


def _device_name(device) -> tuple[str, str | None]:
    """("cuda:1", "torch") of torch.device("cuda", 1); ("cuda", None) of "cuda"."""
    if device is None:
        return "cpu", None
    if isinstance(device, bool):
        raise ArgumentError(f"device is {device!r}: \"cpu\", \"cuda\" or \"cuda:N\" is needed")
    if isinstance(device, int):
        return f"cuda:{device}", None
    if isinstance(device, str):
        name = device
    else:
        name = str(device)
    kind, _, index = name.partition(":")
    if kind == "cpu":
        name = "cpu"
    elif kind != "cuda" or (index and not index.isdigit()) or name == "cuda:":
        raise ArgumentError(f"device is {device!r}: \"cpu\", \"cuda\" or \"cuda:N\" is needed")
    return name, "torch" if type(device).__module__.split(".")[0] == "torch" else None


def _importable(name: str) -> bool:
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def choose(framework, dtype, device):
    """The kind of arrays for a loader's arguments: framework, else the one that dtype or device belong to, else torch on
    a GPU and NumPy on the host where they are installed, else our own. With it the element type and the device."""
    code, from_dtype = _dtype_name(dtype)
    name, from_device = _device_name(device)
    code = code or "int64"
    if code not in ("int32", "int64"):
        raise ArgumentError(f"dtype is {dtype!r}: int32 or int64 is needed")
    if framework not in (None, "numpy", "torch", "dlpack"):
        raise ArgumentError(f"framework is {framework!r}: \"numpy\", \"torch\" or \"dlpack\" is needed")
    wanted = framework or from_dtype or from_device
    if wanted is None:
        usual = "numpy" if name == "cpu" else "torch"
        wanted = usual if _importable(usual) else "dlpack"
    if wanted == "numpy":
        if name != "cpu":
            raise ArgumentError(f"NumPy has no arrays on {name}: use dtype=torch.{code} or framework=\"dlpack\"")
        return NumpyArrays(), code, name
    if wanted == "torch":
        arrays = TorchArrays(name)
        return arrays, code, arrays.device_name
    return OwnArrays(name), code, name


def _wrong(field: str, what: str, expected, found) -> OutputError:
    return OutputError(f"out.{field} has the wrong {what}: expected {expected}, found {found}")


def _no_stream(stream: int) -> int:
    if stream:
        raise ArgumentError(f"stream is {stream}, but this loader delivers on the host, which has none")
    return stream


def _row_strides(shape: tuple) -> tuple:
    strides = [1]
    for length in reversed(shape[1:]):
        strides.insert(0, strides[0] * length)
    return tuple(strides)


#: From here on memory for arrays on the host is kept for the next ones: malloc() gives pieces of this size back to the
#: kernel, and to have them cleared page by page again takes longer than to fill them.
_KEPT_FROM = 65536
_KEPT_MOST = 8  # pieces of a size that wait for use


def keeper(count: int):
    """A function that gives count bytes, which come back to it when the last array over them is gone. Any thread."""
    from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap  # private: a child after fork() has its own
    vacant = []

    class Memory(c_uint8 * count):
        """What an array keeps a reference to."""

        def __del__(self, vacant=vacant, most=_KEPT_MOST):
            if len(vacant) < most:
                vacant.append(self.memory)

    def take() -> Memory:
        try:
            memory = vacant.pop()
        except IndexError:
            memory = mmap(-1, count, flags=MAP_PRIVATE | MAP_ANONYMOUS)
        found = Memory.from_buffer(memory)
        found.memory = memory
        return found
    return take


def _bytes(shape: tuple, code: str) -> int:
    count = BYTES[code]
    for length in shape:
        count *= length
    return count


class NumpyArrays:
    """numpy.ndarray, on the host."""
    name = "numpy"

    def __init__(self):
        import numpy
        self._numpy = numpy

    def maker(self, shape: tuple, code: str):
        count, numpy, dtype = _bytes(shape, code), self._numpy, self._numpy.dtype(code)
        if count < _KEPT_FROM:
            return partial(numpy.empty, shape, dtype)
        take = keeper(count)
        return lambda: numpy.ndarray(shape, dtype, take())

    @staticmethod
    def pointer(array) -> int:
        return array.__array_interface__["data"][0]

    def check(self, field: str, array, shape: tuple, code: str) -> None:
        if not isinstance(array, self._numpy.ndarray):
            raise _wrong(field, "kind", "a numpy.ndarray", type(array).__name__)
        if array.dtype != self._numpy.dtype(code):
            raise _wrong(field, "dtype", code, array.dtype)
        if array.shape != shape:
            raise _wrong(field, "shape", shape, array.shape)
        if not array.flags.c_contiguous:
            raise _wrong(field, "strides", f"{_row_strides(shape)} elements (C-contiguous)",
                         tuple(stride // array.itemsize for stride in array.strides))
        if not array.flags.writeable:
            raise _wrong(field, "access", "a writable array", "a read-only one")

    def stream(self) -> int:
        return 0

    def use_stream(self, stream: int, _new: bool) -> int:
        return _no_stream(stream)

    def written(self, given: list, stream: int) -> None:
        """Arrays of the caller's were written to, on a stream."""


class TorchArrays:
    """torch.Tensor, from torch's own allocator; on a GPU in the order of torch's current stream."""
    name = "torch"

    def __init__(self, device: str):
        import torch
        self._torch = torch
        if device != "cpu":
            if not torch.cuda.is_available():
                raise NoDeviceError(f"torch finds no GPU for device {device!r}: " +
                                    ("this torch was built without CUDA" if torch.version.cuda is None else
                                     "torch.cuda.is_available() is False"))
            if device == "cuda":
                device = f"cuda:{torch.cuda.current_device()}"
            if int(device[5:]) >= torch.cuda.device_count():
                raise NoDeviceError(f"torch has no {device}: it finds {torch.cuda.device_count()} GPUs")
            torch.cuda.init()
        self.device_name = device
        self._device = torch.device(device)
        if device != "cpu":
            self.stream = self._current_stream

    def _dtype(self, code: str):
        found = getattr(self._torch, code, None)
        if found is None:
            raise TokmapError(f"this torch has no {code}, which the field rows of this run is made of: use NumPy")
        return found

    def maker(self, shape: tuple, code: str):
        count, torch, dtype = _bytes(shape, code), self._torch, self._dtype(code)
        if count < _KEPT_FROM or self._device.type != "cpu":
            return partial(torch.empty, shape, dtype=dtype, device=self._device)
        take = keeper(count)
        return lambda: torch.frombuffer(take(), dtype=dtype).view(shape)

    @staticmethod
    def pointer(array) -> int:
        return array.data_ptr()

    def check(self, field: str, array, shape: tuple, code: str) -> None:
        if not isinstance(array, self._torch.Tensor):
            raise _wrong(field, "kind", "a torch.Tensor", type(array).__name__)
        if array.dtype != self._dtype(code):
            raise _wrong(field, "dtype", self._dtype(code), array.dtype)
        if tuple(array.shape) != shape:
            raise _wrong(field, "shape", shape, tuple(array.shape))
        if array.device != self._device:
            raise _wrong(field, "device", self._device, array.device)
        if not array.is_contiguous():
            raise _wrong(field, "strides", f"{_row_strides(shape)} elements (contiguous)", tuple(array.stride()))

    def _current_stream(self) -> int:
        return self._torch.cuda.current_stream(self._device).cuda_stream

    def stream(self) -> int:
        return 0

    def use_stream(self, stream: int, new: bool) -> int:
        if self._device.type == "cpu":
            return _no_stream(stream)
        if new and stream != self._current_stream():
            raise ArgumentError("new tensors come from torch's memory of its current stream: choose another one with "
                                "torch.cuda.stream(), or give out=")
        return stream

    def written(self, given: list, stream: int) -> None:
        """Arrays of the caller's were written to, on a stream."""


class OwnArrays:
    """dlpack.Array: for programs with neither NumPy nor torch, and for every other framework by __dlpack__."""
    name = "dlpack"

    def __init__(self, device: str):
        self.device_name = device
        self._pool = None
        self._stream = 0

    def opened(self, device: str) -> None:
        """The GPU that "cuda" came to."""
        from .device import Pool
        self.close()
        self.device_name, self._pool = device, Pool(device)

    def use_stream(self, stream: int, _new: bool) -> int:
        """The stream on which the next arrays are written."""
        self._stream = stream if self._pool is not None else _no_stream(stream)
        return stream

    def maker(self, shape: tuple, code: str):
        count = _bytes(shape, code)
        if self._pool is not None:
            return partial(self._make, shape, code, count)
        if count < _KEPT_FROM:
            return partial(Array.on_host, shape, code)
        take = keeper(count)

        def make() -> Array:
            sweep()
            memory = take()
            return Array(memory, addressof(memory), shape, code, "cpu")
        return make

    def _make(self, shape: tuple, code: str, count: int) -> Array:
        sweep()
        block = self._pool.take(count, self._stream)
        return Array(block, block.address, shape, code, self.device_name, self._stream)

    @staticmethod
    def pointer(array) -> int:
        return array.address if isinstance(array, Array) else array.__cuda_array_interface__["data"][0]

    def check(self, field: str, array, shape: tuple, code: str) -> None:
        found = array
        if not isinstance(array, Array):
            described = getattr(array, "__cuda_array_interface__", None) if self._pool else None
            if described is None:
                raise _wrong(field, "kind", "a tokmap.Array" + (" or one with __cuda_array_interface__" if self._pool else
                                                                ""), type(array).__name__)
            if described["typestr"] != f"<{'u' if code[0] == 'u' else 'i'}{BYTES[code]}":
                raise _wrong(field, "dtype", code, described["typestr"])
            strides = tuple(length * BYTES[code] for length in _row_strides(shape))
            if described.get("strides") not in (None, strides):
                raise _wrong(field, "strides", f"{strides} bytes (C-contiguous)", described["strides"])
            if described["data"][1]:
                raise _wrong(field, "access", "a writable array", "a read-only one")
            if tuple(described["shape"]) != shape:
                raise _wrong(field, "shape", shape, tuple(described["shape"]))
            return
        if found.dtype != code:
            raise _wrong(field, "dtype", code, found.dtype)
        if found.shape != shape:
            raise _wrong(field, "shape", shape, found.shape)
        if found.device != self.device_name:
            raise _wrong(field, "device", self.device_name, found.device)

    def stream(self) -> int:
        return self.use_stream(0, True)

    def written(self, given: list, stream: int) -> None:
        """Arrays of the caller's were written to, on a stream: what reads them must come after it."""
        if self._pool is not None:
            for array in given:
                if isinstance(array, Array) and array.stream != stream:
                    array._lent(stream)
                    array.stream = stream

    def close(self) -> None:
        sweep()
        if self._pool is not None:
            self._pool.close()
