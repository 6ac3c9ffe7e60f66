# SPDX-License-Identifier: MIT
"""terminal_commands.py: runs every command on a terminal with names and contents that try to act on it.

The current folder is empty. The names of all files, a column, an added token, a source, and the texts contain escape
sequences, C1 controls as characters and as single bytes, DEL, a change of direction, and a line that says that
something is sound. The terminal may get none of them. With --json, the output must also be JSON without them.
"""
import json, os, pty, re, subprocess, sys

evil = b"x\x1b]0;T\x07\x1b[31m\xc2\x9b32m\x9b33m\x7f\xe2\x80\xae\ny: sound"
text = evil.replace(b"\x9b33m", b"").decode()  # valid UTF-8, for what must be
shown = "^[]0;T^G"
# What tokmap itself sends to a terminal: a progress line that is redrawn, and dim text.
own = re.compile(r"\r(?:[^\r\n\x1b]*)\x1b\[K|\x1b\[2m|\x1b\[22m")
acting = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
faults = 0

def fault(words, what, output):
    global faults
    faults += 1
    print(f"FAULT: {words}: {what}\n{output[:1500]!r}", file=sys.stderr)

def on_terminal(words):
    """Runs a command whose three standard files are a terminal; returns its output and exit status."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(COLUMNS="200", TERM="xterm")
        os.execvp(words[0], words)
    parts = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the child has closed it
            break
        if not part:
            break
        parts.append(part)
    os.close(terminal)
    return b"".join(parts).replace(b"\r\n", b"\n"), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) \
        if hasattr(os, "waitstatus_to_exitcode") else os.waitpid(child, 0)[1] >> 8

def check(status, *words, quotes=True, lines=False, program="tokmap"):
    """Runs a command, which must end with `status`. quotes: it shows a hostile text. lines: its output has the text of
    documents, whose newlines are newlines."""
    words = [program.encode()] + [word.encode() if isinstance(word, str) else word for word in words]
    output, got = on_terminal(words)
    if got != status:
        fault(words, f"exit status {got}, expected {status}", output)
    try:
        seen = own.sub("", output.decode())
    except UnicodeDecodeError:
        fault(words, "bytes that are not UTF-8", output)
        return
    if acting.search(seen):
        fault(words, "acts on the terminal", output)
    if not lines and re.search(r"^\s*y: sound", seen, re.M):
        fault(words, "a forged line", output)
    if quotes and shown not in seen and "\\u001b]0;T\\u0007" not in seen and "\\x1b]0;T\\x07" not in seen:
        fault(words, "does not show the hostile text, so it proves nothing", output)

def check_json(*words, program="tokmap"):
    words = [program.encode()] + [word.encode() if isinstance(word, str) else word for word in words]
    output = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    try:
        for line in output.decode().splitlines() if b"\n{" in output else [output.decode()]:
            json.loads(line)
    except ValueError as error:
        fault(words, f"not JSON: {error}", output)
        return
    if acting.search(output.decode()):
        fault(words, "JSON with characters that act on a terminal", output)

def write(path, content):
    with open(path, "wb") as file:
        file.write(content)

# ---- the files ----

os.mkdir("d")
data, run, tokenizer = b"d/" + evil, evil + b".run", evil + b".json"
records = [{"text": text + " and more text to train with", text: {text: [text, "\x7f"]}} for _ in range(40)]
write(evil + b".jsonl", "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode())
write("plain.txt", b"plain words, plain words " * 50)
write("special.json", json.dumps({"<|endoftext|>": 300, text: 301}).encode())
subprocess.run(["tokmap", "train-tokenizer", "-q", "--vocab-size", "300", "-o", "v", "plain.txt"], check=True)
with open("v.json", encoding="utf-8") as file:
    vocabulary = json.load(file)
most = max(vocabulary["model"]["vocab"].values())
vocabulary["added_tokens"] = [{"id": most + 1 + i, "content": content, "single_word": False, "lstrip": False,
                               "rstrip": False, "normalized": False, "special": True}
                              for i, content in enumerate(("<|endoftext|>", "<" + text + ">"))]
write(tokenizer, json.dumps(vocabulary, ensure_ascii=False).encode())

# ---- the commands ----

check(0, "pack", "-o", data, "--columns", text, evil + b".jsonl")
check(1, "pack", "-o", data, evil + b".jsonl")
check(1, "pack", "-o", evil + b".jsonl/o", evil + b".jsonl")
check(1, "pack", "-o", "other", b"no" + evil)
check(1, "pack", "-o", "other", "--columns", "missing", "-t", evil + b".jsonl", evil + b".jsonl")
check(0, "pack", "-q", "--force", "-o", "d/second", "-t", tokenizer, evil + b".jsonl", quotes=False)
check_json("pack", "--json", "--force", "-o", data, "--columns", text, evil + b".jsonl")
for words in (["info", data], ["info", "d"], ["verify", data], ["info", "d/second"]):
    check(0, *words)
    check_json(*words, "--json")
check(0, "stats", data, quotes=False)
check_json("stats", "--json", data)
check(0, "stats", "d/second", "-t", tokenizer)
check(0, "show", data, "--document", "1", lines=True)
check(0, "show", data, "--document", "1", "--ids")
check_json("show", data, "--document", "1", "--json")
check(0, "export", data)
check(1, "export", "-o", evil + b".jsonl/x", data)
check(1, "merge", "-o", b"m" + evil, data, data)  # a manifest cannot hold a line end
check(0, "merge", "-o", b"m" + evil, "d/second", "d/second")
check(0, "info", b"m" + evil)
write(b"p" + evil, b"#tokmap-dataset 1\n" + evil.replace(b"\n", b"") + b"\n")
check(1, "info", b"p" + evil)
check(0, "plan", "-o", b"l" + evil, "--seq-len", "64", data)
check(0, "info", b"l" + evil, quotes=False)
write(run, b"seq_len 16\nbatch 2\nsource web d/second\nsource more " + b"\"" + b"nothing\x1b]0;T\x07\xc2\x9b" + b"\"\npasses 1\n")
check(1, "info", run)
check(1, "audit", "--ranks", "1", run)
check(1, "replay", run, "--trace", data)
write(run, b"seq_len 16\nbatch 2\nsource web d/second\npasses 1\n")
check(0, "info", run)
check_json("info", "--json", run)
check(0, "audit", "--ranks", "1", run)
check_json("audit", "--json", "--ranks", "1", run)
check(1, "replay", run, "--trace", data)
check(1, "show", run, "--step", "0")
check(0, "show", run, "-t", tokenizer, "--step", "0", lines=True, quotes=False)
check(0, "mix", "--seq-len", "16", "--batch", "2", "web=d/second:epochs=1", quotes=False)
check(1, "mix", "--seq-len", "16", "--batch", "2", b"web=" + evil + b":epochs=1")
check(1, "index", b"megatron:" + evil)
check(2, "order", "--windows", evil)
check(2, "order", evil)
check(0, "tokenizer", tokenizer)
check_json("tokenizer", "--json", tokenizer)
check(1, "tokenizer", evil)
write("evil.txt", text.encode())
check(0, "encode", "--pieces", "evil.txt", quotes=False)
check(0, "encode", "-t", tokenizer, evil + b".jsonl", "--input-format", "text", quotes=False)
check_json("encode", "-t", tokenizer, "--pieces", "--output-format", "jsonl", "plain.txt")
ids = " ".join(str(byte) for byte in evil)
check(0, "decode", "--ids", ids, lines=True)
check(0, "decode", "--ids", ids, "--output-format", "jsonl")
check(0, "decode", "-t", tokenizer, "--specials", "--ids", str(most + 2), lines=True)
write("ids", ids.encode() + b"\n")
check(0, "decode", "ids", lines=True)
check(1, "decode", evil)
check(1, "train-tokenizer", "--vocab-size", "280", "-o", b"t" + evil, evil + b".jsonl")  # its note has lines
check(0, "train-tokenizer", "--vocab-size", "280", "-o", b"t" + evil.replace(b"\n", b""), evil + b".jsonl")
check(1, "train-tokenizer", "--vocab-size", "280", "-o", "t", b"no" + evil)
check(2, evil)
check(2, "completion", evil)
for command in ("pack", "merge", "index", "plan", "mix", "info", "stats", "export", "show", "verify", "audit", "replay",
                "order", "tokenizer", "encode", "decode", "train-tokenizer", "completion"):
    check(2, command, b"--" + evil)
check(0, "--complete", "tokmap", "info", "d/", quotes=False)
check(1, "open", b"no" + evil, program="tokmap-bench")
check(2, evil, program="tokmap-bench")
check(2, "verify", b"--" + evil, program="tokmap-bench")

# A damaged shard: fault lines quote the path and what is wrong.
with open(data + b".bin", "r+b") as file:
    file.write(b"\xff\xff")
check(1, "verify", data)
check_json("verify", "--json", data)
os.truncate(data + b".bin", 10)
check(1, "info", data)
check(1, "verify", data)
check(1, "info", "d")

# Into a pipe or a file, decoded text is what it is, byte for byte.
piped = subprocess.run([b"tokmap", b"decode", b"ids"], stdout=subprocess.PIPE).stdout
if piped != evil:
    fault("decode into a pipe", "the text is changed", piped)
sys.exit(faults > 0)
