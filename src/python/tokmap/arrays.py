# SPDX-License-Identifier: MIT
"""The arrays in which batches are delivered: NumPy's, torch's, or this package's own (dlpack.Array).

Each class makes arrays of its kind, returns their addresses, and checks arrays that the caller wants written to.
"""
from __future__ import annotations

import sys
from ctypes import addressof, c_char, c_uint8
from functools import partial
from math import prod

from ._memory import find
from .device import Pool, order, owns, stream_handle
from .dlpack import BYTES, Array, rows_of, sweep
from .errors import ArgumentError, TokmapError, error_of

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Callable

    import torch

    from .hints import AnyArray, Stream

    Maker = Callable[[], tuple[AnyArray, int]]


def _dtype_name(dtype: Any) -> tuple[str | None, str | None]:
    """The name and framework of a dtype: ("int64", "torch") for torch.int64. The framework of a text is None."""
    if dtype is None or isinstance(dtype, str):
        return dtype, None
    module = (dtype if isinstance(dtype, type) else type(dtype)).__module__.split(".")[0]
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return str(name).split(".")[-1], module if module in ("numpy", "torch") else None


def _device_name(device: Any) -> tuple[str, str | None]:
    """The name and framework of a device: ("cuda:1", "torch") for torch.device("cuda", 1), ("cuda", None) for
    "cuda". None is the host."""
    if device is None:
        return "cpu", None
    if isinstance(device, bool):
        raise _wrong_device(device)
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
        raise _wrong_device(device)
    return name, "torch" if type(device).__module__.split(".")[0] == "torch" else None


def _wrong_device(device: object) -> ArgumentError:
    return ArgumentError(f"device is {device!r}, but it must be \"cpu\", \"cuda\", or \"cuda:N\"")


def _importable(name: str) -> bool:
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def _default(device: Any) -> str:
    """The framework of a program that names none: torch if it names a device, or has imported torch already; otherwise
    NumPy. Where that is not installed, this package's own arrays on a GPU, and the next best on the host."""
    if device is not None and _importable("torch"):
        return "torch"
    if device is None or _device_name(device)[0] == "cpu":
        if sys.modules.get("torch") is not None:
            return "torch"
        if _importable("numpy"):
            return "numpy"
    return "dlpack"


def choose(framework: str | None, dtype: Any, device: Any) -> tuple[Arrays, str, str]:
    """The kind of arrays for a loader's arguments, with the name of the element type and of the device. The kind is
    that of framework if it is set, otherwise that of the framework to which dtype or device belongs, otherwise that of
    the program: see _default()."""
    code, from_dtype = _dtype_name(dtype)
    name, from_device = _device_name(device)
    code = code or "int64"
    if code not in ("int32", "int64"):
        raise ArgumentError(f"dtype is {dtype!r}, but it must be int32 or int64")
    if framework not in (None, "numpy", "torch", "dlpack"):
        raise ArgumentError(f"framework is {framework!r}, but it must be \"numpy\", \"torch\", or \"dlpack\"")
    chosen = framework or from_dtype or from_device or _default(device)
    if chosen == "numpy":
        if name != "cpu":
            raise ArgumentError(f"NumPy does not have arrays on {name}: use dtype=torch.{code} or framework=\"dlpack\"")
        return NumpyArrays(), code, name
    if chosen == "torch":
        arrays = TorchArrays(name)
        return arrays, code, arrays.device_name
    return OwnArrays(name), code, name


def _wrong(field: str, what: str, expected: object, found: object) -> TokmapError:
    return error_of("ERROR_ARGUMENT",
                    f"out.{field} has the wrong {what}: expected {expected}, found {found}", TypeError)


def _no_stream(stream: int) -> int:
    if stream:
        raise ArgumentError(f"stream is {stream}, but this loader delivers on the host, which does not have streams: "
                            f"leave stream out")
    return stream


#: Host arrays of at least this many bytes reuse the memory of earlier ones. malloc() returns blocks of this size to the
#: kernel, and having the kernel clear new pages takes longer than filling the array.
_REUSED_BYTES = 65536
_KEPT_BLOCKS = 8  # unused blocks of one size that are kept


