# SPDX-License-Identifier: MIT
"""libtokmap_tokenize through ctypes: the structs and functions of tokenizer.h.

It is loaded by the first Tokenizer, so programs that use none do not need it. tests/python/test_layout.py compares
every struct and constant with the header.
"""
from __future__ import annotations

import os
from array import array
from ctypes import Structure, c_char_p, c_int, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p

from .errors import ArgumentError
from .handles import Handle, as_method, new
from ._library import library_path, load
from ._memory import elements
from ._version import __version__

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any

SPECIALS = ("text", "recognize", "error")


class TokenizerOptions(Structure):
    _fields_ = [("size", c_size_t), ("special", c_int), ("pattern", c_char_p), ("pattern_regex", c_char_p),
                ("special_tokens", c_char_p), ("cache", c_uint32), ("cut_as", c_char_p),
                ("lower_case", c_char_p)]


class TokenizerInfo(Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("form", c_char_p), ("scanner", c_char_p), ("note", c_char_p),
                ("vocabulary", c_uint64), ("eod_id", c_uint64), ("bos_id", c_uint64), ("added", c_uint64),
                ("specials", c_uint64), ("fingerprint", c_uint8 * 16)]


class Encoded(Structure):
    _fields_ = [("size", c_size_t), ("ids", c_void_p), ("room", c_uint64), ("count", c_uint64), ("type", c_int),
                ("begins", c_void_p), ("ends", c_void_p)]


class Text(Structure):
    _fields_ = [("bytes", c_char_p), ("count", c_uint64)]


class Texts(Structure):
    _fields_ = [("size", c_size_t), ("count", c_uint64), ("texts", c_void_p), ("data", c_void_p),
                ("offsets32", c_void_p), ("offsets64", c_void_p), ("views", c_void_p), ("view_buffers", c_void_p),
                ("view_buffer_bytes", c_void_p), ("view_buffer_count", c_uint64)]


class EncodeOptions(Structure):
    _fields_ = [("size", c_size_t), ("threads", c_uint32), ("keep_going", c_uint32), ("offsets", c_uint32),
                ("bos_id", c_uint64), ("eod_id", c_uint64)]


class Ids(Structure):
    _fields_ = [("size", c_size_t), ("count", c_uint64), ("ids", c_void_p), ("type", c_int), ("ends", c_void_p)]


class DecodeOptions(Structure):
    _fields_ = [("size", c_size_t), ("threads", c_uint32), ("specials", c_uint32), ("resumed", c_uint32)]


class BatchInfo(Structure):
    _fields_ = [("size", c_size_t), ("documents", c_uint64), ("ids", c_uint64), ("bytes", c_uint64),
                ("failed", c_uint64), ("largest", c_uint64)]


class BatchOut(Structure):
    _fields_ = [("size", c_size_t), ("ids", c_void_p), ("type", c_int), ("text", c_void_p),
                ("document_ends", c_void_p), ("begins", c_void_p), ("ends", c_void_p), ("statuses", c_void_p)]


class AddedToken(Structure):
    _fields_ = [("size", c_size_t), ("text", c_void_p), ("bytes", c_uint64), ("id", c_uint64), ("special", c_uint32),
                ("flags", c_uint32)]


class Decoded(Structure):
    _fields_ = [("size", c_size_t), ("text", c_void_p), ("room", c_uint64), ("specials", c_uint32),
                ("resumed", c_uint32), ("bytes", c_uint64)]


_P = c_void_p  # a handle, or any pointer
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    # name: (type of the result, types of the arguments); a status is an int
    "tokmap_tokenizer_open": (c_int, (_P, c_char_p, _P, _P)),
    "tokmap_tokenizer_close": (None, (_P,)),
    "tokmap_tokenizer_info": (c_int, (_P, _P)),
    "tokmap_tokenizer_encode": (c_int, (_P, c_char_p, c_uint64, _P, _P)),
    "tokmap_tokenizer_decode": (c_int, (_P, _P, c_uint64, _P, _P)),
    "tokmap_tokenizer_token": (c_int, (_P, c_uint64, _P, _P, _P)),
    "tokmap_tokenizer_find": (c_int, (_P, c_char_p, c_uint64, _P, _P)),
    "tokmap_tokenizer_share": (c_int, (_P, _P, c_int, _P)),
    "tokmap_tokenizer_added": (c_int, (_P, c_uint64, _P, _P)),
    "tokmap_tokenizer_encode_batch": (c_int, (_P, _P, _P, _P, _P)),
    "tokmap_tokenizer_decode_batch": (c_int, (_P, _P, _P, _P, _P)),
    "tokmap_tokenizer_batch_info": (c_int, (_P, _P)),
    "tokmap_tokenizer_batch_read": (c_int, (_P, _P, _P)),
    "tokmap_tokenizer_batch_close": (None, (_P,)),
    "tokmap_tokenizer_version": (c_char_p, ()),
}


def _file() -> str:
    """The file to load: the one beside the library that this package uses, or the name alone where that was found by
    its name alone."""
    folder, name = os.path.split(library_path())
    return os.path.join(folder, name.replace("libtokmap", "libtokmap_tokenize", 1)
                        if name.startswith("libtokmap") else "libtokmap_tokenize.so." + __version__.split(".")[0])


class Library:
    """The library: its functions, and its handles, which it closes when nothing uses them any more."""

    def __init__(self) -> None:
        self.calls = calls = load(_file(), "tokmap library of tokenizers", FUNCTIONS, "tokmap_tokenizer_version",
                                  "set TOKMAP_LIBRARY to the path of a libtokmap that has libtokmap_tokenize beside it")

        class TokenizerHandle(Handle):
            __slots__ = ()
            __del__ = as_method(calls.tokmap_tokenizer_close)

        class BatchHandle(Handle):
            __slots__ = ()
            __del__ = as_method(calls.tokmap_tokenizer_batch_close)

        self._kinds = TokenizerHandle, BatchHandle

    def tokenizer(self) -> Handle:
        """The handle of a tokenizer that is to be opened."""
        return new(self._kinds[0])

    def batch(self) -> Handle:
        """The handle of a batch that is to be made."""
        return new(self._kinds[1])


_loaded: Library | None = None


def library() -> Library:
    """The library, loaded by the first call. If several threads make the first call at once, some load it again, which
    does no harm; a lock could be held by another thread when a process is forked."""
    global _loaded
    found = _loaded
    if found is None:
        found = _loaded = Library()
    return found


def id_array(ids: Any) -> array[int]:
    """Ids of any kind as an array of 32 bits."""
    try:
        return array("I", ids if isinstance(ids, (list, tuple)) else elements(ids, "ids", anywhere=True).tolist())
    except (TypeError, OverflowError):
        raise ArgumentError("ids must be a list of whole numbers from 0 to 4294967295, or an array of one dimension"
                            ) from None
