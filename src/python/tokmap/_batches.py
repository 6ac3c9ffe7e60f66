# SPDX-License-Identifier: MIT
"""Tokenizer.encode_batch() and decode_batch(): what crosses between Python's lists and arrays and the library."""
from __future__ import annotations

from array import array
from ctypes import addressof, byref, c_char, c_char_p, sizeof
from itertools import chain

from . import _library as c
from . import _tokenize_library as t
from ._arrow import columns, is_arrow
from ._library import check, numpy_or_none
from .errors import ArgumentError, InputError

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator, Sequence

    from .handles import Handle

    Tokenizer = Any  # tokenizer.py imports this module

#: By name of a dtype: the type of ids in tokenizer.h, the code of array.array, the bytes of an id.
DTYPES = {"uint16": ("u16", "H", 2), "uint32": ("u32", "I", 4), "int32": ("u32", "i", 4), "uint64": ("u64", "Q", 8),
          "int64": ("u64", "q", 8)}


class Encoded:
    """The ids of many texts in one array, as Arrow stores lists: those of text i are ids[offsets[i]:offsets[i + 1]].

    ids      of all texts
    offsets  one more than texts, beginning with 0
    begins, ends
             of each id, the part of its text that it stands for, in bytes; None if offsets=True was not asked for

    len() is the number of texts, and item i is the array of the ids of text i.
    """

    def __init__(self, ids: Any, offsets: Any, begins: Any = None, ends: Any = None) -> None:
        self.ids = ids
        self.offsets = offsets
        self.begins = begins
        self.ends = ends

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"text {index} is requested, but there are {len(self)}")
        return self.ids[int(self.offsets[index]):int(self.offsets[index + 1])]

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"<tokmap Encoded: {len(self)} texts, {len(self.ids)} ids>"


def _array(numpy: Any, name: str, count: int) -> tuple[Any, int | None]:
    """An array of numbers, and its address."""
    if numpy is not None:
        made = numpy.empty(count, name)
        return made, made.ctypes.data if count else None
    some = array(DTYPES[name][1], bytes(DTYPES[name][2] * count))
    return some, some.buffer_info()[0] if count else None


def _bytes_of(text: Any, index: int) -> bytes:
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")  # the library reports a lone surrogate, with its place
    if isinstance(text, bytes):
        return text
    raise ArgumentError(f"text {index} is {type(text).__name__}, but it must be str or bytes")


def bytes_of(texts: Sequence[Any]) -> list[bytes]:
    """Texts as UTF-8."""
    return [_bytes_of(text, index) for index, text in enumerate(texts)]


def texts_of(encoded: list[bytes]) -> tuple[t.Texts, Any]:
    """Texts where they are in memory: an array of struct tokmap_text. ctypes takes the numbers between the addresses as
    addresses, too, and keeps the bytes alive."""
    members: Any = chain.from_iterable(zip(encoded, map(len, encoded)))
    pairs = (c_char_p * (2 * len(encoded)))(*members)
    return t.Texts(sizeof(t.Texts), len(encoded), addressof(pairs)), pairs


class Chunk:
    """What the library made of some texts. close() frees it."""

    def __init__(self, tokenizer: Tokenizer, handle: Handle, texts: t.Texts, *, threads: int, bos: int | None,
                 eod: int | None, offsets: bool) -> None:
        loaded = t.library()
        self.library = loaded.calls
        self.handle: Handle | None = loaded.batch()
        error = c.Error()
        options = t.EncodeOptions(sizeof(t.EncodeOptions), threads, False, offsets,
                                  c.NO_ID if bos is None else bos, c.NO_ID if eod is None else eod)
        check(self.library.tokmap_tokenizer_encode_batch(handle, byref(texts), byref(options), byref(self.handle),
                                                         byref(error)), error)
        self.info = t.BatchInfo(sizeof(t.BatchInfo))
        check(self.library.tokmap_tokenizer_batch_info(self.handle, byref(self.info)))

    def read(self, **where: Any) -> None:
        """Copies results to the addresses that are passed in, by the names of struct tokmap_tokenizer_batch_out."""
        out, error = t.BatchOut(sizeof(t.BatchOut)), c.Error()
        for name, value in where.items():
            setattr(out, name, value)
        check(self.library.tokmap_tokenizer_batch_read(self.handle, byref(out), byref(error)), error)

    def close(self) -> None:
        self.handle = None


def _chunks(tokenizer: Tokenizer, texts: Any, field: str | None, special: tuple[Any, Any], **options: Any
            ) -> Iterator[Chunk]:
    """Encodes the texts: those of a list at once, those of an Arrow stream chunk by chunk."""
    if not is_arrow(texts):
        if isinstance(texts, (str, bytes)):
            raise ArgumentError("texts is one text, but encode_batch() takes several: pass a list, or call encode()")
        some = texts if isinstance(texts, (list, tuple)) else list(texts)
        struct, _keep = texts_of(bytes_of(some))
        yield Chunk(tokenizer, tokenizer._policy(some, *special), struct, **options)
        return
    allowed, disallowed = special
    if special != (None, None) and (disallowed is None or len(disallowed) or (allowed and allowed != "all")):
        raise ArgumentError("for an Arrow array, allowed_special must be \"all\" or empty, and disallowed_special must "
                            "be ()")
    handle = tokenizer._policy((), *special)
    for column in columns(texts, field):
        null = column.null()
        if null is not None:
            raise InputError(f"text {column.first + null} of {column.name} is null; drop the nulls, or fill them",
                             status="ERROR_INPUT")
        struct = t.Texts(sizeof(t.Texts))
        column.texts(struct)
        yield Chunk(tokenizer, handle, struct, **options)


