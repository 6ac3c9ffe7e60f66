#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the rules of the project that a script can check. `make lint` runs it in the project's top folder.

usage: lint.py [--list] [--without PATTERN] [PATTERN...]

A rule is a function below `@rule(NAME)`. It yields its findings, usually as "FILE:LINE: text". Its docstring says what
the rule asks for and why, and is printed after the findings. `raise Skip(reason)` skips a rule whose tools are missing.
With patterns, such as "man pages*", only the rules whose names match one of them run. The line of each rule is "ok
NAME" or "not ok NAME", and the last line is "N passed, N failed, N skipped". --list prints the names of the rules.

From the environment: OBJ is the folder of the objects, and BUILD that of the libraries. Needed are Python 3.9, grep,
and nm; clang-format, mandoc, and ptxas are used where they are installed. To add a rule, write its function here, and
plant a fault for it in test_lint.sh.
"""
import argparse
import fnmatch
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("BUILD") or "build"
OBJ = os.environ.get("OBJ", "").rstrip("/")
RULES = []


class Skip(Exception):
    """The reason why a rule cannot be checked here."""


def rule(name):
    """Returns a decorator that adds a function to the list of rules."""
    def add(function):
        RULES.append((name, function))
        return function
    return add


# ---- the project's files ----

def list_files():
    """Returns the paths of all files of the project's folders, sorted."""
    found = []
    for top in ("src", "include", "tokenize_tools", "bench", "tests"):
        for folder, folders, names in os.walk(top):
            folders[:] = [name for name in folders if name != "__pycache__"]
            found += [os.path.join(folder, name) for name in names]
    return sorted(found)


def with_ending(paths, *endings):
    return [path for path in paths if path.endswith(endings)]


def within(paths, *folders):
    return [path for path in paths if path.startswith(folders)]


def without(paths, *folders):
    return [path for path in paths if not path.startswith(folders)]


def existing(*paths):
    return [path for path in paths if os.path.isfile(path)]


FILES = list_files()
KNOWN = set(FILES)
CODE = with_ending(FILES, ".c", ".h", ".cpp")
PRODUCT = within(CODE, "src/", "tokenize_tools/", "bench/", "include/")
PUBLIC = with_ending(within(FILES, "include/tokmap/"), ".h")
WRITTEN = with_ending(FILES, ".c", ".h", ".cpp", ".cu", ".sh", ".py", ".map", ".mk") + existing("Makefile", ".ci/run")
PAGES = [path for path in FILES if re.search(r"\.[1-8]$", path)]
TEXTS = WRITTEN + with_ending(FILES, ".md") + PAGES + existing("README.md")


@functools.lru_cache(maxsize=None)
def text_of(path):
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


@functools.lru_cache(maxsize=None)
def bare(path):
    """Returns the text of a C file with comments removed and strings emptied, on the same lines, for rules about
    calls."""
    def replaced(match):
        kept = match.group()[0] * 2 if match.group()[0] in "\"'" else " "
        return kept + "\n" * match.group().count("\n")
    return re.sub(r'/\*.*?(?:\*/|\Z)|//[^\n]*|"(?:\\.|[^"\\\n])*"?|\'(?:\\.|[^\'\\\n])*\'?', replaced, text_of(path),
                  flags=re.DOTALL)


def matches(paths, pattern, read=text_of, flags=0):
    """Yields the path, the number, and the text of each line that contains a match, and the match."""
    compiled = re.compile(pattern, flags | re.MULTILINE)
    for path in paths:
        text = read(path)
        if compiled.search(text):
            for number, line in enumerate(text.split("\n"), 1):
                match = compiled.search(line)
                if match:
                    yield path, number, line, match


def found(paths, pattern, advice="", read=text_of, flags=0):
    """Yields a finding for each line that contains a match."""
    for path, number, line, _ in matches(paths, pattern, read, flags):
        yield f"{path}:{number}: {line.strip()[:200]}{advice and ' -> ' + advice}"


def output_of(*command, **options):
    """Returns the exit status and the lines of the standard output and standard error of a command."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          universal_newlines=True, errors="surrogateescape", **options)
    return done.returncode, done.stdout.splitlines()


# ---- includes ----

ROOM_ROW = re.compile(r"^\| `([\w/]+)` \|.*\| ([^|]*) \|$", re.M)


@functools.lru_cache(maxsize=None)
def arrows():
    """Returns for each room the set of rooms and files that the tables of src/ROOMS.md let it include."""
    library, _, tools = text_of("src/ROOMS.md").partition("## The library:")[2].partition("## The tools:")
    rows = {"include": ""}
    for folder, text in (("src/", library), ("tokenize_tools/", tools.partition("\n## ")[0])):
        rows.update((room.rstrip("/") if room.startswith("bench/") or room == folder else folder + room, cell) for room, cell in ROOM_ROW.findall(text))
    named = {path.rpartition("/")[2]: path for path in with_ending(KNOWN, ".h")}
    named.update((room.rpartition("/")[2], room) for room in rows)
    written = {room: [named.get(name.rstrip("/").rpartition("/")[2], name) + plus
                      for name, plus in re.findall(r"`([\w/.]+)`(\+?)", cell)] for room, cell in rows.items()}

    def granted(words):
        rooms = set()
        for word in words:
            rooms.add(word.rstrip("+"))
            if word.endswith("+"):
                rooms |= granted(written[word[:-1]])
        return rooms
    return {room: granted(words) for room, words in written.items()}


def room_of(path):
    """Returns the room of a file: its folder, or the nearest folder above it that is one."""
    if path.startswith("include/"):
        return "include"
    folder = os.path.dirname(path)
    while folder not in arrows() and "/" in folder:
        folder = os.path.dirname(folder)
    return folder


# The folders in which the compiler looks for "room/file.h": see room_flags in src/make/flags.mk.
WINGS = ["tokenize_tools/" + wing + "/" for wing in ("tokenizers", "inputs", "packer")]
TOPS = ["src/", "include/", "tokenize_tools/", *WINGS, "bench/"]


@functools.lru_cache(maxsize=None)
def includes():
    """Returns the file, the line number, the included name, and the included file or None, of each #include "..."."""
    edges = []
    for path, number, _, match in matches(PRODUCT, r'^ *# *include *"([^"]*)"'):
        name = match.group(1)
        places = [os.path.normpath(os.path.join(os.path.dirname(path), name))]
        places += [top + name for top in TOPS]
        edges.append((path, number, name, next((place for place in places if place in KNOWN), None)))
    return edges


