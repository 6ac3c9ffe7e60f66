# SPDX-License-Identifier: MIT
"""libtokmap through ctypes: the structs and functions of tokmap.h, cuda.h, and pack.h, and conversions of arguments.

tests/python/test_layout.py compares every struct, constant, and status with the headers. ctypes releases the GIL during
every call of a CDLL.
"""
from __future__ import annotations

import os
from ctypes import (CDLL, CFUNCTYPE, POINTER, Structure, byref, c_char, c_char_p, c_double, c_int, c_int32, c_size_t,
                    c_uint8, c_uint32, c_uint64, c_void_p, create_string_buffer, sizeof)

from . import errors
from ._version import __version__ as __version__

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Literal, Mapping

    from .hints import Path

NO_OFFSET = FOREVER = NO_ID = DEFAULT = 2 ** 64 - 1
CURSOR_TEXT = 160
WAIT_BUCKETS = 64

FIELDS = {"inputs": 1 << 0, "targets": 1 << 1, "position_ids": 1 << 2, "rows": 1 << 3, "document_ids": 1 << 4,
          "loss_mask": 1 << 5, "cu_seqlens": 1 << 6, "targets_ahead": 1 << 7, "labels": 1 << 8,
          "source_ids": 1 << 9, "cu_seqlens_slice": 1 << 10}
#: enum tokmap_context_layout
LAYOUTS: tuple[Literal["contiguous"], Literal["zigzag"], Literal["zigzag_documents"]] = \
    ("contiguous", "zigzag", "zigzag_documents")
I32, I64 = 1, 5
ORDERS: tuple[Literal["shuffle"], Literal["sequential"], Literal["blocks"], Literal["even"]] = (
    "shuffle", "sequential", "blocks", "even")
#: enum tokmap_id_type
ID_TYPES = ("u32", "i32", "u16", "i16", "u64", "i64", "u8", "i8")
READINGS: tuple[Literal["auto"], Literal["mapped"], Literal["pread"]] = ("auto", "mapped", "pread")
_STATUSES = tuple(errors.STATUSES)
LIMIT = _STATUSES.index("ERROR_LIMIT")
NOT_FOUND = _STATUSES.index("ERROR_NOT_FOUND")
INTERRUPTED = _STATUSES.index("ERROR_INTERRUPTED")


_TYPES: dict[str, Any] = {"": c_uint64, "int": c_int, "u32": c_uint32, "double": c_double, "text": c_char_p,
                          "at": c_void_p, "id": c_uint8 * 16}


def members(names: str, **types: Any) -> list[tuple[str, Any]]:
    """The members of a struct in order. A name has its type behind a colon, is that of an argument, which is the type,
    or is a uint64_t; size is a size_t."""
    return [(name, types.get(name) or (c_size_t if name == "size" else _TYPES[kind]))
            for name, _, kind in (member.partition(":") for member in names.split())]


class Error(Structure):
    _fields_ = members("status:int system:int device:int line:u32 offset path message field",
                       path=c_char * 512, message=c_char * 768, field=c_char * 24)


class DatasetOptions(Structure):
    _fields_ = members("size reading:int")


class DatasetInfo(Structure):
    _fields_ = members("size kind:text tokens documents shards vocabulary largest_id eod_id bos_id width:u32 "
                       "masked:u32 page_hashes:u32 reading:int content:id identity:u32 tokenizer:id warning:text")


class ShardInfo(Structure):
    _fields_ = members("size index_path:text tokens_path:text first_token tokens first_document documents eod_id "
                       "bos_id content:id blocks index_bytes about:at about_bytes")


class Span(Structure):
    _fields_ = members("tokens:at count")


class Document(Structure):
    _fields_ = members("number first_token tokens shard")


class Origin(Structure):
    _fields_ = members("path:at path_bytes record")


class Value(Structure):
    _fields_ = members("json:text bytes")


class FoundValue(Structure):  # struct tokmap_value as a result, whose text is not terminated
    _fields_ = members("json:at bytes")


class ColumnInfo(Structure):
    _fields_ = members("size name:text shards documents values bytes")


class WriterOptions(Structure):
    _fields_ = members("size vocabulary width:u32 sync:int replace:int mask:int eod_id bos_id delimited:int "
                       "column_count:u32 columns:at tokenizer:id about:text")


class Documents(Structure):
    _fields_ = members("size ids:at type:int id_count ends:at document_count counted:at origin:text origin_bytes "
                       "record values:at")


class WriterInfo(Structure):
    _fields_ = members("size tokens documents width:u32")


