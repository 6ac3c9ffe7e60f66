# SPDX-License-Identifier: MIT
"""Rows that are assigned to nodes by the block that they are in. The random model has the rule; here is all else."""
import json
import pickle
import subprocess
import unittest

import tokmap
from support import TOKMAP, WithData, pack, values

SEQ, BATCH, WIDTH = 16, 24, 4


class Affinity(WithData):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        other = pack(cls.folder, "other", documents=90, seed=9)
        cls.text = (f"seq_len {SEQ}\nbatch {BATCH}\nseed 8\norder blocks {WIDTH} 8\nsource web \"{cls.prefix}\"\n"
                    f"source other \"{other}\"\nphase 0 web 2 other 1\nphase 6 web 1 other 1 batch 31\nsteps 12\n")
        cls.run_file = tokmap.Run(text=cls.text)

    def loader(self, **how):
        return self.run_file.loader(**{"fields": "rows inputs", "framework": "dlpack", **how})

    def test_rows(self):
        """The ranks have the rows of the run, each as many as without nodes, and a node has few blocks."""
        whole, pairs = {}, {}
        with self.loader() as loader:
            for b in loader:
                whole.update({(b.step, row): values(b.rows)[i] for i, row in enumerate(b.row_numbers)})
        for nodes in (0, 1, 2, 4):
            seen, found = {}, set()
            for rank in range(8):
                with self.loader(rank=rank, world=8, rows=2, nodes=nodes) as loader, \
                        self.loader(rank=rank, world=8, rows=2) as plain:
                    for b, other in zip(loader, plain, strict=True):
                        self.assertEqual((b.step, b.count, b.last_in_step), (other.step, other.count, b.last_in_step))
                        self.assertEqual(loader.state_dict(), plain.state_dict())
                        self.assertEqual(list(b.row_numbers), sorted(b.row_numbers))
                        if nodes < 2:
                            self.assertEqual(list(b.row_numbers), list(other.row_numbers))
                        for i, (row, place) in enumerate(zip(b.row_numbers, b.places)):
                            seen[b.step, row] = values(b.rows)[i]
                            self.assertEqual(place.row, row)
                            found.add((rank // 4, place.source, place.epoch, place.window // WIDTH))
            self.assertEqual(seen, whole)
            pairs[nodes] = len(found)
        self.assertLess(pairs[2], .8 * pairs[0], pairs)
        self.assertEqual(pairs[0], pairs[1])

    def test_moves(self):
        """A state, a pickle, and another number of ranks: a node keeps its ranks."""
        with self.loader(rank=1, world=4, nodes=2, rows=3) as loader:
            for _ in range(4):
                next(loader)
            state = loader.state_dict()
            with self.loader(rank=1, world=4, nodes=2, rows=3, resume=state) as other, \
                    pickle.loads(pickle.dumps(loader)) as third:
                wanted = [list(b.row_numbers) for b in other]
                self.assertEqual([list(b.row_numbers) for b in third], wanted)
            for world, nodes in ((6, 3), (2, 1), (8, 4)):
                loader.repartition(world - 1, world)
                with self.loader(rank=world - 1, world=world, nodes=nodes, rows=3, resume=state) as other:
                    self.assertEqual(list(next(loader).row_numbers), list(next(other).row_numbers))
                loader.rewind()
            with self.assertRaisesRegex(IndexError, "world is 5, which is not a multiple of the 2 ranks of a node"):
                loader.repartition(0, 5)

    def test_context(self):
        """Ranks that share rows have the same ones."""
        rows = []
        for part in (0, 1):
            with self.run_file.loader(rank=2, world=4, nodes=2, context_rank=part, context_world=2, fields="inputs",
                                      framework="dlpack") as loader:
                rows.append([list(b.row_numbers) for b in loader])
        with self.loader(rank=2, world=4, nodes=2) as loader:
            rows.append([list(b.row_numbers) for b in loader])
        self.assertTrue(rows[0] == rows[1] == rows[2])

    def test_tail(self):
        """Padding is last in the calls that have it, and not one row of the data is lost."""
        text = f"seq_len {SEQ}\nbatch 10\norder blocks 2 4\ntail pad\nsource web \"{self.prefix}\"\npasses 1\n"
        with tokmap.Run(text=text) as run:
            seen = []
            for rank in range(4):
                with run.loader(rank=rank, world=4, nodes=2, rows=1, fields="rows", framework="dlpack") as loader:
                    for b in loader:
                        self.assertEqual(b.real_rows, sum(place.source is not None for place in b.places))
                        seen += [place.window for place in b.places if place.source is not None]
            self.assertEqual(sorted(seen), list(range(len(seen))))

    def test_replay_and_show(self):
        run_file = self.file("nodes.run", self.text)
        paths, state = [], None
        for world, nodes, end in ((4, 2, 5), (3, 0, 8), (6, 3, None)):
            for rank in range(world):
                paths.append(f"{self.folder}/{world}-{rank}.trace")
                with tokmap.Run(run_file) as run, run.loader(rank=rank, world=world, nodes=nodes, trace=paths[-1],
                                                             resume=state, fields="rows") as loader:
                    for b in loader:
                        if b.step in (4, 11):
                            ran = subprocess.run([TOKMAP, "show", run_file, "--step", str(b.step), "--rank", str(rank),
                                                  "--ranks", str(world), "--nodes", str(nodes), "--json", "-q"],
                                                 capture_output=True, text=True, timeout=300)
                            shown = [json.loads(line)["row"] for line in ran.stdout.splitlines()]
                            self.assertEqual(shown, list(b.row_numbers), ran.stderr)
                        if b.step + 1 == end:
                            break
                    after = loader.state_dict()
            state = after

        def replay(*paths):
            ran = subprocess.run([TOKMAP, "replay", run_file, "--json", "--trace", *paths], capture_output=True,
                                 text=True, timeout=300)
            return json.loads(ran.stdout) if ran.stdout else ran.stderr
        found = replay(*paths)
        self.assertTrue(found["same"], found)
        self.assertEqual(found["steps"], 12)
        self.assertFalse(replay(*paths[1:])["same"])

    def test_wrong(self):
        for how, problem, text in (
                ({"world": 4, "nodes": 3}, IndexError, "nodes is 3, which does not divide the 4 ranks"),
                ({"world": 4, "nodes": 8}, IndexError, "nodes is 8, which does not divide the 4 ranks"),
                ({"world": 4, "nodes": 2, "balance": .01}, tokmap.TokmapError, "nodes and balance both say"),
                ({"world": 4, "nodes": -1}, (tokmap.ArgumentError, IndexError), "nodes"),
                ({"world": 4, "nodes": "two"}, tokmap.ArgumentError, "nodes")):
            with self.assertRaisesRegex(problem, text):
                self.loader(rank=0, **how)
        for order in ("shuffle", "sequential"):
            with tokmap.Run(text=self.text.replace("blocks 4 8", order)) as run:
                with self.assertRaisesRegex(tokmap.TokmapError, "nodes needs a run with 'order even W SPAN' or 'order blocks W SPAN'"):
                    run.loader(rank=0, world=4, nodes=2)
                run.loader(rank=0, world=4, nodes=1).close()


if __name__ == "__main__":
    unittest.main()
