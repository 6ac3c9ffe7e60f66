# SPDX-License-Identifier: MIT
"""Drives one system in a process of its own. The class Driver is the parent's side; run as a program, this file is the
child's.

A system is a module systems/NAME.py. The parent imports it with any Python, so at its top level it may import only the
standard library; everything else is imported in open(), convert(), and about(), which run in the child. It has

    NAME        its name in --peers: the name of the file
    PACKAGES    requirements for pip, such as ["numpy", "torch"]; [] if the standard library is enough
    ROWS        {"label of a row": {options of open()}}; each is a row of the table `loaders`
    ORDERS      the orders it can deliver, of:
                "sequential"  window 0, 1, 2, ...
                "list"        exactly the windows of tokens.order(), repeated at its end
                "own"         an order of its own, random where the system can do that
    orders_of(options) -> orders
                (optional) those of ORDERS that it has with these options of open(), a value of ROWS
    STITCHED    True if it shuffles documents and continues a row in the next of them, so that a row is one piece of the
                data only where its documents end at no `eod` (default False)
    DISJOINT    True if it cuts windows of S + 1 tokens that share none (default False: they overlap by one token)
    OPTIONAL    True if it also runs without its packages, in whatever Python is there (default False)
    VENV        True if its packages conflict with those of others, so that it gets an environment of its own
    about() -> str
                version and the choices that hold for every row: output type, and why this configuration is its best
    convert(tokens, folder)
                (optional) writes the system's own format of the tokens into the folder, which exists; once for all rows
    open(tokens, folder, *, order, rank=0, world=1, resume=None, **options) -> loader
                opens what convert() wrote. Raises report.Absent(reason), or ImportError, if it cannot be had

and a loader has

    next() -> (inputs, targets)
                arrays in memory (NumPy, torch, JAX, tokmap.Array) of shape (tokens.rows, tokens.seq_len), of 64-bit
                integers unless the system cannot; all their tokens have been written when it returns. They stay valid
                until the next call. Raises StopIteration at the end of an epoch; the loader is then closed and opened
                again, as a training loop would do, which counts
    state()     what `resume` accepts, picklable, for the batch after the last one; None if the system has nothing. In
                another process, open(..., resume=state) continues there
    close()     ends its workers and threads

A system that is a program has command(options, tokens) -> arguments instead of about(), convert(), and open(); see
NativeDriver.

Commands are JSON lines on the child's standard input, answers JSON lines on a descriptor of their own, so that a
system may print what it likes. Driver's methods document them.
"""
import array
import atexit
import base64
import ctypes
import importlib
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import measure
from report import Absent
from tokens import Tokens

WAIT = 300  # seconds that opening and converting may take


class Failed(Exception):
    """A system that raised an exception, crashed, or did not answer. Its text says so, with the last lines that it
    wrote to standard error."""


# ---- the parent's side ----


def environment(options):
    """The variables of a child: those of this process, and where tokmap's Python package and library are."""
    variables = dict(os.environ, PYTHONUNBUFFERED="1", TOKENIZERS_PARALLELISM="false", PYTHONDONTWRITEBYTECODE="1")
    if options.package:
        old = variables.get("PYTHONPATH")
        variables["PYTHONPATH"] = options.package + (os.pathsep + old if old else "")
        library = os.path.join(os.path.dirname(os.path.dirname(options.tokmap)), "lib", "libtokmap.so")
        if "TOKMAP_LIBRARY" not in variables and os.path.exists(library):
            variables["TOKMAP_LIBRARY"] = library
    return variables


