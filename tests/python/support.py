# SPDX-License-Identifier: MIT
"""Shared by the tests: datasets that the command packs, and the correct contents of a run's rows, computed one by
one."""
import array
import json
import os
import subprocess
import sys
import tempfile
import unittest

import tokmap

TOP = os.environ.get("TOP") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD_DIR = os.environ.get("BUILD_DIR") or os.path.join(TOP, "build")
TOKMAP = os.environ.get("TOKMAP") or os.path.join(BUILD_DIR, "bin", "tokmap")
SEQ, BATCH = 48, 6


def importable(name):
    try:
        __import__(name)
    except ImportError as problem:
        return str(problem)
    return None


def needs(*modules):
    """Skips a test or a class if a module is not installed, and reports which one."""
    for name in modules:
        reason = importable(name)
        if reason is not None:
            return unittest.skip(f"{name} is not usable: {reason}")
    return lambda test: test


def new_folder():
    return tempfile.mkdtemp(prefix="a folder ", dir=os.environ.get("TMPDIR"))


def pack(folder, name="web", documents=60, seed=1):
    """Packs a dataset of documents of 0 to 299 bytes. Returns the name that opens it."""
    lines = []
    for i in range(documents):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2 ** 64
        length = (seed >> 40) % 300 if i % 7 else i % 3
        text = "".join(chr(97 + (seed >> (k % 50)) % 26) for k in range(length))
        lines.append(json.dumps({"text": f"{text}"}))
    source = os.path.join(folder, f"{name}.jsonl")
    with open(source, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    prefix = os.path.join(folder, name)
    subprocess.run([TOKMAP, "pack", "--eod", "-o", prefix, source], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE)
    return prefix


class Truth:
    """A dataset of one shard, read without the library's loader: its tokens, and which of them begin a document."""

    def __init__(self, prefix):
        self.tokens = array.array("H")
        with open(prefix + ".bin", "rb") as file:
            self.tokens.frombytes(file.read())
        self.starts = [False] * len(self.tokens)
        with tokmap.Dataset(prefix) as dataset:
            for number in range(dataset.info.documents):
                document = dataset.document(number)
                if document.tokens:
                    self.starts[document.first_token] = True

    def row(self, place, seq_len, mask_targets=False):
        """Every field of a row, computed from the definitions in tokmap.h."""
        tokens, count = self.tokens, len(self.tokens)
        inputs, targets, positions, documents, mask = [], [], [], [], []
        position = document = 0
        for j in range(seq_len):
            at, after = (place.first_token + j) % count, (place.first_token + j + 1) % count
            starts = self.starts[at] or at == 0
            if j and starts:
                position, document = 0, document + 1
            crosses = self.starts[after] or after == 0
            inputs.append(tokens[at])
            targets.append(-100 if mask_targets and crosses else tokens[after])
            positions.append(position)
            documents.append(document)
            mask.append(0 if crosses else 1)
            position += 1
        raw = [tokens[(place.first_token + j) % count] for j in range(place.tokens)]
        return {"inputs": inputs, "targets": targets, "position_ids": positions, "document_ids": documents,
                "loss_mask": mask, "rows": raw}

    def batch(self, run, step, first_row, count, mask_targets=False):
        """The fields of a batch, as lists of rows; cu_seqlens without its padding; and max_seqlen."""
        rows = [self.row(run.locate(step, first_row + i), run.info.seq_len, mask_targets) for i in range(count)]
        made = {name: [row[name] for row in rows] for name in ("inputs", "targets", "position_ids", "document_ids",
                                                               "loss_mask", "rows")}
        ends = [0]
        for i, row in enumerate(rows):
            for j in range(1, run.info.seq_len):
                if row["document_ids"][j] != row["document_ids"][j - 1]:
                    ends.append(i * run.info.seq_len + j)
            ends.append((i + 1) * run.info.seq_len)
        made["cu_seqlens"] = ends
        made["max_seqlen"] = max((b - a for a, b in zip(ends, ends[1:])), default=0)
        return made


def threads():
    """The number of threads of this process, those of the library included."""
    return len(os.listdir("/proc/self/task"))


def held(folder):
    """The descriptors and mappings of this process that refer to files in a folder."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            pass  # the descriptor of the listing
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        found += [line.split(None, 5)[-1].strip() for line in maps]
    return sorted(path for path in found if path.startswith(folder))


def values(array_like):
    """The elements of an array of any kind, as lists."""
    return array_like.tolist()


def python(code, *arguments, check=True, **environment):
    """Runs a program in another Python process. Returns its standard output, or with check=False the process."""
    ran = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], env={**os.environ, **environment},
                         capture_output=True, text=True, timeout=300)
    if check and ran.returncode:
        raise AssertionError(f"exit status {ran.returncode}\n{ran.stdout}\n{ran.stderr}")
    return ran if not check else ran.stdout


class WithData(unittest.TestCase):
    """Gives all tests of a class one dataset, and its correct contents in self.truth."""

    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()
        cls.prefix = pack(cls.folder)
        cls.truth = Truth(cls.prefix)

    def run_of(self, **options):
        return tokmap.Run(data=self.prefix, **{"seq_len": SEQ, "batch": BATCH, "seed": 3, "passes": 2, **options})

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path
