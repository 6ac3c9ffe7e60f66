# SPDX-License-Identifier: MIT
"""The tables pack, prepare, and start of bench/peers/compare: vocabularies in two formats, ids compared by document,
and the tables themselves with no other system than tokmap."""
import base64
import gzip
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import tokmap
from support import TOKMAP, TOP, needs

COMPARE = os.path.join(TOP, "bench", "peers", "compare")


def module(name):
    """A module of the folder, whose names are common words: they are importable only while this function runs."""
    sys.path.insert(0, COMPARE)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(COMPARE)


def lake_is_possible():
    """Whether the server and the makers of the table `lake` are installed."""
    server, report = module("remote.server"), module("report")
    try:
        server.program(), server.modules_folder()
    except report.Absent:
        return False
    return bool(shutil.which("curl") and importlib.util.find_spec("pyarrow") and importlib.util.find_spec("numpy"))


def ranks_file(path, extra=(b"th", b"he", b"the", b" the", b"in", b"ing")):
    """A rank file: all bytes, then these tokens. Returns {token: rank}."""
    tokens = [bytes([byte]) for byte in range(256)] + list(extra)
    with open(path, "wb") as file:
        for rank, token in enumerate(tokens):
            file.write(base64.b64encode(token) + b" %d\n" % rank)
    return {token: rank for rank, token in enumerate(tokens)}


def lines_of(arguments):
    """Runs the scripts; returns their lines as lists of fields."""
    done = subprocess.run([sys.executable, COMPARE, *arguments, "--offline", "--tokmap", TOKMAP, "--package",
                           os.path.join(TOP, "src", "python")], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"status {done.returncode}: {done.stdout}{done.stderr}")
    return [line.split("\t") for line in done.stdout.splitlines()]


class Folder(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="a folder ")
        self.folder = self._folder.name

    def tearDown(self):
        self._folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)


class Vocabularies(Folder):
    def test_merges_of_ranks(self):
        vocabularies = module("packing.vocabularies")
        ranks = {b"a": 0, b"b": 1, b"c": 2, b"ab": 3, b"abc": 4}
        found = json.loads(vocabularies.json_of_ranks(ranks, "x", {"<|end|>": 5}))
        self.assertEqual(found["model"]["merges"], [["a", "b"], ["ab", "c"]])
        self.assertEqual(found["model"]["vocab"], {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4})
        self.assertEqual([(one["id"], one["content"]) for one in found["added_tokens"]], [(5, "<|end|>")])

    def test_both_ways(self):
        vocabularies = module("packing.vocabularies")
        ranks = ranks_file(self.path("r50k_base.tiktoken"))
        self.assertEqual(vocabularies.ranks_of_file(self.path("r50k_base.tiktoken")), ranks)
        pattern = vocabularies.PATTERNS["cl100k_base"]
        text = vocabularies.json_of_ranks(ranks, pattern, {"<|endoftext|>": len(ranks)})
        self.assertEqual(vocabularies.ranks_of_json(text), (ranks, pattern))

    def test_unsuitable(self):
        vocabularies = module("packing.vocabularies")
        whole = json.loads(vocabularies.json_of_ranks(ranks_file(self.path("x")), "x", {}))
        for change in ({"normalizer": {"type": "NFC"}}, {"pre_tokenizer": {"type": "Whitespace"}},
                       {"model": {**whole["model"], "merges": whole["model"]["merges"][::-1]}}):
            with self.assertRaises(vocabularies.Unsuitable):
                vocabularies.ranks_of_json(json.dumps({**whole, **change}))
        with self.assertRaises(vocabularies.Unsuitable):
            vocabularies.pattern_name("own.tiktoken")
        self.assertEqual(vocabularies.pattern_name("own.tiktoken", "gpt2"), "gpt2")

    @needs("tokenizers", "tiktoken")
    def test_ids_are_the_same_in_both(self):
        import tiktoken
        import tokenizers
        vocabularies = module("packing.vocabularies")
        ranks = ranks_file(self.path("x"))
        for pattern in set(vocabularies.PATTERNS.values()):
            ours = tokenizers.Tokenizer.from_str(vocabularies.json_of_ranks(ranks, pattern, {}))
            theirs = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
            for text in ("the thing in\n\n  them 1234567", "É à\t\t’s DON'T don't\r\n \u3000x", ""):
                self.assertEqual(ours.encode(text, add_special_tokens=False).ids, theirs.encode_ordinary(text))


