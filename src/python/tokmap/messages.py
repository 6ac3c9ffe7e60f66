"""The library's messages in Python's words.

The library names the members of its structs (options.rank), its constants (TOKMAP_TARGETS), and its functions. A
Python program knows arguments (rank), values ("targets"), and methods. tests/python/test_messages.py applies this to
every message in the library's sources.
"""
from __future__ import annotations

import re

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from typing import Match

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
    message = re.sub(r"\bTOKMAP_([A-Z0-9_]+)", _constant, message)
    message = re.sub(r"\bset options\.([a-z_]+)\b(?! to\b)", r"pass \1=", message)
    message = re.sub(r"\b(options|out)\.([a-z_]+)", _member, message)
    message = re.sub(r"\btokmap_(loader|dataset|run)_([a-z]+)\(\)", _function, message)
    return message
