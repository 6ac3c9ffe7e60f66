#!/bin/sh
# SPDX-License-Identifier: MIT
# lance-set-epoch.sh: set_epoch() of Lance's samplers has no effect, except with batches and a filter.
#
# pylance 14.0.2, PyArrow 26.0.1, torch 2.15.0 (CPU). A sampler with randomize=True gives the fragments, or the batches,
# of a dataset in a random order, and its set_epoch() is called before each epoch. One would expect another order in
# each epoch, as with the DistributedSampler of torch. ShardedFragmentSampler gives the same order in every epoch, and
# so does ShardedBatchSampler without a filter; only ShardedBatchSampler with a filter, even one that keeps every row,
# uses the number of the epoch. The sampler also seeds Python's global generator, so random.random() after an epoch is
# the same number each time wherever the order is the same: a program's own random decisions are repeated, too. Output
# seen, the first fragment or batch of three epochs:
#
#   sampler     filter     first rows       orders   different random.random()
#   fragments   none       600 600 600      1        1
#   fragments   id >= 0    600 600 600      1        1
#   batches     none       600 600 600      1        1
#   batches     id >= 0    100 800 500      3        3
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check pylance==14.0.2 pyarrow==26.0.1 torch==2.15.0 \
    numpy==2.4.6

cat >"$work/try.py" <<'END'
import random
import sys
from pathlib import Path

import lance
import pyarrow
from lance.sampler import ShardedBatchSampler, ShardedFragmentSampler
from lance.torch.data import LanceDataset

path = str(Path(sys.argv[1]) / "rows.lance")
lance.write_dataset(pyarrow.table({"id": list(range(1000))}), path, max_rows_per_file=100, max_rows_per_group=100)


def epochs(kind, rows):
    """Returns the orders of three epochs, and the program's random numbers after each of them."""
    sampler = kind(0, 1, randomize=True, seed=1)
    data = LanceDataset(path, batch_size=100, sampler=sampler, filter=rows)
    orders, numbers = [], []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        ids = [i for batch in data for i in batch.tolist()]
        assert sorted(ids) == list(range(1000))
        orders.append(tuple(ids))
        numbers.append(random.random())
    return orders, numbers


print("sampler     filter     first rows       orders   different random.random()")
found = []
for name, kind in (("fragments", ShardedFragmentSampler), ("batches", ShardedBatchSampler)):
    for rows in (None, "id >= 0"):
        orders, numbers = epochs(kind, rows)
        found.append((len(set(orders)), len(set(numbers))))
        first = " ".join(str(ids[0]) for ids in orders)
        print(f"{name:11} {rows or 'none':10} {first:16} {found[-1][0]:<8} {found[-1][1]}")
sys.exit([orders for orders, _ in found] != [1, 1, 1, 3] or any(numbers != 1 for _, numbers in found[:3]))
END
"$work/venv/bin/python" "$work/try.py" "$work"
