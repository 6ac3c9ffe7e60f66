"""The fields of a batch: their names, and the library's bits for them."""
from __future__ import annotations

from . import _library as c
from .errors import ArgumentError

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Iterable

    from .hints import Field, Fields

#: The fields with one element per token of a row, so of shape [rows, seq_len].
TOKEN_FIELDS = ("inputs", "targets", "position_ids", "document_ids", "loss_mask", "labels")


def parse_fields(fields: Fields) -> tuple[Field, ...]:
    """The names in a text such as "inputs targets", or in a sequence of names, each once, in their order. A set's order
    differs among processes, so its names are in the order of the library's bits."""
    names: list[Any] = fields.replace(",", " ").split() if isinstance(fields, str) else list(fields)
    for name in names:
        if name not in c.FIELDS:
            raise ArgumentError(f"fields contains {name!r}, which is not a field: the fields are {', '.join(c.FIELDS)}")
    if isinstance(fields, (set, frozenset)):
        names.sort(key=c.FIELDS.__getitem__)
    return tuple(dict.fromkeys(names))


def field_bits(names: Iterable[str]) -> int:
    """The value of tokmap_loader_options.fields for these names."""
    bits = 0
    for name in names:
        bits |= c.FIELDS[name]
    return bits
