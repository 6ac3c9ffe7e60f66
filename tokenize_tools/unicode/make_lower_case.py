#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_lower_case.py [FOLDER]: generates lower_case_tables.c, what str.lower() of Python does to each character.

It asks the Python that runs it, whose version of Unicode the generated file names: 14.0 is that of Python 3.11. The
script prints the sizes to put into lower_case_tables.h. It writes to FOLDER, by default its own.
"""
import os
import sys
import unicodedata

from table_text import braced, lines

CODES = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def mapping():
    """Ranges (first, last, delta, step) of the characters that change."""
    pairs = []
    for c in CODES:
        lower = chr(c).lower()
        if len(lower) == 1 and lower != chr(c) and c != 0x3A3:
            pairs.append((c, ord(lower) - c))
        elif len(lower) > 1 and c != 0x130:
            sys.exit("U+%04X becomes several characters" % c)
    ranges = []
    for code, delta in pairs:
        if ranges:
            first, last, same, step = ranges[-1]
            if same == delta and code - last in (1, 2) and step in (0, code - last):
                ranges[-1] = (first, code, delta, code - last)
                continue
        ranges.append((code, code, delta, 0))
    return [(first, last, delta, step or 1) for first, last, delta, step in ranges]


def ranges_of(belongs):
    ranges = []
    for c in CODES:
        if belongs(chr(c)):
            if ranges and ranges[-1][1] == c - 1:
                ranges[-1][1] = c
            else:
                ranges.append([c, c])
    return ranges


def sigma_is_final(before):
    return (before + "\u03a3").lower().endswith("\u03c2")


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    lower = mapping()
    # What decides about the sigma at the end of a word: characters that are passed over, and letters with case.
    ignored = ranges_of(lambda c: sigma_is_final("A" + c) and not sigma_is_final("1" + c))
    cased = ranges_of(lambda c: sigma_is_final("1" + c))
    with open(os.path.join(folder, "lower_case_tables.c"), "w", encoding="ascii") as file:
        file.write("/* SPDX-License-" "Identifier: MIT */\n")
        file.write("/* lower_case_tables.c - lower case as Python has it, of Unicode %s.\n"
                   " * Made by make_lower_case.py: do not edit. */\n#include \"lower_case_tables.h\"\n\n"
                   % unicodedata.unidata_version)
        file.write("const struct lower_range lower_ranges[LOWER_RANGES] = {\n%s\n};\n\n" % lines(braced(lower)))
        file.write("const struct code_range lower_ignored[LOWER_IGNORED] = {\n%s\n};\n\n" % lines(braced(ignored)))
        file.write("const struct code_range lower_cased[LOWER_CASED] = {\n%s\n};\n" % lines(braced(cased)))
    print("#define LOWER_RANGES %d\n#define LOWER_IGNORED %d\n#define LOWER_CASED %d"
          % (len(lower), len(ignored), len(cased)))


main()
