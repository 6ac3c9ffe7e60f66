# SPDX-License-Identifier: MIT
"""Signals while a loader is in use. Ctrl-C loses no batch, and a handler that calls the loader gets an answer or an
error, but never waits forever. The signals are real. They are raised right after a call of the library, so their
handlers run before the next line of Python."""
import os
import signal
import subprocess
import sys
import unittest

from support import WithData, python

# The programs begin with this. around(name, before, after) calls before() and after() around every call of a function
# of the library.
HEAD = """
import faulthandler, signal, sys
faulthandler.dump_traceback_later(120, exit=True)  # shows where a program hangs
import tokmap
from tokmap import _library
run = tokmap.Run(data=sys.argv[1], seq_len=48, batch=6, seed=3, passes=2)
rows = [b.inputs.tolist() for b, _ in zip(run.loader(framework="dlpack"), range(20))]

def nothing(*_):
    pass

def around(name, before=nothing, after=nothing):
    function = getattr(_library.lib, name)
    def call(*arguments):
        before()
        found = function(*arguments)
        after()
        return found
    setattr(_library.lib, name, call)

def refused(function, *arguments):
    try:
        function(*arguments)
    except tokmap.ArgumentError as problem:
        assert "signal handler" in str(problem), problem
        return True
    return False
"""


