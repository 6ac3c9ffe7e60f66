#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""strings.py: compares the ids of `tokmap encode`, and the texts of `tokmap decode`, with those of the reference
implementations, on generated strings.

Usage: strings.py [--count N] [--seed N] [--family NAME ...] [--keep FILE]
       strings.py --corpus FILE...

Decoded are the ids of each string, a part of them that begins and ends anywhere, and as many random ids: without
special tokens (tokenizers, sentencepiece) and with them (tokenizers, tiktoken).

The strings are awkward on purpose: characters of every script and class beside what split patterns name (contractions,
numbers, newlines, spaces of every kind), and special tokens, whole and cut, repeated, and mixed with words. Each string
is given to every family. Every other batch is encoded with special tokens recognized, except by sentencepiece, which
cannot do that. A family is a vocabulary of TOKMAP_DATA (a folder that contains vocab/), or one that is trained here
from strings of the same kind and needs no data. The references are tiktoken, tokenizers and sentencepiece, imported by
the Python that runs this script (tests/support/reference_venv.sh makes one). --keep appends differences to a file, with
the ids of the reference.

--corpus needs no reference. Its files have lines {"family", "special", "text", "ids"}: past differences and known traps,
with the ids that the reference gave.

Exit status: 77 if something that it needs is missing, 1 on a difference, else 0.
"""
import argparse
import base64
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

# name: (reference, file, the file that the reference reads, if it is not the same)
FAMILIES = {
    "r50k_base": ("tiktoken", "openai/r50k_base.tiktoken", None),
    "p50k_base": ("tiktoken", "openai/p50k_base.tiktoken", None),
    "cl100k_base": ("tiktoken", "openai/cl100k_base.tiktoken", None),
    "o200k_base": ("tiktoken", "openai/o200k_base.tiktoken", None),
    "llama3": ("tiktoken", "llama3/tokenizer.model", None),
    "llama3.json": ("tokenizers", "llama3/tokenizer.json", None),
    "gpt2": ("tokenizers", "gpt2/tokenizer.json", None),
    "gpt2.bpe": ("tokenizers", "gpt2/vocab.bpe", "gpt2/tokenizer.json"),
    "qwen2.5": ("tokenizers", "qwen2.5/tokenizer.json", None),
    "deepseek_v3": ("tokenizers", "deepseek_v3/tokenizer.json", None),
    "gpt_neox_20b": ("tokenizers", "gpt_neox_20b/tokenizer.json", None),
    "mistral_nemo": ("tokenizers", "mistral_nemo/tokenizer.json", None),
    "tekken": ("tokenizers", "mistral_nemo/tekken_derived.json", "mistral_nemo/tokenizer.json"),
    "llama2.json": ("tokenizers", "llama2/tokenizer.json", None),
    "gemma": ("tokenizers", "gemma/tokenizer.json", None),
    "llama2": ("sentencepiece", "llama2/tokenizer.model", None),
    "mistral7b_v1": ("sentencepiece", "mistral7b_v1/tokenizer.model", None),
}
# Vocabularies that are trained here. name: (reference, options of its trainer, options of tokmap)
R50K = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
TRAINED = {
    "trained r50k": ("tiktoken", R50K, ["--pattern", "r50k_base"]),
    "trained cl100k": ("tiktoken", CL100K, ["--pattern", "cl100k_base"]),
    "trained regex": ("tiktoken", CL100K, ["--pattern-regex", CL100K]),
    "trained sp": ("sentencepiece", {"byte_fallback": True}, []),
    "trained sp, no prefix": ("sentencepiece", {"byte_fallback": True, "add_dummy_prefix": False}, []),
    "trained sp, unknown": ("sentencepiece", {"byte_fallback": False, "character_coverage": 0.98}, []),
    "trained sp, across spaces": ("sentencepiece", {"byte_fallback": True, "split_by_whitespace": False}, []),
    "trained sp, symbols": (
        "sentencepiece", {"byte_fallback": True, "user_defined_symbols": ["<x>", "ab", "  ", "\u4e2d"]}, []),
    "trained sp, digits": ("sentencepiece", {"byte_fallback": True, "split_digits": True}, []),
}
RANGES = [
    (0x20, 0x7F), (0x20, 0x7F), (0xA0, 0x180), (0x180, 0x250), (0x250, 0x300), (0x300, 0x370), (0x370, 0x400),
    (0x400, 0x530),
    (0x530, 0x600), (0x600, 0x700), (0x900, 0x980), (0x980, 0xA00), (0xB80, 0xC00), (0xE00, 0xE80), (0xF00, 0x1000),
    (0x1000, 0x10A0), (0x10A0, 0x1100), (0x1100, 0x1200), (0x1780, 0x1800), (0x1E00, 0x2000), (0x2000, 0x2070),
    (0x2070, 0x2100), (0x2100, 0x2190), (0x2190, 0x2400), (0x2460, 0x2600), (0x2600, 0x27C0), (0x2C60, 0x2C80),
    (0x3000, 0x3040),
    (0x3040, 0x3100), (0x3400, 0x3500), (0x4E00, 0x5000), (0x4E00, 0x9FFF), (0xA640, 0xA6A0), (0xA720, 0xA800),
    (0xAC00, 0xD7A4), (0xE000, 0xE010), (0xF900, 0xFA00), (0xFE00, 0xFE30), (0xFF00, 0xFFF0), (0x10400, 0x10450),
    (0x1D400, 0x1D800), (0x1E900, 0x1E960), (0x1F1E6, 0x1F200), (0x1F300, 0x1F650), (0x20000, 0x20100),
    (0xE0100, 0xE0110),
]
PARTS = [
    "'s", "'S", "'t", "'re", "'RE", "'ve", "'ll", "'lL", "'m", "'d", "'\u017f", "'\u017fs", "''", "'", "\u2019s",
    "\n", "\r\n", "\r", "\n\n",
    " \n", "\n ", "  \n  \n ", "\t", " ", "  ", "   ", "        ", "\u3000", "\u00a0", "\u0085", "\u2028", "\u200b",
    "\ufeff", "1", "12", "123",
    "1234", "12345678", "\u0663\u0664", "\uff11\uff12\uff13\uff14", "\u00bd", "/", "//", "/\n", "\n/", "!\n//", "--",
    "...", "!?", "(", "=", "_", "\\",
    "the", " of", " The", "return", "camelCase", "HTTPServer", "iOS", "a", "Z", "x1", "\u00e9", "e\u0301", "\u0130",
    "\u01c5", "\u02b0", "\u00aa",
    "\u4e2d\u6587", "\u65e5\u672c\u8a9e", "\u304b\u306a", "\ud55c\uad6d\uc5b4", "\u0e44\u0e17\u0e22",
    "\u0939\u093f\u0928\u094d\u0926\u0940", "\u0430\u0431\u0432", "\u0639\u0631\u0628",
    "\u2764\ufe0f", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "1\ufe0f\u20e3",
    "<|endoftext|>", "<|endoftext", "|>", "<s>", "</s>", "<unk>", "<0x0A>", "<|im_start|>", "<|im_end|>",
    "<|begin_of_text|>",
    "<tool_call>", "[INST]", "<bos>", "<eos>", "<start_of_turn>", "<mask>", "<pad>", "<|User|>", "\u2581",
    "\u2581the", "\ufffd",
    "|||IP_ADDRESS|||", "|||", "<unused1>", "\n\n\n\n", "<h1>", "\x00", "\x7f", "\u1100\u1161\u11a8", "\u212b",
    "a\u0323\u0307",
    "\u0f71\u0f72", "\u0344", "\ufb01", "\u2126",
]


def character(random_):
    while True:
        first, last = random_.choice(RANGES)
        c = chr(random_.randrange(first, last))
        if unicodedata.category(c) != "Cs":
            return c


def string(random_):
    choice = [random_.choice(PARTS) if random_.random() < 0.6 else character(random_)
              for _ in range(random_.randint(1, 8))]
    parts = []
    for _ in range(random_.randint(0, 24)):
        part = random_.choice(choice) if random_.random() < 0.8 else character(random_)
        parts.append(part * (random_.randint(2, 9) if random_.random() < 0.1 else 1))
    if random_.random() < 0.001:
        parts.append(random_.choice(choice) * random_.randint(100, 3000))
    return "".join(parts)



# ---- references: functions (texts, recognize) -> a list of ids for each text (None: the reference fails) ----

def tiktoken_reference(ranks, pattern, specials):
    import tiktoken
    encoding = tiktoken.Encoding("reference", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)

    def ids(texts, recognize):
        if recognize:
            return encoding.encode_batch(texts, num_threads=1, allowed_special="all")
        return encoding.encode_ordinary_batch(texts, num_threads=1)
    known = sorted(set(ranks.values()) | set(specials.values()))
    return ids, {True: lambda lists: [encoding.decode(one) for one in lists]}, known


def ranks_reference(data, name, path):
    with open(os.path.join(data, "vocab", path), "rb") as file:
        ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in file if line.strip())}
    with open(os.path.join(data, "vocab", "patterns.json"), encoding="utf-8") as file:
        known = json.load(file)[name]
    return tiktoken_reference(ranks, known["pat_str"], known["special_tokens"])


def tokenizers_reference(path):
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(path)
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def one(text):
        try:
            return tokenizer.encode(text, add_special_tokens=False).ids
        except BaseException as error:  # the reference panics for some mixtures of lstrip and rstrip
            if type(error).__name__ != "PanicException":
                raise
            return None

    def ids(texts, recognize):
        tokenizer.encode_special_tokens = not recognize
        try:
            return [e.ids for e in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            return [one(text) for text in texts]

    def texts_of(skip):
        return lambda lists: tokenizer.decode_batch(lists, skip_special_tokens=skip)
    return ids, {True: texts_of(False), False: texts_of(True)}, sorted(tokenizer.get_vocab().values())


def sentencepiece_reference(path):
    import sentencepiece
    processor = sentencepiece.SentencePieceProcessor(model_file=path)
    return (lambda texts, recognize: processor.encode(texts, num_threads=1),
            {False: lambda lists: [processor.decode(one) for one in lists]}, list(range(processor.get_piece_size())))


class Family:
    """reference: a function from texts to ids; functions from lists of ids to texts, by whether special tokens are
    printed; and all ids."""
    def __init__(self, name, reference, path, options=(), specials=True):
        self.ids, self.texts, self.known = reference or (None, {}, [])
        self.name, self.path, self.options, self.specials = name, path, list(options), specials
        self.strings = self.different = self.silent = self.decoded = self.misread = 0


def stored(data, name):
    kind, path, other = FAMILIES[name]
    if kind == "tiktoken":
        reference = ranks_reference(data, name, path)
    else:
        make = tokenizers_reference if kind == "tokenizers" else sentencepiece_reference
        reference = make(os.path.join(data, "vocab", other or path))
    return Family(name, reference, os.path.join(data, "vocab", path), specials=kind != "sentencepiece" and name != "tekken")


def trained(folder, name):
    """A small vocabulary. It is always the same, because its training strings have a seed of their own."""
    kind, how, options = TRAINED[name]
    random_ = random.Random("vocabulary")
    texts = [string(random_) for _ in range(4000)]
    path = os.path.join(folder, "".join(c if c.isalnum() else "_" for c in name))
    if kind == "sentencepiece":
        import sentencepiece
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([t.replace("\x00", "") for t in texts] + ["".join(PARTS).replace("\x00", "")]),
            model_prefix=path, model_type="bpe", vocab_size=9000, normalization_rule_name="identity",
            remove_extra_whitespaces=False, hard_vocab_limit=False, num_threads=1, minloglevel=2, **how)
        return Family(name, sentencepiece_reference(path + ".model"), path + ".model", options, specials=False)
    import tokenizers
    level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Split(tokenizers.Regex(how), "isolated"), level])
    alphabet = sorted(level.alphabet())
    tokenizer.train_from_iterator(texts, tokenizers.trainers.BpeTrainer(vocab_size=2000, initial_alphabet=alphabet,
                                                                        show_progress=False))
    characters = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255]
    bytes_of = {chr(b): b for b in characters}
    bytes_of.update({chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in characters)})
    vocabulary = json.loads(tokenizer.to_str())["model"]["vocab"]
    ranks = {bytes(bytes_of[c] for c in token): rank for token, rank in vocabulary.items()}
    with open(path + ".tiktoken", "w", encoding="ascii") as file:
        for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
            file.write("%s %d\n" % (base64.b64encode(token).decode("ascii"), rank))
    return Family(name, tiktoken_reference(ranks, how, {}), path + ".tiktoken", options)


# ---- comparing ----

def tokmap_ids(family, texts, recognize):
    tokmap = os.environ.get("TOKMAP") or os.path.join(os.environ.get("BUILD", "build"), "bin", "tokmap")
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        for text in texts:
            file.write(json.dumps({"text": text}) + "\n")
        file.flush()
        output = subprocess.run([tokmap, "encode", "-t", family.path, "--special", "recognize" if recognize else "text"] +
                                family.options + [file.name], stdout=subprocess.PIPE, check=True)
    lines = [json.loads(line) for line in output.stdout.decode("ascii").splitlines()]
    if len(lines) != len(texts):
        sys.exit("%s: %d lines for %d strings" % (family.name, len(lines), len(texts)))
    return lines


def compare(family, texts, recognize, expected, keep=None):
    for text, ids, wanted in zip(texts, tokmap_ids(family, texts, recognize), expected):
        family.strings += 1
        if wanted is None:
            family.silent += 1
        elif ids != wanted:
            family.different += 1
            if family.different <= 5:
                print("  %s %s\n    tokmap    %s\n    reference %s" % (
                    family.name, json.dumps(text[:2000]), ids[:500], wanted[:500]))
            if keep:
                print(json.dumps({"family": family.name, "special": "recognize" if recognize else "text", "text": text,
                                  "ids": wanted}), file=keep, flush=True)


def tokmap_texts(family, lists, specials):
    tokmap = os.environ.get("TOKMAP") or os.path.join(os.environ.get("BUILD", "build"), "bin", "tokmap")
    output = subprocess.run([tokmap, "decode", "-t", family.path] + ["--specials"] * specials + family.options,
                            input="".join("%s\n" % one for one in lists).encode("ascii"), stdout=subprocess.PIPE,
                            check=True)
    texts = [json.loads(line)["text"] for line in output.stdout.split(b"\n") if line]
    if len(texts) != len(lists):
        sys.exit("%s: %d texts for %d lists of ids" % (family.name, len(texts), len(lists)))
    return texts


def compare_texts(family, encoded, random_):
    """Compares what the ids of some strings, parts of them, and random ids decode to."""
    lists = [ids for ids in encoded if ids]
    for ids in lists[:]:
        at = random_.randrange(len(ids))
        lists += [ids[at:at + random_.randint(1, 20)],
                  [random_.choice(family.known) for _ in range(random_.randint(1, 9))]]
    for specials, reference in family.texts.items():
        for ids, text, wanted in zip(lists, tokmap_texts(family, lists, specials), reference(lists)):
            family.decoded += 1
            if text == wanted:
                continue
            family.misread += 1
            if family.misread <= 5:
                print("  %s %s, specials %s\n    tokmap    %s\n    reference %s" % (
                    family.name, ids[:500], specials, json.dumps(text[:2000]), json.dumps(wanted[:2000])))


def report(families):
    for family in families:
        silent = ", %d without an answer of the reference" % family.silent if family.silent else ""
        print("%s: %d strings, %d different%s; %d decoded, %d different" % (
            family.name, family.strings, family.different, silent, family.decoded, family.misread), flush=True)
    return 1 if any(family.different or family.misread for family in families) else 0


def generated(options, data):
    try:
        import sentencepiece
        import tiktoken
        import tokenizers
        del sentencepiece, tiktoken, tokenizers
    except ImportError as error:
        print("skipped: this Python lacks a reference (%s)" % error)
        return 77
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    names = options.family or list(FAMILIES) + list(TRAINED)
    with tempfile.TemporaryDirectory() as folder:
        keep = open(options.keep, "a", encoding="utf-8") if options.keep else None
        families = [stored(data, name) for name in names if name in FAMILIES and data]
        families += [trained(folder, name) for name in names if name in TRAINED]
        if not data:
            print("TOKMAP_DATA is not set, or lacks vocab/patterns.json: only vocabularies that are trained here are compared")
        random_ = random.Random(options.seed)
        batch = min(20000, max(1, options.count // 4))
        for done in range(0, options.count, batch):
            texts = [string(random_) for _ in range(min(batch, options.count - done))]
            for family in families:
                recognize = family.specials and done // batch % 2 == 1
                wanted = family.ids(texts, recognize)
                compare(family, texts, recognize, wanted, keep)
                compare_texts(family, wanted, random_)
            if done // batch % 10 == 9:
                print("so far:")
                report(families)
        print("seed %d" % options.seed)
        return report(families)


def corpus(paths, data):
    if not data:
        print("skipped: TOKMAP_DATA is not a folder that contains vocab/patterns.json")
        return 77
    lines = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                one = json.loads(line)
                lines.setdefault((one["family"], one["special"]), []).append(one)
    families = {name: Family(name, None, os.path.join(data, "vocab", FAMILIES[name][1])) for name, _ in lines}
    for (name, special), some in lines.items():
        compare(families[name], [one["text"] for one in some], special == "recognize", [one["ids"] for one in some])
    return report(families.values())


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--count", type=int, default=20000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--family", action="append", choices=sorted(FAMILIES) + sorted(TRAINED))
    arguments.add_argument("--keep")
    arguments.add_argument("--corpus", nargs="+")
    options = arguments.parse_args()
    data = os.environ.get("TOKMAP_DATA", "")
    if not os.path.isfile(os.path.join(data, "vocab", "patterns.json")):
        data = ""
    sys.exit(corpus(options.corpus, data) if options.corpus else generated(options, data))


main()
