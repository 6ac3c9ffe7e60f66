"""A PEP 517 build backend that needs only the standard library. It builds tokmap's wheel (the Python package, with
libtokmap and zstd inside) and its source distribution.

    pip install ./src/python              installs from the source tree
    make wheel                            runs this file, which writes the wheel to build/wheel
    python -m build --sdist src/python    packs the part of the tree from which the wheel is built; pip installs it too

The project's Makefile builds the library (target wheel-lib) with the caller's CC, CFLAGS, and other variables. The
wheel is tagged linux_ARCHITECTURE: it needs the C library of the machine that built it, or a newer one. The same
sources, compiler, and version of Python's zip module produce the same bytes.
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
WHEN = (2020, 1, 1, 0, 0, 0)  # of every file in a wheel, so that equal sources make equal wheels


def _version():
    with open(os.path.join(TOP, "include", "tokmap", "tokmap.h"), encoding="utf-8") as header:
        return re.search(r'^#define TOKMAP_VERSION_STRING "([^"]+)"', header.read(), re.M).group(1)


def _metadata():
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as readme:
        text = readme.read()
    return "\n".join((
        "Metadata-Version: 2.1", "Name: tokmap", f"Version: {_version()}",
        "Summary: Feeds token files to training programs in an order that can be computed, audited, and resumed",
        "License: MIT", "Requires-Python: >=3.9", "Classifier: License :: OSI Approved :: MIT License",
        "Classifier: Operating System :: POSIX :: Linux", "Classifier: Programming Language :: Python :: 3",
        "Description-Content-Type: text/markdown", "", text))


def _library(target="wheel-lib", folder="wheel"):
    """Builds the library by a target of the Makefile. Returns its path."""
    if not os.path.exists(os.path.join(TOP, "Makefile")):
        sys.exit("tokmap: the package contains a library, which is built from the source tree of tokmap, but this "
                 "folder is not inside one: install from the tree (pip install ./src/python), or install a wheel")
    make = os.environ.get("MAKE", "make").split()
    if shutil.which(make[0]) is None:
        sys.exit("tokmap: make, which builds the library, was not found: apt-get install make gcc libxxhash-dev "
                 "libzstd-dev")
    # If a make runs this file, its flags must not reach the make that this file runs.
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
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
        sys.exit(f"tokmap: {library} is not a library for x86-64 or aarch64")
    return MACHINES[machine]


def _write(path, files, tag):
    """Writes a wheel of files {name: bytes}."""
    info = f"tokmap-{_version()}.dist-info"
    with open(os.path.join(TOP, "LICENSE"), "rb") as license:
        files[f"{info}/LICENSE"] = license.read()
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
    """Builds a wheel that refers to the package in the source tree, with the library in build/lib."""
    library = _library("lib", "lib")
    tag = f"py3-none-linux_{_architecture(library)}"
    name = f"tokmap-{_version()}-{tag}.whl"
    _write(os.path.join(wheel_directory, name), {"tokmap.pth": f"{HERE}\n".encode()}, tag)
    return name


# Folders that builds create.
_BUILT = "__pycache__", "build", "dist"


def _sources():
    """The files from which the wheel is built, {name in the tree: bytes}. They are found by folder, because the tree
    need not be a git checkout."""
    paths = ["LICENSE", "Makefile", "README.md"]
    for top in ("include", "src"):
        for folder, folders, names in os.walk(os.path.join(TOP, top)):
            folders[:] = [name for name in folders if name[0] != "." and name not in _BUILT]
            paths += [os.path.relpath(os.path.join(folder, name), TOP) for name in names if name[0] != "."]
    files = {}
    for path in paths:
        with open(os.path.join(TOP, path), "rb") as file:
            files[path] = file.read()
    return files


def build_sdist(sdist_directory, config_settings=None):
    files = _sources()
    files["PKG-INFO"] = _metadata().encode()
    # pip looks for pyproject.toml at the top of the distribution, from where this file is two folders below.
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
