#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""fim_reference.py TOKMAP FOLDER VOCABULARIES [DOCUMENTS [SEED]]: compares the ids that `tokmap pack --fim` writes with
those of this program, which rearranges texts as Bavarian et al. (2022) do, with the hashes of encode/fim.h in place of
random numbers, and encodes each part with Hugging Face tokenizers. Texts are made at random, with characters of all
lengths, and some of them contain the names of the special tokens.

The cuts that it finds are compared with a uniform distribution, too (Kolmogorov and Smirnov)."""

import array
import ctypes
import ctypes.util
import json
import math
import os
import random
import struct
import subprocess
import sys
import unicodedata

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
from tokenizers import Tokenizer  # noqa: E402

XXH3 = ctypes.CDLL(ctypes.util.find_library("xxhash")).XXH3_64bits_withSeed
XXH3.restype = ctypes.c_uint64
XXH3.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]

#: The file of a vocabulary, its tokens before prefix, middle, and suffix, the order of SPM, the EOD, and more options.
CASES = (
    ("qwen2.5/tokenizer.json", ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"), "PSsMpm", "<|endoftext|>", []),
    ("deepseek_v3/tokenizer.json", ("<｜fim▁begin｜>", "<｜fim▁end｜>", "<｜fim▁hole｜>"), "PSsMpm", "<｜end▁of▁sentence｜>", []),
    ("mistral_nemo/tokenizer.json", ("[PREFIX]", "[MIDDLE]", "[SUFFIX]"), "SsPpm", "</s>", []),
    # A tokenizer that puts a space before a text, and tokens that the user names, which text has, too.
    ("llama2/tokenizer.json", ("龙", "龍", "语"), "PSsMpm", "</s>", ["--fim-tokens", "IDS", "--bos"]),
    ("llama2/tokenizer.model", ("龙", "龍", "语"), "PSsMpm", "</s>", ["--fim-tokens", "IDS", "--bos"]),
)
WORDS = (
    "def f(x):\n", "    return x\n", " ", "  ", "\n", "\n\n", "\t", "é", "e\u0301", "ſ", "漢字", "語", "😀", "👩‍💻", "\u00a0", "a", "Ab",
    " word", "word", "1234", "'s", "...", "//", "\r\n", "\u200b", "ﬁ", "한국어", "ا", "שלום", "{}", "_", "</s>",
)


def bytes_hash(data, seed):
    return XXH3(data, len(data), seed)


class Middle:
    """Rearranges texts: the paper's transformation on characters."""

    def __init__(self, rate, spm, seed, unit):
        self.rate, self.spm, self.seed, self.unit = rate, spm, seed, unit
        self.cuts = []

    def pieces(self, text):
        """Yields the kind of each piece of a text, "whole", "psm", or "spm", and its prefix, middle, and suffix."""
        seed = bytes_hash(text.encode(), self.seed)
        for number, at in enumerate(range(0, len(text), self.unit or max(1, len(text)))):
            piece = text[at:at + self.unit] if self.unit else text
            draws = [bytes_hash(struct.pack("<QQ", number, k), seed) for k in range(4)]
            if draws[0] >= self.rate * 2**64:
                yield "whole", (piece, "", "")
                continue
            first, second = sorted(draw * (len(piece) + 1) >> 64 for draw in draws[2:])
            self.cuts += [(draw >> 11) / 2**53 for draw in draws[2:]]
            yield "spm" if draws[1] < self.spm * 2**64 else "psm", (piece[:first], piece[first:second], piece[second:])


