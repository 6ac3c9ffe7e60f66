#!/bin/sh
# SPDX-License-Identifier: MIT
# streaming-stratified-resume.sh: stratified batches that resume with another batch size lose samples and repeat others.
#
# mosaicml-streaming 0.13.0, NumPy 2.1.3, torch 2.15.0 (CPU). Two streams are mixed 6 : 4 in an epoch of 104 samples.
# After four batches of 8 the loader's state is saved, and a loader with another batch size loads it. The library calls
# its resume elastic. With batching_method="random" it is: the samples of the epoch come once, with any batch size. With
# "stratified", which gives each batch the same share of each stream, samples are dealt into batches of the new size
# from the start of the epoch, and the first 32 places are then skipped. They are other samples than those that were
# delivered, so with batches of 4 some samples are lost and others come again. Besides, batches that a stream cannot
# fill are left out, so an epoch of 104 has 96 samples, while len() says 104; a warning says that batches are dropped,
# and nothing says that a resume differs. Output seen:
#
#   method       batches   len()   in the epoch   lost    again
#   random       8, 8      104     104            0       0
#   random       8, 4      104     104            0       0
#   stratified   8, 8      104     96             0       0
#   stratified   8, 4      104     96             24      8
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check mosaicml-streaming==0.13.0 numpy==2.1.3 torch==2.15.0

cat >"$work/try.py" <<'END'
import sys
import warnings
from collections import Counter
from pathlib import Path

from streaming import MDSWriter, Stream, StreamingDataLoader, StreamingDataset

warnings.simplefilter("ignore")
work = Path(sys.argv[1])
for name, count, first in (("a", 60, 0), ("b", 40, 1000)):
    with MDSWriter(out=str(work / name), columns={"id": "int"}) as writer:
        for i in range(count):
            writer.write({"id": first + i})


def loader(method, size):
    streams = [Stream(local=str(work / "a"), proportion=0.6), Stream(local=str(work / "b"), proportion=0.4)]
    data = StreamingDataset(streams=streams, epoch_size=104, batch_size=size, batching_method=method, shuffle=True,
                            shuffle_seed=1, num_canonical_nodes=1)
    return StreamingDataLoader(data, batch_size=size)


def ids(batches):
    return [int(i) for batch in batches for i in batch["id"]]


def resumed(method, size):
    """Returns len(), the samples of an epoch, and how many are lost and come again in one with a resume."""
    whole, old, new = loader(method, 8), loader(method, 8), loader(method, size)
    batches = iter(old)
    seen = ids(next(batches) for _ in range(4))
    new.load_state_dict(old.state_dict())
    seen = Counter(seen + ids(new))
    right = Counter(ids(whole))
    return len(whole.dataset), right.total(), (right - seen).total(), (seen - right).total()


print("method       batches   len()   in the epoch   lost    again")
found = []
for method in ("random", "stratified"):
    for size in (8, 4):
        found.append(resumed(method, size))
        length, total, lost, again = found[-1]
        print(f"{method:12} {f'8, {size}':9} {length:<7} {total:<14} {lost:<7} {again}")
sys.exit(found[:3] != [(104, 104, 0, 0)] * 2 + [(104, 96, 0, 0)] or found[3][2] == 0 or found[3][3] == 0)
END
"$work/venv/bin/python" "$work/try.py" "$work"
