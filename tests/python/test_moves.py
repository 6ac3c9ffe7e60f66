# SPDX-License-Identifier: MIT
"""Loaders of runs with phases: shapes, repartition, reload, traces and `tokmap replay`, statistics of sources, metrics,
hooks, deadlines. And teams of loaders with nodes that move in all ways."""
import json
import os
import pickle
import random
import subprocess
import unittest
from time import sleep

import tokmap
from support import TOP, new_folder

TOOL = os.path.join(TOP, "build", "bin", "tokmap")
TEXT = """seq_len 32
batch 6
seed 7
source a synthetic:vocab=1000,tokens=9000,seed=1
source b synthetic:vocab=1000,tokens=5000,seed=2
phase 0 a 0.7 b 0.3
phase 5 batch 10
phase 9 a 1 b 3 seq_len 64
phase 14 batch 4 seq_len 16
skip 3..4
steps 20
"""


def sums(loader):
    """What a loader delivers: for each step, a list of rows with their numbers."""
    steps = {}
    for batch in loader:
        assert batch.inputs.shape == (batch.count, batch.seq_len) and batch.real_rows == batch.count
        rows = steps.setdefault(batch.step, [])
        rows += [(batch.first_row + i, batch.inputs[i].tolist()) for i in range(batch.count)]
    return steps


def replay(run, *arguments):
    """What `tokmap replay` finds."""
    done = subprocess.run([TOOL, "replay", run, "--json", "--progress", "none", *arguments], capture_output=True,
                          text=True)
    if done.returncode not in (0, 1):
        raise AssertionError(done.stderr)
    return json.loads(done.stdout) if done.stdout else done.stderr


