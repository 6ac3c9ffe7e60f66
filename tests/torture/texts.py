# SPDX-License-Identifier: MIT
"""texts.py: texts that are slow to split or to merge, and vocabularies that are slow to load. Four times as much of them
takes about four times the processor time, whatever the vocabulary."""
import base64, glob, json, os

from rounds import DATA, SANITIZED, TOKMAP, TOP, Skip, Wrong

TIMES_MOST = 10.0  # how much more time four times as much may take; a quadratic method takes 16 times as much
LEAST = 0.02       # seconds below which a time is not compared

ATOMS = ("a", "A", " ", "\n", "1", "-", "_", "中", "あ", "\u0301", "😀", "ab", "aB", "a ", " \n", "a1", "'s", "1 ", "é", "ж",
         "ع", "क्", "각", "▁", "ก", "e\u0301", "中文", "👨\u200d", "\xa0", "\u3000", "\x01", "\r\n", "<", "<s>", "|||", "\t",
         "the ", "ing", "\ufeff", "İ", "ß", "�", "=", "//", "0000", "<|", "|>", "\u2028", "‍", "a'", "'ll")


def _grows(round_, what, small, large, empty):
    """small and large are the words of two commands, the second with four times as much to do; empty has nothing."""
    seconds = []
    for words in (empty, small, large):
        status, _, said, used = round_.measured(TOKMAP, *words)
        if status and not said.strip():
            raise Wrong(f"{what}: {words} fails without a message")
        seconds.append(used if words is empty else used - seconds[0])
    _, one, four = seconds
    if four > TIMES_MOST * max(one, LEAST):
        # another process may have disturbed it
        one = max(one, round_.measured(TOKMAP, *small)[3] - seconds[0])
        four = min(four, round_.measured(TOKMAP, *large)[3] - seconds[0])
    if four > TIMES_MOST * max(one, LEAST):
        raise Wrong(f"{what}: {one:.2f} s, and {four:.2f} s for four times as much ({' '.join(small)})")


def _vocabularies(round_):
    corpus = os.path.join(TOP, "tests", "fuzz", "corpus", "fuzz_vocabulary")
    found = [os.path.join(corpus, name) for name in ("gpt2.json", "split.json", "characters.json", "small.model",
                                                     "tekken.json")]
    found += sorted(glob.glob(os.path.join(DATA, "vocab", "*", "tokenizer.*")))
    return [path for path in found if os.path.exists(path)] + ["bytes"]


