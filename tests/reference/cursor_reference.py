# SPDX-License-Identifier: MIT
"""Computes the cursors of runs with mixtures and phases from the definitions in src/run/past.c and ORDER.md, and shares
no code with them: it deals the draws of a mixture out one after another. tests/unit/run/test_cursor_phases.c holds
what it prints. Usage: cursor_reference.py, with the xxhash package."""

import xxhash


def words(*numbers):
    return b"".join(n.to_bytes(8, "little") for n in numbers)


def H(*parts):
    return xxhash.xxh3_128_digest(b"".join(words(p) if isinstance(p, int) else p for p in parts))


def tag(text):
    return text.encode().ljust(8, b"\0")


def synthetic(vocab, tokens, seed):  # with the default document and a width of 2
    return H(tag("synth 1"), vocab, tokens, 1000, 2, seed)


class Node:
    def __init__(self, leaves):  # (name, weight) in byte order of name
        self.name, self.weight = leaves[0][0], sum(w for _, w in leaves)
        self.draws = self.sent = 0
        half = (len(leaves) + 1) // 2
        self.left, self.right = (Node(leaves[:half]), Node(leaves[half:])) if len(leaves) > 1 else (None, None)

    def next(self):
        if not self.left:
            return self.name
        self.draws += 1
        left = self.draws * self.left.weight // self.weight > self.sent
        self.sent += left
        return (self.left if left else self.right).next()


def cursors(run, wanted):
    def source(name):
        return words(len(name)) + name.encode() + words(1) + run["sources"][name]

    S, G, phases = run["seq_len"], run["batch"], run["phases"]
    geometry = H(tag("geometry"), S, run["lookahead"])
    if run.get("stride"):
        geometry = H(tag("stride"), geometry, run["stride"])
    if "pad" in run:
        geometry = H(tag("tail pad"), geometry, run["pad"], *([1] if run["lookahead"] > 1 and not run.get("before") else []))
    order = H(tag("order"), run["order"], run["seed"], *run.get("blocks", ()))
    batch, skips = H(tag("batch"), G), H(tag("skips"))
    tokens, out, seen, tree = 0, {}, set(), None
    first = phases[0]["weights"]
    data = H(tag("data"), 1, source(min(first))) if len(first) == 1 else H(tag("data"), 0)
    for step in range(max(wanted) + 1):
        open_skip = H(skips, run["skip"][0], step) if run["skip"][0] < step <= run["skip"][1] else None
        if step in wanted and step > 0:
            kinds = [geometry, order, batch, open_skip or skips, data]
            out[step] = "tokmap1 step=%d tokens=%d past=%s of=%s" % (
                step, tokens, H(tag("past"), step, *kinds).hex(), ",".join(k[:4].hex() for k in kinds))
        if step == run["skip"][1]:
            skips = H(skips, *run["skip"])
        for phase in (p for p in phases if p["step"] == step):
            if phase.get("seq_len", S) != S:
                S = phase["seq_len"]
                geometry = H(geometry, step, S, *([run["stride"]] if run.get("stride") else []))
            if phase.get("batch", G) != G:
                G = phase["batch"]
                batch = H(batch, step, G)
            if "weights" in phase:
                leaves = sorted(phase["weights"].items())
                tree = Node(leaves)
                if step == 0 and len(leaves) == 1:
                    seen.add(leaves[0][0])
                else:
                    data = H(tag("mixture"), data, step, len(leaves))
                    for name, weight in leaves:
                        data = H(tag("share"), data, len(name), name.encode(), weight)
        for _ in range(G):
            name = tree.next()
            if name not in seen:
                seen.add(name)
                data = H(tag("source"), data, source(name))
        if not run["skip"][0] <= step < run["skip"][1]:
            tokens += G * S
    return [out[step] for step in wanted]


SOURCES = {
    "web": synthetic(7, 500, 0),
    "wiki": synthetic(7, 300, 1),
    "code": synthetic(7, 90, 2),
    "rare": synthetic(7, 80, 3),
    "even": synthetic(7, 100, 4),
}
MIXED = {
    "seq_len": 8, "lookahead": 2, "batch": 6, "seed": 7, "order": 2, "blocks": (4, 2), "stride": 4, "pad": 3,
    "skip": (3, 5), "sources": SOURCES,
    "phases": [
        {"step": 0, "weights": {"web": 80, "wiki": 19, "rare": 1}},
        {"step": 10, "batch": 4, "seq_len": 16},
        {"step": 20, "weights": {"web": 2, "wiki": 1, "code": 1}},
        {"step": 30, "weights": {"code": 1}, "batch": 8},
    ],
}
GROWN = {
    "seq_len": 8, "lookahead": 1, "batch": 6, "seed": 7, "order": 0, "skip": (3, 5), "sources": SOURCES,
    "phases": [
        {"step": 0, "weights": {"web": 1}},
        {"step": 4, "batch": 12},
        {"step": 9, "weights": {"web": 3, "wiki": 1}, "seq_len": 5},
    ],
}
# Earlier versions had one window less of some datasets with tail pad and a lookahead above 1, but not of this one.
EVEN = {
    "seq_len": 8, "lookahead": 2, "batch": 4, "seed": 7, "order": 0, "skip": (3, 5), "sources": SOURCES, "pad": 0,
    "phases": [{"step": 0, "weights": {"even": 1}}],
}

if __name__ == "__main__":
    for run, wanted in ((MIXED, (1, 4, 10, 11, 16, 20, 21, 31, 40)), (GROWN, (1, 4, 5, 9, 10, 12)),
                        (dict(MIXED, before=True), (1, 40)), (EVEN, (1, 9)), (dict(EVEN, before=True), (1, 9))):
        for line in cursors(run, wanted):
            print(f'    "{line[:line.index(" of=") + 1]}"\n    "{line[line.index("of="):]}",')
        print()
