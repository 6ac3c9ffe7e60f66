#!/bin/sh
# SPDX-License-Identifier: MIT
# datasets-interleave-by-rank.sh: a mixture of two streams that is split over two ranks gives each rank one source only.
#
# datasets 5.2.0, PyArrow 26.0.1, NumPy 2.4.6. interleave_datasets([a, b]) takes rows from both streams in turn, and
# split_dataset_by_node() divides the mixture between two ranks. One would expect that each rank gets half of each
# source. If the number of shards cannot be divided by the number of ranks, however, a rank gets every second row, and
# every second row is from the same source: rank 0 trains on `a` only, and rank 1 on `b` only. Gradients are averaged
# over the ranks, so a loss curve does not show it, but batch statistics, losses of a rank, and everything that is
# computed from the rows of one rank are of one source. With a number of shards that the ranks divide, the shards are
# divided before they are mixed, and each rank has both sources. A source of one file is one shard. Output seen:
#
#   shards of each source   rank 0        rank 1
#   1                       a 10 b 0      a 0 b 10
#   2                       a 10 b 10     a 10 b 10
#   3                       a 30 b 0      a 0 b 30
#   4                       a 20 b 20     a 20 b 20
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check datasets==5.2.0 pyarrow==26.0.1 numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys
from collections import Counter

from datasets import IterableDataset, interleave_datasets
from datasets.distributed import split_dataset_by_node

ROWS, RANKS = 10, 2


def rows(source, shards):
    for shard in shards:
        for i in range(ROWS):
            yield {"source": source, "id": shard * ROWS + i}


def stream(source, shards):
    return IterableDataset.from_generator(rows, gen_kwargs={"source": source, "shards": list(range(shards))})


def of_ranks(shards):
    """Returns how many rows of a and of b each rank gets."""
    sources = [stream("a", shards), stream("b", shards)]
    mixture = interleave_datasets(sources, stopping_strategy="all_exhausted")
    seen = [Counter(row["source"] for row in split_dataset_by_node(mixture, rank, RANKS)) for rank in range(RANKS)]
    return [(count["a"], count["b"]) for count in seen]


print("shards of each source   rank 0        rank 1")
found = {shards: of_ranks(shards) for shards in (1, 2, 3, 4)}
for shards, counts in found.items():
    print(f"{shards:<23} {'a %d b %d' % counts[0]:13} {'a %d b %d' % counts[1]}")
sys.exit(list(found.values()) != [[(10, 0), (0, 10)], [(10, 10)] * 2, [(30, 0), (0, 30)], [(20, 20)] * 2])
END
"$work/venv/bin/python" "$work/try.py"