def block_pool(count: int) -> Callable[[], tuple[Any, int]]:
    """Returns a function that returns blocks of count bytes, each with its address. A block is reused after the last
    array over it is gone. Any thread may call the function."""
    from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap  # private: a child after fork() has its own copy
    vacant: list[tuple[mmap, int]] = []

    kind: Any = c_uint8 * count

    class Memory(kind):  # type: ignore[misc]
        """A block. The arrays over it refer to it."""
        __slots__ = ("memory",)
        memory: tuple[mmap, int]

        def __del__(self, vacant: list[tuple[mmap, int]] = vacant, limit: int = _KEPT_BLOCKS) -> None:
            if len(vacant) < limit:
                vacant.append(self.memory)

    at = Memory.from_address

    def take() -> tuple[Any, int]:
        try:
            memory = vacant.pop()
        except IndexError:
            new = mmap(-1, count, flags=MAP_PRIVATE | MAP_ANONYMOUS)
            memory = new, addressof(c_uint8.from_buffer(new))
        address = memory[1]
        block = at(address)
        block.memory = memory
        return block, address
    return take


def _bytes(shape: tuple[int, ...], code: str) -> int:
    return BYTES[code] * prod(shape)


class Arrays:
    """What a loader needs to know about the arrays of one framework. What follows holds for all of them on the host."""
    name: str
    device_name = "cpu"
    _seen: dict[str, tuple[AnyArray, Any]] = {}  # by field, the last array of the caller, and its type

    def maker(self, shape: tuple[int, ...], code: str) -> Maker:
        """Returns a function that makes an array of this shape and element type, and returns it with its address."""
        raise NotImplementedError

    def _maker(self, make: Callable[[], AnyArray]) -> Maker:
        """The same, from a function that only makes it."""
        def made() -> tuple[AnyArray, int]:
            array = make()
            return array, self.pointer(array)
        return made

    def pointer(self, array: AnyArray) -> int:
        """The address of an array's first element."""
        raise NotImplementedError

    def _taken(self, array: AnyArray) -> str:
        """"" if outputs can be arrays of this kind; otherwise what they must be."""
        raise NotImplementedError

    def check(self, field: str, array: AnyArray, shape: tuple[int, ...], code: str) -> int:
        """Raises an ArgumentError if the library cannot write this field to an array of the caller; otherwise returns
        the array's address."""
        wanted, found = self._taken(array), None
        if not wanted:
            found = find(array, f"out.{field}")
        if found is None:
            raise _wrong(field, "kind", wanted, type(array).__name__)
        if found.device not in (self.device_name, self.device_name.partition(":")[0]):
            raise _wrong(field, "device", self.device_name, found.device)
        for what, expected, seen in (("dtype", code, found.type), ("shape", shape, found.shape)):
            if expected != seen:
                raise _wrong(field, what, expected, seen)
        if not found.contiguous:
            unit, of = (1, "bytes") if self.name == "dlpack" else (found.bytes, "elements")
            raise _wrong(field, "strides", f"{rows_of(shape, found.bytes // unit)} {of} (C-contiguous)",
                         tuple(stride // unit for stride in found.strides))
        if not found.writable:
            raise _wrong(field, "access", "a writable array", "a read-only one")
        return found.address

    def use(self, outputs: Any, wanted: list[tuple[str, tuple[int, ...], str]], arrays: list[AnyArray]) -> None:
        """Makes arrays of the caller the outputs of the library, by field, shape, and code: see check(). The usual
        array is that of the last call. What a program can change of it in place is compared, and its address asked."""
        for (field, shape, code), array in zip(wanted, arrays):
            seen = self._seen.get(field)
            if seen is not None and seen[0] is array and array.shape == shape and array.dtype is seen[1] and \
                    self._is_ready(array):
                setattr(outputs, field, self.pointer(array))
            else:
                setattr(outputs, field, self.check(field, array, shape, code))
                if self._is_ready(array):
                    self._seen[field] = array, array.dtype

    def _is_ready(self, array: AnyArray) -> bool:
        """Whether the elements of an array of the right shape and type can be written, one after another."""
        return isinstance(array, Array)

    def opened(self, device: str) -> None:
        """Called with the name of the GPU after the library's loader has opened it."""

    def stream(self) -> int:
        """The stream on which the next arrays are written."""
        return 0

    def use_stream(self, stream: Stream, new: bool) -> int:
        """Sets that stream, for new arrays or for the caller's. Returns its handle."""
        return _no_stream(stream_handle(stream))

    def order(self, arrays: list[AnyArray], stream: int) -> None:
        """Called before the library writes to arrays of the caller, on a stream: makes it wait for earlier uses of the
        arrays on other streams, as far as they are known."""

    def written(self, arrays: list[AnyArray], stream: int) -> None:
        """Called after the library has written to arrays of the caller, on a stream."""

    def close(self) -> None:
        """Called when the loader is closed. Arrays may live on."""
        self._seen.clear()


class NumpyArrays(Arrays):
    """numpy.ndarray, on the host."""
    name = "numpy"

    def __init__(self) -> None:
        import numpy
        self._numpy = numpy
        self._seen = {}

    def maker(self, shape: tuple[int, ...], code: str) -> Maker:
        count, new = _bytes(shape, code), self._numpy.ndarray
        dtype = self._numpy.dtype("uint16" if code == "bfloat16" else code)
        if count < _REUSED_BYTES:
            return self._maker(partial(self._numpy.empty, shape, dtype))
        take = block_pool(count)

        def make() -> tuple[AnyArray, int]:
            block, address = take()
            return new(shape, dtype, block), address
        return make

    def pointer(self, array: AnyArray) -> int:
        try:
            return addressof(c_char.from_buffer(array))  # a third of the time that __array_interface__ takes
        except ValueError:  # the array has no elements
            address: int = array.__array_interface__["data"][0]
            return address

    def _is_ready(self, array: AnyArray) -> bool:
        return type(array) is self._numpy.ndarray and bool(array.flags.carray)

    def _taken(self, array: AnyArray) -> str:
        return "" if isinstance(array, self._numpy.ndarray) else "a numpy.ndarray"


class TorchArrays(Arrays):
    """torch.Tensor, from torch's own allocator. On a GPU it is written in the order of torch's current stream."""
    name = "torch"

    def __init__(self, device: str) -> None:
        import torch
        self._torch = torch
        if device != "cpu":
            if not torch.cuda.is_available():
                raise error_of("ERROR_NO_DEVICE", f"device is {device!r}, but torch cannot use a GPU: " +
                               ("it was built without CUDA; install a torch with it" if torch.version.cuda is None else
                                "torch.cuda.is_available() is False; see whether nvidia-smi finds the GPU") +
                               ", or pass device=\"cpu\"")
            if device == "cuda":
                device = f"cuda:{torch.cuda.current_device()}"
            if int(device[5:]) >= torch.cuda.device_count():
                raise error_of("ERROR_NO_DEVICE",
                               f"device is {device!r}, but torch finds only {torch.cuda.device_count()} GPUs")
            torch.cuda.init()  # type: ignore[no-untyped-call]
        self.device_name = device
        self._device = torch.device(device)
        self._on_host = device == "cpu"  # a comparison of device.type makes a text for every batch
        # A private function of torch, which makes no object for each batch. Not every version has it.
        self._raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        self._written: tuple[int, list[AnyArray]] = 0, []  # the last outputs of the caller, and their stream
        self._seen = {}

    def _dtype(self, code: str) -> torch.dtype:
        found: torch.dtype | None = getattr(self._torch, code, None)
        if found is None:
            raise TokmapError(f"this version of torch does not have {code}, the type of the field rows, or of values, "
                              f"in this run: use NumPy")
        return found

    def maker(self, shape: tuple[int, ...], code: str) -> Maker:
        count, torch, dtype = _bytes(shape, code), self._torch, self._dtype(code)
        if count < _REUSED_BYTES or not self._on_host:
            return self._maker(partial(torch.empty, shape, dtype=dtype, device=self._device))
        take, new = block_pool(count), torch.frombuffer

        def make() -> tuple[AnyArray, int]:
            block, address = take()
            return new(block, dtype=dtype).resize_(*shape), address  # view() would make a second tensor
        return make

    def pointer(self, array: AnyArray) -> int:
        address: int = array.data_ptr()
        return address

    def _is_ready(self, array: AnyArray) -> bool:
        return bool(array.is_contiguous() and (array.is_cpu if self._on_host else array.device == self._device))

    def _taken(self, array: AnyArray) -> str:
        return "" if isinstance(array, self._torch.Tensor) else "a torch.Tensor"

    def stream(self) -> int:
        if self._on_host:
            return 0
        stream: int = self._raw_stream(self._device.index) if self._raw_stream is not None else \
            self._torch.cuda.current_stream(self._device).cuda_stream
        return stream

    def use_stream(self, stream: Stream, new: bool) -> int:
        handle = stream_handle(stream)
        if self._on_host:
            return _no_stream(handle)
        if new and handle != self.stream():
            raise ArgumentError("torch allocates new tensors for its current stream: select the other stream with "
                                "torch.cuda.stream(), or pass your own tensors as out=")
        return handle

    def order(self, arrays: list[AnyArray], stream: int) -> None:
        if self._on_host:
            return
        last, written = self._written
        if (last or 1) != (stream or 1) and not {array.data_ptr() for array in arrays}.isdisjoint(
                array.data_ptr() for array in written):
            order(self.device_name, stream, last)

    def written(self, arrays: list[AnyArray], stream: int) -> None:
        if not self._on_host:
            self._written = stream, arrays

    def close(self) -> None:
        super().close()
        self._written = 0, []


class OwnArrays(Arrays):
    """dlpack.Array: for programs without NumPy and torch, and for every other framework through __dlpack__."""
    name = "dlpack"

    def __init__(self, device: str) -> None:
        self.device_name = device
        self._pool: Pool | None = None
        self._stream = 0

    def opened(self, device: str) -> None:
        self.close()
        self.device_name, self._pool = device, Pool(device)

    def use_stream(self, stream: Stream, new: bool) -> int:
        handle = stream_handle(stream)
        if self._pool is None:
            return _no_stream(handle)
        if owns(stream):
            self._pool.keep(handle, stream)
        self._stream = handle
        return handle

    def maker(self, shape: tuple[int, ...], code: str) -> Maker:
        count = _bytes(shape, code)
        if self._pool is not None:
            return self._maker(partial(self._make, self._pool, shape, code, count))
        if count < _REUSED_BYTES:
            return self._maker(partial(Array.on_host, shape, code))
        take = block_pool(count)

        def make() -> tuple[AnyArray, int]:
            sweep()
            memory, address = take()
            return Array(memory, address, shape, code, "cpu"), address
        return make

    def _make(self, pool: Pool, shape: tuple[int, ...], code: str, count: int) -> Array:
        sweep()
        block = pool.take(count, self._stream)
        return Array(block, block.address, shape, code, self.device_name, self._stream)

    def pointer(self, array: AnyArray) -> int:
        address: int = array.address if isinstance(array, Array) else array.__cuda_array_interface__["data"][0]
        return address

    def _taken(self, array: AnyArray) -> str:
        if isinstance(array, Array) or (self._pool and hasattr(array, "__cuda_array_interface__")):
            return ""
        return "a tokmap.Array" + (" or one with __cuda_array_interface__" if self._pool else "")

    def stream(self) -> int:
        self._stream = 0
        return 0

    def order(self, arrays: list[AnyArray], stream: int) -> None:
        if self._pool is None:
            return
        waited = {stream or 1}
        for array in arrays:
            # Our arrays know the stream of the last batch. Others name the one on which they may still be read.
            last = array.stream if isinstance(array, Array) else array.__cuda_array_interface__.get("stream", stream)
            if last is not None and (last or 1) not in waited:
                waited.add(last or 1)
                order(self.device_name, stream, last)

    def written(self, arrays: list[AnyArray], stream: int) -> None:
        # Readers of these arrays must wait for that stream.
        if self._pool is not None:
            for array in arrays:
                if isinstance(array, Array) and array.stream != stream:
                    array._share(stream)
                    array.stream = stream

    def close(self) -> None:
        sweep()
        if self._pool is not None:
            self._pool.close()
