#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""census.py FOLDER [--out FOLDER] [--only PATTERN] [--corpus FOLDER] [--no-rates]: opens every tokenizer below FOLDER with tokmap and
with its reference, compares their ids, and writes a table (census.md, census.json, census.tsv in --out).

Compared are some hundred short texts that are awkward for tokenizers, and 1 MB of mixed text: prose, code, Chinese and
Japanese, and many scripts. The mixed text is taken from the corpus of the reference data where there is one, and is
made otherwise. A rate is that of the mixed text as one text, on one thread, from Python, in processor time, the best of
three; the table has tokmap's divided by the reference's. Each tokenizer has a process of its own, with a limit of time and of memory.
The Python that runs this needs tokenizers, sentencepiece, and tiktoken.
"""
import argparse
import fnmatch
import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import time
import unicodedata

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from references import REFERENCES, Unreadable, family, lower_of  # noqa: E402
from vocabulary_files import kind_of, pair_of  # noqa: E402

SECONDS, MEMORY = 300, 8 << 30
MIXED_BYTES = 1 << 20
WORDS = """the The THE and ing tion foo_bar x1 2 10 333 2024 3.14 é naïve ß ẞ İ ı ﬁ Ⅷ ① ｆｕｌｌ ｶﾞ が が ǅ Привет мир Ёлка
العربية שלום हिन्दी ไทย 中文 漢字 日本語 かな カナ 한국어 조선 각 ខ្មែរ မြန်မာ ελληνικά Ωmega 😀 👨‍👩‍👧 🇩🇪 👍🏽 𝟘 𐐀 ( ) {} [] // -- === ... != -> `` ''
"quoted" it's I'M we'LL don''t rock'n'roll http://a.b/c?d=e&f a@b.co $1,000.00 #tag C++ U+0000 é ợ ñ ﷺ ㍻ … — – • ™ ½ ² µ º
[UNK] [CLS] [MASK] <s> </s> <unk> <pad> <|endoftext|> <|im_start|> <0x41> <extra_id_0> ▁ ▁▁ ##ing </w> Ġ @@""".split()
SPACES = [" ", " ", " ", "", "  ", "   ", "\n", "\r\n", "\t", "\n\n", "\u00a0", "\u3000", "\u2009", "\u200b", "\u200d", "\ufeff",
          " " * 17, "\u0085", "\u2028", "\x00", "\x01", "\x7f", "\ufffd", "\u00ad", "\u0301"]


def adversarial():
    """The same texts on every machine: random.Random(1).random() is specified."""
    rng = random.Random(1)
    pick = lambda parts: parts[int(rng.random() * len(parts))]  # noqa: E731
    texts = ["", " ", "\n", "a", "a" * 1000, "ab" * 500, " " * 100, "!" * 200, "1" * 50, "\u4e2d" * 300, "\U0001f600" * 60,
             "x" * 101, "\u0301" * 40, "a\u0300\u0301\u0302\u0323", "\uac00\u1100\u1161\u11a8", "ﬃﬁ" * 9, "\u2581" * 7]
    for _ in range(400):
        texts.append("".join(pick(WORDS) + pick(SPACES) for _ in range(1 + int(rng.random() * 8))))
    for _ in range(100): # characters from anywhere
        texts.append("".join(c for c in (chr(int(rng.random() ** 3 * 0x11000)) for _ in range(20))
                             if unicodedata.category(c) != "Cs"))
    return texts


