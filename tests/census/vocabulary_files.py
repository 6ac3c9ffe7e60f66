# SPDX-License-Identifier: MIT
"""vocabulary_files.py: what kind of vocabulary a file is, by its content. census.py and collect.py import it."""
import base64
import json
import re

LARGEST = 64 << 20
GGUF = "gguf"


def json_kind(content):
    try:
        value = json.loads(content)
    except ValueError:
        return None, None
    if not isinstance(value, dict):
        return None, None
    model = value.get("model")
    if isinstance(model, dict) and "vocab" in model:
        return "tokenizer.json", value
    if isinstance(value.get("config"), dict) and isinstance(value.get("vocab"), list):
        return "tekken.json", value
    if len(value) > 50 and all(isinstance(id, int) for id in value.values()):
        return "ids", value
    return None, None


def is_rank_line(line):
    parts = line.split()
    try:
        return len(parts) == 2 and parts[1].isdigit() and base64.b64decode(parts[0], validate=True) is not None
    except ValueError:
        return False


def lines_kind(content):
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError:
        return None
    head = lines[:200]
    if len(lines) > 200 and all(is_rank_line(line) for line in head):
        return "ranks"
    if len(lines) > 200 and all(re.fullmatch(r"\d+ b?['\"].*['\"] \d+\r?", line) for line in head):
        return "trie"
    stripped = [line.rstrip("\r") for line in lines]
    if "[UNK]" in stripped and len(lines) > 100 and any(line.startswith("##") for line in stripped):
        return "vocab.txt"
    merges = stripped[1:] if stripped[0].startswith("#version") else stripped
    merges = merges[:-1] if merges and not merges[-1] else merges
    if len(merges) > 20 and all(len(line.split(" ")) == 2 and all(line.split(" ")) for line in merges[:200]):
        return "merges"
    return None


def kind_of(name, content):
    """Returns tokenizer.json, tekken.json, model, ranks, trie, vocab.txt, clip.gz, gguf, the parts "ids" and "merges" of
    a pair of files, or None."""
    if len(content) > LARGEST or len(content) < 200:
        return None
    if content[:4] == b"GGUF":
        return GGUF
    if content[:2] == b"\x1f\x8b":
        return "clip.gz" if "bpe" in name and name.endswith(".txt.gz") else None
    first = content.lstrip()[:1]
    if first == b"{":
        return json_kind(content)[0]
    # A SentencePiece model: its first field is a piece, whose first field is a text.
    if content[:1] == b"\n" and content[2:3] == b"\n" and re.search(r"\.(model|spm)", name):
        return "model"
    return lines_kind(content)


def pair_of(name, names):
    """The merges that belong to the ids `name`, by the names of the files in their folder."""
    for ids, merges in (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"), ("encoder_bpe_40000.json",
                                                                                      "vocab_40000.bpe")):
        if name.endswith(ids) and name[:-len(ids)] + merges in names:
            return name[:-len(ids)] + merges
    return None
