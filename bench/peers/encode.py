"""One turn of another tokenizer, for `tokmap-bench tokenize --against`; run by the Python of --venv.

    encode.py PEER VOCABULARY TEXT BYTES PATTERN WHOLE IDS

Encodes the first BYTES of TEXT in one thread: whole (if WHOLE is 1) and in documents of 4096 bytes, each with what a fresh
tokenizer has in its caches, and again. Prints seconds as name=value. IDS, unless empty, is the prefix of two files that
get the ids, 32 bits each: IDS.whole and IDS.documents. PATTERN names the split pattern of a rank file, or is empty.
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
    """As the bench cuts: at most 4096 bytes, no character torn."""
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
        raise SystemExit(f"it needs a tokenizer.json, and is given {path}")
    return path


def is_rank_file(vocabulary):
    return vocabulary.endswith(".tiktoken")


class Gigatoken:
    def __init__(self, vocabulary, pattern):
        import awkward  # now, not within the first batch that is timed
        import gigatoken

        self.awkward = awkward
        schemes = {"cl100k_base": "gpt4", "o200k_base": "o200k", "r50k_base": "gpt2", "p50k_base": "gpt2"}
        if is_rank_file(vocabulary):
            self.tokenizer = gigatoken.Tokenizer.from_tiktoken(vocabulary, schemes.get(pattern))
        else:
            self.tokenizer = gigatoken.Tokenizer(vocabulary)
        self.documents([b"a"])  # what it imports and makes at its first batch is no part of the rate

    def whole(self, text):
        return self.tokenizer.encode(text)

    def documents(self, texts):
        return self.tokenizer.encode_batch(texts, parallel=False)

    def ids(self, encoded):
        if isinstance(encoded, np.ndarray):
            return encoded
        return self.awkward.to_numpy(self.awkward.flatten(encoded))


class Fastokens:
    def __init__(self, vocabulary, pattern):
        from fastokens import _native

        if is_rank_file(vocabulary):
            self.tokenizer = _native.Tokenizer.from_tiktoken(vocabulary, encoding=pattern)
        else:
            self.tokenizer = _native.Tokenizer.from_file(json_of(vocabulary))

    @staticmethod
    def inputs(texts):
        return [text.decode() for text in texts]

    def documents(self, texts):
        return self.tokenizer.encode_batch_flat(texts, split_special_tokens=True)[0]

    def whole(self, text):
        return self.documents([text])

    @staticmethod
    def ids(encoded):
        return np.frombuffer(encoded, np.uint32)


class Tokenizers:
    def __init__(self, vocabulary, pattern):
        import tokenizers

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


class Tiktoken:
    def __init__(self, vocabulary, pattern):
        import tiktoken
        from tiktoken import load
        from tiktoken_ext import openai_public

        if not is_rank_file(vocabulary):
            raise SystemExit("it needs a rank file (.tiktoken)")
        if not hasattr(openai_public, pattern):
            raise SystemExit(f"it has no pattern '{pattern}'; name one of its own with --pattern")
        # Its constructors know the patterns; the ranks are those of the file that was given.
        openai_public.load_tiktoken_bpe = lambda *unused, **also: load.load_tiktoken_bpe(vocabulary)
        self.tokenizer = tiktoken.Encoding(**getattr(openai_public, pattern)())

    @staticmethod
    def inputs(texts):
        return [text.decode() for text in texts]

    def whole(self, text):
        return [self.tokenizer.encode_to_numpy(text, disallowed_special=())]

    def documents(self, texts):
        return [self.tokenizer.encode_to_numpy(text, disallowed_special=()) for text in texts]

    @staticmethod
    def ids(encoded):
        return np.concatenate(encoded).astype(np.uint32, copy=False)


PEERS = {"gigatoken": Gigatoken, "fastokens": Fastokens, "tokenizers": Tokenizers, "tiktoken": Tiktoken}


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
