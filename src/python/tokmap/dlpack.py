"""Arrays of our own, which any framework takes by DLPack without a copy: CuPy, JAX, torch, NumPy.

A capsule holds a DLManagedTensor, whose deleter may be called by any thread at any time: what it needs is found in _alive
by its address, and is dropped there.
"""
from __future__ import annotations

from ctypes import (CFUNCTYPE, POINTER, PyDLL, Structure, addressof, byref, c_char_p, c_int, c_int32, c_int64, c_uint8,
                    c_uint16, c_uint32, c_uint64, c_void_p, cast, memmove, py_object)

from . import _library as c
from ._library import check, lib
from .errors import ArgumentError

CPU, CUDA = 1, 2
BYTES = {"int32": 4, "int64": 8, "uint16": 2, "uint32": 4}
_FORMATS = {"int32": "i", "int64": "q", "uint16": "H", "uint32": "I"}


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


_NAME, _NAME_VERSIONED = b"dltensor", b"dltensor_versioned"
_alive: dict = {}


@CFUNCTYPE(None, c_void_p)
def _delete(address, alive=_alive):
    alive.pop(address, None)


pythonapi = PyDLL(None)  # of our own: the prototypes of ctypes.pythonapi's functions belong to the whole process


# A capsule that nobody took still has its first name: then its tensor is deleted with it. The capsule is dying, so it is
# handled by its address: a reference to it would bring it back to life.
pythonapi.PyCapsule_IsValid.argtypes, pythonapi.PyCapsule_IsValid.restype = (c_void_p, c_char_p), c_int
pythonapi.PyCapsule_GetPointer.argtypes, pythonapi.PyCapsule_GetPointer.restype = (c_void_p, c_char_p), c_void_p
pythonapi.PyCapsule_New.argtypes, pythonapi.PyCapsule_New.restype = (c_void_p, c_char_p, c_void_p), py_object


@CFUNCTYPE(None, c_void_p)
def _destroy(capsule, alive=_alive, api=pythonapi):
    for name in (_NAME, _NAME_VERSIONED):
        if api.PyCapsule_IsValid(capsule, name):
            alive.pop(api.PyCapsule_GetPointer(capsule, name), None)


# A consumer may free its array when this module's names are gone, at the end of the program: what is called then stays.
pythonapi.Py_IncRef.argtypes, pythonapi.Py_IncRef.restype = (py_object,), None
for _kept in (_delete, _destroy, _NAME, _NAME_VERSIONED):
    pythonapi.Py_IncRef(_kept)


def _capsule(array: Array, versioned: bool):
    dimensions = len(array.shape)
    shape, strides, step = (c_int64 * dimensions)(*array.shape), (c_int64 * dimensions)(), 1
    for i in reversed(range(dimensions)):
        strides[i] = step
        step *= array.shape[i]
    managed = (_Versioned if versioned else _Managed)()
    if versioned:
        managed.major, managed.minor = 1, 0
    tensor = managed.tensor
    tensor.data = array.address
    tensor.device.type, tensor.device.number = array.__dlpack_device__()
    tensor.dimensions = dimensions
    tensor.type.code = 1 if array.dtype[0] == "u" else 0
    tensor.type.bits, tensor.type.lanes = 8 * BYTES[array.dtype], 1
    tensor.shape, tensor.strides = cast(shape, POINTER(c_int64)), cast(strides, POINTER(c_int64))
    managed.deleter = cast(_delete, c_void_p).value
    address = addressof(managed)
    _alive[address] = (managed, shape, strides, array)
    try:
        return pythonapi.PyCapsule_New(address, _NAME_VERSIONED if versioned else _NAME, cast(_destroy, c_void_p))
    except BaseException:
        _alive.pop(address, None)
        raise


