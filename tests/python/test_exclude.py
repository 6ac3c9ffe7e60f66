# SPDX-License-Identifier: MIT
"""Documents that a run excludes from a step on: what loaders of all kinds deliver, and what they refuse."""
import os
import pickle
import unittest

import tokmap
from support import WithData, values

SEQ, BATCH, FROM = 16, 6, 8


class Excluded(WithData):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.list = os.path.join(cls.folder, "takedown.txt")
        with open(cls.list, "w") as file:
            file.write("data 3\ndata 4\ndata 11\ndata 30\ndata 31\ndata 32\ndata 33\n")
        cls.hidden = {3, 4, 11, 30, 31, 32, 33}
        cls.of = []  # the document of each token
        with tokmap.Dataset(cls.prefix) as data:
            for number in range(data.info.documents):
                cls.of += [number] * len(data.document_tokens(number))

    def opened(self, **options):
        return tokmap.Run(**{**dict(data=self.prefix, seq_len=SEQ, batch=BATCH, seed=2, steps=40,
                                    exclude=[(self.list, FROM)]), **options})

    def row(self, run, place):
        """The tokens of a row, and whether each is excluded."""
        numbers = [(place.first_token + i) % len(self.of) for i in range(SEQ + 1)]
        hidden = [place.step >= FROM and self.of[x] in self.hidden for x in numbers]
        return [run.info.pad_id if gone else self.truth.tokens[x] for x, gone in zip(numbers, hidden)], hidden, numbers

    def test_loaders(self):
        run, gone = self.opened(), 0
        for options in (dict(threads=0), dict(threads=1), dict(threads=1, deadline=5), dict(io_threads=2, threads=1)):
            with run.loader(fields="inputs targets labels loss_mask rows", framework="dlpack", **options) as loader:
                for b in loader:
                    for i, place in enumerate(b.places):
                        tokens, hidden, numbers = self.row(run, place)
                        counts = [not (hidden[j] or hidden[j + 1]) and self.of[numbers[j]] == self.of[numbers[j + 1]]
                                  and numbers[j + 1] for j in range(SEQ)]
                        self.assertEqual(list(values(b.rows)[i]), tokens)
                        self.assertEqual(list(values(b.inputs)[i]), tokens[:SEQ])
                        self.assertEqual(list(values(b.targets)[i]), tokens[1:])
                        self.assertEqual(list(values(b.loss_mask)[i]), [int(bool(c)) for c in counts])
                        self.assertEqual([shown.excluded for shown in run.documents(place.step, place.row)],
                                         [place.step >= FROM and shown.number in self.hidden
                                          for shown in run.documents(place.step, place.row)])
                        gone += sum(hidden[:SEQ])
                stats = loader.stats()
                self.assertGreater(stats.excluded, 0)
                self.assertEqual(stats.excluded, gone)
                self.assertIn(f"tokmap_loader_excluded_tokens_total{{rank=\"0\"}} {gone}\n", loader.prometheus())
                gone = 0

    def test_texts(self):
        with self.opened() as run, run.loader(fields="labels", framework="dlpack") as loader:
            for b in loader:
                for i, place in enumerate(b.places):
                    _, hidden, numbers = self.row(run, place)
                    tokens = [self.truth.tokens[x] for x, gone in zip(numbers[:SEQ], hidden) if not gone]
                    self.assertEqual(b.text(i), "".join(chr(token) for token in tokens if token < 256))

    def test_masked_targets(self):
        with self.opened() as run, run.loader(mask_targets=True, framework="dlpack") as loader:
            for b in loader:
                for i, place in enumerate(b.places):
                    tokens, hidden, numbers = self.row(run, place)
                    for j, target in enumerate(values(b.targets)[i]):
                        self.assertIn(target, (tokens[j + 1], tokmap.IGNORE))
                        if hidden[j] or hidden[j + 1]:
                            self.assertEqual(target, tokmap.IGNORE)

    def test_without_masks(self):
        """Targets of which nobody knows that they do not count are refused, also where a loader gets such a run."""
        run = self.opened()
        for fields in ("inputs targets", "targets", "inputs"):
            with self.assertRaisesRegex(tokmap.ArgumentError, f"excludes documents from step {FROM} on, .*mask_targets"):
                run.loader(fields=fields)
        run.loader(fields="rows position_ids").close()
        with self.opened(exclude=None).loader(fields="inputs targets") as loader:
            next(loader)
            with self.assertRaisesRegex(tokmap.ArgumentError, "mask_targets"):
                loader.reload(run)
            next(loader)  # it continues as before

    def test_reload(self):
        """A run that gains a list at a step that is not delivered yet; a list of a delivered step is refused."""
        before, after = self.opened(exclude=None), self.opened()
        with before.loader(mask_targets=True, fields="rows targets", framework="dlpack") as loader, \
                after.loader(mask_targets=True, fields="rows targets", framework="dlpack") as other:
            for b, wanted in zip(loader, other):
                self.assertEqual((values(b.rows), values(b.targets)), (values(wanted.rows), values(wanted.targets)))
                if b.step == FROM - 1 and b.last_in_step:
                    with self.assertRaisesRegex(tokmap.PastError, "data"):
                        loader.reload(self.opened(exclude=[(self.list, FROM - 1)]))
                    loader.reload(after)
        self.assertEqual(after.cursor(FROM), before.cursor(FROM))
        self.assertNotEqual(after.cursor(FROM + 1), before.cursor(FROM + 1))

    def test_others(self):
        run = self.opened()
        self.assertIn(f'exclude  "{self.list}" from {FROM}\n', run.text)
        self.assertEqual(tokmap.Run(text=run.text).cursor(20), run.cursor(20))
        self.assertEqual(pickle.loads(pickle.dumps(run)).cursor(20), run.cursor(20))
        self.assertIn(f'exclude  "{self.list}" from {FROM}\n', run.with_phase(30, batch=3).text)
        rows = run.dataset(fields="inputs labels", framework="dlpack")
        with run.loader(fields="inputs labels", framework="dlpack") as loader:
            for b, i in zip(loader, range(0, 40 * BATCH, BATCH)):
                for name in ("inputs", "labels"):
                    self.assertEqual([values(rows[i + k][name]) for k in range(BATCH)], values(getattr(b, name)))
        with run.evaluation(trained=True) as evaluation:
            self.assertNotIn("exclude", evaluation.text)
        for wrong in ([("x",)], ["ab c"], [("x", 1.5)], [(self.list, -1)]):
            with self.assertRaises(ValueError):
                self.opened(exclude=wrong)
        with self.assertRaisesRegex(ValueError, "exclude has 'x.txt', but it must have pairs of a list and a step"):
            self.opened(exclude="x.txt")
        with self.assertRaisesRegex(FileNotFoundError, "nothing.*does not exist"):
            self.opened(exclude=[("nothing", 3)])


if __name__ == "__main__":
    unittest.main()
