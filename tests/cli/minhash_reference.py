# SPDX-License-Identifier: MIT
"""minhash_reference.py: near-duplicates as datatrove 0.10 defines them, in plain Python and without its code.

    minhash_reference.py NGRAM BANDS ROWS FILE...

reads JSONL files with texts, and writes what `tokmap pack --dedup minhash` must keep and drop to kept.json, a list of
texts, and to dropped.json, in the form of `tokmap show --dropped --json`. Words end at blanks.
"""
import json
import random
import re
import struct
import sys
import unicodedata

PRIME = 2**61 - 1
MASK = 2**64 - 1
# datatrove.utils.text.PUNCTUATION
PUNCTUATION = ("!/\u2014\u201d:\uff05\uff11\u3008&(\u3001\u2501\\\u3010#%\u300c\u300d\uff0c\u3011\uff1b+^]~\u201c"
               "\u300a\u201e';\u2019{|\u2236\u00b4[=-`*\uff0e\uff08\u2013\uff1f\uff01\uff1a$\uff5e\u00ab\u3009,"
               "><\u300b)?\uff09\u3002\u2026@_.\"}\u25ba\u00bb")
BLANKS = dict.fromkeys([ord(c) for c in PUNCTUATION] + [*range(9), 11, 12, *range(13, 32), *range(127, 160)], " ")
NUMBER = re.compile(r"\d+([.,\u060c\u066b\u2396\u2397\u2398]\d+)?")


def words(text):
    text = NUMBER.sub("0", text.lower()).translate(BLANKS)
    text = unicodedata.normalize("NFD", " ".join(text.split()))
    return "".join(c for c in text if unicodedata.category(c) != "Mn").split()


def rotate(value, by):
    return (value << by | value >> 64 - by) & MASK


def xxh64(data):
    p1, p2, p3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    p4, p5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
    at, size = 0, len(data)

    def step(lane, value):
        return rotate((lane + value * p2) & MASK, 31) * p1 & MASK

    if size >= 32:
        lanes = [p1 + p2 & MASK, p2, 0, -p1 & MASK]
        while size - at >= 32:
            lanes = [step(lane, value) for lane, value in zip(lanes, struct.unpack_from("<4Q", data, at))]
            at += 32
        value = sum(rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            value = ((value ^ step(0, lane)) * p1 + p4) & MASK
    else:
        value = p5
    value = value + size & MASK
    while size - at >= 8:
        value = (rotate(value ^ step(0, struct.unpack_from("<Q", data, at)[0]), 27) * p1 + p4) & MASK
        at += 8
    if size - at >= 4:
        value = (rotate(value ^ struct.unpack_from("<I", data, at)[0] * p1 & MASK, 23) * p2 + p3) & MASK
        at += 4
    for byte in data[at:]:
        value = rotate(value ^ byte * p5 & MASK, 11) * p1 & MASK
    value = (value ^ value >> 33) * p2 & MASK
    value = (value ^ value >> 29) * p3 & MASK
    return value ^ value >> 32


def shingles(text, ngram):
    found = words(text)
    return {xxh64(" ".join(found[i:i + ngram]).encode()) for i in range(len(found) - ngram + 1)}


def numbers(count):
    """What numpy.random.RandomState(1) gives datatrove: the same generator, seeded in the old way."""
    state = [1]
    for i in range(1, 624):
        state.append(1812433253 * (state[-1] ^ state[-1] >> 30) + i & 0xFFFFFFFF)
    twister = random.Random()
    twister.setstate((3, tuple(state + [624]), None))

    def below(most):
        while True:
            high = twister.getrandbits(32)
            value = (high << 32 | twister.getrandbits(32)) & PRIME
            if value <= most:
                return value

    return [below(PRIME - 2) + 1 for _ in range(count)], [below(PRIME - 1) for _ in range(count)]


def signature(found, a, b):
    return [min(((x * h + y) & MASK) % PRIME for h in found) for x, y in zip(a, b)]


def clusters(texts, ngram, bands, rows):
    """The first document of the cluster of each text."""
    a, b = numbers(bands * rows)
    first, seen = list(range(len(texts))), {}

    def find(i):
        while first[i] != i:
            i = first[i]
        return i

    for i, text in enumerate(texts):
        found = shingles(text, ngram)
        if not found:
            continue
        places = signature(found, a, b)
        for band in range(bands):
            key = (band, *places[band * rows:(band + 1) * rows])
            low, high = sorted((find(i), find(seen.setdefault(key, i))))
            first[high] = low
    return [find(i) for i in range(len(texts))]


def main(ngram, bands, rows, paths):
    texts, places = [], []
    for path in paths:
        for record, line in enumerate(open(path, encoding="utf-8")):
            if line.strip():
                texts.append(json.loads(line)["text"])
                places.append({"input": path, "record": record})
    first = clusters(texts, ngram, bands, rows)
    with open("kept.json", "w") as file:
        json.dump([text for i, text in enumerate(texts) if first[i] == i], file)
    with open("dropped.json", "w") as file:
        json.dump([{**places[i], "reason": "near-duplicate", "kept": places[first[i]]}
                   for i in range(len(texts)) if first[i] != i], file)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), sys.argv[4:])
