# SPDX-License-Identifier: MIT
"""tokmap.pack(): the shards of lists, records, and Arrow tables are those that the command packs from files."""
import array
import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest
import warnings
from unittest import mock

import tokmap
from tokmap.errors import class_of
from tokmap import _arrow
from tokmap.hints import FileOptions
from tokmap.pack import _Feed
from support import TOKMAP, needs, new_folder
from test_tokenizer import small, vocabularies

SHARED = vocabularies()


class Stream:
    """Texts as an Arrow stream of chunks, made with ctypes. get_next fails at one chunk if asked to."""

    def __init__(self, chunks, fail_at):
        self.released = {"schema": 0, "array": 0, "stream": 0}
        self.kept, self.at = [], 0
        self.stream = _arrow.ArrowArrayStream()

        def release(kind):
            def called(pointer):
                self.released[kind] += 1
                pointer.contents.release = type(pointer.contents.release)()
            return called

        release_schema = type(_arrow.ArrowSchema().release)(release("schema"))
        release_array = type(_arrow.ArrowArray().release)(release("array"))

        def get_schema(_, out):
            out.contents.format, out.contents.name, out.contents.release = b"u", b"", release_schema
            return 0

        def get_next(_, out):
            if self.at == fail_at:
                return 5
            if self.at == len(chunks):
                out.contents.release = type(release_array)()
                return 0
            texts = [text.encode() for text in chunks[self.at]]
            ends = [sum(map(len, texts[:i])) for i in range(len(texts) + 1)]
            offsets, data = (ctypes.c_int32 * len(ends))(*ends), ctypes.create_string_buffer(b"".join(texts))
            buffers = (ctypes.c_void_p * 3)(None, ctypes.addressof(offsets), ctypes.addressof(data))
            self.kept.append((offsets, data, buffers))
            array = out.contents
            array.length, array.n_buffers, array.release = len(texts), 3, release_array
            array.buffers = ctypes.cast(buffers, ctypes.POINTER(ctypes.c_void_p))
            self.at += 1
            return 0

        fields = dict(_arrow.ArrowArrayStream._fields_)
        self.stream.get_schema = fields["get_schema"](get_schema)
        self.stream.get_next = fields["get_next"](get_next)
        self.message = ctypes.create_string_buffer(b"the disk is on fire")
        self.last_error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: ctypes.addressof(self.message))
        self.stream.get_last_error = ctypes.cast(self.last_error, fields["get_last_error"])
        self.stream.release = fields["release"](release("stream"))

    def __arrow_c_stream__(self, requested_schema=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.stream), b"arrow_array_stream", None)


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
            self.assertEqual(self.totals(made.path), self.totals(wanted.path))
            with tokmap.Dataset(made.path) as mine, tokmap.Dataset(wanted.path) as other:
                self.assertEqual(mine.info.tokenizer, other.info.tokenizer)
                self.assertEqual([mine.document(i)[:2] for i in range(made.documents)],
                                 [other.document(i)[:2] for i in range(made.documents)])
        return made

    def totals(self, path):
        """What an index says of the whole shard; the command's says more, about its files."""
        with tokmap.Dataset(path) as dataset:
            totals = json.loads(dataset.shard(0).about)["totals"]
        return {name: totals.get(name) for name in ("documents", "tokens", "text_bytes", "records_skipped")}

    def test_texts(self):
        texts = [record["text"] for record in self.records]
        made = self.same([texts, iter(texts), [text.encode() for text in texts], self.records, iter(self.records)])
        self.assertRegex(repr(made), r"^<tokmap Packed .*: 500 documents, \d+ tokens, content [0-9a-f]{32}>$")
        self.same([texts], threads=1, eod=False)
        self.same([texts, self.records], min_tokens=3, max_tokens=9)
        plain = self.same([texts])
        made = self.same([texts, self.records], fim="0.5,spm=0.5", fim_seed=3, fim_tokens="0,1,2")
        self.assertGreater(made.tokens, plain.tokens)
        for nothing in [], iter([]):
            with self.assertRaisesRegex(tokmap.InputError, "the inputs contain no documents; pass documents"):
                tokmap.pack(nothing, self.at("none"), tokenizer="bytes")
        with self.assertRaisesRegex(tokmap.InputError, "the inputs contain no documents: 1 were left out"):
            tokmap.pack(["abc"], self.at("none"), tokenizer="bytes", min_tokens=1000)
        self.assertFalse([name for name in os.listdir(self.at(".")) if name.startswith("none")])

    def test_names_of_files_are_no_texts(self):
        """A list as glob.glob() makes it would pack the names, without a word."""
        for names in [self.source], (self.source, self.at(".")), ["s3://crawl/a.jsonl"]:
            with self.assertRaisesRegex(tokmap.ArgumentError, "is the name of a file, such as .*pass .pathlib.Path"):
                tokmap.pack(names, self.at("names"), tokenizer="bytes")
        self.assertFalse(os.path.exists(self.at("names.bin")))
        self.assertEqual(tokmap.pack(iter([self.source]), self.at("names"), tokenizer="bytes", eod=False).tokens,
                         len(os.fsencode(self.source)))
        for texts in [self.source, "a text"], ["a\0b"], ["x" * 5000], ["see https://example.org"]:
            self.assertEqual(tokmap.pack(texts, self.at("texts"), tokenizer="bytes", force=True).documents, len(texts))

    def test_a_dict_is_no_source(self):
        """Its keys would be packed, without a word."""
        for source in {"text": "abc"}, {"text": ["abc", "def"]}, os.environ:
            for options in {}, {"field": "text"}, {"messages_field": "text", "chat_template": "chatml"}:
                with self.assertRaisesRegex(class_of("ERROR_ARGUMENT", TypeError), "keys would be packed: pass a list of dicts"):
                    tokmap.pack(source, self.at("dict"), tokenizer="bytes", **options)
        self.assertTrue(issubclass(class_of("ERROR_ARGUMENT", TypeError), TypeError))
        self.assertFalse(os.path.exists(self.at("dict.bin")))

    def test_fields(self):
        self.same([self.records], ids_field="ids")
        self.same([self.records], ids_field="ids", mask_field="mask")
        self.same([self.records], prompt_field="prompt", completion_field="completion")
        self.same([self.records], prompt_field="prompt", completion_field="completion", eod=False)
        self.same([self.records], field="meta.url")

    def test_ids_that_have_their_eod(self):
        """An eod or a bos is not added twice; an added eod counts, an added bos does not."""
        rows = [[], [8], [7], [7, 8], [8, 7], [1, 8], [7, 1], [7, 1, 2, 8], [1, 2, 3]]
        self.records = [{"ids": row, "mask": [i % 2 for i in range(len(row))]} for row in rows * 3]
        with open(self.source, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in self.records)
        for borders in ({"eod": 8, "bos": 7}, {"eod": 8}, {"bos": 7}, {"eod": 8, "bos": 8}, {"eod": False}):
            self.same([self.records, iter(self.records)], ids_field="ids", **borders)
            self.same([self.records], ids_field="ids", mask_field="mask", **borders)
            self.same([self.records], ids_field="ids", mask_field="mask", min_tokens=1, max_tokens=2, **borders)

    def test_columns(self):
        made = tokmap.pack(self.records, self.at("columns"), tokenizer=self.tokenizer, columns=["n", "meta.url"])
        with tokmap.Dataset(made.path) as dataset:
            self.assertIn("meta.url", repr(dataset.columns))

    def test_columns_in_a_str(self):
        """A str has commas between names, whatever the source is. A name in a list may contain one, but the command
        would split it."""
        for number, source in enumerate([self.source, self.records, iter(self.records)]):
            made = tokmap.pack(source, self.at(f"str{number}"), tokenizer=self.tokenizer, columns="n,meta.url",
                               progress=False)
            with tokmap.Dataset(made.path) as dataset:
                self.assertEqual(dataset.columns, ("n", "meta.url"))
                self.assertEqual(dataset.values(4), {"n": 4, "meta.url": "u1"})
        for source in self.source, self.records:
            with self.assertRaisesRegex(tokmap.ArgumentError, "columns contains 'n,m', but .* splits names at commas"):
                tokmap.pack(source, self.at("files"), tokenizer=self.tokenizer, columns=["n,m"], progress=False)

    def test_empty_columns(self):
        """A field that no document of the shard has is a warning, which points at the caller, for every source."""
        def said(source, **options):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                tokmap.pack(source, self.at("empty"), tokenizer=self.tokenizer, force=True, progress=False, **options)
            self.assertEqual({warning.filename for warning in caught} - {__file__}, set())
            return [str(warning.message) for warning in caught]

        def empty(*names):
            return [f"no record has the field '{name}' of columns: its column is empty" for name in names]

        for source in self.source, self.records, iter(self.records):
            self.assertEqual(said(source, columns="nope,n,meta.none"), empty("nope", "meta.none"))
        self.assertEqual(said(self.records, columns=["n", "meta.url"]), [])
        self.assertEqual(said(self.records), [])
        self.assertEqual(said(["ab"], columns="n"), empty("n"))
        records = [{"text": "ab", "n": None}, {"text": "abcdef", "m": 1}, {"text": "cd", "k": {1}}]
        with open(self.source, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records[:2])
        for source in self.source, records[:2]:  # null is a value; documents that are left out have none
            self.assertEqual(said(source, columns="n,m", max_tokens=4), empty("m"))
        self.assertEqual(said(records, columns="n,m,k", on_error="skip"), empty("k"))
        with open(self.source + ".txt", "w", encoding="utf-8", newline="") as file:
            file.write("one\r\n\r\ntwo\r\n")
        warned = said(pathlib.Path(self.source + ".txt"), separator="\\n\\n")  # the command's own warnings
        self.assertEqual(len(warned), 1)
        self.assertRegex(warned[0], r"does not occur in '.*\.txt', which has CRLF line ends; .*\\r\\n\\r\\n")

    def test_missing_folders(self):
        """They are made for every source, and stay, as mkdir -p makes them."""
        deep = os.path.join(self.at("new"), "deep", "web")
        for source in self.source, self.records, iter(self.records):
            tokmap.pack(source, deep, tokenizer=self.tokenizer, progress=False)
            self.assertEqual(sorted(os.listdir(os.path.dirname(deep))), ["web.bin", "web.tmx"])
            shutil.rmtree(self.at("new"))
        for source in pathlib.Path(self.at("absent")), [], [{"text": 1}]:
            with self.assertRaises(tokmap.TokmapError):
                tokmap.pack(source, deep, tokenizer=self.tokenizer, progress=False)
            self.assertEqual(os.listdir(os.path.dirname(deep)), [])
            shutil.rmtree(self.at("new"))
        with open(self.at("file"), "w", encoding="utf-8"):
            pass
        for source in self.source, self.records:
            with self.assertRaises(tokmap.TokmapError):
                tokmap.pack(source, os.path.join(self.at("file"), "deep", "web"), tokenizer=self.tokenizer)

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

    @needs("pyarrow")
    def test_views(self):
        import pyarrow
        view = getattr(pyarrow, "string_view", None)
        if view is None:
            self.skipTest("this pyarrow has no string_view")
        texts = [record["text"] + "abcdefabcdef" * (i % 2) for i, record in enumerate(self.records)]
        plain = tokmap.pack(texts, self.at("plain"), tokenizer=self.tokenizer)
        made = tokmap.pack(pyarrow.array(texts, view()), self.at("views"), tokenizer=self.tokenizer)
        self.assertEqual((made.content, self.totals(made.path)), (plain.content, self.totals(plain.path)))

    @needs("duckdb")
    def test_duckdb(self):
        import duckdb
        table = duckdb.sql("select i, repeat('ab', (i % 7)::int) as text from range(300) rows(i) order by i")
        made = tokmap.pack(table, self.at("duck"), tokenizer=self.tokenizer)
        wanted = tokmap.pack(["ab" * (i % 7) for i in range(300)], self.at("plain"), tokenizer=self.tokenizer)
        self.assertEqual(made.content, wanted.content)

    @needs("datasets")
    def test_datasets(self):
        import datasets
        made = datasets.Dataset.from_list([{"text": record["text"], "n": record["n"]} for record in self.records])
        self.same([made, iter(made)])

    def stream(self, fail_at=None, chunks=6):
        """A stream of the Arrow C interface that counts what is released, without any library."""
        return Stream([["ab", "cd ef", ""]] * chunks, fail_at)

    def test_streams_are_released(self):
        stream = self.stream()
        made = tokmap.pack(stream, self.at("all"), tokenizer=self.tokenizer)
        wanted = tokmap.pack(["ab", "cd ef", ""] * 6, self.at("plain"), tokenizer=self.tokenizer)
        self.assertEqual((made.content, self.totals(made.path)), (wanted.content, self.totals(wanted.path)))
        self.assertEqual(stream.released, {"schema": 1, "array": 6, "stream": 1})
        before = sorted(os.listdir(self.folder))
        stream = self.stream(fail_at=3)
        with self.assertRaisesRegex(tokmap.InputError, "the disk is on fire"):
            tokmap.pack(stream, self.at("cut"), tokenizer=self.tokenizer)
        self.assertEqual(stream.released, {"schema": 1, "array": 3, "stream": 1})
        for problem in (KeyboardInterrupt, tokmap.InputError("full", status="ERROR_INPUT")):
            stream = self.stream()
            with mock.patch.object(_Feed, "add", side_effect=problem), \
                    self.assertRaises(type(problem) if isinstance(problem, Exception) else problem):
                tokmap.pack(stream, self.at("cut"), tokenizer=self.tokenizer)
            self.assertEqual(stream.released, {"schema": 1, "array": 1, "stream": 1})
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    @needs("polars")
    def test_polars(self):
        import polars
        table = polars.DataFrame([{"text": record["text"], "n": record["n"]} for record in self.records])
        self.same([table, table["text"], table.select("text")])

    def test_bad_documents(self):
        some = ["ab", "c\ud800", 5, b"\xff", {"other": 1}, "cd"]
        for source, message in ((some[:2], "document 1: the field 'text' is not UTF-8"), (some[2:3], "document 0 is int"),
                                (some[4:5], "document 0 has no field 'text'; its fields are: 'other'")):
            with self.assertRaisesRegex(tokmap.TokmapError, message):
                tokmap.pack(source, self.at("bad"), tokenizer=self.tokenizer)
        made = tokmap.pack(some, self.at("good"), tokenizer=self.tokenizer, on_error="skip")
        self.assertEqual((made.documents, made.skipped), (2, 4))
        self.assertEqual([name for name in os.listdir(self.folder) if "bad" in name], [])

    def test_bad_columns(self):
        deep = [[]]
        for _ in range(63):
            deep = [deep]
        records = [{"text": "ab", "n": value} for value in (1, {1, 2}, deep[0], deep, float("nan"), "x", b"a")]
        with self.assertRaisesRegex(tokmap.InputError, "document 1 cannot be written as JSON: set is not"):
            tokmap.pack(records, self.at("bad"), tokenizer=self.tokenizer, columns="n")
        made = tokmap.pack(records, self.at("good"), tokenizer=self.tokenizer, columns="n", on_error="skip")
        self.assertEqual((made.documents, made.skipped, made.tokens), (3, 4, 9))
        with tokmap.Dataset(made.path) as dataset:
            self.assertEqual([dataset.value(i, "n") for i in range(3)], [1, deep[0], "x"])
            self.assertEqual(json.loads(dataset.shard(0).about)["totals"]["text_bytes"], 6)

    def test_templates_of_other_libraries(self):
        class Chat:
            marks = True

            def apply_chat_template(self, messages, tokenize, return_dict, return_assistant_tokens_mask):
                roles = [message["role"] for message in messages]
                if roles[0] != "user":
                    raise RuntimeError("roles must alternate")
                return {"input_ids": [5 if role == "user" else 6 for role in roles],
                        "assistant_masks": [int(self.marks and role == "assistant") for role in roles]}

        turns = [{"messages": [{"role": role, "content": "x"} for role in roles]}
                 for roles in (["user", "assistant"], ["assistant"], ["user", "assistant", "user"])]
        chat = Chat()
        options = {"tokenizer": self.tokenizer, "messages_field": "messages", "chat_template": chat, "force": True}
        for eod, tokens, bits in ((None, [5, 6, 5, 6, 5], 0b01010), (6, [5, 6, 5, 6, 5, 6], 0b001010)):
            made = tokmap.pack(turns, self.at("chat"), on_error="skip", eod=eod, **options)
            self.assertEqual((made.documents, made.skipped), (2, 1))
            self.assertEqual(pathlib.Path(made.path + ".bin").read_bytes(), array.array("H", tokens).tobytes())
            self.assertEqual(pathlib.Path(made.path + ".mask").read_bytes(), bytes([bits]))
        with self.assertRaisesRegex(tokmap.InputError, "document 1: the chat template .*: roles must alternate"):
            tokmap.pack(turns, self.at("chat"), **options)
        beside = [{"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "x", "weight": 0},
                                {"role": "user", "content": "x"}, {"role": "assistant", "content": "x", "train": True}],
                   "tools": [{"name": "f"}], "chat_template_kwargs": {"mood": 1}, "id": 3}]
        with self.assertRaisesRegex(tokmap.InputError, "tools"):  # the method does not take them
            tokmap.pack(beside, self.at("chat"), **options)
        with mock.patch.object(Chat, "apply_chat_template", lambda self, messages, tools, mood, **more: {
                "input_ids": [5, 6, 5, tools[0]["name"] == "f" and mood], "assistant_masks": [0, 1, 0, 1]}):
            made = tokmap.pack(beside, self.at("chat"), **options)
            self.assertEqual(pathlib.Path(made.path + ".bin").read_bytes(), array.array("H", [5, 6, 5, 1]).tobytes())
            self.assertEqual(pathlib.Path(made.path + ".mask").read_bytes(), bytes([0b1000]))
            with self.assertRaisesRegex(tokmap.InputError, "does not write the key 'system'"):
                tokmap.pack([{**beside[0], "system": "s"}], self.at("chat"), **options)
            tokmap.pack([{**beside[0], "system": "s"}], self.at("chat"), ignore_fields="system", **options)
        chat.marks = False
        with self.assertRaisesRegex(tokmap.ArgumentError, "does not mark what the assistant says"):
            tokmap.pack(turns, self.at("chat"), on_error="skip", **options)

    def test_bad_ids(self):
        good = {"ids": [1, 2], "mask": [0, True]}
        for wrong, message in (({"ids": [1, 5000]}, "has the id 5000, which is not in the vocabulary"),
                               ({"ids": [-1, 2]}, "has the id -1, which is not"), ({"ids": [1, 2.5]}, "list of token"),
                               ({"ids": [1, 2 ** 70]}, "list of token"), ({"ids": "12"}, "list of token"),
                               ({"ids": None}, "list of token"), ({"mask": [1]}, "has 2 ids, but a mask of 1"),
                               ({"mask": [1, 2]}, "list of 0 and 1"), ({"mask": 2}, "list of 0 and 1")):
            records = [good, {**good, **wrong}, good]
            options = {"tokenizer": self.tokenizer, "ids_field": "ids", "mask_field": "mask"}
            with self.assertRaisesRegex(tokmap.InputError, "document 1.*" + message):
                tokmap.pack(records, self.at("bad"), **options)
            made = tokmap.pack(records, self.at("good"), on_error="skip", force=True, **options)
            self.assertEqual((made.documents, made.skipped), (2, 1), wrong)

    @unittest.skipIf(SHARED is None, "there are no real vocabularies here")
    def test_named_templates(self):
        turns = [{"messages": [{"role": "user", "content": f"How much is {i}?"},
                               {"role": "assistant", "content": "Six \u00e9\U0001f600"}]} for i in range(50)]
        source = self.at("chat.jsonl")
        with open(source, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(turn) + "\n" for turn in turns)
        for name, vocabulary in (("chatml", "qwen2.5"), ("llama3", "llama3")):
            options = {"tokenizer": os.path.join(SHARED, vocabulary), "messages_field": "messages",
                       "chat_template": name, "progress": False, "force": True}
            wanted = tokmap.pack(source, self.at("command"), **options)
            for documents in (turns, iter(turns)):
                made = tokmap.pack(documents, self.at("made"), **options)
                self.assertEqual((made.documents, made.tokens, made.content),
                                 (wanted.documents, wanted.tokens, wanted.content))
                self.assertEqual(pathlib.Path(made.path + ".mask").read_bytes(),
                                 pathlib.Path(wanted.path + ".mask").read_bytes())
        made = tokmap.pack([turns[0], {"messages": {1, 2}}, *turns[1:]], self.at("made"), on_error="skip", **options)
        self.assertEqual((made.documents, made.skipped, made.content), (len(turns), 1, wanted.content))
        with self.assertRaisesRegex(tokmap.InputError, "document 0 cannot be written as JSON"):
            tokmap.pack([{"messages": {1, 2}}], self.at("cut"), **options)
        before = sorted(os.listdir(self.folder))

        def broken():
            yield from turns
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            tokmap.pack(broken(), self.at("cut"), **options)
        with self.assertRaisesRegex(tokmap.TokmapError, "messages"):
            tokmap.pack([{"other": 1}], self.at("cut"), **options)
        with self.assertRaisesRegex(tokmap.ArgumentError, "a tokenizer of transformers, the name"):
            tokmap.pack(turns, self.at("cut"), **{**options, "chat_template": 5})
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_options_of_the_command(self):
        """The names that pack() knows are those in the command's help."""
        help = subprocess.run([TOKMAP, "pack", "--help-all"], check=True, capture_output=True, text=True).stdout
        names = {name.replace("-", "_") for name in re.findall(r"^ +(?:-., )?--([a-z0-9-]+)", help, re.M)}
        own = set(tokmap.pack.__kwdefaults__)
        self.assertEqual(names - own - {"output", "help", "help_all", "version"}, set(FileOptions.__annotations__))
        self.assertEqual(own - names, {"resume"})
        self.assertEqual(own & set(FileOptions.__annotations__), set())

    def test_misspelled_options(self):
        for source in ["a"], self.source:
            for name, message in (("tokenzier", "unknown option 'tokenzier'; did you mean 'tokenizer'?"),
                                  ("input_fromat", "unknown option 'input_fromat'; did you mean 'input_format'?"),
                                  ("max-tokens", "unknown option 'max-tokens'; did you mean 'max_tokens'?"),
                                  ("zzz", "unknown option 'zzz'"), ("output", "unknown option 'output'")):
                with self.assertRaises(tokmap.ArgumentError) as caught:
                    tokmap.pack(source, self.at("bad"), **{name: "x"})
                self.assertEqual(str(caught.exception), message)

    def test_misuse(self):
        for options, message in (({"on_error": "maybe"}, "on_error"), ({"field": "a", "ids_field": "b"}, "exclude"),
                                 ({"prompt_field": "a"}, "belong together"), ({"mask_field": "a"}, "need ids_field"),
                                 ({"labels_field": "a"}, "need ids_field"),
                                 ({"ids_field": "i", "labels_field": "a", "mask_field": "a"}, "exclude"),
                                 ({"input_format": "csv"}, "are for files"), ({"bos": True}, "names no BOS"),
                                 ({"eod": "nothing"}, "not a special token")):
            with self.assertRaisesRegex(tokmap.ArgumentError, message):
                tokmap.pack(["a"], self.at("bad"), tokenizer=self.tokenizer, **options)
        # What does not exist is a FileNotFoundError, and an InputError, too.
        absent = self.at("no-such-file")
        several = [pathlib.Path(self.source), pathlib.Path(absent)]
        for source, options in (absent, {}), (several, {}), (self.source, {"tokenizer": absent}):
            with self.assertRaisesRegex(class_of("ERROR_INPUT", FileNotFoundError), "no-such-file") as caught:
                tokmap.pack(source, self.at("bad"), progress=False, **options)
            self.assertIsInstance(caught.exception, FileNotFoundError)
            self.assertIsInstance(caught.exception, tokmap.InputError)
            self.assertEqual((caught.exception.path, caught.exception.status), (absent, "ERROR_NOT_FOUND"))
        with self.assertRaisesRegex(tokmap.InputError, "no file matches") as caught:
            tokmap.pack(self.at("no-such-*"), self.at("bad"), progress=False)
        self.assertNotIsInstance(caught.exception, FileNotFoundError)
        tokmap.pack(["a"], self.at("twice"))
        for source in ["a"], self.source:
            with self.assertRaisesRegex(FileExistsError, "already exists; choose another name, or pass force=True"):
                tokmap.pack(source, self.at("twice"), tokenizer=self.tokenizer, progress=False)

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
