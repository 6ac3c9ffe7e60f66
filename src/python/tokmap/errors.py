# SPDX-License-Identifier: MIT
"""The statuses of tokmap.h as exceptions.

Every failure of the library raises a TokmapError with the library's message. Each class is also a subclass of the
built-in exception that a Python program expects in that case (FileNotFoundError, ValueError, MemoryError, ...), so code
that does not import tokmap can catch it too.
"""
from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Match

__all__ = [
    "ArgumentError", "ArgumentTypeError", "BusyError", "ClosedError", "CorruptError", "CursorError", "DeadlineError",
    "DeviceError", "EncodingError", "End", "EndedError", "ExistsError", "FormatError", "InputError", "InternalError",
    "InterruptedByCaller", "IoError", "LibraryError", "LimitError", "MismatchError", "MissingInputError",
    "NoDeviceError", "NotFoundError", "OutOfMemoryError", "OutputError", "PastError", "RangeError", "RunError",
    "TokenError", "TokmapError", "TruncatedError", "UnsupportedError", "VersionError",
]
_DETAILS = ("status", "message", "path", "offset", "line", "system", "device")


class TokmapError(Exception):
    """A failure of the library or of this package. str() is the whole text, with file, line, and position.

    status   the name of the status in tokmap.h, for example "ERROR_RANGE"; "" for some errors of this package itself
    message  the message without file, line, and position
    path     the file, or None
    offset   the byte offset in the file, or None
    line     the line of a run file, manifest, or input, from 1, or None
    system   the errno of the failed system call, or 0
    device   the CUDA result code, or 0
    """

    status: str = ""
    text: str
    message: str
    path: str | None
    offset: int | None
    line: int | None
    system: int
    device: int

    def __init__(self, text: str = "", *rest: object, **details: Any) -> None:
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
            setattr(self, "errno", self.system or None)  # OSError declares them
            setattr(self, "filename", self.path)

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.text, {name: getattr(self, name) for name in _DETAILS}))


def _rebuild(kind: type[TokmapError], text: str, details: dict[str, Any]) -> TokmapError:
    return kind(text, **details)


class End(TokmapError, StopIteration):
    """The run has ended. It is a StopIteration, so a for loop over a loader ends."""
    status = "END"


class ArgumentError(TokmapError, ValueError):
    """An argument is missing or out of range."""
    status = "ERROR_ARGUMENT"


class OutputError(ArgumentError, TypeError):
    """An array in out= cannot be written to. The message names the field, what was expected, and what was found."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument is of a type that is never right here, such as a dict in place of a list of dicts."""


class EndedError(ArgumentError):
    """A loop over a loader begins after the run has ended. The message says how to read the run again."""


class ClosedError(ArgumentError):
    """A loader, run, or dataset was used after it had been closed."""


class OutOfMemoryError(TokmapError, MemoryError):
    """Out of memory."""
    status = "ERROR_MEMORY"


class IoError(TokmapError, OSError):
    """A file operation failed."""
    status = "ERROR_IO"


class NotFoundError(TokmapError, FileNotFoundError):
    """A file, dataset, source, or item does not exist."""
    status = "ERROR_NOT_FOUND"


class ExistsError(TokmapError, FileExistsError):
    """The output already exists."""
    status = "ERROR_EXISTS"


class BusyError(TokmapError, OSError):
    """Another process is writing this output."""
    status = "ERROR_BUSY"


class FormatError(TokmapError, ValueError):
    """The file does not have the expected format."""
    status = "ERROR_FORMAT"


class VersionError(TokmapError, ValueError):
    """The file or cursor has a newer major version of its format than this library reads."""
    status = "ERROR_VERSION"


class CorruptError(TokmapError, ValueError):
    """The content of a file does not match its checksums, or contradicts itself."""
    status = "ERROR_CORRUPT"


class TruncatedError(TokmapError, EOFError):
    """A file is shorter or longer than its index or header says."""
    status = "ERROR_TRUNCATED"


class MismatchError(TokmapError, ValueError):
    """Files that must agree with each other do not."""
    status = "ERROR_MISMATCH"


class RangeError(TokmapError, IndexError, ValueError):
    """A number is outside the range of the dataset or run."""
    status = "ERROR_RANGE"


class RunError(TokmapError, ValueError):
    """The run text is invalid."""
    status = "ERROR_RUN"


class CursorError(TokmapError, ValueError):
    """The text is not a valid cursor, or the state is not the state of a loader."""
    status = "ERROR_CURSOR"


class PastError(TokmapError, ValueError):
    """The run's past differs from the past that the cursor records. The message names each kind that differs."""
    status = "ERROR_PAST"


