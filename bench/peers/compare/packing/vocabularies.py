# SPDX-License-Identifier: MIT
"""One vocabulary in the two formats that the packers of the table `pack` read.

A tokenizer.json says everything: the vocabulary, the merges, and how text is split. A rank file (.tiktoken) has only
the tokens in the order of their ranks; its split pattern is known by its name. A packer that reads the other format
gets a converted copy, which is made before anything is timed. Whether the conversion is exact shows in the column
"documents that differ", which compares ids of documents.

Example: the rank file `a 0, b 1, c 2, ab 3, abc 4` becomes the vocabulary of the same ids with the merges `a b` and
`ab c`: `ab` and `c` are tokens. `a bc` is not a merge, because `bc` is not a token.
"""
import base64
import json
import os

_O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
          r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
          r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
_CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
           r"\s+(?!\S)|\s+")
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
#: Split patterns by the names that tiktoken gives them, without possessive repeats, which not every engine has.
PATTERNS = {"gpt2": _GPT2, "r50k_base": _GPT2, "p50k_base": _GPT2, "cl100k_base": _CL100K, "o200k_base": _O200K}


class Unsuitable(Exception):
    """A vocabulary that the other format cannot hold. Its text is the reason."""


def file_of(path):
    """The file of a tokenizer that was named by its folder."""
    if os.path.isdir(path):
        return os.path.join(path, "tokenizer.json")
    return path


def is_ranks(path):
    return path.endswith(".tiktoken")


def pattern_name(path, given=None):
    """The name of a rank file's split pattern: the one that was given, or else the name of the file."""
    name = given or os.path.splitext(os.path.basename(path))[0]
    if name not in PATTERNS:
        raise Unsuitable(f"the split pattern of {path} is unknown; name one of {', '.join(PATTERNS)} with --pattern")
    return name


def ranks_of_file(path):
    """The tokens of a rank file: {bytes: rank}."""
    ranks = {}
    with open(path, "rb") as file:
        for line in file:
            if line.strip():
                token, rank = line.split()
                ranks[base64.b64decode(token)] = int(rank)
    return ranks


def letters_of_bytes():
    """GPT-2's alphabet: the character that stands for each byte in a tokenizer.json."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters, other = {byte: chr(byte) for byte in plain}, 0x100
    for byte in range(256):
        if byte not in letters:
            letters[byte], other = chr(other), other + 1
    return letters


def json_of_ranks(ranks, pattern, specials):
    """The text of a tokenizer.json with these ranks, a split pattern, and special tokens {text: id}."""
    letters = letters_of_bytes()

    def spelled(token):
        return "".join(letters[byte] for byte in token)
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        found = [(ranks[token[:at]], ranks[token[at:]], at) for at in range(1, len(token))
                 if token[:at] in ranks and token[at:] in ranks]
        merges += [[spelled(token[:at]), spelled(token[at:])] for _, _, at in sorted(found)]
    # Whole pieces that are a token are that token, as in tiktoken: ignore_merges.
    return json.dumps({
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": number, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for text, number in specials.items()],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": True,
                  "vocab": {spelled(token): rank for token, rank in ranks.items()}, "merges": merges}})


def _split_of(pretokenizer):
    """The one split pattern of a byte-level pre-tokenizer."""
    steps = pretokenizer.get("pretokenizers", [pretokenizer]) if pretokenizer else []
    kinds = [step["type"] for step in steps]
    if kinds == ["ByteLevel"] and steps[0].get("use_regex", True) and not steps[0].get("add_prefix_space"):
        return _GPT2
    if kinds == ["Split", "ByteLevel"] and not steps[1].get("use_regex", True) and "Regex" in steps[0]["pattern"] \
            and not steps[1].get("add_prefix_space") and steps[0]["behavior"] == "Isolated":
        return steps[0]["pattern"]["Regex"]
    raise Unsuitable("its tokenizer.json does not split text by one pattern and bytes")


def ranks_of_json(text):
    """({bytes: rank}, split pattern) of a tokenizer.json whose merges are in the order of the ids that they make."""
    whole = json.loads(text)
    model = whole["model"]
    if model.get("type", "BPE") != "BPE" or whole.get("normalizer"):
        raise Unsuitable("its tokenizer.json has a normalizer, or a model that is not byte-level BPE")
    pattern, vocabulary = _split_of(whole.get("pre_tokenizer")), model["vocab"]
    last = -1
    for merge in model["merges"]:
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        made = vocabulary.get(left + right, -1)
        if made < last:
            raise Unsuitable("the merges of its tokenizer.json are not in the order of the ids, so it has no ranks")
        last = made
    bytes_of = {letter: byte for byte, letter in letters_of_bytes().items()}
    specials = {token["content"] for token in whole.get("added_tokens") or []}
    ranks = {}
    for token, number in vocabulary.items():
        if token in specials:
            continue
        if any(letter not in bytes_of for letter in token):
            raise Unsuitable("its tokenizer.json has tokens that are not spelled in GPT-2's alphabet of bytes")
        ranks[bytes(bytes_of[letter] for letter in token)] = number
    return ranks, pattern


def special_texts(path):
    """The texts of a tokenizer.json's added tokens."""
    with open(path, encoding="utf-8") as file:
        return [token["content"] for token in json.load(file).get("added_tokens") or []]
