# SPDX-License-Identifier: MIT
"""index(): token files of other projects, opened in place and then by their indexes."""
import os
import pickle
import random
import struct
import subprocess
import threading
import unittest
import warnings
from array import array

import tokmap
from tokmap.errors import class_of
from support import TOKMAP, new_folder, pack

EOD = 50256


def documents():
    return [[(i * 7919 + j * 104729) % 50000 for j in range(1 + i * 37 % 400)] + [EOD] for i in range(300)]


class Index(unittest.TestCase):
    def setUp(self):
        self.folder = new_folder()
        self.documents = documents()
        self.flat = [token for document in self.documents for token in document]
        self.ends = []
        for document in self.documents:
            self.ends.append(len(document) + (self.ends[-1] if self.ends else 0))
        self.path = os.path.join(self.folder, "train.bin")
        with open(self.path, "wb") as file:
            file.write(array("H", self.flat).tobytes())

    def compare(self, name):
        with tokmap.Dataset(name) as dataset:
            self.assertEqual(dataset.info.identity, "full")
            self.assertEqual([list(document) for document in dataset], self.documents)
            dataset.verify()
            return dataset.info.content

    def test_tokenizer(self):
        """An index records the tokenizer that made the ids, as a packed shard does."""
        path = os.path.join(self.folder, "text.bin")
        with tokmap.Tokenizer("bytes") as tokenizer:
            ids = tokenizer.encode("one\n") + tokenizer.encode("two\n")
            with open(path, "wb") as file:
                file.write(array("H", ids).tobytes())
            name = f"raw:{path},width=2,eod=10"
            tokmap.index(name, tokenizer=tokenizer)
            with tokmap.Dataset(name) as dataset:
                self.assertEqual(dataset.info.tokenizer, tokenizer.fingerprint)
                self.assertEqual(dataset.info.vocabulary, tokenizer.vocab_size)
                self.assertEqual([tokenizer.decode(document) for document in dataset], ["one\n", "two\n"])
                self.assertEqual(tokmap.Tokenizer.of(dataset).fingerprint, tokenizer.fingerprint)
                dataset.verify()
            with self.assertRaisesRegex(class_of("ERROR_TOKEN"), "another one made the ids"):
                tokmap.index(f"raw:{self.path},width=2", tokenizer=tokenizer)

    def test_index(self):
        name = f"raw:{self.path},width=2,eod={EOD}"
        with tokmap.Dataset(name) as dataset:
            self.assertEqual(dataset.info.identity, "sampled")
            self.assertEqual(list(dataset.tokens(0, 500)), self.flat[:500])
            with self.assertRaisesRegex(class_of("ERROR_UNSUPPORTED"), "tokmap index"):
                dataset.document(0)
        seen = []
        made = tokmap.index(name, progress=lambda done, total: seen.append((done, total)))
        size = 2 * len(self.flat)
        self.assertEqual(made, (1, len(self.flat), len(self.documents), size))
        self.assertEqual((made.files, made.documents), (1, 300))
        self.assertEqual(seen[-1], (size, size))
        content = self.compare(name)
        with self.assertRaises(class_of("ERROR_EXISTS")) as caught:
            tokmap.index(name)
        self.assertEqual(caught.exception.path, os.path.join(self.folder, "train.tmx"))
        tokmap.index(name, replace=True, threads=1)
        self.assertEqual(self.compare(name), content)

    def test_ends_of_the_caller(self):
        name, asked = f"raw:{self.path},width=2", []

        def ends(path, tokens):
            asked.append((path, tokens))
            return iter(self.ends)

        self.assertEqual(tokmap.index(name, ends=ends).documents, 300)
        self.assertEqual(asked, [(self.path, len(self.flat))])
        self.compare(name)

    def test_many_ends_of_the_caller(self):
        made = tokmap.index(f"raw:{self.path},width=2", ends=lambda path, tokens: range(1, tokens))
        self.assertEqual(made.documents, len(self.flat))
        with tokmap.Dataset(f"raw:{self.path},width=2") as dataset:
            self.assertEqual([len(dataset[n]) for n in (0, 4095, 4096, 60000, -1)], [1] * 5)

    def test_a_caller_who_does_not_know(self):
        name = f"raw:{self.path},width=2,eod={EOD}"
        self.assertEqual(tokmap.index(name, ends=lambda path, tokens: None).documents, 300)
        self.compare(name)

    def test_wrong_ends(self):
        name = f"raw:{self.path},width=2"
        for ends in ([5, 4], [len(self.flat) + 1], [-1]):
            with self.assertRaisesRegex(class_of("ERROR_RANGE"), "an end of a document"):
                tokmap.index(name, ends=lambda path, tokens: ends)
        with self.assertRaisesRegex(tokmap.ArgumentError, "whole number"):
            tokmap.index(name, ends=lambda path, tokens: ["7"])
        self.assertEqual(os.listdir(self.folder), ["train.bin"])

    def test_exceptions_of_the_caller(self):
        name = f"raw:{self.path},width=2,eod={EOD}"

        def fail(*_):
            raise ZeroDivisionError("of the caller")

        for arguments in ({"progress": fail}, {"ends": fail}):
            with self.assertRaisesRegex(ZeroDivisionError, "of the caller"):
                tokmap.index(name, **arguments)
            self.assertEqual(os.listdir(self.folder), ["train.bin"])

    def test_two_at_once(self):
        """A second index() of a file that is being indexed raises a BusyError, and the first is not disturbed."""
        name, begun, finish, problems = f"raw:{self.path},width=2,eod={EOD}", threading.Event(), threading.Event(), []

        def progress(done, total):
            begun.set()
            finish.wait(60)

        first = threading.Thread(target=lambda: problems.append(tokmap.index(name, progress=progress)))
        first.start()
        self.assertTrue(begun.wait(60))
        try:
            with self.assertRaises(class_of("ERROR_BUSY")):
                tokmap.index(name)
        finally:
            finish.set()
            first.join()
        self.assertEqual(problems[0].documents, 300)
        self.assertEqual(sorted(os.listdir(self.folder)), ["train.bin", "train.tmx"])
        self.compare(name)

    def test_megatron(self):
        prefix, lengths = os.path.join(self.folder, "web"), [len(document) for document in self.documents]
        with open(prefix + ".bin", "wb") as file:
            file.write(array("i", self.flat).tobytes())
        starts = [4 * (end - length) for end, length in zip(self.ends, lengths)]
        with open(prefix + ".idx", "wb") as file:
            file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, 300, 301) + array("i", lengths).tobytes()
                       + array("q", starts).tobytes() + array("q", range(301)).tobytes())
        with tokmap.Dataset(prefix) as dataset:
            self.assertEqual((dataset.info.kind, dataset.info.identity), ("megatron", "sampled"))
            self.assertEqual([list(document) for document in dataset], self.documents)
        self.assertEqual(tokmap.index(prefix).documents, 300)
        self.compare(prefix)

    def test_documents_found_while_reading(self):
        """Without an index, EOD and BOS tell where documents end. Every row is compared with a model, and cu_seqlens has
        room for it, even if every token is a document of its own."""
        rng = random.Random(5)
        for number, (eod, bos, share) in enumerate([(3, None, 0.02), (None, 4, 0.02), (3, 4, 0.3), (3, 4, 1), (3, 3, 1),
                                                    (3, None, 1), (None, 4, 1), (70000, None, 1), (3, 4, 0)]):
            for width, count in ((2, 3001), (4, 20000)):
                marks = [token for token in (eod, bos) if token is not None and token < 65536]
                ids = [rng.choice(marks) if marks and rng.random() < share else rng.randrange(5, 900)
                       for _ in range(count)]
                path = os.path.join(self.folder, f"scan_{number}_{width}.bin")
                with open(path, "wb") as file:
                    file.write(array("HI"[width == 4], ids).tobytes())
                if eod is not None and eod > 65535 and width == 2:
                    continue  # the name cannot say so
                words = "".join(f",{word}={value}" for word, value in (("eod", eod), ("bos", bos)) if value is not None)
                self.compare_rows(f"raw:{path},width={width}{words}", ids, eod, bos)

    def compare_rows(self, name, ids, eod, bos):
        count, seq_len = len(ids), 130
        starts = [at == 0 or ids[at] == bos or (ids[at - 1] == eod) for at in range(count)]
        fields = ["inputs", "position_ids", "cu_seqlens"]
        for reading in ("mapped", "pread"):
            with tokmap.Run(data=name, seq_len=seq_len, batch=4, passes=2, reading=reading) as run, \
                    run.loader(rows=4, fields=fields, dtype="int32") as loader:
                for batch in loader:
                    wanted = [0]
                    for row in range(batch.count):
                        first = batch.places[row].first_token
                        at = [(first + i) % count for i in range(seq_len)]
                        self.assertEqual(batch.inputs[row].tolist(), [ids[i] for i in at])
                        begin = [i for i in range(seq_len) if i == 0 or starts[at[i]]]
                        positions = [i - max(b for b in begin if b <= i) for i in range(seq_len)]
                        self.assertEqual(batch.position_ids[row].tolist(), positions, (name, batch.step, row))
                        wanted += [row * seq_len + b for b in begin[1:]] + [(row + 1) * seq_len]
                    self.assertEqual(batch.cu_seqlens.tolist()[:batch.documents + 1], wanted)

    def test_not_a_token_file(self):
        with self.assertRaises(class_of("ERROR_NOT_FOUND")):
            tokmap.index(self.path)
        with self.assertRaises(TypeError):
            tokmap.index(None)


