#!/bin/sh
# SPDX-License-Identifier: MIT
# streaming-py1s-length.sh: with the shuffles py1s and py2s, an epoch has more samples than len() says.
#
# mosaicml-streaming 0.13.0, NumPy 2.1.3, torch 2.15.0 (CPU). One process reads a shuffled dataset of 20 samples. One
# would expect 20 samples in an epoch, each once, whichever algorithm shuffles them, as len() says. With py1s and py2s
# the number of canonical nodes is 64 unless it is set, the data is divided into 64 parts of equal length, and samples
# are repeated to fill them. So an epoch of 20 samples has 64, some of them four times, and 1000 samples have 1024.
# len() is still 20, so a schedule or a progress bar that uses it ends early, and rows have unequal weights. A warning
# is printed for 20 samples, which are fewer than the nodes, and nothing for 1000. With py1e there is one canonical node
# here, and nothing is repeated. Output seen:
#
#   samples   algorithm   len()   in an epoch   most often
#   20        py1e        20      20            1
#   20        py1s        20      64            4
#   20        py2s        20      64            4
#   1000      py1e        1000    1000          1
#   1000      py1s        1000    1024          2
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check mosaicml-streaming==0.13.0 numpy==2.1.3 torch==2.15.0

cat >"$work/try.py" <<'END'
import sys
from collections import Counter
from pathlib import Path

from streaming import MDSWriter, StreamingDataset

work = Path(sys.argv[1])
for count in (20, 1000):
    with MDSWriter(out=str(work / str(count)), columns={"id": "int"}) as writer:
        for i in range(count):
            writer.write({"id": i})


def epoch(count, algorithm):
    """Returns len(), the number of samples in an epoch, and how often the most frequent sample comes."""
    data = StreamingDataset(local=str(work / str(count)), shuffle=True, shuffle_algo=algorithm, batch_size=4)
    seen = Counter(sample["id"] for sample in data)
    assert len(seen) == count
    return len(data), sum(seen.values()), max(seen.values())


print("samples   algorithm   len()   in an epoch   most often")
found = {}
for count, algorithm in ((20, "py1e"), (20, "py1s"), (20, "py2s"), (1000, "py1e"), (1000, "py1s")):
    found[count, algorithm] = epoch(count, algorithm)
    length, total, most = found[count, algorithm]
    print(f"{count:<9} {algorithm:11} {length:<7} {total:<13} {most}")
sys.exit({name: counts[:2] for name, counts in found.items()} != {
    (20, "py1e"): (20, 20), (20, "py1s"): (20, 64), (20, "py2s"): (20, 64),
    (1000, "py1e"): (1000, 1000), (1000, "py1s"): (1000, 1024)})
END
"$work/venv/bin/python" "$work/try.py" "$work"