class ValuesOptions(Structure):
    _fields_ = members("size replace:int holes:int nan:int")


class ValuesResult(Structure):
    _fields_ = members("size tokens missing repeated files")


class VerifyOptions(Structure):
    pass


FAULT = CFUNCTYPE(c_int, c_void_p, POINTER(Error))
PROGRESS = CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64)
VerifyOptions._fields_ = members("size threads:u32 fault progress user:at", fault=FAULT, progress=PROGRESS)


class VerifyResult(Structure):
    _fields_ = members("size bytes blocks faults")


ENDS = CFUNCTYPE(c_int, c_void_p, c_char_p, c_uint64, POINTER(c_uint64), c_uint64, POINTER(c_uint64), POINTER(Error))


class IndexOptions(Structure):
    _fields_ = members("size threads:u32 replace:int progress ends user:at tokenizer:at vocabulary "
                       "tokenizer_about:text", progress=PROGRESS, ends=ENDS)


class IndexResult(Structure):
    _fields_ = members("size files tokens documents bytes")


class RunOptions(Structure):
    _fields_ = members("size folder:text reading:int")


class RunInfo(Structure):
    _fields_ = members("size seq_len lookahead stride batch seq_len_most batch_most seed order:int width:u32 "
                       "blocks span sources validations phases steps delivered remainder real_rows_last vocabulary "
                       "pad_id tail_pad:u32 warning:text")


class SourceInfo(Structure):
    _fields_ = members("size name:text data:text dataset:at plan:text line windows tail epochs_most")


class PhaseInfo(Structure):
    _fields_ = members("size first_step end_step first_draw batch seq_len shares mixture_step line")


class ShareInfo(Structure):
    _fields_ = members("size source weight weights windows first_epoch first_draw draws")


class Place(Structure):
    _fields_ = members("step row draw source epoch window first_token tokens")


class Extent(Structure):
    _fields_ = members("first_token tokens")


class EvaluationOptions(Structure):
    _fields_ = members("size source:text part:text seq_len lookahead stride batch steps pad_id trained:u32 "
                       "reading:int")


FOUND = CFUNCTYPE(c_int, c_void_p, POINTER(Place))


class Cursor(Structure):
    _fields_ = members("step tokens past of", past=c_uint64 * 2, of=c_uint32 * 5)


class Stall(Structure):
    _fields_ = members("size step calls stalled wait_ns")


ALARM = CFUNCTYPE(None, c_void_p, POINTER(Stall))
EVENT = CFUNCTYPE(None, c_void_p, c_char_p, c_int)


class LoaderOptions(Structure):
    _fields_ = members("size rank world resume:text rows fields:u32 mask_targets:u32 device:text threads:u32 "
                       "read_ahead:u32 ring_bytes io_threads:u32 drop_behind:u32 trust_files:u32 alarm_percent:u32 "
                       "alarm_calls:u32 deadline_ns trace:text alarm alarm_user:at event event_user:at balance:double "
                       "context_rank context_world context_layout:u32 nodes counts:u32 values_present:u32 values:text",
                       alarm=ALARM, event=EVENT)


class Out(Structure):
    _fields_ = members("size type:int inputs:at targets:at labels:at targets_ahead:at position_ids:at "
                       "document_ids:at loss_mask:at rows:at cu_seqlens:at source_ids:at cu_seqlens_slice:at " +
                       " ".join(f"{name}{k}:at" for name in ("values", "values_present") for k in range(8)))


class ValuesInfo(Structure):
    _fields_ = members("size name:text element:text dimensions:u32 shape bytes", shape=c_uint64 * 4)


class Batch(Structure):
    _fields_ = members("size step first_row count real_rows seq_len tokens last_in_step:int width:u32 row_tokens "
                       "rows:at places:at documents max_seqlen cursor columns max_seqlen_slice counted counted_in_step",
                       cursor=Cursor)


class Stats(Structure):
    _fields_ = members("size batches rows padding tokens epoch waits wait_ns wait_ns_largest wait_histogram "
                       "alarms ring_bytes ring_slots:u32 ring_ready:u32 ring_ready_lowest:u32 reading:int bytes "
                       "cold_reads probe_ns io_threads io_reads timeouts device_bytes late_copies host_expanded "
                       "excluded excluded_rows fetch_requests fetch_bytes fetch_repeated fetch_evicted "
                       "fetch_storage_ns fetch_transfer_ns fetch_disk_ns", wait_histogram=c_uint64 * WAIT_BUCKETS)


class SourceStats(Structure):
    _fields_ = members("size name:text rows tokens bytes epoch draws windows")


