#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_unicode.py [FOLDER]: generates nfc_tables.c and code_tables.c by asking the references.

Hugging Face tokenizers takes NFC, digits, and punctuation from several libraries, each with its own version of Unicode.
The script assumes nothing about them: it passes every code point, and every pair that might compose, through the
library. What str.lower() of Python does comes from the Python that runs it. The script prints the sizes to put into
nfc_tables.h and code_sets.h. It requires Python 3.11, which has Unicode 14.0, and tokenizers 0.23. It writes to
FOLDER, by default its own.
"""
import os
import sys
import unicodedata

from table_text import braced, lines, numbered, rows, runs, table_file
from tokenizers import Regex, normalizers, pre_tokenizers

CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
SBASE, SCOUNT, VBASE, TBASE = 0xAC00, 11172, 0x1161, 0x11A8
CATEGORIES = ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn").split()
WORD = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl Pc"
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
    for c in codes:
        checks = [check(True, whole, c), check(False, apart, c), check(True, whole_k, c), check(False, apart_k, c)]
        kind = (classes.get(c, 0), "{%d,%d,%d,%d}" % tuple(checks))
        if kind == kinds[0]:
            continue
        if kind not in kind_numbers:
            kind_numbers[kind] = len(kinds)
            kinds.append(kind)
        kind_of[c] = kind_numbers[kind]
    blocks, first = numbered(tuple(kind_of.get(c, 0) for c in range(start, start + 64))
                             for start in range(0, 0x110000, 64))
    flat, spans = spans_of(parts)
    flat_k, spans_k = spans_of(parts_k)
    with table_file(FOLDER, "nfc_tables", "decomposition (Unicode 9, as in the reference)", "make_unicode.py") as out:
        out.write("const struct nfc_kind nfc_kinds[NFC_KINDS] = {\n%s\n};\n\n" % lines(braced(kinds)))
        out.write("const uint8_t nfc_first[0x110000 / 64] = {\n%s\n};\n\n" % lines(runs(first)))
        out.write("const uint8_t nfc_blocks[NFC_BLOCKS][64] = {\n%s\n};\n\n" % lines(rows(blocks)))
        out.write("const struct nfc_span nfc_spans[NFC_SPANS] = {\n%s\n};\n\n" % lines(braced(spans)))
        out.write("const uint32_t nfc_parts[NFC_PARTS] = {\n%s\n};\n\n" % lines(runs(flat)))
        out.write("const struct nfc_span nfkc_spans[NFKC_SPANS] = {\n%s\n};\n\n" % lines(braced(spans_k)))
        out.write("const uint32_t nfkc_parts[NFKC_PARTS] = {\n%s\n};\n\n" % lines(runs(flat_k)))
    print("NFC_KINDS %d NFC_BLOCKS %d NFC_SPANS %d NFC_PARTS %d NFKC_SPANS %d NFKC_PARTS %d NFC_PAIRS %d" %
          (len(kinds), len(blocks), len(spans), len(flat), len(spans_k), len(flat_k), len(pairs)))
    for name, made in (("NFC", whole), ("NFD", apart), ("NFKC", whole_k), ("NFKD", apart_k)):
        print(name, "growth", max(len(made[c].encode()) / len(chr(c).encode()) for c in codes))


def changes(normalizer):
    """Returns what becomes of each character that a normalizer changes by itself."""
    codes = [c for c in CODES if c != 0x100000]
    made = each(normalizer, [chr(c) for c in codes], chr(0x100000))
    return {c: text for c, text in zip(codes, made) if text != chr(c)}


def case_ranges(lower):
    """Returns ranges (first, last, delta, step) of the characters with a lower case."""
    assert [c for c in lower if len(lower[c]) != 1] == [0x130] and lower[0x130] == "i\u0307"
    spans = []
    for code, text in lower.items():
        delta = ord(text[0]) - code
        if spans:
            first, last, same, step = spans[-1]
            if same == delta and code - last in (1, 2) and step in (0, code - last):
                spans[-1] = (first, code, delta, code - last)
                continue
        spans.append((code, code, delta, 0))
    return [(first, last, delta, step or 1) for first, last, delta, step in spans]


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


def sigma_is_final(before):
    """Returns whether str.lower() of Python takes a sigma after this text for the last letter of a word."""
    return (before + "\u03a3").lower().endswith("\u03c2")


def code_sets(lower):
    def regex(pattern):
        return members(pre_tokenizers.Split(Regex(pattern), "isolated"))

    spaced = pre_tokenizers.Whitespace()  # \w+|[^\w\s]+ of another engine: a word character stays with its neighbors
    word = []
    for start in range(0, len(CODES), 4096):
        part = CODES[start:start + 4096]
        # "a" c "a" between spaces is one piece if c is a word character
        whole = {first for piece, (first, end) in spaced.pre_tokenize_str("".join("a" + chr(c) + "a " for c in part))
                 if end - first == 3}
        word += [c for i, c in enumerate(part) if 4 * i in whole]
    bert = normalizers.BertNormalizer
    nmt = changes(normalizers.Nmt())
    assert set(nmt.values()) == {"", " "}
    python = {c: chr(c).lower() for c in CODES if chr(c).lower() != chr(c)}
    assert all(lower[c] == python[c] for c in python)
    # The name of each set, its code points, and the categories that it consists of, mostly.
    sets = [("NUMERIC", members(pre_tokenizers.Digits(individual_digits=True)), "Nd Nl No"),
            ("PUNCTUATION", members(pre_tokenizers.Punctuation("isolated")), "Pc Pd Ps Pe Pi Pf Po"),
            ("WORD", regex(r"[\w&&[^a]]") + [ord("a")], WORD),
            ("WORD_RUST", word, WORD),
            ("BERT_CONTROL", removed(bert(True, False, False, False)), ""),
            ("BERT_MARKS", removed(bert(False, False, True, False)), "Mn"),
            ("MARKS", [c for c, text in changes(normalizers.StripAccents()).items() if not text], "Mn Mc Me"),
            ("NMT", list(nmt), ""),
            ("NMT_REMOVED", [c for c, text in nmt.items() if not text], ""),
            ("CASED", [c for c in CODES if sigma_is_final("1" + chr(c))], "Lu Ll Lt"),
            ("CASE_IGNORED", [c for c in CODES if sigma_is_final("A" + chr(c)) and not sigma_is_final("1" + chr(c))],
             "Lm Mn Me Sk Cf"),
            ("LOWER_LATER", sorted(set(lower) - set(python)), "")]
    for name in SCRIPTS:
        sets.append((name.upper(), regex(r"[\p{%s}&&[^a]]" % name) + ([ord("a")] if name == "Latin" else []), ""))
    category = {c: name for name in CATEGORIES
                for c in regex(r"[\p{%s}&&[^a]]" % name) + ([ord("a")] if name == "Ll" else [])}
    usual = {"M": "Mn", "N": "No", "P": "Po", "S": "So", "Z": "Zs", "C": "Cn"}  # as in code_sets.c
    spans = []
    for c in range(0x110000):
        name = category.get(c, "surrogate")
        if name[0] == "L" or name == usual.get(name[0]):
            continue
        number = CATEGORIES.index(name) if name in CATEGORIES else 31
        if spans and spans[-1][1] == c - 1 and spans[-1][2] == number:
            spans[-1][1] = c
        else:
            spans.append([c, c, number])
    made = []
    for name, codes, consists in sets:
        kinds = consists.split()
        base = {c for c in CODES if category[c] in kinds}
        made.append((name, sum(1 << CATEGORIES.index(kind) for kind in kinds), ranges(sorted(base ^ set(codes)))))
    print("CATEGORY_SPANS", len(spans), " ".join("CODE_" + name for name, mask, others in made))
    return spans, made


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
    print("SCRIPT_SPANS %d scripts %d" % (len(spans), len(known)))
    return spans


def code_tables():
    lower = changes(normalizers.Lowercase())
    cases, script_spans = case_ranges(lower), scripts()
    spans, sets = code_sets(lower)
    with table_file(FOLDER, "code_tables", "categories, sets, and scripts of characters, as in the references",
                    "make_unicode.py", "code_sets.h") as out:
        out.write("const struct code_span category_spans[CATEGORY_SPANS] = {\n%s\n};\n\n" % lines(braced(spans)))
        for name, mask, others in sets:
            out.write("static const struct code_range set_%s[] = {\n%s\n};\n" % (name.lower(), lines(braced(others))))
        out.write("\n#define SET(categories, ranges) {categories, ranges, sizeof(ranges) / sizeof(ranges)[0]}\n")
        out.write("const struct code_set code_sets[CODE_SETS] = {\n%s\n};\n\n" % lines(
            ["{1u << %d,NULL,0}" % i for i in range(len(CATEGORIES))] +
            ["SET(0x%X, set_%s)" % (mask, name.lower()) for name, mask, others in sets]))
        out.write("const struct code_span script_spans[SCRIPT_SPANS] = {\n%s\n};\n\n" % lines(braced(script_spans)))
        out.write("const struct case_range case_ranges[CASE_RANGES] = {\n%s\n};\n" % lines(braced(cases)))
    print("CASE_RANGES", len(cases))


nfc_tables()
code_tables()
