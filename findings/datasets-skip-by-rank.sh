#!/bin/sh
# SPDX-License-Identifier: MIT
# datasets-skip-by-rank.sh: rows that take() holds out are trained on when skip() is followed by a split by rank.
#
# datasets 5.2.0, PyArrow 26.0.1, NumPy 2.4.6. `stream.take(100)` is the validation set and `stream.skip(100)` the rest,
# and training runs on four ranks by split_dataset_by_node(). One would expect that no rank trains on the 100 rows. But
# the stream has as many shards as ranks, or a multiple of them, so the split gives each rank whole shards, and skip()
# is then applied to the shards of each rank with a part of the number: each of the four ranks leaves out the first 25
# rows of its own shard. So 75 of the 100 rows are trained on, and 75 others are in no set. The number of rows is right,
# therefore a count does not show it. With a number of shards that the ranks do not divide, the rows are dealt out one
# by one, and the sets stay apart. Splitting by rank first and skipping afterwards is wrong, too: each rank skips 100
# rows. Output seen:
#
#   shards   rows trained on   held out, and trained on
#   1        150               0
#   3        650               0
#   4        900               75
#   8        1900              75
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check datasets==5.2.0 pyarrow==26.0.1 numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys

from datasets import IterableDataset
from datasets.distributed import split_dataset_by_node

ROWS, HELD_OUT, RANKS = 250, 100, 4


def rows(shards):
    for shard in shards:
        for i in range(ROWS):
            yield {"id": shard * ROWS + i}


def ids(stream):
    return [row["id"] for row in stream]


def trained_on(shards):
    """Returns the number of rows that all ranks train on, and how many of them are held out."""
    stream = IterableDataset.from_generator(rows, gen_kwargs={"shards": list(range(shards))})
    held_out, rest = ids(stream.take(HELD_OUT)), stream.skip(HELD_OUT)
    assert held_out == list(range(HELD_OUT)) and not set(held_out) & set(ids(rest))
    seen = [i for rank in range(RANKS) for i in ids(split_dataset_by_node(rest, rank, RANKS))]
    assert len(set(seen)) == len(seen) == shards * ROWS - HELD_OUT
    return len(seen), len(set(seen) & set(held_out))


print("shards   rows trained on   held out, and trained on")
found = {shards: trained_on(shards) for shards in (1, 3, 4, 8)}
for shards, (count, leaked) in found.items():
    print(f"{shards:<8} {count:<17} {leaked}")
sys.exit([leaked for _, leaked in found.values()] != [0, 0, 75, 75])
END
"$work/venv/bin/python" "$work/try.py"