class Names(unittest.TestCase):
    """Names of datasets in other processes and folders, which pickling has to make absolute."""

    def test_pickled(self):
        folder, before = new_folder(), os.getcwd()
        os.chdir(folder)
        self.addCleanup(os.chdir, before)
        with open("train.bin", "wb") as file:
            file.write(array("H", range(1000)).tobytes())
        names = ("raw:train.bin,width=2", "raw:train.bin,width=2#tokens=100..900", "synthetic:vocab=100,tokens=1000")
        pickled = []
        ignoring = warnings.catch_warnings()  # no tokenizer is recorded
        ignoring.__enter__()
        self.addCleanup(ignoring.__exit__)
        warnings.simplefilter("ignore")
        for name in names:
            with tokmap.Dataset(name) as dataset, tokmap.Run(data=name, seq_len=10) as run, \
                    tokmap.Run(sources={"a": name, "b": names[2]}, weights="natural", seq_len=10) as mixture:
                pickled.append((pickle.dumps((dataset, run, mixture)), list(dataset.tokens()), run.cursor(3),
                                mixture.cursor(3)))
                self.assertEqual(run.sources[0].data, name)
        os.chdir("/")
        for each, tokens, cursor, mixed in pickled:
            dataset, run, mixture = pickle.loads(each)
            self.assertEqual(list(dataset.tokens()), tokens)
            self.assertEqual((run.cursor(3), mixture.cursor(3)), (cursor, mixed))

    def test_a_warning_points_at_the_program(self):
        path = os.path.join(new_folder(), "train.bin")
        with open(path, "wb") as file:
            file.write(array("H", range(1000)).tobytes())
        sources = {"a": f"raw:{path},width=2", "b": "synthetic:vocab=100,tokens=1000"}
        for make in (lambda: tokmap.Run(sources=sources, weights="natural", seq_len=10),
                     lambda: tokmap.Run({"sources": sources, "weights": "natural", "seq_len": 10})):
            with self.assertWarnsRegex(UserWarning, "not recorded which tokenizer") as caught:
                make().close()
            self.assertEqual(caught.filename, __file__)

    def test_a_file_whose_name_is_unusual(self):
        folder = new_folder()  # its name has a space
        path = os.path.join(folder, "a:b.bin")
        with open(path, "wb") as file:
            file.write(array("H", range(50)).tobytes())
        tokmap.index(f"raw:{path},width=2")
        with tokmap.Dataset(path) as dataset:
            self.assertEqual(list(pickle.loads(pickle.dumps(dataset)).tokens()), list(range(50)))


