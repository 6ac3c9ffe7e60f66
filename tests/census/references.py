# SPDX-License-Identifier: MIT
"""references.py: the reference of each kind of vocabulary, as a function of a text that returns ids. Special tokens in
a text are ordinary text; nothing is added to it."""
import ast
import base64
import gzip
import json
import os

from vocabulary_files import pair_of

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
          r"\s+(?!\S)|\s")
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|"
        r"\s+")
QWEN3_5 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
           r"\s*[\r\n]+|\s+(?!\S)|\s+")
WORD = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}%s]*[\p{Ll}\p{Lm}\p{Lo}\p{M}%s]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}%s]+[\p{Ll}\p{Lm}\p{Lo}\p{M}%s]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|")
END = r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+%s*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = WORD % (("",) * 4) + END % r"[\r\n/]"
KIMI = r"[\p{Han}]+|" + WORD % ((r"&&[^\p{Han}]",) * 4) + END % r"[\r\n]"
# Rank files do not have their pattern. Their names, and tokens that only they have, tell which it is.
PATTERNS = (("r50k", GPT2), ("p50k", GPT2), ("cl100k", CL100K), ("o200k", O200K), ("kimi", KIMI), ("llama4", O200K),
            ("llama3", CL100K), ("llama-3", CL100K), ("qwen3_6", QWEN3_5), ("qwen", QWEN))


class Unreadable(Exception):
    """The reference cannot read the file, or nobody knows how to."""


def read(path):
    with open(path, "rb") as file:
        return file.read()


def hugging_face(tokenizer, specials=True):
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if specials:
        tokenizer.encode_special_tokens = True
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def from_tokenizer_json(path, folder):
    import tokenizers
    return hugging_face(tokenizers.Tokenizer.from_file(path))


def from_model(path, folder):
    import sentencepiece
    try:
        return sentencepiece.SentencePieceProcessor(model_file=path).encode
    except (RuntimeError, OSError) as error:
        raise Unreadable(f"sentencepiece cannot read it: {error}") from None


def tiktoken_of(ranks, pattern):
    import tiktoken
    return tiktoken.Encoding("census", pat_str=pattern, mergeable_ranks=ranks, special_tokens={}).encode_ordinary


def from_ranks(path, folder):
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in read(path).splitlines())}
    for name, pattern in PATTERNS:
        if name in path.lower().replace("_k2", ""):
            return tiktoken_of(ranks, pattern)
    raise Unreadable("a rank file whose pattern is not known")


def from_tekken(path, folder):
    made = json.loads(read(path))
    count = made["config"]["default_vocab_size"] - made["config"]["default_num_special_tokens"]
    ranks = {base64.b64decode(entry["token_bytes"]): entry["rank"] for entry in made["vocab"][:count]}
    encode, offset = tiktoken_of(ranks, made["config"]["pattern"]), made["config"]["default_num_special_tokens"]
    return lambda text: [id + offset for id in encode(text)]


def lower_of(path):
    """Whether the text of a vocab.txt is taken to be lower case where nothing says it: it has no capital letter."""
    return not any("A" <= c <= "Z" for token in read(path).decode().split("\n") if not token.startswith("[") for c in token)


def from_vocab_txt(path, folder):
    import tokenizers
    lines = read(path).decode().split("\n")
    lines = [line.rstrip("\r") for line in (lines[:-1] if not lines[-1] else lines)]
    vocab = {token: id for id, token in enumerate(lines)}
    config = os.path.join(folder, "tokenizer_config.json")
    lower = json.loads(read(config)).get("do_lower_case", True) if os.path.exists(config) else lower_of(path)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocab, unk_token="[UNK]",
                                                                 max_input_chars_per_word=100))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True,
                                                                 strip_accents=None, lowercase=lower)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return hugging_face(tokenizer, False)


