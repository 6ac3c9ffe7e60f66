# SPDX-License-Identifier: MIT
"""Tokenizer, and the text of a batch's rows. Real vocabularies are those of the shared data, where it is there."""
import json
import os
import pickle
import shutil
import subprocess
import threading
import unittest
from array import array

import tokmap
from tokmap.errors import class_of
from support import BUILD_DIR, TOKMAP, TOP, needs, new_folder, pack, python

SHARED = os.path.join(os.path.dirname(TOP), "shared", "data", "vocab.tar.zst")


def vocabularies():
    """The folder of the real vocabularies: TOKMAP_DATA, or the shared archive, unpacked; None if neither is there."""
    for data in (os.environ.get("TOKMAP_DATA", ""), os.path.join(BUILD_DIR, "reference_data")):
        if os.path.isfile(os.path.join(data, "vocab", "patterns.json")):
            return os.path.join(data, "vocab")
    if not os.path.isfile(SHARED) or not shutil.which("zstd"):
        return None
    folder = new_folder()
    archive = subprocess.run(["zstd", "-qdc", SHARED], stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-xf", "-", "-C", folder], input=archive, check=True)
    return os.path.join(folder, "vocab")


def small(folder, name="tokenizer.json", added=()):
    """A tokenizer.json like those of Gemma: runs of the mark are added tokens."""
    path = os.path.join(folder, name)
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({
            "version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{"id": 9, "content": "\u2581\u2581", "special": False, **flags},
                             {"id": 10, "content": "<eos>", "special": True, **flags}, *added],
            "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
            "pre_tokenizer": None, "post_processor": None,
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
                {"type": "Fuse"}]},
            "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": False,
                      "vocab": {"<unk>": 0, "\u2581": 1, "a": 2, "b": 3, "c": 4, "d": 5, "e": 6, "f": 7,
                                "\u2581a": 8, "\u2581\u2581": 9, "<eos>": 10},
                      "merges": [["\u2581", "a"], ["\u2581", "\u2581"]]}}, file)
    return path


@needs("transformers")
class Trained(unittest.TestCase):
    def test_opened_by_transformers(self):
        """AutoTokenizer takes the folder of `train-tokenizer -o FOLDER/tokenizer`: class, special tokens, ids, text."""
        from transformers import AutoTokenizer
        text = os.path.join(new_folder(), "text.txt")
        with open(text, "w", encoding="utf-8") as file:
            file.write("".join(f"the whale number {i} swims past the ship, and the ship sails on\n" for i in range(200)))
        for names, special in (
                ("<|endoftext|>,<pad>,<|im_start|>", {"eos_token": "<|endoftext|>", "pad_token": "<pad>"}),
                ("<|user|>", {"eos_token": None}),
                ("</s>,<s>,<mask>", {"eos_token": "</s>", "bos_token": "<s>", "mask_token": "<mask>"}),
                ("[CLS],[SEP],[PAD]", {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]",
                                       "eos_token": None})):
            folder = new_folder()
            subprocess.run([TOKMAP, "train-tokenizer", "-q", "--vocab-size", "300", "--special-tokens", names, "-o",
                            os.path.join(folder, "tokenizer"), text], check=True)
            theirs = AutoTokenizer.from_pretrained(folder)
            for name, value in special.items():
                self.assertEqual(getattr(theirs, name), value, name)
            self.assertLessEqual(set(names.split(",")), set(theirs.all_special_tokens))
            with tokmap.Tokenizer(folder) as ours:
                self.assertEqual(len(theirs), ours.vocab_size)
                self.assertEqual(ours.eod_id, theirs.eos_token_id)
                ids = list(ours.encode("the whale past the ship"))
                self.assertEqual(theirs("the whale past the ship", add_special_tokens=False)["input_ids"], ids)


