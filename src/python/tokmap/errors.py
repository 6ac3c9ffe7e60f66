# SPDX-License-Identifier: MIT
"""Errors: eight classes that programs catch, and the status of tokmap.h, which says more.

Every failure of the library raises a TokmapError with the library's message. A table says which of the eight classes
the errors of a status have, and which built-in exceptions they are besides (FileNotFoundError, MemoryError, ...), so
code that does not import tokmap can catch them, too.
"""
from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ArgumentError", "DataError", "DeviceError", "InputError", "IoError", "PastError", "RunError", "TokmapError"]
_DETAILS = ("status", "message", "path", "offset", "line", "system", "device", "field")


class TokmapError(Exception):
    """A failure of the library or of this package. str() is the whole text, with file, line, and position.

    status   the name of the status in tokmap.h, for example "ERROR_RANGE"; "" for some errors of this package itself
    message  the message without file, line, and position
    path     the file, or None
    offset   the byte offset in the file, or None
    line     the line of a run file, manifest, or input, from 1, or None
    system   the errno of the failed system call, or 0
    device   the CUDA result code, or 0
    field    the argument that is wrong, such as "rank", if the library knows it, or None
    """

    status: str = ""
    text: str
    message: str
    path: str | None
    offset: int | None
    line: int | None
    system: int
    device: int
    field: str | None

    def __init__(self, text: str = "", *rest: object, **details: Any) -> None:
        super().__init__(text, *rest)
        self.text = str(text)
        self.message = details.get("message", self.text)
        self.path = details.get("path")
        self.offset = details.get("offset")
        self.line = details.get("line")
        self.system = details.get("system", 0)
        self.device = details.get("device", 0)
        self.field = details.get("field")
        if details.get("status"):
            self.status = details["status"]
        if isinstance(self, OSError):
            setattr(self, "errno", self.system or None)  # OSError declares them
            setattr(self, "filename", self.path)

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        kind = type(self)
        return (_rebuild, (vars(kind).get("_made_of", kind), self.text,
                           {name: getattr(self, name) for name in _DETAILS}))


def _rebuild(kind: type[TokmapError] | tuple[Any, ...], text: str, details: dict[str, Any]) -> TokmapError:
    return (class_of(*kind) if isinstance(kind, tuple) else kind)(text, **details)


class ArgumentError(TokmapError, ValueError):
    """An argument is missing, out of range (an IndexError), or of a type that is never right here (a TypeError); or a
    loader, run, dataset, or tokenizer was used after it had been closed; or a loop over a loader begins after the run
    has ended. The message says what to do."""
    status = "ERROR_ARGUMENT"


class RunError(TokmapError, ValueError):
    """The text of a run is invalid."""
    status = "ERROR_RUN"


class PastError(TokmapError, ValueError):
    """The run's past differs from the past that the cursor records. The message names each kind that differs."""
    status = "ERROR_PAST"


class DataError(TokmapError, ValueError):
    """A file is damaged, is of another format or version, or does not match other files. One that is shorter or longer
    than its index says is an EOFError, too."""


class InputError(TokmapError, ValueError):
    """What is to be encoded or packed is invalid: a record, a text that is not UTF-8, an id outside the vocabulary."""
    status = "ERROR_INPUT"


class IoError(TokmapError, OSError):
    """A file does not exist (a FileNotFoundError), exists already (a FileExistsError), is being written by another
    process, could not be read in time (a TimeoutError), or an operation on it failed."""
    status = "ERROR_IO"


class DeviceError(TokmapError, RuntimeError):
    """The GPU does not exist, has no usable driver, or an operation on it failed. device is the CUDA result code."""
    status = "ERROR_DEVICE"


#: By status, in the order of TOKMAP_STATUS_MAP: the class of its errors, and what they are besides.
STATUSES: dict[str, tuple[Any, ...]] = {
    "OK": (TokmapError,),
    "END": (TokmapError, StopIteration),
    "ERROR_ARGUMENT": (ArgumentError,),
    "ERROR_MEMORY": (TokmapError, MemoryError),
    "ERROR_IO": (IoError,),
    "ERROR_NOT_FOUND": (IoError, FileNotFoundError),
    "ERROR_EXISTS": (IoError, FileExistsError),
    "ERROR_BUSY": (IoError,),
    "ERROR_FORMAT": (DataError,),
    "ERROR_VERSION": (DataError,),
    "ERROR_CORRUPT": (DataError,),
    "ERROR_TRUNCATED": (DataError, EOFError),
    "ERROR_MISMATCH": (DataError,),
    "ERROR_RANGE": (ArgumentError, IndexError),
    "ERROR_RUN": (RunError,),
    "ERROR_CURSOR": (ArgumentError,),
    "ERROR_PAST": (PastError,),
    "ERROR_TOKEN": (InputError,),
    "ERROR_INPUT": (InputError,),
    "ERROR_ENCODING": (InputError,),
    "ERROR_LIMIT": (ArgumentError,),
    "ERROR_INTERRUPTED": (TokmapError, InterruptedError),
    "ERROR_UNSUPPORTED": (TokmapError, NotImplementedError),
    "ERROR_INTERNAL": (TokmapError, RuntimeError),
    "ERROR_DEVICE": (DeviceError,),
    "ERROR_NO_DEVICE": (DeviceError,),
    "ERROR_TIMEOUT": (IoError, TimeoutError),
    "": (TokmapError, ImportError),  # of this package: libtokmap could not be loaded, or has another version
}
_made: dict[tuple[Any, ...], type[TokmapError]] = {}


def class_of(status: str, *more: type[Exception]) -> type[TokmapError]:
    """The class of the errors of a status that are also of the built-in classes `more`. It has the name of the one of
    the eight that it is derived from."""
    key = status, *more
    if key not in _made:
        kinds: tuple[Any, ...] = (*STATUSES[status], *more)
        first = made = kinds[0]
        if len(kinds) > 1 or first.status != status:
            made = type(first.__name__, kinds, {
                "__doc__": first.__doc__, "__module__": first.__module__, "status": status, "_made_of": key})
        _made[key] = made
    return _made[key]


def error_of(status: str, text: str, *more: type[Exception], **details: Any) -> TokmapError:
    """An error of a status, which is also of the built-in classes `more`."""
    return class_of(status, *more)(text, **details)
