#!/bin/sh
# SPDX-License-Identifier: MIT
# datasets-indices-after-shuffle.sh: shuffle() behind map(with_indices=True) changes the indices, which are then not
# unique.
#
# datasets 5.2.0, PyArrow 26.0.1, NumPy 2.4.6. map() with with_indices=True gives each row of a stream its number, for
# example to drop rows of a list or to find a row again, and shuffle() comes behind it. One would expect that a shuffle
# changes the order of the rows and nothing in them: what map() added goes along. So it is without a shuffle: 40 rows
# have the numbers 0 to 39. With shuffle() behind it, the shards are read side by side below map(), each with a count of
# its own, so four shards of ten rows give each number from 0 to 9 four times, and "row 3" is four different rows. A
# fingerprint or a list of rows that was made from the unshuffled stream then means other rows. A stream of one shard
# keeps one count. Output seen:
#
#   shards   without shuffle()   with shuffle()      with shuffle(), the text of "row 3"
#   1        40 numbers          40 numbers          row 3
#   2        40 numbers          20 numbers          row 3, row 23
#   4        40 numbers          10 numbers          row 3, row 13, row 23, row 33
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check datasets==5.2.0 pyarrow==26.0.1 numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys

from datasets import Dataset

source = Dataset.from_dict({"text": [f"row {i}" for i in range(40)]})


def numbered(shards):
    stream = source.to_iterable_dataset(num_shards=shards)
    return stream.map(lambda row, index: {"index": index}, with_indices=True)


print('shards   without shuffle()   with shuffle()      with shuffle(), the text of "row 3"')
found = {}
for shards in (1, 2, 4):
    plain = list(numbered(shards))
    mixed = list(numbered(shards).shuffle(seed=1, buffer_size=10))
    assert sorted(row["text"] for row in plain) == sorted(row["text"] for row in mixed)
    counts = [len({row["index"] for row in rows}) for rows in (plain, mixed)]
    texts = sorted((row["text"] for row in mixed if row["index"] == 3), key=lambda text: int(text[4:]))
    found[shards] = counts + [texts]
    print(f"{shards:<8}", *(f"{count} numbers         " for count in counts), ", ".join(texts))
expected = {1: [40, 40, ["row 3"]], 2: [40, 20, ["row 3", "row 23"]],
            4: [40, 10, ["row 3", "row 13", "row 23", "row 33"]]}
sys.exit(found != expected)
END
"$work/venv/bin/python" "$work/try.py"