def last_lines(text, count=3):
    """The last lines of what a program wrote to standard error, as one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-count:]) or "it wrote nothing to standard error"


_running = set()


def stop_all():
    """Ends every child that still runs, with its workers."""
    for child in list(_running):
        child.kill()


atexit.register(stop_all)


class Child:
    """A program in a session of its own, which answers lines of JSON with lines of JSON. Base of Driver; tables whose
    loop is not one of a system derive from it, or use ask_script()."""

    def __init__(self, options, command, on_output=False):
        """on_output: the answers come on standard output, not on a descriptor whose number is the last argument."""
        self.name = os.path.basename(command[1]) if len(command) > 1 else command[0]
        self._errors = tempfile.TemporaryFile(dir=options.work)
        answers, theirs = os.pipe()
        self.started = time.monotonic()
        try:
            self._process = subprocess.Popen([*command] if on_output else [*command, str(theirs)],
                                             stdin=subprocess.PIPE, stdout=theirs if on_output else self._errors,
                                             stderr=self._errors, pass_fds=[theirs], start_new_session=True,
                                             env=environment(options))
        except OSError as problem:
            os.close(answers)
            raise Failed(f"{command[0]} cannot be started: {problem.strerror}") from None
        finally:
            os.close(theirs)
        self.pid, self._answers, self._rest = self._process.pid, answers, b""
        _running.add(self)

    def ask(self, do, wait=WAIT, watch=None, **fields):
        """Sends a command and returns its answer, a dict. Waits at most `wait` seconds, and calls watch(), if given,
        about 20 times a second until then. Raises Absent, or Failed after the child has been ended."""
        self.send(do, **fields)
        return self.answer(wait, watch)

    def send(self, do, **fields):
        """Sends a command without waiting: several children can so work at the same time."""
        try:
            self._process.stdin.write(self.line(do, fields).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            pass  # it has ended, and answer() says how

    def line(self, do, fields):
        """A command as a line."""
        return json.dumps({"do": do, **fields})

    def answer(self, wait=WAIT, watch=None):
        """Waits for the answer to the oldest command that was sent."""
        end = time.monotonic() + wait
        while b"\n" not in self._rest:
            left = end - time.monotonic()
            if left <= 0:
                self.kill()
                raise Failed(f"no answer within {wait:.0f} s; its last lines: {self.lines()}")
            if select.select([self._answers], [], [], min(left, 0.05) if watch else left)[0]:
                got = os.read(self._answers, 1 << 20)
                if not got:
                    self.kill()
                    raise Failed(f"{self._ended()}; its last lines: {self.lines()}")
                self._rest += got
            elif watch:
                watch()
        line, _, self._rest = self._rest.partition(b"\n")
        found = json.loads(line)
        if "absent" in found:
            raise Absent(found["absent"])
        if "failed" in found:
            raise Failed(found["failed"])
        return found

    def lines(self):
        """The last lines that the child wrote."""
        size = os.fstat(self._errors.fileno()).st_size
        return last_lines(os.pread(self._errors.fileno(), 4096, max(0, size - 4096)).decode(errors="replace"))

    def _ended(self):
        status = self._process.returncode
        return f"ended by signal {signal.Signals(-status).name}" if status < 0 else f"ended with exit status {status}"

    def kill(self):
        """Ends the process and its workers at once."""
        if self not in _running:
            return
        _running.discard(self)
        if self._process.poll() is None and not self._rest:
            try:  # one that is already ending keeps its exit status
                self._process.wait(0.2)
            except subprocess.TimeoutExpired:
                pass
        below = measure.tree(self.pid)
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except OSError:
            pass
        for pid in below[1:]:  # workers that made a session of their own
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        self._process.wait()
        os.close(self._answers)
        self._process.stdin.close()

    def close(self):
        """Lets it end by itself, and ends it if that takes more than 5 seconds."""
        try:
            self._process.stdin.close()
            self._process.wait(5)
        except (OSError, subprocess.TimeoutExpired):
            pass
        self.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Driver(Child):
    """One row of one system: `with Driver(options, python, system, tokens, row_options) as it:`

    options  those of the table (package, tokmap, work)
    python   what setup.python_of(system) returned
    system   the module; more: options of open()
    """

    def __init__(self, options, python, system, tokens, more=None):
        super().__init__(options, [python, os.path.abspath(__file__), system.NAME])
        self.more, self.folder = dict(more or {}), os.path.join(tokens.work, system.NAME)
        self.send("hello", tokens=tokens.to_json(), folder=self.folder)
        self._hello = None

    def about(self):
        """The system's own text."""
        if self._hello is None:
            self._hello = self.answer()
        return self._hello["about"]

    def import_seconds(self):
        """The time that importing its packages took; None for a program."""
        self.about()
        return self._hello.get("import_s")

    def _after_hello(self, do, wait=WAIT, watch=None, **fields):
        self.about()
        return self.ask(do, wait, watch, **fields)

    def convert(self):
        """Writes the system's format, if it has one. Returns the seconds that took."""
        return self._after_hello("convert", 20 * WAIT)["seconds"]

    def open(self, order, rank=0, world=1, resume=None, seconds=0, most=0):
        """Opens the loader and takes its first batch: {"open_s", "first_s", "start_s" (from the start of the process to
        the first batch), "sums" (measure.row_sums() of that batch)}. With `most`, run(seconds, most=most) follows
        without a pause, in which the loader could work ahead; the answer has its members instead of sums."""
        found = self._after_hello("open", WAIT + 10 * seconds, order=order, rank=rank, world=world, resume=resume,
                                  options=self.more, seconds=seconds, most=most)
        found["start_s"] = found.pop("at") - self.started
        return found

    def run(self, seconds, watch=None, most=0):
        """Takes batches for so many seconds, at least one, and at most `most` unless that is 0: {"tokens", "batches",
        "seconds", "cpu_s" (of the process and its workers), "p50", "p99", "p999", "max" (us of a call of next()),
        "epochs" (times it began again)}."""
        return self._after_hello("run", WAIT + 10 * seconds, watch, seconds=seconds, most=most)

    def take(self, batches, places=0):
        """Takes exactly so many batches: {"sums": measure.row_sums() of all rows in their order, "places": where the
        first `places` rows occur in the file (Tokens.find()), "shifted": how many of all rows have targets that are not
        the inputs moved by one token}."""
        return self._after_hello("take", WAIT, batches=batches, places=places)

    def state(self):
        """{"state": the state as a text that open(resume=...) accepts, or None; "bytes": its pickled size;
        "seconds"}."""
        return self._after_hello("state", WAIT)

    def close_loader(self):
        """Closes the loader, not the process."""
        self._after_hello("close", WAIT)


