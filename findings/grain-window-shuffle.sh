#!/bin/sh
# SPDX-License-Identifier: MIT
# grain-window-shuffle.sh: Grain's window shuffle loses and repeats elements of the last window, if it is a part of one.
#
# grain 0.2.18, NumPy 2.4.6. WindowShuffleMapDataset shuffles within windows, which keeps reads close together. One
# would expect that each pass gives each element once, whatever the window, and that the last window is merely shorter.
# So it is if the window divides the number of elements. If it does not, the last window gives about as many elements as
# it has, but some of them twice, and others not at all. They are others in each epoch. The length is right, and no
# error is raised. With 1000 elements in windows of 300, 68 of the last 100 are not in the first epoch. shuffle() over
# all elements is exact. Output seen, for two epochs:
#
#   elements   window   lost in epoch 0   twice or more   lost in epoch 1
#   100        25       0                 0               0
#   100        32       3                 3               6
#   100        30       5                 5               8
#   1000       300      68                68              92
#   1000       all      0                 0               0
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check grain==0.2.18 numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys
from collections import Counter

import grain


def passes(elements, window):
    """Returns what two epochs of a shuffled range give."""
    source = grain.MapDataset.range(elements)
    if window:
        shuffled = grain.experimental.WindowShuffleMapDataset(source, window_size=window, seed=1)
    else:
        shuffled = source.shuffle(seed=1)
    assert len(shuffled) == elements
    twice = shuffled.repeat(2)
    seen = [int(twice[i]) for i in range(2 * elements)]
    return seen[:elements], seen[elements:]


print("elements   window   lost in epoch 0   twice or more   lost in epoch 1")
found = {}
for elements, window in ((100, 25), (100, 32), (100, 30), (1000, 300), (1000, None)):
    first, second = passes(elements, window)
    lost, lost_later = (sorted(set(range(elements)) - set(seen)) for seen in (first, second))
    again = sum(count - 1 for count in Counter(first).values())
    # Only the last window is concerned.
    assert not lost or lost[0] >= elements // window * window
    found[elements, window] = (len(lost), again)
    print(f"{elements:<10} {window or 'all':<8} {len(lost):<17} {again:<15} {len(lost_later)}")
right = [counts for (elements, window), counts in found.items() if not window or elements % window == 0]
wrong = [counts for (elements, window), counts in found.items() if window and elements % window]
sys.exit(any(counts != (0, 0) for counts in right) or any(lost == 0 or again == 0 for lost, again in wrong))
END
"$work/venv/bin/python" "$work/try.py"