class Interrupts(WithData):
    def hanging_storage(self):
        """A library that, when it is preloaded, blocks reads of files as long as the file $HANG exists."""
        source, library = os.path.join(self.folder, "hang.c"), os.path.join(self.folder, "hang.so")
        with open(source, "w", encoding="utf-8") as file:
            file.write("""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>
static int hangs(void) { return access(getenv("HANG"), F_OK) == 0; }
ssize_t pread64(int fd, void *to, size_t bytes, off64_t at)
{
    static ssize_t (*next)(int, void *, size_t, off64_t);
    if (!next)
        next = (ssize_t (*)(int, void *, size_t, off64_t))dlsym(RTLD_NEXT, "pread64");
    while (hangs())
        usleep(1000);
    return next(fd, to, bytes, at);
}
ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags)
{
    static ssize_t (*next)(int, const struct iovec *, int, off64_t, int);
    if (!next)
        next = (ssize_t (*)(int, const struct iovec *, int, off64_t, int))dlsym(RTLD_NEXT, "preadv64v2");
    if (!hangs())
        return next(fd, parts, count, at, flags);
    errno = EAGAIN;
    return -1;
}
""")
        if subprocess.run(["sh", "-c", f"${{CC:-cc}} -shared -fPIC -o '{library}' '{source}' -ldl"]).returncode:
            self.skipTest("no C compiler")
        return library

    def test_ctrl_c_while_the_storage_hangs(self):
        """The producer's read does not return, so there is no batch. Ctrl-C ends the wait, and no batch is lost."""
        code = """
import os, sys, threading, time
import tokmap
run = tokmap.Run(data=sys.argv[1], seq_len=48, batch=6, seed=3, reading="pread")
rows = [b.inputs.tolist() for b, _ in zip(run.loader(framework="dlpack", ring_bytes=40000), range(60))]
loader = run.loader(framework="dlpack", ring_bytes=40000)
first = loader.next()
open(os.environ["HANG"], "w").close()

def report_when_it_waits():
    before = None
    while loader.stats().ring_ready or loader.stats().batches != before:
        before = loader.stats().batches
        time.sleep(0.3)
    print("waiting", flush=True)

threading.Thread(target=report_when_it_waits, daemon=True).start()
step = 0
try:
    while step < 50:
        step = loader.next().step
except KeyboardInterrupt:
    print("interrupted", flush=True)
os.remove(os.environ["HANG"])
while step < 50:
    batch = loader.next()
    assert batch.step == step + 1 and batch.inputs.tolist() == rows[batch.step]
    step = batch.step
print(loader.stats().waits > 0)
"""
        hang = os.path.join(self.folder, "hang")
        # Spaces separate the paths in LD_PRELOAD, so the library is named relative to the current folder.
        preload = "./" + os.path.basename(self.hanging_storage())
        worker = subprocess.Popen([sys.executable, "-c", code, self.prefix], stdout=subprocess.PIPE, text=True,
                                  cwd=self.folder, env={**os.environ, "LD_PRELOAD": preload, "HANG": hang})
        self.assertEqual(worker.stdout.readline(), "waiting\n")
        worker.send_signal(signal.SIGINT)
        self.assertEqual(worker.communicate(timeout=60)[0], "interrupted\nTrue\n")
        self.assertEqual(worker.returncode, 0)

    def test_ctrl_c_ends_the_wait_for_a_server(self):
        """Opening what is on a server that says nothing."""
        said = python("""
import os, signal, socket, sys, threading, time
import tokmap
server, held = socket.create_server(("127.0.0.1", 0)), []
name = f"http://127.0.0.1:{server.getsockname()[1]}/%s"
os.environ["TOKMAP_CACHE"] = sys.argv[1] + "/cache"
path = sys.argv[1] + "/remote.run"
with open(path, "w") as file:
    file.write(f"seq_len 8\\nbatch 1\\nsource c {name % 'c'}\\n")

def interrupt():
    held.append(server.accept())
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)

for opened in (lambda: tokmap.Dataset(name % "a"), lambda: tokmap.Run(data=name % "b", seq_len=8),
               lambda: tokmap.Run(path)):
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        opened()
    except KeyboardInterrupt:
        print("interrupted")
    except tokmap.TokmapError as problem:
        print(problem.status)
""", self.folder)
        if "ERROR_UNSUPPORTED" in said:
            self.skipTest("no libcurl, or a file system without holes")
        self.assertEqual(said, 3 * "interrupted\n")

    def test_a_handler_asks_for_the_state(self):
        """A handler interrupts every call. It may read the state, but not close or replace the loader that the call
        uses."""
        said = python(HEAD + """
loader = run.loader(framework="dlpack")
seven = run.loader(framework="dlpack", resume=run.cursor(7)).state_dict()
states, answers = [], set()
ending = (loader.close,), (loader.load_state_dict, seven), (run.close,)
asked = (loader.next,), *ending

def handler(*_):
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # the calls below would raise the signal again
    states.append(loader.state_dict()["step"])
    loader.stats()
    answers.add(tuple(refused(*one) for one in asked))
    signal.signal(signal.SIGUSR1, handler)

signal.signal(signal.SIGUSR1, handler)
for name in ("tokmap_loader_wait", "tokmap_loader_next", "tokmap_loader_stats", "tokmap_loader_open"):
    around(name, after=lambda: signal.raise_signal(signal.SIGUSR1))
for step in range(10):
    # Until next() has returned, the state is the state after the previous batch.
    batch = loader.next()
    assert batch.step == step and batch.inputs.tolist() == rows[step]
    assert len(states) >= 2 and set(states) == {step}, (step, states)
    assert loader.state_dict()["step"] == step + 1
    del states[:]
loader.load_state_dict(seven)
assert states == [10] and loader.state_dict() == seven, states
assert loader.next().step == 7
print(answers)
answers.clear()
asked = ending
assert loader.stats().batches == 1
print(answers)
""", self.prefix)
        self.assertEqual(said, "{(True, True, True, True)}\n{(True, True, True)}\n")

    def test_a_handler_during_a_dataset_s_read(self):
        said = python(HEAD + """
dataset, answers = run.dataset(framework="dlpack"), []

def handler(*_):
    answers.append((refused(dataset.__getitems__, [1, 2]), refused(dataset.close)))

signal.signal(signal.SIGUSR1, handler)
around("tokmap_loader_read", before=lambda: signal.raise_signal(signal.SIGUSR1))
assert tokmap.collate(dataset.__getitems__(range(6))).inputs.tolist() == rows[0]
print(answers)
""", self.prefix)
        self.assertEqual(said, "[(True, True)]\n")

    def test_ctrl_c_after_the_library_s_call(self):
        """Ctrl-C arrives after the library has delivered and before Python has stored the batch: the next call returns
        it."""
        said = python(HEAD + """
interrupts = 0

def interrupt():
    global interrupts
    if armed:
        interrupts += 1
        signal.raise_signal(signal.SIGINT)

armed = False
around("tokmap_loader_next", after=interrupt)
for threads in (0, 1):
    for given in (False, True):
        loader = run.loader(framework="dlpack", threads=threads)
        out = {"out": loader.out()} if given else {}
        for step in range(20):
            armed = step % 3 == 1
            try:
                batch = loader.next(**out)
                assert not armed
            except KeyboardInterrupt:
                assert armed
                state = loader.state_dict()
                assert state["step"] == step
                if step % 2:  # the program resumes from the state
                    loader.load_state_dict(state)
                    armed = False
                else:         # the program continues with the loader
                    try:
                        loader.next(**({} if given else {"out": loader.out()}))
                        raise SystemExit("the call accepted other outputs")
                    except tokmap.ArgumentError as problem:
                        assert "interrupted" in str(problem)
                batch = loader.next(**out)
            assert batch.step == step and batch.inputs.tolist() == rows[step], (step, batch)
            assert not given or batch.inputs is out["out"]["inputs"]
            assert loader.state_dict()["step"] == step + 1
        loader.close()
print(interrupts)
""", self.prefix)
        self.assertEqual(said, "28\n")


if __name__ == "__main__":
    unittest.main()