def encode(tokenizer: Tokenizer, texts: Any, *, flat: bool, dtype: str | None, threads: int, bos: int | None,
           eod: int | None, offsets: bool, field: str | None, special: tuple[Any, Any]) -> Any:
    """Tokenizer.encode_batch()."""
    name = str(dtype) if isinstance(dtype, str) or dtype is None else getattr(dtype, "__name__", str(dtype))
    if dtype is None:
        name = "uint16" if tokenizer.vocab_size <= 65536 else "uint32"
    if name not in DTYPES:
        raise ArgumentError(f"dtype is {dtype!r}, but it must be one of: {', '.join(DTYPES)}")
    if offsets and not flat:
        raise ArgumentError("offsets=True needs flat=True, whose result has begins and ends")
    chunks: list[Chunk] = []
    source = _chunks(tokenizer, texts, field, special, threads=threads, bos=bos, eod=eod, offsets=offsets)
    try:
        chunks.extend(source)
        return _read(chunks, name, flat, offsets)
    finally:
        source.close()  # type: ignore[attr-defined]
        for chunk in chunks:
            chunk.close()


def _read(chunks: list[Chunk], name: str, flat: bool, offsets: bool) -> Any:
    """The results of all chunks, in arrays of their own."""
    numpy = numpy_or_none()
    type_name, _, width = DTYPES[name]
    documents, count = sum(chunk.info.documents for chunk in chunks), sum(chunk.info.ids for chunk in chunks)
    ids, ids_at = _array(numpy, name, count)
    ends, ends_at = _array(numpy, "int64", documents + 1)
    begins = finish = None
    begins_at = finish_at = None
    if offsets:
        begins, begins_at = _array(numpy, "int64", count)
        finish, finish_at = _array(numpy, "int64", count)
    ends[0] = at = number = 0
    for chunk in chunks:
        chunk.read(ids=ids_at and ids_at + width * at, type=c.ID_TYPES.index(type_name),
                   document_ends=(ends_at or 0) + 8 * (number + 1), begins=begins_at and begins_at + 8 * at,
                   ends=finish_at and finish_at + 8 * at)
        first, last = number + 1, number + 1 + chunk.info.documents
        if at and numpy is not None:
            ends[first:last] += at
        elif at:
            ends[first:last] = array("q", [end + at for end in ends[first:last]])
        at, number = at + chunk.info.ids, number + chunk.info.documents
    if flat:
        return Encoded(ids, ends, begins, finish)
    borders = ends.tolist()
    parts = [ids[begin:end] for begin, end in zip(borders, borders[1:])]
    return parts if numpy is not None else [part.tolist() for part in parts]


def _listed(batch: Any) -> tuple[array[int], array[int]]:
    """The ids of several documents in one array, and where each document ends."""
    if isinstance(batch, Encoded):
        return t.id_array(batch.ids), array("Q", batch.offsets.tolist()[1:])
    ids, ends = array("I"), array("Q")
    for some in batch:
        ids.extend(t.id_array(some))
        ends.append(len(ids))
    return ids, ends


def decode(tokenizer: Tokenizer, batch: Any, *, specials: bool, resumed: bool, threads: int) -> list[str]:
    """Tokenizer.decode_batch()."""
    handle, error = tokenizer._open(), c.Error()
    ids, ends = _listed(batch)
    given = t.Ids(sizeof(t.Ids), len(ends), ids.buffer_info()[0] if ids else None, c.ID_TYPES.index("u32"),
                  ends.buffer_info()[0] if ends else None)
    options = t.DecodeOptions(sizeof(t.DecodeOptions), threads, bool(specials), bool(resumed))
    loaded = t.library()
    library, made, info = loaded.calls, loaded.batch(), t.BatchInfo(sizeof(t.BatchInfo))
    check(library.tokmap_tokenizer_decode_batch(handle, byref(given), byref(options), byref(made), byref(error)), error)
    check(library.tokmap_tokenizer_batch_info(made, byref(info)))
    text, found = bytearray(info.bytes or 1), array("Q", bytes(8 * len(ends)))
    block = (c_char * len(text)).from_buffer(text)
    out = t.BatchOut(sizeof(t.BatchOut), text=addressof(block),
                     document_ends=found.buffer_info()[0] if ends else None)
    check(library.tokmap_tokenizer_batch_read(made, byref(out), byref(error)), error)
    del block, made
    borders = [0, *found]
    return [text[begin:end].decode("utf-8", "replace") for begin, end in zip(borders, borders[1:])]
