#!/bin/sh
# SPDX-License-Identifier: MIT
# litdata-mixture-resume.sh: a mixture that is resumed with several workers leaves rows out and repeats others.
#
# litdata 0.2.76, torch 2.15.0 (CPU). Two sources of 200 rows each are mixed by CombinedStreamingDataset with equal
# weights and a seed. After ten batches of 4 the loader's state is saved, and a loader of another process loads it. One
# would expect that each source goes on where it was, as a source without a mixture does, with any number of workers
# (the last line). Without workers, and with one, no row is left out or comes twice, but the draws between the sources
# are not those of the run without a resume. With two workers two rows are left out and two come twice, and so with four:
# the state has one number for each source, of the rows of all workers together. There is neither an error nor a
# warning. Output seen:
#
#   data      workers   same order   left out   twice
#   mixture   0         no           0          0
#   mixture   1         no           0          0
#   mixture   2         no           2          2
#   mixture   4         no           2          2
#   one       2         yes          0          0
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check litdata==0.2.76 torch==2.15.0

cat >"$work/try.py" <<'END'
import json
import subprocess
import sys
from itertools import islice

import litdata

ROWS, BEFORE, AFTER = 200, 10, 25  # rows of a source; batches before and after the resume


def row(i):
    return {"id": i}


def loader(kind, workers):
    a, b = (litdata.StreamingDataset(name, shuffle=False) for name in ("a", "b"))
    data = a if kind == "one" else litdata.CombinedStreamingDataset([a, b], seed=42, weights=(0.5, 0.5),
                                                                    iterate_over_all=False)
    return litdata.StreamingDataLoader(data, batch_size=4, num_workers=workers)


def part(kind, workers, step):
    """What one process reads: all, or what is before the resume, or what is after it."""
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
    """A worker has a range of each source, in order: what is left out before the last row that came of it."""
    share, ranges = ROWS // max(1, workers), {}
    for i in rows:
        ranges.setdefault(i // share if i < 1000 else 1000 + (i - 1000) // share, set()).add(i)
    return sum(max(found) + 1 - min(found) - len(found) for found in ranges.values())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        part(sys.argv[1], int(sys.argv[2]), sys.argv[3])
        sys.exit()
    for name, at in (("a", 0), ("b", 1000)):
        litdata.optimize(fn=row, inputs=list(range(at, at + ROWS)), output_dir=name, chunk_size=10, num_workers=1,
                         verbose=False)
    found = []
    print("data      workers   same order   left out   twice")
    for kind, workers in (("mixture", 0), ("mixture", 1), ("mixture", 2), ("mixture", 4), ("one", 2)):
        said = [subprocess.check_output([sys.executable, __file__, kind, str(workers), step])
                for step in ("all", "before", "after")]
        whole, before, after = (json.loads(text.splitlines()[-1]) for text in said)
        rows = before + after
        found.append((kind, workers, rows == whole, skipped(rows, workers), len(rows) - len(set(rows))))
        print("{:<9} {:<9} {:<12} {:<10} {}".format(kind, workers, "yes" if found[-1][2] else "no", *found[-1][3:]))
    sys.exit(found != [("mixture", 0, False, 0, 0), ("mixture", 1, False, 0, 0), ("mixture", 2, False, 2, 2),
                       ("mixture", 4, False, 2, 2), ("one", 2, True, 0, 0)])
END
cd "$work" && venv/bin/python try.py
