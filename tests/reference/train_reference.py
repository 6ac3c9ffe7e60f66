#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""train_reference.py TOKMAP FOLDER [SEED]: compares `train-tokenizer` with Hugging Face's BpeTrainer, and loads its files
with the reference libraries.

For each corpus and pattern, the merges must be those of the trainer (ByteLevel, with the 256 bytes as its initial
alphabet), in the same order. PREFIX.json in Hugging Face tokenizers, PREFIX.tiktoken in tiktoken, and both files in
`tokmap encode` must give the same ids for held-back text. Prints a TAP line for each comparison.
"""
import base64
import glob
import json
import os
import random
import subprocess
import sys

import tiktoken
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
GPT2 = CONTRACTIONS + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SPECIALS = ["<|endoftext|>", "<pad>", 'a"b\\c', "\U0001f600"]
SPELT = "\u0120the"  # a special token that is spelled as tokenizer.json spells " the", which training must then not make
ATOMS = ("a b s t l e re S LL A the The and hello world foo_bar 's 'S 'll 't \" . , ( ) !! -- _ $ # / // \\ 1 22 333 4444 0 "
         "\u00bd \u0663 \uff11 \u00e9 \u00df \u017f \u01c5 \u0416 \u0436 \u0639 \u4e2d \u6587 \u3042 \u30ab \u3002 \uac00 "
         "\u0e01 \u0e31 \u0915 \u094d \u0301 \U0001f600 \u200d \u2014 \u00ad \x01 \x7f \U00020000 <|endoftext|> "
         "aaaaaaaa abababab").split()
SPACES = [" ", " ", " ", "  ", "\n", "\r\n", "\t", "\n\n", "\u00a0", "\u3000", "\x85"]


def made(rng, count):
    """Text with many ties and runs, in every script."""
    texts = []
    for _ in range(count):
        choice = [rng.choice(ATOMS) for _ in range(rng.randint(1, 9))]
        choice += [rng.choice(SPACES) for _ in range(rng.randint(0, 4))]
        texts.append("".join(rng.choice(choice) * (rng.randint(2, 40) if rng.random() < 0.05 else 1)
                             for _ in range(rng.randint(0, 60))))
    return texts


def read(paths, most):
    """Documents from real files, cut into parts, with a limited number of characters."""
    texts = []
    for path in paths:
        try:
            with open(path, encoding="utf-8", newline="") as file:
                text = file.read(most)
        except (OSError, UnicodeDecodeError):
            continue
        texts += [text[at:at + 5000] for at in range(0, len(text), 5000)]
        most -= len(text)
        if most <= 0:
            break
    return texts


def corpora(rng):
    yield "made", made(rng, 4000), 900
    yield "few letters", ["".join(rng.choice("aab ") for _ in range(rng.randint(0, 300))) for _ in range(300)], 1500
    yield "this tree", read(sorted(glob.glob("src/*/*.c") + glob.glob("tokenize_tools/*/*/*.c") + glob.glob("tests/*/*.sh")),
                            2000000), 6000
    data = os.environ.get("TOKMAP_DATA", "")
    for name, pattern in (("prose", "en_*.txt"), ("every script", "wiki_*.txt"), ("CJK", "[jz][ah]_*"), ("code", "code_*")):
        paths = sorted(glob.glob(os.path.join(data, "corpus", pattern))) if data else []
        if paths:
            yield name, read(paths, 3000000), 5000


def differs(name, what, detail):
    print("not ok - %s: %s" % (name, what))
    print("  " + detail[:2000])
    return 1


def trained(texts, ours, size):
    """Trains with Hugging Face's trainer and the pre-tokenizer of our file."""
    tokenizer = Tokenizer(models.BPE())
    steps = ours["pre_tokenizer"].get("pretokenizers", [ours["pre_tokenizer"]])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(step["pattern"]["Regex"]), "isolated") for step in steps[:-1]] +
        [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=steps[-1]["use_regex"])])
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False, special_tokens=SPECIALS)
    tokenizer.train_from_iterator(texts, trainer)
    return [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]


def encoded(tokmap, path, texts, *options):
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    output = subprocess.run([tokmap, "encode", "-t", path, *options, "-"], input=lines.encode(), check=True,
                            stdout=subprocess.PIPE)
    return [json.loads(line) for line in output.stdout.decode().splitlines()]


def first_difference(texts, one, other):
    for text, a, b in zip(texts, one, other):
        if a != b:
            return "%s\n  %s\n  %s" % (json.dumps(text)[:500], a[:100], b[:100])
    return "%d texts, %d and %d results" % (len(texts), len(one), len(other))


