#!/bin/sh
# SPDX-License-Identifier: MIT
# datasets-state-later-passes.sh: a state that was loaded into a stream is where every later pass begins, too.
#
# datasets 5.2.0, PyArrow 26.0.1, NumPy 2.4.6. A stream of ten rows is read up to row 6, and its state_dict() is loaded
# into a new stream. One would expect that the first pass gives the last four rows, and each pass after it all ten. But
# the state is applied again at the start of every pass, so rows 0 to 5 never come again; with a state that was saved
# after the last row, every pass is empty, and a loop over epochs ends at once without an error. Only set_epoch() with a
# number that differs from the epoch of the state puts an end to it. In turn, a state of epoch 1 is ignored in a new
# process, because the stream there begins with epoch 0: all ten rows come, in the order of epoch 0, unless set_epoch(1)
# is called. Output seen:
#
#   state saved after   passes, without set_epoch()     passes, with set_epoch(0), (1), (2)
#   6 rows              4 4 4                           4 10 10
#   10 rows             0 0 0                           0 10 10
#   6 rows of epoch 1   10 10 10                        10 4 10
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check datasets==5.2.0 pyarrow==26.0.1 numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys

from datasets import IterableDataset


def rows(shards):
    for shard in shards:
        for i in range(5):
            yield {"id": shard * 5 + i}


def stream():
    return IterableDataset.from_generator(rows, gen_kwargs={"shards": [0, 1]})


def state_after(count, epoch=0):
    old = stream()
    old.set_epoch(epoch)
    for i, _ in enumerate(old, 1):
        if i == count < 10:
            break
    return old.state_dict()


def passes(state, *, numbered):
    """Loads a state into a new stream, and returns how many rows each of three passes has."""
    new = stream()
    new.load_state_dict(state)
    counts = []
    for epoch in range(3):
        if numbered:
            new.set_epoch(epoch)
        counts.append(len(list(new)))
    return counts


states = {"6 rows": state_after(6), "10 rows": state_after(10), "6 rows of epoch 1": state_after(6, epoch=1)}
found = {name: (passes(state, numbered=False), passes(state, numbered=True)) for name, state in states.items()}
print("state saved after   passes, without set_epoch()     passes, with set_epoch(0), (1), (2)")
for name, (without, numbered) in found.items():
    print(f"{name:19} {' '.join(map(str, without)):31} {' '.join(map(str, numbered))}")
expected = [([4, 4, 4], [4, 10, 10]), ([0, 0, 0], [0, 10, 10]), ([10, 10, 10], [10, 4, 10])]
sys.exit(list(found.values()) != expected)
END
"$work/venv/bin/python" "$work/try.py"
