#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_class_steps.py FILE: generates tokenize_tools/tokenizers/vocabulary/class_steps.c by opening a small tokenizer.json with
each class of transformers. class_steps.h describes the table.

The script changes one setting of tokenizer_config.json at a time: what differs then is the place of this setting. Where
two settings decide the same place, only the default of the second one is known. The script requires transformers 5.24
and tokenizers 0.23.
"""
import base64
import json
import os
import re
import sys
import tempfile
import textwrap

import transformers
from transformers.convert_slow_tokenizer import SLOW_TO_FAST_CONVERTERS
from transformers.models.auto import tokenization_auto as auto
from transformers.tokenization_utils_tokenizers import TokenizersBackend

SETTINGS = ("charsmap legacy add_prefix_space do_lower_case tokenize_chinese_chars strip_accents keep_accents "
            "split_by_punct").split()
CHARSMAP = base64.b64encode(bytes([0, 4, 0, 0]) + bytes(1024)).decode()  # stands for that of a file: an empty map
# Classes of few models are left out, so that the table stays short.
RARE = ("EsmcTokenizer Tipsv2Tokenizer MLukeTokenizer SeamlessM4TTokenizer LayoutXLMTokenizer "
        "DPRContextEncoderTokenizer DPRQuestionEncoderTokenizer DPRReaderTokenizer").split()
TOKENS = "<s> <pad> </s> <unk> [UNK] [CLS] [SEP] [PAD] [MASK] <mask> <|endoftext|>".split()
IDS = {token: i for i, token in enumerate(TOKENS)}
MODELS = {"BPE": {"vocab": IDS, "merges": []}, "Unigram": {"unk_id": 3, "vocab": [[token, 0.0] for token in TOKENS]},
          "WordPiece": {"unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                        "vocab": IDS}}
# Macros for what many classes have. Each may contain those below it.
MACROS = {
    "BERT(chinese, accents, lower)": '"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":%s,'
                                     '"strip_accents":%s,"lowercase":%s},"pre_tokenizer":{"type":"BertPreTokenizer"}',
    "NORMALIZERS": '"normalizer":{"type":"Sequence","normalizers":[',
    "SEQUENCE": '"pre_tokenizer":{"type":"Sequence","pretokenizers":[',
    "NONE": '"normalizer":null,"pre_tokenizer":', "NFC": '"normalizer":{"type":"NFC"},"pre_tokenizer":',
    "BYTES(prefix, regex)": '{"type":"ByteLevel","add_prefix_space":%s,"trim_offsets":true,"use_regex":%s}',
    "MAP": '{"type":"Precompiled","precompiled_charsmap":"@"}',
    "SPLIT(pattern, behavior)": '{"type":"Split","pattern":{"String":"%s"},"behavior":"%s","invert":false}',
    "STRIP(left, right)": '{"type":"Strip","strip_left":%s,"strip_right":%s}',
    "REGEX(pattern, text)": '{"type":"Replace","pattern":{"Regex":"%s"},"content":"%s"}',
    "STRING(pattern, text)": '{"type":"Replace","pattern":{"String":"%s"},"content":"%s"}',
    "SPACE(where, split)": '{"type":"Metaspace","replacement":"\\u2581","prepend_scheme":"%s","split":%s}',
    "STEP(type)": '{"type":"%s"}',
}
# How a text is divided where it is compared with others: into words, or into steps with a comma before or after them.
STEP = r'\{(?:[^{}\[]|\{[^{}]*\})*\}'
DIVISIONS = (r"\w+|\W", r",?%s|\w+|\W" % STEP, r"%s,?|\w+|\W" % STEP)


def steps(tokenizer, kind, **settings):
    """Returns the steps that a class takes in place of none."""
    precompiled = {"type": "Precompiled", "precompiled_charsmap": CHARSMAP} if settings.pop("charsmap", 0) else None
    files = {"tokenizer.json": {"version": "1.0", "added_tokens": [], "normalizer": precompiled, "pre_tokenizer": None,
                                "model": {"type": kind} | MODELS[kind]}, "tokenizer_config.json": settings}
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                json.dump(content, file)
        made = json.loads(tokenizer.from_pretrained(folder).backend_tokenizer.to_str())
    return json.dumps({name: made[name] for name in ("normalizer", "pre_tokenizer")}, separators=(",", ":")
                      )[1:-1].replace('"trim_offsets":false', '"trim_offsets":true')


def place(texts):
    """Returns where texts differ in the first one, from and to, and what each one has there: whole values."""
    found = []
    for division in DIVISIONS:
        words = [re.findall(division, text) for text in texts]
        most, first, last = min(map(len, words)), 0, 0
        while first < most and len({text[first] for text in words}) == 1:
            first += 1
        while last < most - first and len({text[-1 - last] for text in words}) == 1:
            last += 1
        spans = ["".join(text[first:len(text) - last]) for text in words]
        if all(re.sub("[^{}]", "", span)[:1] != "}" and span.count("{") == span.count("}") for span in spans):
            start = len("".join(words[0][:first]))
            found.append((sum(map(len, spans)), start, start + len(spans[0]), spans))
    return min(found)[1:]


def template(tokenizer, kind):
    """Returns the steps of a class with the places of its settings."""
    made, places, guards = steps(tokenizer, kind), [], ""
    for name in SETTINGS:
        others = [steps(tokenizer, kind, **{name: value}) for value in (False, True)]
        if others == [made, made]:
            continue
        start, end, spans = place([made] + others)
        if name == "charsmap":
            spans[1:] = spans[2].split(CHARSMAP)
        if any(start < b and a < end for a, b, _ in places):
            guards += "@%s@@%s@%s@" % (name, *("?" * (other != made) for other in others))
        else:
            places.append((start, end, "@%s@%s@" % (name, "@".join(spans))))
    for start, end, text in sorted(places, key=lambda place: place[:2], reverse=True):
        made = made[:start] + text + made[end:]
    return made + guards


def classes():
    """Returns for each class with steps of its own its names."""
    names, found = {*auto.TOKENIZER_MAPPING_NAMES.values(), *dir(transformers), *SLOW_TO_FAST_CONVERTERS}, {}
    for name in sorted(name for name in names if name and name.endswith("Tokenizer")):
        tokenizer = auto.tokenizer_class_from_name(name)
        if isinstance(tokenizer, type) and issubclass(tokenizer, TokenizersBackend) and \
                tokenizer is not TokenizersBackend and "__init__" in vars(tokenizer) and name not in RARE:
            found.setdefault(tokenizer, []).append(name)
    return found


def quoted(text, macros=tuple(MACROS.items())):
    """Returns a text as strings of C and macros."""
    for i, (macro, pattern) in enumerate(macros):
        pattern = re.escape(pattern).replace('"%s"', r'"((?:[^"\\]|\\.){0,40})"').replace("%s", r"([\w@]+)")
        match = re.search(pattern, text)
        if match:
            arguments = "(%s)" % ", ".join(" ".join(quoted(text, ())) or '""' for text in match.groups())
            return quoted(text[:match.start()], macros) + [macro.split("(")[0] + arguments * ("(" in macro)] + \
                quoted(text[match.end():], macros[i:])
    return ['"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')] * bool(text)


def lines(items, end="", indent="     "):
    """Joins items to lines of at most 120 columns, and cuts strings after a comma or a space."""
    made = [indent[1:]]
    for item in items[:-1] + [items[-1] + end]:
        while len(made[-1]) + len(item) > 117:
            room = max(0, 117 - len(made[-1]))
            cut = max(item.rfind(mark, 0, room) for mark in " ,|") + 1 if item[0] == '"' else 0
            call = item.rfind('", "', 0, room) + 2 if item[0] != '"' else 0
            if cut > 1:
                made[-1], item = "%s %s\"" % (made[-1], item[:cut]), '"' + item[cut:]
            elif call > 1:
                made[-1], item = "%s %s" % (made[-1], item[:call]), item[call + 1:]
            elif not made[-1].strip():
                break
            made.append(indent[1:])
        made[-1] += " " + item
    return "\n".join(line for line in made if line.strip())


def main():
    rows, left, types, auto_types = {}, list(RARE), {}, auto.TOKENIZER_MAPPING_NAMES
    for tokenizer, names in classes().items():
        for kind in [tokenizer.model.__name__] if tokenizer.model else MODELS:
            try:
                rows.setdefault((kind, template(tokenizer, kind)), []).extend(names)
                break
            except (ImportError, TypeError, ValueError):
                left += [name for name in names if kind in (tokenizer.model and kind, "WordPiece")]
    for kind in sorted(auto_types):
        types.setdefault(str(auto_types[kind]).replace("TokenizerFast", "Tokenizer"), []).append(kind)
    none = sorted(types["TokenizersBackend"] + types.get("MistralCommonBackend", []))
    always = sorted(auto.MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS - set(none))
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("/* SPDX-License-Identifier: MIT */\n/* class_steps.c - steps of transformers %s.\n * Made by "
                  "tests/reference/make_class_steps.py: do not edit.\n * Left out are\n%s.\n */\n#include "
                  "\"class_steps.h\"\n\n" % (transformers.__version__, textwrap.fill(
                      ", ".join(left), 120, initial_indent=" * ", subsequent_indent=" * ")))
        for macro, pattern in reversed(MACROS.items()):
            text = quoted(pattern, [other for other in MACROS.items() if other[0] != macro])
            for argument in re.findall(r"\w+", macro)[1:]:
                text = " ".join(text).replace("%s", '" %s "' % argument, 1).split(" ")
            whole = "#define %s %s\n" % (macro, " ".join(text))
            out.write(whole if len(whole) < 120 else
                      "#define %s \\\n%s\n" % (macro, lines(text, "", "    ").replace("\n", " \\\n")))
        out.write("const struct class_steps class_steps[CLASS_STEPS] = {\n")
        for (kind, text), names in rows.items():
            kinds = " ".join(kind for name in names for kind in types.get(name, []))
            names.sort(key=lambda name: -len(types.get(name, [])))
            fields = [["HF_" + kind.upper()], quoted(" ".join(names)), quoted(kinds), quoted(text)]
            out.write("    {%s\n" % lines([item + "," * (item is field[-1] and field is not fields[-1])
                                           for field in fields for item in field], "},").lstrip())
        for name, kinds in (("none", none), ("always", always)):
            out.write("%sconst char class_steps_%s[] =\n%s\n" % ("};\n" * (name == "none"), name, lines(
                quoted(" ".join(kinds)), ";")))


if __name__ == "__main__":
    main()
