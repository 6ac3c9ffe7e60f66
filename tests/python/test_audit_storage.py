# SPDX-License-Identifier: MIT
"""audit --cache, compared with another simulation and, for small caches, with the best that any cache could do."""
import json
import os
import random
import subprocess
import unittest
from functools import lru_cache

import tokmap
from support import TOKMAP, WithData

BLOCK = 1 << 16


def fetched(uses, capacity, horizon):
    """Which uses are fetched: at each, all blocks of the cache are looked at."""
    held, last, found = set(), {}, []
    for at, block in enumerate(uses):
        if block not in held:
            found.append(at)
            if len(held) == capacity:
                def known(b):
                    end = min(at + horizon, len(uses) - 1) + 1
                    return next((i for i in range(at + 1, end) if uses[i] == b), None)
                unknown = [b for b in held if known(b) is None]
                held.remove(min(unknown, key=last.get) if unknown else max(held, key=known))
            held.add(block)
        last[block] = at
    return found


def fewest(uses, capacity):
    """How many fetches the best of all choices of blocks to remove needs."""
    @lru_cache(None)
    def rest(now, held):
        while now < len(uses) and uses[now] in held:
            now += 1
        if now == len(uses):
            return 0
        if len(held) < capacity:
            return 1 + rest(now + 1, held | {uses[now]})
        return 1 + min(rest(now + 1, (held - {out}) | {uses[now]}) for out in held)
    return rest(0, frozenset())