class CudaInfo(Structure):
    _fields_ = members("size driver_version:int devices:int path", path=c_char * 256)


class CudaDeviceInfo(Structure):
    _fields_ = members("size name capability_major:int capability_minor:int numa_node:int memory",
                       name=c_char * 128)


class LoaderDevice(Structure):
    _fields_ = members("size device:int numa_node:int kernel:int pinned_bytes device_bytes reason coherent:int",
                       reason=c_char * 256)


_P = c_void_p  # a handle, or any pointer
# The functions by the type of their result and the types of their arguments; a status is an int. The arguments of
# functions that every batch calls have no types: their callers pass objects of ctypes, whose conversion would take most
# of the time.
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...] | None]] = {name: types for types, names in {
    (c_char_p, ()): "tokmap_version",
    (c_char_p, (c_int,)): "tokmap_status_name tokmap_status_text",
    (c_char_p, (_P, c_char_p, c_size_t)): "tokmap_error_print",
    (c_int, (_P, c_char_p, _P, _P)): "tokmap_dataset_open tokmap_dataset_column tokmap_writer_open tokmap_run_open "
                                     "tokmap_run_parse",
    (None, (_P,)): "tokmap_dataset_close tokmap_writer_abandon tokmap_run_close tokmap_loader_close "
                   "tokmap_dlpack_deleter tokmap_dlpack_deleter_versioned",
    (c_int, (_P, _P)): "tokmap_dataset_info tokmap_writer_info tokmap_run_info tokmap_loader_rewind "
                       "tokmap_values_sync tokmap_values_close tokmap_loader_flush tokmap_loader_stats tokmap_loader_device tokmap_cuda_probe",
    (c_int, (_P, c_uint64, _P, _P)): "tokmap_dataset_shard tokmap_dataset_document tokmap_dataset_document_at "
                                     "tokmap_dataset_origin tokmap_run_cursor",
    (c_int, (_P, c_uint64, c_uint64, _P, c_size_t, _P, _P)): "tokmap_dataset_view",
    (c_int, (_P, c_uint64, c_uint64, _P, _P)): "tokmap_dataset_copy tokmap_dataset_mask tokmap_run_locate "
                                               "tokmap_values_put_at",
    (c_int, (_P, _P, c_size_t, _P, _P)): "tokmap_dataset_columns",
    (c_int, (_P, c_uint64, c_char_p, _P, _P)): "tokmap_dataset_value",
    (c_int, (_P, _P, _P)): "tokmap_writer_add tokmap_writer_commit tokmap_run_check_cursor tokmap_loader_reload",
    (c_int, (_P, c_char_p, _P)): "tokmap_writer_about tokmap_cursor_parse",
    (c_int, (_P, _P, _P, _P)): "tokmap_dataset_verify tokmap_dataset_index tokmap_run_evaluation tokmap_loader_open "
                               "tokmap_values_finish",
    (c_int, (_P, _P, c_char_p, _P, _P)): "tokmap_values_open",
    (c_int, (_P, _P, _P, c_char_p, _P, _P)): "tokmap_values_put",
    (c_int, (_P, c_uint64, _P)): "tokmap_run_source tokmap_run_phase tokmap_loader_source_stats tokmap_loader_values",
    (c_uint64, (_P, c_uint64)): "tokmap_run_phase_at tokmap_run_rows tokmap_run_real_rows",
    (c_int, (_P, c_uint64, c_uint64, _P)): "tokmap_run_share tokmap_run_drawn tokmap_loader_repartition",
    (c_uint64, (_P, c_uint64, c_uint64)): "tokmap_run_excluded",
    (c_char_p, (_P,)): "tokmap_run_text",
    (c_int, (_P, _P, c_uint64, c_char_p, _P)): "tokmap_run_continue",
    (c_int, (_P, c_uint64)): "tokmap_run_delivers",
    (c_int, (c_uint64, c_uint64, c_uint64, _P, _P)): "tokmap_balance",
    (c_int, (_P, _P, _P, c_uint64, _P, _P)): "tokmap_run_extents",
    (c_int, (_P, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, FOUND, _P, _P)): "tokmap_run_find",
    (None, (_P, c_char_p)): "tokmap_cursor_print",
    (c_int, None): "tokmap_loader_wait tokmap_loader_next",
    (c_int, (_P, c_char_p, _P, c_size_t, _P)): "tokmap_loader_prometheus",
    (c_uint64, (_P,)): "tokmap_loader_elements tokmap_loader_rows tokmap_loader_calls_per_step "
                       "tokmap_loader_cu_seqlens tokmap_loader_nodes",
    (c_int, (_P, _P, _P, c_uint64, _P, _P, _P)): "tokmap_loader_read",
    (c_int, (c_int, _P, _P)): "tokmap_cuda_device",
    (c_int, (c_char_p, c_uint64, _P, _P)): "tokmap_cuda_memory_new",
    (None, (c_char_p, _P)): "tokmap_cuda_memory_free tokmap_cuda_stream_free",
    (c_int, (c_char_p, _P, _P, c_uint64, _P, _P)): "tokmap_cuda_memory_read",
    (c_int, (c_char_p, _P, _P)): "tokmap_cuda_stream_new tokmap_cuda_stream_synchronize",
    (c_int, (c_char_p, _P, _P, _P)): "tokmap_cuda_stream_wait",
}.items() for name in names.split()}

