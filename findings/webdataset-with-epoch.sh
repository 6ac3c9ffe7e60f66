#!/bin/sh
# SPDX-License-Identifier: MIT
# webdataset-with-epoch.sh: with_epoch(15) gives the first 15 rows of the data in every epoch, and the others never.
#
# webdataset 1.0.2, NumPy 2.4.6. Four shards have ten rows each, and with_epoch(15) says how many rows are an epoch,
# which one does to give all ranks equal numbers. One would expect that the second epoch goes on with row 15, and that
# rows come round again after row 39. Each epoch, however, opens the pipeline again, so it begins with row 0, and rows
# 15 to 39 are never read; repeat() before with_epoch() changes nothing. Shuffled shards do not help: shardshuffle with
# a seed gives the same order in each epoch, so the same rows are missing as long as the run goes. With detshuffle=True
# the epochs have different orders. Output seen, the rows of three epochs:
#
#   with_epoch(15)                      0-14, 0-14, 0-14
#   repeat(), with_epoch(15)            0-14, 0-14, 0-14
#   seed 1, with_epoch(15), shards      1 2, 1 2, 1 2
#   seed 1, with_epoch(15), detshuffle  1 2, 0 3, 1 2
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check webdataset==1.0.2 numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys
from pathlib import Path

import webdataset

work = Path(sys.argv[1])
with webdataset.ShardWriter(str(work / "shard-%d.tar"), maxcount=10, verbose=0) as writer:
    for i in range(40):
        writer.write({"__key__": f"{i:05}", "id.txt": str(i)})
URL = str(work / "shard-{0..3}.tar")


def rows(**options):
    return webdataset.WebDataset(URL, **options).map(lambda sample: int(sample["id.txt"]))


def epochs(dataset):
    return [list(dataset) for _ in range(3)]


def shards(dataset):
    """Returns the shards that three epochs read, in order."""
    return [list(dict.fromkeys(i // 10 for i in epoch)) for epoch in epochs(dataset)]


plain = epochs(rows(shardshuffle=False).with_epoch(15))
repeated = epochs(rows(shardshuffle=False).repeat().with_epoch(15))
seeded = shards(rows(shardshuffle=4, seed=1).with_epoch(15))
counted = shards(rows(shardshuffle=4, seed=1, detshuffle=True).with_epoch(15))
for name, found in (("with_epoch(15)", plain), ("repeat(), with_epoch(15)", repeated)):
    print(f"{name:35}", ", ".join(f"{epoch[0]}-{epoch[-1]}" for epoch in found))
for name, found in (("seed 1, with_epoch(15), shards", seeded), ("seed 1, with_epoch(15), detshuffle", counted)):
    print(f"{name:35}", ", ".join(" ".join(map(str, epoch)) for epoch in found))
first = list(range(15))
sys.exit(plain != [first] * 3 or repeated != [first] * 3 or seeded != [seeded[0]] * 3 or counted == [counted[0]] * 3)
END
"$work/venv/bin/python" "$work/try.py" "$work"
