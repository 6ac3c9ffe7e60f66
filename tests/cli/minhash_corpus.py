# SPDX-License-Identifier: MIT
"""minhash_corpus.py: writes a.jsonl and b.jsonl for the tests of `pack --dedup minhash`: texts and variants of them, in
several scripts, with what the normalization of datatrove changes; short and empty texts; blank lines."""
import json
import random

chance = random.Random(15)
LETTERS = "abcdefghijklmnopqrstuvwxyz\u00e9\u00fc\u0131\u043f\u0440\u0438\u03b1\u03c3\u03c2\ud55c\u4e2d\u0906"
# What a text is varied with: the first six change nothing that is compared.
SPICE = [", ", "\u2014", " \u2026 ", "\n\n", "\u3000", "\t\u00a0", " \u2022 ", " 3.50 ", " 1,234,567 ",
         "\u0663\u066b\u0661 ", " \u0301 ", "\u200b", "\U0001f600", " \u037e ", "\u1fef", " \u00bd", "\u2167 ",
         " \u212b\u212a\u0130 ", "\ufb01", "\u0344", " \U0001d15e ", "\x07", "\x1c", "\x85", "\ufffd", "'", "\u2018",
         "\u00ad"]


def word():
    return "".join(chance.choice(LETTERS) for _ in range(chance.randint(1, 9)))


def text():
    return [word() for _ in range(chance.randint(5, 70))]


def changed(words, share):
    return [word() if chance.random() < share else w for w in words]


def written(words):
    out = ""
    for w in words:
        form = chance.randint(0, 99)
        w = w.upper() if form < 15 else w.title() if form < 40 else w
        if form == 99:
            w += "\u03a3"
        out += w + (chance.choice(SPICE[:6]) if chance.random() < 0.3 else " ")
        if chance.random() < 0.01:
            out += chance.choice(SPICE)
    return out


texts = []
for i in range(420):
    kind = chance.randint(0, 19)
    if kind == 0:
        texts.append([word() for _ in range(chance.randint(0, 5))])
    elif kind < 12 and texts:
        texts.append(changed(chance.choice(texts), chance.choice((0, 0.005, 0.02, 0.05, 0.1, 0.3))))
    else:
        texts.append(text())
for name, part in (("a.jsonl", texts[:300]), ("b.jsonl", texts[300:])):
    with open(name, "w", encoding="utf-8") as file:
        for i, words in enumerate(part):
            file.write(json.dumps({"text": written(words)}, ensure_ascii=i % 2 == 0) + "\n")
            if i % 50 == 7:
                file.write("\n")
