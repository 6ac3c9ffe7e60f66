#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sp_reference.py TOKMAP FOLDER [STRINGS [SEED [TRAINED [MODEL...]]]]: compares the ids of `tokmap encode`, and where
its tokens are, with those of the sentencepiece library. The models are written here, piece by piece (any scores, equal
scores, characters that are not pieces, user-defined pieces that overlap, ...), for both BPE and Unigram, and TRAINED
models (20) are trained with random options; models that are named on the command line are compared, too.

Prints a TAP line for each model. A difference is printed with its text and both lists of ids, and its model is kept in
FOLDER.
"""
import io
import json
import os
import random
import re
import subprocess
import sys

import offsets
import sentencepiece

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../census"))
from gguf_vocabulary import field  # noqa: E402

MARK = "\u2581"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
WORDS = """the The THE and ing tion foo_bar x1 2 10 333 é naïve ß Привет мир العربية שלום हिन्दी ไทย 中文 漢字 日本語 かな カナ 한국어 조선
😀 👨‍👩‍👧 🇩🇪 𝟘 𐐀 ( ) {} [] <s> </s> <unk> <0x41> <0x0A> <sep> <sep2> // -- === ... ▁ ▁▁ >▁</ "quoted" it's U+0000 é ợ \x00 \x7f \x85"""
SPACES = [" ", "  ", "   ", "\n", "\r\n", "\t", "\n\n", "\u00a0", "\u3000", "    ", MARK, " " * 17]


def model(pieces, fallback=False, prefix=True, strip=False, escape=True, kind=2, suffix=False):
    made = b"".join(field(1, field(1, text) + field(2, float(score)) + (field(3, type) if type != NORMAL else b""))
                    for text, score, type in pieces)
    made += field(2, field(3, kind) + field(4, len(pieces)) + field(35, fallback) + field(24, suffix))
    return made + field(3, field(1, "identity") + field(2, b"") + field(3, prefix) + field(4, strip) + field(5, escape))


def texts(rng, count):
    words = [w.replace("\\x00", "\0").replace("\\x7f", "\x7f").replace("\\x85", "\x85") for w in WORDS.split()]
    made = [""]
    while len(made) < count:
        choice = [rng.choice(words) for _ in range(rng.randint(1, 6))]
        choice += [rng.choice(SPACES) for _ in range(rng.randint(0, 4))]
        if rng.random() < 0.1:
            low, high = rng.choice([(0x20, 0x3000), (0x3000, 0xD800), (0xE000, 0x20000)])
            choice.append(chr(rng.randrange(low, high)))
        if rng.random() < 0.2:
            choice = list("".join(choice))
        many = rng.choices([30, 200, 3000], [96, 3, 1])[0]
        made.append("".join(rng.choice(choice) * (rng.randint(2, 9) if rng.random() < 0.1 else 1) for _ in range(rng.randint(1, many))))
    return made


def pieces(rng, size=400, fallback=True, scores=1000, chars=0.9, defined=(), inner=0.1):
    """Substrings of texts; `inner` of them may contain a mark after their first character."""
    made = [("<unk>", 0, UNKNOWN), ("<s>", 0, CONTROL), ("</s>", 0, CONTROL)]
    if fallback:
        made += [("<0x%02X>" % byte, 0, BYTE) for byte in range(256)]
    made += [(text, rng.choice([0, -1, 5]), USER_DEFINED) for text in defined]
    taken = {text for text, _, _ in made} | {MARK}
    made.append((MARK, -rng.randrange(scores), NORMAL))
    sample = [t.replace(" ", MARK).replace("\0", "") for t in texts(rng, 300)]
    for text in sorted(set("".join(sample)) - taken):
        if rng.random() < chars:
            taken.add(text)
            made.append((text, -rng.randrange(scores), NORMAL))
    while len(made) < size + 256 * fallback:
        text = rng.choice(sample)
        at = rng.randrange(len(text) + 1)
        part = text[at:at + rng.choice([2, 2, 2, 3, 3, 4, 5, 8, 16])]
        # A merge can only make a piece whose halves are pieces, so most pieces get theirs.
        halves = any(part[:i] in taken and part[i:] in taken for i in range(1, len(part)))
        if len(part) > 2 and rng.random() < 0.8 and not halves:
            continue
        if len(part) < 2 or part in taken or (MARK in part.lstrip(MARK) and rng.random() > inner):
            continue
        taken.add(part)
        made.append((part, rng.choice([-rng.randrange(scores), -1e9, rng.random()]) if scores > 1 else 0, NORMAL))
    return made


DEFINED = ["<sep>", "<sep2>", "\n", "\n\n", MARK * 2, MARK * 3, "the", "th", "é", "中", "中文", ">" + MARK + "</", "=="]