class Ids(Folder):
    """Outputs of packers, in their formats, against a reference of four documents: 1 2 | (empty) | 3 | 4 5 6, each with
    an end, 9."""
    LENGTHS, IDS = [3, 1, 2, 4], [1, 2, 9, 9, 3, 9, 4, 5, 6, 9]

    def compare(self, kind, documents=4):
        return module("packing.ids").do_compare(self.path("reference"), kind, self.path("out"), 2, 9, documents)

    def write(self, ids, lengths):
        import numpy
        numpy.asarray(ids, "<u2").tofile(self.path("out.bin"))
        numpy.asarray(lengths, "<i8").tofile(self.path("out.lengths"))

    def reference(self):
        import numpy
        numpy.asarray(self.IDS, "<u4").tofile(self.path("reference.ids"))
        numpy.asarray(self.LENGTHS, "<i8").tofile(self.path("reference.lengths"))
        numpy.asarray([False, False, True, False]).tofile(self.path("reference.marked"))

    @needs("numpy")
    def test_flat(self):
        self.reference()
        self.write(self.IDS, self.LENGTHS)
        self.assertEqual((self.compare("flat")["differ"], self.compare("flat")["compared"]), (0, 4))
        self.write([1, 2, 9, 9, 7, 9, 4, 5, 6, 9], self.LENGTHS)
        found = self.compare("flat")
        self.assertEqual((found["differ"], found["first"], found["special"]), (1, 2, 1))
        self.write(self.IDS[:6], self.LENGTHS[:3])
        found = self.compare("flat")
        self.assertEqual((found["differ"], found["missing"], found["dropped"]), (1, 1, 0))
        self.write(self.IDS + [8], self.LENGTHS + [1])
        self.assertEqual(self.compare("flat")["extra"], 1)

    @needs("numpy")
    def test_part(self):
        """A packer that got two documents is compared with two."""
        self.reference()
        self.write(self.IDS[:4], self.LENGTHS[:2])
        self.assertEqual((self.compare("flat", 2)["differ"], self.compare("flat", 2)["compared"]), (0, 2))

    @needs("numpy")
    def test_empty_documents_that_are_left_out(self):
        self.reference()
        self.write([1, 2, 9, 3, 9, 4, 5, 7, 9], [3, 2, 4])
        found = self.compare("flat")
        self.assertEqual((found["dropped"], found["differ"], found["first"]), (1, 2, 3))

    @needs("numpy")
    def test_formats_of_others(self):
        import numpy
        self.reference()
        self.write(self.IDS, self.LENGTHS)
        with open(self.path("out.idx"), "wb") as file:
            file.write(b"MMIDIDX\0\0" + (1).to_bytes(8, "little") + b"\x08" + (4).to_bytes(8, "little")
                       + (5).to_bytes(8, "little"))
            numpy.asarray(self.LENGTHS, "<i4").tofile(file)
            numpy.asarray([0, 6, 8, 12], "<i8").tofile(file)
            numpy.asarray([0, 1, 2, 3, 4], "<i8").tofile(file)
        self.assertEqual(self.compare("megatron")["differ"], 0)
        os.mkdir(self.path("out"))
        numpy.asarray(self.IDS[:4], "<u2").tofile(self.path("out/00000_unshuffled.ds"))
        numpy.asarray([3, 4], "<u8").tofile(self.path("out/00000_unshuffled.ds.index"))
        numpy.asarray(self.IDS[4:], "<u2").tofile(self.path("out/00001_unshuffled.ds"))
        numpy.asarray([2, 6], "<u8").tofile(self.path("out/00001_unshuffled.ds.index"))
        self.assertEqual(self.compare("datatrove")["differ"], 0)


