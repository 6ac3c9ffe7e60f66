"""Starts the commands that belong to the package tokmap. The scripts that installers make import this module, and not
the package, because importing the package loads its library, which a command does not use."""
import os
import shutil
import sys


def _path(name):
    """The path of a command: the one inside the package (in a wheel), else the one in build/bin of the source tree that
    contains this file, else the one in $PATH that is a program and not a script of ours, else None."""
    here = os.path.dirname(os.path.abspath(__file__))
    candidates = [os.path.join(here, "tokmap", "bin", name)]
    top = os.path.dirname(os.path.dirname(here))
    if os.path.exists(os.path.join(top, "include", "tokmap", "tokmap.h")):
        candidates.append(os.path.join(top, "build", "bin", name))
    candidates.append(shutil.which(name))
    return next((path for path in candidates if path and os.path.exists(path) and _is_program(path)), None)


def _is_program(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def start(name):
    """Replaces this process by a command with this process's arguments."""
    path = _path(name)
    if path is None:
        sys.exit(f"{name}: the Python package does not contain the command: reinstall it (pip install ./src/python), "
                 f"or build the command in the source tree (make)")
    os.execv(path, [name, *sys.argv[1:]])


def tokmap():
    start("tokmap")


def tokmap_bench():
    start("tokmap-bench")
