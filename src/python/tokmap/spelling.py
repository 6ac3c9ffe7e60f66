"""Names that a program passes and that do not exist: the nearest one that does, for messages."""
from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: "; did you mean 'x'?", or nothing if no known name is near."""
    from difflib import get_close_matches  # here, because few programs need it
    near = get_close_matches(name, sorted(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