class Mask(unittest.TestCase):
    def test_mask(self):
        """Every range of a mask, with parts, against the list that the mask was made from."""
        folder = new_folder()
        prefix = pack(folder, documents=20)
        with tokmap.Dataset(prefix) as dataset:
            count = len(dataset.tokens())
            self.assertFalse(dataset.info.masked)
            self.assertEqual(list(dataset.mask()), [True] * count)
            tenth = dataset.document(10).first_token
        counts = [(i * i + i // 7) % 3 != 0 for i in range(count)]
        path = os.path.join(folder, "counts")
        with open(path, "wb") as file:
            file.write(bytes(counts))
        subprocess.run([TOKMAP, "index", "-q", "--mask", path, prefix], check=True)
        with tokmap.Dataset(prefix) as dataset:
            self.assertTrue(dataset.info.masked)
            self.assertEqual(list(dataset.mask()), counts)
            for first in range(0, 20):
                for length in range(0, 20):
                    found = dataset.mask(first, length)
                    self.assertEqual(found.tolist(), counts[first:first + length])
            self.assertIs(type(dataset.mask(0, 1).tolist()[0]), bool)
            self.assertEqual(list(dataset.mask(count - 3)), counts[-3:])
            self.assertEqual(list(dataset.mask(count)), [])
            for wrong in ((count + 1,), (0, count + 1), (-1,), (5, 2 ** 64 - 1)):
                with self.assertRaises(class_of("ERROR_RANGE")):
                    dataset.mask(*wrong)
        with self.assertRaisesRegex(tokmap.ArgumentError, "is closed"):
            dataset.mask()
        with tokmap.Dataset(prefix + "#docs=10..20") as part:
            self.assertEqual(list(part.mask()), counts[tenth:])


if __name__ == "__main__":
    unittest.main()
