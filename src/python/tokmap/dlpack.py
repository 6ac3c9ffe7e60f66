# SPDX-License-Identifier: MIT
"""This package's own arrays, which any framework (CuPy, JAX, torch, NumPy) takes through DLPack without a copy.

A framework may free a tensor that it took at any time: in any thread, while an exception propagates, or after Python
has ended. No Python code can run then. (A ctypes callback used as the deleter would clear an exception that is
propagating.) So the deleter is a function of the library that only sets a flag, and the capsule has no destructor.
sweep() looks at both. It is called wherever arrays are exported, and where large ones are made.
"""
from __future__ import annotations

from collections import deque
from ctypes import (POINTER, PyDLL, Structure, addressof, byref, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16,
                    c_uint32, c_uint64, c_void_p, cast, memmove, py_object)
from itertools import count
from math import prod
from sys import getrefcount

from . import _library as c
from ._library import check, lib
from .errors import ArgumentError

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    import builtins
    from collections.abc import Iterator
    from typing import Any, SupportsIndex, overload

CPU, CUDA = 1, 2
BYTES = {"int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4, "float16": 2, "bfloat16": 2, "float32": 4}
_FORMATS = {"int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I", "float16": "e", "bfloat16": "H",
            "float32": "f"}
_CODES = {"i": 0, "u": 1, "f": 2, "b": 4}  # of DLPack, by the first letter


class _Device(Structure):
    _fields_ = [("type", c_int32), ("number", c_int32)]


class _Type(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class _Tensor(Structure):
    _fields_ = [("data", c_void_p), ("device", _Device), ("dimensions", c_int32), ("type", _Type),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class _Managed(Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class _Versioned(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("tensor", _Tensor)]


# ctypes keeps prototypes per PyDLL. Those of ctypes.pythonapi are shared by all modules; these belong to this module.
_api = PyDLL(None)
_api.PyCapsule_IsValid.argtypes, _api.PyCapsule_IsValid.restype = (py_object, c_char_p), c_int
_api.PyCapsule_New.argtypes, _api.PyCapsule_New.restype = (c_void_p, c_char_p, c_void_p), py_object
_api.Py_IncRef.argtypes, _api.Py_IncRef.restype = (py_object,), None


class _Export:
    """An array that was exported, with all memory that the framework may read."""
    __slots__ = ("managed", "name", "deleted", "shape", "strides", "array", "capsule")
    managed: Any
    name: c_char_p
    deleted: c_uint32
    shape: Any
    strides: Any
    array: Array
    capsule: object

    def has_ended(self) -> bool:
        """Whether the framework has called the deleter, or nobody refers to the capsule and nobody took its tensor."""
        if self.deleted.value:
            return True
        if self.capsule is None:
            return False
        # The references are counted before the name is checked, because whoever has the capsule may take its tensor
        # between.
        unshared = _references(self) == _references(_UNSHARED)
        if not _api.PyCapsule_IsValid(self.capsule, self.name):
            self.capsule = None  # the tensor was taken: its consumer has renamed the capsule
            return False
        return unshared


def _references(export: _Export) -> int:
    """The number of references to the capsule, including those of this call."""
    return getrefcount(export.capsule)


_UNSHARED = _Export()
_UNSHARED.capsule = object()

_alive: dict[int, _Export] = {}    # exports by number
_queue: deque[int] = deque()     # their numbers, in the order in which sweep() looks at them
_numbers = count()
_SWEEP_EXPORTS = 64  # exports that one sweep looks at, because a program may keep any number of arrays

# Arrays that a framework still uses when Python ends must keep their memory, so these are never freed.
_api.Py_IncRef(_alive)
# A capsule does not copy its name, so the names must outlive every capsule.
_NAMES = c_char_p(b"dltensor"), c_char_p(b"dltensor_versioned")
_api.Py_IncRef(_NAMES)
_DELETERS = tuple(cast(deleter, c_void_p).value for deleter in (lib.tokmap_dlpack_deleter,
                                                                lib.tokmap_dlpack_deleter_versioned))


def sweep() -> None:
    """Forgets the exports that have ended, so that their memory can be reused."""
    if len(_queue) < len(_alive):  # Ctrl-C interrupted an earlier sweep, or another thread is sweeping
        _queue.extend(set(_alive) - set(_queue))
    for _ in range(min(len(_queue), _SWEEP_EXPORTS)):
        try:
            number = _queue.popleft()
        except IndexError:  # another thread took the last one
            return
        export = _alive.get(number)
        if export is None:
            continue
        if export.has_ended():
            _alive.pop(number, None)
        else:
            _queue.append(number)


def rows_of(shape: tuple[int, ...], bytes: int) -> tuple[int, ...]:
    """The strides of contiguous elements."""
    strides = [bytes]
    for length in reversed(shape[1:]):
        strides.insert(0, strides[0] * length)
    return tuple(strides[:len(shape)])


def _capsule(array: Array, versioned: bool) -> object:
    sweep()
    export, dimensions = _Export(), len(array.shape)
    export.array, export.deleted, export.name = array, c_uint32(0), _NAMES[versioned]
    export.shape = (c_int64 * dimensions)(*array.shape)
    export.strides = (c_int64 * dimensions)(*rows_of(array.shape, 1))
    export.managed = managed = (_Versioned if versioned else _Managed)()
    if versioned:
        managed.major, managed.minor = 1, 0
    tensor = managed.tensor
    tensor.data = array.address
    tensor.device.type, tensor.device.number = array.__dlpack_device__()
    tensor.dimensions = dimensions
    tensor.type.code = _CODES[array.dtype[0]]
    tensor.type.bits, tensor.type.lanes = 8 * BYTES[array.dtype], 1
    tensor.shape, tensor.strides = export.shape, export.strides
    managed.context, managed.deleter = addressof(export.deleted), _DELETERS[versioned]
    capsule = export.capsule = _api.PyCapsule_New(addressof(managed), export.name, None)
    number = next(_numbers)
    _alive[number] = export
    _queue.append(number)
    return capsule


class Array:
    """A C-contiguous array of numbers on the host or on a GPU, which keeps its memory alive.

    torch.from_dlpack(a), cupy.from_dlpack(a), jax.dlpack.from_dlpack(a), and numpy.from_dlpack(a) take it without a
    copy.

    Rows are arrays over the same memory. The elements of an array of one dimension are ints: a[0] and list(a) are what
    users of NumPy expect, and wait for the GPU. Every element of any array: tolist().

    address, shape, dtype   where the elements are, how many, and of which type: "int32", "int64", "uint16", "uint32";
                            of values also "uint8", "float16", "float32", or "bfloat16", whose elements are ints of 16
                            bits to Python, and have no name in __array_interface__
    device                  "cpu" or "cuda:N"
    stream                  the handle of the CUDA stream that writes it, 0 for the default stream
    """
    __slots__ = ("_owner", "address", "shape", "dtype", "device", "stream", "__weakref__")

    address: int
    shape: tuple[int, ...]
    dtype: str
    device: str
    stream: int
    _owner: Any

    def __init__(self, owner: Any, address: int, shape: tuple[int, ...], dtype: str, device: str,
                 stream: int = 0) -> None:
        self._owner, self.address, self.shape, self.dtype, self.device = owner, address, shape, dtype, device
        self.stream = stream

    @classmethod
    def on_host(cls, shape: tuple[int, ...], dtype: str) -> Array:
        """A new array on the host."""
        owner = (c_uint8 * max(BYTES[dtype] * prod(shape), 1))()
        return cls(owner, addressof(owner), shape, dtype, "cpu")

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * BYTES[self.dtype]

    def __repr__(self) -> str:
        return f"<tokmap.Array {self.dtype} {self.shape} on {self.device}>"

    def __iter__(self) -> Iterator[Any]:
        """The rows; of an array of one dimension, the elements as ints."""
        if len(self.shape) == 1:
            return iter(self.tolist())  # one copy from a GPU, not one for each element
        return (self[row] for row in range(self.shape[0]))

    def __getitem__(self, rows: SupportsIndex | slice) -> Any:
        """A row, or consecutive rows, as an array over the same memory; an element of an array of one dimension as an
        int, which waits for the GPU."""
        if isinstance(rows, slice):
            first, end, step = rows.indices(self.shape[0])
            if step != 1:
                raise ArgumentError("a tokmap.Array can be sliced only into consecutive rows: pass it to a framework "
                                    "with from_dlpack() for other slices")
            shape = (max(end - first, 0), *self.shape[1:])
        else:
            first = rows.__index__()
            first += self.shape[0] if first < 0 else 0
            if not 0 <= first < self.shape[0]:
                raise IndexError(rows)
            shape = self.shape[1:]
        row = self.nbytes // self.shape[0] if self.shape[0] else 0
        found = Array(self._owner, self.address + first * row, shape, self.dtype, self.device, self.stream)
        return found if shape else found.tolist()

    def memoryview(self) -> builtins.memoryview:
        """The elements as a memoryview of the array's shape. For an array on a GPU it is a copy, and waits for the
        GPU."""
        if self.device != "cpu":
            return self.to_host().memoryview()
        buffer: Any = (c_uint8 * self.nbytes).from_address(self.address)
        buffer.owner = self._owner
        elements: Any = memoryview(buffer).cast("B")
        return elements.cast(_FORMATS[self.dtype], self.shape) if self.nbytes else memoryview(b"")

    def __buffer__(self, flags: int, /) -> builtins.memoryview:
        return self.memoryview()

    def tolist(self) -> Any:
        """The elements as nested lists. Waits for the GPU."""
        if not self.shape:
            return self.to_host().memoryview()[()]
        if not self.nbytes:
            return [[] for _ in range(self.shape[0])] if len(self.shape) > 1 else []
        return self.memoryview().tolist()

    def to_host(self) -> Array:
        """A copy on the host. Waits for the GPU."""
        copy, error = Array.on_host(self.shape, self.dtype), c.Error()
        if self.device == "cpu":
            memmove(copy.address, self.address, self.nbytes)
        elif self.nbytes:
            check(lib.tokmap_cuda_memory_read(self.device.encode(), copy.address, self.address, self.nbytes,
                                              self.stream or None, byref(error)), error)
        return copy

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self.device != "cpu":
            raise AttributeError(f"this array is on {self.device}: copy it with to_host()")
        return {"shape": self.shape, "typestr": self._typestr(), "data": (self.address, False), "version": 3}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.device == "cpu":
            raise AttributeError("this array is on the host")
        self._share(None)
        return {"shape": self.shape, "typestr": self._typestr(), "data": (self.address, False), "version": 3,
                "strides": None, "stream": self.stream or 1}

    def _typestr(self) -> str:
        if self.dtype == "bfloat16":
            raise AttributeError("arrays of bfloat16 have no __array_interface__: use from_dlpack(), or memoryview()")
        return f"<{self.dtype[0]}{BYTES[self.dtype]}"

    def _share(self, stream: int | None) -> None:
        """Records that the memory may be used on a stream (None: an unknown one). If that is not the stream on which
        the array is written, the pool does not reuse the memory for other batches."""
        if stream is None or (stream or 1) != (self.stream or 1):
            self._owner.shared = True

    def __dlpack_device__(self) -> tuple[int, int]:
        return (CPU, 0) if self.device == "cpu" else (CUDA, int(self.device.partition(":")[2] or 0))

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """Exports the array as a DLPack capsule.

        stream  the consumer's stream, which is made to wait for the data: 1 is the legacy default stream, 2 the
                thread's default stream, any other number a handle; -1 means that the consumer waits by itself; None
                means 1
        """
        own = self.__dlpack_device__()
        versioned = max_version is not None and max_version[0] >= 1
        if copy or (dl_device is not None and tuple(dl_device) != own):
            if copy is False or (dl_device is not None and tuple(dl_device) not in ((CPU, 0), own)) or \
                    (own[0] == CUDA and (dl_device is None or tuple(dl_device) == own)):
                raise BufferError(f"an array on {self.device} can be copied only to the host: use to_host()")
            return _capsule(self.to_host(), versioned)
        if own[0] == CUDA:
            consumer = 1 if stream is None else stream
            if consumer == 0 or consumer < -1:
                raise BufferError(f"stream is {stream}, which is not a CUDA stream: 1 is the legacy default stream")
            self._share(None if consumer == -1 else consumer)
            if consumer != -1 and consumer != (self.stream or 1):
                error = c.Error()
                check(lib.tokmap_cuda_stream_wait(self.device.encode(), consumer, self.stream or None, byref(error)),
                      error)
        elif stream is not None:
            raise BufferError("an array on the host does not have a stream: leave stream out")
        return _capsule(self, versioned)
