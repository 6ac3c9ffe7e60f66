"""index(): token files of other projects, opened in place and then by their indexes."""
import os
import random
import struct
import threading
import unittest
from array import array

import tokmap
from support import new_folder

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

    def test_index(self):
        name = f"raw:{self.path},width=2,eod={EOD}"
        with tokmap.Dataset(name) as dataset:
            self.assertEqual(dataset.info.identity, "sampled")
            self.assertEqual(list(dataset.tokens(0, 500)), self.flat[:500])
            with self.assertRaisesRegex(tokmap.UnsupportedError, "tokmap index"):
                dataset.document(0)
        seen = []
        made = tokmap.index(name, progress=lambda done, total: seen.append((done, total)))
        size = 2 * len(self.flat)
        self.assertEqual(made, (1, len(self.flat), len(self.documents), size))
        self.assertEqual((made.files, made.documents), (1, 300))
        self.assertEqual(seen[-1], (size, size))
        content = self.compare(name)
        with self.assertRaises(tokmap.ExistsError) as caught:
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
            with self.assertRaisesRegex(tokmap.RangeError, "an end of a document"):
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
            with self.assertRaises(tokmap.BusyError):
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
                        self.assertEqual(list(batch.inputs[row]), [ids[i] for i in at])
                        begin = [i for i in range(seq_len) if i == 0 or starts[at[i]]]
                        positions = [i - max(b for b in begin if b <= i) for i in range(seq_len)]
                        self.assertEqual(list(batch.position_ids[row]), positions, (name, batch.step, row))
                        wanted += [row * seq_len + b for b in begin[1:]] + [(row + 1) * seq_len]
                    self.assertEqual(list(batch.cu_seqlens)[:batch.documents + 1], wanted)

    def test_not_a_token_file(self):
        with self.assertRaises(tokmap.NotFoundError):
            tokmap.index(self.path)
        with self.assertRaises(TypeError):
            tokmap.index(None)


if __name__ == "__main__":
    unittest.main()
