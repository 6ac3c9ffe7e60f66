# SPDX-License-Identifier: MIT
"""bench/peers/compare/systems: what each system delivers that is installed here. The tokens are their own places in the
file, so a row says which window it is."""
import array
import importlib
import os
import pickle
import shutil
import sys
import tempfile
import unittest

from support import TOP, importable

COMPARE = os.path.join(TOP, "bench", "peers", "compare")
SYSTEMS = sorted(name[:-3] for name in os.listdir(os.path.join(COMPARE, "systems"))
                 if name.endswith(".py") and not name.startswith("_"))
COUNT, SEQ, ROWS = 20139, 64, 4
ALL = os.environ.get("TOKMAP_ALL_SYSTEMS")  # rows with several workers, too, which take their time to start
MODULES = {"mosaicml-streaming": "streaming", "megatron-core": "megatron.core"}


def compare_modules():
    """The modules of the folder, which are scripts beside each other. Their names are common words, so they are there
    only while these tests run."""
    sys.path.insert(0, COMPARE)
    try:
        return importlib.import_module("tokens"), importlib.import_module("measure"), importlib.import_module("report")
    finally:
        sys.path.remove(COMPARE)


class Systems(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tokens_module, cls.measure, cls.report = compare_modules()
        sys.path.insert(0, COMPARE)
        cls.work = tempfile.mkdtemp(prefix="a folder ")
        path = os.path.join(cls.work, "tokens.bin")
        with open(path, "wb") as file:
            array.array("H", range(COUNT)).tofile(file)
        cls.tokens = cls.tokens_module.Tokens(path, 2, COUNT, SEQ, ROWS, cls.work)

    @classmethod
    def tearDownClass(cls):
        sys.path[:] = [path for path in sys.path if path != COMPARE]
        shutil.rmtree(cls.work, ignore_errors=True)

    def system(self, name):
        if name.startswith("tokmap"):
            self.skipTest("tokmap's own rows are tested by test_bench_compare.py")
        module = importlib.import_module(f"systems.{name}")
        for package in module.PACKAGES:
            reason = importable(MODULES.get(package, package))
            if reason is not None:
                self.skipTest(f"{package} is not usable: {reason}")
        folder = os.path.join(self.work, name)
        os.makedirs(folder, exist_ok=True)
        if hasattr(module, "convert"):
            module.convert(self.tokens, folder)
        return module, folder

    def rows(self, loader, batches):
        """The rows of so many batches: pairs of lists. Their targets are the next tokens of their inputs."""
        found = []
        for _ in range(batches):
            inputs, targets = loader.next()
            self.assertEqual(tuple(inputs.shape), (ROWS, SEQ))
            self.assertEqual(tuple(targets.shape), (ROWS, SEQ))
            for one, two in self.measure.rows_of(inputs, targets, SEQ):
                found.append((array.array("q", one).tolist(), array.array("q", two).tolist()))
        return found

    def opened(self, module, folder, order, more, **options):
        try:
            return module.open(self.tokens, folder, order=order, **options, **more)
        except self.report.Absent as problem:
            self.skipTest(str(problem))

    def check_order(self, module, folder, order, more):
        step = SEQ + (1 if getattr(module, "DISJOINT", False) else 0)
        loader = self.opened(module, folder, order, more)
        # A list begins again at its end, in the middle of a batch.
        found = self.rows(loader, self.epoch_of(module) + 3 if order == "list" else 6)
        loader.close()
        if order == "own":
            for inputs, targets in found:
                self.assertEqual(inputs, list(range(inputs[0], inputs[0] + SEQ)))
                self.assertEqual(targets, list(range(inputs[0] + 1, inputs[0] + SEQ + 1)))
            return
        windows = self.tokens.first_windows(order, len(found), step > SEQ)
        wanted = [(list(range(n * step, n * step + SEQ)), list(range(n * step + 1, n * step + SEQ + 1)))
                  for n in windows]
        self.assertEqual([row[0][0] for row in found], [row[0][0] for row in wanted])
        self.assertEqual(found, wanted)

    def resumed(self, module, folder, order, more, state, batches=2):
        """The first rows of a new loader that starts at a state, and its own state after them."""
        loader = self.opened(module, folder, order, more, resume=pickle.loads(pickle.dumps(state)))
        found = self.rows(loader, batches)
        state = loader.state()
        loader.close()
        return found, state

    def check_resume(self, module, folder, order, more):
        """A loader that starts at a state delivers what the first one delivered after it: in the first epoch, again at
        the state of the second loader, and in the next epoch."""
        epoch = self.epoch_of(module)
        loader = self.opened(module, folder, order, more)
        self.rows(loader, 5)
        early = loader.state()
        if early is None:
            loader.close()
            return
        wanted = self.rows(loader, epoch)
        late = loader.state()
        then = self.rows(loader, 2)
        loader.close()
        found, state = self.resumed(module, folder, order, more, early)
        self.assertEqual(found, wanted[:2 * ROWS])
        found, _ = self.resumed(module, folder, order, more, state)
        self.assertEqual(found, wanted[2 * ROWS:4 * ROWS])
        found, _ = self.resumed(module, folder, order, more, late)
        self.assertEqual(found, then)

    def epoch_of(self, module):
        """The batches of an epoch."""
        return self.tokens.windows(getattr(module, "DISJOINT", False)) // ROWS

    def check_epoch(self, module, folder, more):
        """The random order of an epoch delivers no window twice."""
        loader = self.opened(module, folder, "own", more)
        starts = [inputs[0] for inputs, _ in self.rows(loader, self.epoch_of(module))]
        loader.close()
        self.assertNotEqual(starts, sorted(starts))
        self.assertEqual(len(set(starts)), len(starts))

    def test_modules(self):
        """What needs no package: each module has the parts that driver.py lists, and imports nothing else."""
        for name in SYSTEMS:
            with self.subTest(system=name):
                module = importlib.import_module(f"systems.{name}")
                self.assertEqual(module.NAME, name)
                parts = ("command",) if hasattr(module, "command") else ("about", "open")
                self.assertTrue(all(callable(getattr(module, part)) for part in parts))
                self.assertTrue(module.ROWS)
                for options in module.ROWS.values():
                    orders = module.orders_of(options) if hasattr(module, "orders_of") else module.ORDERS
                    self.assertTrue(orders)
                    self.assertLessEqual(set(orders), {"sequential", "list", "own"})

    def check_all(self, name):
        module, folder = self.system(name)
        self.assertTrue(module.about())
        for label, more in module.ROWS.items():
            if more.get("workers", 0) > 1 and not ALL:
                continue
            orders = module.orders_of(more) if hasattr(module, "orders_of") else module.ORDERS
            for order in orders:
                with self.subTest(row=label, order=order):
                    self.check_order(module, folder, order, more)
                    self.check_resume(module, folder, order, more)
                    if order == "own":
                        self.check_epoch(module, folder, more)


for one in SYSTEMS:
    setattr(Systems, f"test_{one}", lambda self, name=one: self.check_all(name))