class Moves(unittest.TestCase):
    def setUp(self):
        self.folder = new_folder()
        self.path = os.path.join(self.folder, "train.run")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(TEXT)
        self.run_ = tokmap.Run(self.path)
        self.addCleanup(self.run_.close)

    def loader(self, run=None, **options):
        return (run or self.run_).loader(framework="dlpack", **options)

    def replay(self, *arguments):
        return replay(self.path, *arguments)

    def test_shapes_of_phases(self):
        with self.loader(rank=0, world=1, rows=3) as loader:
            whole = sums(loader)
            self.assertEqual(sorted(whole), [step for step in range(20) if step != 3])
            self.assertEqual({step: len(rows) for step, rows in whole.items()},
                             {step: self.run_.rows(step) for step in whole})
            loader.rewind()
            self.assertEqual(len(loader), sum(1 for _ in loader))
        parts = [sums(self.loader(rank=rank, world=3, rows=2)) for rank in range(3)]
        for step, rows in whole.items():
            self.assertEqual(sorted(rows), sorted(row for part in parts for row in part[step]))

    def test_out_follows_the_phase(self):
        with self.loader(rank=0, world=1) as loader:
            out = loader.out()
            for _ in range(4):
                self.assertIs(loader.next(out).inputs, out["inputs"])
            with self.assertRaisesRegex(tokmap.TokmapError, r"\(10, 32\)"):
                loader.next(out)
            out = loader.out()
            self.assertEqual(loader.next(out).step, 5)

    def test_repartition_reload_replay(self):
        whole = sums(self.loader(rank=0, world=1))
        traces = [os.path.join(self.folder, f"rank{rank}.trace") for rank in range(4)]
        loaders = [self.loader(rank=rank, world=2, trace=traces[rank]) for rank in range(2)]
        seen = {}

        def step(loaders):
            for loader in loaders:
                batch = next(loader)
                self.assertTrue(batch.last_in_step)
                seen.setdefault(batch.step, []).extend(
                    (batch.first_row + i, batch.inputs[i].tolist()) for i in range(batch.count))
        for _ in range(6):
            step(loaders)
        state = loaders[0].state_dict()
        for rank, loader in enumerate(loaders):
            loader.repartition(rank, 4)
        self.assertEqual(loaders[1].state_dict(), state)
        loaders += [self.loader(rank=rank, world=4, trace=traces[rank], resume=state) for rank in (2, 3)]
        for _ in range(5):
            step(loaders)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("skip 17..18\n")
        edited = tokmap.Run(self.path)
        for loader in loaders:
            loader.reload(edited)
            self.assertIs(loader.run, edited)
        self.run_.close()
        while not loaders[0]._ended and max(seen) < 19:
            step(loaders)
        whole.pop(17)
        self.assertEqual({step: sorted(rows) for step, rows in seen.items()},
                         {step: sorted(rows) for step, rows in whole.items()})
        stats = loaders[0].source_stats()
        self.assertEqual(set(stats), {"a", "b"})
        self.assertEqual(sum(each.rows for each in stats.values()), loaders[0].stats().rows)
        for loader in loaders:
            loader.close()
        edited.close()
        said = self.replay("--trace", *traces)
        self.assertTrue(said["same"], said)
        self.assertEqual((said["steps"], said["sections"]), (18, 2 * 3 + 2 * 2))
        said = self.replay("--trace", *traces[:3])
        self.assertEqual((said["same"], said["first"]["kind"], said["first"]["step"], said["first"]["rank"]),
                         (False, "missing", 7, 3))
        with open(traces[1], "r+b") as file:  # the sum of its second step
            file.seek(64 + 16 + 8)
            file.write(b"\0" * 4)
        said = self.replay("--trace", *traces)
        self.assertEqual((said["same"], said["first"]["kind"], said["first"]["step"], said["first"]["rank"]),
                         (False, "differs", 1, 1))
        self.assertTrue(self.replay("--steps", "7..16", "--trace", *traces)["same"])
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(TEXT.replace("seed 7", "seed 8"))
        said = self.replay("--trace", *traces)["first"]  # nothing is past before step 0, so its rows differ
        self.assertEqual((said["kind"], said["step"]), ("differs", 0))
        said = self.replay("--steps", "7..16", "--trace", *traces)["first"]
        self.assertEqual((said["kind"], said["step"]), ("past", 7))

    def test_a_run_with_another_past_is_refused(self):
        loader = self.loader(rank=0, world=1)
        next(loader)
        with tokmap.Run(text=TEXT.replace("seed 7", "seed 8")) as other:
            with self.assertRaises(tokmap.PastError):
                loader.reload(other)
        self.assertEqual(next(loader).step, 1)
        loader.close()

    def test_load_state_dict_with_a_trace(self):
        trace = os.path.join(self.folder, "own.trace")
        loader = self.loader(rank=0, world=1, trace=trace)
        for _ in range(3):
            next(loader)
        state = loader.state_dict()
        self.assertEqual(os.path.getsize(trace), 64 + 3 * 16)  # saving a state writes what belongs to it
        next(loader)
        loader.load_state_dict(state)
        self.assertEqual(next(loader).step, 4)
        loader.close()
        self.assertTrue(self.replay("--trace", trace)["same"])

    def test_prometheus(self):
        with self.loader(rank=0, world=1, threads=0) as loader:
            for _ in range(7):
                next(loader)
            text = loader.prometheus({"job": 'a"b\\c'})
            rows = loader.stats().rows
            stats = loader.source_stats()
            with self.assertRaises(tokmap.ArgumentError):
                loader.prometheus({"not a name": "x"})
        self.assertIn(f'tokmap_loader_rows_total{{rank="0",job="a\\"b\\\\c"}} {rows}\n', text)
        try:
            from prometheus_client.parser import text_string_to_metric_families
        except ImportError:
            self.skipTest("prometheus_client is not installed")
        found = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self.assertEqual((sample.labels["rank"], sample.labels["job"]), ("0", 'a"b\\c'))
                found[sample.name, sample.labels.get("source"), sample.labels.get("le")] = sample.value
        self.assertEqual(found["tokmap_loader_rows_total", None, None], rows)
        self.assertEqual(found["tokmap_loader_wait_seconds_count", None, None], 7)
        self.assertEqual(found["tokmap_loader_wait_seconds_bucket", None, "+Inf"], 7)
        for name, each in stats.items():
            self.assertEqual(found["tokmap_loader_source_tokens_total", name, None], each.tokens)

    def test_hooks(self):
        names, stalls = [], []
        with self.loader(rank=0, world=1, threads=0, range_push=names.append,
                         range_pop=lambda: names.append("pop")) as loader:
            next(loader)
        self.assertEqual(names, ["tokmap next", "tokmap fill", "pop", "tokmap wait", "pop", "pop"])
        with self.assertRaises(tokmap.ArgumentError):
            self.loader(rank=0, world=1, range_push=names.append)
        with tokmap.Run(data="synthetic:vocab=1000", seq_len=4096, batch=8, steps=120) as run:
            def slow(name):  # the producer's thread calls it, so that next() has to wait on any machine
                if name == "tokmap fill":
                    sleep(0.001)
            with self.loader(run, rank=0, world=1, ring_bytes=100000, alarm=stalls.append, alarm_calls=50,
                             alarm_percent=1, range_push=slow, range_pop=lambda: None) as loader:
                for _ in loader:
                    pass
                self.assertEqual(loader.stats().alarms, len(stalls))
        self.assertTrue(stalls)
        self.assertEqual(stalls[0].calls, 50)


