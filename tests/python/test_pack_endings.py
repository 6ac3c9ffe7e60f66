# SPDX-License-Identifier: MIT
"""tokmap.pack(): what Ctrl-C leaves, what a terminal shows, labels as masks, and templates of transformers against
those of the command."""
import os
import json
import pathlib
import pty
import signal
import subprocess
import sys
import unittest
from unittest import mock

import tokmap
from support import needs, new_folder
from test_handles import BY_CALLS, At
from test_pack import SHARED, Stream

PACKS = """
import sys, time, tokmap

def documents():
    for group in range(4):
        yield from ["some words "] * (8192 if group else 100000)
        time.sleep(0.12)

try:
    tokmap.pack(eval(sys.argv[2]), sys.argv[1], **eval(sys.argv[3]))
except KeyboardInterrupt:
    print("interrupted")
"""


class Endings(unittest.TestCase):
    def setUp(self):
        self.folder = new_folder()

    def at(self, name):
        return os.path.join(self.folder, name)

    def process(self, source, options, **more):
        return subprocess.Popen([sys.executable, "-c", PACKS, self.at("made"), source, options], text=True,
                                stdout=subprocess.PIPE, **more)

    # ---- Ctrl-C ----

    @BY_CALLS
    def test_ctrl_c_while_arrow_is_packed(self):
        """Wherever it arrives, no file is left, and everything that the stream gave is released."""
        k = 0
        while True:
            k += 1
            stream = Stream([["ab", "cd"], ["e"]], -1)
            try:
                with At(k, lambda _: os.kill(os.getpid(), signal.SIGINT)) as place:
                    tokmap.pack(stream, self.at("made"), progress=False)
            except KeyboardInterrupt:
                self.assertIn(sorted(os.listdir(self.folder)), ([], ["made.bin", "made.tmx"]), k)
                self.assertEqual(stream.released["array"], stream.at, k)
            for name in os.listdir(self.folder):
                os.remove(self.at(name))
            if place.seen < k:
                break
        self.assertGreater(k, 200)

    @BY_CALLS
    def test_ctrl_c_anywhere_around_the_command(self):
        """Wherever it arrives, the command has ended, and leaves all of its files or none. The first places are those
        in the call that starts the process, before and after it has started."""
        text = self.at("text")
        with open(text, "w", encoding="ascii") as file:
            file.write("some words\n")
        out = os.path.join(self.folder, "out", "made")
        os.mkdir(os.path.dirname(out))

        def interrupt(_=None):
            os.kill(os.getpid(), signal.SIGINT)

        started = []

        class Started(subprocess.Popen):
            def __init__(self, *arguments, **options):
                if k < 0:
                    interrupt()
                super().__init__(*arguments, **options)
                started.append(self)
                if k <= 0:
                    interrupt()

        k = -2
        while True:
            k += 1
            started.clear()
            try:
                with At(k, interrupt) as place, mock.patch("subprocess.Popen", Started):
                    tokmap.pack(text, out, progress=False, input_format="text")
            except KeyboardInterrupt:
                self.assertIn(sorted(os.listdir(os.path.dirname(out))), ([], ["made.bin", "made.tmx"]), k)
                self.assertNotIn(None, [process.returncode for process in started], k)
                self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)
            for name in os.listdir(os.path.dirname(out)):
                os.remove(os.path.join(os.path.dirname(out), name))
            if 0 < k and place.seen < k:
                break
        self.assertGreater(k, 50)

    def test_ctrl_c_while_files_are_packed(self):
        """The command that packs them stops, too, whether the signal reaches only Python, or both as from a terminal."""
        for whole in (False, True):
            fifo = self.at("fifo")
            os.mkfifo(fifo)
            packing = self.process(repr(fifo), "dict(progress=False, input_format='text')", start_new_session=True)
            with open(fifo, "w", encoding="ascii") as writer:
                writer.write("some words " * 20000)
                writer.flush()
                (os.killpg if whole else os.kill)(packing.pid, signal.SIGINT)
                self.assertEqual(packing.communicate(timeout=60)[0], "interrupted\n")
            os.remove(fifo)
            self.assertEqual(os.listdir(self.folder), [])

    # ---- the terminal ----

    def on_terminal(self, options, columns=80):
        """What packing writes to a terminal."""
        import fcntl
        import struct
        import termios
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            self.skipTest(f"no pseudo-terminals on this machine: {error}")
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        packing = self.process("documents()", options, stderr=theirs)
        os.close(theirs)
        shown = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            shown += more
        os.close(ours)
        self.assertEqual(packing.communicate()[0], "")
        self.assertEqual(packing.returncode, 0)
        return shown.decode().replace("\r\n", "\n")

    def test_a_terminal(self):
        """The command redraws one line in place, which fits the terminal, and clears it in the end."""
        for columns in (80, 30):
            lines = self.on_terminal("dict(force=True)", columns).split("\r")
            self.assertEqual((lines[0], lines[-1]), ("", "\x1b[K"))
            self.assertGreater(len(lines), 4)
            for line in lines[1:-1]:
                self.assertRegex(line, r"^packing  [0-9.]+ [kM]?B[ -~]*\x1b\[K$")
                self.assertLess(len(line) - len("\x1b[K"), columns)
        self.assertEqual(self.on_terminal("dict(force=True, progress=False)"), "")

    def test_no_terminal(self):
        with open(self.at("said"), "w+", encoding="utf-8") as said:
            for options in ("dict(force=True)", "dict(force=True, progress=False)"):
                packing = self.process("documents()", options, stderr=said)
                self.assertEqual((packing.communicate()[0], packing.returncode), ("", 0))
            said.seek(0)
            self.assertEqual(said.read(), "")

    # ---- masks ----

    def test_labels(self):
        ids = [[5, 6, 7, 8], [9], []]
        labels = [[-100, -100, 7, 8], [-100], []]
        marks = [[0, 0, 1, 1], [0], []]
        by_labels = tokmap.pack([{"i": i, "l": m} for i, m in zip(ids, labels)], self.at("labels"), ids_field="i",
                                labels_field="l", tokenizer="bytes", progress=False)
        by_mask = tokmap.pack([{"i": i, "m": m} for i, m in zip(ids, marks)], self.at("mask"), ids_field="i",
                              mask_field="m", tokenizer="bytes", progress=False)
        self.assertEqual(by_labels.content, by_mask.content)
        with tokmap.Dataset(self.at("labels")) as dataset:
            self.assertEqual(dataset.mask(0, 4).tolist(), [False, False, True, True])
        for wrong, message in (([-100, 6, 6, 8], "label 2 is 6, but must be the id, 7, or -100"),
                               ([-100], "a mask of 1"), (None, "is not a list of labels")):
            with self.assertRaisesRegex(tokmap.InputError, message):
                tokmap.pack([{"i": ids[0], "l": wrong}], self.at("wrong"), ids_field="i", labels_field="l",
                            tokenizer="bytes")
        with open(self.at("in.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"i": i, "l": m}) + "\n" for i, m in zip(ids, labels))
        of_file = tokmap.pack(pathlib.Path(self.at("in.jsonl")), self.at("of_file"), ids_field="i", labels_field="l",
                              tokenizer="bytes", progress=False)
        self.assertEqual(of_file.content, by_labels.content)

    @needs("transformers")
    @unittest.skipIf(SHARED is None, "there are no real vocabularies here")
    def test_templates_of_transformers(self):
        """The ids and the mask are those of the command's template of that name."""
        import transformers
        say = ("{% if m['role'] == 'assistant' %}{% generation %}{{ TEXT }}{% endgeneration %}{% else %}{{ TEXT }}"
               "{% endif %}")
        templates = {
            "chatml": ("qwen2.5", "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' }}" +
                       say.replace("TEXT", "m['content'] + '<|im_end|>'") + "{{ '\\n' }}{% endfor %}"),
            "llama3": ("llama3", "{{ '<|begin_of_text|>' }}{% for m in messages %}{{ '<|start_header_id|>' + "
                       "m['role'] + '<|end_header_id|>\\n\\n' }}" + say.replace("TEXT", "m['content'] | trim + '<|eot_id|>'") +
                       "{% endfor %}")}
        turns = [{"messages": [{"role": "system", "content": "Be brief."}] * (i % 2) + [
            {"role": "user", "content": f"How much is {i}? \u00e9"},
            {"role": "assistant", "content": " Six \U0001f600" * (i % 4)},
            {"role": "user", "content": ""}, {"role": "assistant", "content": "Seven,\n\n\tor so"}]} for i in range(40)]
        for name, (vocabulary, template) in templates.items():
            folder = os.path.join(SHARED, vocabulary)
            own = transformers.PreTrainedTokenizerFast(tokenizer_file=os.path.join(folder, "tokenizer.json"))
            own.chat_template = template
            for eod in (False, True):
                made = [tokmap.pack(iter(turns), self.at(out), tokenizer=folder, messages_field="messages", eod=eod,
                                    progress=False, force=True, chat_template=chosen)
                        for out, chosen in (("own", own), ("named", name))]
                for end in (".bin", ".mask"):
                    self.assertEqual(*(pathlib.Path(each.path + end).read_bytes() for each in made), (name, eod, end))
                self.assertEqual(made[0].content, made[1].content, name)


if __name__ == "__main__":
    unittest.main()
