# SPDX-License-Identifier: MIT
"""The table `parts`: parts of packing, each by tokmap and by libraries that do the same, in one thread.

packing/parts.py says what the parts are. Rates are by processor time, so that other programs change them little, and
what systems must agree in is compared. Two rows of rensa are its newest release, which finds most numbers of a
signature without hashing each shingle for each of them, and the last one that does hash all, as the others do.
"""
import hashlib
import json
import os
import subprocess

import driver
import measure as meter
import setup
from packing import inputs
from report import Absent

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


def add_arguments(parser):
    for name in ("--text", "--tokenizer", "--pattern", "--field"):
        parser.add_argument(name)
    parser.add_argument("--text-bytes", type=int, default=64 << 20, help="size of the text that is made")


def shingles_write(source, path, words=5):
    """Writes the shingles of a JSONL file's documents. Returns how many they are."""
    total = 0
    with open(path, "wb") as file:
        for text in inputs.texts(source, "text", SHINGLED):
            found = text.encode("utf-8", "surrogatepass").split()
            shingles = [hashlib.blake2b(b" ".join(found[at:at + words]), digest_size=8).digest()
                        for at in range(len(found) - words + 1)]
            if shingles:
                file.write(len(shingles).to_bytes(8, "little") + b"".join(shingles))
                total += len(shingles)
    return total


class Row:
    """A part, done by one system; script: the function of packing/parts.py, or None for tokmap."""

    def __init__(self, options, report, label, part, script=None, packages=()):
        self.options, self.label, self.part, self.script, self.rates = options, label, part, script, []
        if script:
            apart = f"{options.venv or setup.default_venv()}-rensa-0.4" if "<0.5" in packages[-1] else None
            self.python = setup.Setup(options, report).python_with(list(packages), f"parts-{script}", apart)

    def run(self, path):
        if self.script:
            return driver.ask_script(self.options, self.python, os.path.join(FOLDER, "packing", "parts.py"),
                                     {"name": self.script, "path": path}, 600)
        command = [os.path.join(os.path.dirname(self.options.tokmap), "tokmap-bench"), "--child", self.part, "compare",
                   NAME, path, "--peers-folder", os.path.dirname(FOLDER)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise driver.Failed(driver.last_lines(done.stderr))
        return {"about": "a copy of tokmap-bench that calls what tokmap pack calls", **json.loads(done.stdout)}


def first_runs(report, options, paths):
    """Runs each row once, and compares what systems must agree in. Returns those that could be run."""
    rows, right = [], {}
    for label, *what in [*(("tokmap", part) for part in PARTS), *ROWS]:
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
