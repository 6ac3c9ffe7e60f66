# SPDX-License-Identifier: MIT
"""The table `prepare`: compressed JSONL to shuffled tokens without duplicates, by one command and by datatrove.

Two pairs of rows: exact duplicates are left out, or near-duplicates by MinHash. Both rows of a pair read the same files
of .jsonl.zst, one for each processor, and use as many threads or processes. tokmap also splits the documents into a
training and a validation set by a hash of their texts; datatrove has no such step and does without.

Before the repeats, each row runs once; its memory is watched, and the documents of both outputs are compared, whatever
their order. A pair gets as much text as datatrove takes about --seconds for. All times are those of whole processes,
from their start to the sync of the output.
"""
import os

import driver
import measure as meter
from packing import pipelines, vocabularies
from report import Absent
from tables import pack

NAME = "prepare"
PROBE = 2 << 20  # bytes of text from which datatrove's rate is estimated
METHODS = ("exact", "minhash")
SPLIT = "train=0.99,val=0.01"
add_arguments = pack.add_arguments


class Job(pack.Job):
    """The table's inputs have copies, and each comes in a file for each processor."""

    def ask(self, do, **request):
        return driver.ask_script(self.options, self.python, os.path.join(pack.FOLDER, "copies.py"), request, 3600, do)

    def part(self, limit, parts=1):
        key = (limit, parts)
        if key not in self.cuts:
            folder = os.path.join(self.work, f"part-{len(self.cuts)}")
            os.makedirs(folder, exist_ok=True)
            found = self.ask("make", path=self.whole.files[0], field=self.field, limit=limit,
                             out=os.path.join(folder, "text"), parts=parts)
            self.cuts[key] = pack.Input(found["files"], found["documents"], found["bytes"])
            self.cuts[key].copies = found
        return self.cuts[key]


class Ours(pack.Tokmap):
    """tokmap pack with all stages."""

    def __init__(self, job, method):
        super().__init__(job, f"tokmap pack, {method}")
        self.method, self.name = method, f"tokmap-{method}"

    def command(self, source, output):
        more = ["--dedup", self.method, "--shuffle", "7", "--split", SPLIT]
        return [*super().command(source, output), *more]

    def about(self, output):
        return f"{super().about(output)}; --dedup {self.method} --shuffle 7 --split {SPLIT}"


class Theirs(pack.Peer):
    """The stages of datatrove (packing/pipelines.py)."""

    def __init__(self, job, method):
        self.packer = pipelines.PIPELINES[f"datatrove-{method}"]
        pack.Packer.__init__(self, job, self.packer.LABEL)
        self.method, self.name = method, f"datatrove-{method}"


class Pair:
    """Two rows that do the same work on the same input."""

    def __init__(self, job, method):
        self.job, self.method = job, method
        self.ours, self.theirs = Ours(job, method), Theirs(job, method)
        self.rows = (self.ours, self.theirs)

    def begin(self, seconds):
        """Chooses the input, runs both rows on it, and compares what they keep. Raises Absent."""
        job, report = self.job, self.job.report
        self.theirs.prepare()
        job.python = self.theirs.python
        limit = 120 + 30 * seconds
        report.progress(0, 0, f"{self.theirs.label}: first runs")
        start, _ = self.theirs.run(job.part(1, job.workers), limit)
        probe = job.part(PROBE, job.workers)
        took, _ = self.theirs.run(probe, limit)
        rate = probe.bytes / max(took - start, 0.01)
        wanted = max(PROBE, int(rate * max(seconds - start, 1)))
        source = job.part(min(wanted, job.whole.bytes), job.workers)
        outputs = []
        for row in self.rows:
            row.input, memory = source, pack.Memory((job.work, job.whole.files[0]))
            report.progress(0, 0, f"{row.label}: first run")
            _, output = row.run(source, limit, memory, keep=True)
            row.memory = memory.peak
            report.about(row.label, row.about(output))
            outputs.append(output)
        self.compare(*outputs)
        for output in outputs:
            job.remove(output)
        copies = source.copies
        report.note(f"{self.method}: {source.bytes / 1e6:.1f} MB of text in {source.documents:,} documents, of which "
                    f"{copies['exact']:,} are copies and {copies['near']:,} copies with other words at their end; "
                    f"{len(source.files)} files with {copies['stored'] / 1e6:.1f} MB.")

    def compare(self, ours, theirs):
        job = self.job
        found = job.ask("compare", ours=ours, theirs=theirs, width=job.width)
        text = f"keeps {found['ours']:,} documents, datatrove {found['theirs']:,}"
        apart = found["only_ours"] + found["only_theirs"]
        text += f"; {found['only_ours']:,} and {found['only_theirs']:,} of them are not in the other output"
        job.report.row(NAME, self.ours.label, "documents_that_differ", "documents", "less", apart)
        if self.method == "exact" or not apart:
            job.report.equal(NAME, self.ours.label, not apart, text)
        else:
            job.report.note(f"{self.ours.label} {text}. What a word is decides which documents are near-duplicates: "
                            f"tokmap's words end at blanks, and those of datatrove are spaCy's.")

    def report(self):
        """Writes the rates. Returns the ratio of ours to theirs."""
        report, rates = self.job.report, {}
        for row in self.rows:
            rates[row] = [row.input.bytes / 1e6 / seconds for seconds in row.seconds]
            report.row(NAME, row.label, "mb_s", "MB/s", "more", rates[row])
            report.row(NAME, row.label, "seconds", "s", "less", row.seconds)
            report.row(NAME, row.label, "peak_mib", "MiB", "less", row.memory / (1 << 20))
        report.row(NAME, self.ours.label, "times_datatrove", "x", "more",
                   [mine / other for mine, other in zip(rates[self.ours], rates[self.theirs])])
        return meter.Ratio(rates[self.ours], rates[self.theirs])


def measure(report, tokens, options):
    if not options.tokenizer:
        raise Absent("the table prepare needs --tokenizer: a tokenizer.json or a .tiktoken file")
    job = Job(report, options)
    seconds, repeats = options.seconds or 60, options.repeats or 3
    try:
        pack.begin(job)
    except vocabularies.Unsuitable as problem:
        raise Absent(str(problem)) from None
    pairs = []
    for method in METHODS:
        pair = Pair(job, method)
        try:
            pair.begin(seconds)
            pairs.append(pair)
        except (Absent, driver.Failed) as problem:
            report.absent(NAME, pair.theirs.label, problem)
    rows = [row for pair in pairs for row in pair.rows]
    for done, (_, row) in enumerate(meter.turns(rows, repeats)):
        report.progress(done, repeats * len(rows), row.label)
        row.seconds.append(row.run(row.input, 120 + 30 * seconds)[0])
    said = []
    for pair in pairs:
        ratio = pair.report()
        sure = f"{ratio}" if ratio.count > 1 else f"{ratio.ratio:.3g} (one repeat)"
        said.append(f"{sure} times the rate of {pair.theirs.label}")
    report.note(f"{job.workers} processors, {repeats} interleaved repeats; the text is in the page cache, and outputs "
                f"are synced.")
    report.answer(f"tokmap prepares this text at {', and at '.join(said)}." if said else
                  "datatrove cannot be had here, so nothing is compared.")
