# SPDX-License-Identifier: MIT
"""Texts from any library that has the Arrow PyCapsule interface (__arrow_c_array__, __arrow_c_stream__): pyarrow,
Polars, DuckDB, pandas. The structs of the Arrow C data interface are read in place with ctypes, so pyarrow is
not needed and no text is copied. What a producer hands over is released as soon as it has been read.
"""
from __future__ import annotations

from ctypes import CFUNCTYPE, POINTER, Structure, addressof, byref, c_char_p, c_int, c_int32, c_int64, c_void_p
from ctypes import py_object, pythonapi, string_at

from .errors import ArgumentError, InputError, error_of

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Iterator, TypeVar

    _Kind = TypeVar("_Kind", bound="Column")


class ArrowSchema(Structure):
    pass


class ArrowArray(Structure):
    pass


class ArrowArrayStream(Structure):
    pass


_RELEASE_SCHEMA = CFUNCTYPE(None, POINTER(ArrowSchema))
_RELEASE_ARRAY = CFUNCTYPE(None, POINTER(ArrowArray))
_RELEASE_STREAM = CFUNCTYPE(None, POINTER(ArrowArrayStream))

ArrowSchema._fields_ = [("format", c_char_p), ("name", c_char_p), ("metadata", c_void_p), ("flags", c_int64),
                        ("n_children", c_int64), ("children", POINTER(POINTER(ArrowSchema))),
                        ("dictionary", POINTER(ArrowSchema)), ("release", _RELEASE_SCHEMA), ("private_data", c_void_p)]
