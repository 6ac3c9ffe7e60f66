#!/bin/sh
# SPDX-License-Identifier: MIT
# grain-edited-weights.sh: other weights after a resume skip rows of one source and repeat rows of another.
#
# grain 0.2.18, NumPy 2.4.6. A mixture of two sources, 1 : 1, is read for 1000 rows, its state is saved, and a run with
# the weights 4 : 1 loads it, as one would when a curriculum changes at a step. One would expect that each source goes
# on where it was, at row 500, or that the state is refused, since it is of another mixture. But the state is one
# number, the index 1000, and the place in each source is computed from the index and the weights of today: source a
# goes on at row 800, as if the weights had always been 4 : 1, so 300 of its rows are never read; source b goes on at
# row 200, and its rows 200 to 499 come a second time, as far as the run goes. Nothing is printed. Output seen, after
# 2000 rows in all:
#
#   source   rows   goes on at   never read   read twice
#   a        1300   800          300          0
#   b        700    200          0            200
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check grain==0.2.18 numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys

import grain

BEFORE = AFTER = 1000


def mixture(weights):
    sources = [grain.MapDataset.range(2000).map(lambda i, name=name: (name, int(i))) for name in "ab"]
    return iter(grain.MapDataset.mix(sources, weights=weights).to_iter_dataset())


old, new = mixture([1, 1]), mixture([4, 1])
before = [next(old) for _ in range(BEFORE)]
new.set_state(old.get_state())
after = [next(new) for _ in range(AFTER)]

print("source   rows   goes on at   never read   read twice")
found = []
for source in "ab":
    first = [i for name, i in before if name == source]
    then = [i for name, i in after if name == source]
    seen = set(first + then)
    never = max(seen) + 1 - len(seen)
    twice = len(first + then) - len(seen)
    found.append((first[-1] + 1, then[0], never, twice))
    print(f"{source:8} {len(first + then):<6} {then[0]:<12} {never:<12} {twice}")
sys.exit(found != [(500, 800, 300, 0), (500, 200, 0, 200)])
END
"$work/venv/bin/python" "$work/try.py"