def mixed(corpus):
    """About 1 MB: prose, code, Chinese and Japanese, mixed scripts, a quarter each."""
    parts = []
    for names in (("en_moby_dick.txt", "en_wikitext2_test.txt"), ("code_c_valkey_server.c", "code_js_lodash.js"),
                  ("wiki_zh.txt", "ja_wagahai_neko.txt", "zh_tang_poems.json"),
                  ("wiki_ru.txt", "wiki_ar.txt", "wiki_hi.txt", "wiki_th.txt", "wiki_de.txt", "unicode_blns.txt",
                   "ko_rust_book.md")):
        for name in names:
            path = os.path.join(corpus or "", name)
            if not os.path.exists(path):
                break
            with open(path, "rb") as file:
                parts.append(file.read(MIXED_BYTES // 4 // len(names)).decode(errors="ignore"))
    if len(parts) == 14:
        return "\n".join(parts), "the corpus of the reference data"
    rng = random.Random(2)
    made, size = [], 0
    while size < MIXED_BYTES:
        word = WORDS[int(rng.random() ** 2 * len(WORDS))] + (" " if rng.random() < 0.9 else "\n")
        made.append(word)
        size += len(word.encode())
    return "".join(made), "made of words"


def ids_of(encode, text):
    try:
        return [int(id) for id in encode(text)]
    except Exception as error: # a reference that has no token for a character raises anything
        return type(error).__name__


def rate(encode, text):
    """Bytes in a second of processor time: the best of three, or of one if it is slow."""
    best, size = 0.0, len(text.encode())
    for _ in range(3):
        start = time.process_time()
        encode(text)
        took = time.process_time() - start
        best = max(best, size / took)
        if took > 5:
            break
    return best


def compare(path, folder, kind, corpus, rates):
    """The row of one tokenizer, as far as known; it is printed again whenever more is known."""
    import tokmap
    with open(path, "rb") as file:
        content = file.read()
    row = {"family": family(path, folder, content, kind), "bytes": len(content), "reference": REFERENCES[kind][0]}

    def known(**more):
        row.update(more)
        print(json.dumps(row), flush=True)
    opened = folder if os.path.isdir(path) else path
    try:
        start = time.perf_counter()
        asks = kind == "vocab.txt" and not os.path.exists(os.path.join(folder, "tokenizer_config.json"))
        ours = tokmap.Tokenizer(opened, lower_case=lower_of(path) if asks else None)
        known(loads=True, open_ms=1000 * (time.perf_counter() - start), ids=len(ours))
    except tokmap.errors.TokmapError as error:
        known(loads=False, refused=str(error).replace(opened, "").lstrip(": "))
        ours = None
    try:
        start = time.perf_counter()
        theirs = REFERENCES[kind][1](path, folder)
        known(reference_loads=True, reference_open_ms=1000 * (time.perf_counter() - start))
    except Exception as error: # what a reference raises is its own affair
        known(reference_loads=False, reference_refused=str(error) if isinstance(error, Unreadable) else
              f"{type(error).__name__}: {str(error)[:200]}")
        theirs = None
    if not ours:
        return
    text, _ = mixed(corpus)
    encode = ours.encode_array
    if theirs:
        texts = adversarial()
        different = [(text, ids_of(theirs, text), ids_of(encode, text)) for text in texts]
        # Both may refuse a text; they name the reason differently.
        different = [d for d in different if d[1] != d[2] and not (isinstance(d[1], str) and isinstance(d[2], str))]
        known(texts=len(texts), different=len(different), first=different[0] if different else None)
        a, b = ids_of(theirs, text), ids_of(encode, text)
        known(mixed_equal=a == b or isinstance(a, str) and isinstance(b, str), mixed_ids=len(b),
              mixed_first=next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), None))
    known(refuses_mixed=isinstance(ids_of(encode, text), str),
          peak_kib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    if rates and not row["refuses_mixed"]:
        known(rate=rate(encode, text))
        known(reference_rate=rate(theirs, text) if theirs else None)


def tokenizers_below(top):
    """Paths of the files that are tokenizers, with their kinds."""
    for folder, folders, names in os.walk(top):
        folders.sort()
        kinds = {}
        for name in sorted(names):
            with open(os.path.join(folder, name), "rb") as file:
                kinds[name] = kind_of(name, file.read())
        for name, kind in kinds.items():
            if kind in REFERENCES and (kind != "ids" or pair_of(name, kinds)):
                # vocab.json beside a tokenizer.json or a .spm is a part of the same tokenizer
                if kind != "ids" or "tokenizer.json" not in kinds:
                    yield os.path.join(folder, name), folder, kind


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def run_one(path, folder, kind, corpus, rates=True):
    environment = dict(os.environ, RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1")
    command = [sys.executable, os.path.abspath(__file__), "--one", path, folder, kind, corpus or "", "rates" if rates else ""]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * SECONDS, preexec_fn=limits,
                              env=environment)
        output, end = done.stdout, done.returncode and (f"the process ended with {done.returncode}: " +
                                                        done.stderr.strip().rsplit("\n", 1)[-1][:200])
    except subprocess.TimeoutExpired as error:
        output, end = (error.stdout or b"").decode(), f"more than {2 * SECONDS} s"
    lines = output.strip().split("\n")
    row = json.loads(lines[-1]) if lines[-1] else {"family": "unknown", "reference": REFERENCES[kind][0]}
    return dict(row, failed=end or None)


def equal(row):
    if row.get("failed"):
        return "failed: " + row["failed"]
    if not row.get("loads"):
        return "refused: " + row["refused"]
    if not row.get("reference_loads"):
        return "no reference: " + row["reference_refused"]
    if row["different"] or not row["mixed_equal"]:
        return f"DIFFERENT: {row['different']} of {row['texts']} texts" + ("" if row["mixed_equal"] else ", mixed text")
    return "equal" + (" (both refuse the mixed text)" if row.get("refuses_mixed") else "")


def megabytes(value):
    return f"{value / 1e6:.1f}" if value else ""


def table(rows):
    for row in rows:
        quotient = row["rate"] / row["reference_rate"] if row.get("rate") and row.get("reference_rate") else None
        opens = f"{row['open_ms']:.0f}" if row.get("open_ms") is not None else ""
        theirs = f"{row['reference_open_ms']:.0f}" if row.get("reference_open_ms") is not None else ""
        yield (row["name"], row["family"], row["reference"], equal(row), megabytes(row.get("rate")),
               megabytes(row.get("reference_rate")), f"{quotient:.1f}" if quotient else "", opens, theirs)


HEAD = ("tokenizer", "family", "reference", "ids", "MB/s", "reference MB/s", "ratio", "open ms", "reference open ms")


def summary(rows, origin, text):
    results = {}
    for row in rows:
        results.setdefault(row["family"], []).append(equal(row).split(":")[0].split(" (")[0])
    kinds = ("equal", "DIFFERENT", "refused", "no reference", "failed")
    lines = [f"{len(rows)} tokenizers of {len(results)} families; {time.strftime('%Y-%m-%d')}; mixed text: {origin}, "
             f"{len(text.encode())} bytes, SHA-256 {hashlib.sha256(text.encode()).hexdigest()[:16]}", "",
             "| family | tokenizers | equal | different | refused | no reference | failed |",
             "|---|---|---|---|---|---|---|"]
    for name, found in [*sorted(results.items()), ("all", [r for found in results.values() for r in found])]:
        lines.append(f"| {name} | {len(found)} | " + " | ".join(str(found.count(kind)) for kind in kinds) + " |")
    return lines


def write(rows, out, origin, text):
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "census.json"), "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1, ensure_ascii=False)
    with open(os.path.join(out, "census.tsv"), "w", encoding="utf-8") as file:
        for line in [HEAD, *table(rows)]:
            file.write("\t".join(field.replace("\t", " ").replace("\n", " ") for field in line) + "\n")
    with open(os.path.join(out, "census.md"), "w", encoding="utf-8") as file:
        lines = summary(rows, origin, text) + ["", "| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
        lines += ["| " + " | ".join(field.replace("|", "\\|").replace("\n", " ") for field in line) + " |"
                  for line in table(rows)]
        file.write("\n".join(lines) + "\n")


def main():
    if sys.argv[1:2] == ["--one"]:
        return compare(*sys.argv[2:7])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--out", default="build/census")
    parser.add_argument("--only", default="*", help="a shell pattern of names")
    parser.add_argument("--corpus", default=None, help="the folder corpus/ of the reference data")
    parser.add_argument("--no-rates", action="store_true", help="compare ids only")
    arguments = parser.parse_args()
    rows = []
    text, origin = mixed(arguments.corpus)
    for path, folder, kind in tokenizers_below(arguments.folder):
        name = os.path.relpath(path, arguments.folder)
        if not fnmatch.fnmatch(name, arguments.only):
            continue
        rows.append(dict(run_one(path, folder, kind, arguments.corpus, not arguments.no_rates), name=name))
        print(f"{name}: {equal(rows[-1])[:150]}", flush=True)
        write(rows, arguments.out, origin, text)
    if not rows:
        sys.exit(f"{arguments.folder} has no tokenizer")
    print("\n".join(["", *summary(rows, origin, text)]))
    print(f"\nthe table: {arguments.out}/census.md")
    return any(equal(row).startswith(("DIFFERENT", "failed")) for row in rows)


if __name__ == "__main__":
    sys.exit(main())