@rule("include arrows")
def include_arrows():
    """A file includes only what its room may: see the tables of src/ROOMS.md. Then a reader who knows the folder of a file knows what the file can use."""
    for path, number, name, target in includes():
        if target is None:
            yield f'{path}:{number}: "{name}" is not a file of the project'
            continue
        source, to = room_of(path), room_of(target)
        allowed = arrows().get(source)
        if allowed is None:
            yield f"{path}:{number}: the folder of {path} is not a room of ROOMS.md"
        elif target == "src/platform/process.h":
            if source != "src/platform" and target not in allowed:
                yield f"{path}:{number}: {source} may not include {target}"
        elif to not in ("include", source) and to not in allowed and target not in allowed:
            yield f"{path}:{number}: {source} may not include {to}"


@rule("include blocks are sorted")
def include_order():
    """The includes of a block (lines without a blank line between them) are sorted, those of the system first. Then a
    reader finds a name at a glance, a header is not added twice, and two changes that add one rarely meet in the same
    line. A block with cmocka.h is exempt, because cmocka.h uses what the headers before it define."""
    for path in CODE:
        for block in re.finditer(r"(^ *# *include +[\"<].*\n)+", text_of(path), re.MULTILINE):
            names = re.findall(r"# *include +([\"<])([^\">]+)", block.group())
            wrong = [second for first, second in zip(names, names[1:])
                     if (first[0] == '"', first[1]) >= (second[0] == '"', second[1])]
            if wrong and "<cmocka.h>" not in block.group():
                line = text_of(path).count("\n", 0, block.start()) + 1
                yield f"{path}:{line}: {wrong[0][1]} is out of order in the block of includes that begins here"


@rule("arrows between wings")
def wing_arrows():
    """A file behind one door of tokenize_tools includes only what the first table of src/ROOMS.md lets its wing include.
    Then whoever reads a wing knows which others to read before it."""
    doors = text_of("src/ROOMS.md").partition("## Doors")[2].partition("\n## ")[0]
    allowed = {wing: re.findall(r"`(\w+)`", cell) for wing, cell in re.findall(r"^\| `(\w+)` \|.*\|([^|]*)\|$", doors, re.M)}
    for path, number, _, target in includes():
        source, to = path.split("/"), (target or "").split("/")
        if source[1] in allowed and source[0] == to[0] and source[1] != to[1] and source[1] != "commands":
            names = allowed[source[1]]
            if to[1] not in names or ("codec" in names and to[2] != "codec"):
                yield f"{path}:{number}: the wing {source[1]} may not include {target}"


def module_of(path):
    """Returns the module of a file: its .c file without the ending. CPU variants (X_avx2.c) and headers without a .c file
    of their own that are named after it (X_internal.h) belong to it."""
    base = re.sub(r"(_(avx2|avx512|vbmi|neon))?\.(c|h|cu)$", "", path)
    shorter = base
    while shorter + ".c" not in KNOWN and shorter + ".cu" not in KNOWN:
        cut = re.sub(r"_[a-z0-9]+$", "", shorter)
        if cut == shorter or cut.endswith("/"):
            return base
        shorter = cut
    return shorter


# Public functions that the rooms call, too, because an inner function could only repeat them.
NO_TWIN = {
    "tokmap_version": "is a constant",
    "tokmap_status_text": "accepts every number",
    "tokmap_error_print": "accepts every error",
    "tokmap_dataset_close": "accepts every dataset, and NULL",
    "tokmap_run_close": "accepts every run, and NULL",
    "tokmap_loader_close": "accepts every loader, and NULL",
    "tokmap_tokenizer_batch_close": "accepts every batch, and NULL",
}


@functools.lru_cache(maxsize=None)
def public_calls():
    """Returns the file, the line number, the name of the function, and the file that defines it, of each call inside a
    library of a public function of that library. Definitions begin at the start of a line, and calls do not."""
    names = {name for name, _, _ in declared()}
    sources = [path for path in with_ending(PRODUCT, ".c") if path.startswith(("src/", "tokenize_tools/"))]
    homes = {match.group(1): path for path, _, _, match in matches(sources, r"^[a-z].*\b(tokmap_[a-z0-9_]+)\(", bare)}
    calls = []
    for path, number, line, _ in matches(without(sources, "tokenize_tools/commands/"), r"^\s.*\btokmap_", bare):
        for match in re.finditer(r"(?<!struct )(?<!enum )\btokmap_[a-z0-9_]+\b", line):
            home = homes.get(match.group()) if match.group() in names else None
            if home and home.split("/")[0] == path.split("/")[0]:
                calls.append((path, number, match.group(), home))
    return calls


