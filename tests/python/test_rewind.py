# SPDX-License-Identifier: MIT
"""Reading a run more than once: a second loop after the end, loader.rewind(), and what a loop after break does."""
import pickle
import threading
import unittest

import tokmap
from support import WithData, python, values


def delivered(loader):
    return [(b.step, b.first_row, b.count, b.last_in_step, values(b.inputs)) for b in loader]


class Rewind(WithData):
    def test_a_second_loop_raises(self):
        """An evaluation that loops twice must not get nothing the second time."""
        loader = self.run_of().loader(framework="dlpack")
        for b in loader:
            pass
        for loop in (lambda: [b for b in loader], lambda: list(loader), lambda: dict(zip(range(3), loader)),
                     lambda: iter(loader)):
            with self.assertRaisesRegex(tokmap.ArgumentError, "delivered the whole run") as caught:
                loop()
            self.assertIn("loader.rewind()", str(caught.exception))
            self.assertIn("run.loader()", str(caught.exception))
        with self.assertRaises(StopIteration):  # the rule for iterators
            next(loader)

    def test_the_same_batches_again(self):
        for options in ({}, {"threads": 0}, {"rows": 4}, {"rank": 1, "world": 4, "rows": 1}):
            loader = self.run_of().loader(framework="dlpack", **options)
            first = delivered(loader)
            self.assertEqual(first[0][0], 0)
            for stop in (None, 0, 1, 5):
                loader.rewind()
                if stop is None:
                    self.assertEqual(delivered(loader), first)
                else:
                    self.assertEqual([delivered([next(loader)])[0] for _ in range(stop)], first[:stop])
            loader.rewind()
            self.assertEqual(delivered(loader), first)
            self.assertEqual(loader.stats().batches, 3 * len(first) + 6)

    def test_a_batch_of_the_whole_pass_leaves_no_window_out(self):
        """The README's way to evaluate everything: batch is the number of windows."""
        probe = self.run_of(batch=1, passes=1, order="sequential").info
        self.assertGreater(self.run_of(batch=probe.delivered - 1, passes=1).info.remainder, 0)
        run = self.run_of(batch=probe.delivered, passes=1, order="sequential")
        self.assertEqual((run.info.delivered, run.info.remainder), (1, 0))
        counts = [b.count for b in run.loader(rows=7, framework="dlpack")]
        self.assertEqual(sum(counts), probe.delivered)
        self.assertLessEqual(max(counts), 7)

    def test_it_returns_to_where_the_loader_was_opened(self):
        run = self.run_of()
        loader = run.loader(framework="dlpack", resume=run.cursor(7))
        first = delivered(loader)
        self.assertEqual(first[0][0], 7)
        loader.rewind()
        self.assertEqual(delivered(loader), first)
        # A state that is loaded moves the loader, but not its beginning: the rest of an interrupted evaluation is
        # followed by whole ones.
        loader = run.loader(framework="dlpack")
        loader.load_state_dict(run.cursor(7))
        self.assertEqual(delivered(loader), first)
        for _ in range(2):
            loader.rewind()
            whole = delivered(loader)
            self.assertEqual((whole[0][0], whole[7:]), (0, first))

    def test_the_state(self):
        loader = self.run_of().loader(framework="dlpack", rows=2)
        start = loader.state_dict()
        for stop in (1, 3, 4):
            for _ in range(stop):
                next(loader)
            loader.rewind()
            self.assertEqual(loader.state_dict(), start)
        for _ in range(3):
            next(loader)
        state = loader.state_dict()
        self.assertEqual(state["step"], 1)
        loader.rewind()
        loader.load_state_dict(state)
        self.assertEqual(next(loader).step, 1)

    def test_after_break_a_loop_continues(self):
        loader = self.run_of().loader(framework="dlpack")
        for b in loader:
            if b.step == 3:
                break
        self.assertEqual(next(iter(loader)).step, 4)
        for b in loader:
            self.assertEqual(b.step, 5)
            break

    def test_a_state_at_the_end_is_not_a_second_loop(self):
        """A training program that is started again after it has finished has nothing left to do."""
        run = self.run_of()
        done = run.loader(framework="dlpack", resume=run.cursor(run.info.steps))
        self.assertEqual(list(done), [])
        with self.assertRaisesRegex(tokmap.ArgumentError, "delivered the whole run"):
            list(done)

    def test_pickled(self):
        run = self.run_of()
        loader = run.loader(framework="dlpack", resume=run.cursor(2))
        next(loader)
        again = pickle.loads(pickle.dumps(loader))
        self.assertEqual(next(again).step, 3)
        again.rewind()
        self.assertEqual(next(again).step, 2)

    def test_closed(self):
        loader = self.run_of().loader(framework="dlpack")
        loader.close()
        with self.assertRaisesRegex(tokmap.ArgumentError, "is closed"):
            loader.rewind()

    def test_batches_before_stay_valid(self):
        loader = self.run_of().loader(framework="dlpack")
        batches = [next(loader) for _ in range(3)]
        before = [values(b.inputs) for b in batches]
        loader.rewind()
        for _ in loader:
            pass
        self.assertEqual([values(b.inputs) for b in batches], before)

    def test_statistics_from_another_thread(self):
        loader, stop = self.run_of().loader(framework="dlpack"), threading.Event()
        wrong = []

        def watch():
            while not stop.is_set():
                stats = loader.stats()
                if not 0 <= stats.ring_ready <= stats.ring_slots:
                    wrong.append(stats)
        thread = threading.Thread(target=watch)
        thread.start()
        for _ in range(30):
            next(loader)
            loader.rewind()
        stop.set()
        thread.join()
        self.assertEqual(wrong, [])

    def test_on_a_signal(self):
        """A handler that interrupts a call of the loader cannot rewind it; the message says what to do instead."""
        self.assertEqual(python("""
import signal, sys, tokmap
loader = tokmap.Run(data=sys.argv[1], seq_len=8, batch=2).loader(framework="dlpack")
with loader._lock:  # as if next() were running
    try:
        loader.rewind()
    except tokmap.ArgumentError as problem:
        print("set a flag" in str(problem))
""", self.prefix), "True\n")


if __name__ == "__main__":
    unittest.main()
