"""The statuses of tokmap.h as exceptions.

Every failure of the library is a TokmapError with the library's own sentence. Each is also the built-in exception that a
Python program would expect there (FileNotFoundError, ValueError, MemoryError, ...), so code that knows nothing of tokmap
catches it too.
"""
from __future__ import annotations

_DETAILS = ("status", "message", "path", "offset", "line", "system", "device")


class TokmapError(Exception):
    """What went wrong.

    status   the name of the status in tokmap.h ("ERROR_RANGE"), or "" for what this package found by itself
    message  the sentence alone; str() also names file, line and position
    path     the file, or None        offset  the byte in it, or None        line  of a run file or manifest, or None
    system   errno, or 0              device  CUDA's result code, or 0
    """

    status: str = ""

    def __init__(self, text: str = "", *rest, **details):
        super().__init__(text, *rest)
        self.text = str(text)
        self.message = details.get("message", self.text)
        self.path = details.get("path")
        self.offset = details.get("offset")
        self.line = details.get("line")
        self.system = details.get("system", 0)
        self.device = details.get("device", 0)
        if details.get("status"):
            self.status = details["status"]
        if isinstance(self, OSError):
            self.errno = self.system or None
            self.filename = self.path

    def __str__(self) -> str:
        return self.text

    def __reduce__(self):
        return (_again, (type(self), self.text, {name: getattr(self, name) for name in _DETAILS}))


def _again(kind, text, details):
    return kind(text, **details)


class End(TokmapError, StopIteration):
    """The run is at its end. A StopIteration, so that a for loop ends."""
    status = "END"


class ArgumentError(TokmapError, ValueError):
    """An argument is missing or out of range."""
    status = "ERROR_ARGUMENT"


class OutputError(ArgumentError, TypeError):
    """An output that cannot be written to: it names the field, what was expected and what was found."""


class ClosedError(ArgumentError):
    """Use of a loader, run or dataset that was closed."""


class OutOfMemoryError(TokmapError, MemoryError):
    """Out of memory."""
    status = "ERROR_MEMORY"


class IoError(TokmapError, OSError):
    """The system refused or failed an operation on a file."""
    status = "ERROR_IO"


class NotFoundError(TokmapError, FileNotFoundError):
    """No such file, dataset, source or item."""
    status = "ERROR_NOT_FOUND"


class ExistsError(TokmapError, FileExistsError):
    """The output exists already."""
    status = "ERROR_EXISTS"


class BusyError(TokmapError, OSError):
    """Another process is writing this output."""
    status = "ERROR_BUSY"


class FormatError(TokmapError, ValueError):
    """Not a file of the expected format."""
    status = "ERROR_FORMAT"


class VersionError(TokmapError, ValueError):
    """The file was written for a newer major version of the format."""
    status = "ERROR_VERSION"


class CorruptError(TokmapError, ValueError):
    """The content of a file contradicts its checksums or itself."""
    status = "ERROR_CORRUPT"


class TruncatedError(TokmapError, EOFError):
    """A file is shorter or longer than its index says."""
    status = "ERROR_TRUNCATED"


class MismatchError(TokmapError, ValueError):
    """Files that must agree with each other do not."""
    status = "ERROR_MISMATCH"


class RangeError(TokmapError, IndexError, ValueError):
    """A number lies outside what the dataset or the run has."""
    status = "ERROR_RANGE"


class RunError(TokmapError, ValueError):
    """The text of the run is wrong."""
    status = "ERROR_RUN"


class CursorError(TokmapError, ValueError):
    """The state is not one of a loader."""
    status = "ERROR_CURSOR"


class PastError(TokmapError, ValueError):
    """The state is of another run: the sentence names each kind of difference."""
    status = "ERROR_PAST"


class TokenError(TokmapError, ValueError):
    """A token id is not in the vocabulary."""
    status = "ERROR_TOKEN"


class InputError(TokmapError, ValueError):
    """A record of the input is wrong."""
    status = "ERROR_INPUT"


class EncodingError(TokmapError, ValueError):
    """The input is not valid UTF-8."""
    status = "ERROR_ENCODING"


class LimitError(TokmapError, ValueError):
    """A size is over its limit."""
    status = "ERROR_LIMIT"


class InterruptedByCaller(TokmapError, InterruptedError):
    """A call ended because its callback said so."""
    status = "ERROR_INTERRUPTED"


class UnsupportedError(TokmapError, NotImplementedError):
    """This build or this version cannot do that."""
    status = "ERROR_UNSUPPORTED"


class InternalError(TokmapError, RuntimeError):
    """A fault in tokmap itself."""
    status = "ERROR_INTERNAL"


class DeviceError(TokmapError, RuntimeError):
    """The GPU or its driver failed an operation; device is CUDA's result code."""
    status = "ERROR_DEVICE"


class NoDeviceError(TokmapError, RuntimeError):
    """No such GPU, or no usable driver: the sentence says why."""
    status = "ERROR_NO_DEVICE"


class LibraryError(TokmapError, ImportError):
    """libtokmap is not there, or is of another version than this package."""


#: Statuses by number, in the order of TOKMAP_STATUS_MAP.
STATUSES = (None, End, ArgumentError, OutOfMemoryError, IoError, NotFoundError, ExistsError, BusyError, FormatError,
            VersionError, CorruptError, TruncatedError, MismatchError, RangeError, RunError, CursorError, PastError,
            TokenError, InputError, EncodingError, LimitError, InterruptedByCaller, UnsupportedError, InternalError,
            DeviceError, NoDeviceError)