_SONAME = "libtokmap.so." + __version__.split(".")[0]


def _library_file() -> str:
    """The file to load. It is $TOKMAP_LIBRARY if that is set; otherwise the first that exists of the library beside
    this file (in a wheel) and the library in build/lib of the source tree that contains this file; otherwise the name
    alone, which the system's loader searches for."""
    chosen = os.environ.get("TOKMAP_LIBRARY")
    if chosen:
        return chosen
    package = os.path.dirname(os.path.abspath(__file__))
    candidates = [os.path.join(package, _SONAME)]
    top = os.path.dirname(os.path.dirname(os.path.dirname(package)))
    if os.path.exists(os.path.join(top, "include", "tokmap", "tokmap.h")):
        candidates.append(os.path.join(top, "build", "lib", _SONAME))
    return next((path for path in candidates if os.path.exists(path)), _SONAME)


def load(name: str, what: str, functions: Mapping[str, tuple[Any, tuple[Any, ...] | None]], version_of: str,
         advice: str) -> CDLL:
    """Loads a library of this package and declares its functions. `what` names it and `advice` says what else could be
    done, for messages; version_of names the function that returns its version, which must be that of this package."""
    try:
        library = CDLL(name)
    except OSError as error:
        raise errors.error_of("", f"cannot load the {what} {name}: {error}; reinstall the package (pip install "
                              f"./src/python), build the library (make lib), or {advice}") from None
    try:
        entry = getattr(library, version_of)
    except AttributeError:
        raise errors.error_of("", f"{name} is not a {what}: it has no function {version_of}") from None
    entry.restype = c_char_p
    version = entry().decode()
    if version != __version__:
        raise errors.error_of("",
            f"the library {name} has version {version}, but this package has version {__version__}: reinstall the "
            f"package, or set TOKMAP_LIBRARY to a library of the same version")
    for function, (result, arguments) in functions.items():
        try:
            entry = getattr(library, function)
        except AttributeError:
            raise errors.error_of("", f"the library {name} has no function {function}, so it was built from different "
                                  f"sources than this package: rebuild and reinstall both") from None
        entry.restype = result
        entry.argtypes = arguments
    return library


_path = _library_file()
lib = load(_path, "tokmap library", _FUNCTIONS, "tokmap_version", "set TOKMAP_LIBRARY to its path")


def library_path() -> str:
    """The path of the library that this package uses."""
    return _path


#: Members of the library's structs whose arguments have other names.
_ARGUMENTS = {"bos_id": "bos", "eod_id": "eod", "type": "dtype", "vocabulary": "vocab_size"}


def failure(status: int, error: Error | None = None) -> errors.TokmapError:
    """The exception for a status, with the library's message."""
    name = lib.tokmap_status_name(status).decode()
    kind = errors.class_of(name if name in errors.STATUSES else "ERROR_INTERNAL")
    if error is None or not error.status:
        return kind(lib.tokmap_status_text(status).decode(), status=name)
    error = Error.from_buffer_copy(error)
    member, message = error.field.decode(), error.message.decode("utf-8", "replace")
    field = _ARGUMENTS.get(member, member)
    message = field + message[len(member):]  # which begins with the member
    error.message = message.encode()[:Error.message.size - 1]
    text = create_string_buffer(2048)
    lib.tokmap_error_print(byref(error), text, len(text))
    return kind(text.value.decode("utf-8", "replace"), status=name, message=message,
                path=os.fsdecode(error.path) or None, offset=None if error.offset == NO_OFFSET else error.offset,
                line=error.line or None, system=error.system, device=error.device, field=field or None)


def check(status: int, error: Error | None = None) -> None:
    """Raises the exception for a status that is not OK."""
    if status:
        raise failure(status, error)


