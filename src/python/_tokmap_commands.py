# SPDX-License-Identifier: MIT
"""Starts the commands that belong to the package tokmap. The scripts that installers make import this module, and not
the package, because importing the package loads its library, which a command does not use."""
from __future__ import annotations

import os
import shutil
import sys


def _path(name: str) -> str | None:
    """The path of a command: the one inside the package (in a wheel), else the one in build/bin of the source tree that
    contains this file, else the one in $PATH that is a program and not a script of ours, else None."""
    here = os.path.dirname(os.path.abspath(__file__))
    candidates = [os.path.join(here, "tokmap", "bin", name)]
    top = os.path.dirname(os.path.dirname(here))
    if os.path.exists(os.path.join(top, "include", "tokmap", "tokmap.h")):
        candidates.append(os.path.join(top, "build", "bin", name))
    candidates.append(shutil.which(name) or "")
    return next((path for path in candidates if os.path.exists(path) and _is_program(path)), None)


def _is_program(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def start(name: str) -> None:
    """Replaces this process by a command with this process's arguments."""
    path = _path(name)
    if path is None:
        sys.exit(f"{name}: the Python package does not contain the command: reinstall it (pip install ./src/python), "
                 f"or build the command in the source tree (make)")
    os.execv(path, [name, *sys.argv[1:]])


def tokmap() -> None:
    start("tokmap")


def tokmap_bench() -> None:
    start("tokmap-bench")
