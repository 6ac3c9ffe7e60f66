# SPDX-License-Identifier: MIT
"""A model of runs, written from src/run/RUN.md, src/order/ORDER.md, src/format/FORMAT.md (names of parts), and the
comments of tokmap.h alone, which compares random runs with the loader.

Usage: run_model.py --count RUNS --seed SEED   (PYTHONPATH and TOKMAP_LIBRARY name the package and the library)

The library computes every place by a formula. The model deals the draws of a run out one after another, step by step,
and makes each row token by token, so the two have nothing in common but the pages. It reads the text of the run, and
its datasets are lists: what the program wrote into the shards, and for synthetic ones the formula of RUN.md.
"""
import argparse
import array
import os
import random
import re
import subprocess
import sys
import tempfile
import warnings
from fractions import Fraction
from functools import lru_cache
from math import gcd

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, "tests", "cli"), os.path.join(TOP, "tests", "conformance")]
import plan_reader  # noqa: E402
from shuffle_reference import xxh3_128  # noqa: E402

import tokmap  # noqa: E402

M = (1 << 64) - 1
IGNORE = -100


# ---- ORDER.md ----

@lru_cache(4096)
def key(tag, seed, name, number):
    parts = [seed, len(name), name, number]
    value = xxh3_128(tag.ljust(8, b"\0") + b"".join(p if isinstance(p, bytes) else p.to_bytes(8, "little")
                                                    for p in parts))
    return value & M, value >> 64


def finalizer(z, add=0):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 + add & M
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M
    return z ^ z >> 31


def word(k, i):
    return finalizer(k[0] + (i + 1) * 0x9E3779B97F4A7C15 & M, k[1])


@lru_cache(4096)
def order_of(k, n):
    """All of permute(k, n, .)."""
    if n <= 64:
        table = list(range(n))
        for j in range(n - 1, 0, -1):
            other = word(k, n - 1 - j) * (j + 1) >> 64
            table[j], table[other] = table[other], table[j]
        return table
    half = (n - 1).bit_length() // 2
    above, words, table = -(-n >> half), [word(k, i) for i in range(9)], []

    def mix(x, w):
        t = (x + w) * 0xBF58476D1CE4E5B9 & M
        return (t ^ t >> 32) * 0x94D049BB133111EB & M

    for x in range(n):
        while True:
            left, right = divmod(x, 1 << half)
            for i in range(0, 8, 2):
                left = (left + (mix(right, words[i]) * above >> 64)) % above
                right ^= mix(left, words[i + 1]) >> 64 - half
            x = left << half | right
            if x < n:
                break
        table.append(x ^ 1 if x < 2 and words[8] & 1 else x)
    return table


