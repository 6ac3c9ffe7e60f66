#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""census_test.py FOLDER: tests collect.py, gguf_vocabulary.py, and census.py with vocabularies that are made here."""
import json
import os
import struct
import subprocess
import sys
import zipfile

import tokenizers

HERE = os.path.dirname(os.path.abspath(__file__))
failed = 0


def check(condition, name):
    global failed
    failed += not condition
    print(f"{'ok' if condition else 'not ok'} - {name}", flush=True)


def byte_level(pattern):
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, show_progress=False,
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([pattern * 20], trainer)
    return json.loads(tokenizer.to_str())


def gguf(made):
    """A GGUF file with the vocabulary of a tokenizer.json."""
    def text(value):
        return struct.pack("<Q", len(value.encode())) + value.encode()

    def texts(values):
        return struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(text, values))
    tokens = sorted(made["model"]["vocab"], key=made["model"]["vocab"].get)
    merges = [" ".join(merge) for merge in made["model"]["merges"]]
    values = {"tokenizer.ggml.model": struct.pack("<I", 8) + text("gpt2"), "tokenizer.ggml.tokens": texts(tokens),
              "tokenizer.ggml.merges": texts(merges), "tokenizer.ggml.token_type":
              struct.pack("<IIQ", 9, 5, len(tokens)) + struct.pack(f"<{len(tokens)}i", *[1] * len(tokens))}
    return struct.pack("<4sIQQ", b"GGUF", 3, 0, len(values)) + b"".join(text(k) + v for k, v in values.items())


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def main():
    folder = sys.argv[1]
    source, found = os.path.join(folder, "source.zip"), os.path.join(folder, "found")
    plain, other = byte_level("the theme of these words is then there "), byte_level("another one, an other one ")
    refused = dict(byte_level("some more words"), model=dict(other["model"], dropout=0.5))
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("a/tokenizer.json", json.dumps(plain))
        archive.writestr("a/tokenizer_config.json", "{}")
        archive.writestr("again/tokenizer.json", json.dumps(plain))
        archive.writestr("b/vocab.gguf", gguf(other))
        archive.writestr("b/cut.gguf", gguf(other)[:3000])
        archive.writestr("refused/tokenizer.json", json.dumps(refused))
        archive.writestr("ranks/unknown.tiktoken", "".join(f"{'QQ==' if i < 1 else 'QkI='} {i}\n" for i in range(300)))
        archive.writestr("notes.txt", "a text\n" * 300)
    collected = run(os.path.join(HERE, "collect.py"), found, source)
    check(collected.returncode == 0 and "4 vocabularies" in collected.stdout,
          "four vocabularies are found, and what is there twice is taken once")
    check("b/cut.gguf: a " in collected.stderr, "a GGUF file that is cut off is refused")
    check(os.path.exists(os.path.join(found, "source/a/tokenizer_config.json")), "files beside a vocabulary are copied")
    out = os.path.join(folder, "out")
    done = run(os.path.join(HERE, "census.py"), found, "--out", out)
    with open(os.path.join(out, "census.json"), encoding="utf-8") as file:
        rows = {row["name"]: row for row in json.load(file)}
    check(done.returncode == 0 and len(rows) == 4, "the census has a row for each")
    for name in ("source/a/tokenizer.json", "source/b/vocab.gguf.tokenizer.json"):
        row = rows.get(name, {})
        check(row.get("different") == 0 and row.get("mixed_equal") and row.get("texts", 0) > 400 and row.get("rate"),
              f"{name}: equal, with a rate")
    check("dropout" in rows["source/refused/tokenizer.json"].get("refused", ""), "a refusal names the field")
    check("pattern is not known" in rows["source/ranks/unknown.tiktoken"].get("reference_refused", ""),
          "a vocabulary without a reference is named")
    # A reference that gives other ids
    made = os.path.join(found, "source/a")
    shown = run("-c", f"import json, sys; sys.path.insert(0, {HERE!r}); import census as c; c.REFERENCES['tokenizer.json'] "
                      f"= ('another', lambda path, folder: lambda text: [7]); "
                      f"c.compare({made + '/tokenizer.json'!r}, {made!r}, 'tokenizer.json', '', '')")
    row = json.loads(shown.stdout.strip().split("\n")[-1]) if shown.stdout else {}
    check(row.get("different", 0) > 300 and row.get("mixed_equal") is False and row["first"][1] == [7],
          "differences are counted, and the first is kept")
    check(run(os.path.join(HERE, "census.py"), os.path.join(folder, "none")).returncode not in (0, None),
          "a folder without a tokenizer is an error")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
