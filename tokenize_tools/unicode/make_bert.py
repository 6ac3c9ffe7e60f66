#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_bert.py [FOLDER]: generates bert_text_tables.c by asking the reference.

It passes every code point through the BertNormalizer of Hugging Face tokenizers, one switch at a time. It requires
Python 3 and tokenizers 0.23, prints the sizes to put into bert_text.h, and writes to FOLDER, by default its own.
"""
import os
import sys

from table_text import braced, lines
from tokenizers import normalizers

FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))


def ranges(normalizer):
    """Returns the ranges of the characters that a normalizer takes out."""
    made = []
    for c in range(0x110000):
        if 0xD800 <= c < 0xE000 or normalizer.normalize_str(chr(c)):
            continue
        if made and made[-1][1] == c - 1:
            made[-1][1] = c
        else:
            made.append([c, c])
    return made


def normalizer(**on):
    switches = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    return normalizers.BertNormalizer(**{**switches, **on})


control, marks = ranges(normalizer(clean_text=True)), ranges(normalizer(strip_accents=True))
with open(os.path.join(FOLDER, "bert_text_tables.c"), "w", encoding="ascii") as out:
    out.write("/* SPDX-License-Identifier: MIT */\n"
              "/* bert_text_tables.c - what BertNormalizer takes out, as in the reference.\n"
              " * Made by make_bert.py: do not edit. */\n#include \"bert_text.h\"\n\n")
    out.write("const struct code_range bert_control[BERT_CONTROL_RANGES] = {\n%s\n};\n\n" % lines(braced(control)))
    out.write("const struct code_range bert_marks[BERT_MARK_RANGES] = {\n%s\n};\n" % lines(braced(marks)))
print("BERT_CONTROL_RANGES %d BERT_MARK_RANGES %d" % (len(control), len(marks)))
