# SPDX-License-Identifier: MIT
"""The fault matrix: each fault against each loader, in child processes, and what happened as one word and a sentence.

The words: `place` an error that names the file and a position in it, `status` an error that names the file,
`exception` an error that names neither, `crash` the process died by a signal, `hang` no batch within the limit,
`garbage` rows that differ from the data were delivered without a word, `lost` and `repeated` rows of the undisturbed
run did not come or came twice, `none` every row came once and right, `unreachable` the fault cannot be injected into
this loader here. A system that cannot be had is `absent`. The worst that happened is the word; the sentence has the
counts.

The data is that of places.py. A reference is what the same loader delivers without a fault, so that a loader is not
blamed for an order of its own. After a restart the rows up to the last saved state count as trained, and the restarted
loader is asked for as many batches as are missing then: that is what a training program does.
"""

from __future__ import annotations

import array
import functools
import os
import shutil
import signal
import sys
import tempfile

import driver
import setup
from faults import places
from faults.runner import Fuse, Server, kind_of, said
from remote import shard
from report import Absent
from tokens import Tokens

SEQ_LEN, ROWS, WINDOWS = 256, 8, 1536
WORLD, WORLD_ROWS = 2, 12  # ranks before the restart on three, and their rows: a global batch has 24
BATCHES = WINDOWS // ROWS
STEPS = WINDOWS // (WORLD * WORLD_ROWS)
COUNT = WINDOWS * SEQ_LEN + 1
PAGE = 4096
SLOW = 0.02  # seconds by which a step of the slow rank is longer
PAUSE = 16  # the batch before which a file is cut under the run
ONCE = {"passes": 1}  # settings of tokmap's run

CONTROL = {"go", "state", "state.new", *(f"state.{rank}" for rank in range(WORLD))}  # files of this program in a cell
CHECKED = "tokmap, checked"


class Column:
    """One loader with its options."""

    def __init__(self, label, module, options, python, more=None, needs=None):
        self.label, self.module, self.options, self.python = label, module, options, python
        self.more = more or {}  # additional options for a fault
        self.needs = needs  # why it cannot be had
        self.order, self.server, self.clean = None, None, {}


