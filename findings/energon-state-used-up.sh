#!/bin/sh
# SPDX-License-Identifier: MIT
# energon-state-used-up.sh: restoring a state of Megatron-Energon changes it, so the second restore begins further on.
#
# megatron-energon 7.4.1, torch 2.15.0 (CPU). A loader without workers is read for five batches, and save_state_rank()
# gives its state, which is kept in memory, as one does to go back after a loss spike or to start two runs from one
# place. One would expect that each loader that restores it goes on with batch 5. The first one does. It uses the lists
# of the state object as its own, so reading it moves the places in the shards, and a second loader begins with samples
# that come later, in batches that the order does not have; a third one begins later again. The samples before them do
# not come, and there is no error. A state that was pickled stays as it was, so a state from a file is right every time.
# Output seen, the first batch (two samples) after each restore:
#
#   restore    the state object   its pickled copy
#   before     12 24              12 24
#   1          12 24              12 24
#   2          13 26              12 24
#   3          14 28              12 24
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check megatron-energon==7.4.1 torch==2.15.0 webdataset==1.0.2

cat >"$work/try.py" <<'END'
import contextlib
import io
import pickle
import sys
import warnings
from pathlib import Path

import webdataset
from megatron.energon import WorkerConfig, get_savable_loader, get_train_dataset
from megatron.energon.flavors.webdataset.prepare import WebdatasetPreparator

warnings.simplefilter("ignore")
folder = Path(sys.argv[1]) / "data"
folder.mkdir()
with webdataset.ShardWriter(str(folder / "shard-%d.tar"), maxcount=10, verbose=0) as writer:
    for i in range(40):
        writer.write({"__key__": f"{i:04}", "txt": str(i)})
with contextlib.redirect_stdout(io.StringIO()):
    WebdatasetPreparator.prepare_dataset(folder, [f"shard-{i}.tar" for i in range(4)],
                                         split_parts_ratio=[("train", 1.0)])
(folder / ".nv-meta" / "dataset.yaml").write_text(
    "sample_type:\n  __module__: megatron.energon\n  __class__: TextSample\nfield_map:\n  text: txt\n")


def loader():
    config = WorkerConfig(rank=0, world_size=1, num_workers=0)
    return get_savable_loader(get_train_dataset(folder, worker_config=config, batch_size=2, shuffle_buffer_size=None,
                                                max_samples_per_sequence=None))


def batches(source, count):
    rows = iter(source)
    return [" ".join(next(rows).text) for _ in range(count)]


def restored(state):
    new = loader()
    new.restore_state_rank(state)
    return batches(new, 3)


old = loader()
batches(old, 5)
state = old.save_state_rank()
pickled = pickle.dumps(state)
right = batches(old, 3)
found = [(restored(state), restored(pickle.loads(pickled))) for _ in range(3)]
print("restore    the state object   its pickled copy")
for name, (kept, copy) in zip(("before", 1, 2, 3), [(right, right)] + found):
    print(f"{name!s:10} {kept[0]:18} {copy[0]}")
first, *later = (kept for kept, _ in found)
came = {i for kept in later for batch in kept for i in batch.split()}
sys.exit(bool(first != right or came & set(right[0].split()) or any(copy != right for _, copy in found)))
END
"$work/venv/bin/python" "$work/try.py" "$work"