@rule("rooms call inner functions")
def inner_calls():
    """A room calls no public function of its own library: it calls the inner function of which the public one checks
    the arguments. Then a room has no errors to handle that cannot occur, and calls through a public header hide no
    circle. NO_TWIN lists the exceptions, and the calls of these are edges of the rule about circles."""
    for path, number, name, home in public_calls():
        if name not in NO_TWIN:
            yield f"{path}:{number}: calls {name}, which {home} defines for other programs"


@rule("no circles between files")
def circles():
    """Modules (X.c with X.h) do not include each other in a circle, so each can be read and tested after those below it.
    A call of a public function counts as an include of the module that defines it.
    Modules that include nothing, and those that nothing includes, are removed until the circles are left, and what is
    between two circles."""
    edges = {(module_of(path), module_of(target)) for path, _, _, target in includes() if target}
    edges |= {(module_of(path), module_of(home)) for path, _, _, home in public_calls()}
    edges = {(source, target) for source, target in edges if source != target}
    while True:
        ends = {source for source, _ in edges} & {target for _, target in edges}
        left = {(source, target) for source, target in edges if source in ends and target in ends}
        if left == edges:
            break
        edges = left
    for source, target in sorted(edges):
        yield f"{source}: includes {target}, which includes it in turn, directly or through others"


# ---- calls and symbols ----

KERNEL = set("""open openat creat close read readv pread preadv preadv2 write writev pwrite pwritev pwritev2 lseek mmap
    munmap mremap madvise posix_madvise msync mlock munlock mincore posix_fadvise readahead fsync fdatasync sync syncfs
    sync_file_range rename renameat renameat2 unlink unlinkat remove link linkat symlink mkdir mkdirat rmdir mkstemp
    mkostemp mkdtemp opendir fdopendir readdir closedir scandir nftw ftw fts_open glob stat fstat lstat fstatat statx
    statfs fstatfs statvfs fstatvfs access faccessat truncate ftruncate fallocate posix_fallocate copy_file_range
    sendfile splice flock lockf fcntl ioctl dup dup2 dup3 pipe pipe2 fork vfork execv execve execvp posix_spawn
    posix_spawnp wait waitpid wait4 kill signal sigaction sigprocmask raise alarm setitimer sem_init sem_wait sem_post
    thrd_create mtx_lock cnd_wait nanosleep clock_nanosleep usleep sleep poll select epoll_wait clock_gettime
    gettimeofday time sched_yield sched_getaffinity sched_setaffinity getpid geteuid getuid isatty sysconf syscall
    getrusage sysinfo dlopen fopen freopen fdopen tmpfile popen system realpath""".split())
PRINTING = set("""printf vprintf fprintf vfprintf dprintf puts fputs putchar fputc putc fwrite perror fflush stdout
    stderr stdin exit _exit _Exit quick_exit abort atexit setlocale setenv putenv unsetenv getenv strerror localtime
    gmtime ctime rand srand random srandom""".split())
FORBIDDEN = """strcpy strcat strncpy strncat stpcpy sprintf vsprintf gets atoi atol atoll atof strtok alloca system
    popen tmpnam mktemp scanf sscanf fscanf rand srand setjmp longjmp""".split()
PROCESSES = set("""fork vfork execve execv execvp posix_spawn posix_spawnp wait waitpid wait4 waitid kill raise signal
    sigaction sigwait sigwaitinfo sigtimedwait signalfd""".split())


def nm(*arguments, **options):
    if not shutil.which("nm"):
        raise Skip("nm is missing")
    return output_of("nm", *arguments, **options)[1]


@functools.lru_cache(maxsize=None)
def symbols():
    """Returns the source file, the letter of nm, and the name, of each symbol of the objects of the product."""
    if not OBJ:
        raise Skip("OBJ, the folder of the objects, is not set")
    objects = [path + ".o" for path in PRODUCT if os.path.isfile(f"{OBJ}/{path}.o")]
    lines = nm("-A", *objects, cwd=OBJ) if objects else []
    parts = (re.match(r"(.*)\.o:[0-9a-f ]* (\S) ([^@]*)", line) for line in lines)
    return [part.groups() for part in parts if part]


def called():
    """Yields the source file and the name of each function of the C library that an object uses. The names are without
    the additions for large files and _FORTIFY_SOURCE."""
    for path, letter, name in symbols():
        if letter in "UwvW":
            name = re.sub(r"^__isoc[0-9]*_", "", name)
            name = re.sub(r"^__(.*)_(chk|2)$", r"\1", name)
            yield path, re.sub(r"64$", "", name)


@rule("system calls only in platform")
def system_calls():
    """Only src/platform calls the kernel, so that a fault injection and a port have one place to change: use os.h, or
    add a function to it."""
    if not symbols():
        yield f"{OBJ} has no objects; run make first"
    for path, name in sorted(set(called())):
        if not path.startswith("src/platform/") and (name in KERNEL or re.match("(pthread|sem|thrd|mtx|cnd)_", name)):
            yield f"{path}: calls {name}, which only src/platform may call"


