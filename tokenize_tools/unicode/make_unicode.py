#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_unicode.py [FOLDER]: generates nfc_tables.c, char_map_tables.c, scripts_tables.c, and code_sets.c by asking the
reference.

Hugging Face tokenizers takes NFC, digits, and punctuation from several libraries, each with its own version of Unicode.
The script assumes nothing about them: it passes every code point, and every pair that might compose, through the
library. It prints the sizes to put into nfc_tables.h and the names to put into code_sets.h. It requires Python 3 and
tokenizers 0.23, and writes to FOLDER, by default its own.
"""
import os
import sys
import unicodedata

from table_text import braced, lines, rows, runs
from tokenizers import Regex, normalizers, pre_tokenizers

CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
SBASE, SCOUNT, VBASE, TBASE = 0xAC00, 11172, 0x1161, 0x11A8
CATEGORIES = ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn").split()
SCRIPTS = ("Arabic Armenian Bengali Bopomofo Cyrillic Devanagari Georgian Greek Han Hangul Hebrew Hiragana Katakana "
           "Khmer Latin Tamil Thai").split()
FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))


def each(normalizer, texts, separator="\n"):
    """Normalizes many short texts at once."""
    made = normalizer.normalize_str(separator.join(texts)).split(separator)
    assert len(made) == len(texts)
    return made


def combining_classes(nfd, plain):
    """Finds each character's combining class by the order into which NFD puts it and marks of known classes."""
    old = unicodedata.ucd_3_2_0
    known = {214: "\u1DCE"}
    for c in plain:
        if old.combining(chr(c)):
            known.setdefault(old.combining(chr(c)), chr(c))
    classes = sorted(known)
    low, high = known[classes[0]], known[classes[-1]]
    after_low = each(nfd, ["a" + chr(c) + low for c in plain])
    before_high = each(nfd, ["a" + high + chr(c) for c in plain])
    found = {}
    for c, one, two in zip(plain, after_low, before_high):
        if one != "a" + chr(c) + low or two != "a" + high + chr(c):
            fits = [k for k in classes if nfd.normalize_str("a" + chr(c) + known[k]) == "a" + chr(c) + known[k] and
                    nfd.normalize_str("a" + known[k] + chr(c)) == "a" + known[k] + chr(c)]
            assert len(fits) == 1, (hex(c), fits)
            found[c] = fits[0]
    return found


def composed(codes, parts, classes, pairs):
    """Computes NFC with the tables found so far, without Hangul."""
    codes = [ord(p) for c in codes for p in parts.get(c, chr(c))]
    for i in range(1, len(codes)):
        while i and 0 < classes.get(codes[i], 0) < classes.get(codes[i - 1], 0):
            codes[i - 1:i + 1] = codes[i], codes[i - 1]
            i -= 1
    made, starter, last = [], None, 0
    for c in codes:
        rank = classes.get(c, 0)
        if starter is not None and (starter == len(made) - 1 or last < rank) and (made[starter], c) in pairs:
            made[starter] = pairs[made[starter], c]
            continue
        if not rank:
            starter = len(made)
        last = rank
        made.append(c)
    return "".join(map(chr, made))


