# SPDX-License-Identifier: MIT
"""NamedTuple: typing.NamedTuple for tools that read types; at run time a class that does the same.

Importing the module typing would take longer than importing most of this package.
"""
from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    class _Maker(type):
        """Makes a namedtuple out of a class body with annotations. The body may have methods and default values."""

        def __new__(cls, name, _bases, body):
            annotations = body.get("__annotations__", {})
            defaults = [body[field] for field in annotations if field in body]
            made = namedtuple(name, annotations, defaults=defaults, module=body["__module__"])
            made.__annotations__ = annotations
            for member, value in body.items():
                if member not in annotations and member not in ("__annotations__", "__module__", "__qualname__"):
                    setattr(made, member, value)
            return made

    NamedTuple = type.__new__(_Maker, "NamedTuple", (), {})
