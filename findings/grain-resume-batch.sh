#!/bin/sh
# SPDX-License-Identifier: MIT
# grain-resume-batch.sh: a resume with another batch size is exact or wrong, as batch() comes after or before the
# stream.
#
# grain 0.2.18, NumPy 2.4.6. 100 elements are read in batches of 10; after three batches the state is saved, and a run
# with another batch size loads it. One would expect that it goes on at element 30, or that the state is refused. With
# to_iter_dataset().batch(10) it goes on at 30, because the state counts elements. With batch(10).to_iter_dataset(), the
# order that the lazy reads of a MapDataset suggest, the state counts batches: three batches of 5 are 15 elements, so 15
# come again, and three batches of 20 are 60, so 30 are left out. Both states have the same form, {"next_index": n}, and
# nothing says what n counts. Output seen, the first element after the resume:
#
#   batch size after it    batch() last   batch() first
#   5                      30             15
#   10                     30             30
#   20                     30             60
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check grain==0.2.18 numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys

import grain

print("batch size after it    batch() last   batch() first")


def batches(size, *, last):
    source = grain.MapDataset.range(100)
    return iter(source.to_iter_dataset().batch(size) if last else source.batch(size).to_iter_dataset())


def resumed(size, *, last):
    """Returns the first element that a run with another batch size delivers."""
    old, new = batches(10, last=last), batches(size, last=last)
    for i in range(3):
        assert int(next(old)[-1]) == 10 * i + 9
    new.set_state(old.get_state())
    return int(next(new)[0])


found = {size: (resumed(size, last=True), resumed(size, last=False)) for size in (5, 10, 20)}
for size, (last, first) in found.items():
    print(f"{size:<22} {last:<14} {first}")
sys.exit(found != {5: (30, 15), 10: (30, 30), 20: (30, 60)})
END
"$work/venv/bin/python" "$work/try.py"
