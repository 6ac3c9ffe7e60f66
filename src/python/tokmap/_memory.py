# SPDX-License-Identifier: MIT
"""Where the elements of an array, a tensor, or a buffer are in memory. Whatever of a program's the library reads or
writes in place passes through find(), which asks the object itself and never the one that it is a part of: a slice, a
reversed or a cast view has an address, a length, and strides of its own."""
from __future__ import annotations

import sys
from array import array
from ctypes import PYFUNCTYPE, c_char, c_int, c_void_p, py_object, pythonapi

from ._library import numpy_or_none, of_type
from .dlpack import BYTES, Array, rows_of
from .errors import ArgumentError, error_of

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any

_KINDS = {**dict.fromkeys("bhilqn", "int"), **dict.fromkeys("BHILQN", "uint"), **dict.fromkeys("efd", "float")}
_CODES = {"bool": "B", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H",
          "uint32": "I", "uint64": "Q"}
_WANTED = "a list of whole numbers, an array.array, a NumPy array or torch tensor of integers, or another buffer"
_get = PYFUNCTYPE(c_int, py_object, c_void_p, c_int)(("PyObject_GetBuffer", pythonapi))
_release = PYFUNCTYPE(None, c_void_p)(("PyBuffer_Release", pythonapi))


class Memory:
    """Elements in memory: the address of the first one, their type ("int64", "bool"; the buffer's own word for what are
    not whole numbers in the byte order of this machine), their shape, strides in bytes, and the bytes of each; whether
    they may be written; and their device. `owner` keeps them alive."""

    def __init__(self, address: int, type: str, shape: tuple[int, ...], strides: tuple[int, ...] | None, bytes: int,
                 owner: object, writable: bool = True, device: str = "cpu") -> None:
        self.address, self.type, self.shape, self.bytes, self.owner = address, type, shape, bytes, owner
        self.strides, self.writable, self.device = strides or rows_of(shape, bytes), writable, device
        self.count = shape[0] if shape else 1

    @property
    def contiguous(self) -> bool:
        """Whether the elements follow one another, in the order of rows."""
        return 0 in self.shape or all(length == 1 or stride == wanted for length, stride, wanted in
                                      zip(self.shape, self.strides, rows_of(self.shape, self.bytes)))

    def tolist(self) -> list[int]:
        """The elements of a contiguous array of whole numbers."""
        raw: Any = (c_char * (self.count * self.bytes)).from_address(self.address) if self.count else b""
        return memoryview(raw).cast("B").cast(_CODES[self.type]).tolist()  # type: ignore[call-overload,no-any-return]


def find(value: Any, name: str) -> Memory | None:
    """Where the elements of an array, a tensor, or a buffer are; None of any other object."""
    masked: Any = sys.modules.get("numpy.ma")
    try:
        exporter = value.obj if isinstance(value, memoryview) else value
        if masked is not None and isinstance(exporter, masked.MaskedArray) and masked.is_masked(exporter):
            raise ValueError("some are masked; pass its .compressed(), or .filled(VALUE)")
        if hasattr(value, "data_ptr") and hasattr(value, "element_size"):
            found = _of_torch(value)
        elif isinstance(value, Array):
            found = Memory(value.address, value.dtype, value.shape, None, BYTES[value.dtype], value, True, value.device)
        elif hasattr(value, "__cuda_array_interface__") and not hasattr(value, "__array_interface__"):
            found = _of_cuda(value)
        else:
            found = _of_buffer(memoryview(value))
        if not found.address and 0 not in found.shape and found.device == "cpu":
            raise BufferError("they have no address")  # of a masked tensor of torch, for example
    except TypeError:
        return None
    except (ValueError, BufferError, RuntimeError) as problem:  # NumPy's dates, sparse tensors, released views
        raise ArgumentError(f"the elements of {name}, {of_type(value)}, cannot be read in memory: {problem}") from None
    return found


def _of_torch(tensor: Any) -> Memory:  # which needs no NumPy for this
    size = tensor.element_size()
    return Memory(tensor.data_ptr(), str(tensor.dtype).rpartition(".")[2], tuple(tensor.shape),
                  tuple(stride * size for stride in tensor.stride()), size, tensor, True, str(tensor.device))


def _of_cuda(value: Any) -> Memory:
    described = value.__cuda_array_interface__
    if described.get("mask") is not None:
        raise BufferError("they may be masked")
    word, size = described["typestr"], int(described["typestr"][2:])
    kind = {"<i": "int", "<u": "uint"}.get(word[:2].replace("|", "<"))
    return Memory(described["data"][0], f"{kind}{8 * size}" if kind else word, tuple(described["shape"]),
                  described.get("strides"), size, value, not described["data"][1], "cuda")


def _of_buffer(view: memoryview) -> Memory:
    raw = (c_void_p * 16)()  # a Py_buffer, whose first member is the address of the first element
    _get(view, raw, 0x11c)  # PyBUF_FULL_RO: with any strides, and also what may not be written
    address = raw[0] or 0
    _release(raw)
    word = view.format.lstrip("@=<" if len(view.format) > 1 else "")
    type = "bool" if word == "?" else f"{_KINDS[word]}{8 * view.itemsize}" if word in _KINDS else view.format
    return Memory(address, type, tuple(view.shape or ()), view.strides, view.itemsize, view, not view.readonly)


def _of_sequence(values: Any, name: str) -> Memory:
    try:
        stored: array[int] = array("q", values)
    except OverflowError:
        raise error_of("ERROR_TOKEN", f"{name} has a number that is too large for an id") from None
    except TypeError:
        raise ArgumentError(f"{name} must be {_WANTED}") from None
    return _of_buffer(memoryview(stored))


def elements(values: Any, name: str, anywhere: bool = False) -> Memory:
    """The elements of any array, tensor, buffer, or iterable of whole numbers, one after another. anywhere: those of a
    GPU, and those in another order of bytes, are copied instead of refused."""
    if isinstance(values, (str, dict, set, frozenset)):
        raise ArgumentError(f"{name} is {type(values).__name__}, but must be {_WANTED}")
    if isinstance(values, (list, tuple, range)):
        return _of_sequence(values, name)
    found, numpy = find(values, name), None
    if found is None and (hasattr(values, "__array__") or hasattr(values, "__dlpack__")):
        numpy = numpy_or_none()
    if numpy is not None:
        try:
            found = find(numpy.asanyarray(values) if hasattr(values, "__array__") else numpy.from_dlpack(values), name)
        except (TypeError, BufferError, RuntimeError) as problem:
            raise ArgumentError(f"{name} cannot be read as an array: {problem}") from None
    if found is None:
        return _of_sequence(values, name)
    if anywhere and hasattr(values, "dtype") and found.device != "meta" and \
            (found.device != "cpu" or found.type not in _CODES):
        return _of_sequence(values.tolist(), name)
    if found.type not in _CODES or found.device != "cpu":
        raise ArgumentError(f"{name} has elements of the type '{found.type}' on {found.device}, but must have whole "
                            f"numbers in this machine's byte order on the host (.cpu() copies a tensor): {_WANTED}")
    if len(found.shape) != 1:
        raise ArgumentError(f"{name} has {len(found.shape)} dimensions, but must have 1; use .flatten()")
    if found.contiguous:
        return found
    owner: Any = found.owner
    if not isinstance(owner, memoryview):
        return elements(owner.contiguous(), name)
    copy = elements(owner.tobytes(), name)
    return Memory(copy.address, found.type, found.shape, None, found.bytes, copy.owner)
