#!/bin/sh
# SPDX-License-Identifier: MIT
# litdata-resume-batch.sh: after a resume with another batch size, rows come again that were delivered before.
#
# litdata 0.2.76, torch 2.15.0 (CPU). 100 rows are read in batches of 4; after five batches the loader's state is saved,
# and a loader with another batch size loads it. The state has the number of rows. One would expect that the new loader
# goes on at row 20, whatever its batch size is, or that it refuses the state. It goes on at the last multiple of its
# own batch size, so up to a batch of rows comes a second time: with batches of 8 the rows 16 to 19, and with batches of
# 32 everything. No row is lost, and there is neither an error nor a warning. Batch sizes that divide the rows delivered
# are exact, so a test with half the batch size sees nothing. With more GPUs and smaller batches of each this is a
# common resume. Output seen:
#
#   batch size after it   first row   lost   twice
#   2                     20          0      0
#   4                     20          0      0
#   6                     18          0      2
#   8                     16          0      4
#   32                    0           0      20
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check litdata==0.2.76 torch==2.15.0

cat >"$work/try.py" <<'END'
import sys
from pathlib import Path

import litdata

ROWS, BATCH, BATCHES = 100, 4, 5


def row(i):
    return {"id": i}


def loader(folder, size):
    return litdata.StreamingDataLoader(litdata.StreamingDataset(folder, shuffle=False), batch_size=size)


def ids(batches):
    return [i for batch in batches for i in batch["id"].tolist()]


def resumed(folder, size):
    """Returns the first row after a resume with batches of `size`, and how many rows are lost and come twice."""
    old, new = loader(folder, BATCH), loader(folder, size)
    batches = iter(old)
    before = ids(next(batches) for _ in range(BATCHES))
    assert before == list(range(BATCH * BATCHES))
    new.load_state_dict(old.state_dict())
    after = ids(new)
    seen = set(before + after)
    return after[0], ROWS - len(seen), len(before + after) - len(seen)


if __name__ == "__main__":
    folder = str(Path(sys.argv[1]) / "rows")
    litdata.optimize(fn=row, inputs=list(range(ROWS)), output_dir=folder, chunk_size=10, num_workers=1, verbose=False)
    found = {size: resumed(folder, size) for size in (2, 4, 6, 8, 32)}
    print("batch size after it   first row   lost   twice")
    for size, (first, lost, twice) in found.items():
        print(f"{size:<21} {first:<11} {lost:<6} {twice}")
    sys.exit(found != {2: (20, 0, 0), 4: (20, 0, 0), 6: (18, 0, 2), 8: (16, 0, 4), 32: (0, 0, 20)})
END
"$work/venv/bin/python" "$work/try.py" "$work"
