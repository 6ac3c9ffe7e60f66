# SPDX-License-Identifier: MIT
"""terminals.py: names, texts, and fields made of characters that act on a terminal. Commands whose standard files are a
terminal send it none of them, whatever they print; and --json stays JSON without them."""
import json, os, pty, re, subprocess, threading

from rounds import SANITIZED, TOKMAP, Skip, Wrong

# What tokmap itself sends to a terminal: a progress line that is redrawn, and dim text.
OWN = re.compile(r"\r(?:[^\r\n\x1b]*)\x1b\[K|\x1b\[2m|\x1b\[22m")
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
EVIL = ("\x1b[31m", "\x1b]0;T\x07", "\x1bc", "\x1b[2J", "\x9b31m", "\x90q\x9c", "\x7f", "\b\b\b", "\r", "\u202e", "\u2066",
        "\u2028", "\x85", "\x0e", "\x00", "\x1b[?1049h", "\x1b]52;c;eA==\x07", "\n")
RAW = (b"\x9b31m", b"\x90q\x9c", b"\xc2", b"\xe2\x80", b"\xff\x1b[5m", b"\x84")
STATUSES = (0, 1, 2)


def _evil(random, name=False):
    """Bytes with a part that acts. A name has no zero byte and no slash."""
    parts = [random.choice(EVIL).encode() for _ in range(random.randrange(1, 5))]
    if random.random() < 0.5:
        parts.append(random.choice(RAW))
    parts += [random.choice(("x", "é", "name", " ", "%s", "%n")).encode() for _ in range(random.randrange(3))]
    random.shuffle(parts)
    evil = b"".join(parts)
    return evil.replace(b"\0", b"").replace(b"/", b"").replace(b"\n", b"\n" if random.random() < 0.5 else b"") or b"\x1b[m" \
        if name else evil


def _text(random):
    return _evil(random).decode(errors="ignore")


def _on_terminal(round_, words):
    """Runs a command whose three standard files are a terminal; returns its output and its status."""
    round_.check_time()
    round_.count("commands")
    terminal, theirs = pty.openpty()
    process = subprocess.Popen(words, cwd=round_.folder, stdin=theirs, stdout=theirs, stderr=theirs,
                               start_new_session=True,
                               env={**os.environ, "COLUMNS": "120", "TERM": "xterm", "TMPDIR": round_.folder})
    os.close(theirs)
    late = threading.Timer(60, process.kill)
    late.start()
    parts = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the command has closed it
            break
        if not part:
            break
        parts.append(part)
    os.close(terminal)
    status = process.wait()
    late.cancel()
    return b"".join(parts).replace(b"\r\n", b"\n"), status


def _check(round_, *words):
    words = [TOKMAP.encode()] + [word.encode() if isinstance(word, str) else word for word in words]
    output, status = _on_terminal(round_, words)
    if status not in STATUSES:
        raise Wrong(f"{words}: exit status {status}: {output[-800:]!r}")
    try:
        seen = OWN.sub("", output.decode())
    except UnicodeDecodeError:
        raise Wrong(f"{words}: bytes that are not UTF-8 on a terminal: {output[-800:]!r}") from None
    acts = ACTING.search(seen)
    if acts:
        raise Wrong(f"{words}: {acts.group()!r} reaches the terminal: {output[max(0, acts.start() - 100):][:800]!r}")
    round_.count("commands that quote" if b"^[" in output or b"\\x" in output or b"\\u00" in output or b"^" in output
                 else "commands that do not quote")


def _check_json(round_, *words):
    _, out, _ = round_.tokmap(*words)
    try:
        for line in out.splitlines() if b"\n{" in out else [out] if out.strip() else []:
            json.loads(line)
        text = out.decode()
    except ValueError as error:
        raise Wrong(f"{words}: not JSON: {error}: {out[:800]!r}") from None
    if ACTING.search(text):
        raise Wrong(f"{words}: JSON with characters that act on a terminal: {out[:800]!r}")


