# SPDX-License-Identifier: MIT
"""Handles of the library: each closes what it holds when nothing uses it any more.

A handle is a pointer that the library itself fills in (byref(handle)), and whose finalizer is the library's function
that closes it. Both happen in C. So there is no moment at which something is open and belongs to nobody: if Ctrl-C
arrives right after the library has opened a dataset, Python drops the handle with the frame, and the dataset is closed.

Methods pass the handle itself to the library, and Python keeps the arguments of a call until the call has returned.
close() only drops the object's reference:

    thread 1                             thread 2
    lib.tokmap_dataset_copy(handle, ...)
        reads a file                     dataset.close()    the object refers to no handle; new calls are refused
    returns                              ...                the last reference is gone: tokmap_dataset_close(handle)

The count of references needs no lock, so nothing of it can be held by a thread that does not exist in a child after
fork(), and an exception cannot leave it wrong. A method that reads memory to which the library has pointed keeps the
handle in a variable until it has read it.

What a handle needs must be closed after it: a loader needs its run. `keeps` refers to that. Python's collector of
reference cycles runs finalizers in any order, so it does not see handles: they are finalized only when the last
reference to them is gone. A handle and what it keeps are never part of a cycle.
"""
from __future__ import annotations

from ctypes import CFUNCTYPE, PYFUNCTYPE, c_int, c_void_p, py_object, pythonapi
from operator import methodcaller

from ._library import lib

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    AnyHandle = TypeVar("AnyHandle", bound="Handle")

#: Makes a method of any callable. A finalizer in Python could be interrupted before its first instruction.
as_method: Callable[[Any], Any] = PYFUNCTYPE(py_object, py_object)(("PyInstanceMethod_New", pythonapi))
_untrack = PYFUNCTYPE(None, py_object)(("PyObject_GC_UnTrack", pythonapi))

#: A finalizer of an object that drops its handle before the rest of it, such as functions that the library calls.
drop_handle = as_method(methodcaller("__setattr__", "_handle", None))


class Handle(c_void_p):
    """A pointer that belongs to what it keeps."""
    __slots__ = ("keeps",)
    keeps: object


class DatasetHandle(Handle):
    __slots__ = ()
    __del__ = as_method(lib.tokmap_dataset_close)


class RunHandle(Handle):
    __slots__ = ()
    __del__ = as_method(lib.tokmap_run_close)


class WriterHandle(Handle):
    __slots__ = ()
    __del__ = as_method(lib.tokmap_writer_abandon)


class ValuesHandle(Handle):
    __slots__ = ()
    __del__ = as_method(CFUNCTYPE(c_int, c_void_p, c_void_p)(("tokmap_values_close", lib), ((1,), (1, "error", None))))


class LoaderHandle(Handle):
    __slots__ = ()
    __del__ = as_method(lib.tokmap_loader_close)


def new(kind: type[AnyHandle], keeps: object = None, address: int | None = None) -> AnyHandle:
    """A handle that the library can fill in, or the handle of something that belongs to `keeps`."""
    handle = kind(address)
    _untrack(handle)
    handle.keeps = keeps
    return handle
