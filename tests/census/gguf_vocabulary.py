#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gguf_vocabulary.py FILE FOLDER: writes the vocabulary of a GGUF file as a file that tokenizers, sentencepiece, and
tokmap read: a SentencePiece model ("llama", "t5"), a tokenizer.json ("gpt2"), or a vocab.txt ("bert").

What a GGUF file does not say is set as the program that reads such files does it: the split patterns by the name in
tokenizer.ggml.pre. The result is a vocabulary for comparisons, not a copy of the original file.
"""
import json
import os
import struct
import sys

MARK = "\u2581"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
HAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
PATTERNS = {
    "llama-bpe": [LLAMA3],
    "qwen2": [LLAMA3.replace("{1,3}", "")],
    "deepseek-llm": [r"[\r\n]", r"\s?\p{L}+", r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", HAN,
                     r"\p{N}+"],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", HAN, r"\p{N}"],
    "falcon": [r"[\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"],
    "starcoder": [r"\p{N}", GPT2],
    "refact": [r"\p{N}", GPT2],
    "command-r": [r"\p{N}", GPT2],
}


class Reader:
    def __init__(self, content):
        self.content, self.at = content, 0

    def number(self, code):
        size = struct.calcsize("<" + code)
        self.at += size
        if self.at > len(self.content):
            raise ValueError("a number is beyond the end of the file")
        return struct.unpack_from("<" + code, self.content, self.at - size)[0]

    def text(self):
        count = self.number("Q")
        self.at += count
        if self.at > len(self.content):
            raise ValueError("a text reaches beyond the end of the file")
        return self.content[self.at - count:self.at].decode(errors="replace")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            inner, count = self.number("I"), self.number("Q")
            return [self.value(inner) for _ in range(count)]
        if kind not in NUMBERS:
            raise ValueError(f"a value has the unknown type {kind}")
        return self.number(NUMBERS[kind])


def metadata(content):
    reader = Reader(content)
    if content[:4] != b"GGUF" or struct.unpack_from("<I", content, 4)[0] < 2:
        raise ValueError("not a GGUF file of version 2 or later")
    reader.at = 16  # behind the magic number, the version, and the number of tensors
    return {name: reader.value(reader.number("I"))
            for name in (reader.text() for _ in range(reader.number("Q")))}


def varint(value):
    made = b""
    value &= (1 << 64) - 1
    while True:
        made += bytes([value & 127 | (128 if value > 127 else 0)])
        value >>= 7
        if not value:
            return made


def field(number, content):
    if isinstance(content, (bool, int)):
        return varint(number << 3) + varint(int(content))
    if isinstance(content, float):
        return varint(number << 3 | 5) + struct.pack("<f", content)
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def model(values, get):
    """A SentencePiece model."""
    tokens, kinds = get("tokens"), get("token_type")
    scores = get("scores") or [-float(i) for i in range(len(tokens))]
    unknown = get("unknown_token_id") or (kinds.index(UNKNOWN) if UNKNOWN in kinds else 0)
    kinds = [UNKNOWN if id == unknown else UNUSED if kind == UNKNOWN else kind for id, kind in enumerate(kinds)]
    pieces = b"".join(field(1, field(1, token) + field(2, float(score)) + field(3, kind))
                      for token, score, kind in zip(tokens, scores, kinds))
    charsmap = bytes(get("precompiled_charsmap") or b"")
    trainer = field(3, 1 if get("model") == "t5" else 2) + field(4, len(tokens)) + field(35, BYTE in kinds) + \
        field(40, kinds.index(UNKNOWN))
    normalizer = field(1, "identity") + (field(2, charsmap) if charsmap else b"") + \
        field(3, get("add_space_prefix") is not False) + field(4, bool(get("remove_extra_whitespaces"))) + field(5, True)
    return "tokenizer.model", pieces + field(2, trainer) + field(3, normalizer)


def byte_level(values, get):
    tokens, kinds = get("tokens"), get("token_type")
    vocab = {token: id for id, token in enumerate(tokens)}
    splits = [{"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
              for pattern in PATTERNS.get(get("pre"), [GPT2])]
    added = [{"id": id, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": kind == CONTROL}
             for id, (token, kind) in enumerate(zip(tokens, kinds)) if kind in (CONTROL, USER_DEFINED) and token]
    byte_step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    made = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": splits + [byte_step]}, "post_processor": None,
            "decoder": byte_step, "model": {
                "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                "vocab": vocab, "merges": [merge.split(" ", 1) for merge in get("merges")]}}
    return "tokenizer.json", json.dumps(made, ensure_ascii=False).encode()


def wordpiece(values, get):
    lines = [token[1:] if token.startswith(MARK) else token if token.startswith("[") and token.endswith("]") or
             kind != NORMAL else "##" + token for token, kind in zip(get("tokens"), get("token_type"))]
    return "vocab.txt", "".join(line + "\n" for line in lines).encode()


def convert(content):
    """Returns the name and the content of the converted file. ValueError: the file cannot be converted."""
    values = metadata(content)

    def get(name):
        return values.get("tokenizer.ggml." + name)
    kinds = {"llama": model, "t5": model, "gpt2": byte_level, "bert": wordpiece}
    if get("model") not in kinds:
        raise ValueError(f"tokenizer.ggml.model is {get('model')!r}, not one of {', '.join(kinds)}")
    return kinds[get("model")](values, get)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as file:
        made_name, made_content = convert(file.read())
    os.makedirs(sys.argv[2], exist_ok=True)
    with open(os.path.join(sys.argv[2], made_name), "wb") as file:
        file.write(made_content)
    print(os.path.join(sys.argv[2], made_name))