class Reference:
    def __init__(self, folder, names, order, end):
        self.tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        self.tokenizer.encode_special_tokens = True  # names of special tokens in a text are text
        self.ids = dict(zip("PMS", map(self.tokenizer.token_to_id, names)))
        assert None not in self.ids.values(), names
        self.end = self.tokenizer.token_to_id(end)
        self.orders = {"psm": "PpSsMm", "spm": order}
        # What is encoded before a part that continues a text, and removed: as Code Llama and Mistral do it.
        self.before = "☺"
        self.before_ids = self.encode(self.before)
        self.puts_space = len(self.encode("a")) and self.tokenizer.encode("a", add_special_tokens=False).tokens == ["▁a"]

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def continued(self, text):
        if not self.puts_space:
            return self.encode(text)
        ids = self.encode(self.before + text)
        assert ids[:len(self.before_ids)] == self.before_ids, text
        return ids[len(self.before_ids):]

    def document(self, text, middle):
        """The ids of a document, and whether it remains as it is because its text has one of the tokens."""
        ids, marks, plain, at = [], 0, "", 0

        def part(piece, begins):
            if piece:
                ids.extend(self.encode(piece) if begins else self.continued(piece))

        for kind, parts in middle.pieces(text):
            length = sum(map(len, parts))
            if kind == "whole":
                plain += parts[0]
                at += length
                continue
            part(plain, len(plain) == at)
            plain = ""
            for letter in self.orders[kind]:
                if letter in self.ids:
                    ids.append(self.ids[letter])
                    marks += 1
                else:
                    k = "pms".index(letter)
                    part(parts[k], at + sum(map(len, parts[:k])) == 0)
            at += length
            if middle.unit and at < len(text):
                ids.append(self.end)
                marks += 1
        part(plain, len(plain) == at)
        special = {*self.ids.values(), *([self.end] if middle.unit else [])}
        if marks and sum(token in special for token in ids) != marks:
            return self.encode(text), True
        return ids, False


def text_make(names):
    words = WORDS + names if random.random() < 0.05 else WORDS
    return "".join(random.choices(words, k=int(random.expovariate(1 / 25))))


def is_uniform(cuts):
    """The test of Kolmogorov and Smirnov, at a level of 10^-6."""
    cuts = sorted(cuts)
    n = len(cuts)
    distance = max(max((i + 1) / n - x, x - i / n) for i, x in enumerate(cuts))
    return distance * math.sqrt(n) < math.sqrt(-math.log(1e-6 / 2) / 2)


def case_run(command, folder, vocabularies, case, documents, unit):
    name, names, order, end, more = case
    path = os.path.join(vocabularies, name)
    reference = Reference(os.path.dirname(path), names, order, end)
    texts = [text_make(names) for _ in range(documents)]
    source, output = os.path.join(folder, "texts.jsonl"), os.path.join(folder, "packed")
    with open(source, "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    seed, rate, spm = random.randrange(2**64), random.choice((0.5, 0.75, 1.0)), random.choice((0.0, 0.25, 0.5, 1.0))
    options = [",".join(str(reference.ids[k]) for k in "PMS") if option == "IDS" else option for option in more]
    report = json.loads(subprocess.run(
        [command, "pack", "--force", "--json", "-o", output, "-t", path, "--eod=" + end, f"--fim={rate},spm={spm}",
         "--fim-seed", str(seed), "--fim-unit", str(unit or "document"), *options, source],
        check=True, stdout=subprocess.PIPE).stdout)
    width = report["tokenizer"]["width"]
    tokens = array.array("H" if width == 2 else "I", open(output + ".bin", "rb").read())
    middle = Middle(rate, spm, seed, unit)
    begin = [reference.tokenizer.token_to_id("<s>")] if "--bos" in more else []
    at = left = wrong = 0
    for i, text in enumerate(texts):
        ids, stays = reference.document(text, middle)
        wanted = [*begin, *ids, reference.end]
        left += stays
        got = tokens[at:at + len(wanted)].tolist()
        if got != wanted:
            wrong += 1
            if wrong < 4:
                print(f"# document {i}: {text!r}\n#   got    {got}\n#   wanted {wanted}")
            break
        at += len(wanted)
    subprocess.run([command, "export", "-q", "--force", "-o", source, output], check=True)
    with open(source, encoding="utf-8") as file:
        back = [json.loads(line)["text"] for line in file]
    for text, exported in zip(texts, back):
        # Export leaves out special tokens, and takes a text that has them in that order for one that was rearranged.
        if not any(name in text for name in names):
            wrong += unicodedata.normalize("NFC", text) != unicodedata.normalize("NFC", exported)
    good = not wrong and len(back) == len(texts) and at == len(tokens) and report["fim"]["left"] == left and is_uniform(middle.cuts)
    print(f"{'ok' if good else 'not ok'} - {name}: {documents} documents, unit {unit or 'document'}, rate {rate}, spm "
          f"{spm}, {report['fim']['psm']} + {report['fim']['spm']} rearranged, {left} left, {len(tokens)} tokens")
    return good


def main(command, folder, vocabularies, documents=10000, seed=1):
    random.seed(int(seed))
    good = True
    for case in CASES:
        for unit, count in ((0, int(documents)), (37, int(documents) // 5)):
            good &= case_run(command, folder, vocabularies, case, count, unit)
    print(f"1..{2 * len(CASES)}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
