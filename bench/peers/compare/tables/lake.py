# SPDX-License-Identifier: MIT
"""The table `lake`: Parquet in object storage, of which text is a tenth, to a synced token file.

The server is nginx on this machine with 20 ms of latency and a link of 1 GB/s for all (remote/server.py). The rows are
tokmap from it; from copies on this machine, which is the bar; after a download of the whole objects by curl, eight at a
time; and datatrove's and datasets' ways, which get as much of the text as they pack in about --seconds. All processes
are timed from start to sync. The server's processor time is a metric, since it uses the same processors.
"""
import os
import shutil
import sys

import driver
import measure as meter
import setup
from packing import lake, vocabularies
from remote import server as storage
from report import Absent
from tables import pack

NAME, BUCKET = "lake", "lake"
FILES = 8
PROBE = 2 << 20  # bytes of text from which a peer's rate is estimated
add_arguments = pack.add_arguments


class Job(pack.Job):
    """The whole text and its first parts are folders of a bucket."""
    server = None

    def lake(self, limit):
        """The first documents in Parquet, as the name of a folder, and what is in it."""
        if limit not in self.cuts:
            name = f"set-{len(self.cuts)}"
            self.cuts[limit] = name, driver.ask_script(
                self.options, self.maker, os.path.join(pack.FOLDER, "lake.py"),
                {"path": self.whole.files[0], "field": self.field, "limit": limit, "parts": FILES,
                 "out": os.path.join(self.root, BUCKET, name)}, 3600)
            if self.server:
                self.server.list_files()
        return self.cuts[limit]


class Ours(pack.Tokmap):
    def __init__(self, job, label, name, words):
        super().__init__(job, label)
        self.name, self.words = name, words

    def command(self, source, output):
        words = [word if word != "jsonl" else "parquet" for word in super().command(source, output)]
        return words[:len(words) - len(source.files)] + self.words(source)


def places(job):
    """The rows of tokmap, by where it reads."""
    def objects(source):
        return [f"s3://{BUCKET}/{os.path.basename(source.folder)}/"]

    def copies(source):
        return [source.folder + "/"]
    return [Ours(job, "tokmap pack s3://", "tokmap", objects),
            Ours(job, "tokmap pack, local copies", "tokmap-local", copies), Whole(job)]


class Whole(Ours):
    """curl, and tokmap on what it has fetched."""

    def __init__(self, job):
        super().__init__(job, "curl, then tokmap pack", "tokmap-whole", lambda source: [])
        if not shutil.which("curl"):
            raise Absent("curl is not installed: apt-get install curl")

    def command(self, source, output):
        folder, names = output + ".objects", os.path.basename(source.folder)
        script = 'mkdir "$1" && curl -sfZ --parallel-max 8 --output-dir "$1" -O "$2" && shift 2 && exec "$@"'
        url = f"{self.job.server.url}/{BUCKET}/{names}/[000-{FILES - 1:03}].parquet"
        return ["sh", "-c", script, "sh", folder, url, *super().command(source, output), folder + "/"]


class Theirs(pack.Peer):
    def __init__(self, job, name):
        self.packer = lake.LAKES[name]
        pack.Packer.__init__(self, job, self.packer.LABEL)
        self.name = name

    def command(self, source, output):
        remote = pack.Input([f"s3://{BUCKET}/{os.path.basename(source.folder)}"], source.documents, source.bytes)
        return super().command(remote, output)


def source_of(job, limit):
    name, found = job.lake(limit)
    source = pack.Input(found["files"], found["documents"], found["bytes"])
    source.folder, source.found = os.path.join(job.root, BUCKET, name), found
    return source