class Array:
    """Rows of whole numbers, C-contiguous, on the host or on a GPU; it owns its memory.

    torch.from_dlpack(a), cupy.from_dlpack(a), jax.dlpack.from_dlpack(a) and numpy.from_dlpack(a) take it without a copy.
    """
    __slots__ = ("_owner", "address", "shape", "dtype", "device", "stream", "__weakref__")

    def __init__(self, owner, address: int, shape: tuple, dtype: str, device: str, stream: int = 0):
        self._owner, self.address, self.shape, self.dtype, self.device = owner, address, shape, dtype, device
        self.stream = stream

    @classmethod
    def on_host(cls, shape: tuple, dtype: str) -> Array:
        """A new one on the host."""
        count = BYTES[dtype]
        for length in shape:
            count *= length
        owner = (c_uint8 * max(count, 1))()
        return cls(owner, addressof(owner), shape, dtype, "cpu")

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def nbytes(self) -> int:
        return self.size * BYTES[self.dtype]

    def __repr__(self) -> str:
        return f"<tokmap.Array {self.dtype} {self.shape} on {self.device}>"

    def __getitem__(self, rows) -> Array:
        """A row, or a slice of rows without a step, over the same memory."""
        if isinstance(rows, slice):
            first, end, step = rows.indices(self.shape[0])
            if step != 1:
                raise ArgumentError("a tokmap.Array is cut into rows that lie together: a framework can do more, by DLPack")
            shape = (max(end - first, 0), *self.shape[1:])
        else:
            first = rows.__index__()
            first += self.shape[0] if first < 0 else 0
            if not 0 <= first < self.shape[0]:
                raise IndexError(rows)
            shape = self.shape[1:]
        row = self.nbytes // self.shape[0] if self.shape[0] else 0
        return Array(self._owner, self.address + first * row, shape, self.dtype, self.device, self.stream)

    def memoryview(self):
        """Its memory on the host, as a memoryview of its shape; of an array on a GPU a copy, which waits for it."""
        if self.device != "cpu":
            return self.to_host().memoryview()
        buffer = (c_uint8 * self.nbytes).from_address(self.address)
        buffer.owner = self._owner
        return memoryview(buffer).cast("B").cast(_FORMATS[self.dtype], self.shape) if self.nbytes else memoryview(b"")

    def __buffer__(self, _flags):
        return self.memoryview()

    def tolist(self) -> list:
        """Its elements; waits for the GPU."""
        if not self.shape:
            return self.to_host().memoryview()[()]
        if not self.nbytes:
            return [[] for _ in range(self.shape[0])] if len(self.shape) > 1 else []
        return self.memoryview().tolist()

    def to_host(self) -> Array:
        """A copy on the host; waits for the GPU."""
        made, error = Array.on_host(self.shape, self.dtype), c.Error()
        if self.device == "cpu":
            memmove(made.address, self.address, self.nbytes)
        elif self.nbytes:
            check(lib.tokmap_cuda_memory_read(self.device.encode(), made.address, self.address, self.nbytes,
                                              self.stream or None, byref(error)), error)
        return made

    @property
    def __array_interface__(self) -> dict:
        if self.device != "cpu":
            raise AttributeError(f"this array is on {self.device}: to_host() copies it")
        return {"shape": self.shape, "typestr": self._typestr(), "data": (self.address, False), "version": 3}

    @property
    def __cuda_array_interface__(self) -> dict:
        if self.device == "cpu":
            raise AttributeError("this array is on the host")
        self._lent(None)
        return {"shape": self.shape, "typestr": self._typestr(), "data": (self.address, False), "version": 3,
                "strides": None, "stream": self.stream or 1}

    def _typestr(self) -> str:
        return f"<{'u' if self.dtype[0] == 'u' else 'i'}{BYTES[self.dtype]}"

    def _lent(self, stream: int | None) -> None:
        """Somebody may use the memory on this stream (None: we do not know which): if it is not the one that it is written
        on, the memory is not used again for other batches."""
        if stream is None or (stream or 1) != (self.stream or 1):
            self._owner.lent = True

    def __dlpack_device__(self) -> tuple[int, int]:
        return (CPU, 0) if self.device == "cpu" else (CUDA, int(self.device.partition(":")[2] or 0))

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """A DLPack capsule. stream: the consumer's, which is made to wait for the data: 1 the legacy default, 2 the
        thread's default, another a handle; -1 asks for no waiting; None is 1."""
        own = self.__dlpack_device__()
        versioned = max_version is not None and max_version[0] >= 1
        if copy or (dl_device is not None and tuple(dl_device) != own):
            if copy is False or (dl_device is not None and tuple(dl_device) not in ((CPU, 0), own)) or \
                    (own[0] == CUDA and (dl_device is None or tuple(dl_device) == own)):
                raise BufferError(f"an array on {self.device} cannot be copied so: to_host() gives one on the host")
            return _capsule(self.to_host(), versioned)
        if own[0] == CUDA:
            consumer = 1 if stream is None else stream
            if consumer == 0 or consumer < -1:
                raise BufferError(f"stream {stream} is no stream: 1 is the legacy default one")
            self._lent(None if consumer == -1 else consumer)
            if consumer != -1 and consumer != (self.stream or 1):
                error = c.Error()
                check(lib.tokmap_cuda_stream_wait(self.device.encode(), consumer, self.stream or None, byref(error)), error)
        elif stream is not None:
            raise BufferError("an array on the host has no stream")
        return _capsule(self, versioned)