class NativeDriver(Driver):
    """The same for a system that is a program: its module has command(options, tokens) -> arguments. Commands are words
    on its standard input, as bench/cases/case_compare.c says, and answers JSON lines on its standard output."""

    WORDS = {"open": ("order", "seconds", "most", "resume"), "run": ("seconds", "most"), "take": ("batches", "places")}

    def __init__(self, options, system, tokens, more=None):
        Child.__init__(self, options, system.command(options, tokens), on_output=True)
        self.more, self.tokens, self._hello = dict(more or {}), tokens, None
        self.send("hello")

    def line(self, do, fields):
        return " ".join([do, *(str(fields[word]) for word in self.WORDS.get(do, ()) if fields[word] is not None)])

    def take(self, batches, places=0):
        found = super().take(batches, places)
        found["places"] = [self.tokens.find(array.array("q", row)) for row in found.pop("rows")]
        return found

    def convert(self):
        return 0.0


def driver_of(options, python, system, tokens, more=None):
    """The Driver, or NativeDriver, of a system."""
    if hasattr(system, "command"):
        return NativeDriver(options, system, tokens, more)
    return Driver(options, python, system, tokens, more)


def ask_script(options, python, path, request, wait=WAIT, do="call"):
    """Runs a script of a table, whose main program is `driver.answer_requests(function)`, for one request (a dict), and
    returns the dict that its function(**request) returned. do: a word that the function gets, too."""
    with Child(options, [python, path]) as child:
        return child.ask(do, wait, **request)


# ---- the child's side ----


def answer_requests(function):
    """The main program of a script that ask_script() or Child starts: answers each request with function(**request),
    or with what it raised. Standard output is that of standard error; the last argument is the descriptor of the
    answers."""
    _die_with_parent()
    answers = int(sys.argv.pop())
    os.set_inheritable(answers, False)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if request.get("do") == "call":
            del request["do"]
        try:
            found = function(**request) or {}
        except (Absent, ImportError) as problem:
            found = {"absent": str(problem) if isinstance(problem, Absent) else f"it cannot be imported: {problem}"}
        except Exception as problem:
            traceback.print_exc()
            found = {"failed": f"{type(problem).__name__}: {' '.join(str(problem).split())[:300]}"}
        os.write(answers, json.dumps(found).encode() + b"\n")