@rule("the library is silent")
def silent():
    """The library never prints, exits, or aborts, and has no global state, because it runs in the programs of others."""
    for path, name in sorted(set(called())):
        allowed = path.startswith("src/cli/") or (path.startswith("src/platform/") and name == "_exit")
        if path.startswith("src/") and name in PRINTING and not allowed:
            yield f"{path}: uses {name}"


@rule("forbidden functions")
def forbidden():
    """These functions cannot be used safely, or have a replacement in src/common or src/platform."""
    pattern = r"\b(" + "|".join(FORBIDDEN) + r") *\("
    for path, number, _, match in matches(PRODUCT, pattern, bare):
        yield f"{path}:{number}: calls {match.group(1)}, which is forbidden"


@rule("files are renamed in two places")
def renames():
    """Only src/format/name_files.c, and shard_commit.c for the files of one shard that others read, rename files: what a
    kill or a power cut at any moment leaves is their subject. Use name_file(), or a group of name_files.h."""
    paths = without(PRODUCT, "src/platform/", "src/format/name_files.c", "src/format/shard_commit.c")
    yield from found(paths, r"\bos_rename *\(", "use name_file() of format/name_files.h", bare)


@rule("system headers only in platform")
def system_headers():
    """Only src/platform includes headers of the kernel's functions; others include platform/os.h."""
    names = "fcntl|unistd|dirent|pthread|signal|sched|semaphore|threads|poll|dlfcn|glob|ftw|fts|spawn"
    yield from found(without(PRODUCT, "src/platform/"), rf"^ *# *include *<({names}|sys/[a-z_]+|linux/[a-z_]+)\.h>",
                     "include platform/os.h instead", bare)


@rule("xxHash only in common")
def xxhash():
    """Only src/common includes xxhash.h, so one place decides which hash is used and how it is compiled."""
    yield from found(without(PRODUCT, "src/common/"), r"^ *# *include *<xxhash\.h>", read=bare)


@rule("public headers include only stddef.h and stdint.h")
def public_includes():
    """What a public header includes, every user's program includes."""
    yield from found(PUBLIC, r"# *include *<(?!(stddef|stdint)\.h>)", read=bare)


@rule("no typedefs of structs")
def typedefs():
    """`struct x` says at each use what x is."""
    yield from found(without(PRODUCT, "include/"), r"^ *typedef +(struct|union|enum)\b", read=bare)


@functools.lru_cache(maxsize=None)
def declared():
    """Returns the name, whether it returns a status, and the comment before it, of each function of the public headers."""
    functions = []
    for path in PUBLIC:
        comment = ""
        for match in re.finditer(r"^ *(/\*.*?\*/)|^TOKMAP_((?:API|STATUS)\b[^;]*);", text_of(path), re.MULTILINE | re.DOTALL):
            if match.group(1):
                comment = match.group(1)
                continue
            name = re.search(r"\b(tokmap_[a-z0-9_]+)\(", match.group(2))
            if name:
                status = re.search(r"(enum tokmap_status|^STATUS)\s+tokmap_[a-z0-9_]+\(", match.group(2)) is not None
                functions.append((name.group(1), status, comment))
    return functions


def library(name):
    """Returns the path of the shared library of this name that was built, or None."""
    folder = os.path.join(BUILD, "lib")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return next((os.path.join(folder, file) for file in names if re.match(name + r"\.so\.[0-9]", file)), None)


@rule("exported symbols are the declared ones")
def exports():
    """A shared library exports what its public headers declare, and nothing else. The functions of tokenizer.h belong
    to libtokmap_tokenize and have names that begin with tokmap_tokenizer_."""
    if not library("libtokmap"):
        raise Skip("the shared library is not built")
    names = {name for name, _, _ in declared()}
    of_tokenizers = {name for name in names if name.startswith("tokmap_tokenizer_")}
    for path, wanted in ((library("libtokmap"), names - of_tokenizers), (library("libtokmap_tokenize"), of_tokenizers)):
        if not path:
            yield from (f"no library exports {name}" for name in sorted(wanted))
            continue
        exported = {line.split()[-1].split("@")[0] for line in nm("-D", "--defined-only", path) if " A " not in line}
        for name in sorted(exported - wanted):
            yield f"{path}: exports {name}, which its public headers do not declare"
        for name in sorted(wanted - exported):
            yield f"{path}: does not export {name}, which a public header declares"
        for name in sorted(exported):
            if not name.startswith("tokmap_"):
                yield f"{path}: exports {name}, which has no prefix tokmap_"


@rule("public comments name the statuses")
def statuses():
    """The comment of each public function names the statuses that it returns, or says that it cannot fail, and the
    statuses exist."""
    known = {match.group(1) for _, _, _, match in matches(PUBLIC, r"^ *XX\(([A-Z_]*), *[0-9]*,")}
    if "OK" not in known:
        yield "include/tokmap: no public header has the list of statuses"
        return
    for name, status, comment in declared():
        if status and "Statuses:" not in comment:
            yield f"{name}: its comment does not name its statuses"
        if not status and not re.search("Statuses:|[Cc]annot fail", comment):
            yield f"{name}: its comment does not say that it cannot fail"
        for word in re.findall(r"ERROR_[A-Z_]+", comment):
            if word not in known:
                yield f"{name}: {word} is not a status"


