#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""train_models_reference.py TOKMAP FOLDER [SEED]: compares `train-tokenizer --model unigram` and `--model wordpiece` with
the trainers of the references, and loads their files with the reference libraries.

Unigram: on held-back text the vocabulary needs at most 0.5% more tokens than the one that SentencePiece's trainer makes
of the same text, and is at most 0.5% less probable; SentencePiece, Hugging Face tokenizers, and tokmap give the ids of
PREFIX.model and PREFIX.json. WordPiece: with its initial tokens in the order of ours, Hugging Face's trainer makes the
same vocabulary; both files have the same ids in tokenizers and tokmap. Prints a TAP line for each comparison.
"""
import glob
import json
import os
import random
import subprocess
import sys

import sentencepiece
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

AWKWARD = ["", " ", "  a  b ", "a\tb\n\nc", "<unk> <0x41> <s> [UNK]", "\u2581x", "\u65e5\u672c\u8a9e \U0001F600 text", " lead",
           "e\u0301\u0323 \u1e69 \uac01", "a" * 5000, "\u00ad\u200d\ufeff", "1234 ,.- \uff11"]


def lines():
    """Short documents: of real files where there are any, else of the beginnings of this tree's files."""
    data = os.environ.get("TOKMAP_DATA", "")
    paths = sorted(glob.glob(os.path.join(data, "corpus", "*"))) if data else []
    paths = [p for p in paths if p.endswith((".txt", ".md", ".c", ".js", ".tex", ".html"))]
    limit = 100000 if paths else 12000
    paths = paths or sorted(glob.glob("src/*/*.c") + glob.glob("tokenize_tools/*/*/*.c") + glob.glob("tests/*/*.sh"))
    found = []
    for path in paths:
        with open(path, encoding="utf-8", errors="ignore", newline="\n") as file:
            text = file.read(limit)
        found += [line for line in text.split("\n") if line.strip() and len(line) < 1000 and "\u2585" not in line and
                  "\0" not in line and "\r" not in line]
    return found


def result(good, name, detail=""):
    print("%s - %s" % ("ok" if good else "not ok", name))
    if not good:
        print("  " + detail[:1000])
    return not good


def opened(path):
    """Opens a tokenizer.json so that names of special tokens in a text are text, as in the other programs."""
    tokenizer = Tokenizer.from_file(path)
    tokenizer.encode_special_tokens = True
    return tokenizer


def encoded(tokmap, path, texts):
    text = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    run = subprocess.run([tokmap, "encode", "-t", path, *(["--lower-case", "yes"] if path.endswith(".txt") else []), "-"],
                         input=text.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in run.stdout.decode().splitlines()]


def train(tokmap, prefix, texts, *options):
    text = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    subprocess.run([tokmap, "train-tokenizer", "-q", "--force", "-o", prefix, *options, "--input-format", "jsonl", "-"],
                   input=text.encode(), check=True)


def differing(texts, one, other):
    return [text[:60] for text, a, b in zip(texts, one, other) if a != b]


def cost(model, texts):
    """Returns the number of tokens, and how improbable the texts are, in nats."""
    ids = [i for text in texts for i in model.encode(text)]
    return len(ids), -sum(model.get_score(i) for i in ids)