def bits_of(name, codes):
    """Returns a struct code_bits of C: a set of code points."""
    codes = set(codes)
    low = [sum(1 << i for i in range(64) if 64 * n + i in codes) for n in range(0x10000 // 64)]
    high = ranges(sorted(c for c in codes if c >= 0x10000))
    return ("static const uint64_t %s_low[CODE_BITS_WORDS] = {\n%s\n};\n"
            "static const struct code_range %s_high[] = {\n%s\n};\n" %
            (name, lines(runs(low, "0x%X")), name, lines(braced(high or [(0, 0)])))), \
        "{%s_low, %s_high, %d}" % (name, name, len(high))


def spans_of(parts):
    """Returns spans of characters that have the same number of parts, and all parts."""
    flat, spans = [], []
    for c in sorted(parts):
        if spans and spans[-1][1] == c - 1 and spans[-1][3] == len(parts[c]):
            spans[-1][1] = c
        else:
            spans.append([c, c, len(flat), len(parts[c])])
        flat += [ord(p) for p in parts[c]]
    return flat, spans


def nfc_tables():
    nfc, nfd, nfkc, nfkd = (getattr(normalizers, name)() for name in ("NFC", "NFD", "NFKC", "NFKD"))
    codes = [c for c in CODES if c != 10]
    texts = [chr(c) for c in codes]
    apart = dict(zip(codes, each(nfd, texts)))
    whole = dict(zip(codes, each(nfc, texts)))
    apart_k = dict(zip(codes, each(nfkd, texts)))
    whole_k = dict(zip(codes, each(nfkc, texts)))
    hangul = set(range(SBASE, SBASE + SCOUNT))
    parts = {c: apart[c] for c in codes if apart[c] != chr(c) and c not in hangul}
    parts_k = {c: apart_k[c] for c in codes if apart_k[c] != apart[c]}
    classes = combining_classes(nfd, [c for c in codes if apart[c] == chr(c)])
    pairs = {}
    for c, text in parts.items():
        if whole[c] == chr(c):
            first = nfc.normalize_str(text[:-1])
            assert len(first) == 1, hex(c)
            pairs[ord(first), ord(text[-1])] = c
    firsts, seconds = sorted({a for a, b in pairs}), sorted({b for a, b in pairs})
    for a in firsts:  # check that the pairs are complete and right
        for b, made in zip(seconds, each(nfc, [chr(a) + chr(b) for b in seconds])):
            assert made == composed([a, b], parts, classes, pairs), (hex(a), hex(b))
    maybe = set(seconds) | set(range(VBASE, VBASE + 21)) | set(range(TBASE, TBASE + 27))

    def check(composing, made, c):
        return 2 if made[c] != chr(c) else 1 if composing and c in maybe else 0

    kinds, kind_numbers, kind_of = [(0, "{0,0,0,0}")], {}, {}
    unstable = [set(), set(), set(), set()]  # as in enum normal_form
    for c in codes:
        checks = [check(True, whole, c), check(False, apart, c), check(True, whole_k, c), check(False, apart_k, c)]
        for form in range(4):
            if checks[form] or c in classes:
                unstable[form].add(c)
        kind = (classes.get(c, 0), "{%d,%d,%d,%d}" % tuple(checks))
        if kind == kinds[0]:
            continue
        if kind not in kind_numbers:
            kind_numbers[kind] = len(kinds)
            kinds.append(kind)
        kind_of[c] = kind_numbers[kind]
    blocks, block_numbers, first = [], {}, []
    for start in range(0, 0x110000, 64):
        block = tuple(kind_of.get(c, 0) for c in range(start, start + 64))
        if block not in block_numbers:
            block_numbers[block] = len(blocks)
            blocks.append(block)
        first.append(block_numbers[block])
    flat, spans = spans_of(parts)
    flat_k, spans_k = spans_of(parts_k)
    with open(os.path.join(FOLDER, "nfc_tables.c"), "w", encoding="ascii") as out:
        out.write("/* SPDX-License-Identifier: MIT */\n")
        out.write("/* nfc_tables.c - decomposition and composition (Unicode 9, as in the reference).\n"
                  " * Made by make_unicode.py: do not edit. */\n#include \"nfc_tables.h\"\n\n")
        structs = []
        for name, members_of in zip(("nfc", "nfd", "nfkc", "nfkd"), unstable):
            text, struct = bits_of(name, members_of)
            out.write(text + "\n")
            structs.append(struct)
        out.write("const struct code_bits nfc_unstable[4] = {\n    %s,\n};\n\n" % ",\n    ".join(structs))
        out.write("const struct nfc_kind nfc_kinds[NFC_KINDS] = {\n%s\n};\n\n" % lines(braced(kinds)))
        out.write("const uint8_t nfc_first[0x110000 / 64] = {\n%s\n};\n\n" % lines(runs(first)))
        out.write("const uint8_t nfc_blocks[NFC_BLOCKS][64] = {\n%s\n};\n\n" % lines(rows(blocks)))
        out.write("const struct nfc_span nfc_spans[NFC_SPANS] = {\n%s\n};\n\n" % lines(braced(spans)))
        out.write("const uint32_t nfc_parts[NFC_PARTS] = {\n%s\n};\n\n" % lines(runs(flat)))
        out.write("const struct nfc_span nfkc_spans[NFKC_SPANS] = {\n%s\n};\n\n" % lines(braced(spans_k)))
        out.write("const uint32_t nfkc_parts[NFKC_PARTS] = {\n%s\n};\n\n" % lines(runs(flat_k)))
        out.write("const struct nfc_pair nfc_pairs[NFC_PAIRS] = {\n%s\n};\n" %
                  lines(braced((a, b, pairs[a, b]) for a, b in sorted(pairs))))
    print("NFC_KINDS %d NFC_BLOCKS %d NFC_SPANS %d NFC_PARTS %d NFKC_SPANS %d NFKC_PARTS %d NFC_PAIRS %d" %
          (len(kinds), len(blocks), len(spans), len(flat), len(spans_k), len(flat_k), len(pairs)))
    for name, made in (("NFC", whole), ("NFD", apart), ("NFKC", whole_k), ("NFKD", apart_k)):
        print(name, "growth", max(len(made[c].encode()) / len(chr(c).encode()) for c in codes))


def char_maps():
    """Steps that treat each character by itself: lower case, without marks, and Nmt."""
    maps = (("lower", normalizers.Lowercase()), ("marks", normalizers.StripAccents()), ("nmt", normalizers.Nmt()))
    with open(os.path.join(FOLDER, "char_map_tables.c"), "w", encoding="ascii") as out:
        out.write("/* SPDX-License-Identifier: MIT */\n")
        out.write("/* char_map_tables.c - what the reference makes of single characters.\n"
                  " * Made by make_unicode.py: do not edit. */\n#include \"char_map_tables.h\"\n\n")
        structs, counts, pairs = [], [], []
        for name, normalizer in maps:
            codes = [c for c in CODES if c != 0x100000]
            made = dict(zip(codes, each(normalizer, [chr(c) for c in codes], chr(0x100000))))
            changed = [c for c in codes if made[c] != chr(c)]
            text, struct = bits_of(name, changed)
            out.write(text + "\n")
            structs.append(struct)
            if name == "marks":
                assert all(not made[c] for c in changed)
            elif name == "nmt":
                assert all(made[c] in ("", " ") for c in changed)
            else:
                assert [c for c in changed if len(made[c]) != 1] == [0x130] and made[0x130] == "i\u0307"
                pairs = [(c, ord(made[c][0]) - c) for c in changed]
            removed = ranges([c for c in changed if not made[c]]) if name == "nmt" else []
            if removed:
                out.write("const struct code_range nmt_removed[NMT_REMOVED] = {\n%s\n};\n\n" %
                          lines(braced(removed)))
                counts.append("NMT_REMOVED %d" % len(removed))
        out.write("const struct code_bits char_map_sets[CHAR_MAPS] = {\n    %s,\n};\n\n" % ",\n    ".join(structs))
        spans = []
        for code, delta in pairs:
            if spans:
                first, last, same, step = spans[-1]
                if same == delta and code - last in (1, 2) and step in (0, code - last):
                    spans[-1] = (first, code, delta, code - last)
                    continue
            spans.append((code, code, delta, 0))
        out.write("const struct case_range case_ranges[CASE_RANGES] = {\n%s\n};\n" %
                  lines(braced((a, b, delta, step or 1) for a, b, delta, step in spans)))
        print("CASE_RANGES %d %s" % (len(spans), " ".join(counts)))


def members(pretokenizer):
    """Returns the code points that a pre-tokenizer isolates from letters a on both sides."""
    found = []
    for start in range(0, len(CODES), 4096):
        part = CODES[start:start + 4096]
        text = "".join("a" + chr(c) for c in part)
        for piece, (first, end) in pretokenizer.pre_tokenize_str(text):
            if end - first == 1 and first % 2 == 1:
                found.append(part[first // 2])
    return found


def removed(normalizer):
    """Returns the code points that a normalizer takes out. It makes "!" of no other."""
    codes = [c for c in CODES if c != ord("!")]
    return [c for c, made in zip(codes, each(normalizer, [chr(c) for c in codes], "!")) if not made]


def ranges(codes):
    made = []
    for c in codes:
        if made and made[-1][1] == c - 1:
            made[-1][1] = c
        else:
            made.append([c, c])
    return [tuple(r) for r in made]


def code_sets():
    def regex(pattern):
        return members(pre_tokenizers.Split(Regex(pattern), "isolated"))

    sets = {"NUMERIC": members(pre_tokenizers.Digits(individual_digits=True)),
            "PUNCTUATION": members(pre_tokenizers.Punctuation("isolated")),
            "WORD_RUST": None,
            "BERT_CONTROL": removed(normalizers.BertNormalizer(True, False, False, False)),
            "BERT_MARKS": removed(normalizers.BertNormalizer(False, False, True, False))}
    spaced = pre_tokenizers.Whitespace()  # \w+|[^\w\s]+ of another engine: a word character stays with its neighbors
    word = []
    for start in range(0, len(CODES), 4096):
        part = CODES[start:start + 4096]
        # "a" c "a" between spaces is one piece if c is a word character
        whole = {first for piece, (first, end) in spaced.pre_tokenize_str("".join("a" + chr(c) + "a " for c in part))
                 if end - first == 3}
        word += [c for i, c in enumerate(part) if 4 * i in whole]
    sets["WORD_RUST"] = word
    # what regex_rewrite.c makes of it: \w of the other engine in brackets
    assert set(regex(r"[\w&&[^a]]") + [ord("a")]) == set(word) - {0x200C, 0x200D}
    for name in CATEGORIES:
        sets[name.upper()] = regex(r"[\p{%s}&&[^a]]" % name) + ([ord("a")] if name == "Ll" else [])
    for name in SCRIPTS:
        sets[name.upper()] = regex(r"[\p{%s}&&[^a]]" % name) + ([ord("a")] if name == "Latin" else [])
    with open(os.path.join(FOLDER, "code_sets.c"), "w", encoding="ascii") as out:
        out.write("/* SPDX-License-Identifier: MIT */\n")
        out.write("/* code_sets.c - sets of code points, as in the reference.\n"
                  " * Made by make_unicode.py: do not edit. */\n"
                  "#include \"code_sets.h\"\n\n")
        for name, codes in sets.items():
            made = ranges(sorted(codes))
            out.write("static const struct code_range set_%s[] = {\n%s\n};\n\n" %
                      (name.lower(), lines(braced(made))))
        out.write("const struct code_set code_sets[CODE_SETS] = {\n")
        for name in sets:
            out.write("    [CODE_%s] = {set_%s, sizeof set_%s / sizeof set_%s[0]},\n" %
                      (name, name.lower(), name.lower(), name.lower()))
        out.write("};\n")
    print(" ".join("CODE_" + name for name in sets), sum(len(ranges(sorted(c))) for c in sets.values()))


def scripts():
    """The scripts between which UnicodeScripts cuts, numbered; 0: none, so that a character belongs to any script."""
    cut = pre_tokenizers.UnicodeScripts().pre_tokenize_str
    some = [c for c in CODES if cut(chr(c) + "a")[0][1][0] == 0]  # what belongs to any script is dropped before an a
    begins = {first for start in range(0, len(some), 65536)
              for first in [start + at[0] for piece, at in cut("".join(map(chr, some[start:start + 65536])))]}
    spans, known = [], []
    for i, c in enumerate(some):
        if i in begins or c != spans[-1][1] + 1:
            number = next((n for n, k in enumerate(known) if len(cut(chr(k) + chr(c))) == 1), None)
            if number is None:
                number = len(known)
                known.append(c)
            if spans and spans[-1][1] == c - 1 and spans[-1][2] == number + 1:
                spans[-1][1] = c
            else:
                spans.append([c, c, number + 1])
        else:
            spans[-1][1] = c
    with open(os.path.join(FOLDER, "scripts_tables.c"), "w", encoding="ascii") as out:
        out.write("/* SPDX-License-Identifier: MIT */\n")
        out.write("/* scripts_tables.c - scripts of characters, as in the reference.\n"
                  " * Made by make_unicode.py: do not edit. */\n#include \"scripts_tables.h\"\n\n")
        out.write("const struct script_span script_spans[SCRIPT_SPANS] = {\n%s\n};\n" % lines(braced(spans)))
    print("SCRIPT_SPANS %d scripts %d" % (len(spans), len(known)))


nfc_tables()
char_maps()
scripts()
code_sets()
