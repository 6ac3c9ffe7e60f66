# SPDX-License-Identifier: MIT
"""json_lines.py: random lines of JSON, right and wrong, are read by tokmap as Python reads them.

A line is taken if it is one JSON object whose member "text" is a string; as in Python, other members may be NaN. Where
both could differ by intention, nothing is generated: a member given twice, bytes that are not UTF-8, lone surrogates,
and numbers of thousands of digits.
"""
import json

from rounds import Wrong

LINES = 2000


def _string(random):
    alphabet = ("a", "Z", " ", "\\n", "\\t", "\\\"", "\\\\", "\\/", "\\b", "\\f", "\\r", "\\u0041", "\\u00e9",
                "\\u20AC", "\\ud83d\\ude00", "\\u0000", "é", "€", "😀", "\u0085", "\u2028", "\x7f", *"'{}[],:")
    return '"' + "".join(random.choice(alphabet) for _ in range(random.choice((0, 1, 2, 7, 15, 16, 17, 64, 200)))) + '"'


def _number(random):
    return random.choice(("0", "-0", "1", "-1", "12.5", "1e5", "1E-5", "0.0e+0", "123456789012345678901234567890",
                          "1e400"))


def _value(random, depth):
    kind = random.randrange(9 if depth else 6)
    if kind < 2:
        return _string(random)
    if kind < 6:
        return (_number(random), "true", "false", "null")[kind - 2]
    space = random.choice(("", " ", "\t", "  "))
    values = [_value(random, depth - 1) for _ in range(random.randrange(4))]
    if kind == 6:
        return "[" + space + (space + "," + space).join(values) + space + "]"
    return "{" + space + (space + "," + space).join(f'"k{i}"{space}:{space}{value}'
                                                    for i, value in enumerate(values)) + space + "}"


def _line(random):
    space = random.choice(("", "", " ", "\t"))
    members = [f'"m{i}"{space}:{space}' + _value(random, 4) for i in range(random.randrange(4))]
    name = '"te\\u0078t"' if random.randrange(8) == 0 else '"text"'
    value = _string(random) if random.random() < 0.95 else _value(random, 2)
    members.insert(random.randrange(len(members) + 1), f"{name}{space}:{space}{value}")
    line = space + "{" + space + (space + "," + space).join(members) + space + "}" + space
    if random.random() < 0.4:  # a few mistakes: characters dropped, put in, or exchanged
        for _ in range(random.randrange(1, 4)):
            at = random.randrange(len(line) + 1)
            put = random.choice(("", "", *'"\\{}[],:0-.et\t\x01+', "Inf", "NaN"))
            line = line[:at] + put + line[at + random.randrange(2):]
    return line


def _twice(pairs):
    if len(pairs) != len({key for key, _ in pairs}):
        raise LookupError("a member given twice")
    return dict(pairs)


def _wanted(line):
    """The text of a line, or None if it is wrong. Raises LookupError for lines that are not compared."""
    try:
        value = json.loads(line, object_pairs_hook=_twice)
    except LookupError:
        raise
    except (ValueError, RecursionError):
        return None
    text = value.get("text") if isinstance(value, dict) else None
    if any(0xD800 <= ord(character) < 0xE000 for character in json.dumps(value, ensure_ascii=False)):
        raise LookupError("a lone surrogate")
    return text if isinstance(text, str) else None


def against_python(round_):
    lines, wanted = [], []
    while len(lines) < LINES:
        line = _line(round_.random)
        if "\n" in line or not line.strip(" \t\r"):
            continue
        try:
            text = _wanted(line)
        except LookupError:
            continue
        lines.append(line)
        wanted += [text] if text is not None else []
    path = round_.write("lines.jsonl", "\n".join(lines) + "\n")
    round_.tokmap("pack", "-q", "--no-eod", "--on-error", "skip", "-o", "packed", path, statuses=(0, 1))
    # tokens are bytes: each document is compared with its text in UTF-8
    _, exported, _ = round_.tokmap("export", "--jsonl", "packed", statuses=(0,))
    got = [json.loads(line)["text"] for line in exported.decode().split("\n") if line]
    if got == wanted:
        return
    at = next((i for i, (one, other) in enumerate(zip(got, wanted)) if one != other), min(len(got), len(wanted)))
    raise Wrong(f"{len(got)} documents, and {len(wanted)} by Python; the first that differs is document {at}: "
                f"{got[at:at + 1]!r}, and by Python {wanted[at:at + 1]!r}")
