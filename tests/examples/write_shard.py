# SPDX-License-Identifier: MIT
"""write_shard.py - a dataset from a program that has a tokenizer of its own. Each line of standard input becomes a
document; the result is what `tokmap pack` would have written, and every tokmap command reads it.

    python3 write_shard.py data/lines <lines.txt && tokmap info data/lines
"""
import sys

import tokmap


def my_tokenizer(text):
    """Your tokenizer: any list, array, or tensor of integers. Ids of this one are bytes; 256 ends a document."""
    return list(text.encode())


def main(name):
    with tokmap.ShardWriter(name, vocab_size=257, eod=256) as writer:  # an exception leaves nothing behind
        for line in sys.stdin:
            writer.add(my_tokenizer(line.rstrip("\n")))
    print(writer.content)  # now the dataset exists, complete and synced


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
