"""The state of a loader as a program saves it: a dict of text and numbers around the text of a cursor."""
from __future__ import annotations

from ctypes import byref, create_string_buffer

from . import _library as c
from ._library import lib
from .errors import CursorError

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Mapping

_VERSION = 1


def cursor_text(cursor: c.Cursor) -> str:
    """The text of a struct tokmap_cursor: one line."""
    text = create_string_buffer(c.CURSOR_TEXT)
    lib.tokmap_cursor_print(byref(cursor), text)
    return text.value.decode()


def state_of_cursor(cursor: str) -> dict[str, Any]:
    """What state_dict() returns."""
    return {"tokmap": _VERSION, "cursor": cursor, "step": int(cursor.split("step=")[1].split()[0])}


def cursor_of_state(state: Mapping[str, Any] | str | None) -> str | None:
    """The text of the cursor in a state_dict(). The text of a cursor, and None, are returned unchanged."""
    if state is None or isinstance(state, str):
        return state
    try:
        version, cursor = state["tokmap"], state["cursor"]
    except (KeyError, TypeError, IndexError):
        raise CursorError(f"the state is {c.of_type(state)} without the keys \"tokmap\" and \"cursor\": pass "
                          f"what state_dict() of a tokmap loader returned, or the text of a cursor") from None
    if version != _VERSION or not isinstance(cursor, str):
        raise CursorError(f"the state has version {version!r}, but this package reads version {_VERSION}: install the "
                          f"version of tokmap that wrote it")
    return cursor
