# SPDX-License-Identifier: MIT
"""tokmap.pack(): sources other than lists of texts. Tables in an iterable, files of Arrow, and a function; the options
of the command for all of them; and work that a kill interrupts, which the same call continues."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest
from contextlib import suppress

import tokmap
from support import needs, new_folder

TEXTS = [f"document {i} " + "words " * (i % 7) for i in range(300)]


def contents(path):
    """What a packed source consists of: the tokens of each shard."""
    with tokmap.Dataset(path) as dataset:
        return [ids.tolist() for ids in dataset]


# A program that packs rows again and again the same, and is killed while it makes one of them. Its arguments: the
# output, the options, the row at which it ends (or -1), the text of row 5, and how long it waits between rows of the
# last part, so that a checkpoint comes.
KILLED = """
import os, signal, sys, time
import tokmap

out, options, ends, changed, later = sys.argv[1], eval(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])

class Rows:
    def __iter__(self):
        for i in range(60000):
            if i == ends:
                time.sleep(1.5)  # a checkpoint is made every second
                for i in range(i, i + 30000):
                    yield f"row {i} of some words"
                time.sleep(1.5)
                os.kill(os.getpid(), signal.SIGKILL)
            yield changed if i == 5 or (i == later) else f"row {i} of some words"

class Ids:
    def __iter__(self):
        return ([len(word) for word in row.split()] for row in Rows())