def _thread_of(call: Callable[[], int]) -> tuple[Any, list[int]]:
    """Begins a call of the library in another thread, because Python handles signals in the main thread, between two
    lines. Returns the thread, and a list that gets the status of the call."""
    import threading
    outcome: list[int] = []
    worker = threading.Thread(target=lambda: outcome.append(call()), daemon=True)
    worker.start()
    return worker, outcome


def waited(call: Callable[[], int], names: bytes | None) -> int:
    """Returns the status of a call that opens what is named (None: what a file names), and waits for a server if that
    is a URL. If a signal such as that of Ctrl-C ends the wait, the library continues, and closes what it opens with
    the last reference to it."""
    if names is not None and b"://" not in names:
        return call()
    worker, outcome = _thread_of(call)
    while worker.is_alive():
        worker.join(0.1)
    return outcome[0]


class LongCall:
    """A call of the library that takes long, calls functions of the caller meanwhile, and can be interrupted. An
    exception in one of these functions ends the call, and run() raises it."""

    def __init__(self) -> None:
        self.stopped = False
        self.problems: list[BaseException] = []

    def guard(self, function: Callable[..., object] | None, arguments: Callable[[], tuple[Any, ...]]) -> int:
        """Calls a function of the caller, or none. Returns what the library's callback returns: 1 ends the call."""
        try:
            if function is not None:
                function(*arguments())
        except BaseException as problem:
            self.problems.append(problem)
            return 1
        return int(self.stopped)

    def run(self, call: Callable[[], int]) -> int:
        """Returns the status of the call."""
        worker, outcome = _thread_of(call)
        try:
            while worker.is_alive():
                worker.join(0.1)
        finally:
            self.stopped = True
            worker.join()
        if self.problems:
            raise self.problems[0]
        return outcome[0]


_found_numpy: list[Any] = []


def numpy_or_none() -> Any:
    """NumPy, or None. An import that fails takes a while, and a lock that a child after fork() could wait for, so it is
    tried once."""
    if not _found_numpy:
        try:
            import numpy
        except ImportError:
            _found_numpy.append(None)
        else:
            _found_numpy.append(numpy)
    return _found_numpy[0]


def counted(count: int, noun: str) -> str:
    """A number with its noun: "1 shard", "2 shards"."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def position(value: Any, count: int, noun: str, of: str) -> int:
    """The index of an element as Python's sequences take it: from 0, or from the end if it is negative."""
    try:
        index: int = value.__index__()
    except AttributeError:
        raise TypeError(f"the number of a {noun} of {of} is a whole number or a slice, not {value!r}") from None
    if not -count <= index < count:
        raise errors.error_of("ERROR_RANGE", f"{noun} {index} is outside {of}, which has {counted(count, noun)}")
    return index + count if index < 0 else index


def text_argument(value: Path, name: str) -> bytes:
    """A path or another text as a C string, which cannot contain a zero byte."""
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise errors.ArgumentError(f"{name} contains a zero character: {value!r}")
    return encoded


def of_type(value: object) -> str:
    """The type of a value with its article, for messages: an int, a list."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def names_argument(value: str | Iterable[str]) -> tuple[str, ...]:
    """Several names: those of an iterable, or of a str, in which commas are between them, as the command takes them."""
    return tuple(value.split(",") if isinstance(value, str) else value)


def number(value: Any, name: str, smallest: int = 0, largest: int = 2 ** 64 - 1) -> int:
    """An integer within bounds, because ctypes would silently drop the bits that do not fit."""
    try:
        integer: int = value.__index__()
    except AttributeError:
        raise errors.ArgumentError(f"{name} is {value!r}, but it must be a whole number") from None
    if not smallest <= integer <= largest:
        raise errors.error_of("ERROR_RANGE", f"{name} is {integer}, but it must be from {smallest} to {largest}")
    return integer


def choice(value: str, names: tuple[str, ...], name: str) -> int:
    """The position of a value in a tuple of allowed names."""
    if value not in names:
        raise errors.ArgumentError(f"{name} is {value!r}, but it must be one of: {', '.join(names)}")
    return names.index(value)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: "; did you mean 'x'?", or nothing if no known name is near."""
    from difflib import get_close_matches  # here, because few programs need it
    near = get_close_matches(name, sorted(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def table(title: str, facts: Mapping[str, object]) -> str:
    """What notebooks show of an object in place of its repr(): a small table in HTML, with a title, and a row for each
    fact that is not an empty text. Every text is escaped."""
    from html import escape  # here, because only notebooks need it
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(f'{fact:,}' if isinstance(fact, int) else str(fact))}</td>"
                   f"</tr>" for name, fact in facts.items() if fact != "")
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"
