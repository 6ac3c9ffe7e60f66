#!/bin/sh
# SPDX-License-Identifier: MIT
# litdata-mixture-resume.sh: a mixture that is resumed with several workers leaves rows out and repeats others.
#
# litdata 0.2.76, torch 2.15.0 (CPU). CombinedStreamingDataset mixes two sources of 200 rows with equal weights. After
# ten batches of 4 the loader's state is saved, and a loader of another process loads it. One would expect that each
# source goes on where it was, as a source without a mixture does (the last line). With two workers, and with four, two
# rows are left out and two come twice: the state has one number for each source, of all workers together. Without
# workers only the draws between sources differ from those of a run without a resume. There is no error. Output seen:
#
#   data      workers   same order   left out   twice
#   mixture   0         False        0          0
#   mixture   2         False        2          2
#   mixture   4         False        2          2
#   one       2         True         0          0
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check litdata==0.2.76 torch==2.15.0

cat >"$work/try.py" <<'END'
import json
import sys
from itertools import islice
from subprocess import check_output

import litdata

ROWS, BEFORE, AFTER = 200, 10, 25  # rows of a source; batches before and after the resume


def row(i):
    return {"id": i}


def loader(kind, workers):
    a, b = (litdata.StreamingDataset(name, shuffle=False) for name in ("a", "b"))
    both = litdata.CombinedStreamingDataset([a, b], seed=42, weights=(0.5, 0.5), iterate_over_all=False)
    return litdata.StreamingDataLoader(a if kind == "one" else both, batch_size=4, num_workers=workers)


def part(kind, workers, step):
    made = loader(kind, workers)
    if step == "after":
        with open("state") as file:
            made.load_state_dict(json.load(file))
    count = {"all": BEFORE + AFTER, "before": BEFORE, "after": AFTER}[step]
    found = [i for batch in islice(made, count) for i in batch["id"].tolist()]
    if step == "before":
        with open("state", "w") as file:
            json.dump(made.state_dict(), file)
    print(json.dumps(found))


def skipped(rows, workers):
    """What is left out before the last row of each worker's range of a source."""
    share, ranges = ROWS // max(1, workers), {}
    for i in rows:
        ranges.setdefault(i // share if i < 1000 else 1000 + (i - 1000) // share, set()).add(i)
    return sum(max(found) + 1 - min(found) - len(found) for found in ranges.values())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(part(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
    for name, at in (("a", 0), ("b", 1000)):
        litdata.optimize(row, list(range(at, at + ROWS)), name, chunk_size=10, num_workers=1, verbose=False)
    found = []
    for kind, workers in (("mixture", 0), ("mixture", 2), ("mixture", 4), ("one", 2)):
        said = [check_output([sys.executable, __file__, kind, str(workers), at]) for at in ("all", "before", "after")]
        whole, before, after = (json.loads(text.splitlines()[-1]) for text in said)
        rows = before + after
        found.append((kind, workers, rows == whole, skipped(rows, workers), len(rows) - len({*rows})))
    for line in [("data", "workers", "same order", "left out", "twice"), *found]:
        print("{:<9} {:<9} {!s:<12} {:<10} {}".format(*line))
    sys.exit([row[2:] for row in found] != [(False, 0, 0), (False, 2, 2), (False, 2, 2), (True, 0, 0)])
END
cd "$work" && venv/bin/python try.py
