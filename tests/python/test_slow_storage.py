# SPDX-License-Identifier: MIT
"""Reads that hang or are slow, on a real file system in user space (FUSE) that delays every read: a deadline is a
TimeoutError, the loader continues when the storage recovers, and io_threads read ahead. Skipped where FUSE cannot be
mounted."""
import os
import shutil
import subprocess
import sys
import time
import unittest

import tokmap
from tokmap.errors import class_of
from support import TOP, new_folder

FILE_SYSTEM = '''
import errno, os, sys, time
import fuse

class Slow(fuse.Operations):
    """The files of a folder. A read takes as many seconds as the file `delay` in the folder says, if it is a .bin."""
    def __init__(self, folder):
        self.folder = folder
    def path(self, path):
        return os.path.join(self.folder, path.lstrip("/"))
    def getattr(self, path, fh=None):
        try:
            found = os.lstat(self.path(path))
        except OSError as error:
            raise fuse.FuseOSError(error.errno)
        return {name: getattr(found, name) for name in ("st_mode", "st_size", "st_nlink", "st_uid", "st_gid", "st_mtime")}
    def readdir(self, path, fh):
        return [".", "..", *os.listdir(self.path(path))]
    def open(self, path, flags):
        return os.open(self.path(path), os.O_RDONLY)
    def read(self, path, size, offset, fh):
        if path.endswith(".bin"):
            with open(self.path("delay")) as file:
                time.sleep(float(file.read()))
        return os.pread(fh, size, offset)
    def release(self, path, fh):
        os.close(fh)

fuse.FUSE(Slow(sys.argv[1]), sys.argv[2], foreground=True, ro=True, direct_io=True)
'''


def fuse_is_missing():
    try:
        import fuse  # noqa: F401  (fusepy)
    except (ImportError, OSError) as error:
        return f"fusepy and libfuse 2 are needed: {error}"
    return None if os.access("/dev/fuse", os.R_OK | os.W_OK) else "/dev/fuse cannot be opened"


@unittest.skipIf(fuse_is_missing(), fuse_is_missing())
class SlowStorage(unittest.TestCase):
    def setUp(self):
        self.folder, self.mounted = new_folder(), new_folder()
        with open(os.path.join(self.folder, "text.jsonl"), "w", encoding="utf-8") as file:
            for i in range(2000):
                file.write('{"text": "document %d of many, with some words"}\n' % i)
        subprocess.run([os.path.join(TOP, "build", "bin", "tokmap"), "pack", "-q", "-o",
                        os.path.join(self.folder, "web"), os.path.join(self.folder, "text.jsonl")], check=True)
        self.delay(0)
        self.server = subprocess.Popen([sys.executable, "-c", FILE_SYSTEM, self.folder, self.mounted],
                                       stderr=subprocess.PIPE)
        until = time.monotonic() + 10
        while not os.path.ismount(self.mounted):
            if self.server.poll() is not None or time.monotonic() > until:
                self.server.kill()
                self.skipTest(f"FUSE cannot be mounted here: {self.server.stderr.read().decode()[-200:]}")
            time.sleep(0.02)
        self.addCleanup(self.unmount)
        # The index is read through a mapping, which this file system does not have. So only the tokens are on it.
        self.slow = os.path.join(new_folder(), "web")
        shutil.copy(os.path.join(self.folder, "web.tmx"), self.slow + ".tmx")
        os.symlink(os.path.join(self.mounted, "web.bin"), self.slow + ".bin")

    def unmount(self):
        self.delay(0)
        subprocess.run([shutil.which("fusermount") or "umount", *(["-uz"] if shutil.which("fusermount") else ["-l"]),
                        self.mounted])
        self.server.wait(20)
        self.server.stderr.close()

    def delay(self, seconds):
        with open(os.path.join(self.folder, "delay.new"), "w", encoding="utf-8") as file:
            file.write(str(seconds))
        os.replace(os.path.join(self.folder, "delay.new"), os.path.join(self.folder, "delay"))

    def test_a_deadline_is_an_error_and_the_loader_recovers(self):
        with tokmap.Run(data=self.slow, seq_len=64, batch=4, steps=40) as run, \
                tokmap.Run(data=os.path.join(self.folder, "web"), seq_len=64, batch=4, steps=40) as local:
            with run.loader(rank=0, world=1, framework="dlpack", deadline=0.2, threads=0) as loader, \
                    local.loader(rank=0, world=1, framework="dlpack") as expected:
                for _ in range(3):
                    self.assertEqual(next(loader).inputs.tolist(), next(expected).inputs.tolist())
                self.delay(3)
                start = time.monotonic()
                with self.assertRaises(class_of("ERROR_TIMEOUT")) as raised:
                    next(loader)
                self.assertLess(time.monotonic() - start, 2)
                self.assertEqual(raised.exception.status, "ERROR_TIMEOUT")
                self.assertTrue(raised.exception.path.endswith("web.bin"))
                self.assertIsInstance(raised.exception, TimeoutError)
                self.assertGreaterEqual(loader.stats().timeouts, 1)
                self.delay(0)
                until = time.monotonic() + 30
                while True:  # the reads that hang end after 3 s
                    try:
                        batch = next(loader)
                        break
                    except class_of("ERROR_TIMEOUT"):
                        self.assertLess(time.monotonic(), until)
                self.assertEqual(batch.inputs.tolist(), next(expected).inputs.tolist())

    def test_closing_does_not_wait_for_a_read_that_hangs(self):
        with tokmap.Run(data=self.slow, seq_len=64, batch=4, steps=40) as run:
            loader = run.loader(rank=0, world=1, framework="dlpack", deadline=0.1)
            self.delay(5)
            with self.assertRaises(class_of("ERROR_TIMEOUT")):
                for _ in loader:
                    pass
            start = time.monotonic()
            loader.close()
            self.assertLess(time.monotonic() - start, 2)
            self.delay(0)

    def test_io_threads_read_ahead_where_storage_is_slow(self):
        self.delay(0.01)
        with tokmap.Run(data=self.slow, seq_len=64, batch=8, steps=20) as run, \
                tokmap.Run(data=os.path.join(self.folder, "web"), seq_len=64, batch=8, steps=20) as local:
            expected = [batch.inputs.tolist() for batch in local.loader(rank=0, world=1, framework="dlpack")]
            with run.loader(rank=0, world=1, framework="dlpack", io_threads=8, threads=0) as loader:
                self.assertGreaterEqual(loader.stats().probe_ns, 10 ** 6)
                self.assertEqual([batch.inputs.tolist() for batch in loader], expected)
                stats = loader.stats()
                self.assertEqual(stats.io_threads, 8)
                self.assertGreater(stats.io_reads, 100)
            with local.loader(rank=0, world=1, framework="dlpack", io_threads=8, threads=0) as loader:
                self.assertEqual(loader.stats().io_threads, 0)  # the page cache is not slow


if __name__ == "__main__":
    unittest.main()
