# SPDX-License-Identifier: MIT
"""Messages in Python's words: no name of C reaches a Python program."""
import inspect
import os
import pathlib
import re
import unittest
import unittest.mock

import tokmap
from tokmap.errors import class_of
from support import TOP, WithData, python

#: Environment variables, which a Python program sets as any other program does, and names of metrics.
KNOWN = r"TOKMAP_CPU|TOKMAP_CUDA_DRIVER|TOKMAP_TASKS|tokmap_loader_[a-z_]+[{ ]"


def library_texts():
    """Every string literal with a space in the library's sources: a message, or a part of one."""
    for room in ("src", "tokenize_tools"):
        for file in sorted(pathlib.Path(TOP, room).rglob("*.c")):
            text = re.sub(r"/\*.*?\*/|#include.*?\n", "", file.read_text(encoding="utf-8"), flags=re.S)
            for literal in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text):
                if " " in literal:
                    yield f"{room}/{file.name}", re.sub(KNOWN, "", literal)


class Words(unittest.TestCase):
    def test_every_message_of_the_library(self):
        texts = list(library_texts())
        self.assertGreater(len(texts), 3000)
        for where, text in texts:
            self.assertNotRegex(text, r"\bTOKMAP_(?!CACHE\b)[A-Z]|\btokmap_[a-z_]+\(|\b(options|out)\.[a-z%]", where)


class Sentences(WithData):
    def said(self, function, kind=tokmap.TokmapError):
        with self.assertRaises(kind) as caught:
            function()
        self.assertNotRegex(str(caught.exception), r"TOKMAP_|options\.|ordering")
        return str(caught.exception)

    def test_arguments(self):
        run = self.run_of()
        self.assertIn("steps is 5 and passes is 2: pass one of them", self.said(lambda: self.run_of(steps=5)))
        self.assertIn('remove "targets" from fields', self.said(lambda: self.run_of(lookahead=0).loader(framework="dlpack")))
        self.assertIn("threads is 2; set it to 1", self.said(lambda: run.loader(threads=2)))
        self.assertIn('mask_targets is 1 without "targets"',
                      self.said(lambda: run.loader(mask_targets=True, fields="position_ids")))
        self.assertIn("ring_bytes is 64; raise it, or lower rows", self.said(lambda: run.loader(ring_bytes=64)))
        self.assertIn("it must be a tokmap.Run", self.said(lambda: tokmap.Loader("train.run")))

    def test_values_that_are_nearly_right(self):
        self.assertIn("'shuffle', 'sequential', ('blocks', W, SPAN), or ('even', W, SPAN)", self.said(lambda: self.run_of(order="blocks 4 8")))
        for state, words in ((5, "the state is an int without"), ([], "the state is a list without")):
            self.assertIn(words, self.said(lambda: self.run_of().loader(resume=state), class_of("ERROR_CURSOR")))

    def test_misspelled_arguments_of_a_run(self):
        for function in (lambda: tokmap.Run(data=self.prefix, seqlen=10),
                         lambda: tokmap.Run({"data": self.prefix, "seqlen": 10})):
            self.assertEqual(self.said(function, TypeError), "Run() has no argument 'seqlen'; did you mean 'seq_len'?")

        class Other(tokmap.Run):
            def __init__(self, prefix, seqlen):
                super().__init__(data=prefix, seq_len=seqlen)

        self.assertEqual(Other(self.prefix, seqlen=10).info.seq_len, 10)
        self.assertEqual(list(inspect.signature(tokmap.Run).parameters),
                         list(inspect.signature(tokmap.Run.__init__).parameters)[1:])

    def test_urls(self):
        run = "seq_len 10\nbatch 1\nseed 1\nsource a synthetic:vocab=9\nsource b s3://bucket/web\nphase 0 a 1 b 1\n"
        here = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_MAX_ATTEMPTS": "1", "http_proxy": "",
                "TOKMAP_CACHE": os.path.join(self.folder, "cache")}
        with unittest.mock.patch.dict(os.environ, here):  # nobody answers there
            for function in (lambda: tokmap.Dataset("s3://bucket/web"), lambda: tokmap.Run(text=run),
                             lambda: tokmap.Run(data="s3://bucket/web", seq_len=10, batch=1, seed=1)):
                self.assertRegex(self.said(function, tokmap.TokmapError),
                                 r"s3://bucket/web\.tmx: .*127\.0\.0\.1|without libcurl|cannot be loaded")
        self.assertIn("a run file cannot be read from a URL; copy it",
                      self.said(lambda: tokmap.Run("gs://bucket/train.run"), class_of("ERROR_UNSUPPORTED")))

    def test_the_path_of_a_tokenizer(self):
        batch = next(self.run_of().loader(fields="inputs", framework="dlpack"))
        for tokenizer in "bytes", pathlib.Path("bytes"), tokmap.Tokenizer("bytes"):
            self.assertEqual(batch.text(0, tokenizer=tokenizer), batch.text(0))
        with self.assertRaises(tokmap.TokmapError):
            batch.text(0, tokenizer=os.path.join(self.folder, "no such file"))
        with self.assertRaises(TypeError):
            batch.text(0, tokenizer=5)

    def test_a_dataset_as_a_run_file(self):
        said = self.said(lambda: tokmap.Run(self.prefix))
        self.assertIn("this is a dataset", said)
        self.assertIn("set data", said)

    def test_another_past(self):
        state = self.run_of().cursor(5)
        for options, words in (({"seq_len": 40}, "in its geometry (line 1: seq_len 40, line 2: lookahead 1); change"),
                               ({"seed": 9}, "in its order (line 5: order shuffle, line 4: seed 9); change"),
                               ({"batch": 5, "seed": 9}, "in its order (line 5: order shuffle, line 4: seed 9), its batch (line 3: batch 5); change")):
            self.assertIn(words, self.said(lambda: self.run_of(**options).loader(resume=state), tokmap.PastError))

    def test_the_field(self):
        """An error about an argument has its name, with which the message begins; other errors have none."""
        for options, field in (({"rank": 7, "world": 3}, "rank"), ({"read_ahead": 99999999}, "read_ahead")):
            with self.assertRaises(tokmap.ArgumentError) as caught:
                self.run_of().loader(**options)
            self.assertEqual(caught.exception.field, field)
            self.assertTrue(caught.exception.message.startswith(field + " is "), caught.exception.message)
        with self.assertRaises(tokmap.RunError) as caught:
            tokmap.Run(text="seq_len 5\nseq_len 6\n")
        self.assertIsNone(caught.exception.field)

    def test_the_message_has_the_position(self):
        """The position that the library reports stays, whatever the words are."""
        with self.assertRaises(tokmap.RunError) as caught:
            tokmap.Run(text="seq_len 5\nseq_len 6\n")
        self.assertEqual(caught.exception.line, 2)
        self.assertIn(":2: " if caught.exception.path else "line 2", str(caught.exception))

    def test_long_paths(self):
        """A message that grows is cut at the size of C's buffer, at worst, and never fails."""
        said = python("""
import tokmap
try: tokmap.Dataset("x" * 4000)
except tokmap.TokmapError as problem: print(len(str(problem)) > 100)
""")
        self.assertEqual(said, "True\n")


if __name__ == "__main__":
    unittest.main()
