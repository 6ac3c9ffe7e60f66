#!/bin/sh
# SPDX-License-Identifier: MIT
# auto-tokenizer-model-type.sh: the model_type in config.json decides whether AutoTokenizer uses tokenizer.json as it
# is.
#
# transformers 5.24.0 with tokenizers 0.23.3. A folder has a complete tokenizer.json (lower case, then byte-level
# BPE), and its tokenizer_config.json names PreTrainedTokenizerFast, the class that has no steps of its own. One would
# expect the ids of the file, whatever config.json says about the model. So it is without a config.json, and with the
# model_type qwen3 or llama. With the model_type qwen2, AutoTokenizer opens another class than the one that is named,
# and takes only vocabulary and merges from the file: NFC replaces its normalizer, and a pattern that parts digits its
# pre-tokenizer. There is no error, and save_pretrained() writes these steps into the new tokenizer.json.
# PreTrainedTokenizerFast on the same folder gives the ids of the file. Output seen:
#
#   tokenizers, the file itself  a b Ġ 1234     [64, 65, 220, 260]
#   no config.json               a b Ġ 1234     [64, 65, 220, 260]
#   model_type qwen3             a b Ġ 1234     [64, 65, 220, 260]
#   model_type llama             a b Ġ 1234     [64, 65, 220, 260]
#   model_type qwen2             Ab Ġ 1 2 3 4   [262, 220, 16, 17, 18, 19]
#   qwen2, saved, then the file  Ab Ġ 1 2 3 4   [262, 220, 16, 17, 18, 19]
#   qwen2, the class as named    a b Ġ 1234     [64, 65, 220, 260]
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check transformers==5.24.0 tokenizers==0.23.3

cat >"$work/try.py" <<'END'
import json
import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

TEXT = "Ab 1234"
work = Path(sys.argv[1])

vocab = {sign: i for i, sign in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
merges = [("1", "2"), ("12", "3"), ("123", "4"), ("A", "b")]
vocab.update((a + b, len(vocab) + i) for i, (a, b) in enumerate(merges))
made = Tokenizer(models.BPE(vocab=vocab, merges=merges))
made.normalizer = normalizers.Lowercase()
made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
made.decoder = decoders.ByteLevel()


def folder(model_type):
    path = work / str(model_type)
    path.mkdir()
    made.save(str(path / "tokenizer.json"))
    (path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    if model_type:
        (path / "config.json").write_text(json.dumps({"model_type": model_type}))
    return path


def show(name, ids):
    print(f"{name:28} {' '.join(made.id_to_token(i) for i in ids):14} {ids}")
    return ids


file = show("tokenizers, the file itself", made.encode(TEXT).ids)
same = [show("no config.json", AutoTokenizer.from_pretrained(folder(None))(TEXT)["input_ids"])]
for kind in ("qwen3", "llama"):
    same.append(show("model_type " + kind, AutoTokenizer.from_pretrained(folder(kind))(TEXT)["input_ids"]))
path = folder("qwen2")
opened = AutoTokenizer.from_pretrained(path)
other = [show("model_type qwen2", opened(TEXT)["input_ids"])]
opened.save_pretrained(work / "saved")
saved = Tokenizer.from_file(str(work / "saved" / "tokenizer.json"))
other.append(show("qwen2, saved, then the file", saved.encode(TEXT).ids))
same.append(show("qwen2, the class as named", PreTrainedTokenizerFast.from_pretrained(path)(TEXT)["input_ids"]))
sys.exit(any(ids != file for ids in same) or any(ids == file for ids in other))
END
HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error "$work/venv/bin/python" "$work/try.py" "$work"