class TokenError(TokmapError, ValueError):
    """A token id is outside the vocabulary."""
    status = "ERROR_TOKEN"


class InputError(TokmapError, ValueError):
    """An input record is invalid."""
    status = "ERROR_INPUT"


class MissingInputError(InputError, NotFoundError):
    """A file that pack() is to read does not exist. It is an InputError, and a FileNotFoundError as well."""
    status = "ERROR_NOT_FOUND"


class EncodingError(TokmapError, ValueError):
    """The input is not valid UTF-8."""
    status = "ERROR_ENCODING"


class LimitError(TokmapError, ValueError):
    """A size exceeds its limit."""
    status = "ERROR_LIMIT"


class InterruptedByCaller(TokmapError, InterruptedError):
    """A callback stopped the call."""
    status = "ERROR_INTERRUPTED"


class UnsupportedError(TokmapError, NotImplementedError):
    """This build or version does not support the operation."""
    status = "ERROR_UNSUPPORTED"


class InternalError(TokmapError, RuntimeError):
    """An internal error in tokmap."""
    status = "ERROR_INTERNAL"


class DeviceError(TokmapError, RuntimeError):
    """An operation failed on the GPU or in its driver. device is the CUDA result code."""
    status = "ERROR_DEVICE"


class NoDeviceError(TokmapError, RuntimeError):
    """The GPU does not exist, or has no usable driver. The message gives the reason."""
    status = "ERROR_NO_DEVICE"


class DeadlineError(TokmapError, TimeoutError):
    """A read took longer than its deadline."""
    status = "ERROR_TIMEOUT"


class LibraryError(TokmapError, ImportError):
    """libtokmap could not be loaded, or has another version than this package."""


#: Statuses by number, in the order of TOKMAP_STATUS_MAP.
STATUSES: tuple[type[TokmapError], ...] = (
    TokmapError, End, ArgumentError, OutOfMemoryError, IoError, NotFoundError, ExistsError, BusyError, FormatError,
    VersionError, CorruptError, TruncatedError, MismatchError, RangeError, RunError, CursorError, PastError, TokenError,
    InputError, EncodingError, LimitError, InterruptedByCaller, UnsupportedError, InternalError, DeviceError,
    NoDeviceError, DeadlineError)


# ---- the library's messages in Python's words ----
#
# The library names the members of its structs (options.rank), its constants (TOKMAP_TARGETS), and its functions. A
# Python program knows arguments (rank), values ("targets"), and methods. tests/python/test_messages.py applies this to
# every message in the library's sources.

_CONSTANTS = {
    "INPUTS": '"inputs"', "TARGETS": '"targets"', "POSITION_IDS": '"position_ids"', "ROWS": '"rows"',
    "DOCUMENT_IDS": '"document_ids"', "LOSS_MASK": '"loss_mask"', "CU_SEQLENS": '"cu_seqlens"',
    "TARGETS_AHEAD": '"targets_ahead"', "LABELS": '"labels"',
    "I32": "int32", "I64": "int64", "SHUFFLE": '"shuffle"', "SEQUENTIAL": '"sequential"', "FOREVER": "None",
    "READ_AUTO": '"auto"', "READ_MAPPED": '"mapped"', "READ_PREAD": '"pread"', "IGNORE": "-100",
}
#: Members of the library's structs whose arguments have other names.
_MEMBERS = {"options.ordering": "order", "out.type": "dtype", "options.vocabulary": "vocab_size",
            "options.eod_id": "eod", "options.bos_id": "bos", "options.column_count": "columns"}
#: The class whose methods do what the functions of a handle do, and methods that have other names.
_CLASSES = {"loader": "loader", "dataset": "Dataset", "run": "Run"}
_METHODS = {"copy": "tokens", "open": "__init__"}


def _constant(found: Match[str]) -> str:
    return _CONSTANTS.get(found.group(1), found.group())


def _member(found: Match[str]) -> str:
    whole, struct, name = found.group(), found.group(1), found.group(2)
    return _MEMBERS.get(whole) or (name if struct == "options" else whole)


def _function(found: Match[str]) -> str:
    handle, verb = found.groups()
    return f"{_CLASSES[handle]}.{_METHODS.get(verb, verb)}()"


def in_python(message: str) -> str:
    """The message with the names that a Python program uses."""
    import re  # here, because importing this package should not wait for it
    message = re.sub(r"\bTOKMAP_([A-Z0-9_]+)", _constant, message)
    message = re.sub(r"\bset options\.([a-z_]+)\b(?! to\b)", r"pass \1=", message)
    message = re.sub(r"\b(options|out)\.([a-z_]+)", _member, message)
    message = re.sub(r"\btokmap_(loader|dataset|run)_([a-z]+)\(\)", _function, message)
    return message