class OfFolder(unittest.TestCase):
    def test_note(self):
        """The note says what the command says of AutoTokenizer, in the same words."""
        folder = new_folder()
        small(folder)
        config = os.path.join(folder, "tokenizer_config.json")
        for name, differs in (("Siglip2Tokenizer", True), ("GemmaTokenizer", False)):
            with open(config, "w", encoding="utf-8") as file:
                json.dump({"tokenizer_class": name, "added_tokens_decoder": {}}, file)
            said = json.loads(subprocess.run([TOKMAP, "tokenizer", "--json", folder], check=True,
                                             stdout=subprocess.PIPE).stdout)["warnings"]
            with tokmap.Tokenizer(folder) as tokenizer:
                self.assertEqual(tokenizer.note, said[0] if differs else None)
                self.assertEqual(said, [
                    "AutoTokenizer of transformers 5 replaces steps of tokenizer.json by those of Siglip2Tokenizer, so "
                    "it gives other ids than the file and tokmap, such as for 'DON'T 12345'"] * differs)


class Bytes(unittest.TestCase):
    def setUp(self):
        self.tokenizer = tokmap.Tokenizer("bytes")
        self.addCleanup(self.tokenizer.close)

    def test_what_it_is(self):
        self.assertEqual((self.tokenizer.name, self.tokenizer.form, self.tokenizer.vocab_size), ("bytes", "built in", 257))
        self.assertEqual((self.tokenizer.eod_id, self.tokenizer.bos_id, self.tokenizer.note), (256, None, None))
        self.assertEqual(len(self.tokenizer), 257)
        self.assertRegex(self.tokenizer.fingerprint, "^[0-9a-f]{32}$")
        self.assertEqual(repr(self.tokenizer), "<tokmap.Tokenizer 'bytes': 257 ids, 'bytes'>")

    def test_encode_and_decode(self):
        self.assertEqual(self.tokenizer.encode("Hi\0\u00e9"), [72, 105, 0, 195, 169])
        self.assertEqual(self.tokenizer.encode(b"Hi"), [72, 105])
        self.assertEqual(self.tokenizer.encode(""), [])
        self.assertEqual(self.tokenizer.decode([72, 256, 105]), "Hi")
        self.assertEqual(self.tokenizer.decode([72, 256, 105], specials=True), "H<|endoftext|>i")
        self.assertEqual(self.tokenizer.decode([256] * 1000, specials=True), "<|endoftext|>" * 1000)
        self.assertEqual(self.tokenizer.decode(iter([72])), "H")
        self.assertEqual(self.tokenizer.decode([]), "")
        long = "\u4e2d" * 300000
        self.assertEqual(self.tokenizer.decode(self.tokenizer.encode(long)), long)

    def test_arrays(self):
        for text in ("", "Hi\0\u00e9", b"Hi", "\u4e2d" * 30000):
            wanted = self.tokenizer.encode(text)
            found = [self.tokenizer.encode_array(text), self.tokenizer.encode_to_numpy(text)]
            self.assertEqual([array.tolist() for array in found], [wanted, wanted])
            self.assertEqual([array.itemsize for array in found], [2, 2])
        for wrong in ([0] * 9, array("H", bytes(18))):
            with self.assertRaisesRegex(tokmap.ArgumentError, "out must be an array of NumPy"):
                self.tokenizer.encode_array("Hi", out=wrong)
        for text in (5, None):
            with self.assertRaisesRegex(tokmap.ArgumentError, "must be str or bytes"):
                self.tokenizer.encode_array(text)
        with self.assertRaisesRegex(tokmap.TokmapError, "UTF-8"):
            self.tokenizer.encode_array(b"a\xff")

    @needs("numpy")
    def test_arrays_of_the_caller(self):
        import numpy
        first, second = self.tokenizer.encode_array("first"), self.tokenizer.encode_array("other")
        self.assertEqual(bytes(first.astype("uint8")), b"first")  # an array of its own
        self.assertEqual(bytes(second.astype("uint8")), b"other")
        for name in ("uint16", "uint32", "int32", "uint64", "int64"):
            out = numpy.full(6, 7, name)
            part = self.tokenizer.encode_array("Hi", out=out)
            self.assertTrue(numpy.shares_memory(part, out))
            self.assertEqual((part.tolist(), out.tolist(), part.dtype), ([72, 105], [72, 105, 7, 7, 7, 7], out.dtype))
            self.assertEqual(self.tokenizer.encode_array("Hi", out=out[::2]).tolist(), [72, 105])
            with self.assertRaisesRegex(tokmap.ArgumentError, "the text has 7 ids, but out has room for 6"):
                self.tokenizer.encode_array("1234567", out=out)
        for wrong in (numpy.zeros(9, "uint8"), numpy.zeros((3, 3), "int64"), numpy.zeros(9, "float64")):
            with self.assertRaisesRegex(tokmap.ArgumentError, "out must be an array of NumPy"):
                self.tokenizer.encode_array("Hi", out=wrong)

    def test_tokens(self):
        self.assertEqual(self.tokenizer.id_to_token(0), b"\0")
        self.assertEqual(self.tokenizer.id_to_token(256), b"<|endoftext|>")
        self.assertEqual(self.tokenizer.token_to_id("<|endoftext|>"), 256)
        self.assertEqual(self.tokenizer.token_to_id(b"\xff"), 255)
        self.assertIsNone(self.tokenizer.token_to_id("no such token"))

    def test_misuse(self):
        with self.assertRaisesRegex(class_of("ERROR_ENCODING"), "not UTF-8"):
            self.tokenizer.encode("a\ud800")
        with self.assertRaisesRegex(class_of("ERROR_ENCODING"), "byte 1"):
            self.tokenizer.encode(b"a\xff")
        with self.assertRaisesRegex(class_of("ERROR_TOKEN"), r"ids\[1\] is 300"):
            self.tokenizer.decode([72, 300])
        for ids in ([-1], [2 ** 32], ["a"], [[1]], 5, [1.5]):
            with self.assertRaisesRegex(tokmap.ArgumentError, "ids must be"):
                self.tokenizer.decode(ids)
        with self.assertRaisesRegex(tokmap.ArgumentError, "text is int"):
            self.tokenizer.encode(5)
        with self.assertRaises(class_of("ERROR_TOKEN")):
            self.tokenizer.id_to_token(257)
        with self.assertRaisesRegex(tokmap.ArgumentError, "special"):
            tokmap.Tokenizer("bytes", special="maybe")
        with self.assertRaisesRegex(tokmap.ArgumentError, "finds no special tokens"):
            tokmap.Tokenizer("bytes", special="error")
        with self.assertRaises(FileNotFoundError):
            tokmap.Tokenizer("/no/such/file")

    def test_closed(self):
        with tokmap.Tokenizer("bytes") as tokenizer:
            self.assertEqual(tokenizer.encode("a"), [97])
        tokenizer.close()
        for call in (lambda: tokenizer.encode("a"), lambda: tokenizer.decode([97]), lambda: tokenizer.token_to_id("a")):
            with self.assertRaisesRegex(tokmap.ArgumentError, "is closed"):
                call()

    def test_pickle_and_threads(self):
        again = pickle.loads(pickle.dumps(self.tokenizer))
        self.assertEqual(again.fingerprint, self.tokenizer.fingerprint)
        found = []
        threads = [threading.Thread(target=lambda: found.append(self.tokenizer.encode("word " * 1000))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [list(b"word " * 1000)] * 8)

    def test_loaded_late(self):
        """A program that uses no tokenizer does not load their library."""
        code = "import tokmap; print(any('libtokmap_tokenize' in line for line in open('/proc/self/maps')))"
        self.assertEqual(python(code).strip(), "False")


class Vocabularies(unittest.TestCase):
    def test_small(self):
        folder = new_folder()
        tokenizer = tokmap.Tokenizer(small(folder))
        self.assertEqual(tokenizer.encode("  a a"), [1, 8, 8])
        self.assertEqual(tokenizer.decode([9, 2, 8]), "  a a")
        self.assertEqual(tokenizer.encode("<eos>"), [0, 6, 0])
        recognized = tokmap.Tokenizer(folder, special="recognize")
        self.assertEqual(recognized.encode("a<eos>"), [2, 10])
        self.assertNotEqual(recognized.fingerprint, tokenizer.fingerprint)
        with self.assertRaisesRegex(tokmap.InputError, "<eos>"):
            tokmap.Tokenizer(folder, special="error").encode("a<eos>")
        self.assertEqual(pickle.loads(pickle.dumps(recognized)).encode("<eos>"), [10])

    def test_real(self):
        vocab = vocabularies()
        if vocab is None:
            self.skipTest("the real vocabularies are not there")
        tokenizer = tokmap.Tokenizer(os.path.join(vocab, "gpt2"))
        self.assertEqual(tokenizer.encode("Hello world"), [15496, 995])
        self.assertEqual(tokenizer.decode([15496, 995]), "Hello world")
        self.assertEqual(tokenizer.token_to_id(" world"), 995)
        self.assertEqual(tokenizer.id_to_token(995), b" world")
        tokenizer = tokmap.Tokenizer(os.path.join(vocab, "llama2", "tokenizer.model"))
        self.assertEqual(tokenizer.decode(tokenizer.encode("Hello  world")), "Hello  world")
        self.assertEqual(tokenizer.decode(tokenizer.encode("Hello"), resumed=True), " Hello")


class BatchText(unittest.TestCase):
    def run_over(self, prefix, seq_len=16):
        return tokmap.Run(data=prefix, seq_len=seq_len, batch=2, seed=1)

    def test_bytes(self):
        run = self.run_over(pack(new_folder()))
        loader = run.loader(rows=2, fields=["inputs"])
        batch = next(iter(loader))
        for row in range(batch.count):
            inputs = batch.inputs.tolist()[row]
            self.assertEqual(batch.text(row), bytes(i for i in inputs if i < 256).decode())
            marked = batch.text(row, specials=True)
            self.assertEqual(marked.count("<|endoftext|>"), inputs.count(256))
            self.assertEqual(batch.text(row, tokmap.Tokenizer("bytes")), batch.text(row))
        with self.assertRaisesRegex(TypeError, "'str' object cannot be interpreted as an integer"):
            batch.text("0")
        with self.assertRaisesRegex(tokmap.ArgumentError, "row 2 is not in this batch"):
            batch.text(2)

    def packed(self, folder, **run_options):
        """A dataset made with a tokenizer that its index names relative to its folder."""
        small(folder)
        with open(os.path.join(folder, "text.jsonl"), "w", encoding="utf-8") as file:
            for i in range(40):
                file.write(json.dumps({"text": " a" * (i % 5 + 1) + "  bcd"}) + "\n")
        subprocess.run([TOKMAP, "pack", "-t", "tokenizer.json", "--eod=<eos>", "-o", "web", "text.jsonl"], cwd=folder,
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return os.path.join(folder, "web")

    def test_recorded_path(self):
        """The path in the index is found from another folder, and only with the recorded fingerprint."""
        folder = new_folder()
        prefix = self.packed(folder)
        batch = next(iter(self.run_over(prefix).loader(rows=2, fields=["inputs"])))
        text = batch.text(0)
        tokenizer = tokmap.Tokenizer(os.path.join(folder, "tokenizer.json"))
        self.assertEqual(text, tokenizer.decode(batch.inputs.tolist()[0], resumed=True))
        self.assertIn(" a", text)
        with tokmap.Dataset(prefix) as dataset:
            self.assertEqual(tokmap.Tokenizer.of(dataset).fingerprint, dataset.info.tokenizer)

    def test_lost_path(self):
        folder = new_folder()
        prefix = self.packed(folder)
        # Another process, because the tokenizers of datasets are kept.
        code = ("import sys, tokmap\n"
                "batch = next(iter(tokmap.Run(data=sys.argv[1], seq_len=16, batch=2, seed=1).loader(rows=2)))\n"
                "try:\n    print(batch.text(0))\n"
                "except tokmap.IoError as error:\n    print(type(error).__name__, error)")
        small(folder, added=[{"id": 11, "content": "f", "special": False, "single_word": True, "lstrip": False,
                              "rstrip": False, "normalized": False}])
        self.assertRegex(python(code, prefix), "IoError.*was 'tokenizer.json', and no file there has that finger")
        os.remove(os.path.join(folder, "tokenizer.json"))
        self.assertRegex(python(code, prefix), r"IoError.*pass it as tokenizer")


if __name__ == "__main__":
    unittest.main()
