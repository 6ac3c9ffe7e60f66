# SPDX-License-Identifier: MIT
"""A PEP 517 build backend that needs only the standard library. It builds tokmap's wheel (the Python package, the
libraries, the commands, and their manual pages) and its source distribution.

    pip install ./src/python              installs from the source tree
    make wheel                            runs this file, which writes the wheel to build/wheel
    python -m build --sdist src/python    packs the part of the tree from which the wheel is built; pip installs it too

The project's Makefile builds the files (target wheel-files) with the caller's CC, CFLAGS, and other variables, in a
temporary folder or in the folder that BUILD names. Nothing is written into the source tree, so it can be read-only.

The tag of the wheel is computed from the files. Each lists the versions of glibc's functions that it needs, and the
libraries. If all libraries are glibc's own or inside the wheel, the tag is manylinux_2_N for the newest version 2.N,
and at least manylinux_2_28; otherwise it is linux_ARCHITECTURE, which means this machine. The same sources, compiler,
and version of Python's zip module produce the same bytes.
"""
import base64
import gzip
import hashlib
import io
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine of ELF
LICENSED = ("libzstd", "libisal", "libpcre2", "libxxhash", "libsnappy", "liblz4", "libbrotli", "libbz2", "liblzma",
            "libstdc++")  # libraries whose code is inside the files
GLIBC = re.compile(r"(libc\.so\.6|libm\.so\.6|libpthread\.so\.0|libdl\.so\.2|librt\.so\.1|ld-linux.*\.so\.\d)$")
WHEN = (2020, 1, 1, 0, 0, 0)  # of every file in a wheel, so that equal sources make equal wheels


# Python has just written the compiled form of this file into the source tree.
try:
    os.remove(__spec__.cached)
    os.rmdir(os.path.dirname(__spec__.cached))
except (AttributeError, TypeError, OSError):  # run as a program, not cached, or not writable
    pass


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


def _make(build, *targets):
    """Runs the Makefile, which builds into the folder `build`."""
    if not os.path.exists(os.path.join(TOP, "Makefile")):
        sys.exit("tokmap: the package contains libraries and commands, which are built from the source tree of tokmap, "
                 "but this folder is not inside one: install from the tree (pip install ./src/python), or a wheel")
    make = os.environ.get("MAKE", "make").split()
    if shutil.which(make[0]) is None:
        sys.exit("tokmap: make, which builds the libraries, was not found: apt-get install make gcc libxxhash-dev "
                 "libzstd-dev")
    # If a make runs this file, its flags must not reach the make that this file runs.
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    command = [*make, "-s", "-C", TOP, f"-j{os.cpu_count() or 1}", *targets, f"BUILD={build}"]
    command += [f"{name}={os.environ[name]}" for name in ("CC", "AR", "CFLAGS", "CPPFLAGS", "LDFLAGS", "LIBS")
                if os.environ.get(name)]
    if subprocess.run(command, env=environment, stdout=sys.stderr).returncode:
        sys.exit(f"tokmap: the libraries and commands could not be built: {' '.join(command)}")


def _new_folder():
    """A temporary folder whose path has no blank, which make cannot handle."""
    for parent in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        if not re.search(r"\s", parent) and os.access(parent, os.W_OK):
            return tempfile.mkdtemp(prefix="tokmap-build-", dir=parent)
    sys.exit("tokmap: no folder for temporary files is writable: set TMPDIR to one whose path has no blank")


def _built():
    """Builds the libraries and commands. Returns {path in the package: bytes}."""
    temporary = None if os.environ.get("BUILD") else _new_folder()
    build = temporary or os.environ["BUILD"]
    # In a new folder everything is compiled, and nothing of the debugging information is kept: it is not made.
    flags = ["CFLAGS=-O2"] if temporary and not os.environ.get("CFLAGS") else []
    try:
        _make(build, "wheel-files", *flags)
        folder, major = os.path.join(TOP, build, "wheel"), _version().split(".")[0]
        names = [f"libtokmap.so.{major}", f"libtokmap_tokenize.so.{major}", "bin/tokmap", "bin/tokmap-bench"]
        return {name: _read(os.path.join(folder, name)) for name in names}
    finally:
        if temporary:
            shutil.rmtree(temporary)


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def _dynamic(content):
    """What a program or library needs: its libraries, and the versions of glibc's functions. None if readelf, which
    every compiler uses, is missing."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        try:
            said = subprocess.run(["readelf", "-W", "-d", "-V", file.name], capture_output=True, text=True, check=True,
                                  env={**os.environ, "LC_ALL": "C"}).stdout
        except (OSError, subprocess.CalledProcessError):
            return None
    return re.findall(r"\(NEEDED\).*\[(.+)\]", said), re.findall(r"Name: (GLIBC_\S+)", said)


def _complete(files):
    """Adds the shared libraries that the files need and that are not part of glibc. Returns the platform's tag."""
    architecture = _architecture(files)
    waiting, newest, compiler = list(files), (2, 28), os.environ.get("CC") or "cc"
    while waiting:
        found = _dynamic(files[waiting.pop()])
        if found is None:
            return f"linux_{architecture}"
        for name in found[0]:
            if GLIBC.match(name) or name in files:
                continue
            path = subprocess.run([*compiler.split(), f"-print-file-name={name}"], capture_output=True,
                                  text=True).stdout
            if not os.path.isabs(path.strip()):
                return f"linux_{architecture}"
            files[name] = _read(path.strip())
            waiting.append(name)
        for version in found[1]:
            if not re.fullmatch(r"GLIBC_2(\.\d+)+", version):  # not a number, for example GLIBC_ABI_DT_RELR
                return f"linux_{architecture}"
            newest = max(newest, tuple(map(int, version[6:].split(".")[:2])))
    # An older machine would refuse a wheel of its own with a newer tag.
    here = re.fullmatch(r"glibc 2\.(\d+)", os.confstr("CS_GNU_LIBC_VERSION") or "")
    if here is None or int(here[1]) < newest[1]:
        return f"linux_{architecture}"
    return f"manylinux_2_{newest[1]}_{architecture}"