class Cell:
    """A folder with the data of one cell, and the jobs that run on it."""

    def __init__(self, matrix, column, folder, real=None):
        self.matrix, self.column, self.folder = matrix, column, folder
        self.real_folder = real or folder  # the same folder, without the file system that fails
        self.converted = os.path.join(folder, "converted")
        os.makedirs(os.path.join(self.real_folder, "converted"))
        self.take(matrix.base)
        self.convert()

    def tokens(self, rows=ROWS, count=COUNT):
        # Some systems read the flat file itself. Once a fault has changed it, their copy must still be found.
        return Tokens(os.path.join(self.folder, "tokens.bin"), 2, count, SEQ_LEN, rows, self.folder,
                      os.path.join(self.folder, "tokens"), key="cell").__dict__

    def take(self, base):
        for end in ("bin", "tmx"):
            shutil.copyfile(f"{base}.{end}", os.path.join(self.real_folder, f"tokens.{end}"))

    def convert(self, count=COUNT):
        outcome = self.start(convert=True, tokens=self.tokens(count=count)).wait(self.matrix.limit * 4)
        if outcome.error or outcome.signal or outcome.hang:
            raise Absent("its format cannot be written: " + (ending(self, outcome) or ("", "?"))[1])

    def names(self):
        """The names of the data's files. Errors of tokmap may name the dataset."""
        known = {name for _, _, names in os.walk(self.real_folder) for name in names}
        return {"tokens.bin", "tokens.tmx", os.path.join(self.folder, "tokens")} | known - CONTROL

    def data_file(self):
        """The file with most of the system's data: its own, or else the flat file of tokens."""
        own = [os.path.realpath(os.path.join(folder, name))
               for folder, _, names in os.walk(os.path.join(self.real_folder, "converted")) for name in names]
        own = [path for path in own if os.path.getsize(path) >= COUNT]  # not an index
        return max(own, key=os.path.getsize, default=os.path.join(self.real_folder, "tokens.bin"))

    def middle(self):
        """Where the data file holds the tokens in the middle of the data: they are searched for with 2, 8, and 4 bytes
        each. In a file that is compressed they are not found, and the middle of the file is returned."""
        first = COUNT // 2
        with open(self.data_file(), "rb") as file:
            data = file.read()
        tokens = places.stream(16, first // places.KINDS)
        for code in "HqI":
            found = data.find(array.array(code, tokens).tobytes())
            if found >= 0:
                return found
        return len(data) // 4 * 2

    def start(self, **job):
        job.setdefault("tokens", self.tokens())
        options = dict(self.column.options, **job.pop("options", {}))
        return self.column.server.start(folder=self.converted, order=self.column.order, options=options, **job)

    def run(self, **job):
        job.setdefault("batches", BATCHES)
        return self.start(**job).wait(self.matrix.limit)

    def ranks(self, world, rows, each, **job):
        """Runs a loader for each rank at the same time. each(rank): more of its job. Returns their outcomes."""
        jobs = [self.start(tokens=self.tokens(rows), rank=rank, world=world, **job, **each(rank))
                for rank in range(world)]
        return [job.wait(self.matrix.limit) for job in jobs]

    def path(self, name):
        return os.path.join(self.folder, name)

    def judge(self, outcome):
        """The verdict of a run that should have delivered all rows."""
        return verdict(self.matrix.reference(self.column), outcome.rows, ending(self, outcome))


# ---- what happened ----


def ending(cell, outcome):
    """(word, sentence) if a job did not end well, else None."""
    count = len(outcome.batches)
    if outcome.hang:
        return "hang", f"no batch within {outcome.hang:.0f} s after {count} batches"
    if outcome.error and outcome.error["error"] == "Absent":
        raise Absent(outcome.error["text"])
    if outcome.error:
        folders = (cell.converted, cell.folder, cell.real_folder, cell.matrix.work)
        return kind_of(outcome.error, cell.names()), said(outcome.error, folders)
    if outcome.signal:
        return "crash", f"{signal.Signals(outcome.signal).name} after {count} batches"
    if not outcome.ended:
        return "crash", f"the process ended without a word after {count} batches"
    return None


def counted(number, what):
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def verdict(wanted, delivered, end=None):
    """(word, sentence) of a run that should have delivered `wanted`. end: what ending() returned."""
    lost, repeated, garbage, foreign = places.compare(wanted, delivered)
    parts = []
    if garbage:
        parts.append(f"{counted(garbage, 'row')} of {len(delivered):,} delivered were not the data")
    if foreign and end is None:
        parts.append(f"{counted(foreign, 'row')} came from other places than in the undisturbed run")
    lost -= min(lost, garbage)  # a row that came as garbage is not counted twice
    if lost and end is None:
        parts.append(f"{counted(lost, 'row')} of {len(wanted):,} never came")
    if repeated:
        parts.append(f"{counted(repeated, 'row')} came again")
    if end:
        word = "garbage" if garbage else "repeated" if repeated else end[0]
        return word, "; ".join([*parts, ("then " if parts else "") + end[1]])
    word = "garbage" if garbage else "lost" if lost else "repeated" if repeated or foreign else "none"
    return word, "; ".join(parts) or f"all {len(wanted):,} rows came once and right"


def flat(outcomes):
    return [row for outcome in outcomes for row in outcome.rows]


# ---- faults of the files ----


def flipped_bit(matrix, column):
    cell = matrix.cell(column)
    at = cell.middle()
    with open(cell.data_file(), "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    return cell.judge(cell.run())


def cut_before(matrix, column):
    cell = matrix.cell(column)
    cut(cell)
    return cell.judge(cell.run())


def cut(cell):
    path = cell.data_file()
    os.truncate(path, os.path.getsize(path) // 16 * 10)


def cut_under(matrix, column):
    cell = matrix.cell(column)
    go = cell.path("go")
    job = cell.start(batches=BATCHES, pause=[PAUSE, go])
    if not job.wait_pause(matrix.limit):
        return ending(cell, job.outcome) or ("none", "it ended before the cut")
    cut(cell)
    open(go, "w", encoding="ascii").close()
    return cell.judge(job.wait(matrix.limit))


def swapped_shard(matrix, column):
    """The run has begun; then its data file is that of other data of the same size, and the run resumes."""
    cell = matrix.cell(column)
    state, done = cell.path("state"), BATCHES // 4
    first = cell.run(batches=done, save=state, every=done)
    end = ending(cell, first)
    if end:
        return end
    matrix.put_other(cell, COUNT)
    outcome = cell.run(first=first.saved, batches=BATCHES, resume=state)
    wanted = matrix.reference(column)[first.saved * ROWS:]
    word, text = verdict(wanted, outcome.rows, ending(cell, outcome))
    return word, text + ("" if first.saved else "; it has no state, so it started again")


def stale_index(matrix, column):
    """The corpus was tokenized again into a data file that is longer; the index is that of the old file."""
    cell = matrix.cell(column)
    matrix.put_other(cell, COUNT // 8 * 9 + 1)
    return cell.judge(cell.run())


# ---- faults of reads and writes ----


def faulty_reads(matrix, column, kind):
    """Runs with a fault in reads of the page in the middle of the data file, which begins under the run, except that
    reads are short from the start."""
    cell = matrix.failing_cell(column)
    path = cell.data_file()
    begin = cell.middle() // PAGE * PAGE
    rule = {"kind": kind, "name": os.path.basename(path), "seconds": matrix.stall}
    rule.update({} if kind == "short" else {"from": begin, "to": begin + PAGE})
    mounted = os.path.join(cell.folder, os.path.relpath(path, cell.real_folder))
    outcome = run_on_fuse(matrix, cell, mounted, rule, -1 if kind == "short" else PAUSE)
    if kind == "short" and outcome.error and "No such device" in outcome.error["text"]:
        return "unreachable", "it maps the file, and a mapping has no reads that could be short"
    if outcome.hits == 0:
        return "unreachable", "it had read the file already, or a copy of its own"
    word, text = cell.judge(outcome)
    if kind == "stall" and word == "none":
        text += f"; the slowest next() took {outcome.slowest():.1f} s"
    return word, text


def run_on_fuse(matrix, cell, path, rule, at):
    """Runs while the rule holds: from batch `at` on, or always if that is -1. path: of the data file in the mount."""
    go = cell.path("go")
    if at < 0:
        matrix.fuse.rule(rule)
    job = cell.start(batches=BATCHES, pause=[at, go])
    if at >= 0 and job.wait_pause(matrix.limit):
        matrix.fuse.rule(rule)
        with open(path, "rb") as file:  # what has been read ahead would not be read again
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        open(go, "w", encoding="ascii").close()
    outcome = job.wait(matrix.limit)
    outcome.hits = matrix.fuse.rule(None)["hits"]
    return outcome


def full_disk(matrix, column):
    """The disk is full after half of what the loader and its state write; later it has room again."""
    more = column.more.get("full disk", {})
    job = dict(batches=20, every=10, options=more)
    cell = matrix.failing_cell(column)
    matrix.fuse.rule({"kind": "enospc", "bytes": 1 << 60})
    cell.run(save=cell.path("state"), **job)
    written = matrix.fuse.rule(None)["written"]
    cell = matrix.failing_cell(column)
    matrix.fuse.rule({"kind": "enospc", "bytes": written // 2})
    first = cell.run(save=cell.path("state"), **job)
    if not matrix.fuse.rule(None)["hits"] and not written:
        return "none", "neither the loader nor its state writes anything"
    broken = ending(cell, first)
    second = cell.run(first=first.saved, resume=cell.path("state"), batches=BATCHES, options=more)
    word, text = verdict(matrix.reference(column), first.rows[:first.saved * ROWS] + second.rows, ending(cell, second))
    if word != "none":
        return word, f"after the disk had room again: {text}"
    then = f"with room again, {text}"
    if broken:
        return broken[0], f"{broken[1]}; {then}"
    unsaved = "the program sees that its state is not saved, and keeps the old one; " if first.full else ""
    return "none", unsaved + then


# ---- faults of processes ----


def killed(matrix, column):
    cell = matrix.cell(column)
    state = cell.path("state")
    job = cell.start(batches=BATCHES, save=state, every=10, pause=[27, cell.path("never")])
    if not job.wait_pause(matrix.limit):
        return ending(cell, job.outcome) or ("none", "it ended before it was killed")
    job.kill()
    first = job.wait(matrix.limit)
    done = first.saved or 20  # a loader without a state: the model's state is that of batch 20 all the same
    second = cell.run(first=done, batches=BATCHES, resume=state)
    word, text = verdict(matrix.reference(column), first.rows[:done * ROWS] + second.rows, ending(cell, second))
    return word, text + ("" if first.saved else "; it has no state, so it starts again")


def other_ranks(matrix, column):
    cell = matrix.cell(column)
    half = STEPS // 3
    first = cell.ranks(WORLD, WORLD_ROWS, lambda rank: {"save": cell.path(f"state.{rank}")}, every=half, batches=half)
    for outcome in first:
        if ending(cell, outcome):
            return ending(cell, outcome)
    second = cell.ranks(WORLD + 1, WORLD_ROWS * WORLD // (WORLD + 1),
                        lambda rank: {"resume": cell.path(f"state.{rank % WORLD}")}, first=half, batches=STEPS)
    ends = [ending(cell, outcome) for outcome in second]
    end = next((one for one in ends if one), None)
    word, text = verdict(matrix.reference(column, WORLD), flat(first) + flat(second), end)
    return word, text + ("" if all(one.saved for one in first) else "; it has no state, so it starts again")


def slow_rank(matrix, column):
    cell = matrix.cell(column)
    outcomes = cell.ranks(WORLD, WORLD_ROWS, lambda rank: {"sleep": SLOW} if rank else {}, batches=STEPS)
    end = next((ending(cell, outcome) for outcome in outcomes if ending(cell, outcome)), None)
    word, text = verdict(matrix.reference(column, WORLD), flat(outcomes), end)
    steps = [len(outcome.batches) for outcome in outcomes]
    if not end and len(set(steps)) > 1:
        return "lost", f"the ranks got {steps[0]} and {steps[1]} batches, so a synchronous job would hang; {text}"
    return word, text


FAULTS = {
    "flipped bit": flipped_bit,
    "cut before opening": cut_before,
    "cut under the run": cut_under,
    "swapped shard": swapped_shard,
    "stale index": stale_index,
    "short read": functools.partial(faulty_reads, kind="short"),
    "EIO": functools.partial(faulty_reads, kind="eio"),
    "full disk": full_disk,
    "stall": functools.partial(faulty_reads, kind="stall"),
    "SIGKILL and resume": killed,
    "other number of ranks": other_ranks,
    "slow rank": slow_rank,
}


class Matrix:
    def __init__(self, report, options):
        self.report, self.options = report, options
        self.work = tempfile.mkdtemp(prefix="faults-", dir=_made(options.work))
        self.stall = options.stall
        self.limit = max(30.0, 3 * options.stall)
        self.base = os.path.join(self.work, "base")
        self.others, self.cells, self.why = {}, 0, ""
        self.write(self.base, COUNT, 0)
        self.fuse = None
        try:
            self.fuse = Fuse(options, os.path.join(self.work, "fuse"))
        except (Absent, driver.Failed) as problem:
            self.why = str(problem)

    def write(self, prefix, count, group):
        """Writes a shard with tokens of places.py."""
        flat = f"{prefix}.flat"
        with open(flat, "wb") as file:
            places.stream(count, group).tofile(file)
        driver.ask_script(self.options, sys.executable, shard.__file__, {
            "tokens": Tokens(flat, 2, count, SEQ_LEN, ROWS, self.work).to_json(), "path": prefix})
        os.unlink(flat)

    def other(self, count):
        """The path of other data, without .bin."""
        if count not in self.others:
            self.others[count] = os.path.join(self.work, f"other.{count}")
            self.write(self.others[count], count, places.OTHER)
        return self.others[count]

    def cell(self, column):
        self.cells += 1
        return Cell(self, column, os.path.join(self.work, f"cell.{self.cells}"))

    def failing_cell(self, column):
        """A cell on the file system whose reads and writes fail."""
        if not self.fuse:
            raise Absent(f"nothing makes reads and writes fail here: {self.why}")
        self.cells += 1
        name = f"cell.{self.cells}"
        return Cell(self, column, os.path.join(self.fuse.mount, name), os.path.join(self.fuse.back, name))

    def put_other(self, cell, count):
        """Replaces the data file of a cell, in its system's format, by that of other data."""
        target, old = cell.data_file(), os.path.getsize(cell.data_file())
        spare = Cell(self, cell.column, os.path.join(self.work, f"spare.{self.cells}.{count}"))
        shutil.rmtree(spare.converted)
        os.makedirs(spare.converted)
        spare.take(self.other(count))
        spare.convert(count)
        found = spare.data_file()
        if count == COUNT and os.path.getsize(found) != old:
            raise Absent("its files of other data of the same length have another size")
        os.replace(found, target)

    def reference(self, column, world=1):
        """The rows that the loader delivers without a fault, over all ranks."""
        if world not in column.clean:
            cell = self.cell(column)
            outcomes = ([cell.run()] if world == 1 else
                        cell.ranks(world, WORLD_ROWS, lambda rank: {}, batches=STEPS))
            for outcome in outcomes:
                if ending(cell, outcome):
                    raise Absent(f"without a fault: {ending(cell, outcome)[1]}")
            column.clean[world] = flat(outcomes)
        return column.clean[world]

    def close(self):
        if self.fuse:
            self.fuse.close()
        shutil.rmtree(self.work, ignore_errors=True)


def _made(folder):
    os.makedirs(folder, exist_ok=True)
    return folder


# ---- columns ----


def columns(report, options):
    """The loaders to measure: tokmap in two ways, and the first row of each other system."""
    checked = {"settings": {**ONCE, "reading": "pread"}, "verify": True, "deadline": options.stall / 2}
    found = [Column("tokmap", "systems.tokmap", {"settings": ONCE}, sys.executable),
             Column(CHECKED, "systems.tokmap", checked, sys.executable, more={"full disk": {"trace": "trace"}})]
    environments = setup.Setup(options, report, setup.systems(options))
    for system in setup.systems(options):
        if system.NAME in ("tokmap", "tokmap_c"):
            continue
        label, more = next(iter(system.ROWS.items()))
        try:
            found.append(Column(label, f"systems.{system.NAME}", more, environments.python_of(system)))
        except Absent as problem:
            found.append(Column(label, "", {}, "", needs=str(problem)))
    return found


def add_arguments(parser):
    parser.add_argument("--faults", default="", help="the faults to measure, with commas between them (default: all)")
    parser.add_argument("--stall", type=float, default=10, help="seconds that a stalled read takes")


def wanted_faults(text):
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in FAULTS:
            raise SystemExit(f"--faults: there is no fault '{name}'; there are {', '.join(FAULTS)}")
    return names or list(FAULTS)


def measure_column(matrix, column, names, done, total):
    """Fills the column of one loader."""
    report = matrix.report
    if column.needs is None:
        try:
            column.server = Server(matrix.options, column.python, column.module)
            orders = column.server.orders
            column.order = "sequential" if "sequential" in orders else orders[0]
            matrix.reference(column)
        except (Absent, driver.Failed) as problem:
            column.needs = str(problem)
    if column.needs is not None:
        report.absent("faults", column.label, column.needs)
    else:
        options = ", ".join(f"{name}={value}" for name, value in column.options.items()) or "its defaults"
        report.about(column.label, f"{column.server.about}; order {column.order}; options: {options}")
    for name in names:
        report.progress(done, total, f"{column.label}: {name}")
        done += 1
        if column.needs is not None:
            report.cell(name, column.label, "absent", column.needs)
            continue
        try:
            word, text = FAULTS[name](matrix, column)
        except Absent as problem:
            word, text = "unreachable", str(problem)
        if column.label == "tokmap" and name == "stall" and word == "none":
            text += ". deadline=SECONDS makes it a TimeoutError"
        report.cell(name, column.label, word, text)
    if column.server:
        column.server.close()
    return done


def measure(report, _, options):
    names = wanted_faults(options.faults)
    matrix = Matrix(report, options)
    try:
        chosen = columns(report, options)
        done, total = 0, len(chosen) * len(names)
        for column in chosen:
            done = measure_column(matrix, column, names, done, total)
        how = "FUSE: it reaches mappings, too" if matrix.fuse else f"nothing ({matrix.why})"
        report.note(f"{WINDOWS:,} windows of {SEQ_LEN} tokens. Reads fail by {how}. A stall is {options.stall:g} s, "
                    f"and no batch within {matrix.limit:g} s is a hang.")
    finally:
        matrix.close()