def check(tokmap, folder, label, pattern, texts, held, size, encode_options, names=tuple(SPECIALS)):
    name = "%s, %s" % (label, pattern)
    prefix = os.path.join(folder, "trained")
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    subprocess.run([tokmap, "train-tokenizer", "-q", "--force", "-o", prefix, "--pattern", pattern, "--vocab-size",
                    str(size), "--special-tokens", ",".join(names), "--input-format", "jsonl", "-"], input=lines.encode(), check=True)
    with open(prefix + ".json", encoding="utf-8") as file:
        ours = json.load(file)
    with open(prefix + ".specials.json", encoding="utf-8") as file:
        specials = json.load(file)
    merges = [tuple(pair.split(" ")) for pair in ours["model"]["merges"]]
    reference = trained(texts, ours, size) if SPELT not in names else merges
    if merges != reference:
        at = next((i for i, (a, b) in enumerate(zip(merges, reference)) if a != b), min(len(merges), len(reference)))
        return differs(name, "merge %d of %d and %d" % (at, len(merges), len(reference)),
                       "%s %s" % (merges[at:at + 3], reference[at:at + 3]))
    if reference is not merges:
        print("ok - %s: %d merges equal those of the trainer" % (name, len(merges)))
    elif SPELT in ours["model"]["vocab"]:
        return differs(name, "a token is spelt as a special token", SPELT)
    face = Tokenizer.from_file(prefix + ".json")
    if any(face.token_to_id(text) != id for text, id in specials.items()) or list(specials) != list(names):
        return differs(name, "special tokens", str(specials))
    face.encode_special_tokens = True
    wanted = [encoding.ids for encoding in face.encode_batch(held, add_special_tokens=False)]
    got = encoded(tokmap, prefix + ".json", held)
    if got != wanted:
        return differs(name, "tokmap and tokenizers", first_difference(held, got, wanted))
    print("ok - %s: %d texts have the same ids with tokenizers" % (name, len(held)))
    face.encode_special_tokens = False
    marked = [text + names[0] + text + names[1] for text in held[:50]]
    steps = ours["pre_tokenizer"].get("pretokenizers", [])
    if len(steps) > 2:
        print("ok - %s: tiktoken # SKIP tiktoken cannot apply several patterns" % name)
        return 0
    regex = steps[0]["pattern"]["Regex"] if steps else GPT2
    with open(prefix + ".tiktoken", "rb") as file:
        ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in file)}
    encoding = tiktoken.Encoding("trained", pat_str=regex, mergeable_ranks=ranks, special_tokens=specials)
    got = encoding.encode_ordinary_batch(held, num_threads=1)
    if got != wanted:
        return differs(name, "tiktoken and tokenizers", first_difference(held, got, wanted))
    recognized = [encoding.encode(text, allowed_special="all") for text in marked]
    if recognized != [e.ids for e in face.encode_batch(marked, add_special_tokens=False)]:
        return differs(name, "special tokens by tiktoken and tokenizers", "")
    print("ok - %s: %d texts have the same ids with tiktoken" % (name, len(held)))
    if encode_options:
        got = encoded(tokmap, prefix + ".tiktoken", held, "--pattern", pattern, "--special-tokens",
                      prefix + ".specials.json")
        if got != wanted:
            return differs(name, "tokmap with the rank file", first_difference(held, got, wanted))
        print("ok - %s: %d texts have the same ids with tokmap and the rank file" % (name, len(held)))
    return 0


def main():
    tokmap, folder = sys.argv[1:3]
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    options = subprocess.run([tokmap, "encode", "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    patterns = ["gpt2", "cl100k_base", "o200k_base", "qwen2", "qwen3_5", "tekken", "nanochat", "deepseek_v3"]
    bad = 0
    for i, (label, texts, size) in enumerate(corpora(rng)):
        rng.shuffle(texts)
        held = texts[:len(texts) // 10] + made(rng, 200)
        texts = texts[len(texts) // 10:]
        for pattern in patterns if label == "made" else [patterns[i % 3], patterns[3 + i % 5]]:
            bad += check(tokmap, folder, label, pattern, texts, held, size, "--special-tokens" in options)
        if label == "made":
            bad += check(tokmap, folder, "a token spelt as a special one", "gpt2", texts, held, size,
                         "--special-tokens" in options, (SPELT, *SPECIALS))
    sys.exit(1 if bad else 0)


main()
