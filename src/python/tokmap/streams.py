"""CUDA streams as the caller passes them: numbers, and the objects of torch, CuPy, Numba, and cuda.core.

A handle is the address of the driver's stream. 0 and 1 are the legacy default stream, and 2 is the default stream of
the thread.
"""
from __future__ import annotations

from operator import index

from .errors import ArgumentError

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any

    from .hints import Stream


def _member(stream: Any) -> Any:
    """What a stream object says about its handle."""
    for name in ("cuda_stream", "ptr"):  # torch; CuPy
        found = getattr(stream, name, None)
        if found is not None:
            return found
    protocol: Any = getattr(stream, "__cuda_stream__", None)  # (version, handle); at first a property
    if protocol is not None:
        said: Any = protocol() if callable(protocol) else protocol
        return said[1]
    found = getattr(stream, "handle", None)  # Numba, where its value is None for the default stream
    return stream if found is None else (found.value or 0) if hasattr(found, "value") else found


def stream_handle(stream: Stream) -> int:
    """The handle of a CUDA stream, given as a number or as an object that has one: of torch, CuPy, Numba, cuda.core, or
    cuda.bindings, or any with __cuda_stream__."""
    handle = None
    try:
        found = _member(stream)
        # A CUstream of cuda.bindings has int(), but no index. Numbers with fractions have as_integer_ratio().
        handle = int(found) if hasattr(found, "__int__") and not hasattr(found, "as_integer_ratio") else index(found)
    except (TypeError, ValueError, IndexError, KeyError):
        pass
    if handle is None or isinstance(stream, bool) or not 0 <= handle < 2 ** 64:
        raise ArgumentError(f"stream is {stream!r}: pass a CUDA stream, or its handle as a number")
    return handle


def owns(stream: Stream) -> bool:
    """Whether the object certainly owns its stream, which then lives as long as the object: the class Stream of torch
    and CuPy, unless it was made for a stream that something else owns. Such a stream has its handle as its stream_id in
    torch (get_stream_from_external()), and refers to the other object in CuPy (from_external()). A handle as a number
    owns nothing, and neither does an ExternalStream."""
    kind: Any = type(stream)
    if kind.__name__ != "Stream":
        return False
    framework, found = kind.__module__.split(".")[0], stream
    if framework == "torch":
        return bool(getattr(found, "stream_id", stream_handle(found)) != stream_handle(found))
    other = getattr(found, "_foreign_stream_ref", None)
    return framework == "cupy" and (other is None or owns(other))
