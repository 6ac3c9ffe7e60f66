# SPDX-License-Identifier: MIT
"""Writes the tokens of a flat file as a tokmap shard, for the tables remote and faults: driver.ask_script()."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import driver
from tokens import Tokens

PIECE = 1 << 20  # tokens that are added at a time, as a document


def write(tokens, path):
    import tokmap
    data = Tokens.from_json(tokens)
    with tokmap.ShardWriter(path, vocab_size=1 << (8 * data.width)) as writer, open(data.path, "rb") as file:
        left = data.count
        while left:
            count = min(left, PIECE)
            writer.add(memoryview(file.read(count * data.width)).cast({2: "H", 4: "I"}[data.width]))
            left -= count


if __name__ == "__main__":
    driver.answer_requests(write)
