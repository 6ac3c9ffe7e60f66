# SPDX-License-Identifier: MIT
"""Tokenizers that cut long texts as the code of a model does, beside that code; and what the files of a folder say."""
import json
import os
import pickle
import random
import unittest

import tokmap
from support import new_folder
from test_tokenizer import small


def cut_runs(text, most):
    """The parts of a block, as the Python code of Llama 3 and Kimi makes them."""
    start = run = 0
    space = text[0].isspace()
    for i, character in enumerate(text):
        if character.isspace() != space:
            run, space = 1, not space
        else:
            run += 1
            if run > most:
                yield text[start:i]
                start, run = i, 1
    yield text[start:]


def cut(text):
    return [part for at in range(0, len(text), 400_000) for part in cut_runs(text[at:at + 400_000], 25_000)]


class CutAs(unittest.TestCase):
    def setUp(self):
        self.path = small(new_folder())
        self.plain = tokmap.Tokenizer(self.path)
        self.cutting = tokmap.Tokenizer(self.path, cut_as="kimi")

    def text(self, seed, characters):
        chance = random.Random(seed)
        parts = []
        while characters > 0:
            count = min(characters, chance.choice((3, 500, 24_999, 25_000, 25_001, 60_000)))
            kind = chance.choice(("abcdef", "ab", " ", " \x1c\x1f\u3000\x85", "ab "))
            parts.append("".join(chance.choice(kind) for _ in range(count)))
            characters -= count
        return "".join(parts)

    def test_ids(self):
        lengths = (10, 25_001, 399_999, 400_000, 400_001, 900_000)
        texts = [self.text(seed, length) for seed, length in enumerate(lengths)]
        wanted = [[i for part in cut(text) for i in self.plain.encode(part)] for text in texts]
        self.assertNotEqual(wanted[-1], list(self.plain.encode(texts[-1])))
        for text, ids in zip(texts, wanted):
            self.assertEqual(list(self.cutting.encode(text)), ids)
        for threads in (1, 4):
            self.assertEqual([list(ids) for ids in self.cutting.encode_batch(texts, threads=threads)], wanted)

    def test_identity(self):
        self.assertNotEqual(self.plain.fingerprint, self.cutting.fingerprint)
        again = pickle.loads(pickle.dumps(self.cutting))
        self.assertEqual(again.fingerprint, self.cutting.fingerprint)
        self.assertEqual(tokmap.Tokenizer(self.path, cut_as="llama3").fingerprint, self.cutting.fingerprint)
        with self.assertRaisesRegex(ValueError, "cut_as is 'x'.*kimi"):
            tokmap.Tokenizer(self.path, cut_as="x")

    def test_dataset(self):
        folder = new_folder()
        text = self.text(7, 100_000)
        tokmap.pack([text], os.path.join(folder, "data"), tokenizer=self.cutting)
        dataset = tokmap.Dataset(os.path.join(folder, "data"))
        self.assertEqual(tokmap.Tokenizer.of(dataset).fingerprint, self.cutting.fingerprint)
        self.assertEqual(dataset.info.tokens, len(self.cutting.encode(text)) + 1)


class LowerCase(unittest.TestCase):
    """A vocab.txt that does not say whether text is made lower case."""

    def test_asked(self):
        folder = new_folder()
        path = os.path.join(folder, "vocab.txt")
        with open(path, "w") as file:
            file.write("[UNK]\nHello\nhello\n[SEP]\n")
        with self.assertRaisesRegex(ValueError, "lower_case must be 'yes' or 'no'"):
            tokmap.Tokenizer(path)
        with self.assertRaisesRegex(ValueError, "lower_case is for a vocab.txt only"):
            tokmap.Tokenizer(small(new_folder()), lower_case=True)
        for lower, wanted in ((True, [2]), (False, [1])):
            tokenizer = tokmap.Tokenizer(path, lower_case=lower)
            self.assertEqual(list(tokenizer.encode("Hello")), wanted)
            self.assertEqual(pickle.loads(pickle.dumps(tokenizer)).fingerprint, tokenizer.fingerprint)
            out = os.path.join(folder, f"data{lower}")
            tokmap.pack(["Hello"], out, tokenizer=tokenizer, eod=3)
            dataset = tokmap.Dataset(out)
            self.assertEqual(tokmap.Tokenizer.of(dataset).fingerprint, tokenizer.fingerprint)
            with open(os.path.join(folder, "hello.txt"), "w") as file:
                file.write("Hello")
            tokmap.pack(os.path.join(folder, "hello.txt"), out + "f", tokenizer=tokenizer, eod=3)
            self.assertEqual(tokmap.Dataset(out + "f").info.tokenizer, tokenizer.fingerprint)


class Folders(unittest.TestCase):
    def test_config(self):
        folder = os.path.dirname(small(new_folder()))
        tokenizer = tokmap.Tokenizer(folder)
        self.assertIsNone(tokenizer.note)
        name = next(iter(tokenizer.special_tokens))
        with open(os.path.join(folder, "tokenizer_config.json"), "w") as file:
            json.dump({"eos_token": name, "bos_token": "<nowhere>"}, file)
        tokenizer = tokmap.Tokenizer(folder)
        self.assertEqual(tokenizer.eod_id, tokenizer.special_tokens[name])
        self.assertIn("names the bos_token '<nowhere>', which tokenizer.json does not have", tokenizer.note)


if __name__ == "__main__":
    unittest.main()