source = Ids() if "vocab_size" in options else Rows()
made = tokmap.pack(source, out, resume=True, checkpoint_seconds=1, progress=False, **options)
print(made.documents, made.tokens)
"""


class Sources(unittest.TestCase):
    def setUp(self):
        self.folder = new_folder()

    def at(self, name):
        return os.path.join(self.folder, name)

    def made(self, source, **options):
        return tokmap.pack(source, self.at("made"), force=True, progress=False, **options)

    # ---- tables and files of Arrow ----

    @needs("pyarrow")
    def test_tables_in_an_iterable(self):
        """As Ray Data, polars, and datasets give them: each row of each is a document."""
        import pyarrow
        table = pyarrow.table({"text": TEXTS, "n": range(300)})
        wanted = self.made(TEXTS)
        for source in (table.to_batches(max_chunksize=70), iter([table]), [table.slice(0, 9), table.slice(9)],
                       [*TEXTS[:100], table.slice(100)], lambda: table.to_reader(max_chunksize=70)):
            self.assertEqual(self.made(source).content, wanted.content)
        made = self.made(table.to_batches(max_chunksize=70), columns="n")
        self.assertEqual(made.content, wanted.content)
        with tokmap.Dataset(made.path) as dataset:
            self.assertEqual(dataset.value(299, "n"), 299)
        with self.assertRaisesRegex(tokmap.ArgumentError, "no column 'body'.*field= names one of them"):
            self.made(iter([table]), field="body")

    @needs("pyarrow")
    def test_arrow_files(self):
        """Both formats, by path, by pattern, and in a list; a file that is cut off is refused, wherever it is cut."""
        import pyarrow
        table = pyarrow.table({"text": TEXTS, "input_ids": [[i, i + 1] for i in range(300)]})
        for name, opened in (("a.arrow", pyarrow.ipc.new_stream), ("b.arrow", pyarrow.ipc.new_file),
                             ("c.arrows", pyarrow.ipc.new_stream)):
            with opened(self.at(name), table.schema) as writer:
                writer.write_table(table, max_chunksize=64)
        once, twice = self.made(TEXTS), self.made(TEXTS * 2)
        for name in "a.arrow", "b.arrow", "c.arrows":
            self.assertEqual(self.made(self.at(name)).content, once.content)
        for source in self.at("*.arrow"), [pathlib.Path(self.at("a.arrow")), pathlib.Path(self.at("b.arrow"))]:
            self.assertEqual(self.made(source).content, twice.content)
        self.assertEqual(self.made(self.at("a.arrow"), vocab_size=500).content,
                         self.made([[i, i + 1] for i in range(300)], vocab_size=500).content)
        for name in "a.arrow", "b.arrow":
            whole = pathlib.Path(self.at(name)).read_bytes()
            for cut in (0, 5, 100, len(whole) // 2, len(whole) - 8, len(whole) - 1):
                pathlib.Path(self.at("cut.arrow")).write_bytes(whole[:cut])
                with self.assertRaisesRegex(tokmap.InputError, r"cut\.arrow: "):
                    self.made(self.at("cut.arrow"))
        os.remove(self.at("cut.arrow"))
        for source, kind, message in (
                (self.at("no.arrow"), FileNotFoundError, "No such file"),
                (self.at("no*.arrow"), tokmap.InputError, "no file matches"),
                ([pathlib.Path(self.at("a.arrow")), pathlib.Path(self.at("a.jsonl"))], tokmap.ArgumentError, "apart")):
            with self.assertRaisesRegex(kind, message):
                self.made(source)
        for name in "a.arrow", "b.arrow":  # the command says who reads them
            with self.assertRaisesRegex(tokmap.TokmapError, r"Python's tokmap\.pack reads it"):
                os.link(self.at(name), self.at(name + ".bin"))
                self.made(self.at(name + ".bin"))

    def test_arrow_files_without_pyarrow(self):
        path = pathlib.Path(self.at("a.arrow"))
        path.write_bytes(b"ARROW1")
        code = "import sys, tokmap\nsys.modules['pyarrow'] = None\ntokmap.pack(sys.argv[1], sys.argv[2])"
        ran = subprocess.run([sys.executable, "-c", code, path, self.at("x")], capture_output=True, text=True, check=False)
        self.assertIn("files of Arrow need pyarrow: install it", ran.stderr)

    @needs("datasets")
    def test_files_of_datasets(self):
        import datasets
        saved = datasets.Dataset.from_dict({"text": TEXTS})
        saved.save_to_disk(self.at("saved"), num_shards=3)
        wanted = self.made(TEXTS).content
        self.assertEqual(self.made(self.at("saved/*.arrow")).content, wanted)
        files = [pathlib.Path(file["filename"]) for file in datasets.load_from_disk(self.at("saved")).cache_files]
        self.assertEqual(self.made(files).content, wanted)
        self.assertEqual(self.made(saved.with_format("arrow").iter(50)).content, wanted)

    # ---- options of the command ----

    def test_options(self):
        """Each gives what the command makes of the same documents in a file."""
        path = self.at("in.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f'{{"text": "{text}"}}\n' for text in [*TEXTS, *TEXTS[:40]])
        for number, options in enumerate((
                {"shuffle": 7}, {"dedup": "exact"}, {"seal": True}, {"shard_tokens": 1000}, {"shuffle": 7, "seal": 3},
                {"shuffle": 1, "shard_tokens": 900, "dedup": "exact"}, {"also": "megatron"})):
            wanted = tokmap.pack(path, self.at(f"of_file{number}"), progress=False, **options)
            made = tokmap.pack([*TEXTS, *TEXTS[:40]], self.at(f"of_rows{number}"), progress=False, **options)
            self.assertEqual((made.documents, made.tokens, made.content),
                             (wanted.documents, wanted.tokens, wanted.content))
            self.assertEqual(contents(made.path), contents(wanted.path))
            self.assertEqual({name.replace("of_rows", "of_file") for name in os.listdir(self.folder) if
                              name.startswith(f"of_rows{number}")},
                             {name for name in os.listdir(self.folder) if name.startswith(f"of_file{number}")})

    def test_split(self):
        path = self.at("in.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f'{{"text": "{text}"}}\n' for text in TEXTS)
        of_file = tokmap.pack(path, self.at("of_file"), split="train=80%,val=20%", progress=False)
        made = tokmap.pack(iter(TEXTS), self.at("made"), split="train=80%,val=20%", progress=False)
        self.assertEqual((made.documents, made.tokens, made.content), (300, of_file.tokens, ""))
        self.assertEqual(sorted(made.sets), ["train", "val"])
        for name, part in made.sets.items():
            self.assertEqual(part.path, self.at(f"made.{name}"))
            self.assertEqual(part.content, of_file.sets[name].content)
            with tokmap.Dataset(part.path) as dataset:
                self.assertEqual((dataset.info.documents, dataset.info.tokens, dataset.info.content),
                                 (part.documents, part.tokens, part.content))
        planned = tokmap.pack(TEXTS, self.at("dry"), dry_run=True, progress=False)
        self.assertEqual((planned.documents, planned.tokens), (300, made.tokens))
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith("dry")])

    def test_lists_of_excluded_documents(self):
        """A list names documents by the hash of their text, or n-grams that none of them may have."""
        benchmark = self.at("benchmark.txt")
        with open(benchmark, "w", encoding="utf-8") as file:
            file.write("the quick brown fox jumps over the lazy dog and runs away from the old grey wolf")
        texts = [*TEXTS, "he said: the quick brown fox jumps over the lazy dog and runs away from the old grey wolf"]
        self.assertEqual(self.made(texts, exclude_ngrams=benchmark, exclude_words=8).documents, 300)

    def test_options_for_files(self):
        for options in ({"input_format": "csv"}, {"hidden": True}, {"exclude": "x"}, {"task": "0/2"}, {"separator": "x"}):
            with self.assertRaisesRegex(tokmap.ArgumentError, f"{[*options][0]}: these options are for files"):
                self.made(TEXTS, **options)
        with self.assertRaisesRegex(tokmap.InputError, "reads the inputs twice"):
            self.made(TEXTS, dedup="minhash")

    # ---- kills ----

    def run_killed(self, out, options, ends=-1, changed="row 5 of some words", later=-1):
        return subprocess.run([sys.executable, "-c", KILLED, self.at(out), repr(options), str(ends), changed, str(later)],
                              capture_output=True, text=True, timeout=120, check=False)

    def runs(self):
        """Whether a command runs that packs into this folder."""
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                words = path.read_bytes()
                if b"feeder=" in words and self.folder.encode() in words:
                    return True
        return False

    def killed(self, out, options):
        ran = self.run_killed(out, options, 20000)
        self.assertEqual(ran.returncode, -signal.SIGKILL, ran.stderr)
        until = time.monotonic() + 30
        while self.runs() and time.monotonic() < until:  # until the command sees that nobody writes to it any more
            time.sleep(0.05)
        self.assertTrue(os.path.isdir(self.at(out + ".work")), os.listdir(self.folder))

    def test_killed_and_continued(self):
        """The same call gives the same bytes as one that nothing interrupts, and does not pack the first rows again."""
        for number, options in enumerate(({}, {"shuffle": 7}, {"vocab_size": 10, "eod": 9},
                                          {"shard_tokens": 200000, "split": "a=0.5,b=0.5"})):
            wanted = self.run_killed(f"whole{number}", options)
            self.assertEqual(wanted.returncode, 0, wanted.stderr)
            self.killed(f"out{number}", options)
            ran = self.run_killed(f"out{number}", options)
            self.assertEqual((ran.stdout, ran.returncode), (wanted.stdout, 0), ran.stderr)
            files = [name for name in sorted(os.listdir(self.folder)) if name.startswith(f"out{number}")]
            self.assertEqual([name for name in files if name.endswith((".work", ".partial"))], [])
            for name in files:
                if name.endswith(".bin"):
                    self.assertEqual(pathlib.Path(self.at(name)).read_bytes(),
                                     pathlib.Path(self.at(name.replace("out", "whole"))).read_bytes(), name)

    def test_continued_with_other_rows(self):
        """Other first rows, and other lengths of later ones, are refused; so is a call that does not ask to resume."""
        self.killed("out", {})
        ran = self.run_killed("out", {}, changed="another row 5")
        self.assertRegex(ran.stderr, "has other first documents than when this work began; .*no_resume=True")
        ran = self.run_killed("out", {}, changed="row 5 of some words", later=10000)
        self.assertRegex(ran.stderr, "inputs have changed since this work began; start over with no_resume=True")
        ran = self.run_killed("out", {"eod": False})
        self.assertRegex(ran.stderr, "unfinished work of a command with another")
        with self.assertRaisesRegex(tokmap.TokmapError, "can be read only once, so the unfinished work"):
            tokmap.pack(TEXTS, self.at("out"), progress=False)
        with self.assertRaisesRegex(tokmap.ArgumentError, "resume and dedup exclude each other"):
            tokmap.pack(TEXTS, self.at("out"), resume=True, dedup="exact")
        made = tokmap.pack(TEXTS, self.at("out"), progress=False, no_resume=True)
        self.assertEqual(made.documents, 300)
        self.assertFalse(os.path.exists(self.at("out.work")))

    def test_sources_that_give_their_rows_once(self):
        rows = (text for text in TEXTS)
        for source in rows, iter(TEXTS):
            with self.assertRaisesRegex(tokmap.ArgumentError, "resume=True needs a source that gives its documents "
                                        "again .*, which gives them once: pass the function that makes it"):
                self.made(source, resume=True)
        self.assertEqual(next(rows), TEXTS[0])  # nothing was taken from it
        wanted = self.made(TEXTS).content
        for source in TEXTS, lambda: iter(TEXTS), tuple(TEXTS):
            self.assertEqual(self.made(source, resume=True).content, wanted)
        with self.assertRaisesRegex(tokmap.InputError, "contain no documents"):
            self.made([], resume=True)

    @needs("pyarrow")
    def test_readers_give_their_rows_once(self):
        import pyarrow
        table = pyarrow.table({"text": TEXTS})
        with self.assertRaisesRegex(tokmap.ArgumentError, "which gives them once"):
            self.made(table.to_reader(), resume=True)
        self.assertEqual(self.made(table, resume=True).content, self.made(table.to_reader, resume=True).content)


if __name__ == "__main__":
    unittest.main()
