# SPDX-License-Identifier: MIT
"""train.py - a complete training loop in Python, without any other package. It opens a run, receives one rank's
batches, and prints cursors from which it can resume.

    python3 train.py train.run [RANK WORLD [CURSOR]]
"""
import sys

import tokmap


def train_step(inputs, targets, rows):
    print(f"{rows} rows: {inputs.memoryview()[0, 0]} is followed by {targets.memoryview()[0, 0]}")


def save_checkpoint(step, text):
    print(f"after step {step}: {text}")


def main(path, rank="0", world="1", cursor=None):
    run = tokmap.Run(path)
    # framework="torch" delivers tensors, "numpy" arrays; tokmap's own arrays need no package.
    loader = run.loader(rank=int(rank), world=int(world), rows=16, framework="dlpack", fields="inputs targets",
                        resume=cursor)
    for b in loader:
        if b.count:  # a rank can have no row in the last call of a step
            train_step(b.inputs, b.targets, b.count)
        if b.last_in_step and b.step % 1000 == 0:
            save_checkpoint(b.step, loader.state_dict()["cursor"])  # the state after this batch, the same on every rank


if __name__ == "__main__":
    if len(sys.argv) not in (2, 4, 5):
        sys.exit(__doc__)
    main(*sys.argv[1:])
