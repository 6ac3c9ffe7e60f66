# SPDX-License-Identifier: MIT
"""libtokmap_tokenize through ctypes: the structs and functions of tokenizer.h.

It is loaded by the first Tokenizer, so programs that use none do not need it. tests/python/test_layout.py compares
every struct and constant with the header.
"""
from __future__ import annotations

import os
from array import array
from ctypes import Structure, c_char_p, c_int, c_uint64, c_void_p

from .errors import ArgumentError
from .handles import Handle, as_method, new
from ._library import library_path, load, members
from ._memory import elements
from ._version import __version__

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any

SPECIALS = ("text", "recognize", "error")


class TokenizerOptions(Structure):
    _fields_ = members("size special:int pattern:text pattern_regex:text special_tokens:text cache:u32 "
                       "cut_as:text lower_case:text")


class TokenizerInfo(Structure):
    _fields_ = members("size name:text form:text scanner:text note:text vocabulary eod_id bos_id added specials "
                       "fingerprint:id")


class Encoded(Structure):
    _fields_ = members("size ids:at room count type:int begins:at ends:at")


class Text(Structure):
    _fields_ = members("bytes:text count")


class Texts(Structure):
    _fields_ = members("size count texts:at data:at offsets32:at offsets64:at views:at view_buffers:at "
                       "view_buffer_bytes:at view_buffer_count")


class EncodeOptions(Structure):
    _fields_ = members("size threads:u32 keep_going:u32 offsets:u32 bos_id eod_id")


class Ids(Structure):
    _fields_ = members("size count ids:at type:int ends:at")


class DecodeOptions(Structure):
    _fields_ = members("size threads:u32 specials:u32 resumed:u32")


class BatchInfo(Structure):
    _fields_ = members("size documents ids bytes failed largest")


class BatchOut(Structure):
    _fields_ = members("size ids:at type:int text:at document_ends:at begins:at ends:at statuses:at")


class AddedToken(Structure):
    _fields_ = members("size text:at bytes id special:u32 flags:u32")


class Decoded(Structure):
    _fields_ = members("size text:at room specials:u32 resumed:u32 bytes")


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
