# SPDX-License-Identifier: MIT
"""hf_words.py: WordPiece and WordLevel for hf_variants.py: vocabularies that the trainers of Hugging Face tokenizers
make, changed at random, with the parts that BERT has around them and with others."""
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

TOKENS = ["a", "##a", "#", "##", "###", "##b", "ab", "aab", "##aab", "##ba", "[UNK]x", "the", "##the", "\u4e2d", "##\u4e2d",
          "\u00e9", "e\u0301", "##\u0301", "'", "'s", "##'s", "1", "##1", "\u2581", "\u2581the", "", " ", "x y", "\U0001F600",
          "##\U0001F600", "\u0434\u0430", "##\u1161", "aa", "aaaa", "##aaaab", "##aaaa", "[CLS]", "[SEP]", "<unk>"]


def bases(texts):
    """Models of both kinds, as the trainers write them."""
    made = []
    for size in (150, 700):
        for prefix in ("##", "", "@@"):
            tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
            tokenizer.normalizer = normalizers.BertNormalizer(lowercase=size < 700)
            tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
            tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(
                vocab_size=size, limit_alphabet=90, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False,
                continuing_subword_prefix=prefix))
            made.append(("WordPiece", prefix, sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)))
        tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.train_from_iterator(texts, trainers.WordLevelTrainer(
            vocab_size=size, special_tokens=["[UNK]"], show_progress=False))
        made.append(("WordLevel", "", sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)))
    return made


def model(rng, base):
    kind, prefix, vocab = base
    vocab = list(vocab)
    if rng.random() < 0.5:
        vocab = [t for t in dict.fromkeys(vocab + rng.sample(TOKENS, rng.randint(1, 25)))]
    if rng.random() < 0.2:
        gone = set(rng.sample(vocab, rng.randint(1, 30))) - {"[UNK]"}
        vocab = [t for t in vocab if t not in gone]
    ids = list(range(len(vocab)))
    if rng.random() < 0.1:
        rng.shuffle(ids)
    if rng.random() < 0.05:
        ids = sorted(rng.sample(range(len(vocab) + 50), len(vocab)))
    made = {"type": kind, "unk_token": rng.choice(["[UNK]"] * 12 + ["a", "absent"]), "vocab": dict(zip(vocab, ids))}
    if rng.random() < 0.15:
        del made["type"]
    if kind == "WordPiece":
        made["continuing_subword_prefix"] = prefix if rng.random() < 0.9 else rng.choice(["##", "", "a", "\u4e2d"])
        made["max_input_chars_per_word"] = rng.choice([100] * 5 + [0, 1, 2, 3, 5, 9, 10 ** 9, 2 ** 64 - 1])
    return made


def bert_normalizer(rng):
    made = {"type": "BertNormalizer", "clean_text": rng.random() < 0.7, "handle_chinese_chars": rng.random() < 0.7,
            "strip_accents": rng.choice([None, None, True, False]), "lowercase": rng.random() < 0.6}
    if made["strip_accents"] is None and rng.random() < 0.3:
        del made["strip_accents"]
    return made


def change(rng, made, base):
    """Makes a file of another kind one of this kind. Some parts of it stay."""
    made["model"] = model(rng, base)
    for token in made["added_tokens"]:
        token["id"] += len(made["model"]["vocab"])
    if rng.random() < 0.8:
        made["normalizer"] = bert_normalizer(rng)
    if rng.random() < 0.8:
        made["pre_tokenizer"] = {"type": "BertPreTokenizer"}
    if rng.random() < 0.5:
        for token in made["added_tokens"]:
            token["normalized"] = False
    if rng.random() < 0.7:
        made["decoder"] = {"type": "WordPiece", "prefix": made["model"].get("continuing_subword_prefix", "##"),
                           "cleanup": rng.random() < 0.6}