@rule("no signals or child processes in the library")
def processes():
    """Signals and child processes belong to the program, so process.h is linked into commands and tests only."""
    if not os.path.isfile(f"{OBJ}/src/platform/process_linux.c.o") or not library("libtokmap"):
        raise Skip("the library is not built")
    ours = {name for path, letter, name in symbols() if path == "src/platform/process_linux.c" and letter in "TDB"}
    for path in (library("libtokmap"), f"{BUILD}/lib/libtokmap.a"):
        used = {line.split()[-1].split("@")[0] for line in nm(path) if line.strip()} if os.path.isfile(path) else set()
        for name in sorted(used & (ours | PROCESSES)):
            yield f"{path}: contains or uses {name}"


@functools.lru_cache(maxsize=None)
def functions():
    """Returns the file, the line number, the name, and whether it is static, of each function that the C sources of the
    product define. A macro whose text has the word static, such as INLINE, makes a function static, too."""
    makers = {match.group(1) for _, _, _, match in matches(PRODUCT, r"^ *# *define (\w+) .*\bstatic\b", bare)}
    attribute = r"__attribute__\(\(.*?\)\)\s*"
    definition = re.compile(rf"^((?:[A-Za-z_]\w*[\s*]+|{attribute})+)(\w+)\(((?:[^;{{}}()]|\([^()]*\))*)\)\s*"
                            rf"(?:{attribute})*{{", re.MULTILINE)
    return [(path, bare(path).count("\n", 0, match.start()) + 1, match.group(2),
             bool({"static", *makers} & set(match.group(1).split())))
            for path in with_ending(PRODUCT, ".c", ".h") for match in definition.finditer(bare(path))]


@rule("names of functions are unique")
def unique_functions():
    """A static function does not have the name of a function of another file that others can call: an external function, or
    one in a header. Then a name in a search, a stack trace, or a profile means one function, and what looks like a call
    across files is one. Two external functions do not share a name either, except main(). Rename the static one."""
    known = {}
    for path, _, name, static in functions():
        if not static or path.endswith(".h"):
            known.setdefault(name, set()).add(path)
    for path, number, name, static in functions():
        others = known.get(name, set()) - {path}
        if others and name != "main":
            yield f"{path}:{number}: {name}() is also a function of {' '.join(sorted(others))}"


def declarations(path):
    """Yields the names of the functions that a header declares outside of structs."""
    text = re.sub(r"^ *#([^\\\n]|\\.|\\\n)*", "", bare(path), flags=re.MULTILINE)
    while re.search(r"\{[^{}]*\}", text):
        text = re.sub(r"\{[^{}]*\}", ";", text)
    for statement in text.split(";"):
        match = re.match(r"\s*(?!static\b|typedef\b|__attribute__)([a-z][\w\s*]*?\b[a-z_][a-z_0-9]*)\(", statement)
        if match:
            yield re.split(r"[\s*]", match.group(1))[-1]


@rule("headers declare what their .c files define")
def headers():
    """A header declares only what its own module defines (the .c file of the same name and its CPU variants), so a reader
    knows where to look."""
    defined = {}
    for path, letter, name in symbols():
        if letter in "TDRBV":
            defined.setdefault(name, []).append(path)
    for path in without(with_ending(PRODUCT, ".h"), "include/"):
        header = path[:-2]
        for name in declarations(path):
            sources = [re.sub(r"(_(avx2|avx512|vbmi|neon|linux|linux_[a-z]+))?\.(c|cu)$", "", source)
                       for source in defined.get(name, [])]
            if sources and not any(header == source or header.startswith(source + "_") for source in sources):
                yield f"{path}: declares {name}, which is defined in {' '.join(defined[name])}"


# ---- text ----

@rule("no space at the end of a line")
def end_of_line():
    """Spaces at the end of a line are noise in a comparison of versions."""
    yield from found(TEXTS, r"[^\S\n]$")


@rule("no tabs in code")
def tabs():
    """A tab has a different width for each reader."""
    yield from found(CODE, "\t")


@rule("lines of at most 120 columns")
def columns():
    """A line has at most 120 columns. A line that is a single string may be longer, and so may a line in tests/ that
    contains a string."""
    for path, number, line, _ in matches(WRITTEN, r"^.{121}"):
        if not re.match(r" *[\"']", line) and not (path.startswith("tests/") and re.search("[\"']", line)):
            yield f"{path}:{number}: {len(line)} columns"


@rule("files of at most 900 lines")
def length():
    """A file has at most 900 lines. Split the file. Generated tables may be longer."""
    for path in PRODUCT:
        lines = text_of(path).count("\n")
        if lines > 900 and "do not edit" not in text_of(path):
            yield f"{path}: {lines} lines"


@rule("files end with a newline")
def newline():
    """A last line without a newline is lost by some tools, and two texts cannot be joined."""
    for path in TEXTS:
        if text_of(path) and not text_of(path).endswith("\n"):
            yield f"{path}: the last line has no newline"


def commentable():
    """Returns the files outside src and the like, and the data of tests, that can hold a comment."""
    hidden = [os.path.join(folder, name) for top in (".github", ".ci") for folder, _, names in os.walk(top)
              for name in names if not folder.startswith(".github/changelog")]
    return (with_ending(hidden, ".md", ".yml", ".yaml", ".cff", ".sh", ".py", ".suppr", "run", "rules", "Containerfile") +
            with_ending(within(FILES, "tests/reference/", "tests/lint/"), ".txt") + with_ending(FILES, ".toml", ".in") +
            existing(".clang-format", ".editorconfig", ".gitignore"))


