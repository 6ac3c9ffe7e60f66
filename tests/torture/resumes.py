# SPDX-License-Identifier: MIT
"""resumes.py: pack of every format and compression with a document of 4 MB, interrupted by SIGINT and by SIGKILL at 20
places. What the same command continues ends with the files of an undisturbed pack.

A round takes one format and one compression. Whether the large document is the first one, one in the middle, or the
last one, what else is asked of the pack, and where the interruptions come, is chosen by chance.
"""
import bz2, gzip, json, lzma, os, re, shutil, signal, subprocess, sys, time

from rounds import TOKMAP, TOP, Wrong

INTERRUPTIONS = 20
LARGE = 4 << 20  # bytes
SMALL = 6000     # documents
PAGE = 33 << 20  # bytes: a page of Parquet that waits for its turn
LINE = "Call me Ishmael. Some years ago, never mind how long precisely, it is %d. "


def _documents(random, large):
    """Small documents of which some are equal, and the large one."""
    texts = [(LINE % (i % 5000)) * random.randrange(1, 9) for i in range(SMALL)]
    at = random.choice((0, 1, SMALL // 2, SMALL - 1, SMALL))
    texts.insert(at, LINE % 7 * (large // len(LINE) + 1))
    return texts


def _records(texts, **more):
    return [{"n": i, "text": text, **more} for i, text in enumerate(texts)]


def _lines(random, texts):
    return "".join(json.dumps(record) + "\n" for record in _records(texts)), []


def _array(random, texts):
    return json.dumps(_records(texts), indent=random.choice((None, 1))), ["--input-format", "json"]


def _objects(random, texts):
    return "\ufeff\n" * random.randrange(2) + "\n".join(map(json.dumps, _records(texts))), ["--input-format", "json"]


def _table(comma, name):
    def make(random, texts):
        head = random.choice(("", "\ufeff", "\n\n"))
        rows = "".join(f'{i}{comma}"{text}"\n' for i, text in enumerate(texts))
        return f"{head}n{comma}text\n{rows}", ["--input-format", name]
    return make


def _separated(random, texts):
    return "\n\n".join(texts), ["--input-format", "text", "--separator", "\\n\\n"]


def _text(random, texts):
    return "\n".join(texts), ["--input-format", "text"]


def _warc(random, texts):
    return "".join("WARC/1.0\r\nWARC-Type: conversion\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n"
                   % (len(text), text) for text in texts), []


def _ids(random, texts):
    return "".join(json.dumps({"ids": list(text.encode()[:len(text) // 4])}) + "\n" for text in texts), \
        ["--ids-field", "ids", "--vocab-size", "300"]


FORMS = (("jsonl", _lines), ("json", _array), ("json", _objects), ("csv", _table(",", "csv")), ("tsv", _table("\t", "tsv")),
         ("txt", _separated), ("txt", _text), ("warc", _warc), ("jsonl", _ids), ("parquet", None))


def _program(*words):
    """Compresses by a program, where there is one."""
    return (lambda content: subprocess.run(words, input=content, stdout=subprocess.PIPE, check=True).stdout) \
        if shutil.which(words[0]) else None


def _members(content):
    """gzip members of different sizes, so that some places are reached from a member in the middle."""
    return b"".join(gzip.compress(content[at:at + 700000], 1) for at in range(0, len(content), 700000))


PACKINGS = tuple((name, pack) for name, pack in (
    ("", bytes), (".gz", lambda content: gzip.compress(content, 1)), (".gz", _members),
    (".bz2", lambda content: bz2.compress(content, 1)), (".xz", lambda content: lzma.compress(content, preset=0)),
    (".zst", _program("zstd", "-q", "-1", "-c")), (".lz4", _program("lz4", "-q", "-1", "-c"))) if pack)


def _input(round_, number, form):
    """Writes an input of a form, and returns its name and options."""
    random = round_.random
    ending, make = form
    if not make:
        rows = "".join(json.dumps(record) + "\n" for record in _records(_documents(random, random.choice((LARGE, PAGE)))))
        name, groups = f"{number}.parquet", random.choice(("1,300", "2000", "7,100,5000"))
        round_.write("rows", rows)
        round_.run(sys.executable, os.path.join(TOP, "tests", "cli", "parquet_groups.py"), "rows", name, groups,
                   statuses=(0,))
        return name, []
    content, options = make(random, _documents(random, LARGE))
    packing, pack = random.choice(PACKINGS)
    name = f"{number}.{ending}{packing}"
    round_.write(name, pack(content.encode()))
    return name, options


def _files(round_, prefix):
    """The files of an output, by what follows its name, which is left out of manifests, too."""
    found = {}
    for name in os.listdir(round_.folder):
        if name == prefix or name.startswith((prefix + ".", prefix + "-")):
            content = round_.read(name) if os.path.isfile(round_.path(name)) else b"a folder"
            manifest = content.startswith((b"tokmap-shards", b"# tokmap manifest"))
            found[name[len(prefix):]] = re.sub(b"(?m)^" + prefix.encode(), b"", content) if manifest else content
    return found


def _clear(round_, prefix):
    for name in os.listdir(round_.folder):
        if name == prefix or name.startswith((prefix + ".", prefix + "-")):
            path = round_.path(name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def _interrupt(round_, words, seconds):
    """Runs a pack and interrupts it. Returns its status, and what it said."""
    random = round_.random
    process = subprocess.Popen([TOKMAP, *words], cwd=round_.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": round_.folder})
    until = time.monotonic() + 20
    if random.random() < 0.8:  # else before the journal is there, or long after
        while process.poll() is None and time.monotonic() < until and not os.path.exists(round_.path("k.work/journal")):
            time.sleep(0.0005)
    time.sleep(seconds * random.random() ** 2)
    process.send_signal(random.choice((signal.SIGINT, signal.SIGKILL)))
    _, said = process.communicate(timeout=120)
    return process.returncode, said.decode(errors="replace")


def resumes(round_):
    random = round_.random
    form = FORMS[round_.seed % len(FORMS)]
    inputs, options = [], []
    for number in range(random.choice((1, 1, 2))):
        name, options = _input(round_, number, form)
        inputs.append(name)
    more = random.choice(([], [], ["--dedup", "exact"], ["--dedup", "minhash"], ["--shuffle", "3"],
                          ["--fim", "0.5", "--fim-tokens", "1,2,3"],
                          ["--split", "train=0.8,val=0.2"], ["--shard-tokens", "2M"], ["--seal=1"],
                          ["--on-error", "skip", "--skipped-list", "SKIPPED"], ["--invalid-utf8", "skip"]))
    if options[:1] == ["--ids-field"] and ("minhash" in more or "--fim" in more):
        more = []
    words = lambda prefix: ["pack", "-q", "-o", prefix, "--checkpoint-seconds", "0.001", *options,
                            *[word.replace("SKIPPED", prefix + ".list") for word in more], *inputs]
    began = time.monotonic()
    round_.tokmap(*words("ref"), statuses=(0,))
    seconds = time.monotonic() - began
    wanted = _files(round_, "ref")
    for _ in range(INTERRUPTIONS):
        round_.check_time()
        status, said = _interrupt(round_, words("k") + ["--threads", str(random.randrange(1, 4))], seconds)
        kept = os.path.exists(round_.path("k.work/journal"))
        complete = status == 1 and "exists" in said  # the one before was killed when all was done
        if status not in (0, -signal.SIGINT, -signal.SIGKILL) and not complete:
            raise Wrong(f"{words('k')}: exit status {status}: {said}")
        round_.count("interrupted, and continued later" if kept else "complete" if not status or complete else
                     "interrupted early")
        if not status or complete:
            if _files(round_, "k") != wanted:
                raise Wrong(f"{words('k')}: other files than those of an undisturbed pack")
            _clear(round_, "k")
    status, _, said = round_.tokmap(*words("k"))
    if (status and b"exists" not in said) or _files(round_, "k") != wanted:
        raise Wrong(f"{words('k')}: exit status {status}, or other files: {said.decode(errors='replace')}; "
                    f"{sorted(_files(round_, 'k'))}")
