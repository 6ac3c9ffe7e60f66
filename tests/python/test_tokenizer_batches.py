# SPDX-License-Identifier: MIT
"""Tokenizer.encode_batch() and its relatives: lists, Arrow arrays of several libraries, offsets, tiktoken's names."""
import ctypes
import os
import pickle
import random
import unicodedata
import unittest

import tokmap
from tokmap.errors import class_of
from support import importable, needs, new_folder
from test_tokenizer import small, vocabularies
from tokmap import _arrow

POOL = ["hello world", "  two", "\n\n", "caf\u00e9", "cafe\u0301", "e\u0301\u0301", "\u4e2d\u6587", "\U0001f600",
        "\ud55c\uad6d", "\u1112", "\u1161", "\u2581", "\u2581\u2581x", " ", "\t", "123456", "It's", "<|endoftext|>",
        "<s>", "</s>", "<unk>", "<0x41>", "\ufb01", "\u212b", "\u0344", "\xa0", "\u3000", "\0", "\U0001d160", "..."]


def random_text(chance):
    return "".join(chance.choice(POOL) + chance.choice(("", " ", "")) for _ in range(chance.randrange(12)))


def lists(batch):
    return [list(map(int, ids)) for ids in batch]


class Batches(unittest.TestCase):
    def setUp(self):
        self.tokenizer = tokmap.Tokenizer(small(new_folder()))
        chance = random.Random(5)
        self.texts = ["".join(chance.choice("abcdef ") for _ in range(chance.choice((0, 1, 50, 3000))))
                      for _ in range(300)]
        self.wanted = [self.tokenizer.encode(text) for text in self.texts]

    def test_lists(self):
        for threads in (1, 2, 5, None):
            self.assertEqual(lists(self.tokenizer.encode_batch(self.texts, threads=threads)), self.wanted)
        self.assertEqual(lists(self.tokenizer.encode_batch(iter(self.texts))), self.wanted)
        self.assertEqual(lists(self.tokenizer.encode_batch([text.encode() for text in self.texts])), self.wanted)
        self.assertEqual(lists(self.tokenizer.encode_ordinary_batch(self.texts, num_threads=2)), self.wanted)
        self.assertEqual(self.tokenizer.encode_batch([]), [])
        self.assertEqual(lists(self.tokenizer.encode_batch([""])), [[]])

    def test_flat(self):
        flat = self.tokenizer.encode_batch(self.texts, flat=True, bos=10, eod=True, dtype="int64")
        self.assertEqual(len(flat), 300)
        self.assertEqual(lists(flat), [[10, *ids, 10] for ids in self.wanted])
        self.assertEqual(list(flat[-1]), [10, *self.wanted[-1], 10])
        self.assertIsNone(flat.begins)
        with self.assertRaises(IndexError):
            flat[300]
        self.assertEqual(self.tokenizer.decode_batch(flat, threads=3), self.texts)

    def test_long_text(self):
        """A text that several threads share has the ids of the whole."""
        text = "".join(self.texts) * 30
        self.assertGreater(len(text), 2 << 20)
        self.assertEqual(lists(self.tokenizer.encode_batch(["a", text, "b"], threads=4)),
                         [self.tokenizer.encode(some) for some in ("a", text, "b")])

    def test_decode(self):
        self.assertEqual(self.tokenizer.decode_batch(self.wanted, threads=2),
                         [self.tokenizer.decode(ids) for ids in self.wanted])
        self.assertEqual(self.tokenizer.decode_batch([[2, 10], []], specials=True), ["a<eos>", ""])
        self.assertEqual(self.tokenizer.decode_batch([[2, 10]], skip_special_tokens=True), ["a"])
        with self.assertRaisesRegex(class_of("ERROR_TOKEN"), r"document 1: ids\[2\] is 77"):
            self.tokenizer.decode_batch([[1], [2, 77]])

    def test_misuse(self):
        with self.assertRaisesRegex(tokmap.ArgumentError, "one text"):
            self.tokenizer.encode_batch("abc")
        with self.assertRaisesRegex(tokmap.ArgumentError, "text 1 is int"):
            self.tokenizer.encode_batch(["a", 5])
        with self.assertRaisesRegex(class_of("ERROR_ENCODING"), r"text 2 is not UTF-8 \(byte 1\)"):
            self.tokenizer.encode_batch(["a", "b", "c\ud800", "\ud800"], threads=2)
        with self.assertRaisesRegex(tokmap.ArgumentError, "dtype is 'int8'"):
            self.tokenizer.encode_batch(["a"], dtype="int8")
        with self.assertRaisesRegex(tokmap.ArgumentError, "names no BOS"):
            self.tokenizer.encode_batch(["a"], bos=True)
        with self.assertRaisesRegex(tokmap.ArgumentError, "eod is 11, but the ids"):
            self.tokenizer.encode_batch(["a"], eod=11)
        with self.assertRaisesRegex(tokmap.ArgumentError, "needs flat=True"):
            self.tokenizer.encode_batch(["a"], offsets=True)

    def test_special_tokens(self):
        tokenizer = self.tokenizer
        self.assertEqual(tokenizer.special_tokens, {"<eos>": 10})
        self.assertEqual(tokenizer.added_tokens, {"\u2581\u2581": 9, "<eos>": 10})
        as_text = tokenizer.encode("a<eos>")
        self.assertEqual(tokenizer.encode("a<eos>", allowed_special="all"), [2, 10])
        self.assertEqual(tokenizer.encode("a<eos>", allowed_special={"<eos>"}), [2, 10])
        self.assertEqual(tokenizer.encode("a<eos>", disallowed_special=()), as_text)
        for call in (tokenizer.encode, lambda text, **how: tokenizer.encode_batch([text], **how)):
            with self.assertRaisesRegex(ValueError, "contains the special token '<eos>'"):
                call("a<eos>", allowed_special=set())
        self.assertEqual(lists(tokenizer.encode_batch(["a<eos>"], allowed_special="all")), [[2, 10]])
        recognizing = tokmap.Tokenizer(tokenizer.path, special="recognize")
        self.assertEqual(recognizing.encode_ordinary("a<eos>"), as_text)
        recognizing.close()
        with self.assertRaisesRegex(tokmap.ArgumentError, "is closed"):
            recognizing.encode_ordinary("a")

    def test_tiktoken_names(self):
        tokenizer = self.tokenizer
        self.assertEqual((tokenizer.n_vocab, tokenizer.max_token_value, tokenizer.eot_token), (11, 10, 10))
        self.assertEqual(tokenizer.special_tokens_set, {"<eos>"})
        self.assertEqual(tokenizer.encode_single_token("<eos>"), 10)
        self.assertEqual(tokenizer.decode_single_token_bytes(2), b"a")
        self.assertEqual(tokenizer.decode_bytes([2, 10]), b"a<eos>")
        with self.assertRaises(KeyError):
            tokenizer.encode_single_token("none")

    def test_pickle(self):
        """A vocabulary that has changed since is refused."""
        stored = pickle.dumps(self.tokenizer)
        self.assertEqual(pickle.loads(stored).encode("ab"), [2, 3])
        small(os.path.dirname(self.tokenizer.path), added=[{"id": 11, "content": "f", "special": False,
              "single_word": True, "lstrip": False, "rstrip": False, "normalized": False}])
        with self.assertRaisesRegex(class_of("ERROR_MISMATCH"), "was pickled with the fingerprint"):
            pickle.loads(stored)


