# SPDX-License-Identifier: MIT
"""tokmap.pack() in a process that ends in the middle of the documents: it is killed, or calls os._exit(), or its main
thread ends. No shard gets the name, whether the process writes it or feeds the command, and the next call packs all
documents."""
import errno
import os
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

import tokmap
from support import new_folder
from test_tokenizer import small

# The documents, and how they are packed: here and in the program.
DOCUMENTS = """
def documents(kind, happen=lambda i: None):
    for i in range(3000):  # more than a frame of the feed
        happen(i)
        talk = [{"role": "user", "content": f"ab {i}"}, {"role": "assistant", "content": "cd" * (i % 5)}]
        yield {"text": f"ab {i} cd", "ids": {"ids": [i % 8, 1, 2]}, "talk": {"talk": talk}}[kind]

KINDS = {"text": {}, "ids": {"ids_field": "ids"}, "talk": {"messages_field": "talk", "chat_template": "chatml"}}
"""
exec(DOCUMENTS)  # pylint: disable=exec-used

# Packs them; before document 2000 something happens. The command that it starts has the same standard error, which so
# ends when both have ended. Its standard input, which a child waits for, is open as long as the test wants.
PROGRAM = DOCUMENTS + """
import os, signal, sys, threading
import tokmap

path, out, kind, ends = sys.argv[1:]
tokenizer = tokmap.Tokenizer(path)
children = []

def child():
    children.append(os.fork())
    return children[-1] == 0

def leave_child():  # it holds the pipe until the test ends, and nothing else that the test waits for
    if child():
        os.close(1)
        os.close(2)
        os.read(0, 1)
        os._exit(0)

def happen(i):
    if i != 2000:
        return
    if ends == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if ends == "exit":
        os._exit(9)
    if ends == "pipe":
        raise BrokenPipeError("of the source")
    if ends.startswith("error"):
        raise KeyError("of the source")
    if ends.startswith("leave"):
        leave_child()
    if ends == "leave and kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if ends == "child leaves" and child():
        sys.exit(0)  # Python writes its buffers
    if ends == "child continues":
        child()
    if ends == "thread":
        arrived.set()
        threading.Event().wait()

def work():
    made = tokmap.pack(documents(kind, happen), out, tokenizer=tokenizer, eod=False, progress=True, **KINDS[kind])
    print(made.content)

for number in {"error without SIGINT": [signal.SIGINT],
               "error without signals": [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]}.get(ends, []):
    signal.signal(number, signal.SIG_IGN)  # as a shell starts a program in the background
if ends == "error with blocked signals":
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
arrived = threading.Event()
try:
    if ends == "thread":
        threading.Thread(target=work, daemon=True).start()
        arrived.wait()
        sys.exit(0)
    work()
except tokmap.ArgumentError as problem:
    print("refused" if "was forked" in str(problem) else problem)
    sys.exit(0)
if ends.startswith("child"):
    os.waitpid(children[0], 0)
"""


