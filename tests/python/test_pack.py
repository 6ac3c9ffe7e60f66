"""tokmap.pack(): the shards of lists, records, and Arrow tables are those that the command packs from files."""
import json
import os
import pathlib
import unittest

import tokmap
from support import needs, new_folder
from test_tokenizer import small


class Pack(unittest.TestCase):
    def setUp(self):
        self.folder = new_folder()
        self.tokenizer = tokmap.Tokenizer(small(self.folder))
        self.records = [{"text": " ab cdef"[:i % 9] * (i % 4), "n": i, "meta": {"url": f"u{i % 3}"},
                         "prompt": "ab"[:i % 3], "completion": "cdef"[:i % 5], "ids": [i % 9, 2, 3], "mask": [1, 0, 1]}
                        for i in range(500)]
        self.source = self.at("in.jsonl")
        with open(self.source, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in self.records)

    def at(self, name):
        return os.path.join(self.folder, name)

    def same(self, sources, **options):
        """Every source gives the files that the command makes."""
        wanted = tokmap.pack(self.source, self.at("command"), tokenizer=self.tokenizer, progress=False, force=True,
                             **options)
        for number, source in enumerate(sources):
            made = tokmap.pack(source, self.at(f"made{number}"), tokenizer=self.tokenizer, force=True, **options)
            self.assertEqual((made.documents, made.tokens, made.content, made.skipped),
                             (wanted.documents, wanted.tokens, wanted.content, wanted.skipped))
            for end in (".bin", ".mask"):
                self.assertEqual(os.path.exists(made.path + end), os.path.exists(wanted.path + end))
                if os.path.exists(made.path + end):
                    self.assertEqual(pathlib.Path(made.path + end).read_bytes(),
                                     pathlib.Path(wanted.path + end).read_bytes())
            with tokmap.Dataset(made.path) as mine, tokmap.Dataset(wanted.path) as other:
                self.assertEqual(mine.info.tokenizer, other.info.tokenizer)
                self.assertEqual([mine.document(i)[:2] for i in range(made.documents)],
                                 [other.document(i)[:2] for i in range(made.documents)])
        return made

    def test_texts(self):
        texts = [record["text"] for record in self.records]
        made = self.same([texts, iter(texts), [text.encode() for text in texts], self.records, iter(self.records)])
        self.assertRegex(repr(made), r"^<tokmap Packed .*: 500 documents, \d+ tokens, content [0-9a-f]{32}>$")
        self.same([texts], threads=1, eod=False)
        self.same([texts, self.records], min_tokens=3, max_tokens=9)
        self.assertEqual(tokmap.pack([], self.at("none"), tokenizer="bytes").documents, 0)

    def test_fields(self):
        self.same([self.records], ids_field="ids")
        self.same([self.records], ids_field="ids", mask_field="mask")
        self.same([self.records], prompt_field="prompt", completion_field="completion")
        self.same([self.records], prompt_field="prompt", completion_field="completion", eod=False)
        self.same([self.records], field="meta.url")

    def test_columns(self):
        made = tokmap.pack(self.records, self.at("columns"), tokenizer=self.tokenizer, columns=["n", "meta.url"])
        with tokmap.Dataset(made.path) as dataset:
            self.assertIn("meta.url", repr(dataset.columns))

    @needs("pyarrow")
    def test_pyarrow(self):
        import pyarrow
        table = pyarrow.Table.from_pylist(self.records)
        self.same([table, table.select(["text"]).to_reader(max_chunksize=37)])
        self.same([table], prompt_field="prompt", completion_field="completion")
        self.same([table], ids_field="ids", mask_field="mask")
        nulls = pyarrow.table({"text": ["ab", None, "cd"]})
        with self.assertRaisesRegex(tokmap.InputError, "document 1 is null"):
            tokmap.pack(nulls, self.at("nulls"), tokenizer=self.tokenizer)
        made = tokmap.pack(nulls, self.at("nulls"), tokenizer=self.tokenizer, on_error="skip")
        self.assertEqual((made.documents, made.skipped), (2, 1))

    @needs("polars")
    def test_polars(self):
        import polars
        table = polars.DataFrame([{"text": record["text"], "n": record["n"]} for record in self.records])
        self.same([table, table["text"], table.select("text")])

    def test_bad_documents(self):
        some = ["ab", "c\ud800", 5, b"\xff", {"other": 1}, "cd"]
        for source, message in ((some[:2], "text 1 is not UTF-8"), (some[2:3], "document 0 is int"),
                                (some[4:5], "document 0 has no field 'text'; its fields are: 'other'")):
            with self.assertRaisesRegex(tokmap.TokmapError, message):
                tokmap.pack(source, self.at("bad"), tokenizer=self.tokenizer)
        made = tokmap.pack(some, self.at("good"), tokenizer=self.tokenizer, on_error="skip")
        self.assertEqual((made.documents, made.skipped), (2, 4))
        self.assertEqual([name for name in os.listdir(self.folder) if "bad" in name], [])

    def test_misuse(self):
        for options, message in (({"on_error": "maybe"}, "on_error"), ({"field": "a", "ids_field": "b"}, "exclude"),
                                 ({"prompt_field": "a"}, "belong together"), ({"mask_field": "a"}, "needs ids_field"),
                                 ({"input_format": "csv"}, "are for files"), ({"bos": True}, "names no BOS"),
                                 ({"eod": "nothing"}, "not a special token")):
            with self.assertRaisesRegex(tokmap.ArgumentError, message):
                tokmap.pack(["a"], self.at("bad"), tokenizer=self.tokenizer, **options)
        with self.assertRaisesRegex(tokmap.TokmapError, "no-such-file"):
            tokmap.pack(self.at("no-such-file"), self.at("bad"), progress=False)
        tokmap.pack(["a"], self.at("twice"))
        with self.assertRaises(FileExistsError):
            tokmap.pack(["a"], self.at("twice"))

    def test_interrupt(self):
        before = sorted(os.listdir(self.folder))

        def documents():
            yield from (record["text"] for record in self.records * 40)
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            tokmap.pack(documents(), self.at("cut"), tokenizer=self.tokenizer)
        self.assertEqual(sorted(os.listdir(self.folder)), before)


if __name__ == "__main__":
    unittest.main()