ArrowArray._fields_ = [("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64),
                       ("n_children", c_int64), ("buffers", POINTER(c_void_p)),
                       ("children", POINTER(POINTER(ArrowArray))), ("dictionary", POINTER(ArrowArray)),
                       ("release", _RELEASE_ARRAY), ("private_data", c_void_p)]
ArrowArrayStream._fields_ = [
    ("get_schema", CFUNCTYPE(c_int, POINTER(ArrowArrayStream), POINTER(ArrowSchema))),
    ("get_next", CFUNCTYPE(c_int, POINTER(ArrowArrayStream), POINTER(ArrowArray))),
    ("get_last_error", CFUNCTYPE(c_char_p, POINTER(ArrowArrayStream))),
    ("release", _RELEASE_STREAM), ("private_data", c_void_p)]

_capsule = pythonapi.PyCapsule_GetPointer
_capsule.restype = c_void_p
_capsule.argtypes = [py_object, c_char_p]

#: Arrow's names of the types that hold texts.
FORMATS = {"u": "utf8", "z": "binary", "U": "large_utf8", "Z": "large_binary", "vu": "utf8_view", "vz": "binary_view"}


#: What returns the rows of tables and queries that have none themselves: of Polars, deltalake, pyiceberg.
_READ = {"LazyFrame": "collect", "DeltaTable": "to_pyarrow_table", "DataScan": "to_arrow"}


def is_arrow(value: Any) -> bool:
    """Whether a value has the Arrow PyCapsule interface. Raises for one that has to be read first."""
    name = type(value).__name__
    if name in _READ and hasattr(value, _READ[name]) and not hasattr(value, "__arrow_c_stream__"):
        raise ArgumentError(f"a {name} has no rows until it is read; pass the result of its method {_READ[name]}()")
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


def _format(schema: ArrowSchema) -> str:
    return "dictionary" if schema.dictionary else schema.format.decode()


def _release(struct: Any) -> None:
    if struct.release:
        struct.release(byref(struct))


def nulls_of(array: ArrowArray, first: int, count: int) -> Iterator[int]:
    """The positions of the nulls among some elements of an array, from the first of these on."""
    if array.null_count == 0 or not count or not array.buffers[0]:
        return
    bits = string_at(array.buffers[0] + first // 8, (first % 8 + count + 7) // 8)
    if int.from_bytes(bits, "little") >> first % 8 & (1 << count) - 1 == (1 << count) - 1:
        return  # which many producers do not say
    for index in range(first % 8, first % 8 + count):
        if not bits[index >> 3] >> (index & 7) & 1:
            yield index - first % 8


class Column:
    """An array of texts: one chunk, which is valid while its stream is at it."""
    argument = "field"  # the parameter that names the column of a table
    default: str | None = None  # the column if it does not
    advice = "cast it first"

    def __init__(self, array: ArrowArray, schema: ArrowSchema, name: str, first: int) -> None:
        format = _format(schema)
        if format not in FORMATS:
            raise error_of("ERROR_UNSUPPORTED", f"{name} has the Arrow type '{format}', but texts must be one of: "
                           f"{', '.join(FORMATS.values())}; {self.advice}"
                           + " (categories of pandas and Polars are such a type)" * (format == "dictionary"))
        self.array = array
        self.format = format
        self.name = name
        self.first = first  # the number of the first text in messages
        self.length: int = array.length

    def null(self) -> int | None:
        """The position of the first null, or None."""
        for index in self.nulls():
            return index
        return None

    def nulls(self) -> Iterator[int]:
        """The positions of the nulls."""
        return nulls_of(self.array, self.array.offset, self.array.length)

    def texts(self, struct: Any) -> None:
        """Fills a tokmap_texts with the addresses of the texts."""
        array = self.array
        buffers, offset = array.buffers, array.offset
        struct.count = array.length
        if not struct.count:
            return
        if self.format in "uz":
            struct.offsets32, struct.data = buffers[1] + 4 * offset, buffers[2]
        elif self.format in "UZ":
            struct.offsets64, struct.data = buffers[1] + 8 * offset, buffers[2]
        else:
            variadic = array.n_buffers - 3
            struct.views = buffers[1] + 16 * offset
            struct.view_buffer_count = variadic
            if variadic:
                struct.view_buffers = addressof(buffers.contents) + 2 * 8
                struct.view_buffer_bytes = buffers[array.n_buffers - 1]

    def __iter__(self) -> Iterator[bytes | None]:
        """The texts, each with its own memory; None for a null."""
        buffers, offset, nulls = self.array.buffers, self.array.offset, set(self.nulls())
        wide = self.format in "UZ"
        for index in range(self.length):
            if index in nulls:
                yield None
            elif self.format[0] == "v":  # up to 12 bytes are in the view, others in one of the buffers
                view = (c_int32 * 4).from_address(buffers[1] + 16 * (offset + index))
                yield string_at(addressof(view) + 4 if view[0] <= 12 else buffers[2 + view[2]] + view[3], view[0])
            else:
                kind, size = (c_int64, 8) if wide else (c_int32, 4)
                ends = (kind * 2).from_address(buffers[1] + size * (offset + index))
                yield string_at((buffers[2] or 0) + ends[0], ends[1] - ends[0])


def _chosen(schema: ArrowSchema, array: ArrowArray, field: str | None, first: int, kind: type[_Kind]) -> _Kind:
    """The column of a chunk: the array itself, or a field of a table."""
    if _format(schema) != "+s":
        return kind(array, schema, "the array", first)
    names = [schema.children[i].contents.name.decode("utf-8", "replace") for i in range(schema.n_children)]
    if field is None and (len(names) == 1 or kind.default in names):
        field = kind.default if kind.default in names else names[0]
    if field is None or field not in names:
        have = ", ".join(repr(name) for name in names) or "none"
        raise ArgumentError(f"a table has several columns ({have}); choose one with {kind.argument}=" if field is None
                            else f"the table has no column {field!r}; its columns are: {have}; {kind.argument}= names "
                            "one of them")
    number = names.index(field)
    child = array.children[number].contents
    if array.offset or child.length != array.length or (array.null_count and array.buffers[0]):
        raise error_of("ERROR_UNSUPPORTED", "a struct array with an offset or nulls cannot be read; pass its column")
    return kind(child, schema.children[number].contents, f"the column {field!r}", first)


def _of_array(value: Any, field: str | None, kind: type[_Kind]) -> Iterator[_Kind]:
    capsules = value.__arrow_c_array__()
    schema = ArrowSchema.from_address(_capsule(capsules[0], b"arrow_schema"))
    array = ArrowArray.from_address(_capsule(capsules[1], b"arrow_array"))
    try:
        yield _chosen(schema, array, field, 0, kind)
    finally:
        _release(array)
        _release(schema)


def _of_stream(value: Any, field: str | None, kind: type[_Kind]) -> Iterator[_Kind]:
    capsule = value.__arrow_c_stream__()
    stream = ArrowArrayStream.from_address(_capsule(capsule, b"arrow_array_stream"))
    schema, array, first = ArrowSchema(), ArrowArray(), 0

    def call(status: int, what: str) -> None:
        if status:
            reason = stream.get_last_error(byref(stream))
            raise InputError(f"{what} of an Arrow stream cannot be read: "
                             f"{reason.decode('utf-8', 'replace') if reason else f'error {status}'}")

    try:
        call(stream.get_schema(byref(stream), byref(schema)), "the schema")
        while True:
            call(stream.get_next(byref(stream), byref(array)), "the next batch")
            if not array.release:
                return
            yield _chosen(schema, array, field, first, kind)
            first += array.length
            _release(array)
    finally:
        _release(array)  # which Ctrl-C may have interrupted above; a struct that is released has no `release`
        _release(schema)
        _release(stream)


def columns(value: Any, field: str | None = None, kind: Any = Column) -> Iterator[Any]:
    """The chunks of an Arrow array, or of a column of an Arrow table, each as a Column of that kind. A chunk is released
    when the next one is asked for, and all of it when the iterator is closed."""
    return (_of_stream if hasattr(value, "__arrow_c_stream__") else _of_array)(value, field, kind)


__all__ = ["ArrowArray", "ArrowArrayStream", "ArrowSchema", "Column", "FORMATS", "columns", "is_arrow", "nulls_of"]