def _architecture(files):
    heads = {(content[:4], int.from_bytes(content[18:20], "little")) for content in files.values()}
    if len(heads) != 1 or not all(magic == b"\x7fELF" and machine in MACHINES for magic, machine in heads):
        sys.exit("tokmap: the compiler does not make programs for x86-64 or aarch64")
    return MACHINES[heads.pop()[1]]


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
    program = ".so" in name or "/bin/" in name
    entry.external_attr = (stat.S_IFREG | (0o755 if program else 0o644)) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(entry, content)


def _package():
    names = [name for name in sorted(os.listdir(os.path.join(HERE, "tokmap"))) if name.endswith((".py", ".typed"))]
    return {name: _read(os.path.join(HERE, name)) for name in ("_tokmap_commands.py", *map("tokmap/{}".format, names))}


def _entry_points():
    """The commands, which the installer puts beside python."""
    lines = ["[console_scripts]", "tokmap = _tokmap_commands:tokmap", "tokmap-bench = _tokmap_commands:tokmap_bench",
             ""]
    return {f"tokmap-{_version()}.dist-info/entry_points.txt": "\n".join(lines).encode()}


def _pages():
    """The manual pages and the completions of shells, which are found in the environment's share/."""
    files, data = {}, f"tokmap-{_version()}.data/data/share"
    for folder in ("tokenize_tools/man", "bench/man"):
        for name in os.listdir(os.path.join(TOP, folder)):
            if name[-2:] in (".1", ".5", ".7"):
                files[f"{data}/man/man{name[-1]}/{name}"] = _read(os.path.join(TOP, folder, name))
    for name, place in (("tokmap.bash", "bash-completion/completions/tokmap"),
                        ("tokmap.zsh", "zsh/site-functions/_tokmap"),
                        ("tokmap.fish", "fish/vendor_completions.d/tokmap.fish")):
        path = os.path.join(TOP, "tokenize_tools", "completion", name)
        if os.path.exists(path):
            files[f"{data}/{place}"] = _read(path)
    return files


def _licenses():
    """The licenses of the libraries whose code is inside, as the distribution of the building machine has them."""
    files, folder = {}, "/usr/share/doc"
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        path = os.path.join(folder, name, "copyright")
        if name.endswith("-dev") and name.startswith(LICENSED) and os.path.isfile(path):
            files[f"tokmap-{_version()}.dist-info/licenses/{name}.txt"] = _read(path)
    return files


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    built = _built()
    tag = f"py3-none-{_complete(built)}"
    files = {**_package(), **_entry_points(), **_pages(), **_licenses(),
             **{f"tokmap/{name}": content for name, content in built.items()}}
    name = f"tokmap-{_version()}-{tag}.whl"
    _write(os.path.join(wheel_directory, name), files, tag)
    return name


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Without this, pip builds the wheel to see its metadata, and reports a failure of the compiler as one of them."""
    folder = f"tokmap-{_version()}.dist-info"
    os.makedirs(os.path.join(metadata_directory, folder))
    with open(os.path.join(metadata_directory, folder, "METADATA"), "w", encoding="utf-8") as file:
        file.write(_metadata())
    return folder


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds a wheel that refers to the package in the source tree, with the libraries and commands in its build/."""
    build = os.environ.get("BUILD") or "build"
    _make(build, "all")
    folder = os.path.join(TOP, build)
    tag = f"py3-none-linux_{_architecture({'': _read(os.path.join(folder, 'bin', 'tokmap'))})}"
    name = f"tokmap-{_version()}-{tag}.whl"
    _write(os.path.join(wheel_directory, name), {"tokmap.pth": f"{HERE}\n".encode(), **_entry_points()}, tag)
    return name


# Folders that builds create.
_BUILT = "__pycache__", "build", "dist"


def _sources():
    """The files from which the wheel is built, {name in the tree: bytes}. They are found by folder, because the tree
    need not be a git checkout."""
    paths = ["LICENSE", "Makefile", "README.md"]
    for top in ("bench", "include", "src", "tokenize_tools"):
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