def _write(round_, name, content):
    with open(os.path.join(round_.folder.encode(), name), "wb") as file:
        file.write(content)


def attack(round_):
    if SANITIZED:
        raise Skip("a sanitizer's messages are its own")
    random = round_.random
    if len(round_.folder) > 200:
        raise Skip("the path of the folder is too long")
    os.makedirs(os.path.join(round_.folder, "d"))
    data, records = b"d/" + _evil(random, True), _evil(random, True) + b".jsonl"
    run, tokenizer = _evil(random, True) + b".run", _evil(random, True) + b".json"
    column = _text(random).replace(",", "") or "c"
    rows = [json.dumps({"text": _text(random) + " and more", column: _text(random)}, ensure_ascii=random.random() < 0.5)
            for _ in range(20)]
    _write(round_, records, "\n".join(rows).encode() + b"\n")
    round_.write("plain.txt", "plain words, plain words " * 50)
    round_.tokmap("train-tokenizer", "-q", "--vocab-size", "300", "-o", "v", "plain.txt", statuses=(0,))
    tree = json.loads(round_.read("v.json"))
    most = max(tree["model"]["vocab"].values())
    tree["added_tokens"] = [{"id": most + 1 + i, "content": content, "single_word": False, "lstrip": False,
                             "rstrip": False, "normalized": False, "special": True}
                            for i, content in enumerate(("<|endoftext|>", "<" + _text(random) + ">"))]
    if random.random() < 0.3:
        tree[random.choice(("version", "normalizer", "model", _text(random)))] = _text(random)
    _write(round_, tokenizer, json.dumps(tree, ensure_ascii=random.random() < 0.5).encode(errors="ignore"))
    _write(round_, run, b"seq_len 16\nbatch 2\nsource web \"" + data.replace(b'"', b"").replace(b"\n", b"") +
           b"\"\npasses 1\n" + (b"" if random.random() < 0.5 else _evil(random) + b"\n"))
    _write(round_, b"m", b"tokmap-shards 1\n" + data + b"\n" + _evil(random))
    ids = " ".join(str(byte) for byte in _evil(random))
    commands = (
        ("pack", "-o", data, "--columns", column.replace("\0", ""), records), ("pack", "-o", data, records),
        ("pack", "-o", data, "-t", tokenizer, "--force", records), ("info", data), ("info", "d"), ("verify", data),
        ("stats", data), ("show", data, "--document", "0", "--ids"), ("info", run), ("audit", "--ranks", "1", run),
        ("show", run, "--step", "0"), ("info", "m"), ("tokenizer", tokenizer), ("encode", "-t", tokenizer, records),
        ("pack", "-o", b"no/" + data, records), ("train-tokenizer", "--vocab-size", "280", "--force", "-o", "t", records),
        ("decode", "--ids", ids, "--output-format", "jsonl"), ("decode", records), (_evil(random, True),),
        (random.choice(("pack", "info", "show", "encode", "mix", "order")), b"--" + _evil(random, True)),
        ("mix", "--seq-len", "16", "--batch", "2", b"web=" + data + b":epochs=1"), ("index", b"megatron:" + data),
        ("plan", "--force", "-o", "l", "--seq-len", "64", data), ("merge", "--force", "-o", "both", data, data))
    for words in commands:
        if not any(isinstance(word, bytes) and b"\0" in word for word in words):
            _check(round_, *words)
    for words in (("info", "--json", data), ("info", "--json", "d"), ("verify", "--json", data),
                  ("tokenizer", "--json", tokenizer), ("show", data, "--document", "1", "--json"),
                  ("info", "--json", run), ("stats", "--json", data)):
        _check_json(round_, *words)
    # A damaged shard, whose fault lines quote names.
    path = os.path.join(round_.folder.encode(), data + b".bin")
    if os.path.exists(path):
        os.truncate(path, random.randrange(os.path.getsize(path)))
        _check(round_, "verify", data)
        _check(round_, "info", "d")