BLOCKS = """seq_len 8
batch 24
order even 3 4
source a synthetic:vocab=50,tokens=40000
phase 0 a 1
steps 40
"""


class Nodes(unittest.TestCase):
    """What a loader with nodes says and delivers after moves, whatever it was opened with."""
    def setUp(self):
        self.run_ = tokmap.Run(text=BLOCKS)
        self.addCleanup(self.run_.close)

    def loader(self, rank, world, nodes, **options):
        return self.run_.loader(rank=rank, world=world, nodes=nodes, framework="dlpack", **options)

    def same(self, loader, other):
        """The next batches of two loaders are the same, and say which rows they have."""
        b, wanted = next(loader), next(other)
        self.assertEqual((b.step, list(b.row_numbers), b.places, b.first_row, b.epoch, b.inputs.tolist()),
                         (wanted.step, list(wanted.row_numbers), wanted.places, wanted.first_row, wanted.epoch,
                          wanted.inputs.tolist()))
        self.assertEqual([place.row for place in b.places], list(b.row_numbers))
        self.assertEqual(b.locate(b.count - 1), wanted.locate(b.count - 1))
        for i, row in enumerate(b.row_numbers):
            data, place = self.run_.sources[0].dataset, self.run_.locate(b.step, row)
            self.assertEqual(b.inputs.tolist()[i], list(data.tokens(place.first_token, 8)))
        return b

    def test_rows_are_those_delivered(self):
        """One node that becomes several assigns its rows from then on, and the other way round."""
        with self.loader(0, 1, 1) as loader:
            for world, nodes in ((2, 2), (6, 6), (1, 1), (3, 3)):
                loader.repartition(0, world)
                self.assertEqual((loader.rank, loader.world, loader.nodes), (0, world, nodes))
                with self.loader(0, world, nodes, resume=loader.state_dict()) as other:
                    rows = self.same(loader, other).row_numbers
                    self.assertEqual(isinstance(rows, range), world == 1)
            self.assertIn("rank 0 of 3", repr(loader))
        with self.loader(1, 4, 0) as loader:
            loader.repartition(1, 8)
            self.assertEqual((loader.nodes, list(next(loader).row_numbers)), (0, [3, 4, 5]))

    def test_all_that_opens_again(self):
        """A state, the start, and a pickle: each opens with the nodes of the last move."""
        with self.loader(1, 4, 2, rows=2) as loader:
            next(loader), next(loader), next(loader)
            state = loader.state_dict()
            loader.repartition(2, 8)
            for again in (lambda: loader.load_state_dict(state), loader.rewind,
                          lambda: loader.load_state_dict(self.run_.cursor(7)), loader.rewind,
                          lambda: loader.reload(self.run_), lambda: loader.load_state_dict(state), loader.rewind):
                again()
                with self.loader(2, 8, 4, rows=2, resume=loader.state_dict()) as other:
                    self.same(loader, other)
                    with pickle.loads(pickle.dumps(loader)) as third:
                        self.assertEqual((third.rank, third.world, third.nodes, third.rows), (2, 8, 4, 2))
                        third.rewind()
                        loader.rewind()
                        self.same(third, loader)
                        third.repartition(0, 4)
                        self.assertEqual(third.nodes, 2)

    def test_traces(self):
        """They say which nodes there were, and `tokmap replay` finds each row of each step once."""
        folder = new_folder()
        path = os.path.join(folder, "blocks.run")
        with open(path, "w", encoding="utf-8") as file:
            file.write(BLOCKS.replace("40\n", "9\n"))
        traces = [os.path.join(folder, f"{rank}.trace") for rank in range(8)]
        with tokmap.Run(path) as run:
            team = [run.loader(rank=rank, world=4, nodes=2, trace=traces[rank]) for rank in range(4)]
            for loader in team * 3:
                next(loader)
            for rank, loader in enumerate(team):
                loader.repartition(rank, 8)
            state = team[0].state_dict()
            team += [run.loader(rank=rank, world=8, nodes=team[0].nodes, trace=traces[rank], resume=state)
                     for rank in range(4, 8)]
            for loader in team * 2:
                next(loader)
            state = team[7].state_dict()
            for loader in team:
                loader.load_state_dict(state)
            for loader in team:
                for _ in loader:
                    pass
                loader.close()
        said = replay(path, "--trace", *traces)
        self.assertTrue(said["same"], said)
        self.assertEqual(said["steps"], 9)

    def test_teams(self):
        """Survivors and newcomers have each row of a step once, after any moves."""
        choose = random.Random(5)
        for _ in range(12):
            world, nodes = choose.choice(((4, 2), (2, 1), (6, 3), (6, 2), (1, 1), (4, 0)))
            rows = choose.randrange(3)
            team = [self.loader(rank, world, nodes, rows=rows) for rank in range(world)]
            for _ in range(12):
                move = choose.randrange(5)
                if move == 0:
                    each, before = world // nodes if nodes else 1, team[0].state_dict()
                    world = each * choose.choice((1, 2, 3, 4))
                    nodes = world // each if nodes else 0
                    for loader in team[world:]:
                        loader.close()
                    for rank, loader in enumerate(team[:world]):
                        loader.repartition(rank, world)
                    team = team[:world]
                    team += [self.loader(rank, world, team[0].nodes, rows=rows, resume=before)
                             for rank in range(len(team), world)]
                elif move == 1:
                    team = [pickle.loads(pickle.dumps(loader)) for loader in team]
                elif move == 2:
                    state = self.run_.cursor(choose.randrange(20))
                    for loader in team:
                        loader.load_state_dict(state)
                elif move == 3:
                    for loader in team:
                        loader.reload(self.run_)
                self.assertEqual({(loader.world, loader.nodes) for loader in team}, {(world, nodes)})
                resume, seen = team[0].state_dict(), []
                for rank, loader in enumerate(team):
                    with self.loader(rank, world, nodes, rows=rows, resume=resume) as other:
                        for _ in range(loader.calls):
                            seen += self.same(loader, other).row_numbers
                self.assertEqual(sorted(seen), list(range(24)))
            for loader in team:
                loader.close()


if __name__ == "__main__":
    unittest.main()
