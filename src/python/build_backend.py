"""Builds tokmap's wheel, the Python package and libtokmap with zstd linked in, and its source distribution. A PEP 517 backend
of the standard library.

    pip install ./src/python              in a tree of tokmap, wherever pip is
    make wheel                            runs this file, and leaves the wheel in build/wheel
    python -m build --sdist src/python    the part of the tree that the wheel is made of; pip installs it as it does the tree

The library is made by the project's Makefile (its target wheel-lib), with the caller's CC, CFLAGS and so on. The wheel is
tagged linux_ARCHITECTURE: it needs the C library of the machine that built it, or a newer one. The same sources, compiler
and version of Python's zip give the same bytes.
"""
import base64
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine of ELF
WHEN = (2020, 1, 1, 0, 0, 0)  # a wheel says nothing of when it was made


def _version():
    with open(os.path.join(TOP, "include", "tokmap", "tokmap.h"), encoding="utf-8") as header:
        return re.search(r'^#define TOKMAP_VERSION_STRING "([^"]+)"', header.read(), re.M).group(1)


def _metadata():
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as readme:
        text = readme.read()
    return "\n".join((
        "Metadata-Version: 2.1", "Name: tokmap", f"Version: {_version()}",
        "Summary: Token files into training programs, in an order that can be computed, audited and resumed exactly",
        "License: MIT", "Requires-Python: >=3.9", "Classifier: License :: OSI Approved :: MIT License",
        "Classifier: Operating System :: POSIX :: Linux", "Classifier: Programming Language :: Python :: 3",
        "Description-Content-Type: text/markdown", "", text))


def _library(target="wheel-lib", folder="wheel"):
    """Builds the library by a target of the Makefile, and says where it lies."""
    if not os.path.exists(os.path.join(TOP, "Makefile")):
        sys.exit("tokmap: this folder is not in a tree of tokmap, whose library belongs into the package: install from the "
                 "tree (pip install ./src/python), or a wheel")
    make = os.environ.get("MAKE", "make").split()
    if shutil.which(make[0]) is None:
        sys.exit("tokmap: the library is built by make, which is not here: apt-get install make gcc libxxhash-dev "
                 "libzstd-dev")
    # Flags of a make that runs this file are not for the one that it runs.
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    command = [*make, "-s", "-C", TOP, f"-j{os.cpu_count() or 1}", target]
    command += [f"{name}={os.environ[name]}" for name in ("BUILD", "CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "LIBS")
                if os.environ.get(name)]
    if subprocess.run(command, env=environment, stdout=sys.stderr).returncode:
        sys.exit(f"tokmap: the library could not be built: {' '.join(command)}")
    build = os.path.join(TOP, os.environ.get("BUILD") or "build")
    return os.path.join(build, folder, "libtokmap.so." + _version().split(".")[0])


def _architecture(library):
    with open(library, "rb") as file:
        head = file.read(20)
    machine = int.from_bytes(head[18:20], "little")
    if head[:4] != b"\x7fELF" or machine not in MACHINES:
        sys.exit(f"tokmap: {library} is no library for x86-64 or aarch64")
    return MACHINES[machine]


def _write(path, files, tag):
    """A wheel of files {name: bytes}."""
    info = f"tokmap-{_version()}.dist-info"
    with open(os.path.join(TOP, "LICENSE"), "rb") as licence:
        files[f"{info}/LICENSE"] = licence.read()
    files[f"{info}/METADATA"] = _metadata().encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tokmap\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name in sorted(files, key=lambda name: (name.startswith(info), name)):
            digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(files[name])}")
            _add(wheel, name, files[name])
        record.append(f"{info}/RECORD,,")
        _add(wheel, f"{info}/RECORD", "\n".join([*record, ""]).encode())


def _add(wheel, name, content):
    entry = zipfile.ZipInfo(name, WHEN)
    entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(entry, content)


def _package():
    files = {}
    for name in sorted(os.listdir(os.path.join(HERE, "tokmap"))):
        if name.endswith((".py", ".typed")):
            with open(os.path.join(HERE, "tokmap", name), "rb") as file:
                files[f"tokmap/{name}"] = file.read()
    return files


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    library = _library()
    files = _package()
    with open(library, "rb") as file:
        files[f"tokmap/{os.path.basename(library)}"] = file.read()
    tag = f"py3-none-linux_{_architecture(library)}"
    name = f"tokmap-{_version()}-{tag}.whl"
    _write(os.path.join(wheel_directory, name), files, tag)
    return name


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package where it lies, with the library that `make` leaves in build/lib."""
    library = _library("lib", "lib")
    tag = f"py3-none-linux_{_architecture(library)}"
    name = f"tokmap-{_version()}-{tag}.whl"
    _write(os.path.join(wheel_directory, name), {"tokmap.pth": f"{HERE}\n".encode()}, tag)
    return name


# Folders that building leaves behind, this one's own output included.
_MADE = "__pycache__", "build", "dist"


def _sources():
    """What the wheel is made of, {name in the tree: bytes}. Known by their places: the tree need not be one of git."""
    paths = ["LICENSE", "Makefile", "README.md"]
    for top in ("include", "src"):
        for folder, folders, names in os.walk(os.path.join(TOP, top)):
            folders[:] = [name for name in folders if name[0] != "." and name not in _MADE]
            paths += [os.path.relpath(os.path.join(folder, name), TOP) for name in names if name[0] != "."]
    files = {}
    for path in paths:
        with open(os.path.join(TOP, path), "rb") as file:
            files[path] = file.read()
    return files


def build_sdist(sdist_directory, config_settings=None):
    files = _sources()
    files["PKG-INFO"] = _metadata().encode()
    # This file lies deeper than the distribution's top, where pip looks for what names it.
    files["pyproject.toml"] = files["src/python/pyproject.toml"].replace(b'["."]', b'["src/python"]')
    base = f"tokmap-{_version()}"
    with open(os.path.join(sdist_directory, f"{base}.tar.gz"), "wb") as to, \
            gzip.GzipFile("", "wb", fileobj=to, mtime=0) as packed, \
            tarfile.open(mode="w", fileobj=packed, format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(files):
            entry = tarfile.TarInfo(f"{base}/{name}")
            entry.size, entry.mode = len(files[name]), 0o644
            tar.addfile(entry, io.BytesIO(files[name]))
    return f"{base}.tar.gz"


if __name__ == "__main__":
    into = sys.argv[1]
    os.makedirs(into, exist_ok=True)
    for old in os.listdir(into):
        if old.endswith(".whl"):
            os.remove(os.path.join(into, old))
    print(os.path.join(into, build_wheel(into)))