@rule("license lines")
def license_lines():
    """Every file that can hold a comment says its license at its beginning, so that a file which is copied into another
    project still says it. The other files, such as data and pictures, have theirs in .reuse/dep5."""
    for path in without(TEXTS, "tests/fuzz/corpus/") + commentable():
        if "SPDX-License-" + "Identifier: MIT" not in "".join(text_of(path).splitlines(keepends=True)[:3]):
            yield f"{path}: the first lines have no \"SPDX-License-" + "Identifier: MIT\""


@rule("nothing unfinished")
def unfinished():
    """What is not finished is not in the project."""
    pattern = r"(^|[^a-z])(TODO|FIXME|XXX|HACK)([^a-z]|$)|not implemented|placeholder|for now([^a-z]|$)"
    for finding in found(without(TEXTS, "tests/lint/"), pattern, flags=re.IGNORECASE):
        if not re.search(r"XX\(|X{6}", finding):
            yield finding


@rule("no paths of one machine")
def machine_paths():
    """What one machine calls its folders says nothing to a reader. Results have the commands that were typed."""
    results = [path for path in within(FILES, "bench/results/") if path.endswith((".jsonl", ".svg"))]
    yield from found(without(TEXTS, "tests/lint/") + results,
                     r"(^|[^A-Za-z0-9_.])/(w[o]rk|f[a]rm|home|root)/|bash[_]jobs")
    yield from found(results, "/tmp/")


@rule("file names are unique")
def names():
    """Two modules do not have the same name (X.c and X.h are one module), so a name in a message identifies a file. Public
    headers are exempt, because they are named after what they declare."""
    modules = {}
    for path in without(CODE, "include/"):
        module = re.sub(r"\.(c|h|cpp)$", "", path)
        modules.setdefault(os.path.basename(module), set()).add(module)
    for name, places in sorted(modules.items()):
        if len(places) > 1:
            yield f"{name}: {' '.join(sorted(places))}"


@rule("header guards")
def guards():
    """A header's guard is named after the path by which files include it: "room/file.h"."""
    for path in with_ending(within(PRODUCT, "src/", "tokenize_tools/"), ".h"):
        guard = "TOKMAP_" + re.sub("[a-z./]", lambda c: c.group().upper() if c.group().isalpha() else "_",
                                   path[max(len(top) for top in TOPS if path.startswith(top)):])
        if not re.search(f"^#ifndef {guard}$", text_of(path), re.MULTILINE):
            yield f"{path}: the header guard should be {guard}"


@rule("words")
def words():
    """The project's words have no synonyms: loader, batch. The Python package and the peers of bench are exempt, because
    they use classes with these names, such as the DataLoader of torch."""
    paths = within(TEXTS, "tokenize_tools/", "src/", "bench/", "include/")
    paths = without(paths, "src/python/", "bench/peers/", "bench/RESULTS.md", "bench/measure/")
    yield from found(paths, r"\b(dataloader|minibatch|mini-batch)\b", flags=re.IGNORECASE)