def unused(rng, made):
    """The pieces, a third of the single characters being UNUSED; the space stays, without which tokmap refuses."""
    return [(text, score, UNUSED if len(text) == 1 and kind == NORMAL and text != "▁" and rng.random() < 1 / 3 else kind)
            for text, score, kind in made]


def families(rng):
    yield "plain", model(pieces(rng), True)
    yield "equal scores", model(pieces(rng, scores=1), True)
    yield "few scores", model(pieces(rng, scores=5, inner=1), True)
    yield "no prefix", model(pieces(rng), True, prefix=False)
    yield "characters missing", model(pieces(rng, chars=0.5), True)
    yield "no fallback", model(pieces(rng, fallback=False, chars=0.7))
    yield "no fallback, no prefix", model(pieces(rng, fallback=False, chars=0.5, scores=3), prefix=False)
    yield "user defined", model(pieces(rng, defined=DEFINED), True)
    yield "user defined, no prefix", model(pieces(rng, defined=DEFINED, scores=3, chars=0.6), True, prefix=False)
    yield "strip", model(pieces(rng), True, strip=True)
    yield "strip, no prefix, user defined", model(pieces(rng, defined=DEFINED), True, prefix=False, strip=True)
    yield "spaces stay", model(pieces(rng) + [(" ", -3, NORMAL), (" a", -4, NORMAL), (" t", -4, NORMAL)], True, escape=False)
    yield "spaces stay unknown", model(pieces(rng, inner=1), True, escape=False)
    yield "large", model(pieces(rng, size=3000, inner=0.5), True)
    yield "large, few scores", model(pieces(rng, size=3000, scores=20, inner=1, chars=0.8), True)
    yield "unused character", model(pieces(rng) + [("Ω", -1, UNUSED)], True)
    yield "unused characters", model(unused(rng, pieces(rng)), True)
    yield "unused characters, no fallback", model(unused(rng, pieces(rng, fallback=False, chars=0.7)))
    yield "unused characters, no prefix", model(unused(rng, pieces(rng, fallback=False, chars=0.7)), prefix=False)
    yield "unused characters, user defined", model(unused(rng, pieces(rng, defined=DEFINED, chars=0.6)), True)


def unigram_families(rng):
    """Unigram: the same, and scores like those of real models, ties, and scores so large that sums are set to 0."""
    def near(made, score):
        return [(text, score() if kind == NORMAL else old, kind) for text, old, kind in made]

    def usual():
        return -rng.uniform(2, 16)

    def coarse():
        return -rng.randint(4, 30) / 2

    def long(name):
        return "unigram, long texts, " + name

    for name, score in ("usual scores", usual), ("ties", coarse), ("one score", lambda: -7.25), ("zero", lambda: 0.0):
        yield "unigram, " + name, model(near(pieces(rng, chars=0.9), score), True, kind=1)
        yield long(name), model(near(pieces(rng, chars=0.9, size=1500, inner=0.3), score), True, kind=1, strip=True)
    for name, score in ("large", lambda: -rng.uniform(100, 3000)), ("positive", lambda: rng.uniform(1, 900)), (
            "huge", lambda: -rng.uniform(1, 3e38)), ("steep", lambda: -10 ** rng.uniform(-3, 6)), (
            "endless", lambda: rng.choice([-1, -1, 1]) * rng.uniform(1, 3.4e38)):
        yield long(name + " scores"), model(near(pieces(rng), score), True, kind=1)
    yield "unigram, no fallback", model(near(pieces(rng, fallback=False, chars=0.6), usual), kind=1)
    yield "unigram, no prefix", model(near(pieces(rng, fallback=False, chars=0.6), coarse), prefix=False, kind=1)
    yield "unigram, user defined", model(near(pieces(rng, defined=DEFINED), usual), True, kind=1)
    yield "unigram, user defined, strip", model(near(pieces(rng, defined=DEFINED, fallback=False), coarse), strip=True, kind=1)
    yield long("unused"), model(unused(rng, near(pieces(rng, defined=DEFINED, chars=0.7), usual)), True, kind=1)
    yield "unigram, spaces stay", model(near(pieces(rng), usual) + [(" ", -3, NORMAL), (" a", -4, NORMAL)], True, escape=False, kind=1)
    yield "unigram, strange scores", model(pieces(rng, defined=DEFINED), True, kind=1)
    yield "unigram, no space", model([p for p in near(pieces(rng), usual) if MARK not in p[0]], True, kind=1)
    yield "unigram, no space, no fallback", model([p for p in near(pieces(rng, fallback=False), usual) if MARK not in p[0]], kind=1)
    for kind in 1, 2:
        for strip in False, True:
            yield "suffix %d %s" % (kind, strip), model(near(pieces(rng, defined=DEFINED, chars=0.8), coarse), True, suffix=True, strip=strip, kind=kind)