def unigram(tokmap, folder, texts, held, size, options=()):
    name = "unigram, %d ids %s" % (size, " ".join(options))
    prefix, bad = os.path.join(folder, "unigram"), 0
    train(tokmap, prefix, texts, "--model", "unigram", "--vocab-size", str(size), *options)
    model = sentencepiece.SentencePieceProcessor(model_file=prefix + ".model")
    face = opened(prefix + ".json")
    bad += result(model.get_piece_size() == size == face.get_vocab_size(), name + ": both files have all ids")
    if not options:
        trained = os.path.join(folder, "reference")
        with open(trained + ".txt", "w", encoding="utf-8") as file:
            file.write("".join(text + "\n" for text in texts))
        sentencepiece.SentencePieceTrainer.train(
            input=trained + ".txt", model_prefix=trained, vocab_size=size, model_type="unigram", bos_id=-1, eos_id=-1,
            normalization_rule_name="identity", remove_extra_whitespaces=False, byte_fallback=True, num_threads=2,
            minloglevel=2)
        theirs = cost(sentencepiece.SentencePieceProcessor(model_file=trained + ".model"), held)
        ours = cost(model, held)
        detail = "%d tokens and %.1f nats, against %d and %.1f" % (*ours, *theirs)
        print("# %s: %s" % (name, detail))
        bad += result(ours[0] <= 1.005 * theirs[0] and ours[1] <= 1.005 * theirs[1],
                      name + ": held-back text is as short and as probable as with SentencePiece's trainer", detail)
    texts = held + AWKWARD
    wanted = {".model": model.encode(texts), ".json": [e.ids for e in face.encode_batch(texts, add_special_tokens=False)]}
    # The references decide ties differently, which are rare in text but for runs of one character.
    ties = differing(texts, wanted[".model"], wanted[".json"])
    bad += result(len(ties) <= len(texts) / 100, name + ": SentencePiece and tokenizers give the same ids", str(ties))
    if "--no-byte-fallback" not in options:
        lost = [t for t, ids in zip(texts, wanted[".json"]) if face.decode(ids) != t and "\u2581" not in t]
        bad += result(not lost, name + ": text comes back", str(lost[:5]))
    for ending, ids in wanted.items():
        wrong = differing(texts, ids, encoded(tokmap, prefix + ending, texts))
        bad += result(not wrong, "%s: tokmap gives the ids of %s" % (name, ending), str(wrong[:5]))
    return bad


def wordpiece(tokmap, folder, texts, held, size, options=()):
    name = "wordpiece, %d ids %s" % (size, " ".join(options))
    prefix, bad, specials = os.path.join(folder, "wordpiece"), 0, ["[PAD]", "[CLS]"]
    train(tokmap, prefix, texts, "--model", "wordpiece", "--vocab-size", str(size), "--character-coverage", "1",
          "--special-tokens", ",".join(specials), *options)
    with open(prefix + ".json", encoding="utf-8") as file:
        ours = json.load(file)["model"]["vocab"]
    ours = sorted(ours, key=ours.get)
    with open(prefix + ".vocab.txt", encoding="utf-8", newline="\n") as file:
        bad += result(file.read().split("\n")[:-1] == ours, name + ": both files have the same tokens")
    first = [token for token in ours if len(token) == 1 or (token.startswith("##") and len(token) == 3)]
    face = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    face.normalizer = normalizers.BertNormalizer(lowercase="--lowercase" in options)
    face.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    face.train_from_iterator(texts, trainers.WordPieceTrainer(
        vocab_size=len(ours) - len(specials), special_tokens=["[UNK]"] + first, show_progress=False))
    theirs = face.get_vocab()
    theirs = sorted(theirs, key=theirs.get) + specials
    wrong = [pair for pair in zip(ours, theirs) if pair[0] != pair[1]]
    bad += result(ours == theirs, name + ": the tokens are those of the trainer", str(wrong[:5]))
    texts = held + AWKWARD
    wanted = [e.ids for e in opened(prefix + ".json").encode_batch(texts, add_special_tokens=False)]
    for ending in (".json", ".vocab.txt") if "--lowercase" in options else (".json",):
        wrong = differing(texts, wanted, encoded(tokmap, prefix + ending, texts))
        bad += result(not wrong, "%s: tokmap gives the ids of tokenizers for %s" % (name, ending), str(wrong[:5]))
    return bad


def main():
    tokmap, folder = sys.argv[1:3]
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    texts = lines()
    rng.shuffle(texts)
    held, texts = texts[:1500], texts[1500:]
    letters = len(set("".join(texts)))
    bad = unigram(tokmap, folder, texts, held, letters + 4000)
    bad += unigram(tokmap, folder, texts, held, letters + 3000, ("--no-dummy-prefix", "--split-digits", "--mixed-scripts"))
    bad += unigram(tokmap, folder, texts, held, letters + 1000, ("--no-byte-fallback", "--special-tokens", "<s>,</s>,the",
                                                                 "--character-coverage", "0.99", "--max-piece", "5"))
    bad += wordpiece(tokmap, folder, texts, held, 2 * letters + 3000)
    bad += wordpiece(tokmap, folder, texts, held, 2 * letters + 1000, ("--lowercase",))
    sys.exit(1 if bad else 0)


main()