@rule("plain English")
def english():
    """Phrases that a technical editor would replace are listed in tests/lint/phrases.txt, with what to write instead.
    Lines that contain "kept spelling" are exempt: they have a word that existing files or scripts use."""
    advice = []
    with open(os.path.join(HERE, "phrases.txt"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("/"):
                advice.append(line[1:].rstrip("\n").rsplit("/ ", 1))
    pages = [os.path.join(folder, name) for folder, _, names in os.walk(".github") for name in names]
    paths = TEXTS + with_ending(sorted(pages), ".md")
    paths = without(paths, "tests/lint/", "tests/fuzz/corpus", "tests/differential/corpus", "tests/reference/")
    # grep tries all phrases at once, which Python's expressions cannot.
    status, lines = output_of("grep", "-HnE", *(word for phrase, _ in advice for word in ("-e", phrase)), *paths)
    if status > 1:
        yield f"phrases.txt: grep reports: {lines[-1]}"
    for line in lines:
        text = line.split(":", 2)[-1]
        for phrase, better in advice:
            if "kept spelling" not in line and re.search(phrase, text):
                yield f"{line} -> {better}"


@rule("plain English in headers")
def english_of_headers():
    """Headers are the manual, so their comments name what acts and what is absent. "Whoever" and "nobody" hide which
    caller, thread, or process is meant, and "is none" what is missing: write "the next writer", "or NULL", "0 without
    ids"."""
    yield from found(with_ending(CODE, ".h"), r"\b((is|are) none|[Ww]hoever|[Nn]obody)\b")


# A comment before a function, with the start of the function; and a comment on a member.
BEFORE_FUNCTION = re.compile(r"^/\* ((?:[^*]|\*(?!/))*)\*/\n(?=(?:\w+ )*(?:struct |enum )?\w+ (?:const )?\**\w+\()", re.M)
ON_MEMBER = re.compile(r"^ +(?:const |volatile |_Atomic )*(?:struct |enum |unsigned )?\w+ [^()=/]*; */\* (\w+)", re.M)
NO_VERB = re.compile(r"(What|Whether|How|Where|Who|Which|Why|When|Of|The|An?|All|One|No|This|It|There|These|Each|Only) ")


@rule("comments begin with a verb or a noun")
def first_words():
    """A comment before a function begins with a verb ("Returns ...", "Adds ..."), and a comment on a member with a noun or
    "true if", because a clause such as "whether ..." makes the reader look for its subject."""
    for path in PRODUCT:
        text = text_of(path)
        for match in BEFORE_FUNCTION.finditer(text):
            if NO_VERB.match(match.group(1)):
                yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match.group(1).split(chr(10))[0][:80]}"
        for match in ON_MEMBER.finditer(text):
            if match.group(1) in ("what", "whether", "how", "where", "who", "which", "why"):
                yield f"{path}:{text.count(chr(10), 0, match.start(1)) + 1}: a member's comment begins with {match.group(1)}"


# The commit whose successors are checked. Many subjects before it are longer, and no commit is rewritten.
SUBJECTS_AFTER = "85b3a503"


@rule("subjects of commits")
def subjects():
    """The subject of a commit has at most 72 characters, because lists of commits cut longer ones, and the subject of a
    merge says what it brings, because the name of a branch means nothing later. Commits up to 85b3a503 are exempt: many
    had longer subjects when this rule began. Nothing is checked where that commit is missing, as in a shallow clone."""
    if not shutil.which("git"):
        return
    status, lines = output_of("git", "log", "--format=%h %s", f"{SUBJECTS_AFTER}..HEAD")
    for line in [] if status else lines:
        commit, _, subject = line.partition(" ")
        if len(subject) > 72:
            yield f"{commit}: the subject has {len(subject)} characters: {subject}"
        if re.match(r"Merge (remote-tracking )?branch(es)? ['\"][^'\"]*['\"]( of \S+)?( into \S+)?$", subject):
            yield f"{commit}: the subject of a merge says what it brings: {subject}"


FORMAT = "14"  # the version of clang-format that Debian 12 has; others lay out some lines in another way


@rule("clang-format")
def formatted():
    """C files are laid out by clang-format (.clang-format). Tables that are better by hand have the comments
    "clang-format off" and "clang-format on"; generated files and the public headers are exempt."""
    if not shutil.which("clang-format"):
        raise Skip("clang-format is missing")
    version = re.search(r"version (\d+)", " ".join(output_of("clang-format", "--version")[1])).group(1)
    if version != FORMAT:
        raise Skip(f"clang-format has version {version}, and the files are laid out by version {FORMAT}")
    checked = f"{BUILD}/lint/formatted"  # the files of earlier runs, by their text, because each takes a while
    before = set(text_of(checked).split()) if os.path.isfile(checked) else set()
    style = text_of(".clang-format") if os.path.isfile(".clang-format") else ""
    key = {path: hashlib.sha256(f"{style} {path} {text_of(path)}".encode(errors="surrogateescape")).hexdigest()
           for path in with_ending(without(CODE, "include/"), ".c", ".h") if "do not edit" not in text_of(path)}
    paths = [path for path in key if key[path] not in before]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = list(pool.map(lambda share: output_of("clang-format", "-n", *share) if share else (0, []),
                             [paths[i::16] for i in range(16)]))
    places = [re.match(r"(\S+):\d+:\d+: warning: ", line) for _, lines in runs for line in lines]
    wrong = sorted({place.group(1) for place in places if place})
    os.makedirs(os.path.dirname(checked), exist_ok=True)
    with open(checked, "w", encoding="ascii") as file:
        file.writelines(f"{key[path]}\n" for path in key if path not in wrong)
    yield from (f"{path}: clang-format -i {path} lays it out in another way" for path in wrong)


# ---- man pages ----

@rule("each subcommand has a man page")
def subcommands():
    """tokenize_tools/man has a page for each subcommand."""
    for path in within(FILES, "tokenize_tools/commands/"):
        match = re.match(r"command_(.*)\.c$", os.path.basename(path))
        page = match and f"tokenize_tools/man/tokmap-{match.group(1).replace('_', '-')}.1"
        if page and path.count("/") <= 3 and page not in KNOWN:
            yield f"{path}: the page {page} is missing"


MANUAL = [path for path in PAGES if "/man/" in path or path.startswith("bench/")]


@rule("man pages")
def man_pages():
    """mandoc has no warnings about the manual pages."""
    if not shutil.which("mandoc"):
        raise Skip("mandoc is missing")
    if MANUAL:
        yield from output_of("mandoc", "-T", "lint", "-W", "warning", *MANUAL)[1]


@rule("man pages: a value is marked with Ar or Cm")
def values():
    """`.Fl Fl progress none` prints "--progress -none", because Fl puts a dash before each of its arguments."""
    yield from found(MANUAL, r"^\.(Op )?(It )?Fl Fl [a-z0-9-]+ +[a-z0-9]")


# ---- GPU kernels ----

KERNELS = with_ending(FILES, ".ptx")


def of_cuda(tool):
    if KERNELS and not shutil.which(tool):
        raise Skip(f"{tool} of the CUDA toolkit is missing")


@rule("kernels are assembled for every GPU")
def kernels_assembled():
    """ptxas assembles the kernels for every GPU that it supports, without warnings."""
    of_cuda("ptxas")

    def assembled(pair):
        kernel, target = pair
        lines = output_of("ptxas", "-warn-spills", f"-arch={target}", "-o", os.devnull, kernel)[1]
        return [f"{kernel}, {target}: {line}" for line in lines]
    targets = output_of("nvcc", "--list-gpu-code")[1] if KERNELS else []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for lines in pool.map(assembled, [(kernel, target) for kernel in KERNELS for target in targets]):
            yield from lines


@rule("kernels are what make ptx makes")
def kernels_made():
    """The PTX and the machine code in the project are what `make ptx` makes of the sources."""
    of_cuda("nvcc")
    if not KERNELS:
        return
    version = re.search(r"(V[0-9.]+)", "\n".join(output_of("nvcc", "--version")[1])).group(1)
    if not all(version in text_of(kernel) for kernel in KERNELS):
        raise Skip(f"the files were made by another version of nvcc than the installed {version}")
    into = f"{BUILD}/lint"
    environment = dict(os.environ, MAKEFLAGS="")
    _, lines = output_of(os.environ.get("MAKE") or "make", "-s", "ptx", f"PTX_ROOT={into}/ptx", f"BUILD={into}",
                         env=environment)
    yield from lines
    for path in KERNELS + with_ending(FILES, ".fatbin"):
        yield from output_of("cmp", path, f"{into}/ptx/{path}")[1]


# ---- README and its pages ----

def documents():
    """Returns the Markdown files that people read, as a list of paths."""
    github = [os.path.join(".github", name) for name in sorted(os.listdir(".github"))] if os.path.isdir(".github") else []
    folders = "src/", "tokenize_tools/", "bench/"
    return with_ending(within(FILES, *folders) + github + existing("README.md"), ".md")


@rule("README and pages are short")
def short_pages():
    """README has at most 170 lines, and a page that answers a question at most 120: what is longer is not read. Move
    details to the manual page, the docstring, or the page that they belong to. A page is a Markdown file with an
    example that a test types."""
    for path in documents():
        lines, most = text_of(path).count("\n"), 170 if path == "README.md" else 120
        if "<!-- example: " in text_of(path) and lines > most:
            yield f"{path}: {lines} lines, but at most {most} are allowed"


@rule("links lead somewhere")
def links():
    """A link names a file of the project, relative to the page, and after # one of its headings."""
    def prose(path):
        return re.sub(r"^ *```.*?^ *```$", "", text_of(path), flags=re.S | re.M)

    for path in documents():
        if path.endswith(".template.md"):
            continue  # its links are those of the page that is made of it
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
            name, _, heading = target.partition("#")
            to = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if re.match(r"[a-z]+:", target):
                continue
            if not os.path.exists(to):
                yield f"{path}: there is no file {target}"
            elif heading and heading not in {re.sub(r"[^\w -]", "", line.lower()).strip().replace(" ", "-")
                                             for line in re.findall(r"^#+ (.*)$", prose(to), flags=re.M)}:
                yield f"{path}: there is no heading {target}"


@rule("the changelog has a file for each change")
def changelog():
    """A file of .github/changelog is called added-, changed-, or fixed-SUBJECT.md, and has one to three lines of at most
    120 columns: `make dist` joins them, and who reads the page reads many of them."""
    for folder, _, names in os.walk(".github/changelog"):
        for path in sorted(os.path.join(folder, name) for name in names):
            lines = text_of(path).split("\n")
            if path == ".github/changelog/README.md":
                continue
            if not re.match(r"(added|changed|fixed)-[a-z0-9-]+\.md$", os.path.basename(path)):
                yield f"{path}: the name does not begin with added-, changed-, or fixed-"
            elif not 2 <= len(lines) <= 4 or "" in lines[:-1] or lines[-1] or max(map(len, lines)) > 120:
                yield f"{path}: is not one to three lines of at most 120 columns"


@rule("rooms keep to their budget")
def mass():
    """A room has at most the lines that src/make/mass.txt says. A commit that makes a room larger changes its line there,
    where whoever reads the commit sees it: src/make/mass --write."""
    yield from output_of(sys.executable, os.path.join(HERE, "../../src/make/mass"), "--check")[1]


# ---- shell ----

@rule("shell scripts parse")
def shell():
    """The shell that the first line of a script names can read it."""
    for path in with_ending(WRITTEN, ".sh") + existing(".ci/run"):
        yield from output_of("bash" if "bash" in text_of(path).split("\n", 1)[0] else "sh", "-n", path)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--without", action="append", default=[], metavar="PATTERN")
    parser.add_argument("patterns", nargs="*", default=["*"], metavar="PATTERN")
    arguments = parser.parse_args()
    passed = failed = skipped = 0
    for pattern in arguments.patterns:
        if not fnmatch.filter([name for name, _ in RULES], pattern):
            parser.error(f"no rule matches '{pattern}'; --list prints the names of the rules")
    for name, check in RULES:
        if any(fnmatch.fnmatch(name, pattern) for pattern in arguments.without) or \
                not any(fnmatch.fnmatch(name, pattern) for pattern in arguments.patterns):
            continue
        if arguments.list:
            print(name)
            continue
        try:
            findings = list(check())
        except Skip as reason:
            skipped += 1
            print(f"ok {name} # SKIP {reason}")
            continue
        for finding in findings:
            print("  " + finding)
        if findings:
            failed += 1
            print("  (" + " ".join(check.__doc__.split()) + ")")
            print(f"not ok {name}")
        else:
            passed += 1
            print(f"ok {name}")
    if not arguments.list:
        print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="surrogateescape")
    sys.exit(main())
