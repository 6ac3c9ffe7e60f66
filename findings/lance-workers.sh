#!/bin/sh
# SPDX-License-Identifier: MIT
# lance-workers.sh: with rank and world_size, each DataLoader worker of a Lance dataset delivers the whole share of its
# rank.
#
# pylance 14.0.2, PyArrow 26.0.1, torch 2.15.0 (CPU). A LanceDataset with rank and world_size gives each of two ranks
# half of 2000 rows. One would expect that the workers of a rank's DataLoader divide this half, as they divide all rows
# of a dataset that has neither option. With rank=0, world_size=2, every worker reads the whole half: two workers
# deliver 2000 rows, each of the 1000 twice, close together, so an epoch is twice as long with two workers. No error is
# raised. Output seen:
#
#   options                  workers   rows   different rows
#   rank=0, world_size=2     0         1000   1000
#   rank=0, world_size=2     2         2000   1000
#   none                     0         2000   2000
#   none                     2         2000   2000
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check pylance==14.0.2 pyarrow==26.0.1 torch==2.15.0 \
    numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys
from pathlib import Path

import lance
import pyarrow
import torch
from lance.torch.data import LanceDataset


def rows(path, workers, **options):
    data = LanceDataset(path, batch_size=100, **options)
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=workers,
                                         multiprocessing_context="spawn" if workers else None)
    ids = [i for batch in loader for i in batch.tolist()]
    return len(ids), len(set(ids))


if __name__ == "__main__":
    path = str(Path(sys.argv[1]) / "rows.lance")
    lance.write_dataset(pyarrow.table({"id": list(range(2000))}), path, max_rows_per_file=100)
    print("options                  workers   rows   different rows")
    found = []
    for options in ({"rank": 0, "world_size": 2}, {}):
        for workers in (0, 2):
            found.append(rows(path, workers, **options))
            name = ", ".join(f"{name}={value}" for name, value in options.items()) or "none"
            print(f"{name:24} {workers:<9} {found[-1][0]:<6} {found[-1][1]}")
    sys.exit(found != [(1000, 1000), (2000, 1000), (2000, 2000), (2000, 2000)])
END
"$work/venv/bin/python" "$work/try.py" "$work"
