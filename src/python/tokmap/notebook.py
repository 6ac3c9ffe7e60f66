"""What notebooks show of an object, in place of its repr()."""
from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Mapping


def table(title: str, facts: Mapping[str, object]) -> str:
    """A small table in HTML: the title, and a row for each fact that is not an empty text. Every text is escaped."""
    from html import escape  # here, because only notebooks need it
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(f'{fact:,}' if isinstance(fact, int) else str(fact))}</td>"
                   f"</tr>" for name, fact in facts.items() if fact != "")
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"
