# SPDX-License-Identifier: MIT
"""collisions.py: inputs whose hashes would collide if tables had no key or a key that can be guessed (colliding.c makes
them). They take no more processor time than inputs of the same form that do not collide."""
import json, os

from rounds import BUILD_DIR, SANITIZED, TOKMAP, Skip, Wrong

TIMES_MOST = 5.0     # how much more time colliding inputs may take, and
SECONDS_MORE = 0.15  # what is too short to compare
BITS = 9


def _make(round_, kind, bits, count):
    program = os.path.join(BUILD_DIR, "tests", "colliding")
    if not os.path.exists(program):
        raise Skip(f"{program} is not built")
    guess = str(round_.seed // len(CASES) % 3)
    _, out, _ = round_.run(program, kind, str(bits), str(count), str(round_.seed % (1 << 63)), guess, statuses=(0,))
    return out


def _base(round_):
    round_.write("words.txt", "the quick brown fox jumps over the lazy dog, 1234 times. " * 20)
    round_.tokmap("train-tokenizer", "-q", "--force", "--vocab-size", "270", "-o", "base", "words.txt", statuses=(0,))
    return json.loads(round_.read("base.json"))


def _train(round_, kind, count, bits):
    round_.write("in.txt", _make(round_, kind, bits, count))
    return "train-tokenizer", "-q", "--force", "--threads", "1", "--vocab-size", "260", "-o", "v", "in.txt"


def _tokens(round_, kind, count, bits, added=False):
    """A vocabulary with these tokens, which no merge makes."""
    base = _base(round_)
    texts = list(dict.fromkeys(_make(round_, kind, bits, count).decode().split()))
    if added:
        base["added_tokens"] = [{"id": 1000 + i, "content": text, "single_word": False, "lstrip": False,
                                 "rstrip": False, "normalized": False, "special": i % 2 == 0}
                                for i, text in enumerate(texts)]
    else:
        base["model"]["vocab"].update((text, 1000 + i) for i, text in enumerate(texts))
    round_.write("in.json", json.dumps(base))
    return "tokenizer", "in.json"


def _pairs(round_, kind, count, bits):
    """A vocabulary in which each of some tokens merges with each of others, whose ids are chosen."""
    base = _base(round_)
    lines = [line.split() for line in _make(round_, kind, bits, count).decode().splitlines()]
    vocabulary, merges = base["model"]["vocab"], base["model"]["merges"]
    left = [f"<{i}" for i in range(len(lines))]
    right = [f">{i}" for i in range(len(lines))]
    vocabulary.update((text, int(line[0])) for text, line in zip(left, lines))
    vocabulary.update((text, int(line[1])) for text, line in zip(right, lines))
    used, number = set(vocabulary.values()), 270
    as_list = not merges or not isinstance(merges[0], str)
    for one in left:
        for other in right:
            while number in used:
                number += 1
            vocabulary[one + other] = number
            number += 1
            merges.append([one, other] if as_list else f"{one} {other}")
    round_.write("in.json", json.dumps(base))
    return "tokenizer", "in.json"


def _columns(round_, kind, count, bits):
    values = _make(round_, kind, bits, count).decode().split()
    round_.write("in.jsonl", "".join(f'{{"text": "a", "v": "{value}"}}\n' for value in values + values))
    return "pack", "-q", "--force", "--threads", "1", "--columns", "v", "-o", "d", "in.jsonl"


def _paths(round_, kind, count, bits):
    """Documents from many files, whose names are chosen; info counts documents by file."""
    folder = round_.path(f"files{bits}")
    os.makedirs(folder)
    for text in _make(round_, kind, bits, count).decode().split():
        with open(os.path.join(folder, text), "w") as file:
            file.write("a")
    round_.tokmap("pack", "-q", "--force", "-o", "d", folder, statuses=(0,))
    return "stats", "--by", "file", "d"


CASES = (
    ("short words of train", lambda round_, bits: _train(round_, "words", 60000, bits)),
    ("long words of train", lambda round_, bits: _train(round_, "long", 40000, bits)),
    ("tokens", lambda round_, bits: _tokens(round_, "texts", 30000, bits)),
    ("tokens, lowest bits", lambda round_, bits: _tokens(round_, "low", 30000, bits)),
    ("added tokens", lambda round_, bits: _tokens(round_, "texts", 20000, bits, True)),
    ("added tokens, lowest bits", lambda round_, bits: _tokens(round_, "low", 20000, bits, True)),
    ("pairs", lambda round_, bits: _pairs(round_, "pairs", 250, bits)),
    ("values of columns", lambda round_, bits: _columns(round_, "middle", 30000, bits)),
)


def attack(round_):
    if SANITIZED:
        raise Skip("sanitizers change what takes time")
    name, prepare = CASES[round_.seed % len(CASES)]
    seconds = {}
    for bits in (0, BITS):
        words = prepare(round_, bits)
        seconds[bits] = min(round_.measured(TOKMAP, *words, statuses=(0,))[3] for _ in range(2 if bits else 3))
    if seconds[BITS] > TIMES_MOST * seconds[0] + SECONDS_MORE:
        raise Wrong(f"{name}: those that collide take {seconds[BITS]:.2f} s, and others {seconds[0]:.2f} s")
    round_.count(f"comparisons of {name}")