class Storage(WithData):
    def audit(self, path, *options, ranks, nodes):
        ran = subprocess.run([TOKMAP, "audit", path, "--ranks", str(ranks), "--nodes", str(nodes), "--block", str(BLOCK),
                              "--json", "-q", "--sample-steps", "0", *map(str, options)], capture_output=True, text=True,
                             timeout=300)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return json.loads(ran.stdout)["storage"]

    def uses(self, run, sizes, ranks, nodes, by_node):
        """The blocks that each node uses, from the rows that loaders deliver, and the bytes of these rows."""
        row_bytes, steps = 0, {}
        for rank in range(ranks):
            with run.loader(rank=rank, world=ranks, nodes=nodes if by_node else 0, fields="rows",
                            framework="dlpack") as loader:
                for b in loader:
                    mine = steps.setdefault((rank * nodes // ranks, b.step), [])
                    for place in b.places:
                        tokens, width = sizes[place.source]
                        first = sum(-(-t * w // BLOCK) for t, w in sizes[:place.source])
                        end = min(place.first_token + place.tokens, tokens)
                        row_bytes += place.tokens * width
                        for start, stop in (place.first_token, end), (0, place.first_token + place.tokens - end):
                            if start < stop:
                                mine += range(first + start * width // BLOCK, first + (stop - 1) * width // BLOCK + 1)
        return [sum((steps[key] for key in sorted(steps) if key[0] == node), []) for node in range(nodes)], row_bytes

    def compare(self, found, run, sizes, ranks, nodes, cache, horizon, steps, batch):
        blocks = [min(BLOCK, t * w - at) for t, w in sizes for at in range(0, t * w, BLOCK)]
        for case in found["cases"]:
            self.assertTrue(case["whole"])
            if not case["as_is"]:
                continue
            uses, row_bytes = self.uses(run, sizes, ranks, nodes, case["by_node"])
            ahead = horizon * (ranks // nodes) * max(1, sum(map(len, uses)) // nodes // steps // (batch // nodes))
            fetches = [[node[i] for i in fetched(node, cache, ahead)] for node in uses]
            self.assertEqual(case["requests"], sum(map(len, fetches)))
            self.assertEqual(case["uses"], sum(map(len, uses)))
            self.assertEqual(case["bytes"], sum(blocks[b] for node in fetches for b in node))
            self.assertAlmostEqual(case["factor"], case["bytes"] / row_bytes)
            if len(blocks) < 9 and ahead > sum(map(len, uses)):
                self.assertEqual(case["requests"], sum(fewest(tuple(node), cache) for node in uses))
                self.best += 1

    def test_random(self):
        choose, self.best = random.Random(11), 0
        for number in range(24):
            small = number % 2
            sizes = [(choose.randrange(60_000, 200_000 if small else 900_000), 2)]
            lines = [f"source a synthetic:vocab=1000,tokens={sizes[0][0]}"]
            if not small and choose.random() < .5:
                sizes.append((choose.randrange(60_000, 400_000), 4))
                lines += [f"source b synthetic:vocab=100000,tokens={sizes[1][0]}", "phase 0 a 2 b 1"]
            nodes = choose.choice((1, 1, 2, 3))
            ranks = nodes * choose.choice((1, 2))
            batch, steps = ranks * choose.randrange(1, 4), choose.randrange(5, 12 if small else 40)
            seq_len = choose.choice((1000, 2048, 5000))
            order = choose.choice(("shuffle", "sequential", f"blocks {choose.randrange(1, 20)} {choose.randrange(1, 6)}"))
            path = self.file(f"random{number}.run", "\n".join(
                [f"seq_len {seq_len}", f"batch {batch}", f"seed {number}", f"order {order}", *lines, f"steps {steps}"]))
            cache, horizon = choose.randrange(2, 6), choose.choice((1, 3, 20, 10**6))
            found = self.audit(path, "--cache", cache * BLOCK, "--horizon", horizon, ranks=ranks, nodes=nodes)
            with self.subTest(number=number, order=order), tokmap.Run(path) as run:
                self.compare(found, run, sizes, ranks, nodes, cache, horizon, steps, batch)
                self.assertEqual([(case["as_is"], case["by_node"]) for case in found["cases"]],
                                 [(True, False)] + [(False, False)] * (order == "shuffle") +
                                 [(order != "shuffle", True)] * (nodes > 1 and order != "sequential"))
        self.assertGreater(self.best, 2)

    def test_parts_and_epochs(self):
        """A part of two shards, which begins inside the first; and a cache that holds all of a second epoch."""
        sizes = []
        os.mkdir(f"{self.folder}/set")
        for name in "first", "second":
            with tokmap.ShardWriter(f"{self.folder}/set/{name}", vocab_size=100, sync=False) as writer:
                for _ in range(50):
                    writer.add([1] * 3001)
            sizes.append(50 * 3001 * 2)
        tokens, skipped = sum(sizes) // 2, BLOCK  # two blocks
        path = self.file("part.run", f"seq_len 64\nbatch 4\nsource a \"{self.folder}/set#tokens={skipped}..{tokens}\"\n"
                                     "passes 2\n")
        for cache, times in (1 << 30, 1), (2 * BLOCK, None):
            case = self.audit(path, "--cache", cache, ranks=2, nodes=1)["cases"][0]
            if times:
                self.assertEqual(case["requests"], sum(-(-size // BLOCK) for size in sizes) - 2)
                self.assertEqual(case["bytes"], sum(sizes) - 2 * BLOCK)
                self.assertAlmostEqual(case["factor"], .5, delta=.02)
            else:
                self.assertGreater(case["factor"], 10)

    def test_rates_and_costs(self):
        path = self.file("cost.run", "seq_len 4096\nbatch 8\nsource a synthetic:vocab=1000,tokens=2000000\nsteps 20\n")
        found = self.audit(path, "--cache", "1m", "--step-time", .5, "--price-request", .25, "--price-gib", 2, ranks=4,
                           nodes=2)
        for case in found["cases"]:
            self.assertAlmostEqual(case["cost"], case["requests"] * .25 + case["bytes"] / 2**30 * 2)
            self.assertAlmostEqual(case["bytes_per_node"], case["bytes"] / 2)
            self.assertAlmostEqual(case["node_bytes_per_second"], case["bytes"] / 2 / 20 / .5)
            self.assertAlmostEqual(case["node_requests_per_second"], case["requests"] / 2 / 20 / .5)
            self.assertLessEqual(case["node_requests_per_second"], case["busiest_node_requests_per_second"])
            self.assertAlmostEqual(case["hit_rate"], 1 - case["requests"] / case["uses"])


if __name__ == "__main__":
    unittest.main()