class Arrow(unittest.TestCase):
    def setUp(self):
        self.tokenizer = tokmap.Tokenizer(small(new_folder()))
        self.texts = ["ab cd", "", "f" * 40, "a b", " \u00e9"] * 4
        self.wanted = [self.tokenizer.encode(text) for text in self.texts]

    @needs("pyarrow")
    def test_pyarrow(self):
        import pyarrow
        kinds = [pyarrow.string(), pyarrow.large_string(), pyarrow.binary(), pyarrow.large_binary()]
        kinds += [pyarrow.string_view(), pyarrow.binary_view()] if hasattr(pyarrow, "string_view") else []
        for kind in kinds:
            array = pyarrow.array(self.texts, kind)
            chunks = pyarrow.chunked_array([array[:3], array[3:3], array[3:11], array[11:]])
            table = pyarrow.table({"text": array, "n": list(range(20))})
            self.assertEqual(lists(self.tokenizer.encode_batch(array)), self.wanted)
            self.assertEqual(lists(self.tokenizer.encode_batch(array[3:9])), self.wanted[3:9])
            self.assertEqual(lists(self.tokenizer.encode_batch(chunks, threads=2)), self.wanted)
            self.assertEqual(lists(self.tokenizer.encode_batch(table, field="text")), self.wanted)
        with self.assertRaisesRegex(tokmap.InputError, "text 2 of the array is null"):
            self.tokenizer.encode_batch(pyarrow.array(["a", "b", None]))
        with self.assertRaisesRegex(class_of("ERROR_UNSUPPORTED"), "has the Arrow type 'l'"):
            self.tokenizer.encode_batch(pyarrow.array([1]))
        coded = pyarrow.array(["a", "b"]).dictionary_encode()
        for words in coded, pyarrow.table({"x": coded}):
            with self.assertRaisesRegex(class_of("ERROR_UNSUPPORTED"), "Arrow type 'dictionary'.*categories of pandas"):
                self.tokenizer.encode_batch(words)
        with self.assertRaisesRegex(tokmap.ArgumentError, "several columns.*'text', 'n'"):
            self.tokenizer.encode_batch(table)
        with self.assertRaisesRegex(tokmap.ArgumentError, "no column 'x'"):
            self.tokenizer.encode_batch(table, field="x")

    @needs("polars")
    def test_polars(self):
        import polars
        self.assertEqual(lists(self.tokenizer.encode_batch(polars.Series(self.texts))), self.wanted)
        self.assertEqual(lists(self.tokenizer.encode_batch(polars.DataFrame({"text": self.texts}))), self.wanted)

    def test_what_is_not_read_yet(self):
        """As Polars' own class, which has none of Arrow's methods."""
        lazy = type("LazyFrame", (), {"collect": None})()
        for read in self.tokenizer.encode_batch, lambda frame: tokmap.pack(frame, os.path.join(new_folder(), "out")):
            with self.assertRaisesRegex(tokmap.ArgumentError, r"a LazyFrame has no rows .*its method collect\(\)"):
                read(lazy)

    @needs("duckdb")
    def test_duckdb(self):
        import duckdb
        relation = duckdb.sql("select case when i % 2 = 0 then 'ab cd' else 'f' end as text from range(5000) t(i)")
        self.assertEqual(lists(self.tokenizer.encode_batch(relation)), [self.tokenizer.encode(text) for text in
                                                                        ("ab cd", "f")] * 2500)

    def test_release(self):
        """Every struct is released once, also if encoding fails or a view is hostile."""
        for texts, error in ((["ab", "c"], None), (["ab", "c\ud800"], class_of("ERROR_ENCODING"))):
            made = Counting(texts)
            if error:
                with self.assertRaises(error):
                    self.tokenizer.encode_batch(made)
            else:
                self.assertEqual(lists(self.tokenizer.encode_batch(made)), [[2, 3], [4]])
            self.assertEqual(made.released, {"schema": 1, "array": 1})
        made = Counting(["a", "b"])
        made.offsets[1] = -7
        with self.assertRaisesRegex(tokmap.ArgumentError, "text 0: its offsets are negative, or descend"):
            self.tokenizer.encode_batch(made)
        self.assertEqual(made.released, {"schema": 1, "array": 1})