@lru_cache(1024)
def block_order(seed, source, epoch, n, size, span):
    order = order_of(key(b"blocks", seed, source, epoch), -(-n // size))
    windows = []
    for number, first in enumerate(range(0, len(order), span)):
        held = [w for b in order[first:first + span] for w in range(b * size, min(b * size + size, n))]
        windows += [held[i] for i in order_of(key(b"span", seed, source, (epoch << 32) + number & M), len(held))]
    return windows


@lru_cache(1024)
def even_order(seed, source, epoch, n, size, span):
    order = order_of(key(b"blocks", seed, source, epoch), -(-n // size))
    held = [order_of(key(b"even", seed, source, (epoch << 32) + slot & M), min(size, n - b * size))
            for slot, b in enumerate(order)]
    return [order[slot] * size + held[slot][turn] for first in range(0, len(order), span) for turn in range(size)
            for slot in range(first, min(first + span, len(order))) if turn < len(held[slot])]


class Node:
    """A node of a mixture's tree, which counts its draws."""

    def __init__(self, leaves):  # (name, weight) in byte order of name
        self.name, self.weight, self.draws = leaves[0][0], sum(weight for _, weight in leaves), 0
        half = (len(leaves) + 1) // 2
        self.children = [Node(leaves[:half]), Node(leaves[half:])] if len(leaves) > 1 else []

    def deal(self):
        self.draws += 1
        if not self.children:
            return self.name
        left, right = self.children
        return (left if self.draws * left.weight // self.weight > left.draws else right).deal()


# ---- datasets ----

class Data:
    """tokens, whether each begins a document, the bits of a mask (None: no shard has one), the documents as pairs of
    first token and length, the id that ends them (None: no id), and the values of each token (None of one without
    any; no list: the dataset has none)."""

    def __init__(self, tokens, documents, mask, width, eod, values=None):
        self.tokens, self.documents, self.mask, self.width, self.eod = tokens, documents, mask, width, eod
        self.values = values
        self.starts = [False] * len(tokens)
        for first, length in documents:
            if length:
                self.starts[first] = True
        if tokens:
            self.starts[0] = True

    def cut(self, first, end, documents):
        inside = [(max(at, first) - first, min(at + length, end) - max(at, first)) for at, length in documents]
        return Data(self.tokens[first:end], inside, self.mask and self.mask[first:end], self.width, self.eod,
                    self.values and self.values[first:end])

    def part(self, suffix):
        unit, a, b, percent = re.fullmatch(r"(docs|tokens)=([\d.]+)\.\.([\d.]+?)(%?)", suffix).groups()
        if unit == "tokens":
            return self.cut(int(a), int(b), [d for d in self.documents if d[0] < int(b) and d[0] + d[1] > int(a)])
        a, b = (int(len(self.documents) * Fraction(x) / 100) if percent else int(x) for x in (a, b))
        held = self.documents[a:b]
        return self.cut(held[0][0], held[-1][0] + held[-1][1], held)


def joined(shards):
    tokens, documents, mask, values = [], [], [], []
    for one in shards:
        values += one.values
        documents += [(at + len(tokens), length) for at, length in one.documents]
        tokens = tokens + one.tokens
        mask += one.mask or [1] * len(one.tokens)
    ends = {one.eod for one in shards}
    return Data(tokens, documents, mask if any(one.mask for one in shards) else None, shards[0].width,
                ends.pop() if len(ends) == 1 else None, values)


def synthetic(name):
    of = dict(pair.split("=") for pair in name.split(":")[1].split(","))
    vocabulary, count, length = int(of["vocab"]), int(of["tokens"]), int(of.get("document", 1000))
    seed = int(of.get("seed", 0))

    def r(stream, i, below):
        return below * finalizer((seed ^ stream << 56) + (i + 1) * 0x9E3779B97F4A7C15 & M) >> 64

    tokens = [(r(1, x % 65536, vocabulary) + r(2, x // 65536, vocabulary)) % vocabulary for x in range(count)]
    pieces = -(-count // length)
    ends = [k * length + 1 + r(3, k, length) for k in range(pieces - 1)] + [count]
    documents = [(first, end - first) for first, end in zip([0] + ends, ends)]
    return Data(tokens, documents, None, int(of.get("width", 2 if vocabulary <= 65536 else 4)), None)


class World:
    """The datasets on disk, by name, and plans of some of them."""

    def __init__(self, folder, choose):
        self.folder, self.of, self.plans, self.pads, self.known, self.lists = folder, {}, {}, {}, set(), 0
        for name in "abcdefgh":
            self.of[name] = self.shard(name, choose, 7 if name in "ab" else choose.choice((None, 7, 90)),
                                       name in "bdg", 4 if name == "h" else 2)
        for name, parts in (("two", 2), ("three", 3)):
            os.mkdir(os.path.join(folder, name))
            self.of[name] = joined([self.shard(f"{name}/{i}", choose, 7, i == 1, 2) for i in range(parts)])
        for name in ("b", "c", "two"):
            for length, pad in ((8, 1), (13, 1), (12, 4), (24, 12)):
                path = os.path.join(folder, f"{name}{length}.plan")
                subprocess.run([os.environ["TOKMAP"], "plan", "-q", "-o", path, "--seq-len", str(length),
                                "--pad-documents", str(pad), os.path.join(folder, name)], check=True,
                               stderr=subprocess.DEVNULL)
                self.plans[name, length], self.pads[name, length] = plan_reader.read(path)["rows"], pad

    def shard(self, name, choose, eod, masked, width):
        tokens, documents, mask = [], [], [] if masked else None
        known = {"tokenizer": "5" * 32} if choose.random() < .5 else {}
        with tokmap.ShardWriter(os.path.join(self.folder, name), vocab_size=100, eod=eod, mask=masked, width=width,
                                sync=False, **known) as writer:
            for _ in range(choose.randrange(2, 40)):
                ids = [choose.randrange(100) for _ in range(choose.choice((1, 2, 5, 9, 30)))]
                bits = [choose.randrange(2) for _ in ids]
                writer.add(ids, mask=bits) if masked else writer.add(ids)
                if eod is not None:
                    ids, bits = ids + [eod], bits + bits[-1:]  # an EOD counts if the id before it does
                documents.append((len(tokens), len(ids)))
                tokens += ids
                if masked:
                    mask += bits
        return Data(tokens, documents, mask, width, eod, self.values(name, choose, len(tokens)))

    def values(self, name, choose, count):
        """Three numbers and one number for each token, but in some shards not for all of them."""
        holes = choose.choice((0, 0, .3))
        values = [None if choose.random() < holes else
                  ([choose.randrange(1, 65536) for _ in range(3)], choose.randrange(1, 256)) for _ in range(count)]
        with tokmap.ValuesWriter(os.path.join(self.folder, name), [("v", "uint16", 3), ("w", "uint8", ())]) as writer:
            for x in choose.sample(range(count), count):
                if values[x]:
                    three = memoryview(array.array("H", values[x][0])).cast("B").cast("H", (1, 3))
                    writer.put_at(x, [three, array.array("B", [values[x][1]])])
            writer.finish(holes=True)
        return values

    def open(self, name):
        base, _, suffix = name.partition("#")
        found = synthetic(base) if base.startswith("synthetic:") else self.of[os.path.relpath(base, self.folder)]
        return found.part(suffix) if suffix else found


# ---- RUN.md ----

def words_of(line):
    return [quoted.replace('\\"', '"').replace("\\\\", "\\") if quoted or not plain else plain
            for comment, quoted, plain in re.findall(r'(#.*)|"((?:\\.|[^"\\])*)"|([^ \t"#][^ \t]*)', line)
            if not comment]


UNITS = {"K": 10**3, "M": 10**6, "B": 10**9, "G": 10**9, "T": 10**12}


class Refused(Exception):
    pass


class Source:
    def __init__(self, name, data, plan, pad, epochs_most):
        self.name, self.data, self.plan, self.pad, self.epochs_most = name, data, plan, pad, epochs_most
        self.s = self.epoch_first = 0  # draws since the sequence length changed, and the epoch that began with them
        self.n = 0                     # of the last draw


class Model:
    """Deals out the steps below `most` of a run: self.steps[t] is (S, G, valid rows, delivered, rows), a row being
    (source, epoch, window), or None for padding. self.end is the number of steps if it is at most that, else None."""

    def __init__(self, text, world, most):
        lines = [words for words in map(words_of, text.splitlines()) if words]
        value = {words[0]: words[1:] for words in lines}
        self.lookahead = int(value.get("lookahead", ["1"])[0])
        self.seed = int(value.get("seed", ["0"])[0])
        self.order = value.get("order", ["shuffle"])
        self.stride = int(value["stride"][0]) if "stride" in value else None
        self.tail_pad = value.get("tail") == ["pad"]
        self.sources = {}
        for words in (words for words in lines if words[0] == "source"):
            plan = words[words.index("plan") + 1] if "plan" in words else None
            limit = next((int(w[8:]) for w in words[3:] if w.startswith("epochs<=")), None)
            of = plan and (re.fullmatch(r"(.*?)(\d+)\.plan", os.path.basename(plan))[1],
                           int(re.search(r"(\d+)\.plan", plan)[1]))
            rows, pad = (world.plans[of], world.pads[of]) if plan else (None, 1)
            self.sources[words[1]] = Source(words[1], world.open(words[2]), rows, pad, limit)
        self.excluded = {name: {} for name in self.sources}  # by source: the step from which a token is excluded
        for words in (words for words in lines if words[0] == "exclude"):
            for name, number in (line.split("#")[0].split() for line in open(words[1]) if line.split("#")[0].strip()):
                first, count = self.sources[name].data.documents[int(number)]
                for x in range(first, first + count):
                    self.excluded[name][x] = min(self.excluded[name].get(x, 1 << 64), int(words[3]))
        ends = [source.data.eod for source in self.sources.values() if source.data.eod is not None]
        self.pad = int(value["pad"][0]) if "pad" in value else ends[0] if ends else 0
        self.width = max(source.data.width for source in self.sources.values())
        self.deal(lines, value, most)

    def windows(self, source, seq_len):
        if source.plan:
            return len(source.plan)
        tokens, stride, ahead = len(source.data.tokens), self.stride or seq_len, self.lookahead
        if self.tail_pad:
            return max(1, 1 - (seq_len + min(ahead, 1) - tokens) // stride)
        if tokens < seq_len + ahead:
            raise Refused("no window")
        return 1 + (tokens - ahead - seq_len) // stride

    def weights(self, words, seq_len):
        """The leaves of a phase line, without those whose weight is 0."""
        if words == ["natural"]:
            words = [w for name in self.sources for w in (name, "natural")]
        found = {}
        for name, weight in zip(words[::2], words[1::2]):
            if weight == "natural":
                found[name] = Fraction(self.windows(self.sources[name], seq_len))
            else:
                number = weight[7:] if weight.startswith("tokens=") else weight
                found[name] = Fraction(number.rstrip("KMBGT")) * UNITS.get(number[-1], 1)
        return sorted((name.encode(), weight) for name, weight in found.items() if weight)

    def phase_lines(self, lines):
        """Each phase line by its step: its weights as words, its batch, and its sequence length."""
        found = {}
        for words in (words[1:] for words in lines if words[0] == "phase"):
            rest, change = words[1:], {}
            for name in ("batch", "seq_len"):
                if name in rest:
                    at = rest.index(name)
                    change[name] = int(rest[at + 1])
                    del rest[at:at + 2]
            found[int(words[0])] = (rest, change)
        return found

    def deal(self, lines, value, most):
        phases = self.phase_lines(lines)
        skips = [tuple(map(int, words[1].split(".."))) for words in lines if words[0] == "skip"]
        seq_len, batch, tree, drawn = int(value["seq_len"][0]), int(value["batch"][0]), None, []
        steps = int(value["steps"][0]) if "steps" in value else None
        passes = int(value["passes"][0]) if "passes" in value else None
        counted = value["passes"][2].encode() if passes and len(value["passes"]) > 1 else None
        left, unit = None, None  # draws until the end by passes, and what one pass had when they were counted
        self.steps, self.end = [], None
        self.lengths = {seq_len} | {change["seq_len"] for _, change in phases.values() if "seq_len" in change}
        for t in range(most):
            if t == steps:
                self.end = t
                return
            rest, change = phases.get(t, ((), {}))
            batch = change.get("batch", batch)
            if change.get("seq_len", seq_len) != seq_len:
                seq_len = change["seq_len"]
                for source in self.sources.values():
                    if source.s:
                        source.epoch_first += -(-source.s // source.n)
                    source.s = 0
            if rest or tree is None:
                leaves = self.weights(list(rest) or ["natural"], seq_len)
                tree, drawn = Node(leaves), [name for name, _ in leaves]
            n = {name: self.windows(self.sources[name.decode()], seq_len) for name in drawn}
            if passes and (counted in drawn or not counted):
                one = n[counted] if counted else sum(n.values())
                left = passes * one if left is None else left if one == unit else left * one // unit
                unit = one
            if left == 0:
                self.end = t
                return
            dealt, exceeds = [], False
            while len(dealt) < batch and left != 0:
                name = tree.deal()
                source = self.sources[name.decode()]
                source.n = n[name]
                epoch = source.epoch_first + source.s // source.n
                exceeds |= source.epochs_most is not None and epoch >= source.epochs_most
                dealt.append((source, epoch, source.s % source.n, source.n))
                source.s += 1
                if left is not None and counted in (None, name):
                    left -= 1
            if len(dealt) < batch and not (self.tail_pad and dealt):
                self.end = t
                return
            if exceeds:  # a step that the run does not have may
                raise Refused("epochs")
            order = range(len(dealt))
            if self.order[0] != "sequential":
                order = order_of(key(b"rows", self.seed, b"", t), len(dealt))
            rows = [self.window(*dealt[i]) for i in order] + [None] * (batch - len(dealt))
            self.steps.append((seq_len, batch, len(dealt), not any(a <= t < b for a, b in skips), rows))
            if left == 0:
                self.end = t + 1
                return

    def window(self, source, epoch, draw, n):
        name = source.name.encode()
        if self.order[0] == "shuffle":
            draw = order_of(key(b"windows", self.seed, name, epoch), n)[draw]
        elif self.order[0] in ("blocks", "even"):
            windows = block_order if self.order[0] == "blocks" else even_order
            draw = windows(self.seed, name, epoch, n, int(self.order[1]), int(self.order[2]))[draw]
        return source, epoch, draw

    def tokens_before(self, step):
        return sum(seq_len * batch for seq_len, batch, _, delivered, _ in self.steps[:step] if delivered)

    def row(self, step, number):
        """The tokens of a row, as (id, begins a document, counts, is padding, is excluded), the targets that were
        scored, and the number of each token in the dataset, or None."""
        seq_len, _, _, _, rows = self.steps[step]
        size, place = seq_len + self.lookahead, rows[number]
        cells, scored, xs = [], 0, []
        if place is not None:
            source, epoch, window = place
            data = source.data

            def cell(x, starts):
                xs.append(x)
                if self.excluded[source.name].get(x, 1 << 64) <= step:
                    return self.pad, starts, False, False, True
                return data.tokens[x], starts, not data.mask or data.mask[x], False, False

            if source.plan:
                for first, count in source.plan[window]:
                    cells += [cell(x, x == first) for x in range(first, first + count)]
                    cells += [(self.pad, False, False, False, None)] * (-count % source.pad)
                    xs += [None] * (-count % source.pad)
            else:
                stride = self.stride or seq_len
                moved = epoch and stride == seq_len and self.order[0] != "sequential" and not self.tail_pad
                first = window * stride
                if moved:
                    first += key(b"shift", self.seed, source.name.encode(), epoch)[0] * seq_len >> 64
                for x in range(first, first + size):
                    if x >= len(data.tokens):
                        if self.tail_pad:
                            break
                        x -= len(data.tokens)
                    cells.append(cell(x, x == first or data.starts[x]))
                scored = seq_len - stride if window else 0
        real = len(cells)
        cells += [(self.pad, i == real, False, True, False) for i in range(real, size)]
        return cells, scored, xs

    def values(self, step, number):
        """What the loader delivers of the values of a row: three numbers, one number, and whether there are any."""
        seq_len, _, _, _, rows = self.steps[step]
        cells, _, xs = self.row(step, number)
        found = []
        for j in range(seq_len):
            x = xs[j + 1] if j + 1 < len(xs) else None
            values = rows[number][0].data.values[x] if x is not None else None
            shown = values and cells[j + 1][4] is not True and cells[j][4] is not True
            found.append((*values, 1) if shown else ([0, 0, 0], 0, 0))
        return found

    def fields(self, step, number, masked):
        """What the loader delivers of a row, by field."""
        cells, scored, _ = self.row(step, number)
        seq_len, ahead = self.steps[step][0], self.lookahead
        out = {"rows": [cell[0] for cell in cells], "position_ids": [], "document_ids": [], "targets": [],
               "loss_mask": [], "targets_ahead": [], "labels": []}
        out["inputs"] = out["rows"][:seq_len]
        place = self.steps[step][4][number]
        out["source_ids"] = list(self.sources).index(place[0].name) if place else IGNORE
        since = documents = 0
        for j in range(seq_len):
            if j and cells[j][1]:
                since, documents = 0, documents + 1
            out["position_ids"].append(since)
            out["document_ids"].append(documents)
            since += 1
            token, starts, counts, padding, hidden = cells[j]
            good = j > scored and counts and not starts and not padding and not cells[j - 1][4]
            out["labels"].append(token if good else IGNORE)
            if not ahead:
                continue
            line, begun = [], False
            for token, starts, counts, padding, _ in cells[j + 1:j + 1 + ahead]:
                begun = begun or starts
                good = not begun and counts and not padding and j >= scored and not hidden
                if not line:
                    out["loss_mask"].append(int(good))
                line.append(IGNORE if padding or (masked and not good) else token)
            out["targets_ahead"].append(line)
            out["targets"].append(line[0])
        return out

    def columns(self, layout, rank, world, step, number):
        """The columns of a row that a rank gets, of those that share it: of each part that is cut, one run, or a run at
        the beginning and the run that mirrors it."""
        seq_len, place = self.steps[step][0], self.steps[step][4][number]
        if layout == "contiguous":
            return [j for j in range(seq_len) if j * world // seq_len == rank]
        parts = [seq_len]
        if layout == "zigzag_documents":
            pad = place and place[0].pad
            parts = [-(-count // pad) * pad for _, count in place[0].plan[place[2]]] if place else []
            parts.append(seq_len - sum(parts))
        return [sum(parts[:p]) + j for p, size in enumerate(parts) for j in range(size)
                if min(j, size - 1 - j) * 2 * world // size == rank]

    def ends(self, step, number):
        """How long the documents in the first seq_len tokens of a row are."""
        ids = self.fields(step, number, False)["document_ids"]
        return [ids.count(i) for i in range(ids[-1] + 1)]

    def positions(self, step, world, rows, q, nodes):
        """The rows of a step in the order of ranks and their calls, balanced by tokmap_balance() in loader.h, or by block
        as ORDER.md says."""
        seq_len, batch, _, _, _ = self.steps[step]
        if nodes > 1:
            return self.by_node(step, world, nodes)
        calls = -(-(-(-batch // world)) // rows) if rows else 1
        held = [(rank + 1) * batch // world - rank * batch // world for rank in range(world)]
        cells = [[0, (call + 1) * held[rank] // calls - call * held[rank] // calls, []]
                 for call in range(calls) for rank in range(world)]
        if not q:
            return list(range(batch))
        costs = [sum(length + Fraction(round(q * 2**40), 2**40) * length**2 for length in self.ends(step, number))
                 for number in range(batch)]
        for number in sorted(range(batch), key=lambda number: -costs[number]):
            cell = min((cell for cell in cells if len(cell[2]) < cell[1]), key=lambda cell: cell[0])
            cell[0] += costs[number]
            cell[2].append(number)
        return [number for rank in range(world) for cell in cells[rank::world] for number in sorted(cell[2])]

    def by_node(self, step, world, nodes):
        seq_len, batch, _, _, rows = self.steps[step]
        width, left = int(self.order[1]), []
        for number, place in enumerate(rows):
            if place is None:
                left.append((float("inf"), number, 0))
                continue
            source, epoch, window = place
            n = self.windows(source, seq_len)
            slots = order_of(key(b"blocks", self.seed, source.name.encode(), epoch), -(-n // width))
            left.append((window % width, number, slots.index(window // width) % nodes))
        each = world // nodes
        room = [(j + 1) * each * batch // world - j * each * batch // world for j in range(nodes)]
        held = [[] for _ in room]
        stride = next(s for s in range(-(-618 * nodes // 1000), 9999) if gcd(s, nodes) == 1)
        for i in range(nodes):
            for row in sorted(left):
                j = (row[2] + i * stride) % nodes
                if len(held[j]) < room[j]:
                    held[j].append(row[1])
                    left.remove(row)
        return [number for some in held for number in sorted(some)]


# ---- random runs ----

def random_data(choose, world):
    if choose.random() < .25:
        tokens = choose.randrange(30, 300)
        name = f"synthetic:vocab=50,tokens={tokens},document={choose.randrange(1, 30)},seed={choose.randrange(3)}"
        count = None
    else:
        name = choose.choice(sorted(world.of))
        tokens, count = len(world.of[name].tokens), len(world.of[name].documents)
        name = os.path.join(world.folder, name)
    kind = choose.random()
    if kind < .15:
        first = choose.randrange(tokens // 2)
        name += f"#tokens={first}..{choose.randrange(first + tokens // 4 + 1, tokens + 1)}"
    elif kind < .3 and count and count > 3:
        first = choose.randrange(count // 2)
        name += f"#docs={first}..{choose.randrange(first + count // 4 + 1, count + 1)}"
    elif kind < .4 and count:
        name += choose.choice(("#docs=0..99.5%", "#docs=33.3..100%", "#docs=10..90%"))
    return name


def random_weights(choose, names, steps, batch, seq_len):
    kind = choose.random()
    if kind < .15 and steps is None:
        kind = .5
    if kind < .15:
        total, parts = steps * batch * seq_len, []
        for name in names[1:]:
            parts.append((name, choose.randrange(max(1, total // len(names)))))
        parts.append((names[0], total - sum(amount for _, amount in parts)))
        return " ".join(f"{name} tokens={amount}" for name, amount in parts)
    if kind < .25:
        return "natural"
    if kind < .4:
        return " ".join(f"{name} natural" for name in names)
    shares = [choose.choice(("1", "2", "3", "0.5", "0.25", "17", "0.000000001", "0", "7.125")) for _ in names]
    shares[choose.randrange(len(names))] = "3"
    return " ".join(f"{name} {share}" for name, share in zip(names, shares))


def random_exclusions(choose, world, lines):
    """Lines that exclude documents, with their lists."""
    sources = [words[1:3] for words in map(words_of, lines) if words[0] == "source"]
    made = []
    for _ in range(choose.choice((1, 1, 2, 3))):
        world.lists += 1
        path = os.path.join(world.folder, f"list {world.lists % 8}" if choose.random() < .3 else f"list{world.lists}")
        share, listed = choose.choice((0, .05, .3, 1)), []
        for name, data in sources:
            listed += [f"{name} {i}" for i in range(len(world.open(data).documents)) if choose.random() < share]
        if choose.random() < .5:
            choose.shuffle(listed)
        listed += [each + "  # again" for each in listed[:choose.choice((0, 3))]]
        with open(path, "w") as file:
            file.write("# documents\n" + "".join(line + "\n" for line in listed))
        made.append(f'exclude "{path}" from {choose.choice((0, 1, choose.randrange(12), choose.randrange(40)))}')
    return made


def random_text(choose, world):
    """The text of a run that is mostly possible."""
    planned = choose.random() < .15
    seq_len = choose.choice((8, 13, 12, 24)) if planned else choose.choice((1, 2, 5, 8, 13, 16))
    batch = choose.choice((1, 2, 3, 4, 6, 9))
    names = choose.sample(["web", "wiki", "a", "b.2", "Z-z", "_x"], choose.choice((1, 1, 2, 3, 4)))
    lines = [f"seq_len {seq_len}", f"batch {batch}  # rows"]
    if choose.random() < .6:
        lines.append(f"seed {choose.choice((1, 7, 2**64 - 1))}")
    if choose.random() < .5:
        lines.append(f"lookahead {choose.choice((0, 1, 2, 3, 5))}")
    if choose.random() < .4:
        lines.append("order " + choose.choice(("sequential", "shuffle", "blocks 3 2", "blocks 4 1", "blocks 1 7",
                                                "even 3 2", "even 2 5")))
    tail = choose.random() < .4
    if tail:
        lines.append("tail pad")
    if choose.random() < .25:
        lines.append(f"stride {choose.randrange(1, seq_len + 1)}")
    if choose.random() < .2:
        lines.append(f"pad {choose.randrange(100)}")
    for name in names:
        data, plan = random_data(choose, world), ""
        if planned and choose.random() < .8:
            of = choose.choice([of for of, length in world.plans if length == seq_len])
            data, plan = os.path.join(world.folder, of), f' plan "{os.path.join(world.folder, f"{of}{seq_len}.plan")}"'
        limit = f" epochs<={choose.choice((1, 3, 50))}" if choose.random() < .08 else ""
        lines.append(f'source {name} "{data}"{plan}{limit}')
    if choose.random() < .2:  # which changes nothing but an evaluation
        lines.append("validation held synthetic:vocab=9,tokens=200,document=7,seed=99")
    steps = choose.randrange(1, 40) if choose.random() < .5 else None
    if len(names) > 1 or choose.random() < .1:
        lines.append("phase 0 " + random_weights(choose, names, steps, batch, seq_len))
        at = 0
        while choose.random() < .4 and "tokens=" not in lines[-1]:
            at += choose.randrange(1, 12)
            line = f"phase {at}"
            if choose.random() < .6:
                line += " " + random_weights(choose, names, None, batch, seq_len)
            if choose.random() < .4 and "stride" not in str(lines) and not planned:
                line += f" seq_len {choose.choice((1, 3, 8, 16))}"
            if choose.random() < .4 or line == f"phase {at}":
                line += f" batch {choose.choice((1, 2, 5, 8))}"
            lines.append(line)
    for _ in range(choose.choice((0, 0, 1, 2))):
        first = choose.randrange(30)
        lines.append(f"skip {first}..{first + choose.randrange(1, 6)}")
    if choose.random() < .4:
        lines += random_exclusions(choose, world, lines)
    if steps:
        lines.append(f"steps {steps}")
    elif choose.random() < .8:
        of = f" of {choose.choice(names)}" if choose.random() < .7 else ""
        lines.append(f"passes {choose.randrange(1, 4)}{of}")
    return "\n".join(lines) + "\n"


# ---- comparison ----

MOST = 48  # steps of a run that are compared
BOTH = ("inputs", "position_ids", "document_ids", "labels", "source_ids")
AHEAD = ("targets", "loss_mask", "targets_ahead")


class Comparison:
    def __init__(self, world, choose):
        self.world, self.choose, self.rows, self.refused, self.excluding = world, choose, 0, 0, 0
        self.continued = self.by_node = self.counting = self.with_values = 0

    def check(self, truth, what):
        if not truth:
            raise AssertionError(what)

    def run(self, text, evaluations=True):
        model = None
        try:
            model = Model(text, self.world, MOST)
        except Refused as why:
            refusal = str(why)
        try:
            run = tokmap.Run(text=text)
        except (tokmap.RunError, IndexError, tokmap.DataError) as problem:
            # The model only knows refusals within its steps; others say what the model cannot see.
            self.refused += 1
            known = r"runs out|no step|longer than|passes|weight|tokens sum|needs an end"
            self.check(model is None or re.search(known, str(problem)), str(problem))
            return
        with run:
            self.check(model is not None, f"the run opens, but the model refuses it: {refusal if not model else ''}")
            self.compare(run, model)
            if evaluations and self.choose.random() < .2:
                self.evaluation(run)
            if self.choose.random() < .3:
                self.continuation(run, model)

    def continuation(self, run, model):
        """A run that continues with another phase has the cursors of the first up to its step, and then the rows of its
        own text."""
        choose, lines = self.choose, list(map(words_of, run.text.splitlines()))
        step = max((int(words[1]) for words in lines if words[:1] == ["phase"]), default=0) + choose.randrange(1, 9)
        if step >= len(model.steps) or not any(delivered for _, _, _, delivered, _ in model.steps[step:]):
            return  # at the end, whose step a change may move
        change = {}
        if choose.random() < .7:
            change["weights"] = {name: choose.choice((0, 1, 0.125, "2.5", 17)) for name in model.sources}
            change["weights"][choose.choice(list(model.sources))] = 3
        if choose.random() < .4 or not change:
            change["batch"] = choose.choice((1, 2, 5, 8))
        if choose.random() < .2 and model.stride is None and "plan" not in sum(lines, []):
            change["seq_len"] = choose.choice((1, 3, 8, 16))
        try:
            made = run.with_phase(step, **change)
        except (tokmap.RunError, IndexError, tokmap.DataError) as problem:
            self.check(re.search(r"runs out|no step|longer than|passes|weight|tokens sum|needs an end", str(problem)),
                       f"{step} {change} {problem}")
            return
        with made:
            self.check(all(made.cursor(t) == run.cursor(t) for t in range(step + 1)), "cursors of the past")
            self.continued += 1
            self.compare(made, Model(made.text, self.world, MOST))

    def evaluation(self, run):
        choose = self.choose
        options = {"trained": True, "batch": choose.choice((None, 1, 4)), "stride": None,
                   "lookahead": choose.choice((None, None, 0, 1, 3))}
        with run.evaluation(**options) as made:
            model = Model(made.text, self.world, 10**6)
            self.check(model.lookahead == (1 if options["lookahead"] is None else options["lookahead"]), "lookahead")
            counted = {}
            for t, (seq_len, _, _, _, rows) in enumerate(model.steps):
                for place in rows:
                    if place is None or not model.lookahead:
                        continue
                    source, epoch, window = place
                    self.check(epoch == 0, "one pass")
                    last = min((window + 1) * seq_len, len(source.data.tokens) - 1)
                    for x in range(window * seq_len + 1, last + 1):
                        counted[source.name, x] = counted.get((source.name, x), 0) + 1
            if model.lookahead:
                for source in model.sources.values():
                    for x in range(1, len(source.data.tokens)):
                        times = counted.get((source.name, x), 0)
                        self.check(times == 1, f"target {x} counts {times} times")
            if len(model.steps) <= MOST:
                self.compare(made, model)

    def exclusions(self, run, model):
        """A cursor differs from that of the run without lists if, and only if, one excludes a token before its step."""
        if "\nexclude" not in run.text:
            return
        self.excluding += 1
        begins = min((step for tokens in model.excluded.values() for step in tokens.values()), default=1 << 64)
        with tokmap.Run(text=re.sub(r"\nexclude .*", "", run.text)) as plain:
            for t in {0, 1, len(model.steps), min(begins, len(model.steps)), min(begins + 1, len(model.steps))}:
                cursor = run.cursor(t)
                step = int(re.search(r"step=(\d+)", cursor)[1])
                self.check((cursor == plain.cursor(t)) == (step == 0 or step <= begins), f"{cursor}, lists from {begins}")

    def compare(self, run, model):
        """Compares the steps, cursors, and rows of a rank, which perhaps resumes."""
        choose, steps = self.choose, model.steps
        info = run.info
        self.check(info.pad_id == model.pad and info.width == model.width, f"pad {info.pad_id}, {model.pad}")
        self.check(info.steps == model.end or (model.end is None and (info.steps is None or info.steps >= MOST)),
                   f"steps {info.steps}, {model.end}")
        first = choose.randrange(len(steps) + 1) if choose.random() < .3 else 0
        for t in {0, first, len(steps)} | {choose.randrange(len(steps) + 1)}:
            later = t
            while later < len(steps) and not steps[later][3]:
                later += 1
            cursor = tuple(map(int, re.findall(r"(?:step|tokens)=(\d+)", run.cursor(t))))
            if later < len(steps) or model.end is not None:
                tokens = model.tokens_before(later) if later else 0
                self.check(cursor == (later, tokens), f"cursor {cursor}, {later} {tokens}")
        self.exclusions(run, model)
        delivered = [t for t in range(first, len(steps)) if steps[t][3]]
        if not delivered:
            return
        rows = [steps[t][1] for t in range(first, len(steps))] + [phase.batch for phase in run.phases]  # and later
        world = choose.randrange(1, min(rows) + 1)
        fields = ["rows"] + [name for name in BOTH + (AHEAD if model.lookahead else ()) if choose.random() < .6]
        masked = "targets_ahead" in fields and choose.random() < .5
        if "targets" in fields or ("targets_ahead" in fields and not masked):
            fields.append("loss_mask")
        if "inputs" in fields and not masked and not {"loss_mask", "labels"} & set(fields):
            fields.append("labels")  # inputs alone are refused where some tokens do not count
        documents = choose.random() < .3
        slices = self.slices(model) if choose.random() < .5 else {}
        if slices:
            fields.remove("rows")
            fields += ["labels"] if "loss_mask" not in fields else ["inputs"]
        options = {"rank": choose.randrange(world), "world": world, "threads": choose.choice((0, 1)),
                   "rows": choose.choice((0, 1, 2)), "mask_targets": masked,
                   "balance": choose.choice((0, 0, 0, 1e-4, 0.03, 1)), "nodes": 0,
                   "fields": sorted(set(fields)) + (["cu_seqlens", "cu_seqlens_slice"] if documents else []), **slices}
        counted = {"targets", "targets_ahead", "loss_mask", "labels"} & set(fields)
        options["counts"] = bool(counted) and choose.random() < .5
        if all(source.data.values for source in model.sources.values()) and choose.random() < .5:
            options.update(choose.choice(({"values": "w v", "values_present": True}, {"values": "v"}, {"values": "w"})))
        if model.order[0] in ("blocks", "even") and choose.random() < .8:
            options["balance"] = 0
            options["nodes"] = choose.choice([n for n in range(1, world + 1) if world % n == 0][-2:])
            self.by_node += options["nodes"] > 1
        with run.loader(resume=run.cursor(first) if first else None, **options) as loader:
            excluded = excluded_rows = 0
            at = {t: options["rank"] * steps[t][1] // world for t in delivered}
            for b in loader:
                if b.step >= len(steps):
                    break
                self.batch(model, b, at, options, masked, documents)
                for number in b.row_numbers:
                    cells = model.row(b.step, number)[0]
                    columns = range(b.seq_len) if not slices else model.columns(
                        options["context_layout"], options["context_rank"], options["context_world"], b.step, number)
                    excluded += sum(cells[j][4] is True for j in columns)
                    hidden = [cell[4] for cell in cells if not cell[3] and cell[4] is not None]
                    excluded_rows += bool(hidden) and all(hidden)
                stats = loader.stats()
                self.check((stats.excluded, stats.excluded_rows) == (excluded, excluded_rows), f"statistics {stats.excluded, stats.excluded_rows}, {excluded, excluded_rows} {options}")
            else:
                self.check(run.info.steps == len(steps), "the loader ends")
        for t in delivered:
            self.check(at[t] == (options["rank"] + 1) * steps[t][1] // world, f"step {t} ends at row {at[t]}")

    def counted(self, model, step, number, options, columns=None):
        """How many targets of a row count, or labels, if the loader has no targets."""
        wanted = model.fields(step, number, True)
        if {"targets", "targets_ahead", "loss_mask"} & set(options["fields"]):
            return sum(wanted["loss_mask"][j] for j in columns or range(len(wanted["loss_mask"])))
        return sum(wanted["labels"][j] != IGNORE for j in columns or range(len(wanted["labels"])))

    def values(self, model, b, numbers, options):
        kept = options["values"].split()
        found = {name: b.values[name].tolist() if b.count else [] for name in kept}
        present = {name: b.values_present[name].tolist() if b.count else [] for name in kept} \
            if "values_present" in options else {}
        for i, number in enumerate(numbers):
            wanted = model.values(b.step, number)
            if "context_world" in options:
                wanted = [wanted[j] for j in model.columns(options["context_layout"], options["context_rank"],
                                                           options["context_world"], b.step, number)]
            for name in kept:
                values = [each["vw".index(name)] for each in wanted]
                self.check(found[name][i] == values, f"step {b.step} row {number} {name}\n{found[name][i]}\n{values}")
                self.check(not present or present[name][i] == [each[2] for each in wanted],
                           f"step {b.step} row {number} present {name}")
            self.with_values += 1

    def slices(self, model):
        """Options of a loader that gets slices of the model's rows, or none if they cannot be cut."""
        found = [("contiguous", n) for n in (2, 3, 4, 8, 13)] + [("zigzag", n) for n in (2, 3, 4, 6)]
        found = [(layout, n) for layout, n in found
                 if not any(size % (n if layout == "contiguous" else 2 * n) for size in model.lengths)]
        pads = {source.pad if source.plan else 1 for source in model.sources.values()}
        found += [("zigzag_documents", n) for n in (2, 3, 6) if not any(pad % (2 * n) for pad in pads)] * 3
        if not found:
            return {}
        layout, world = self.choose.choice(found)
        return {"context_layout": layout, "context_world": world, "context_rank": self.choose.randrange(world)}

    def batch(self, model, b, at, options, masked, documents):
        seq_len, _, valid, _, rows = model.steps[b.step]
        self.check(b.seq_len == seq_len and b.step in at, f"step {b.step}")
        numbers = model.positions(b.step, options["world"], options["rows"], options["balance"],
                                  options["nodes"])[at[b.step]:][:b.count]
        self.check(list(b.row_numbers) == numbers and (not numbers or b.first_row == numbers[0]),
                   f"step {b.step} rows {b.row_numbers}, {numbers}")
        at[b.step] += b.count
        if "values" in options:
            self.values(model, b, numbers, options)
        if options["counts"]:
            sliced = "context_world" in options
            own = sum(self.counted(model, b.step, number, options, model.columns(
                options["context_layout"], options["context_rank"], options["context_world"], b.step, number)
                if sliced else None) for number in numbers)
            total = sum(self.counted(model, b.step, number, options) for number in range(len(rows)))
            self.check((b.counted, b.counted_in_step) == (own, total),
                       f"step {b.step} rows {numbers}: {b.counted, b.counted_in_step} count, {own, total} {options}")
            self.counting += 1
        ends = []
        arrays = [name for name in options["fields"] if name[:10] != "cu_seqlens" and b.count]
        mine = []
        found = {name: getattr(b, name).tolist() for name in arrays}
        for i in range(b.count):
            number = numbers[i]
            place, wanted = b.places[i], model.fields(b.step, number, masked)
            if "context_world" in options:
                columns = model.columns(options["context_layout"], options["context_rank"], options["context_world"],
                                        b.step, number)
                wanted = {name: values if name == "source_ids" else [values[j] for j in columns]
                          for name, values in wanted.items() if values != []}
                mine += [i * seq_len + j for j in columns]
                self.check(b.columns == len(columns), "columns")
            for name, values in found.items():
                self.check(values[i] == wanted[name], f"step {b.step} row {number} {name}\n{values[i]}\n{wanted[name]}")
            shown = rows[number]
            self.check((place.source is None) == (shown is None) == (number >= valid),
                       f"step {b.step} row {number} is padding")
            if shown:
                names = list(model.sources)
                self.check((names[place.source], place.epoch, place.window) == (shown[0].name, shown[1], shown[2]),
                           f"step {b.step} row {number}: {place}, {shown[0].name} {shown[1:]}")
            if documents:
                ends += model.ends(b.step, number)
            self.rows += 1
        if documents and b.count:
            sums = [0]
            for length in ends:
                sums.append(sums[-1] + length)
            given = b.cu_seqlens.tolist()
            self.check(given[:len(sums)] == sums and set(given[len(sums):]) <= {sums[-1]},
                       f"cu_seqlens {given}, {sums}")
            self.check((b.documents, b.max_seqlen) == (len(ends), max(ends)), "documents")
            if mine:
                part = b.cu_seqlens_slice.tolist()
                self.check(part == [sum(x < end for x in mine) for end in given], f"slice {part}, {mine}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    choose = random.Random(given.seed)
    assert [order_of(key(b"windows", 1234, b"data", 0), 1000)[i] for i in range(5)] == [677, 601, 583, 449, 517]
    assert even_order(1234, b"data", 0, 10, 4, 2) == [7, 8, 4, 9, 5, 6, 2, 3, 0, 1]
    assert block_order(1234, b"data", 0, 10, 4, 2) == [5, 9, 4, 7, 8, 6, 2, 1, 3, 0]
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(World(folder, choose), choose)
        for number in range(given.count):
            text = random_text(choose, comparison.world)
            try:
                comparison.run(text)
            except Exception as problem:
                print(f"not ok - run {number} of seed {given.seed}: {type(problem).__name__} {problem}\n{text}")
                return 1
    if comparison.refused * 3 > given.count or comparison.rows < given.count or \
            comparison.excluding * 8 < given.count or comparison.continued * 20 < given.count or \
            comparison.by_node * 100 < given.count or comparison.counting < given.count or \
            comparison.with_values < given.count:
        print(f"not ok - {comparison.refused} of {given.count} runs were refused, {comparison.rows} rows compared, "
              f"{comparison.excluding} runs exclude documents, {comparison.continued} were continued, {comparison.by_node} had nodes, {comparison.counting} batches counts, "
              f"{comparison.with_values} rows values")
        return 1
    print(f"ok - {given.count} runs, {comparison.rows} rows; {comparison.refused} were refused by both")
    return 0


if __name__ == "__main__":
    sys.exit(main())
