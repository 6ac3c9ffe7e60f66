"""What Loader and RunDataset share: the library's loader inside of them, used by one thread at a time, and its end."""
from __future__ import annotations

from _thread import RLock
from functools import wraps

from ._library import lib
from .errors import ArgumentError, ClosedError


def alone(method):
    """A method that one thread at a time runs. A signal handler runs inside a call of its own thread, between any two lines
    of it: it does not wait for that call, which would be for ever, and is refused."""
    @wraps(method)
    def run(self, *arguments, **options):
        if self._lock._is_owned():
            raise self._interrupted()
        with self._lock:
            return method(self, *arguments, **options)
    return run


class Reader:
    """Keeps a loader of the library for a run. The run knows the handle, too: both may be finalized in any order."""
    _handle = None
    _name = "loader"

    def __init__(self, run):
        self.run = run
        self._lock = RLock()

    def _interrupted(self) -> ArgumentError:
        return ArgumentError(f"the {self._name} is in use by this very thread, which a signal handler has interrupted: "
                             f"set a flag in the handler, and look at it when the call is over")

    def _open(self) -> int:
        if self._handle is None:
            raise ClosedError(f"the {self._name} is closed")
        return self._handle

    def _take(self, handle: int) -> None:
        """Keeps this one from now on; the one that was kept before is closed."""
        self.run._readers.add(handle)
        before, self._handle = self._handle, handle
        self._drop(before)

    def _drop(self, handle: int | None, close=lib.tokmap_loader_close) -> None:
        if handle is not None:
            try:
                self.run._readers.remove(handle)
            except KeyError:  # the run was finalized first, and has closed it
                return
            close(handle)

    @alone
    def close(self) -> None:
        """Frees what it holds; a second close does nothing. The run stays open."""
        handle, self._handle = self._handle, None
        self._drop(handle)

    def __del__(self):
        handle, self._handle = self._handle, None
        self._drop(handle)
