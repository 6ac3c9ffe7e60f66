# SPDX-License-Identifier: MIT
"""The table `parts`: parts of packing, each by tokmap and by libraries that do the same, in one thread.

    reading     a JSONL file to the number of its documents and the bytes of their texts
    signing     texts to signatures: words, shingles of five of them, 112 hashes, by a library's own functions
    signatures  the same from shingles that are numbers of 64 bits

Rates are by processor time, so that other programs change them little, without imports and the reading of what a part
does not consist of. What systems must agree in is compared. Two rows of rensa are its newest release, which finds most
numbers of a signature without hashing each shingle for each of them, and the last one that does hash all.

As a program, this file does one part in the Python of a library.
"""
import hashlib
import json
import os
import subprocess
import sys
import time

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

import driver  # noqa: E402
import measure as meter  # noqa: E402
import setup  # noqa: E402
from packing import inputs  # noqa: E402
from packing.packers import version  # noqa: E402
from report import Absent  # noqa: E402

NAME = "parts"
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PARTS = {"reading": ("mb_s", "MB/s"), "signing": ("mb_s", "MB/s"), "signatures": ("m_s", "M shingles/s")}
SIGNED, SHINGLED = 4 << 20, 32 << 20  # bytes of text at most; words are slow in Python, and signatures fast in C
DATATROVE = ["numpy", "datatrove", "spacy", "orjson", "xxhash<4"]
ROWS = (("DuckDB", "reading", "duckdb", ["duckdb"]),
        ("polars", "reading", "polars", ["polars"]),
        ("datatrove", "signing", "datatrove", DATATROVE),
        ("datatrove", "signatures", "datatrove_signatures", DATATROVE),
        ("text-dedup", "signing", "text_dedup", ["numpy", "text-dedup"]),
        ("rensa", "signatures", "rensa", ["numpy", "rensa"]),
        ("rensa 0.4", "signatures", "rensa", ["numpy", "rensa<0.5"]))
WORDS, BANDS, BAND = 5, 14, 8  # of a shingle; of a signature; numbers of a band


def shingles_of(path):
    """The shingles of each document in a file of them, as arrays."""
    import numpy
    whole, at, found = numpy.fromfile(path, "<u8"), 0, []
    while at < len(whole):
        count = int(whole[at])
        found.append(whole[at + 1:at + 1 + count])
        at += 1 + count
    return found


def duckdb(path):
    import duckdb as it
    with it.connect() as base:
        base.execute("SET threads=1")
        yield f"duckdb {it.__version__}, read_json of the field, SET threads=1"
        yield base.execute("SELECT count(*), sum(strlen(text)) FROM read_json(?, format='newline_delimited', "
                           "columns={text: 'VARCHAR'})", [path]).fetchone()


def polars(path):
    os.environ["POLARS_MAX_THREADS"] = "1"
    import polars as it
    yield f"polars {it.__version__}, scan_ndjson of the field, POLARS_MAX_THREADS=1"
    yield it.scan_ndjson(path, schema={"text": it.String}).select(
        it.len(), it.col("text").str.len_bytes().sum().alias("bytes")).collect().row(0)


def datatrove_signer():
    from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupSignature
    return MinhashDedupSignature(os.devnull, MinhashConfig(n_grams=WORDS, num_buckets=BANDS, hashes_per_bucket=BAND))


def datatrove(path):
    signer, found = datatrove_signer(), list(inputs.texts(path, "text"))
    yield f"datatrove {version('datatrove')}, MinhashDedupSignature.get_shingles() and get_signature()"
    for text in found:
        shingles = signer.get_shingles(text)
        if len(shingles):
            signer.get_signature(shingles)
    yield None


def datatrove_signatures(path):
    signer, found = datatrove_signer(), [one.reshape(-1, 1) for one in shingles_of(path)]
    yield f"datatrove {version('datatrove')}, MinhashDedupSignature.get_shingles() and get_signature()"
    yield sum(sum(map(sum, signer.get_signature(shingles))) for shingles in found) % 2**64


def text_dedup(path):
    import numpy
    from text_dedup import minhash as it
    found, most, prime = list(inputs.texts(path, "text")), numpy.uint32(2**32 - 1), numpy.uint64(2**61 - 1)
    numbers = [it.RNG.randint(1, prime, size=BANDS * BAND, dtype=numpy.uint64) for _ in range(2)]
    ranges = [(band * BAND, (band + 1) * BAND) for band in range(BANDS)]
    yield f"text-dedup {version('text-dedup')}, minhash.embed_func() with its defaults (64 bits, SHA-1)"
    for number, text in enumerate(found):
        it.embed_func(text, number, num_perm=BANDS * BAND, ngram_size=WORDS, min_length=WORDS, hashranges=ranges,
                      permutations=numbers, hash_func=it.sha1_hash, dtype=numpy.uint64, max_hash=most,
                      modulo_prime=prime)
    yield None


def rensa(path):
    import numpy
    from rensa import RMinHash
    found = shingles_of(path)
    ends, whole = numpy.cumsum([0, *map(len, found)], dtype="<u8"), numpy.concatenate(found)
    yield f"rensa {version('rensa')}, RMinHash.digest_matrix_from_flat_token_hashes(), 32 bits"
    RMinHash.digest_matrix_from_flat_token_hashes(whole, ends, BANDS * BAND, 1)
    yield None