class Tables(Folder):
    def pack(self, name="web"):
        with open(self.path("text.jsonl"), "w", encoding="utf-8") as file:
            for number in range(400):
                file.write(json.dumps({"text": f"the thing {number} in the machine " * 20}) + "\n")
        ranks_file(self.path("own.tiktoken"))
        subprocess.run([TOKMAP, "pack", "-q", "-t", self.path("own.tiktoken"), "--pattern", "gpt2", "--no-eod",
                        "-o", self.path(name), self.path("text.jsonl")], check=True)
        return self.path(name)

    def test_pack(self):
        """tokmap's row is real; a packer that is not there is a row that says so."""
        self.pack()
        found = lines_of(["pack", "--text", self.path("text.jsonl"), "--tokenizer", self.path("own.tiktoken"),
                          "--pattern", "gpt2", "--repeats", "2", "--peers", "gigatoken", "--venv", self.path("none")])
        ours = {line[3]: line[6] for line in found if line[0] == "row" and line[2] == "tokmap pack"}
        self.assertEqual(len(ours["mb_s"].split(",")), 2)
        self.assertGreater(float(ours["peak_mib"]), 0)
        verdict = [line[3] for line in found if line[0] == "equal" and line[2] == "tokmap pack"]
        self.assertIn(verdict, (["yes"], ["undefined"]))
        others = {line[2] for line in found if line[0] in ("row", "absent")} - {"tokmap pack"}
        self.assertEqual(others, {"gigatoken and a NumPy writer"})

    @unittest.skipUnless(lake_is_possible(), "nginx with its module for Lua, curl, and pyarrow are not all installed")
    def test_lake(self):
        """Rows from object storage, from copies, and after a download are measured."""
        self.pack()
        found = lines_of(["lake", "--text", self.path("text.jsonl"), "--tokenizer", self.path("own.tiktoken"),
                          "--pattern", "gpt2", "--repeats", "1", "--peers", "tokmap", "--venv", self.path("none")])
        shares = {line[2]: float(line[6]) for line in found if line[0] == "row" and line[3] == "fetched_share"}
        self.assertEqual(set(shares), {"tokmap pack s3://", "curl, then tokmap pack"})
        self.assertGreater(min(shares.values()), 1)  # the files are smaller than their tail
        self.assertIn("times the rate of tokmap pack, local copies", found[-1][1])

    def test_prepare_without_datatrove(self):
        """A pair of rows needs datatrove; without it the table says so, and nothing is compared."""
        if importlib.util.find_spec("datatrove"):
            self.skipTest("this Python has datatrove")
        self.pack()
        found = lines_of(["prepare", "--text", self.path("text.jsonl"), "--tokenizer", self.path("own.tiktoken"),
                          "--pattern", "gpt2", "--repeats", "1", "--venv", self.path("none")])
        self.assertEqual({line[2] for line in found if line[0] == "absent"}, {"datatrove, exact", "datatrove, minhash"})
        self.assertIn("nothing is compared", found[-1][1])

    def test_parts(self):
        """tokmap's parts are real, and its signatures are those of the definition."""
        self.pack()
        found = lines_of(["parts", "--text", self.path("text.jsonl"), "--repeats", "2", "--venv", self.path("none")])
        ours = {line[3]: line[6] for line in found if line[0] == "row" and line[2] == "tokmap"}
        self.assertEqual(set(ours), {"reading_mb_s", "signing_mb_s", "signatures_m_s"})
        self.assertTrue(all(len(values.split(",")) == 2 for values in ours.values()))
        equal = {line[2]: line[3] for line in found if line[0] == "equal"}
        self.assertEqual(set(equal.values()), {"yes"})
        some = lines_of(["parts", "--text", self.path("text.jsonl"), "--repeats", "1", "--venv", self.path("none"),
                         "--peers", "duckdb,rensa"])
        self.assertEqual({line[2] for line in some if line[0] in ("row", "absent")} - {"tokmap"},
                         {"DuckDB", "rensa", "rensa 0.4"})
        with self.assertRaisesRegex(AssertionError, "there is no such system; there are datatrove, duckdb"):
            lines_of(["parts", "--text", self.path("text.jsonl"), "--peers", "nothing"])
        total = module("tables.parts").shingles_write(self.path("text.jsonl"), self.path("shingles"))
        self.assertEqual(total, 400 * (6 * 20 - 4))
        if not importlib.util.find_spec("numpy"):
            self.skipTest("no numpy")
        import numpy
        whole = numpy.fromfile(self.path("shingles"), "<u8").reshape(400, -1)
        self.assertEqual(set(whole[:, 0]), {6 * 20 - 4})
        draw, prime, least = numpy.random.RandomState(1), numpy.uint64(2**61 - 1), 0
        a, b = (draw.randint(low, prime, dtype=numpy.uint64, size=(1, 112)) for low in (1, 0))
        for one in whole:
            least += sum(map(int, ((one[1:].reshape(-1, 1) * a + b) % prime).min(axis=0)))
        done = subprocess.run([os.path.join(os.path.dirname(TOKMAP), "tokmap-bench"), "--child", "signatures", "compare",
                               "parts", self.path("shingles")], stdout=subprocess.PIPE, check=True)
        self.assertEqual(json.loads(done.stdout)["equal"], least % 2**64)

    def test_copies(self):
        """Which documents come again, and where."""
        copies = module("packing.copies")
        texts = [f"text {number}" for number in range(2500)]
        found = list(copies.with_copies(texts))
        self.assertEqual([text for text, kind in found if not kind], texts)
        exact = [text for text, kind in found if kind == "exact"]
        self.assertEqual(exact, texts[3::10])
        near = [text for text, kind in found if kind == "near"]
        self.assertEqual(near, [one + copies.CHANGED for one in texts[7::10]])
        places = {}
        for place, (text, _) in enumerate(found):
            places.setdefault(text, []).append(place)
        self.assertTrue(all(0 < places[text][1] - places[text][0] <= 1200 for text in exact))

    @needs("numpy")
    def test_prepared_documents(self):
        """Documents are compared whatever their order: those of a split, and those of two files of datatrove."""
        import numpy
        copies = module("packing.copies")
        with open(self.path("text.jsonl"), "w", encoding="utf-8") as file:
            for number in range(50):
                file.write(json.dumps({"text": f"document {number % 40}"}) + "\n")
        subprocess.run([TOKMAP, "pack", "-q", "--no-eod", "--dedup", "exact", "--shuffle", "7", "--split",
                        "train=0.8,val=0.2", "-o", self.path("out"), self.path("text.jsonl")], check=True)
        os.mkdir(self.path("theirs"))
        documents = [f"document {number}".encode() for number in reversed(range(40))]

        def write(name, some):
            numpy.frombuffer(b"".join(some), "u1").astype("<u2").tofile(self.path(f"theirs/{name}.ds"))
            numpy.cumsum([len(one) for one in some]).astype("<u8").tofile(self.path(f"theirs/{name}.ds.index"))

        write("0", documents[:15])
        write("1", documents[15:])
        self.assertEqual(copies.do_compare(self.path("out"), self.path("theirs"), 2),
                         {"ours": 40, "theirs": 40, "only_ours": 0, "only_theirs": 0})
        write("1", documents[15:-1] + documents[:1])
        self.assertEqual(copies.do_compare(self.path("out"), self.path("theirs"), 2),
                         {"ours": 40, "theirs": 40, "only_ours": 1, "only_theirs": 1})

    def test_memory_of_a_short_process(self):
        """A process that ends before its memory is looked at does not count as 0 bytes."""
        memory = module("tables.pack").Memory(())
        process = subprocess.Popen(["true"])
        while not memory.has_ended(process):
            time.sleep(0.001)
        self.assertEqual(process.wait(), 0)
        self.assertGreater(memory.peak, 1 << 16)

    def test_pack_refuses(self):
        ranks_file(self.path("own.tiktoken"))
        for text, arguments in (("not a file", ["--text", self.path("none"), "--tokenizer", self.path("own.tiktoken")]),
                                ("--tokenizer", []),
                                ("no packer 'x'", ["--text-bytes", "1000", "--tokenizer", self.path("own.tiktoken"),
                                                   "--pattern", "gpt2", "--peers", "x"])):
            with self.assertRaises(AssertionError) as raised:
                lines_of(["pack", *arguments])
            self.assertIn(text, str(raised.exception))

    def test_text_of_the_machine(self):
        """Its files, plain and compressed, once each, without what is not text; then random words."""
        inputs = module("packing.inputs")
        contents = {"one.txt": b"some text " * 20000, "two.md": "\u00e9".encode() * 1000, "same.txt": b"some text " * 20000,
                    "three.gz": gzip.compress(b"compressed " * 1000), "four.txt": b"\xff\xfe\0 no text"}
        for name, content in contents.items():
            with open(self.path(name), "wb") as file:
                file.write(content)
        kept, inputs._files = inputs._files, lambda: [self.path(name) for name in contents]
        try:
            said = inputs.make(self.path("made.jsonl"), 300_000)
        finally:
            inputs._files = kept
        texts = list(inputs.texts(self.path("made.jsonl"), "text"))
        self.assertEqual([text[:10] for text in texts[:3]], ["some text ", "\u00e9" * 10, "compressed"])
        self.assertEqual(len(texts[0]), 64 << 10)
        self.assertGreaterEqual(sum(len(text.encode()) for text in texts), 300_000)
        self.assertIn("(3 files, ", said)
        self.assertIn("random words", said)
        files, documents, size = inputs.cut(self.path("made.jsonl"), "text", 100_000, self.path("part"), 2)
        parts = [text for name in files for text in inputs.texts(name, "text")]
        self.assertEqual((parts, documents), (texts[:documents], len(parts)))
        self.assertGreaterEqual(size, 100_000)

    def test_start(self):
        """A dataset; a size that the file system cannot hold is a sentence, not a figure."""
        found = lines_of(["start", "--sparse", f"20000={self.pack()}", "--sparse", "40000=", "--peers", "tokmap",
                          "--repeats", "2", "--rows", "2", "--seq-len", "64"])
        rows = {(line[2], line[3]): line[6].split(",") for line in found if line[0] == "row"}
        self.assertEqual(set(rows), {("tokmap, 1 rank", metric) for metric in ("2e04", "imports")})
        self.assertTrue(all(len(values) == 2 for values in rows.values()))
        notes = " ".join(line[1] for line in found if line[0] == "note")
        self.assertIn("4e04 tokens were not measured: this file system cannot hold", notes)

    @needs("numpy")
    def test_index_of_megatron(self):
        """What write_index() writes is what tokmap reads as Megatron's format."""
        count = (1 << 20) * 2 + 77
        with open(self.path("m.bin"), "wb") as file:
            file.truncate(2 * count)
        module("tables.start").write_index(self.path("m.idx"), count)
        with tokmap.Dataset("megatron:" + self.path("m")) as dataset:
            self.assertEqual([len(dataset[number]) for number in range(len(dataset))], [1 << 20, 1 << 20, 77])


if __name__ == "__main__":
    unittest.main()
