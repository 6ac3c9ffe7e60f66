# SPDX-License-Identifier: MIT
"""records.py: damaged records, Parquet files, compressed files, lists of ids, and conversations.

Whatever the bytes are, pack takes them or refuses them with a message; the shard is sound, and the same with one thread
and with three. With --on-error skip, damage of some lines of JSONL costs only these lines.
"""
import bz2, gzip, json, lzma, os

from rounds import TOP, Wrong

FILES = 25
LIMIT = 30  # seconds of a command; the files are small
ODD = (b"", b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b"\n", b"\r\n", b"\\u",
       b"\\ud800", b"1e999", b"-", b"NaN", b"null", b"\xef\xbb\xbf", b"\t", b";", b'""', b"PAR1", b"\x80\x80\x80\x80\x10",
       b"\x7f" * 8, b"\xff" * 8, b"9" * 400, b"[" * 300, b"WARC/1.0\r\n", b"Content-Length: 18446744073709551615\r\n")


def _word(random):
    return "".join(random.choice("abc é€😀\\\"'<|>/\n") for _ in range(random.randrange(0, 30)))


def _jsonl(random):
    return b"".join(json.dumps({"n": i, "text": _word(random), "m": {"a": [_word(random)]}}, ensure_ascii=random.random() <
                               0.5).encode() + b"\n" for i in range(60)), ["--columns", "n,m.a"]


def _json(random):
    return json.dumps([{"text": _word(random), "n": i} for i in range(40)]).encode(), ["--columns", "n"]


def _table(random, comma):
    quoted = lambda text: '"' + text.replace('"', '""') + '"'
    rows = "".join(comma.join((str(i), quoted(_word(random)))) + "\n" for i in range(60))
    return ("n" + comma + "text\n" + rows).encode(), []


def _ids(random):
    rows = []
    for _ in range(60):
        ids = [random.randrange(1000) for _ in range(random.randrange(20))]
        rows.append(json.dumps({"ids": ids, "mask": [random.randrange(2) for _ in ids]}))
    return "\n".join(rows).encode(), ["--ids-field", "ids", "--mask-field", "mask", "--vocab-size", "1000"]


def _prompts(random):
    return "\n".join(json.dumps({"p": _word(random), "c": _word(random)}) for _ in range(60)).encode(), \
        ["--prompt-field", "p", "--completion-field", "c"]


def _messages(random):
    rows = []
    for _ in range(40):
        turns = [{"role": random.choice(("user", "assistant", "system", "tool", "")),
                  "content": random.choice((_word(random), "<|im_start|>" + _word(random), "<|im_end|>\n"))}
                 for _ in range(random.randrange(6))]
        rows.append(json.dumps({"messages": turns}))
    return "\n".join(rows).encode(), ["--messages-field", "messages", "--chat-template", "chatml", "-t", "chat.json"]


def _warc(random):
    parts = []
    for i in range(12):
        body = _word(random).encode()
        parts.append(b"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://x/%d\r\nContent-Type: text/plain\r\n"
                     b"Content-Length: %d\r\n\r\n" % (i, len(body)) + body + b"\r\n\r\n")
    return b"".join(parts), []


def _parquet(random):
    folder = os.path.join(TOP, "tests", "fuzz", "corpus", "fuzz_parquet")
    with open(os.path.join(folder, random.choice(sorted(os.listdir(folder)))), "rb") as file:
        return file.read()[2:], []  # the first two bytes choose how the harness reads the file


KINDS = (("jsonl", _jsonl), ("json", _json), ("csv", lambda random: _table(random, ",")),
         ("tsv", lambda random: _table(random, "\t")), ("jsonl", _ids), ("jsonl", _prompts), ("jsonl", _messages),
         ("warc", _warc), ("parquet", _parquet), ("parquet", _parquet))


def _damage(random, content):
    content = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 5, 20))):
        if not content:
            break
        at = random.randrange(len(content))
        kind = random.randrange(6)
        if kind == 0:
            content[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            content[at:at + random.randrange(1, 30)] = random.choice(ODD)
        elif kind == 2:
            content[at:at] = random.choice(ODD)
        elif kind == 3:
            del content[at:at + random.randrange(1, 60)]
        elif kind == 4:
            content[at:at] = content[max(0, at - 50):at]
        elif random.random() < 0.3:
            del content[at:]
    return bytes(content)


def _compress(random, content):
    """Returns the content, perhaps compressed, and the ending of its name."""
    name, compress = random.choice((("", bytes), ("", bytes), ("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress),
                                    (".xz", lzma.compress)))
    return (_damage(random, compress(content)) if name and random.random() < 0.6 else compress(content)), name


def _chat_tokenizer(round_):
    round_.write("words.txt", "the quick brown fox jumps over the lazy dog " * 20)
    round_.tokmap("train-tokenizer", "-q", "--vocab-size", "290", "--special-tokens", "<|im_start|>,<|im_end|>,<|endoftext|>",
                  "-o", "chat", "words.txt", statuses=(0,))


def mutated(round_):
    random = round_.random
    _chat_tokenizer(round_)
    for number in range(FILES):
        ending, make = random.choice(KINDS)
        content, options = make(random)
        content = _damage(random, content) if random.random() < 0.95 else content
        packing = ""
        if ending != "parquet":
            content, packing = _compress(random, content)
        name = f"in{number}.{ending}{packing}"
        round_.write(name, content)
        words = ["pack", "-q", "--force", *options, *random.choice(([], ["--on-error", "skip"])),
                 *random.choice(([], ["--invalid-utf8", "replace"], ["--invalid-utf8", "skip"])), name]
        seen = []
        for threads in ("1", "3"):
            for left in ("d.bin", "d.tmx", "d.mask"):
                if os.path.exists(round_.path(left)):
                    os.remove(round_.path(left))
            status, _, said = round_.tokmap(*words, "--threads", threads, "-o", "d", limit=LIMIT)
            seen.append((status, [round_.read("d" + part) for part in (".bin", ".tmx", ".mask")]))
            if status == 1 and not said.strip():
                raise Wrong(f"{name}: {words} fails without a message")
        if seen[0] != seen[1]:
            raise Wrong(f"{name}: {words} gives another result with three threads")
        if status == 0:
            round_.tokmap("verify", "-q", "d", statuses=(0,), limit=LIMIT)
        round_.count("files taken" if status == 0 else "files refused")
        os.remove(round_.path(name))
    _lines(round_)


def _lines(round_):
    """Damaged lines of JSONL are left out, and all others are there."""
    random = round_.random
    lines, wanted = [], []
    for i in range(200):
        line = json.dumps({"text": f"{i} " + _word(random)}).encode()
        if random.random() < 0.2:
            line = random.choice((line[:-1], line[1:], line + b"x", line.replace(b"text", b"other"), b"[]", b"1",
                                  line.replace(b'"text"', b'text'), line + b"}", b'{"text": 1}'))
        else:
            wanted.append(json.loads(line)["text"])
        lines.append(line)
    round_.write("lines.jsonl", b"\n".join(lines) + b"\n")
    round_.tokmap("pack", "-q", "--force", "--on-error", "skip", "-o", "lines", "lines.jsonl", statuses=(0,))
    _, out, _ = round_.tokmap("export", "--jsonl", "lines", statuses=(0,))
    got = [json.loads(line)["text"] for line in out.decode().split("\n") if line]
    if got != wanted:
        raise Wrong(f"lines.jsonl: {len(got)} documents instead of {len(wanted)}: "
                    f"{[text for text in wanted if text not in got][:3]}")
    round_.count("damaged lines", 200 - len(wanted))
