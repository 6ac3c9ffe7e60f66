# SPDX-License-Identifier: MIT
"""tokmap as the fault matrix drives it, by its Python package alone: no array package is needed.

The options are those of a column: `checked` is what tokmap's manual advises where storage is not trusted. It verifies
the dataset before the first batch, reads with pread, sets a deadline for reads, and writes a trace. `data` is another
name of the dataset: that in object storage.
"""

from __future__ import annotations

import os

NAME = "tokmap"
PACKAGES = ()
ORDERS = ("sequential", "list", "own")
DEADLINE = 5  # seconds


def about():
    import tokmap
    return f"tokmap {tokmap.__version__}"


def convert(tokens, folder):
    """The tokens have tokmap's index already."""


class Opened:
    def __init__(self, tokens, order, rank, world, resume, checked, deadline, trace, reading, data):
        import tokmap
        kinds = {"sequential": "sequential", "list": "shuffle", "own": "shuffle"}
        how = {"reading": "pread" if checked else reading}
        if checked:
            with tokmap.Dataset(tokens.name) as dataset:
                dataset.verify(threads=1)
        self.run = tokmap.Run(data=data or tokens.name, seq_len=tokens.seq_len, batch=tokens.rows * world, passes=1,
                              order=kinds[order], **how)
        extra = {"deadline": deadline} if checked else {}
        if trace:
            extra["trace"] = f"{trace}.{rank}"
        self.loader = self.run.loader(rank=rank, world=world, resume=resume, **extra)

    def next(self):
        batch = next(self.loader)
        return batch.inputs, batch.targets

    def state(self):
        return self.loader.state_dict()

    def close(self):
        self.loader.close()
        self.run.close()


def open(tokens, folder, *, order="sequential", rank=0, world=1, resume=None, checked=False, deadline=DEADLINE,
         trace=None, reading="auto", data=None):
    return Opened(tokens, order, rank, world, resume, checked, deadline,
                  os.path.join(folder, trace) if trace else None, reading, data)


def write(prefix, count, first_group):
    """Writes a shard with tokens of places.py, in documents of 1,000 tokens."""
    import tokmap
    from faults import places
    ids = places.stream(count, first_group)
    ends = list(range(1000, count, 1000)) + [count]
    with tokmap.ShardWriter(prefix, vocab_size=places.VOCABULARY) as writer:
        writer.add_batch(ids, ends)


if __name__ == "__main__":
    import sys
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    write(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