def clip(tokenizer, specials=""):
    from tokenizers import Regex, normalizers, pre_tokenizers
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "),
                                                 normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(specials + r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed",
                             True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return hugging_face(tokenizer, False)


def from_pair(path, folder):
    import tokenizers
    names = os.listdir(folder)
    merges_path = os.path.join(folder, pair_of(os.path.basename(path), names))
    vocab = json.loads(read(path))
    lines = read(merges_path).decode().split("\n")
    merges = [tuple(line.split(" ")) for line in lines if not line.startswith("#version") and line.count(" ") == 1]
    BPE = tokenizers.models.BPE
    if not any(token.endswith("</w>") for token in vocab):
        tokenizer = tokenizers.Tokenizer(BPE(vocab, merges))
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        return hugging_face(tokenizer, False)
    if "<unk>" in vocab: # GPT-1
        tokenizer = tokenizers.Tokenizer(BPE(vocab, merges, unk_token="<unk>", end_of_word_suffix="</w>"))
        tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        return hugging_face(tokenizer, False)
    unknown = next((token for token in ("<|endoftext|>", "<end_of_text>") if token in vocab), None)
    return clip(tokenizers.Tokenizer(BPE(vocab, merges, unk_token=unknown, end_of_word_suffix="</w>")))


def from_clip_gz(path, folder):
    import tokenizers
    merges = [tuple(line.split()) for line in gzip.open(path).read().decode().split("\n")[1:49152 - 256 - 2 + 1]]
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = [chr(byte) for byte in printed] + [chr(256 + i) for i in range(256 - len(printed))]
    tokens = letters + [letter + "</w>" for letter in letters] + ["".join(merge) for merge in merges]
    vocab = {token: id for id, token in enumerate(tokens + ["<|startoftext|>", "<|endoftext|>"])}
    # The package's pattern has its special tokens, whatever becomes of them.
    return clip(tokenizers.Tokenizer(tokenizers.models.BPE(vocab, merges, unk_token="<|endoftext|>",
                                                           end_of_word_suffix="</w>")),
                r"<\|startoftext\|>|<\|endoftext\|>|")


def from_trie(path, folder):
    tokens = {}
    for line in read(path).decode().splitlines():
        text = ast.literal_eval(line[line.index(" "):line.rindex(" ")].strip())
        tokens[text.encode() if isinstance(text, str) else text] = int(line[:line.index(" ")])
    longest = max(map(len, tokens))

    def encode(text):
        text, at, ids = text.encode(), 0, []
        while at < len(text):
            for count in range(min(longest, len(text) - at), 0, -1):
                if text[at:at + count] in tokens:
                    ids.append(tokens[text[at:at + count]])
                    break
            at += count
        return ids
    return encode


REFERENCES = {"tokenizer.json": ("tokenizers", from_tokenizer_json), "model": ("sentencepiece", from_model),
              "ranks": ("tiktoken", from_ranks), "tekken.json": ("tiktoken", from_tekken),
              "vocab.txt": ("tokenizers", from_vocab_txt), "ids": ("tokenizers", from_pair),
              "clip.gz": ("tokenizers", from_clip_gz), "trie": ("longest token in Python", from_trie)}


def varint(content, at):
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def message(content):
    """The fields of a protobuf message: pairs of a number and a value, which is bytes or an integer."""
    at = 0
    while at < len(content):
        key, at = varint(content, at)
        if key & 7 == 0:
            value, at = varint(content, at)
        else:
            count, at = varint(content, at) if key & 7 == 2 else (4 if key & 7 == 5 else 8, at)
            value, at = content[at:at + count], at + count
        yield key >> 3, value


def family_of_model(content):
    parts = dict(message(content))
    trainer, normalizer = dict(message(parts.get(2, b""))), dict(message(parts.get(3, b"")))
    name = {1: "Unigram", 2: "BPE", 3: "Word", 4: "Char"}.get(trainer.get(3, 1), "unknown")
    return f"{name}{' with a charsmap' if normalizer.get(2) else ''}, SentencePiece model"


def family_of_json(made):
    model = made["model"]
    name = model.get("type") or ("Unigram" if "unk_id" in model else "BPE" if "merges" in model else "WordPiece")
    if name == "BPE":
        steps = json.dumps([made.get("pre_tokenizer"), made.get("decoder")])
        name = "BPE with end_of_word_suffix" if model.get("end_of_word_suffix") else "byte-level BPE" \
            if '"ByteLevel"' in steps else "BPE of characters"
    return name + ", tokenizer.json"


def family(path, folder, content, kind):
    """Names the family of a vocabulary: its model and its format."""
    if kind == "tokenizer.json":
        return family_of_json(json.loads(content))
    if kind == "model":
        return family_of_model(content)
    if kind == "ids":
        ends = any(token.endswith("</w>") for token in json.loads(content))
        return ("BPE with end_of_word_suffix" if ends else "byte-level BPE") + ", pair of files"
    return {"ranks": "byte-level BPE, rank file", "tekken.json": "byte-level BPE, tekken.json",
            "vocab.txt": "WordPiece, vocab.txt", "clip.gz": "BPE with end_of_word_suffix, .txt.gz",
            "trie": "trie of tokens, rwkv_vocab"}[kind]
