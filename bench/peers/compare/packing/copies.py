# SPDX-License-Identifier: MIT
"""Inputs and outputs of the table `prepare`.

The input is the first documents of a text, some of them twice, in files of JSONL that are compressed with zstd. Of ten
documents one comes again as it is, and one with words at its end that it did not have. The copies come up to a thousand
documents later, so most are in the same file and some in the next one.
"""
import collections
import glob
import hashlib
import json
import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

import driver  # noqa: E402
from packing.inputs import texts  # noqa: E402

LATER = 1000
CHANGED = "\n(the same again, with a few more words)\n"


def with_copies(originals):
    """The documents, and the copies of some of them. Yields (text, kind); kind: "", "exact", or "near"."""
    waiting = []
    for number, text in enumerate(originals):
        yield text, ""
        if number % 10 == 3:
            waiting.append((text, "exact"))
        if number % 10 == 7:
            waiting.append((text + CHANGED, "near"))
        if number % LATER == LATER - 1:
            yield from waiting
            waiting = []
    yield from waiting


def do_make(path, field, limit, out, parts):
    """Writes `parts` files. Returns their names, and what is in them."""
    import zstandard
    found = list(with_copies(texts(path, field, limit)))
    files = []
    for part in range(parts):
        files.append(f"{out}.{part:02}.jsonl.zst")
        with open(files[-1], "wb") as stored, zstandard.ZstdCompressor(level=3).stream_writer(stored) as file:
            for text, _ in found[len(found) * part // parts:len(found) * (part + 1) // parts]:
                file.write(json.dumps({field: text}, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
    return {"files": files, "documents": len(found), "bytes": sum(len(text.encode("utf-8", "surrogatepass"))
                                                                  for text, _ in found),
            "exact": sum(kind == "exact" for _, kind in found), "near": sum(kind == "near" for _, kind in found),
            "stored": sum(os.path.getsize(name) for name in files)}


def digest(ids):
    return hashlib.blake2b(ids.astype("<u4").tobytes(), digest_size=16).digest()


def tokmap_documents(prefix):
    """How often each document is in the sets of a split."""
    import tokmap
    found = collections.Counter()
    for name in sorted(glob.glob(glob.escape(prefix) + ".*")):
        if name.rsplit(".", 1)[1] in ("train", "val"):
            with tokmap.Dataset(name) as dataset:
                found.update(digest(ids) for ids in dataset)
    return found


def datatrove_documents(folder, width):
    """How often each document is in datatrove's files."""
    import numpy
    found = collections.Counter()
    for name in sorted(glob.glob(os.path.join(glob.escape(folder), "*.ds"))):
        ids = numpy.fromfile(name, f"<u{width}")
        ends = numpy.fromfile(name + ".index", "<u8").astype("<i8")
        found.update(digest(one) for one in numpy.split(ids, ends[:-1]))
    return found


def do_compare(ours, theirs, width):
    """Which documents both outputs have, in whatever order."""
    mine, other = tokmap_documents(ours), datatrove_documents(theirs, width)
    return {"ours": mine.total(), "theirs": other.total(), "only_ours": (mine - other).total(),
            "only_theirs": (other - mine).total()}


if __name__ == "__main__":
    driver.answer_requests(lambda do, **request: {"make": do_make, "compare": do_compare}[do](**request))