SYSTEMS = {one.__name__: one for one in (duckdb, polars, datatrove, datatrove_signatures, text_dedup, rensa)}


def answer(name, path):
    steps = SYSTEMS[name](path)
    about, begun = next(steps), time.process_time()
    return {"equal": next(steps), "seconds": time.process_time() - begun, "about": about}


def add_arguments(parser):
    for name in ("--text", "--tokenizer", "--pattern", "--field"):
        parser.add_argument(name)
    parser.add_argument("--text-bytes", type=int, default=64 << 20, help="size of the text that is made")


def shingles_write(source, path):
    """Writes the shingles of a JSONL file's documents. Returns how many they are."""
    total = 0
    with open(path, "wb") as file:
        for text in inputs.texts(source, "text", SHINGLED):
            found = text.encode("utf-8", "surrogatepass").split()
            shingles = [hashlib.blake2b(b" ".join(found[at:at + WORDS]), digest_size=8).digest()
                        for at in range(len(found) - WORDS + 1)]
            if shingles:
                file.write(len(shingles).to_bytes(8, "little") + b"".join(shingles))
                total += len(shingles)
    return total


class Row:
    """A part, done by one system; script: its function, or None for tokmap."""

    def __init__(self, options, report, label, part, script=None, packages=()):
        self.options, self.label, self.part, self.script, self.rates = options, label, part, script, []
        if script:
            apart = f"{options.venv or setup.default_venv()}-rensa-0.4" if "<0.5" in packages[-1] else None
            self.python = setup.Setup(options, report).python_with(list(packages), f"parts-{script}", apart)

    def run(self, path):
        if self.script:
            return driver.ask_script(self.options, self.python, os.path.abspath(__file__),
                                     {"name": self.script, "path": path}, 600)
        command = [os.path.join(os.path.dirname(self.options.tokmap), "tokmap-bench"), "--child", self.part, "compare",
                   NAME, path, "--peers-folder", os.path.dirname(FOLDER)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise driver.Failed(driver.last_lines(done.stderr))
        return {"about": "a copy of tokmap-bench that calls what tokmap pack calls", **json.loads(done.stdout)}


def first_runs(report, options, paths):
    """Runs each row once, and compares what systems must agree in. Returns those that could be run."""
    rows, right, known = [], {}, {label.lower().split()[0] for label, *_ in ROWS}
    wanted = {name.strip() for name in options.peers.split(",") if name.strip()} or known
    if not wanted <= {"tokmap", *known}:
        raise Absent(f"--peers: there is no such system; there are {', '.join(sorted(known))}")
    others = [row for row in ROWS if row[0].lower().split()[0] in wanted]
    for label, *what in [*(("tokmap", part) for part in PARTS), *others]:
        try:
            row = Row(options, report, label, *what)
            report.progress(0, 0, f"{label}: first run")
            found = row.run(paths[row.part])
            if label == "rensa 0.4" and " 0.4" not in found["about"]:
                raise Absent(f"another release is installed: {found['about']}")
        except (Absent, driver.Failed) as problem:
            if label == "tokmap":
                raise
            report.absent(NAME, label, problem)
            continue
        rows.append(row)
        report.about(label, found["about"])
        if found["equal"] is not None:
            same = found["equal"] == right.setdefault(row.part, found["equal"])
            report.equal(NAME, label, same, f"{row.part}: {found['equal']}")
    return rows, right


def measure(report, tokens, options):
    paths = {part: os.path.join(options.work, part + ".jsonl") for part in PARTS}
    if options.text:
        paths["reading"] = os.path.abspath(options.text)
    else:
        report.note(inputs.make(paths["reading"], options.text_bytes))
    _, documents, size = inputs.cut(paths["reading"], "text", SIGNED, paths["signing"][:-len(".jsonl")])
    shingles = shingles_write(paths["reading"], paths["signatures"])
    rows, right = first_runs(report, options, paths)
    amounts = {"reading": right["reading"][1], "signing": size, "signatures": shingles}
    repeats = options.repeats or 7
    for done, (_, row) in enumerate(meter.turns(rows, repeats)):
        report.progress(done, repeats * len(rows), row.label)
        row.rates.append(amounts[row.part] / 1e6 / row.run(paths[row.part])["seconds"])
    said = []
    for part, (metric, unit) in PARTS.items():
        here = [row for row in rows if row.part == part]
        for row in here:
            report.row(NAME, row.label, f"{part}_{metric}", unit, "more", row.rates)
        ratios = [(meter.Ratio(here[0].rates, row.rates), row.label) for row in here[1:]]
        said += [f"{part} at {ratio} times the rate of {label}" for ratio, label in ratios]
    report.note(f"{right['reading'][0]:,} documents with {amounts['reading'] / 1e6:.1f} MB of text are read; "
                f"{documents:,} with {size / 1e6:.1f} MB are signed, and {shingles:,} shingles. Rates are by "
                f"processor time, {repeats} interleaved repeats.")
    report.answer(f"tokmap does {', '.join(said)}." if said else "No other system can be had here.")


if __name__ == "__main__":
    driver.answer_requests(answer)
