# SPDX-License-Identifier: MIT
"""rounds.py: what a round of an attack gets, and how it runs programs."""
import os, random, signal, subprocess, time

TOKMAP = os.environ.get("TOKMAP", "tokmap")
BUILD_DIR = os.environ.get("BUILD_DIR", "build")
TOP = os.environ.get("TOP", os.getcwd())
SANITIZED = bool(os.environ.get("SANITIZE"))
# Real vocabularies: named by the user, or unpacked by the unit tests that use them.
DATA = os.environ.get("TOKMAP_DATA") or os.path.join(BUILD_DIR, "reference_data")


class Wrong(Exception):
    """tokmap did something wrong."""


class Skip(Exception):
    """The attack cannot run on this machine or with this build."""


class Ended(Exception):
    """The time is over before the round is; it counts as nothing."""


class Round:
    """A round: its seed, a folder of its own, and when to end.

    end:    rounds that run for a time, not for a number of things, end here
    limit:  programs that still run now are ended, and the round raises Ended; None: there is no limit
    counts: what the round has done, by name, for the report
    """

    def __init__(self, seed, folder, end=None, limit=None):
        self.seed, self.folder, self.limit = seed, folder, limit
        self.end = time.monotonic() + 10 if end is None else end
        self.random = random.Random(seed)
        self.counts = {}

    def count(self, what, number=1):
        self.counts[what] = self.counts.get(what, 0) + number

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def read(self, name):
        """The content of a file of the round, or None if there is no such file."""
        try:
            with open(self.path(name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def seconds_left(self):
        return max(0.0, self.end - time.monotonic())

    def check_time(self):
        if self.limit is not None and time.monotonic() >= self.limit:
            raise Ended

    def run(self, *words, statuses=(0, 1), limit=120, standard_input=b"", environment=None, folder=None):
        """Runs a program in the round's folder, which must end with one of the statuses (None: with any, but not by a
        signal). Returns its status, output, and messages."""
        status, out, said, _ = self.measured(*words, statuses=statuses, limit=limit, standard_input=standard_input,
                                             environment=environment, folder=folder)
        return status, out, said

    def measured(self, *words, statuses=(0, 1), limit=120, standard_input=b"", environment=None, folder=None):
        """Like run(), but returns also the seconds of processor time that the program took."""
        self.check_time()
        now = time.monotonic()
        until = now + limit if self.limit is None else min(now + limit, self.limit)
        with open(self.path(".out"), "w+b") as out, open(self.path(".said"), "w+b") as said, \
                open(self.path(".in"), "w+b") as given:
            given.write(standard_input)
            given.seek(0)
            process = subprocess.Popen(words, cwd=folder or self.folder, stdin=given, stdout=out, stderr=said,
                                       start_new_session=True,
                                       env={**os.environ, "TMPDIR": self.folder, **(environment or {})})
            wait, status, used = 0.0005, None, None
            try:
                while True:
                    pid, status, used = os.wait4(process.pid, os.WNOHANG)
                    if pid:
                        break
                    if time.monotonic() >= until:
                        os.killpg(process.pid, signal.SIGKILL)
                        os.wait4(process.pid, 0)
                        process.returncode = -signal.SIGKILL
                        self.check_time()
                        raise Wrong(f"{words}: it did not end within {limit} s")
                    time.sleep(wait)
                    wait = min(0.02, wait * 1.5)
            except BaseException:
                if process.returncode is None and status is None:
                    os.killpg(process.pid, signal.SIGKILL)
                raise
            code = process.returncode = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            out.seek(0)
            said.seek(0)
            printed, messages = out.read(), said.read()
        self.count("commands")
        if code < 0 or (statuses is not None and code not in statuses):
            raise Wrong(f"{words}: exit status {code}: {messages[-1500:].decode(errors='replace')}")
        return code, printed, messages, used.ru_utime + used.ru_stime

    def tokmap(self, *words, **options):
        return self.run(TOKMAP, *words, **options)

    def script(self, *words, limit=900, **environment):
        """Runs a script of tests/ in the project's folder. It says what is wrong by TAP lines or by its status."""
        status, out, said = self.run(*words, statuses=None, limit=limit, environment=environment, folder=TOP)
        lines = out.decode(errors="replace").splitlines()
        if status == 77 or (len(lines) == 1 and lines[0].startswith("1..0")):
            raise Skip(lines[-1].replace("1..0 # SKIP ", "") if lines else "no reason given")
        wrong = [line for line in lines if line.startswith("not ok")]
        passed = sum(line.startswith("ok") and "# SKIP" not in line for line in lines)
        self.count("checks", passed)
        if status or wrong:
            raise Wrong(f"{' '.join(words)} with {environment}: exit status {status}\n" + "\n".join(wrong + lines[-20:]) +
                        said[-1500:].decode(errors="replace"))
        if not passed:
            raise Skip("it skipped all of its checks" + (": " + lines[-1] if lines else ""))
        return lines