class Killed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        cls.tokenizer = small(cls.folder, "talk.json", [{"id": 11, "content": "<|im_start|>", **flags},
                                                        {"id": 12, "content": "<|im_end|>", **flags}])
        cls.whole = {kind: cls.packed(new_folder(), kind) for kind in KINDS}

    @classmethod
    def packed(cls, folder, kind):
        """What the program says if nothing happens."""
        made = tokmap.pack(documents(kind), os.path.join(folder, "made"), tokenizer=cls.tokenizer, eod=False,
                           progress=False, **KINDS[kind])
        assert made.documents == 3000, made
        return made.content + "\n"

    @classmethod
    def ran(cls, folder, kind, ends, status=0):
        """What the program says, when it and its command have ended. A child that it leaves has not ended yet."""
        with subprocess.Popen([sys.executable, "-c", PROGRAM, cls.tokenizer, os.path.join(folder, "made"), kind, ends],
                              text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            errors = process.stderr.read()
            said = process.stdout.read()
        if process.returncode != status:
            raise AssertionError(f"exit status {process.returncode}, not {status}\n{said}\n{errors}")
        return said, errors

    def cut_off(self, kind, ends, status, removed=True):
        """The program ends early: nothing has the name, and the next call works. Returns its errors."""
        folder = new_folder()
        _, errors = self.ran(folder, kind, ends, status)
        left = os.listdir(folder)
        self.assertEqual([name for name in left if removed or not name.endswith(".partial")], [])
        self.assertRaises(tokmap.TokmapError, tokmap.Dataset, os.path.join(folder, "made"))
        self.assertEqual(self.packed(folder, kind), self.whole[kind])
        self.assertEqual([name for name in os.listdir(folder) if name.endswith(".partial")], [])
        return errors

    def test_killed(self):
        """The command removes its files."""
        for kind in self.whole:
            for ends, status in (("kill", -signal.SIGKILL), ("exit", 9)):
                with self.subTest(kind=kind, ends=ends):
                    errors = self.cut_off(kind, ends, status)
                    self.assertIn("program that writes the documents ended before it had written all", errors)

    def test_a_command_that_is_killed(self):
        """The error names the signal, and that memory may have been short. Nothing of this call stays, and nothing of
        others goes."""
        module, started = sys.modules["tokmap.pack"], []

        def start(into, *arguments, **options):
            begun(into, *arguments, **options)
            started.append(into[0].pid)
            if at is None:
                os.kill(into[0].pid, signal.SIGKILL)

        def happen(i):
            if i == at:
                while not any(name.endswith(".partial") for name in os.listdir(folder) if name.startswith("made.")):
                    time.sleep(0.01)
                os.kill(started[-1], number)
        begun = module._start
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
            folder, at = new_folder(), 2000
            others = [os.path.join(folder, name) for name in ("made.old.bin.partial", "mode.bin.partial")]
            for path in others:
                with open(path, "wb"):
                    os.utime(path, (1, 1))
            with mock.patch.object(module, "_start", start), self.assertRaises(InterruptedError) as caught:
                tokmap.pack(documents("text", happen), os.path.join(folder, "made"), eod=False, progress=False)
            self.assertIsInstance(caught.exception, tokmap.TokmapError)
            self.assertNotIsInstance(caught.exception, tokmap.InputError)
            self.assertEqual(caught.exception.status, "ERROR_INTERRUPTED")
            self.assertRegex(str(caught.exception), f"killed by {number.name}, .*memory was short.*output has been removed")
            self.assertEqual(sorted(os.listdir(folder)), ["made.old.bin.partial", "mode.bin.partial"])
            made = tokmap.pack(documents("text"), os.path.join(folder, "made"), eod=False, progress=False)
            self.assertEqual(made.documents, 3000)
        at, path = None, os.path.join(folder, "in.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("text")
        with mock.patch.object(module, "_start", start), self.assertRaisesRegex(InterruptedError, "killed by SIGKILL"):
            tokmap.pack(path, os.path.join(folder, "files"), progress=False)
        with mock.patch.object(module, "_start", start), self.assertRaisesRegex(InterruptedError, "the same call continues"):
            os.mkdir(os.path.join(folder, "files.work"))
            tokmap.pack(path, os.path.join(folder, "files"), progress=False)

    def test_failures_of_the_system(self):
        """They have the class of what failed, whatever was packed."""
        failure = sys.modules["tokmap.pack"]._failure
        for number, kind in ((errno.ENOSPC, tokmap.IoError), (errno.EDQUOT, tokmap.IoError),
                             (errno.EIO, tokmap.IoError), (errno.ENOMEM, MemoryError)):
            said = f"tokmap pack: warning: w\ntokmap pack: made.bin.partial: the tokens cannot be written: {os.strerror(number)}"
            made = failure(1, said + "\ntokmap pack: the work so far is kept", "made", 0, [], None)
            self.assertIsInstance(made, kind)
            self.assertEqual(made.system, number)
        self.assertIsInstance(failure(1, "tokmap pack: in.jsonl: record 1 has no field 'text'", "made", 0, [], None),
                              tokmap.InputError)

    def test_a_thread_that_ends_with_the_process(self):
        for kind in self.whole:
            self.cut_off(kind, "thread", 0)

    def test_errors_of_the_source(self):
        """Also one that looks as if the command had ended."""
        for kind in self.whole:
            for ends in ("error", "pipe"):
                self.assertIn("of the source", self.cut_off(kind, ends, 1))
        for ends in ("error without SIGINT", "error with blocked signals", "error without signals"):
            self.assertIn("of the source", self.cut_off("talk", ends, 1, removed=ends != "error without signals"))

    def test_a_child_that_holds_the_pipe(self):
        """The command does not wait until it closes it, whether the parent ends its documents or is killed."""
        self.assertEqual(self.ran(new_folder(), "talk", "leave")[0], self.whole["talk"])
        self.assertIn("ended before", self.cut_off("talk", "leave and kill", -signal.SIGKILL))

    def test_a_child_that_leaves_the_source(self):
        """It neither ends the command nor writes what its parent writes."""
        for kind in self.whole:
            self.assertEqual(self.ran(new_folder(), kind, "child leaves")[0], self.whole[kind])

    def test_a_child_that_continues(self):
        """Its documents would be there twice."""
        said, _ = self.ran(new_folder(), "talk", "child continues")
        self.assertEqual(sorted(said.splitlines()), sorted([*self.whole["talk"].splitlines(), "refused"]))


if __name__ == "__main__":
    unittest.main()
