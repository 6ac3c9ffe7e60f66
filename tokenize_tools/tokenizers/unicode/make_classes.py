#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_classes.py REFERENCE.json [FOLDER]: generates classes.c, the class of every character of Unicode 16.0.

REFERENCE.json contains, for each class (L N M P S s Lu Lt Lm Lo Ll Han), the ranges of code points that the regular
expression engines of the reference tokenizers match ("tik" for tiktoken and "hf" for Hugging Face; the two must agree).

The table is a trie over the bytes of UTF-8, so a lookup does not decode the character: the first two bytes select a
block of 64 entries, and the third byte selects the entry. A character of two bytes has a block of equal entries. A
character of four bytes takes one more level. The script prints the sizes to put into classes.h. It writes to FOLDER,
by default its own.
"""
import json
import os
import sys

from table_text import lines, rows, runs, table_file

OTHER, UPPER, TITLE, LOWER, MODIFIER, LETTER, MARK, NUMBER, PUNCTUATION, SYMBOL, SPACE, NEWLINE = range(12)
HAN, CJK = 0x10, 0x20


def classes(reference):
    table = bytearray(0x110000)

    def fill(name, value):
        ranges = reference[name]["tik"]
        if ranges != reference[name]["hf"]:
            sys.exit("the two references differ in " + name)
        for first, last in ranges:
            for c in range(first, last + 1):
                if table[c]:
                    sys.exit("U+%04X is in two classes" % c)
                table[c] = value

    for name, value in (("Lu", UPPER), ("Lt", TITLE), ("Ll", LOWER), ("Lm", MODIFIER), ("Lo", LETTER), ("M", MARK),
                        ("N", NUMBER), ("P", PUNCTUATION), ("S", SYMBOL), ("s", SPACE)):
        fill(name, value)
    table[10] = table[13] = NEWLINE
    for first, last in reference["Han"]["tik"]:
        for c in range(first, last + 1):
            table[c] |= HAN
    for first, last in ((0x4E00, 0x9FA5), (0x3040, 0x30FF)):
        for c in range(first, last + 1):
            table[c] |= CJK
    return table


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        table = classes(json.load(file))
    blocks, block_numbers = [], {}

    def block(entries):
        entries = bytes(entries)
        if entries not in block_numbers:
            block_numbers[entries] = len(blocks)
            blocks.append(entries)
        return block_numbers[entries]

    middles, middle_numbers = [], {}
    block([OTHER] * 64)
    first = []
    for lead in range(0xC0, 0x100):
        for second in range(64):
            if lead < 0xE0:
                first.append(block([table[(lead & 31) << 6 | second]] * 64))
            elif lead < 0xF0:
                start = (lead & 15) << 12 | second << 6
                first.append(block(table[start:start + 64]))
            else:
                start = (lead & 7) << 18 | second << 12
                row = tuple(block(table[start + 64 * i:start + 64 * i + 64] if start < 0x110000 else [OTHER] * 64)
                            for i in range(64))
                if row not in middle_numbers:
                    middle_numbers[row] = len(middles)
                    middles.append(row)
                first.append(middle_numbers[row])
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.dirname(os.path.abspath(__file__))
    with table_file(folder, "classes", "the class of every character of Unicode 16.0", "make_classes.py") as out:
        out.write("const uint8_t class_ascii[128] = {\n%s\n};\n\n" % lines(runs(table[:128])))
        out.write("const uint16_t class_first[CLASS_FIRST] = {\n%s\n};\n\n" % lines(runs(first)))
        out.write("const uint16_t class_middle[CLASS_MIDDLES][64] = {\n%s\n};\n\n" % lines(rows(middles)))
        out.write("const uint8_t class_blocks[CLASS_BLOCKS][64] = {\n%s\n};\n" % lines(rows(blocks)))
    print("CLASS_MIDDLES %d CLASS_BLOCKS %d" % (len(middles), len(blocks)))


main()
