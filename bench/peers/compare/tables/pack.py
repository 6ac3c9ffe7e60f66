# SPDX-License-Identifier: MIT
"""The table `pack`: JSONL to a synced token file with one vocabulary.

Each packer is a process, timed from its start to its end, the sync of its output included. The same process is also
timed on a single short document: that is its start, with the imports and the reading of the vocabulary. The first rate
includes the start, the second leaves it out. A packer that would take longer than --seconds gets a part of the input,
the first documents, and the row says so.

Before the repeats, each packer runs once on what it gets. During this run, which also warms the page cache, the memory
of its processes is watched, and its output is compared with the vocabulary's reference, document by document.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import driver
import measure as meter
import setup
from packing import inputs, packers, vocabularies
from report import Absent

NAME = "pack"
FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packing")
PROBE = 2 << 20      # bytes of text of the first run, from which the rate is estimated
CHECKED = 64 << 20   # bytes of text whose documents are compared
SHORT = "One short document, for which a packer only has to start.\n"


def add_arguments(parser):
    parser.add_argument("--text", help="a JSONL file (default: made from this machine's files)")
    parser.add_argument("--field", default="text", help="the field that holds the text")
    parser.add_argument("--text-bytes", type=int, default=64 << 20, help="size of the text that is made")
    parser.add_argument("--tokenizer", help="a tokenizer.json or a .tiktoken file")
    parser.add_argument("--pattern", help="the split pattern of a .tiktoken file")


class Input:
    """What a packer reads: files, documents, and bytes of text. documents and bytes are None until they are known."""

    def __init__(self, files, documents=None, size=None):
        self.files, self.documents, self.bytes = files, documents, size


class Job:
    """What all packers share: the whole input, its first parts, and the vocabulary in both formats."""

    def __init__(self, report, options):
        self.report, self.options, self.work = report, options, os.path.join(options.work, NAME)
        os.makedirs(self.work, exist_ok=True)
        self.field, self.workers = options.field, len(os.sched_getaffinity(0))
        self.python, self.eod, self.width, self.vocabulary = None, None, 2, options.tokenizer
        self.without_end = not self.names_end()
        self.whole, self.cuts, self.count = self.find_input(), {}, 0
        self.short = Input([os.path.join(self.work, "short.jsonl")], 1, len(SHORT))
        with open(self.short.files[0], "w", encoding="utf-8") as file:
            file.write(json.dumps({self.field: SHORT}) + "\n")

    def names_end(self):
        """Whether the tokenizer names the token at the end of a document; without one, no packer writes any."""
        more = ["--pattern", self.options.pattern] if self.options.pattern else []
        done = subprocess.run([self.options.tokmap, "tokenizer", "--json", *more, self.vocabulary], check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise Absent(driver.last_lines(done.stderr))
        return json.loads(done.stdout)["eod"] is not None

    def find_input(self):
        options = self.options
        if options.text:
            path = os.path.abspath(options.text)
            if not os.path.isfile(path):
                raise Absent(f"the text {path} is not a file; the packers read one JSONL file")
            return Input([path])
        path = os.path.join(self.work, "text.jsonl")
        self.report.progress(0, 0, f"making {options.text_bytes / 1e6:.0f} MB of text")
        self.report.note(inputs.make(path, options.text_bytes))
        self.field = "text"
        return Input([path])

    def set_vocabulary(self, about):
        """about: what `tokmap pack --json` reports, which names the end of a document and the width of an id."""
        path, options = vocabularies.file_of(self.vocabulary), self.options
        self.eod, self.width = about["tokenizer"]["eod_id"], about["tokenizer"]["width"]
        self.ranks = path if vocabularies.is_ranks(path) else None
        self.pattern = vocabularies.pattern_name(path, options.pattern) if self.ranks else None
        self.json = path
        if self.ranks:
            self.json = os.path.join(self.work, "tokenizer.json")
            special = {} if self.eod is None else {"<|endoftext|>": self.eod}
            with open(self.json, "w", encoding="utf-8") as file:
                file.write(vocabularies.json_of_ranks(vocabularies.ranks_of_file(path),
                                                      vocabularies.PATTERNS[self.pattern], special))
        elif not path.endswith(".json"):
            raise Absent(f"the table pack needs a tokenizer.json or a .tiktoken file, which the packers can read, but "
                         f"--tokenizer is {path}")

    def part(self, limit, parts=1):
        """The first documents, until they have `limit` bytes of text (all: None), in so many files."""
        whole = self.whole
        if parts == 1 and (limit is None or limit >= whole.bytes):
            return whole
        key = (limit, parts)
        if key not in self.cuts:
            folder = os.path.join(self.work, f"part-{len(self.cuts)}")
            os.makedirs(folder)
            found = driver.ask_script(self.options, self.python, os.path.join(FOLDER, "inputs.py"), {
                "path": whole.files[0], "field": self.field, "limit": limit,
                "out": os.path.join(folder, "text"), "parts": parts}, wait=3600)
            self.cuts[key] = Input(found["files"], found["documents"], found["bytes"])
        return self.cuts[key]

    def output(self, name):
        self.count += 1
        return os.path.join(self.work, f"{name}-{self.count}")

    def remove(self, output):
        folder, start = os.path.split(output)
        for name in os.listdir(folder):
            if name == start or name.startswith(start + "."):
                path = os.path.join(folder, name)
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


class Memory:
    """The largest sum of the memory of a tree of processes that was seen."""

    def __init__(self, folders):
        self.folders, self.peak = folders, 0

    def look(self, pid):
        """Looks once; returns the seconds until it is worth looking again, so that it takes at most 10% of the time."""
        began = time.monotonic()
        self.peak = max(self.peak, meter.memory_bytes(meter.tree(pid), self.folders))
        return max(0.002, 9 * (time.monotonic() - began))

    def has_ended(self, process):
        """Returns whether a process has ended. If it was too short to be seen, its largest resident size counts, which
        includes pages of mapped files."""
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if not pid:
            return False
        process.returncode = os.waitstatus_to_exitcode(status)
        self.peak = self.peak or usage.ru_maxrss * 1024
        return True


def run_command(options, command, log, limit, memory=None):
    """Runs a program to its end. Returns the seconds from its start to its end. Raises driver.Failed."""
    began = time.monotonic()
    with open(log, "wb") as messages:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=messages, stderr=messages,
                                       start_new_session=True, env=driver.environment(options))
        except OSError as problem:
            raise driver.Failed(f"{command[0]} cannot be started: {problem.strerror}") from None
        try:
            while memory and not memory.has_ended(process) and time.monotonic() - began < limit:
                time.sleep(memory.look(process.pid))
            process.wait(max(0.1, limit - (time.monotonic() - began)))
        except subprocess.TimeoutExpired:
            raise driver.Failed(f"it did not end within {limit:.0f} s") from None
        finally:
            if process.returncode is None:
                for pid in meter.tree(process.pid):
                    _kill(pid)
                process.wait()
    seconds = time.monotonic() - began
    if process.returncode:
        with open(log, encoding="utf-8", errors="replace") as file:
            raise driver.Failed(f"exit status {process.returncode}: {driver.last_lines(file.read()[-4096:])}")
    return seconds


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


class Packer:
    """One row. Base of the two kinds of commands; it also knows what the row gets."""
    kind, parts, name = "flat", 1, ""

    def __init__(self, job, label):
        self.job, self.label = job, label
        self.input, self.memory, self.seconds, self.starts = None, 0, [], []

    def prepare(self):
        """Finds what it needs; raises Absent."""

    def command(self, source, output):
        raise NotImplementedError

    def about(self, output):
        raise NotImplementedError

    def run(self, source, limit, memory=None, keep=False):
        """Packs once. Returns the seconds and, if it was to be kept, the output."""
        job, output = self.job, self.job.output(self.name)
        try:
            seconds = run_command(job.options, self.command(source, output), output + ".log", limit, memory)
        except driver.Failed as problem:
            if os.path.exists(output + ".absent"):
                with open(output + ".absent", encoding="utf-8") as file:
                    raise Absent(file.read()) from None
            raise Absent(str(problem)) from None
        if not keep:
            job.remove(output)
        return seconds, output


class Tokmap(Packer):
    kind, name = "tokmap", "tokmap"

    def command(self, source, output):
        options = self.job.options
        more = ["--pattern", options.pattern] if options.pattern else []
        more += ["--no-eod"] if self.job.without_end else []
        return [options.tokmap, "pack", "--json", "-t", self.job.vocabulary, "--field", self.job.field, "-j",
                str(self.job.workers), *more, "--input-format", "jsonl", "-o", output, *source.files]

    def packed(self, output):
        """The report of `tokmap pack --json`."""
        with open(output + ".log", encoding="utf-8") as file:
            return json.loads([line for line in file.read().splitlines() if line.startswith("{")][-1])

    def about(self, output):
        done = subprocess.run([self.job.options.tokmap, "--version"], stdout=subprocess.PIPE, text=True, check=False)
        return (f"{done.stdout.splitlines()[0] if done.stdout else 'tokmap'}; tokmap pack -j {self.job.workers}, which "
                f"also writes an index with documents, origins, and checksums")


class Peer(Packer):
    """A packer of packing/packers.py."""

    def __init__(self, job, name):
        self.packer = packers.PACKERS[name]
        super().__init__(job, self.packer.LABEL)
        self.name, self.kind = name, name if name in ("megatron", "datatrove") else "flat"
        self.parts = job.workers if name == "datatrove" else 1

    def prepare(self):
        self.python = setup.Setup(self.job.options, self.job.report).python_with(self.packer.PACKAGES,
                                                                                "pack-" + self.name)

    def command(self, source, output):
        job, request = self.job, output + ".request"
        with open(request, "w", encoding="utf-8") as file:
            json.dump({"inputs": source.files, "field": job.field, "json": job.json, "ranks": job.ranks,
                       "pattern": job.pattern, "eod": job.eod, "width": job.width, "workers": job.workers,
                       "output": output}, file)
        return [self.python, os.path.join(FOLDER, "run.py"), self.name, request]

    def about(self, output):
        with open(output + ".times", encoding="utf-8") as file:
            found = json.load(file)
        return f"{found['about']}; imports and vocabulary: {found['load_s']:.2f} s"


class Reference:
    """The ids of the first documents by the implementation that defines the vocabulary."""

    def __init__(self, job):
        self.job, self.path, self.reason = job, os.path.join(job.work, "reference"), None
        package = "tiktoken" if job.ranks else "tokenizers"
        try:
            job.python = setup.Setup(job.options, job.report).python_with(["numpy", package], "pack-reference")
            job.report.progress(0, 0, f"the ids of the documents by {package}")
            found = self.ask(do="reference", path=job.whole.files[0], field=job.field, limit=CHECKED,
                             out=self.path, json=job.json, ranks=job.ranks, pattern=job.pattern,
                             eod=job.eod)
            self.by, self.documents = found["by"], found["documents"]
        except (Absent, driver.Failed) as problem:
            self.reason = f"not compared: the reference ({package}) cannot be had: {problem}"

    def ask(self, do, **request):
        return driver.ask_script(self.job.options, self.job.python, os.path.join(FOLDER, "ids.py"), request, 3600, do)

    def compare(self, row, output):
        """Reports how the documents of one output compare. Returns whether all are equal, or None."""
        report, job = self.job.report, self.job
        if self.reason:
            report.equal(NAME, row.label, None, self.reason)
            return None
        found = self.ask(do="compare", reference=self.path, kind=row.kind, output=output, width=job.width, eod=job.eod,
                         documents=row.input.documents)
        report.row(NAME, row.label, "documents_that_differ", "documents", "less", found["differ"])
        text = f"{found['differ']} of {found['compared']:,} documents differ from {self.by}"
        if found["first"] is not None:
            text += f", first document {found['first']}"
        for what, said in (("special", "contain the text of a special token"), ("dropped", "are empty and left out"),
                           ("missing", "are missing"), ("extra", "more were written")):
            if found[what]:
                text += f"; {found[what]} {said}"
        good = not found["differ"] and not found["extra"]
        report.equal(NAME, row.label, good, text)
        return good


def wanted(options):
    """The names of the packers that --peers asks for."""
    names = [name.strip() for name in options.peers.split(",") if name.strip()] or list(packers.PACKERS)
    for name in names:
        if name not in packers.PACKERS and name != "tokmap":
            raise Absent(f"--peers: there is no packer '{name}'; there are {', '.join(packers.PACKERS)}")
    return [name for name in packers.PACKERS if name in names]


def first_run(job, row, reference, seconds):
    """Finds out what a row gets, runs it once on that, and compares the output. Raises Absent."""
    report, whole = job.report, job.whole
    report.progress(0, 0, f"{row.label}: first runs")
    limit = 60 + 30 * seconds
    row.prepare()
    start, _ = row.run(job.short, limit)
    took, _ = row.run(job.part(PROBE, row.parts), limit)
    probe = job.part(PROBE, row.parts)
    rate = probe.bytes / max(took - start, 0.01)
    row.input = job.part(None if rate * seconds >= whole.bytes else max(PROBE, int(rate * seconds)), row.parts)
    memory = Memory((job.work, whole.files[0]))
    _, output = row.run(row.input, limit, memory, keep=True)
    row.memory = memory.peak
    text = row.about(output)
    if row.input.bytes < whole.bytes:
        text += f"; gets the first {row.input.bytes / 1e6:.1f} of {whole.bytes / 1e6:.1f} MB of text"
    report.about(row.label, text)
    row.equal = reference.compare(row, output)
    job.remove(output)


def begin(job):
    """Packs everything with tokmap once: its report names the end of a document, and it finds what is wrong with the
    input."""
    row = Tokmap(job, "tokmap pack")
    row.input = job.whole
    _, output = row.run(job.whole, 24 * 3600, keep=True)
    found = row.packed(output)
    job.set_vocabulary(found)
    job.whole.documents, job.whole.bytes = found["documents"], found["text_bytes"]
    job.remove(output)
    return row


def answer(report, rows, rates):
    """The sentence below the table."""
    ours = next(row for row in rows if row.name == "tokmap")
    others = [row for row in rows if row is not ours]
    if not others:
        report.answer("No other packer can be had here, so this is tokmap's own rate only.")
        return
    best = max(others, key=lambda row: meter.Ratio(rates[row.name], rates[ours.name]).ratio)
    ratio = meter.Ratio(rates[ours.name], rates[best.name])
    if ratio.count < 2:
        report.answer(f"tokmap: {ratio.ratio:.3g} times the rate of {best.label}, start included; one repeat does not "
                      f"tell how sure that is.")
        return
    word = "packs this text at" if ratio.distinguishable else "cannot be distinguished from the fastest other: it is at"
    report.answer(f"tokmap {word} {ratio} times the rate of {best.label}, start included.")


def measure_row(job, row, limit):
    row.starts.append(row.run(job.short, limit)[0])
    row.seconds.append(row.run(row.input, limit)[0])


def report_row(report, row):
    """Rates of one row from its seconds, and its start."""
    size = row.input.bytes
    rates = [size / 1e6 / seconds for seconds in row.seconds]
    report.row(NAME, row.label, "mb_s", "MB/s", "more", rates)
    worked = [seconds - start for seconds, start in zip(row.seconds, row.starts)]
    if min(worked) > 0.2 * min(row.seconds):
        report.row(NAME, row.label, "without_start_mb_s", "MB/s", "more", [size / 1e6 / one for one in worked])
    else:
        report.note(f"{row.label}: starting takes most of the time with this little text, so the rate without it would "
                    f"be noise.")
    report.row(NAME, row.label, "start_s", "s", "less", row.starts)
    report.row(NAME, row.label, "peak_mib", "MiB", "less", row.memory / (1 << 20))
    return rates


def measure(report, tokens, options):
    if not options.tokenizer:
        raise Absent("the table pack needs --tokenizer: a tokenizer.json or a .tiktoken file")
    names = wanted(options)
    job = Job(report, options)
    seconds, repeats = options.seconds or 10, options.repeats or 5
    try:
        rows = [begin(job)]
    except vocabularies.Unsuitable as problem:
        raise Absent(str(problem)) from None
    reference = Reference(job)
    if job.python is None:
        job.python = sys.executable
    for name in names:
        rows.append(Peer(job, name))
    present = []
    for row in rows:
        try:
            first_run(job, row, reference, seconds)
            present.append(row)
        except (Absent, driver.Failed) as problem:
            if row.name == "tokmap":
                raise
            report.absent(NAME, row.label, problem)
    for done, (_, row) in enumerate(meter.turns(present, repeats)):
        report.progress(done, repeats * len(present), row.label)
        measure_row(job, row, 60 + 30 * seconds)
    rates = {row.name: report_row(report, row) for row in present}
    report.note(f"{job.whole.bytes / 1e6:.1f} MB of text in {job.whole.documents:,} documents, {job.workers} "
                f"processors, {repeats} interleaved repeats; the text is in the page cache, and outputs are synced.")
    answer(report, present, rates)