def _die_with_parent():
    """Asks the kernel to end this process when its parent ends, whatever ended that."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        pass


class _Session:
    """What the child holds: the system and its open loader."""

    def __init__(self, name):
        self.name, self.loader, self.last = name, None, None

    def answer(self, do, **fields):
        return getattr(self, "do_" + do)(**fields)

    def do_hello(self, tokens, folder):
        self.tokens, self.folder = Tokens.from_json(tokens), folder
        begun = time.monotonic()
        self.system = importlib.import_module(f"systems.{self.name}")
        about = self.system.about()
        return {"about": about, "import_s": time.monotonic() - begun}

    def do_convert(self):
        begun = time.monotonic()
        if hasattr(self.system, "convert"):
            os.makedirs(self.folder, exist_ok=True)
            self.system.convert(self.tokens, self.folder)
        return {"seconds": time.monotonic() - begun}

    def do_open(self, order, rank, world, resume, options, seconds, most):
        self.do_close()
        state = pickle.loads(base64.b64decode(resume)) if resume is not None else None
        self.arguments = dict(options, order=order, rank=rank, world=world)
        begun = time.monotonic()
        self.loader = self.system.open(self.tokens, self.folder, resume=state, **self.arguments)
        opened = time.monotonic()
        inputs, targets = self.next()
        at = time.monotonic()
        turn = self.do_run(seconds, most) if most else {}
        sums = [] if most else measure.row_sums(inputs, targets, self.tokens.seq_len)
        return {"open_s": opened - begun, "first_s": at - opened, "at": at, "sums": sums, **turn}

    def next(self):
        """The next batch. At the end of an epoch the loader is opened again."""
        try:
            return self.loader.next()
        except StopIteration:
            pass
        self.epochs = getattr(self, "epochs", 0) + 1
        self.loader.close()
        self.loader = self.system.open(self.tokens, self.folder, **self.arguments)
        try:
            return self.loader.next()
        except StopIteration:
            raise RuntimeError("an epoch has no batch: the data is too short for it") from None

    def do_run(self, seconds, most):
        clock, times, tokens, batches = time.perf_counter_ns, array.array("q"), 0, 0
        self.epochs, cpu = 0, measure.own_cpu_seconds()
        begun = after = clock()
        end = begun + int(seconds * 1e9)
        while (after < end or not batches) and batches != (most or -1):
            before = clock()
            inputs, _ = self.next()
            after = clock()
            times.append(after - before)
            tokens += len(inputs)
            batches += 1
        cpu = measure.own_cpu_seconds() - cpu
        return {"tokens": tokens * self.tokens.seq_len, "batches": batches, "seconds": (after - begun) / 1e9,
                "cpu_s": cpu, "epochs": self.epochs, **measure.percentiles(times)}

    def do_take(self, batches, places):
        sums, found, shifted = [], [], 0
        for _ in range(batches):
            inputs, targets = self.next()
            for one, two in measure.rows_of(inputs, targets, self.tokens.seq_len):
                shifted += one[8:] != two[:-8]
                if len(found) < places:
                    stitched = getattr(self.system, "STITCHED", False)
                    found.append(self.tokens.find(array.array("q", one + two[-8:]), stitched))
            sums += measure.row_sums(inputs, targets, self.tokens.seq_len)
        return {"sums": sums, "places": found, "shifted": shifted}

    def do_state(self):
        begun = time.monotonic()
        state = self.loader.state()
        seconds = time.monotonic() - begun
        if state is None:
            return {"state": None, "bytes": 0, "seconds": seconds}
        pickled = pickle.dumps(state)
        return {"state": base64.b64encode(pickled).decode(), "bytes": len(pickled), "seconds": seconds}

    def do_close(self):
        if self.loader is not None:
            self.loader.close()
        self.loader = None


if __name__ == "__main__":
    # `driver` would otherwise be imported a second time by systems that need it, with other classes.
    sys.modules["driver"] = sys.modules["__main__"]
    answer_requests(_Session(sys.argv[1]).answer)
