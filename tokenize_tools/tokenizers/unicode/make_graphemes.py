#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_graphemes.py [FOLDER]: generates grapheme_tables.c, the classes of characters that decide about grapheme
clusters, by asking the reference.

Hugging Face tokenizers shows its clusters in one place: the normalizer Precompiled replaces a cluster of less than 6
bytes as a whole, and the characters of a longer one by themselves. So with a map that replaces every character by X, a
short cluster becomes one X and a longer one as many as it has characters. The script passes every character through
some texts in which the number of X depends on its class. It requires tokenizers 0.23, and writes to FOLDER, by default
its own.

Classes that cannot change what Precompiled makes are left out: regional indicators, because each has four bytes.
"""
import base64
import json
import os
import sys

from double_array import charsmap
from table_text import lines, numbered, rows, runs, table_file
from tokenizers import Tokenizer

FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
CODES = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000 and c not in (10, 13)]
NAMES = ("OTHER CONTROL CR LF EXTEND LINKER EXTEND_ONLY ZWJ SPACING PREPEND PICTOGRAPH CONSONANT L V T LV LVT").split()
ACUTE, ZWJ, COPYRIGHT = "\u0301", "\u200d", "\u00a9"
LEAD, VOWEL, TAIL, KA, VIRAMA = "\u1100", "\u1161", "\u11a8", "\u0915", "\u094d"


def precompiled():
    """The normalizer with a map that replaces every character but U+000A by X."""
    end = {"value": 0}
    one = {c: end for c in range(0x80, 0xC0)}
    two = {c: one for c in range(0x80, 0xC0)}
    root = {c: end for c in range(1, 0x80) if c != 10}
    root.update({c: one for c in range(0xC2, 0xE0)})
    root.update({c: two for c in range(0xE1, 0xF0)})
    root.update({0xE0: {c: one for c in range(0xA0, 0xC0)}, 0xED: {c: one for c in range(0x80, 0xA0)}})
    three = {c: two for c in range(0x80, 0xC0)}
    root.update({c: three for c in range(0xF1, 0xF4)})
    root.update({0xF0: {c: two for c in range(0x90, 0xC0)}, 0xF4: {c: two for c in range(0x80, 0x90)}})
    blob = charsmap(root, b"X\0")
    normalizer = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(blob).decode()}
    return Tokenizer.from_str(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": normalizer,
        "pre_tokenizer": None, "post_processor": None, "decoder": None,
        "model": {"type": "BPE", "vocab": {}, "merges": []}})).normalizer


def probe(normalizer, form):
    """Returns the number of X that each character becomes inside of a text."""
    found = {}
    for start in range(0, len(CODES), 16384):
        part = CODES[start:start + 16384]
        made = normalizer.normalize_str("\n".join(form.replace("?", chr(c)) for c in part)).split("\n")
        assert len(made) == len(part)
        found.update(zip(part, map(len, made)))
    return found


def classes():
    normalizer = precompiled()

    def those(form, count):
        made = probe(normalizer, form)
        return {c for c in CODES if made[c] == count}

    after, before = those("a?", 1), those("?a", 1)
    control = those("?" + ACUTE + ACUTE, 2)
    extends = those(COPYRIGHT + "?" + ZWJ + COPYRIGHT + ACUTE, 5) & after
    pictograph = those("?" + ZWJ + COPYRIGHT + ACUTE, 4)
    consonant = those("?" + VIRAMA + KA + ACUTE, 4)
    linker = those(KA + "?" + KA + ACUTE, 4) & after
    conjoins = those(KA + "?" + VIRAMA + KA + ACUTE, 5) & after
    lead, vowel, tail = those("?" + LEAD + ACUTE, 3), those("?" + VOWEL + ACUTE, 3), those("?" + TAIL + ACUTE, 3)
    after_vowel, after_tail = those(VOWEL + "?" + ACUTE, 3), those(TAIL + "?" + ACUTE, 3)
    table = bytearray(0x110000)
    for c in CODES:
        name = ("ZWJ" if c == 0x200D else "CONTROL" if c in control else "PREPEND" if c in before else
                "PICTOGRAPH" if c in pictograph else "CONSONANT" if c in consonant else "LINKER" if c in linker else
                ("EXTEND" if c in conjoins else "EXTEND_ONLY") if c in extends else "SPACING" if c in after else
                "L" if c in lead else
                ("V" if c in after_vowel else "LV") if c in vowel else
                ("T" if c in after_tail else "LVT") if c in tail else "OTHER")
        table[c] = NAMES.index(name)
    table[0], table[10], table[13] = NAMES.index("CONTROL"), NAMES.index("LF"), NAMES.index("CR")
    return table


def main():
    table = classes()
    blocks, first = numbered(bytes(table[start:start + 64]) for start in range(0, 0x110000, 64))
    with table_file(FOLDER, "grapheme_tables", "classes of characters in grapheme clusters, as in the reference",
                    "make_graphemes.py") as out:
        out.write("const uint16_t grapheme_first[0x110000 / 64] = {\n%s\n};\n\n" % lines(runs(first)))
        out.write("const uint8_t grapheme_blocks[GRAPHEME_BLOCKS][64] = {\n%s\n};\n" % lines(rows(blocks)))
    print("GRAPHEME_BLOCKS", len(blocks), " ".join("%s %d" % (n, table.count(i)) for i, n in enumerate(NAMES)))


main()
