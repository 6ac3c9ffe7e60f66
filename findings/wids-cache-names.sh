#!/bin/sh
# SPDX-License-Identifier: MIT
# wids-cache-names.sh: archives of one file name in different folders share one cached file, so all but one are never
# read.
#
# wids 0.1.11, webdataset 1.0.2, NumPy 2.4.6, Pillow 13.0.0, torch 2.15.0 (CPU). A dataset of three archives,
# web/000.tar, code/000.tar, and books/000.tar, is opened with cache_dir, as one does when each source has its own
# folder. One would expect 30 rows. A cached file has only the last part of its archive's name, 000.tar, and a file that
# is there is taken for the archive. So the first archive that is read stands for all three: its ten rows come three
# times, and the rows of the other two never. len() is 30, and there is no error as long as the archives have equally
# many rows. Output seen, rows 0, 10, and 20:
#
#   archives                                   rows 0, 10, 20             different rows
#   web/000.tar code/000.tar books/000.tar     web 0, web 0, web 0        10
#   web/000.tar code/001.tar books/002.tar     web 0, code 0, books 0     30
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check wids==0.1.11 webdataset==1.0.2 pillow==13.0.0 \
    numpy==2.4.6 torch==2.15.0

cat >"$work/try.py" <<'END'
import sys
from pathlib import Path

import webdataset
import wids

work = Path(sys.argv[1])
SOURCES = ("web", "code", "books")


def rows(name, archives):
    """Writes an archive of ten rows for each source, and returns the rows of a dataset of all three with a cache."""
    shards = []
    for source, archive in zip(SOURCES, archives):
        path = work / name / source / archive
        path.parent.mkdir(parents=True)
        with webdataset.TarWriter(str(path)) as writer:
            for i in range(10):
                writer.write({"__key__": str(i), "row.txt": f"{source} {i}"})
        shards.append({"url": str(path), "nsamples": 10})
    data = wids.ShardListDataset(shards, cache_dir=str(work / name / "cache"))
    assert len(data) == 30
    return [data[i][".row.txt"] for i in range(30)]


cases = {"equal": ["000.tar"] * 3, "different": ["000.tar", "001.tar", "002.tar"]}
print("archives                                   rows 0, 10, 20             different rows")
found = []
for name, archives in cases.items():
    seen = rows(name, archives)
    found.append((seen[::10], len(set(seen))))
    paths = " ".join(f"{source}/{archive}" for source, archive in zip(SOURCES, archives))
    print(f"{paths:42} {', '.join(seen[::10]):26} {len(set(seen))}")
sys.exit(found != [(["web 0"] * 3, 10), (["web 0", "code 0", "books 0"], 30)])
END
"$work/venv/bin/python" "$work/try.py" "$work"
