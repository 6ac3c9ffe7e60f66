"""What Loader and RunDataset share: a loader of the library, which one thread at a time uses, and how it ends."""
from __future__ import annotations

from _thread import RLock
from functools import wraps

from ._library import lib
from .errors import ArgumentError, ClosedError
from .opened_run import OpenedRun

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    Method = TypeVar("Method", bound="Callable[..., Any]")


def exclusive(method: Method) -> Method:
    """Decorates a method that one thread at a time may run; other threads wait.

    A signal handler runs in the thread that it interrupts, between any two lines. If that thread is inside an exclusive
    method, waiting for it would never end, so the handler's call raises an ArgumentError instead.
    """
    @wraps(method)
    def run(self: Reader, *arguments: Any, **options: Any) -> Any:
        if self._lock._is_owned():  # type: ignore[attr-defined]
            raise self._interrupted()
        with self._lock:
            return method(self, *arguments, **options)
    return run  # type: ignore[return-value]


class Reader:
    """Keeps a loader of the library for a run.

    The run keeps the handle too, because Python may finalize the two objects in any order: whoever removes the handle
    from run._readers closes the loader.
    """
    _handle: int | None = None
    _name = "loader"

    def __init__(self, run: OpenedRun) -> None:
        if not isinstance(run, OpenedRun):
            raise ArgumentError(f"run is {run!r}, but it must be a tokmap.Run: use run.loader() or run.dataset()")
        self.run = run
        self._lock = RLock()

    def _interrupted(self) -> ArgumentError:
        return ArgumentError(f"this thread was using the {self._name} when the signal handler interrupted it: set a "
                             f"flag in the handler, and act on the flag after the call has returned")

    def _open(self) -> int:
        """The handle, for a call of the library."""
        if self._handle is None:
            raise ClosedError(f"the {self._name} is closed")
        return self._handle

    def _replace(self, handle: int) -> None:
        """Keeps a new handle, and closes the previous one."""
        self.run._readers.add(handle)
        previous, self._handle = self._handle, handle
        self._release(previous)

    def _release(self, handle: int | None, close: Callable[[int], None] = lib.tokmap_loader_close) -> None:
        if handle is not None:
            try:
                self.run._readers.remove(handle)
            except KeyError:  # the run was finalized first, and has closed the loader
                return
            close(handle)

    @exclusive
    def close(self) -> None:
        """Frees the loader's memory. A second close has no effect. The run stays open."""
        handle, self._handle = self._handle, None
        self._release(handle)

    def __del__(self) -> None:
        handle, self._handle = self._handle, None
        self._release(handle)
