# SPDX-License-Identifier: MIT
"""Lists of `pack --drop`: drop_lists.py corpus SEED writes a.jsonl, b.jsonl, and t.txt, whose documents are random, and
lists in all three forms of those that a random choice drops; and below kept/ the same files without them. hash TEXT
prints its XXH3-128."""
import ctypes
import ctypes.util
import json
import os
import random
import struct
import sys

XXH = ctypes.CDLL(ctypes.util.find_library("xxhash"))


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


XXH.XXH3_128bits.argtypes = XXH.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
XXH.XXH3_128bits.restype = Hash128
XXH.XXH3_64bits.restype = ctypes.c_uint64


def digits(text):
    data = text.encode()
    value = XXH.XXH3_128bits(data, len(data))
    return "%016x%016x" % (value.high, value.low)


def padded(data):
    return data + bytes(-len(data) % 8)


def dropped_file(path, inputs, documents, count):
    """Writes a list as FORMAT.md has it: each dropped document is a duplicate of the first one that is not dropped."""
    body = b""
    for number, name in enumerate(inputs):
        body += padded(struct.pack("<II", 1, len(name)) + name.encode())
        for record in sorted(documents[name]):
            body += struct.pack("<IIQQII", 3, number, record, 0, 0, 0)
    size = 80 + len(body)
    head = b"\x89TDR\r\n\x1a\n" + struct.pack("<HHIQQQQQQQ", 1, 0, 80, size, count, len(inputs), 0,
                                             sum(map(len, documents.values())), 0, XXH.XXH3_64bits(body, len(body)))
    with open(path, "wb") as file:
        file.write(head + struct.pack("<Q", XXH.XXH3_64bits(head, len(head))) + body)


def corpus(seed):
    rng = random.Random(seed)
    words = ["w%d" % i for i in range(300)]
    texts = [" ".join(rng.choice(words) for _ in range(rng.randrange(1, 40))) for _ in range(rng.randrange(20, 400))]
    share = rng.choice([0.02, 0.5, 0.95])
    gone = {text for text in texts if rng.random() < share}
    os.makedirs("kept", exist_ok=True)
    documents, by_text, kept, count = {}, {}, {}, 0
    for name in ("a.jsonl", "b.jsonl", "t.txt"):
        own = [rng.choice(texts) for _ in range(rng.randrange(1, 300))]
        if name == "a.jsonl":
            own[0] = "the first one stays"
        documents[name] = [i for i, _ in enumerate(own) if i + (name != "a.jsonl") and rng.random() < share]
        by_text.update((text, None) for text in own if text in gone)
        kept[name] = ([text for i, text in enumerate(own) if i not in set(documents[name])],
                      [text for text in own if text not in gone])
        count += len(own)
        for folder, list_of in (("", own), ("kept/", kept[name][0]), ("kept/x", kept[name][1])):
            with open(folder + name, "w") as file:
                if name == "t.txt":
                    file.write("\n\n".join(list_of))
                for text in list_of if name != "t.txt" else ():
                    file.write(json.dumps({"text": text, "n": rng.randrange(1000)}) + "\n")
    lines = ["%s\t%d" % (name, record) for name in documents for record in documents[name]]
    rng.shuffle(lines)
    with open("records.list", "w") as file:
        file.write("\n".join(["tokmap-drop records", *lines, *lines[:3]]) + rng.choice(["", "\n"]))
    lines = [digits(text) for text in by_text]
    rng.shuffle(lines)
    with open("texts.list", "w") as file:
        file.write("\n".join(["tokmap-drop texts", *(rng.choice([line, line.upper()]) for line in lines)]) + "\n")
    dropped_file("binary.list", list(documents), documents, count)


if sys.argv[1] == "corpus":
    corpus(int(sys.argv[2]))
else:
    print(digits(sys.argv[2]))
