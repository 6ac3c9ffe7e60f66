#!/bin/sh
# SPDX-License-Identifier: MIT
# grain-filter-weights.sh: weights of MapDataset.mix() count elements before a filter, of IterDataset.mix() after it.
#
# grain 0.2.18, NumPy 2.4.6. Source a has a filter that keeps a quarter of its elements, and is mixed with b, 1 : 1. One
# would expect that half of the rows are of a, whichever of the two mix() is used. With IterDataset.mix() it is so. With
# MapDataset.mix() a filtered element keeps its place in the mixture and is left out only when rows are read, so a has a
# fifth of the rows, and 1 : 1 has become 1 : 4. The stricter a filter for quality is, the less of its source is trained
# on, although the weights say otherwise. Both mixtures are read as a stream in the end, and nothing tells the
# difference. Output seen, for 1000 rows:
#
#   mix()              the filter keeps   rows of a   rows of b
#   MapDataset.mix     all                500         500
#   MapDataset.mix     1/4                200         800
#   IterDataset.mix    1/4                500         500
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check grain==0.2.18 numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys
from collections import Counter
from itertools import islice

import grain


def source(name, kept):
    made = grain.MapDataset.range(1000).map(lambda i: (name, int(i)))
    return made.filter(lambda row: row[1] % kept == 0).repeat()


def counts(kind, kept):
    sources = [source("a", kept), source("b", 1)]
    if kind is grain.MapDataset:
        rows = grain.MapDataset.mix(sources, weights=[1, 1]).to_iter_dataset()
    else:
        rows = grain.IterDataset.mix([made.to_iter_dataset() for made in sources], weights=[1, 1])
    seen = Counter(name for name, _ in islice(rows, 1000))
    return seen["a"], seen["b"]


print("mix()              the filter keeps   rows of a   rows of b")
found = []
for kind, kept in ((grain.MapDataset, 1), (grain.MapDataset, 4), (grain.IterDataset, 4)):
    found.append(counts(kind, kept))
    print(f"{kind.__name__ + '.mix':18} {f'1/{kept}' if kept > 1 else 'all':18} {found[-1][0]:<11} {found[-1][1]}")
sys.exit(found != [(500, 500), (200, 800), (500, 500)])
END
"$work/venv/bin/python" "$work/try.py"