class Counting:
    """An Arrow array that counts how often it is released."""

    def __init__(self, texts):
        data = [text.encode("utf-8", "surrogatepass") for text in texts]
        self.released = {"schema": 0, "array": 0}
        self.data = ctypes.create_string_buffer(b"".join(data))
        self.offsets = (ctypes.c_int32 * (len(data) + 1))(0)
        for index, text in enumerate(data):
            self.offsets[index + 1] = self.offsets[index] + len(text)
        self.buffers = (ctypes.c_void_p * 3)(None, ctypes.addressof(self.offsets), ctypes.addressof(self.data))
        self.keep = [_arrow._RELEASE_SCHEMA(lambda at: self.release("schema", at)),
                     _arrow._RELEASE_ARRAY(lambda at: self.release("array", at))]
        self.schema = _arrow.ArrowSchema(format=b"u", release=self.keep[0])
        self.array = _arrow.ArrowArray(length=len(data), n_buffers=3, release=self.keep[1],
                                       buffers=ctypes.cast(self.buffers, ctypes.POINTER(ctypes.c_void_p)))

    def release(self, name, at):
        self.released[name] += 1
        at.contents.release = type(at.contents.release)()

    def __arrow_c_array__(self, requested_schema=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return (new(ctypes.addressof(self.schema), b"arrow_schema", None),
                new(ctypes.addressof(self.array), b"arrow_array", None))


class Offsets(unittest.TestCase):
    def check_shape(self, text, offsets):
        last = (0, 0)
        for begin, end in offsets:
            self.assertTrue(last[0] <= begin <= end <= len(text.encode()) and last[1] <= end, (text, offsets))
            last = (begin, end)

    def test_small(self):
        tokenizer = tokmap.Tokenizer(small(new_folder()), special="recognize")
        self.assertEqual(tokenizer.encode_with_offsets("a a<eos> \u00e9\u00e9b"),
                         ([2, 8, 10, 1, 0, 3], [(0, 1), (1, 3), (3, 8), (8, 9), (9, 13), (13, 14)]))
        self.assertEqual(tokenizer.encode_with_offsets("\u00e9b", unit="characters"), ([0, 3], [(0, 1), (1, 2)]))
        flat = tokenizer.encode_batch(["ab", "c"], flat=True, offsets=True, eod=True)
        self.assertEqual((list(flat.begins), list(flat.ends)), ([0, 1, 2, 0, 1], [1, 2, 2, 1, 1]))

    @needs("tokenizers")
    def test_hugging_face(self):
        """Offsets in characters are those of Hugging Face tokenizers, with two exceptions: a space that the vocabulary
        puts before a text is empty here and has the first character there; and a character that normalizing composes
        ends here after its last mark, there after its base letter."""
        import tokenizers
        vocab = vocabularies()
        if vocab is None:
            self.skipTest("the real vocabularies are not there")
        for name in ("gpt2", "gpt_neox_20b", "llama3", "llama2", "gemma", "deepseek_v3", "mistral_nemo", "qwen2.5"):
            for special in ("text", "recognize"):
                path = os.path.join(vocab, name, "tokenizer.json")
                tokenizer = tokmap.Tokenizer(path, special=special)
                reference = tokenizers.Tokenizer.from_file(path)
                reference.post_processor = tokenizers.processors.ByteLevel(trim_offsets=False)
                reference.encode_special_tokens = special == "text"
                chance = random.Random(name)
                for _ in range(150):
                    self.compare(tokenizer, reference, random_text(chance))

    def compare(self, tokenizer, reference, text):
        wanted = reference.encode(text, add_special_tokens=False)
        ids, offsets = tokenizer.encode_with_offsets(text, unit="characters")
        self.assertEqual(ids, wanted.ids)
        self.check_shape(text, tokenizer.encode_with_offsets(text)[1])
        for number, (own, other) in enumerate(zip(offsets, wanted.offsets)):
            if own == other or (own == (0, 0) and other == (0, 1) and number == 0):
                continue
            part = text[own[0]:own[1]]
            self.assertNotEqual(unicodedata.normalize("NFC", part), part, (text, own, other))
            self.assertTrue(own[0] <= other[0] and other[1] <= own[1], (text, own, other))

    @needs("sentencepiece")
    def test_sentencepiece(self):
        """Offsets in bytes are those of SentencePiece, which gives all bytes of a character to its last byte token."""
        reason = importable("google.protobuf")
        vocab = vocabularies()
        if vocab is None or reason:
            self.skipTest(reason or "the real vocabularies are not there")
        import sentencepiece
        chance = random.Random(3)
        for name in ("llama2", "mistral7b_v1"):
            path = os.path.join(vocab, name, "tokenizer.model")
            tokenizer, reference = tokmap.Tokenizer(path), sentencepiece.SentencePieceProcessor(model_file=path)
            for _ in range(300):
                text = random_text(chance).replace("\0", "")
                pieces = reference.encode(text, return_type="proto").pieces if text else []
                ids, offsets = tokenizer.encode_with_offsets(text)
                self.assertEqual(ids, [piece.id for piece in pieces])
                self.check_shape(text, offsets)
                for own, piece in zip(offsets, pieces):
                    if not piece.piece.startswith("<0x"):
                        self.assertEqual(own, (piece.begin, piece.end), text)


if __name__ == "__main__":
    unittest.main()
