# SPDX-License-Identifier: MIT
"""double_array.py - writes a precompiled_charsmap of SentencePiece, for make_graphemes.py and for tests."""
import struct


class DoubleArray:
    """A trie in the form of Darts-clone. Nodes are dicts from bytes to nodes; "value" says that a key ends there."""

    def __init__(self, root):
        self.units, self.bases, self.places = [0] * 256, set(), {}
        self.units[0] = 1 << 30
        self.units[0] = self.place(root) << 10

    def place(self, node):
        """Puts the children of a node into the array, those of a node with several parents once."""
        if id(node) in self.places:
            return self.places[id(node)]
        labels = sorted(c for c in node if c != "value") + [0] * ("value" in node)
        base = 1
        while base in self.bases or any(self.units[base ^ c] for c in labels):
            base += 1
            while (base | 255) >= len(self.units):
                self.units += [0] * 256
        self.bases.add(base)
        self.places[id(node)] = base
        for c in labels:
            self.units[base ^ c] = 1 << 31 | (0 if c else node["value"])
        for c in labels:
            if c:
                there = self.place(node[c])
                self.units[base ^ c] = c | ("value" in node[c]) << 8 | (base ^ c ^ there) << 10
        return base


def charsmap(root, texts):
    """The map of a trie whose values are places in `texts`."""
    units = DoubleArray(root).units
    return struct.pack("<I%dI" % len(units), 4 * len(units), *units) + texts


def charsmap_of(mapping):
    """The map of a dict from texts to texts."""
    root, texts = {}, b""
    for key, value in mapping.items():
        node = root
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node["value"] = len(texts)
        texts += value.encode() + b"\0"
    return charsmap(root, texts)
