"""rounds.py: what a round of an attack gets, and how it runs programs."""
import os, random, subprocess, time

TOKMAP = os.environ.get("TOKMAP", "tokmap")
BUILD_DIR = os.environ.get("BUILD_DIR", "build")
TOP = os.environ.get("TOP", os.getcwd())


class Wrong(Exception):
    """tokmap did something wrong."""


class Skip(Exception):
    """The attack cannot run on this machine or with this build."""


class Round:
    """A round: its seed, a folder of its own, and the time at which its attack ends."""

    def __init__(self, seed, folder, end):
        self.seed, self.folder, self.end = seed, folder, end
        self.random = random.Random(seed)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def seconds_left(self):
        return max(0.0, self.end - time.monotonic())

    def run(self, *words, statuses=(0, 1), limit=120, standard_input=b"", environment=None):
        """Runs a program in the round's folder, which must end with one of the statuses (None: with any, but not by a
        signal). Returns its status, output, and messages."""
        try:
            ran = subprocess.run(words, cwd=self.folder, input=standard_input, capture_output=True, timeout=limit,
                                 env={**os.environ, "TMPDIR": self.folder, **(environment or {})})
        except subprocess.TimeoutExpired:
            raise Wrong(f"{words}: it did not end within {limit} s") from None
        if ran.returncode < 0 or (statuses is not None and ran.returncode not in statuses):
            raise Wrong(f"{words}: exit status {ran.returncode}: {ran.stderr[-1500:].decode(errors='replace')}")
        return ran.returncode, ran.stdout, ran.stderr

    def tokmap(self, *words, **options):
        return self.run(TOKMAP, *words, **options)
