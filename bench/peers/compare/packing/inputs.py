# SPDX-License-Identifier: MIT
"""The text of the table `pack`: a JSONL file of the user, or documents that the machine has."""
import gzip
import json
import os
import random
import sys
import zlib

MOST = 64 << 10  # bytes of a document that is made
PLACES = ("/usr/share/doc", "/usr/share/man", "/usr/share/info", "/usr/include")
ENDINGS = (".txt", ".html", ".md", ".rst", ".py", ".h", ".c", ".gz", ".tex", ".xml", "")


def _files():
    """Text files of the machine in an order that is the same every time and has no runs of one folder."""
    found = []
    for place in (*PLACES, os.path.dirname(os.__file__)):
        for folder, below, names in os.walk(place):
            below[:] = [name for name in below if name not in ("site-packages", "dist-packages", "__pycache__")]
            found += [os.path.join(folder, name) for name in names if os.path.splitext(name)[1] in ENDINGS]
    return sorted(found, key=lambda path: zlib.crc32(path.encode("utf-8", "surrogateescape")))


def _text_of(path):
    """The start of a file as text, or "" if it is not text."""
    try:
        with gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb") as file:
            content = file.read(MOST)
    except (OSError, EOFError, zlib.error):
        return ""
    text = content.decode("utf-8", "ignore")
    return "" if "\0" in text or len(text.encode()) + 3 < len(content) else text


def _words(generator):
    """A document of words of syllables, whose frequencies follow Zipf's law."""
    words = []
    for _ in range(400):
        rank = int(2 ** (16 * generator.random()))
        parts = random.Random(rank)
        words.append("".join(parts.choice("tnshrdlcmfwgpbk") + parts.choice("eaoiu")
                             for _ in range(1 + (rank > 40) + (rank > 2000) + parts.randrange(2))))
    return " ".join(words) + ".\n"


def make(path, size):
    """Writes documents with `size` bytes of text to a JSONL file. Returns a sentence that says what they are."""
    had, seen, generator = 0, set(), random.Random(1)
    with open(path, "w", encoding="utf-8") as file:
        for name in _files():
            text = _text_of(name)
            key = hash(text)
            if had >= size or not text or key in seen:
                continue
            seen.add(key)
            had += len(text.encode())
            file.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
        found = had
        while had < size:
            text = _words(generator)
            had += len(text)
            file.write(json.dumps({"text": text}) + "\n")
    where = f"documentation and sources of this machine ({len(seen)} files, at most 64 KiB of each)"
    if found == had:
        return f"The text is {where}."
    return (f"The text is {where}, which have {found / 1e6:.1f} MB; the other {(had - found) / 1e6:.1f} MB are random "
            f"words.")


def texts(path, field, limit=None):
    """The documents of the input in their order, until they have `limit` bytes of text."""
    had = 0
    for text in _lines(path, field):
        if limit is not None and had >= limit:
            return
        had += len(text.encode("utf-8", "surrogatepass"))
        yield text


def _lines(path, field):
    with gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)[field]


def cut(path, field, limit, out, parts=1):
    """Copies the first documents of the input, until they have `limit` bytes of text, to `parts` files, each of which
    has consecutive documents: out, or out.0 and so on. Returns (the files, documents, bytes of text)."""
    wanted = list(texts(path, field, limit))
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in wanted)
    files = []
    for part in range(parts):
        mine = wanted[len(wanted) * part // parts:len(wanted) * (part + 1) // parts]
        name = f"{out}.{part:02}.jsonl" if parts > 1 else out + ".jsonl"
        with open(name, "w", encoding="utf-8") as file:
            for text in mine:
                file.write(json.dumps({field: text}, ensure_ascii=False) + "\n")
        files.append(name)
    return files, len(wanted), size


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    import driver
    driver.answer_requests(lambda **request: dict(zip(("files", "documents", "bytes"), cut(**request))))
