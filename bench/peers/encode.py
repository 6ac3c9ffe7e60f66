# SPDX-License-Identifier: MIT
"""One repeat of another tokenizer, run by `tokmap-bench tokenize --against` with the Python of --venv.

    encode.py PEER VOCABULARY TEXT BYTES PATTERN WHOLE IDS

Encodes the first BYTES of TEXT in one thread: as a whole (if WHOLE is 1) and in documents of 4096 bytes. Each is
encoded twice, first by a new tokenizer with empty caches, then by the same tokenizer again. Prints the seconds as
name=value. Unless IDS is empty, the ids are written as 32-bit integers to the files IDS.whole and IDS.documents.
PATTERN names the split pattern of a rank file, or is empty.
"""
import os
import sys
import time

for name in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np

DOCUMENT = 4096


def documents_of(text):
    """Cuts the text like tokmap-bench: at most 4096 bytes, and never inside a character."""
    ends, at = [0], 0
    while at < len(text):
        end = min(at + DOCUMENT, len(text))
        while end < len(text) and text[end] & 0xC0 == 0x80:
            end -= 1
        ends.append(end)
        at = end
    return [text[a:b] for a, b in zip(ends, ends[1:])]


def json_of(vocabulary):
    path = os.path.join(vocabulary, "tokenizer.json") if os.path.isdir(vocabulary) else vocabulary
    if not path.endswith(".json"):
        raise SystemExit(f"this tokenizer needs a tokenizer.json, but --tokenizer is {path}")
    return path


def is_rank_file(vocabulary):
    return vocabulary.endswith(".tiktoken")


class Gigatoken:
    def __init__(self, vocabulary, pattern):
        import awkward  # gigatoken would import it during the first batch, which is timed
        import gigatoken

        self.awkward = awkward
        schemes = {"cl100k_base": "gpt4", "o200k_base": "o200k", "r50k_base": "gpt2", "p50k_base": "gpt2"}
        if is_rank_file(vocabulary):
            self.tokenizer = gigatoken.Tokenizer.from_tiktoken(vocabulary, schemes.get(pattern))
        else:
            self.tokenizer = gigatoken.Tokenizer(vocabulary)
        self.documents([b"a"])  # the imports and initializations of its first batch do not count

    def whole(self, text):
        return self.tokenizer.encode(text)

    def documents(self, texts):
        return self.tokenizer.encode_batch(texts, parallel=False)

    def ids(self, encoded):
        if isinstance(encoded, np.ndarray):
            return encoded
        return self.awkward.to_numpy(self.awkward.flatten(encoded))


class Tokenizers:
    def __init__(self, vocabulary, pattern):
        import tokenizers

        if vocabulary.endswith(".txt"):  # as BERT's, in lower case if no token has a capital letter
            with open(vocabulary, encoding="utf-8") as file:
                lower = not any("A" <= c <= "Z" for line in file if not line.startswith("[") for c in line)
            self.tokenizer = tokenizers.BertWordPieceTokenizer(vocabulary, lowercase=lower)._tokenizer
        else:
            self.tokenizer = tokenizers.Tokenizer.from_file(json_of(vocabulary))
        self.tokenizer.encode_special_tokens = True
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()

    @staticmethod
    def inputs(texts):
        return [text.decode() for text in texts]

    def whole(self, text):
        return [self.tokenizer.encode(text, add_special_tokens=False).ids]

    def documents(self, texts):
        return [one.ids for one in self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    @staticmethod
    def ids(encoded):
        return np.fromiter((number for one in encoded for number in one), np.uint32)


PEERS = {"gigatoken": Gigatoken, "tokenizers": Tokenizers}


def timed(function, argument):
    started = time.perf_counter()
    made = function(argument)
    return time.perf_counter() - started, made


def main(peer, vocabulary, path, count, pattern, whole, ids):
    with open(path, "rb") as file:
        text = file.read(int(count))
    make = PEERS[peer]
    inputs = getattr(make, "inputs", lambda texts: texts)
    result = {"bytes": len(text)}
    for kind, prefix, argument in (("whole", "", inputs([text])[0]), ("documents", "doc_", inputs(documents_of(text)))):
        if kind == "whole" and whole != "1":
            continue
        started = time.perf_counter()
        tokenizer = make(vocabulary, pattern)
        result["start"] = time.perf_counter() - started
        encode = getattr(tokenizer, kind)
        result[prefix + "cold"], made = timed(encode, argument)
        del made
        result[prefix + "warm"], made = timed(encode, argument)
        if ids:
            tokenizer.ids(made).astype("<u4", copy=False).tofile(f"{ids}.{kind}")
        del made, tokenizer
    print(" ".join(f"{name}={value}" for name, value in result.items()))


main(*sys.argv[1:])
