#!/bin/sh
# SPDX-License-Identifier: MIT
# megatron-blend-pairs.sh: datasets of equal length that Megatron-LM blends are shuffled alike, so their rows come in
# pairs.
#
# megatron-core 0.16.1, torch 2.15.0 (CPU). GPTDataset shuffles the documents of a dataset with the seed of the
# configuration and the number of documents, and nothing that names the dataset. One would expect that two sources of a
# blend have unrelated orders. Two datasets of equally many documents and rows have the same permutation, so with equal
# weights row 83 of a is followed by row 83 of b, row 9 by row 9, and so on to the end. Where files are parallel, such
# as a text and its translation, a rewrite, or a split of one corpus into files of equal length, a batch consists of
# related rows that nobody has chosen. A blend that names one dataset twice, to give it a double weight, has each row
# twice in succession. With one document less in b the orders differ. Output seen, the first rows of 100:
#
#   blend                    rows                                          pairs of 50
#   a, b of 100 documents    a83 b83 a9 b9 a84 b84 a40 b40                 50
#   a, b of 99 documents     a83 b41 a9 b57 a84 b83 a40 b46                7
#   a, a                     a83 a83 a9 a9 a84 a84 a40 a40                 50
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check megatron-core==0.16.1 torch==2.15.0 numpy==2.4.6

cat >"$work/try.py" <<'END'
import logging
import sys
from pathlib import Path

import numpy as np
import torch
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

logging.disable(logging.WARNING)
work = Path(sys.argv[1])
LENGTH = 8
torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)


class Tokenizer:
    vocab_size, eod, pad = 5000, 4999, 4998
    unique_identifiers = {"class": "none"}


def write(name, documents, first):
    """Writes a dataset whose document i has LENGTH tokens of the value first + i. Returns its prefix."""
    builder = IndexedDatasetBuilder(str(work / f"{name}.bin"), dtype=np.int32)
    for i in range(documents):
        builder.add_document(torch.full((LENGTH,), first + i, dtype=torch.int32), [LENGTH])
    builder.finalize(str(work / f"{name}.idx"))
    return str(work / name)


def rows(blend):
    """Returns the rows of a blend as (source, number of the document)."""
    config = GPTDatasetConfig(
        random_seed=1, sequence_length=LENGTH, blend=(blend, None), split="1,0,0", tokenizer=Tokenizer(),
        path_to_cache=str(work / "cache"), reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False,
        add_extra_token_to_sequence=False)
    data = BlendedMegatronDatasetBuilder(GPTDataset, [100, 0, 0], lambda: True, config).build()[0]
    return [divmod(int(data[i]["tokens"][0]), 1000) for i in range(100)]


a, b, shorter = write("a", 100, 0), write("b", 100, 1000), write("c", 99, 1000)
print("blend                    rows                                          pairs of 50")
found = []
for name, blend in (("a, b of 100 documents", [a, b]), ("a, b of 99 documents", [a, shorter]), ("a, a", [a, a])):
    seen = rows(blend)
    found.append(sum(first[1] == second[1] for first, second in zip(seen[::2], seen[1::2])))
    print(f"{name:24} {' '.join('ab'[source] + str(i) for source, i in seen[:8]):45} {found[-1]}")
sys.exit(not (found[0] == found[2] == 50 and found[1] < 25))
END
"$work/venv/bin/python" "$work/try.py" "$work"