def _text(random):
    """Some characters, as a function that makes a text of any length."""
    kind = random.randrange(5)
    if kind == 0:
        atom = random.choice(ATOMS)
        return lambda count: atom * (count // len(atom) + 1)
    if kind == 1:
        atom = "".join(random.choice(ATOMS) for _ in range(random.randrange(2, 7)))
        return lambda count: atom * (count // len(atom) + 1)
    if kind == 2:  # Fibonacci words: they repeat at every scale
        one, other = random.choice(ATOMS), random.choice(ATOMS)

        def fibonacci(count):
            before, word = one, one + other
            while len(word) < count:
                before, word = word, word + before
            return word
        return fibonacci
    if kind == 3:  # one long run, and another letter at the end
        one, other = random.choice(ATOMS), random.choice(ATOMS)
        return lambda count: one * (count // len(one)) + other
    atoms = [random.choice(ATOMS) for _ in range(random.randrange(2, 6))]
    made = "".join(random.choice(atoms) for _ in range(4096))
    return lambda count: made * (count // len(made) + 1)


def _splitting(round_):
    random = round_.random
    vocabulary = random.choice(_vocabularies(round_))
    if random.random() < 0.4:  # a vocabulary that has learned such texts
        round_.write("learn.txt", "".join(_text(random)(3000)[:3000] + " " for _ in range(20)))
        round_.tokmap("train-tokenizer", "-q", "--vocab-size", "600", "--input-format", "text", "-o", "v", "learn.txt",
                      statuses=(0,))
        vocabulary = "v.json"
    make, count = _text(random), 200000
    round_.write("empty.txt", "a")
    round_.write("small.txt", make(count)[:count])
    round_.write("large.txt", make(4 * count)[:4 * count])
    words = ("pack", "--dry-run", "-q", "--no-eod", "--threads", "1", "--input-format", "text", "-t", vocabulary, "-o",
             "d")
    _grows(round_, f"{os.path.basename(vocabulary)}, {make(count)[:40]!r}", words + ("small.txt",),
           words + ("large.txt",), words + ("empty.txt",))


def _added(content, **flags):
    return {"id": 400, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": False, **flags}


def _added_tokens(round_):
    """Added tokens that begin almost everywhere, and those that take spaces with them."""
    random = round_.random
    round_.write("words.txt", "the quick brown fox jumps over the lazy dog " * 20)
    round_.tokmap("train-tokenizer", "-q", "--vocab-size", "270", "-o", "v", "words.txt", statuses=(0,))
    base = json.loads(round_.read("v.json"))
    length = random.choice((50, 900, 6000))
    letter, space = random.choice("ax9<"), random.choice((" ", "\n", "\t"))
    token, text = random.choice((
        (_added(letter * length + "b"), letter), (_added("b" + letter * length), "b" + letter),
        (_added(letter * length + "b", normalized=True), letter), (_added(letter * length, single_word=True), letter),
        (_added(space, rstrip=True), space), (_added(space, lstrip=True), space),
        (_added(space + space, lstrip=True, rstrip=True), space)))
    base["added_tokens"] = [token]
    round_.write("in.json", json.dumps(base))
    count = 100000
    for name, times in (("empty.txt", 1), ("small.txt", count), ("large.txt", 4 * count)):
        round_.write(name, (text * times)[:times])
    words = ("pack", "--dry-run", "-q", "--no-eod", "--threads", "1", "--input-format", "text", "-t", "in.json", "-o",
             "d")
    _grows(round_, f"an added token of {len(token['content'])} characters", words + ("small.txt",),
           words + ("large.txt",), words + ("empty.txt",))


def _piece(text, score, kind=1):
    """A piece of a SentencePiece model, as its file has it."""
    import struct

    def number(value):
        out = b""
        while value > 127:
            out, value = out + bytes([value & 127 | 128]), value >> 7
        return out + bytes([value])
    content = b"\x0a" + number(len(text)) + text + b"\x15" + struct.pack("<f", score) + b"\x18" + bytes([kind])
    return b"\x0a" + number(len(content)) + content


def _loading(round_):
    """SentencePiece pieces that are chained or long, and JSON that is deep or has many members."""
    random = round_.random
    with open(os.path.join(TOP, "tests", "fuzz", "corpus", "fuzz_vocabulary", "small.model"), "rb") as file:
        model = file.read()
    with open(os.path.join(TOP, "tests", "fuzz", "corpus", "fuzz_vocabulary", "gpt2.json"), "rb") as file:
        tree = file.read()
    letter = random.choice((b"q", b"z", "ж".encode()))
    kind = random.randrange(5)

    def make(size):
        if kind == 0:  # q, qq, qqq, ..: each is made in many ways
            most = int((2 * size / len(letter)) ** 0.5)
            return model + b"".join(_piece(letter * (i + 1), -float(i)) for i in range(1, most))
        if kind == 1:
            return model + b"".join(_piece(b"%d" % i + letter * 30000, -float(i)) for i in range(size // 30000))
        if kind == 2:
            depth = size // 2
            return b'{"x": ' + b"[" * depth + b"]" * depth + b", " + tree.lstrip()[1:]
        if kind == 3:
            return b"{" + b"".join(b'"k%d": "%s", ' % (i, letter * 8) for i in range(size // 20)) + tree.lstrip()[1:]
        return tree.replace(b'"added_tokens"', b'"added_tokens": [], "x": "' + letter * size + b'", "y"')
    size = 1 << 19
    ending = ".model" if kind < 2 else ".json"
    round_.write("empty" + ending, model if kind < 2 else tree)
    round_.write("small" + ending, make(size))
    round_.write("large" + ending, make(4 * size))
    _grows(round_, f"loading of kind {kind}", ("tokenizer", "small" + ending), ("tokenizer", "large" + ending),
           ("tokenizer", "empty" + ending))


# Each takes exponential or high polynomial time for some text: with few letters it meets the limit of steps, with many
# that of memory.
PATTERNS = (r"(?:a|aa)+$|.", r"(?:a+)+b|.", r"(a|a)*c|.", r"(?:a*)*b|\s|.", r"\w+\d|(?:\w*\w*\w*\w*)x|.",
            r"(?:.*a){8}b|.")


def _patterns(round_):
    """A pattern that backtracks ends by its match limit."""
    random = round_.random
    round_.write("ranks.tiktoken", "".join(f"{base64.b64encode(bytes([i])).decode()} {i}\n" for i in range(256)))
    pattern, count = random.choice(PATTERNS), random.choice((40, 60, 60, 100, 3000, 30000))
    round_.write("in.txt", "a" * count + random.choice(("", "c", "!", "é")))
    status, _, said, seconds = round_.measured(TOKMAP, "pack", "--dry-run", "-q", "--no-eod", "--threads", "1", "-t",
                                               "ranks.tiktoken", "--pattern-regex", pattern, "-o", "d", "in.txt",
                                               statuses=(0, 1), limit=60)
    if seconds > 10:
        raise Wrong(f"{pattern!r} took {seconds:.1f} s for {count} letters")
    if status and not said.strip():
        raise Wrong(f"{pattern!r} fails without a message")


CASES = ((_splitting, "texts"), (_added_tokens, "added tokens"), (_splitting, "texts"), (_loading, "loadings"),
         (_splitting, "texts"), (_patterns, "patterns"))


def worst(round_):
    if SANITIZED:
        raise Skip("sanitizers change what takes time")
    case, name = CASES[round_.seed % len(CASES)]
    case(round_)
    round_.count(name)
