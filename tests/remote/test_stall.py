# SPDX-License-Identifier: MIT
"""Storage that accepts requests and then stalls. The error comes well before the ten minutes after which a collective
gives up, whoever else waits for the same object, and names the attempts and seconds that were made. The clock of the
commands runs forty times as fast (tests/fault/fast_clock.c)."""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

from object_server import ObjectServer

TOKMAP = os.path.join(os.environ["BUILD_DIR"], "bin", "tokmap")
TIMES = 40
EARLY, LATE = 270, 570  # seconds: a request gives up after 300, and every error must be there before 600
READER = """
import sys, threading, tokmap
def read(dataset, errors):
    try:
        dataset.tokens(0, 100)
    except tokmap.TokmapError as error:
        errors.append(str(error))
dataset, errors = tokmap.Dataset(sys.argv[1]), []
print("open", flush=True)
sys.stdin.readline()
threads = [threading.Thread(target=read, args=(dataset, errors)) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(f"{len(errors)} errors", *errors, sep="\\n")
"""


class Scenario(unittest.TestCase):
    def setUp(self):
        base = tempfile.TemporaryDirectory(prefix="a stall ", dir=os.environ.get("TMPDIR"))
        self.addCleanup(base.cleanup)
        self.base = base.name
        self.top = os.path.join(self.base, "top")
        os.makedirs(os.path.join(self.top, "bucket"))
        text = os.path.join(self.base, "text.txt")
        with open(text, "w", encoding="ascii") as file:
            file.write("some words " * 400000)
        subprocess.run([TOKMAP, "pack", "-q", "-o", os.path.join(self.top, "bucket", "web"), text], check=True)
        self.server = ObjectServer(self.top)
        self.addCleanup(self.server.stop)
        self.environment = {**os.environ, **self.server.environment, "FAST_CLOCK": str(TIMES),
                            "LD_PRELOAD": os.path.join(os.environ["BUILD_DIR"], "tests", "fast_clock.so"),
                            "TOKMAP_CACHE": os.path.join(self.base, "cache")}

    def start(self, *command):
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.environment, text=True)

    def end(self, process, begun, status=1):
        """Waits for a process. Returns what it has said, and after how many seconds of its clock."""
        out, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, status, said)
        return out + said, (time.monotonic() - begun) * TIMES

    def stalled(self):
        return self.server.counts()["begun stall"]

    def check_message(self, said, attempts):
        found = re.search(r"this was attempt (\d+) in (\d+) s", said)
        self.assertTrue(found, said)
        self.assertEqual(int(found[1]), attempts, said)
        self.assertTrue(EARLY <= int(found[2]) < LATE, said)

    def scenario_opening(self):
        """The attempts are those that the server has seen; a manifest of the same name gets no patience of its own."""
        for fault in "stall", "dribble":
            self.server.set(rules=[{"path": "", "fault": fault}])
            before = self.server.counts()["begun " + fault]
            begun = time.monotonic()
            said, seconds = self.end(self.start(TOKMAP, "info", "s3://bucket/web"), begun)
            seen = self.server.counts()["begun " + fault] - before
            self.check_message(said, seen - 1)  # the last one was for the manifest
            self.assertIn("s3://bucket/web.tmx", said)
            self.assertLess(seconds, LATE)

    def scenario_opening_at_once(self):
        """Processes that wait for the one that fetches the index."""
        self.server.set(rules=[{"path": "", "fault": "stall"}])
        begun = time.monotonic()
        processes = [self.start(TOKMAP, "info", "s3://bucket/web") for _ in range(6)]
        for process in processes:
            self.assertLess(self.end(process, begun)[1], LATE)

    def scenario_reading(self):
        """Threads of processes that need the same block, of which some repeat each other's requests."""
        processes = [self.start(sys.executable, "-c", READER, "s3://bucket/web") for _ in range(2)]
        for process in processes:
            self.assertEqual(process.stdout.readline(), "open\n")
        self.server.set(rules=[{"path": r"\.bin", "fault": "stall"}])
        begun = time.monotonic()
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        for process in processes:
            said, seconds = self.end(process, begun, 0)
            self.assertIn("6 errors\n", said)
            self.assertLess(seconds, LATE)

    def scenario_body(self):
        """A body that breaks off again and again is read again from its beginning, and makes no progress."""
        self.server.set(rules=[{"path": r"\.bin", "fault": "cut"}])
        said, _ = self.end(self.start(TOKMAP, "verify", "-q", "s3://bucket/web"), time.monotonic())
        self.assertRegex(said, r"attempt 8 in \d+ s")

    def scenario_stream(self):
        """An input of `pack` of which most has arrived: the seconds are those without a byte."""
        self.server.set(rules=[{"path": "text", "fault": "half", "times": 1}, {"path": "text", "fault": "stall"}])
        os.rename(os.path.join(self.base, "text.txt"), os.path.join(self.top, "bucket", "text.txt"))
        begun = time.monotonic()
        said, seconds = self.end(self.start(TOKMAP, "pack", "-q", "-o", os.path.join(self.base, "new"),
                                            "s3://bucket/text.txt"), begun)
        self.check_message(said, 1 + self.stalled())
        self.assertLess(seconds, LATE)

    def scenario_writing(self):
        self.server.set(rules=[{"path": "", "method": "PUT|POST", "fault": "stall"}])
        begun = time.monotonic()
        said, seconds = self.end(self.start(TOKMAP, "copy", "-q", os.path.join(self.top, "bucket", "web"),
                                            "s3://bucket/other/"), begun)
        self.check_message(said, self.stalled())
        self.assertLess(seconds, LATE)

    def scenario_more_attempts(self):
        """With AWS_MAX_ATTEMPTS, only that number counts."""
        self.environment["AWS_MAX_ATTEMPTS"] = "6"
        self.server.set(rules=[{"path": "tmx", "fault": "stall"}])
        said, _ = self.end(self.start(TOKMAP, "info", "s3://bucket/web"), time.monotonic())
        self.assertRegex(said, r"attempt 6 in (3[6-9]|4[0-4])\d s")


class Stall(unittest.TestCase):
    def test_all(self):
        """Runs all scenarios at once, since they only wait."""
        names = [name for name in dir(Scenario) if name.startswith("scenario_")]
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            for running in [pool.submit(Scenario(name).debug) for name in names]:
                running.result()


if __name__ == "__main__":
    unittest.main()
