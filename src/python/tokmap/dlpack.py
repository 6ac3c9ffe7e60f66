"""Arrays of our own, which any framework takes by DLPack without a copy: CuPy, JAX, torch, NumPy.

What a framework took it frees at any time, in any thread, with an exception on its way or when Python has ended: nothing of
Python can be called then. (A callback of ctypes in that place loses the exception that is on its way: what Python calls is
not allowed to leave one.) So the deleter is one of the library's, which only sets a flag, and the capsule has no destructor;
both are looked at by sweep(), which is called wherever arrays are handed out, and where large ones are made.
"""
from __future__ import annotations

from collections import deque
from ctypes import (POINTER, PyDLL, Structure, addressof, byref, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16,
                    c_uint32, c_uint64, c_void_p, cast, memmove, py_object)
from itertools import count
from sys import getrefcount

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


# Prototypes belong to a function of a PyDLL: those of ctypes.pythonapi are everybody's, these are ours.
_api = PyDLL(None)
_api.PyCapsule_IsValid.argtypes, _api.PyCapsule_IsValid.restype = (py_object, c_char_p), c_int
_api.PyCapsule_New.argtypes, _api.PyCapsule_New.restype = (c_void_p, c_char_p, c_void_p), py_object
_api.Py_IncRef.argtypes, _api.Py_IncRef.restype = (py_object,), None


class _Loan:
    """An array in other hands, and all that these may look at."""
    __slots__ = ("managed", "name", "ended", "shape", "strides", "array", "capsule")

    def over(self) -> bool:
        """Whether it was given back, or its capsule was let go of by all who could have taken what is in it."""
        if self.ended.value:
            return True
        if self.capsule is None:
            return False
        unshared = _references(self) == _references(_UNUSED)  # asked first: who has it may take what is in it meanwhile
        if not _api.PyCapsule_IsValid(self.capsule, self.name):
            self.capsule = None  # it was taken, and has another name since
            return False
        return unshared


def _references(loan) -> int:
    """How many refer to its capsule, this function included."""
    return getrefcount(loan.capsule)


_UNUSED = _Loan()
_UNUSED.capsule = object()

_alive: dict = {}  # loans by number
_queue = deque()   # the numbers, to be looked at one after the other
_numbers = count()
_SWEPT = 64        # loans looked at in one go: a program may keep any number of arrays

# What is in other hands when Python ends stays where it is.
_api.Py_IncRef(_alive)
# A capsule has a name for as long as anybody has the capsule.
_NAMES = c_char_p(b"dltensor"), c_char_p(b"dltensor_versioned")
_api.Py_IncRef(_NAMES)
_DELETERS = tuple(cast(deleter, c_void_p).value for deleter in (lib.tokmap_dlpack_deleted,
                                                                lib.tokmap_dlpack_deleted_versioned))


def sweep() -> None:
    """Ends the loans that are over, so that their memory can be used again."""
    if len(_queue) < len(_alive):  # Ctrl-C came while one was looked at, or another thread looks at some
        _queue.extend(set(_alive) - set(_queue))
    for _ in range(min(len(_queue), _SWEPT)):
        try:
            number = _queue.popleft()
        except IndexError:  # another thread sweeps, too
            return
        loan = _alive.get(number)
        if loan is None:
            continue
        if loan.over():
            _alive.pop(number, None)
        else:
            _queue.append(number)


def _capsule(array: Array, versioned: bool):
    sweep()
    loan, dimensions = _Loan(), len(array.shape)
    loan.array, loan.ended, loan.name = array, c_uint32(0), _NAMES[versioned]
    loan.shape, loan.strides, step = (c_int64 * dimensions)(*array.shape), (c_int64 * dimensions)(), 1
    for i in reversed(range(dimensions)):
        loan.strides[i] = step
        step *= array.shape[i]
    loan.managed = managed = (_Versioned if versioned else _Managed)()
    if versioned:
        managed.major, managed.minor = 1, 0
    tensor = managed.tensor
    tensor.data = array.address
    tensor.device.type, tensor.device.number = array.__dlpack_device__()
    tensor.dimensions = dimensions
    tensor.type.code = 1 if array.dtype[0] == "u" else 0
    tensor.type.bits, tensor.type.lanes = 8 * BYTES[array.dtype], 1
    tensor.shape, tensor.strides = loan.shape, loan.strides
    managed.context, managed.deleter = addressof(loan.ended), _DELETERS[versioned]
    capsule = loan.capsule = _api.PyCapsule_New(addressof(managed), loan.name, None)
    number = next(_numbers)
    _alive[number] = loan
    _queue.append(number)
    return capsule


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