def trained(rng, count):
    """Models that SentencePiece trains under random options."""
    for number in range(count):
        made = io.BytesIO()
        kind = rng.choice(["unigram", "unigram", "unigram", "bpe", "char"])
        options = dict(
            model_type=kind, vocab_size=rng.choice([400, 800, 1500]), character_coverage=rng.choice([0.9, 0.98, 1.0]),
            normalization_rule_name=rng.choice(["nmt_nfkc", "nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"]),
            add_dummy_prefix=rng.random() < 0.7, remove_extra_whitespaces=rng.random() < 0.6,
            byte_fallback=rng.random() < 0.4, treat_whitespace_as_suffix=rng.random() < 0.2,
            split_by_whitespace=rng.random() < 0.7, split_by_unicode_script=rng.random() < 0.7,
            split_digits=rng.random() < 0.3, allow_whitespace_only_pieces=rng.random() < 0.4,
            max_sentencepiece_length=rng.choice([4, 16, 40]), hard_vocab_limit=False,
            user_defined_symbols=rng.choice([[], [], ["<sep>", "é", "ﬁ", "Å", "=="], ["<sep>", "<sep2>", "th", "中文", "①"]]))
        sample = [t.replace("\0", "") for t in texts(rng, 400)]
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sample), model_writer=made, minloglevel=2, num_threads=1, **options)
        except Exception:  # these options do not fit this text
            continue
        about = ", ".join("%s=%s" % pair for pair in options.items() if pair[1] not in (False, []))
        yield "trained %d: %s" % (number, about), made.getvalue()


def check_offsets(tokmap, path, strings, answers, removes):
    """A token that is elsewhere, or None. The reference gives the last token of a character's bytes all of it, and the
    first of several spaces that it removes all of them; after a user-defined piece within others it loses count, so a
    token may also be where its own text is. removes: whether the model removes all spaces but one."""
    found = offsets.found(tokmap, path, strings)
    if isinstance(found, str):
        return found
    for text, mine, answer in zip(strings, found, answers):
        if mine is None or mine[0] != answer["ids"]:
            return "the ids beside the offsets of %s are %s" % (ascii(text), mine)
        for place, theirs, piece in zip(mine[1], answer["offsets"], answer["pieces"]):
            own = re.sub(" +" if removes else " ", MARK, text[slice(*place)])
            if not offsets.nested(place, theirs) and own not in piece:
                return "%s of %s is %s, not %s" % (ascii(piece), ascii(text), place, theirs)
    return None


def check(tokmap, path, strings):
    """The differences, or a string with the reason why tokmap refused the model."""
    reference = sentencepiece.SentencePieceProcessor()
    with open(path, "rb") as made:
        reference.LoadFromSerializedProto(made.read())
    corpus = "".join(json.dumps({"text": text}) + "\n" for text in strings)
    run = subprocess.run([tokmap, "encode", "-t", path, "--input-format", "jsonl"], input=corpus.encode(), capture_output=True)
    if run.returncode:
        return run.stderr.decode().strip()
    got = [json.loads(line) for line in run.stdout.decode().splitlines()]
    answers = [reference.encode(text, return_type="offset_mapping") for text in strings]
    wanted = [answer["ids"] for answer in answers]
    if len(got) != len(wanted):
        return "%d documents, not %d" % (len(got), len(wanted))
    if got == wanted:
        return check_offsets(tokmap, path, strings, answers, reference.normalize("a  b") == reference.normalize("a b"))
    return [(text, mine, theirs) for text, mine, theirs in zip(strings, got, wanted) if mine != theirs]


def main():
    tokmap, folder = sys.argv[1], sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 400
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    rng = random.Random(seed)
    number = failed = 0
    named = [(path, None) for path in sys.argv[6:]]
    models = int(sys.argv[5]) if len(sys.argv) > 5 else 20
    for name, made in named + list(families(rng)) + list(unigram_families(rng)) + list(trained(rng, models)):
        number += 1
        path = name
        if made is not None:
            path = os.path.join(folder, "tokenizer.model")
            with open(path, "wb") as out:
                out.write(made)
        strings = texts(rng, count)
        if "long" in name:
            strings += ["".join(strings[at:at + 100]) for at in range(0, count, 100)]
            strings += ["a" * 20000, "the " * 20000, "中文かな" * 5000]
        wrong = check(tokmap, path, strings)
        print("%s %d - %s%s" % ("not ok" if wrong else "ok", number, name if made else os.path.basename(os.path.dirname(name)),
                                ": " + wrong if isinstance(wrong, str) else " (%d strings)" % count))
        if isinstance(wrong, list):
            for text, mine, theirs in sorted(wrong, key=lambda one: len(one[0]))[:2]:
                print("  %s\n  got    %s\n  wanted %s" % (ascii(text), mine, theirs))
        if wrong:
            failed += 1
            if made is not None:
                os.replace(path, os.path.join(folder, "wrong%d.model" % number))
    print("1..%d" % number)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
