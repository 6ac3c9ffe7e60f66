#!/bin/sh
# SPDX-License-Identifier: MIT
# torchtitan-end-resume.sh: rows of the last document that were not delivered before a checkpoint never come.
#
# torchtitan 0.3.0, datasets 4.7.0, torch 2.15.0 (CPU). Two documents, the second with 82 tokens, are read in rows of 8
# tokens: 11 rows. The state is saved after some of them, and a new dataset loads it. The state has all tokens that are
# left of the document (57 after 4 rows), and the new dataset loads them. One would expect the other 7 rows. None comes:
# rows are made only after one more document was read, and there is none. The dataset says "has run out of data", as at
# any end. Without the resume, all 11 rows come. It is so for map-style and for streamed data, with infinite=False, as
# in validation or one pass; with infinite=True the rows come after the first document of the next pass. Output seen:
#
#   data     rows   before   after
#   map      11     2        0
#   map      11     4        0
#   map      11     10       0
#   stream   11     2        0
#   stream   11     4        0
#   stream   11     10       0
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check torchtitan==0.3.0 torchdata==0.11.0 datasets==4.7.0 \
    torch==2.15.0

cat >"$work/try.py" <<'END'
import logging
import sys

import datasets
from torchtitan.components.tokenizer import BaseTokenizer
from torchtitan.hf_datasets import DatasetConfig, text_datasets

logging.disable()
DATA = datasets.Dataset.from_dict({"text": ["x" * 7, "".join(chr(65 + i // 8) for i in range(80))]})


class Letters(BaseTokenizer):
    def encode(self, text, add_bos=True, add_eos=True):
        return [0] * add_bos + [2 + ord(letter) for letter in text] + [1] * add_eos

    def decode(self, ids, **options):
        return "".join(chr(i - 2) for i in ids if i > 1)

    def get_vocab_size(self):
        return 300


def dataset():
    return text_datasets.HuggingFaceTextDataset("mine", None, Letters(), seq_len=8, infinite=False)


def rows(source):
    return [inputs["input"].tolist() for inputs, _ in source]


found = []
for kind in ("map", "stream"):
    text_datasets.DATASETS["mine"] = DatasetConfig(
        path="none", loader=lambda path: DATA if kind == "map" else DATA.to_iterable_dataset(),
        sample_processor=lambda sample: sample["text"])
    for before in (2, 4, 10):
        old, new = dataset(), dataset()
        reading = iter(old)
        for _ in range(before):
            next(reading)
        new.load_state_dict(old.state_dict())
        found.append((kind, len(rows(dataset())), before, len(rows(new))))
print("data     rows   before   after")
for kind, count, before, after in found:
    print(f"{kind:<8} {count:<6} {before:<8} {after}")
sys.exit(found != [(kind, 11, before, 0) for kind in ("map", "stream") for before in (2, 4, 10)])
END
"$work/venv/bin/python" "$work/try.py"
