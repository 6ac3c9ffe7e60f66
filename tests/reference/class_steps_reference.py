#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""class_steps_reference.py TOKMAP TABLE: compares what `tokmap tokenizer FOLDER` says of the ids of AutoTokenizer with
these ids, for each class with steps of its own, settings, and types of models. TABLE is class_steps.c, which
make_class_steps.py must write again.
"""
import itertools
import json
import os
import subprocess
import sys
import tempfile
import unicodedata

import make_class_steps
import transformers
from make_class_steps import MODELS, SETTINGS, TOKENS
from tokenizers import Tokenizer

TOKMAP, TABLE = sys.argv[1:]
# The texts that tokmap tries (folder.c).
TEXTS = ("Hello World", "e\u0301t\u00e9", " a  b", "DON'T 12345", "a\n\n b!c", "\ufb01 \u4e2d\u6587", "``a'' ", "a\t1.b",
         "a  (b)")
# Pairs of class and type of model. AutoTokenizer opens the class, another one, or the file as it is.
PAIRS = ((("GPT2Tokenizer", "llama"), ("PreTrainedTokenizerFast", "qwen2"), ("LlamaTokenizerFast", "mistral"),
          ("LlamaTokenizer", "phi3"), ("LlamaTokenizer", "llama"), (None, "gpt2"), (None, "llama"), (None, "qwen3"),
          ("TokenizersBackend", "gpt2"), ("NoSuchTokenizer", "gpt2"), ("GPT2TokenizerFast", "no_such_type")),
         (("T5Tokenizer", "umt5"), ("XLMRobertaTokenizer", "albert"), (None, "t5"), ("T5TokenizerFast", "t5"),
          ("AlbertTokenizer", "bert"), (None, "xlm-roberta")),
         (("BertTokenizer", "modernbert"), (None, "bert"), ("BertTokenizerFast", "bert"), (None, "distilbert"),
          ("PreTrainedTokenizerFast", "bert"), ("ElectraTokenizer", "electra")))
# Classes whose ids may differ without a word: their models are others, or tokmap does not know the steps.
SILENT = {"CLIPTokenizer": None, "HerbertTokenizer": None, "OpenAIGPTTokenizer": None,
          "LlamaTokenizer": "add_prefix_space", "DebertaV2Tokenizer": "add_prefix_space"}


def models():
    """The models of make_class_steps.py with all characters of the texts, as they are and normalized."""
    text = "".join(TEXTS) + "\u2581"
    text += "".join(unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD"))
    alphabet = Tokenizer.from_str(json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": {"type": "ByteLevel"}, "model": {
            "type": "BPE", "vocab": {}, "merges": []}})).normalizer.normalize_str(text + " ")
    characters = sorted(set(text + text.lower() + alphabet))
    tokens = TOKENS + characters + ["##" + one for one in characters]
    ids = {token: i for i, token in enumerate(tokens)}
    return {"BPE": {**MODELS["BPE"], "vocab": ids}, "WordPiece": {**MODELS["WordPiece"], "vocab": ids},
            "Unigram": {**MODELS["Unigram"], "vocab": [[token, -float(token not in TOKENS)] for token in tokens]}}


def compare(kind, steps, settings, model_type=None):
    """Returns whether AutoTokenizer gives other ids than the file, and what tokmap says: a text, or None."""
    files = {"tokenizer.json": {"version": "1.0", "added_tokens": [], **steps, "model": {"type": kind, **MADE[kind]}},
             "tokenizer_config.json": settings}
    if model_type:
        files["config.json"] = {"model_type": model_type}
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                json.dump(content, file)
        answer = subprocess.run([TOKMAP, "tokenizer", "--json", folder], stdout=subprocess.PIPE).stdout
        said = [text for text in json.loads(answer)["warnings"] if "AutoTokenizer" in text] if answer else []
        file = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        theirs = transformers.AutoTokenizer.from_pretrained(folder)
    differ = [text for text in TEXTS if theirs.backend_tokenizer.encode(text, add_special_tokens=False).ids !=
              file.encode(text, add_special_tokens=False).ids]
    return differ[0] if differ else None, said[0].split("such as for ", 1)[1][1:-1] if said else None


MADE = models()


def main():
    number, failed = 0, 0

    def report(good, name):
        nonlocal number, failed
        number, failed = number + 1, failed + (not good)
        print("%sok %d - %s" % ("" if good else "not ", number, name), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        again = os.path.join(folder, "class_steps.c")
        subprocess.run([sys.executable, make_class_steps.__file__, again], check=True)
        with open(again, encoding="ascii") as made, open(TABLE, encoding="ascii") as table:
            report(made.read() == table.read(), "the table is what its generator writes")
    none = {"normalizer": None, "pre_tokenizer": None}
    with open(TABLE, encoding="ascii") as table:
        table = table.read().split("#include")[1]
    for tokenizer, names in make_class_steps.classes().items():
        kind = tokenizer.model.__name__ if tokenizer.model else "Unigram"
        if names[0] not in table:
            continue
        template, wrong = make_class_steps.template(tokenizer, kind), []
        known = [name for name in SETTINGS[1:] if "@%s@" % name in template]
        for name, value in [("x", None)] + list(itertools.product(known, (False, True))):
            settings = {"tokenizer_class": names[0], name: value}
            own = json.loads("{%s}" % make_class_steps.steps(tokenizer, kind, **{name: value}))
            for steps in (own, none):
                differs, said = compare(kind, steps, settings)
                silent = steps is own or SILENT.get(names[0], "") in (None, name)
                if said is not None and (steps is own or said != differs) or said is None and differs and not silent:
                    wrong.append((settings, steps, differs, said))
        report(not wrong, "%s %s" % (names[0], wrong[:3]))
    for (kind, pairs) in zip(MODELS, PAIRS):
        for name, model_type in pairs:
            differs, said = compare(kind, none, {"tokenizer_class": name} if name else {}, model_type)
            report(differs == said, "%s, the class %s, the type %s: %r, %r" % (kind, name, model_type, differs, said))
    print("1..%d" % number)
    sys.exit(failed > 0)


main()
