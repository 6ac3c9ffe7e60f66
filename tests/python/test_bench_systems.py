"""bench/peers/compare/systems: what each system delivers that is installed here. The tokens are their own places in the
file, so a row says which window it is, and an epoch says which tokens it lost or repeated."""
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
COUNT, SEQ, ROWS = 20011, 64, 4
ALL = os.environ.get("TOKMAP_ALL_SYSTEMS")  # rows with several workers, too, which take their time to start
MODULES = {"mosaicml-streaming": "streaming", "megatron-core": "megatron.core", "ai2-olmo-core": "olmo_core"}


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
        cls.before = set(sys.modules)
        cls.tokens_module, cls.measure, cls.report = compare_modules()
        sys.path.insert(0, COMPARE)
        cls.work = tempfile.mkdtemp(prefix="a folder ")
        path = os.path.join(cls.work, "tokens.bin")
        with open(path, "wb") as file:
            array.array("H", range(COUNT)).tofile(file)
        cls.tokens = cls.tokens_module.Tokens(path, 2, COUNT, SEQ, ROWS, cls.work)

    @classmethod
    def tearDownClass(cls):
        sys.path.remove(COMPARE)
        shutil.rmtree(cls.work, ignore_errors=True)

    def system(self, name):
        if name == "tokmap":
            self.skipTest("tokmap's own loader has its own tests")
        module = importlib.import_module(f"systems.{name}")
        for package in module.PACKAGES:
            reason = importable(MODULES.get(package, package))
            if reason is not None:
                self.skipTest(f"{package} is not usable: {reason}")
        if hasattr(module, "prepare"):
            self.skipTest("it is built from sources that the user names")
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
        found = self.rows(loader, 6)
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

    def check_resume(self, module, folder, order, more):
        """A loader that starts at a state delivers what the first one delivered after it, and again at its own state."""
        loader = self.opened(module, folder, order, more)
        self.rows(loader, 5)
        state = loader.state()
        if state is None:
            loader.close()
            return
        wanted = self.rows(loader, 6)
        loader.close()
        again = self.opened(module, folder, order, more, resume=pickle.loads(pickle.dumps(state)))
        found = self.rows(again, 2)
        state = again.state()
        again.close()
        self.assertEqual(found, wanted[:2 * ROWS])
        third = self.opened(module, folder, order, more, resume=pickle.loads(pickle.dumps(state)))
        found = self.rows(third, 2)
        third.close()
        self.assertEqual(found, wanted[2 * ROWS:4 * ROWS])

    def check_all(self, name):
        module, folder = self.system(name)
        self.assertEqual(module.NAME, name)
        self.assertTrue(module.about())
        for label, more in module.ROWS.items():
            if more.get("workers", 0) > 1 and not ALL:
                continue
            orders = module.orders_of(more) if hasattr(module, "orders_of") else module.ORDERS
            for order in orders:
                with self.subTest(row=label, order=order):
                    self.check_order(module, folder, order, more)
                    self.check_resume(module, folder, order, more)


for one in SYSTEMS:
    setattr(Systems, f"test_{one}", lambda self, name=one: self.check_all(name))