class Measured:
    """One row, with what the server sent and worked for it."""

    def __init__(self, job, row):
        self.job, self.row, self.seconds, self.sent, self.worked = job, row, [], [], []

    def first(self, seconds):
        """Chooses the input, and watches the memory of one run. Raises Absent."""
        job, row = self.job, self.row
        row.prepare()
        limit = None
        if isinstance(row, Theirs):
            probe = source_of(job, PROBE)
            took, _ = row.run(probe, 600)
            limit = min(job.whole.bytes, max(PROBE, int(PROBE / took * seconds)))
        row.input, memory = source_of(job, limit), pack.Memory((job.work, job.root))
        _, output = row.run(row.input, 3600, memory, keep=True)
        row.memory = memory.peak
        about = row.about(output)
        if limit:
            about += f"; gets {row.input.bytes / 1e6:.1f} MB of text"
        job.report.about(row.label, about)
        job.remove(output)

    def turn(self):
        before, work = self.job.server.counts()["bytes"], meter.cpu_seconds([self.job.server.pid])
        self.seconds.append(self.row.run(self.row.input, 3600)[0])
        self.sent.append(self.job.server.counts()["bytes"] - before)
        self.worked.append(meter.cpu_seconds([self.job.server.pid]) - work)

    def report(self):
        report, row, found = self.job.report, self.row, self.row.input.found
        rates = [row.input.bytes / 1e6 / seconds for seconds in self.seconds]
        report.row(NAME, row.label, "mb_s", "MB/s", "more", rates)
        report.row(NAME, row.label, "seconds", "s", "less", self.seconds)
        if any(self.sent):
            report.row(NAME, row.label, "fetched_share", "x", "less",
                       [sent / (found["chunks"] + found["footers"]) for sent in self.sent])
            report.row(NAME, row.label, "server_s", "s", "less", self.worked)
        report.row(NAME, row.label, "peak_mib", "MiB", "less", row.memory / (1 << 20))
        return rates


def begin(job):
    """Makes the files and starts the server."""
    options = job.options
    job.maker = setup.Setup(options, job.report).python_with(["numpy", "pyarrow"], "lake-make")
    job.root = os.path.join(options.work, "lake-objects")
    os.makedirs(os.path.join(job.root, BUCKET))
    job.report.progress(0, 0, "the Parquet files")
    job.lake(None)
    job.lake(PROBE)
    job.server = storage.Server(os.path.join(options.work, "lake-server"), job.root)
    os.environ.update(job.server.environment())


def measure(report, tokens, options):
    if not options.tokenizer:
        raise Absent("the table lake needs --tokenizer: a tokenizer.json or a .tiktoken file")
    job = Job(report, options)
    seconds, repeats = options.seconds or 20, options.repeats or 3
    names = [name.strip() for name in options.peers.split(",") if name.strip()]
    pack.begin(job)
    job.python = sys.executable
    try:
        begin(job)
        rows = []
        theirs = [Theirs(job, name) for name in lake.LAKES if not names or name[5:] in names]
        for row in [*places(job), *theirs]:
            try:
                measured = Measured(job, row)
                measured.first(seconds)
                rows.append(measured)
            except (Absent, driver.Failed) as problem:
                report.absent(NAME, row.label, problem)
        for done, (_, row) in enumerate(meter.turns(rows, repeats)):
            report.progress(done, repeats * len(rows), row.row.label)
            row.turn()
    except vocabularies.Unsuitable as problem:
        raise Absent(str(problem)) from None
    finally:
        if job.server:
            job.server.stop()
    rates = {row.row.name: row.report() for row in rows}
    whole = source_of(job, None).found
    report.note(f"{job.whole.bytes / 1e6:.1f} MB of text in {FILES} files of {whole['stored'] / 1e6:.1f} MB, whose "
                f"text takes {whole['chunks'] / 1e6:.1f} MB; {job.workers} processors, {repeats} interleaved repeats.")
    said = []
    for row in rows[1:]:
        ratio = meter.Ratio(rates["tokmap"], rates[row.row.name])
        said.append(f"{ratio} times the rate of {row.row.label}")
        report.row(NAME, "tokmap pack s3://", "times_" + row.row.name.replace("-", "_"), "x", "more",
                   [mine / other for mine, other in zip(rates["tokmap"], rates[row.row.name])])
    report.answer(f"tokmap packs from object storage at {', '.join(said)}." if said else "Nothing else ran.")
