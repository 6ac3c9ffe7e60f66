# SPDX-License-Identifier: MIT
"""What Loader and RunDataset share: the fields of a batch; and a loader of the library, which one thread at a time
uses, and how it ends."""
from __future__ import annotations

import atexit
import os
import weakref
from _thread import RLock, get_ident
from ctypes import byref, sizeof
from functools import wraps
from time import sleep

from . import _library as c
from ._library import check, lib
from .errors import ArgumentError
from .handles import LoaderHandle, drop_handle
from .opened_run import OpenedRun

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, TypeVar

    from .hints import Field, Fields

    Method = TypeVar("Method", bound="Callable[..., Any]")

#: The fields with one element per token of a row, so of shape [rows, seq_len].
TOKEN_FIELDS = ("inputs", "targets", "position_ids", "document_ids", "loss_mask", "labels")


def parse_fields(fields: Fields) -> tuple[Field, ...]:
    """The names in a text such as "inputs targets", or in a sequence of names, each once, in their order. A set's order
    differs among processes, so its names are in the order of the library's bits."""
    names: list[Any] = fields.replace(",", " ").split() if isinstance(fields, str) else list(fields)
    for name in names:
        if name not in c.FIELDS:
            raise ArgumentError(f"fields contains {name!r}, which is not a field: the fields are {', '.join(c.FIELDS)}")
    if isinstance(fields, (set, frozenset)):
        names.sort(key=c.FIELDS.__getitem__)
    return tuple(dict.fromkeys(names))


def field_bits(names: Iterable[str]) -> int:
    """The value of tokmap_loader_options.fields for these names."""
    bits = 0
    for name in names:
        bits |= c.FIELDS[name]
    return bits


#: The elements of values, and the dtypes of their arrays.
_ELEMENTS = {"u8": "uint8", "u16": "uint16", "u32": "uint32", "f16": "float16", "bf16": "bfloat16", "f32": "float32"}


def parse_values(values: str | Iterable[str] | None) -> tuple[str, ...]:
    """The names in a text such as "teacher_ids teacher", or in a sequence of names."""
    return tuple((values or "").replace(",", " ").split() if values is None or isinstance(values, str) else values)


def values_of(handle: LoaderHandle, names: Iterable[str]) -> list[tuple[str, tuple[int, ...], str]]:
    """The name of each array of values, the shape of what a token has, and its dtype."""
    found, arrays = c.ValuesInfo(sizeof(c.ValuesInfo)), []
    for k, name in enumerate(names):
        check(lib.tokmap_loader_values(handle, k, byref(found)))
        arrays.append((name, tuple(found.shape[:found.dimensions]), _ELEMENTS[found.element.decode()]))
    return arrays


#: Seconds between two looks at a thread that is in the last instructions of next().
_SETTLES = 0.0001


def exclusive(method: Method) -> Method:
    """Decorates a method that one thread at a time may run; other threads wait.

    A signal handler runs in the thread that it interrupts, between any two lines. If that thread is inside an exclusive
    method, waiting for it would never end, so the handler's call raises an ArgumentError instead.
    """
    @wraps(method)
    def run(self: Reader, *arguments: Any, **options: Any) -> Any:
        while True:
            if self._lock._is_owned() or self._returning == get_ident():  # type: ignore[attr-defined]
                raise self._interrupted()
            with self._lock:
                if not self._returning:
                    found = method(self, *arguments, **options)
                    return found  # apart from the call, so that an exception after it is one inside of `with`
            sleep(_SETTLES)
    return run  # type: ignore[return-value]


class Reader:
    """Keeps a loader of the library for a run. Its handle keeps that of the run, so the run ends after it."""
    _handle: LoaderHandle | None = None
    _name = "loader"
    _returning = 0  # the thread that has a batch from next() and has not returned yet; it does not have the lock

    def __init__(self, run: OpenedRun) -> None:
        if not isinstance(run, OpenedRun):
            raise ArgumentError(f"run is {run!r}, but it must be a tokmap.Run: use run.loader() or run.dataset()")
        self.run = run
        self._lock = RLock()
        _readers.add(self)

    def _interrupted(self) -> ArgumentError:
        return ArgumentError(f"this thread was using the {self._name} when the signal handler interrupted it: set a "
                             f"flag in the handler, and act on the flag after the call has returned")

    def _open(self) -> LoaderHandle:
        """The handle, for a call of the library."""
        handle = self._handle  # read once: another thread may close the loader
        if handle is None:
            raise ArgumentError(f"the {self._name} is closed")
        return handle

    def _stop_at_exit(self) -> None:
        """Called where a method has failed. If that is because the program ends, other threads than the one that ends
        it stop here, as Python stops daemon threads, and print nothing."""
        while _exiting and _exiting != get_ident():
            sleep(3600)

    def _renew(self) -> None:
        """In a child after fork(): the threads that had the locks exist in the parent only."""
        if not self._lock._is_owned():  # type: ignore[attr-defined]
            self._lock = RLock()
        if self._returning != get_ident():
            self._returning = 0

    @exclusive
    def close(self) -> None:
        """Frees the loader's memory. A second close has no effect. The run stays open."""
        self._finish()

    def _finish(self) -> None:
        self._handle = None

    def _end(self, seconds: float) -> None:
        """Closes at the end of the program. Leaves it if another thread does not come out of a method in time."""
        if self._lock.acquire(timeout=seconds):
            try:
                self._finish()
            finally:
                self._lock.release()

    __del__ = drop_handle


_readers: weakref.WeakSet[Reader] = weakref.WeakSet()


def _after_fork() -> None:
    for reader in list(_readers):
        reader._renew()


os.register_at_fork(after_in_child=_after_fork)

_exiting = 0  # the thread that ends the program
#: Seconds that the end of a program waits for a thread that is inside a method.
_EXIT_S = 2.0


def exiting() -> bool:
    """Whether the program is ending. Then nothing may wait."""
    return _exiting != 0


def _at_exit() -> None:
    """Closes what is still open when the program ends: a loader in a cycle, in a daemon thread, or in an extension
    would otherwise keep its own thread inside the GPU's driver while the driver ends."""
    global _exiting
    _exiting = get_ident()
    for reader in list(_readers):
        reader._end(_EXIT_S)


# Functions that are registered later run earlier, so those of the program still find its loaders open. The driver's own
# run after all of Python's.
atexit.register(_at_exit)
