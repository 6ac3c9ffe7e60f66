# SPDX-License-Identifier: MIT
"""vocabularies.py: vocabularies whose JSON is mutated as a tree: it stays JSON, and reaches what reads its fields.

Each mutated file is described, and if it is accepted, a text is encoded and decoded with it. Nothing may end by a
signal or take long.
"""
import json, os

from rounds import Wrong

FILES = 60
LIMIT = 20  # seconds of a command; the files are small


def _base(round_):
    round_.write("words.txt", "the quick brown fox jumps over the lazy dog, 1234 times. Ça va? " * 40)
    round_.tokmap("train-tokenizer", "-q", "--vocab-size", "320", "-o", "base", "words.txt", statuses=(0,))
    with open(round_.path("base.json"), encoding="utf-8") as file:
        base = json.load(file)
    random = round_.random
    most = max(base["model"]["vocab"].values())
    base["added_tokens"] = [
        {"id": most + 1 + i, "content": content, **{flag: random.random() < 0.5 for flag in
                                                    ("single_word", "lstrip", "rstrip", "normalized", "special")}}
        for i, content in enumerate(("<|endoftext|>", "<a>", " ", "aaaa", "é"))]
    base["normalizer"] = random.choice((None, {"type": "NFC"}, {"type": "Replace", "pattern": {"String": "a"},
                                                                 "content": "b"}))
    base["model"]["byte_fallback"] = random.random() < 0.2
    base["model"]["ignore_merges"] = random.random() < 0.3
    return base


def _odd(random):
    return random.choice((None, True, False, 0, 1, -1, 2**16, 2**21, 2**31 - 1, 2**32, 2**63, 2**64, 1.5, 1e300,
                          "", "a", "\0", "\ud800", "é", "x" * 70000, "^(?:a|aa)+$", [], {}, [[]], [1, "a"],
                          {"type": "X"}, {"String": ""}, {"Regex": "("}))


def _places(value, found):
    """Lists all containers of a tree, with one of every thousand members of those that are long."""
    if isinstance(value, (dict, list)) and value:
        found.append(value)
        for at, child in enumerate(value.values() if isinstance(value, dict) else value):
            if at < 20 or at % 100 == 0:
                _places(child, found)


def _mutate(random, tree):
    places = []
    _places(tree, places)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        place = random.choice(places)
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            continue
        key, other = random.choice(keys), random.choice(keys)
        kind = random.randrange(6)
        if kind == 0:
            place[key] = _odd(random)
        elif kind == 1:
            place[key], place[other] = place[other], place[key]
        elif kind == 2:
            del place[key]
        elif kind == 3 and isinstance(place, dict):
            place[str(_odd(random))[:200]] = place[key]
        elif kind == 3:
            place.insert(key, _odd(random))
        elif kind == 4:
            place[key] = random.choice(places)  # the tree may contain itself now, which _text() refuses
        elif isinstance(place[key], str):
            at = random.randrange(len(place[key]) + 1)
            put = random.choice(("", "\0", "Ġ", "▁", "ÿ", " ", "\u2028"))
            place[key] = place[key][:at] + put + place[key][at + 1:]
        elif isinstance(place[key], int):
            place[key] += random.choice((-1, 1, 2**20, 2**32))


def mutated(round_):
    base = _base(round_)
    text = round_.write("text.txt", "the quick <a> aaaa  fox é 12 <|endoftext|>\n" * 20)
    for number in range(FILES):
        tree = json.loads(json.dumps(base))
        _mutate(round_.random, tree)
        try:
            content = json.dumps(tree)
        except (ValueError, RecursionError):  # it contains itself
            continue
        name = f"mutated{number}.json"
        round_.write(name, content)
        status, _, said = round_.tokmap("tokenizer", name, limit=LIMIT)
        if status == 1 and not said.strip():
            raise Wrong(f"{name} is refused without a message")
        if status == 0:
            status, ids, _ = round_.tokmap("encode", "-t", name, text, limit=LIMIT)
            if status == 0:
                round_.tokmap("decode", "-t", name, "--specials", limit=LIMIT, standard_input=ids)
        os.remove(round_.path(name))
