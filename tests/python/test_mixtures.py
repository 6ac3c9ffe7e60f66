# SPDX-License-Identifier: MIT
"""Runs of several sources and phases, made from keyword arguments: the text that they equal, and what they deliver."""
import decimal
import os
import pickle
import re
import subprocess
import unittest

import tokmap
from tokmap.errors import class_of
from support import TOKMAP, Truth, WithData, needs, new_folder, pack, values

WEB, WIKI = "synthetic:vocab=100,tokens=100000", "synthetic:vocab=100,tokens=20000,seed=4"


def mixture(**more):
    return tokmap.Run(**{**dict(sources={"web": WEB, "wiki": WIKI}, weights={"web": 3, "wiki": 1}, seq_len=100,
                                batch=10, steps=200), **more})


class Text(unittest.TestCase):
    """run.text, and the arguments that lead to it."""

    def lines(self, **more):
        with mixture(**more) as run:
            text = run.text
            with tokmap.Run(text=text) as again:
                self.assertEqual(again.text, text)
                self.assertEqual(again.info, run.info)
            return [line.split() for line in text.splitlines()]

    def line(self, name, **more):
        return [" ".join(line) for line in self.lines(**more) if line[0] == name]

    def test_all(self):
        self.assertEqual(self.lines(seed=7, lookahead=2, order=("blocks", 8, 4), pad=9, tail="pad", steps=None,
                                    sources={"web": WEB, "wiki": dict(data=WIKI, epochs=40)},
                                    phases=[dict(step=50, weights="natural", batch=20), dict(step=90, seq_len=200)],
                                    passes="2 of wiki", skip=[(3, 5), (7, 9)]), [
            ["seq_len", "100"], ["lookahead", "2"], ["batch", "10"], ["seed", "7"], ["order", "blocks", "8", "4"],
            ["tail", "pad"], ["pad", "9"], ["source", "web", WEB], ["source", "wiki", WIKI, "epochs<=40"],
            ["phase", "0", "web", "3", "wiki", "1"], ["phase", "50", "natural", "batch", "20"],
            ["phase", "90", "seq_len", "200"], ["skip", "3..5"], ["skip", "7..9"], ["passes", "2", "of", "wiki"]])

    def test_weights(self):
        for weights, text in (({"web": 0.8, "wiki": 0.1 + 0.2}, "web 0.8 wiki 0.3"),
                              ({"web": 1 / 3, "wiki": 1e-9}, "web 0.333333333 wiki 0.000000001"),
                              ({"web": 5, "wiki": decimal.Decimal("1e-3")}, "web 5 wiki 0.001"),
                              ({"wiki": 10 ** 15, "web": 0}, "wiki 1000000000000000 web 0"),
                              ({"web": "0.25", "wiki": "3"}, "web 0.25 wiki 3"),
                              ({"web": "natural", "wiki": "natural"}, "web natural wiki natural"),
                              ({"web": "tokens=150K", "wiki": "tokens=0.05M"}, "web tokens=150K wiki tokens=50K"),
                              ("natural", "natural")):
            self.assertEqual(self.line("phase", weights=weights), [f"phase 0 {text}"])
        for weights, problem in (({"web": -1, "wiki": 1}, "0 or more"), ({"web": float("nan")}, "0 or more"),
                                 ({"web": 1e-10, "wiki": 1}, "less than the smallest share"),
                                 ({"web": None}, "must be a number"), ({"web": True}, "must be a number"),
                                 ("even", "'natural' or a dict"), ([1, 2], "must be a dict")):
            with self.assertRaisesRegex(tokmap.ArgumentError, problem):
                mixture(weights=weights)

    def test_one_source_is_the_same_run(self):
        """Arguments that need a text, and those that do not, describe the same run, with the same cursors."""
        with tokmap.Run(data=WEB, seq_len=100, batch=10, seed=3, passes=1) as plain, \
                tokmap.Run(data=WEB, seq_len=100, batch=10, seed=3, passes=1, tail="drop") as other, \
                tokmap.Run({"sources": {"data": WEB}, "seq_len": 100, "batch": 10, "seed": 3, "passes": 1}) as third:
            self.assertEqual(plain.text, other.text)
            self.assertEqual(plain.text, third.text)
            self.assertEqual(plain.cursor(9), third.cursor(9))
            self.assertEqual(plain.locate(7, 3), third.locate(7, 3))
            self.assertEqual(plain.info.phases, 1)

    def test_names_that_need_quotes(self):
        folder = new_folder()  # its name has a space
        prefix = pack(folder, 'we"b #1')
        with tokmap.Run(sources={"a": prefix, "b": WEB}, weights="natural", seq_len=10) as run:
            self.assertIn('source   a "', run.text)
            with tokmap.Run(text=run.text) as again:
                self.assertEqual(again.sources[0].dataset.info, run.sources[0].dataset.info)
        with tokmap.Run(sources={"a": os.path.basename(prefix)}, folder=folder, seq_len=10) as run:
            self.assertEqual(pickle.loads(pickle.dumps(run)).text, run.text)
        with self.assertRaisesRegex(tokmap.ArgumentError, "control character"):
            tokmap.Run(sources={"a": "new\nline"}, seq_len=10)

    def test_pickled(self):
        run = mixture(phases=[dict(step=50, weights={"wiki": 1}, batch=20)])
        again = pickle.loads(pickle.dumps(run))
        self.assertEqual(again.text, run.text)
        self.assertEqual(again.cursor(60), run.cursor(60))

    def test_wrong(self):
        for arguments, kind, problem in (
                (dict(weights=None), tokmap.ArgumentError, "weights='natural'"),
                (dict(weights={"web": 1, "wikis": 1}), tokmap.RunError,
                 r"no source 'wikis'; did you mean 'wiki'\? \(phase 0 web 1 wikis 1\)"),
                (dict(weights={"web": 1}), tokmap.RunError, "no phase names source 'wiki'"),
                (dict(phases=[dict(step=0, weights="natural")]), tokmap.ArgumentError, "pass one of the two"),
                (dict(phases=[dict(steps=5)]), tokmap.ArgumentError, "unknown key 'steps'.*step, weights, batch"),
                (dict(phases=[dict(batch=5)]), tokmap.ArgumentError, "no key 'step'"),
                (dict(phases=[dict(step=5, batch="many")]), tokmap.ArgumentError, "batch of a phase is 'many'"),
                (dict(phases=[dict(step=9, batch=5), dict(step=8, batch=6)]), tokmap.RunError, "order the lines"),
                (dict(sources={"web": dict(path=WEB)}), tokmap.ArgumentError, "unknown key 'path'"),
                (dict(sources={"web": dict(epochs=3)}), tokmap.ArgumentError, "no key 'data'"),
                (dict(sources={"web": 3}), tokmap.ArgumentError, "must be a dict"),
                (dict(sources=[WEB]), tokmap.ArgumentError, "must be a dict"),
                (dict(order=("blocks", 3)), tokmap.ArgumentError, "'blocks', W, SPAN"),
                (dict(order="random"), tokmap.ArgumentError, "'shuffle', 'sequential'"),
                (dict(steps=None, passes="2 web"), tokmap.ArgumentError, "'2 of web'"),
                (dict(passes=2), tokmap.ArgumentError, "pass one of them"),
                (dict(stride=101), tokmap.RunError, "stride 101 is above seq_len 100"),
                (dict(reading="slowly"), tokmap.ArgumentError, "reading"),
                (dict(seq_len=None), tokmap.ArgumentError, "seq_len is missing"),
                (dict(data=WEB), tokmap.ArgumentError, "exactly one of")):
            with self.subTest(problem):
                with self.assertRaisesRegex(kind, problem):
                    mixture(**arguments)
        # 200 steps of 10 rows are 2000 draws, of which wiki gets 500, and an epoch has 199.
        with self.assertRaisesRegex(tokmap.TokmapError, "wiki.*step"):
            mixture(sources={"web": WEB, "wiki": dict(data=WIKI, epochs=2)})
        with self.assertRaisesRegex(tokmap.ArgumentError, "a dict or from arguments"):
            tokmap.Run({"data": WEB}, seq_len=4)
        with self.assertRaisesRegex(tokmap.ArgumentError, "path of a run file, or a dict"):
            tokmap.Run(17)


class Reading(WithData):
    """How tokens are read can be chosen for any run but a run file's, and changes no row."""

    def test_runs_of_sources_and_texts(self):
        sources = {"sources": {"web": self.prefix, "more": self.prefix}, "weights": {"web": 3, "more": 1}}
        text = f'seq_len 8\nbatch 4\nsteps 3\nsource web "{self.prefix}"\n'
        for arguments in (dict(sources, seq_len=8, batch=4, steps=3), dict(text=text),
                          dict(data=self.prefix, seq_len=8, batch=4, steps=3, stride=4),
                          dict(data=self.prefix, seq_len=8, batch=4, steps=3)):
            rows = []
            for reading in ("auto", "mapped", "pread"):
                with tokmap.Run(**arguments, reading=reading) as run:
                    for again in (run, pickle.loads(pickle.dumps(run))):
                        with again.loader(fields="inputs labels", framework="dlpack") as loader:
                            if reading != "auto":
                                self.assertEqual(loader.stats().reading, reading)
                            rows.append([batch.inputs.tolist() for batch in loader])
            self.assertEqual(len(rows[0]), 3)
            self.assertEqual(rows, rows[:1] * 6)
        path = self.file("one.run", text)
        with self.assertRaisesRegex(tokmap.ArgumentError, "sets seq_len, batch, seed and the other values itself"):
            tokmap.Run(path, reading="pread")


class Rows(unittest.TestCase):
    """What the phases say is what is delivered."""

    def test_shares(self):
        with mixture(phases=[dict(step=120, weights={"wiki": 1, "web": 1}, batch=20)]) as run:
            first, second = run.phases
            self.assertEqual((first.first_step, first.end_step, first.batch, second.end_step, second.batch),
                             (0, 120, 10, 200, 20))
            self.assertEqual([(s.source, s.weight, s.weights, s.draws) for s in first.shares],
                             [("web", 3, 4, 900), ("wiki", 1, 4, 300)])
            self.assertEqual([(s.source, s.weight, s.weights, s.draws) for s in second.shares],
                             [("web", 1, 2, 800), ("wiki", 1, 2, 800)])
            self.assertEqual((second.shares[1].first_epoch, second.shares[1].first_draw), divmod(300, 199))
            counted = {"web": 0, "wiki": 0}
            seen = set()
            for step in range(130):
                for name, count in counted.items():
                    self.assertEqual(run.drawn(name, step), count)
                for row in range(run.rows(step)):
                    place = run.locate(step, row)
                    name = run.sources[place.source].name
                    counted[name] += 1
                    seen.add((name, place.epoch, place.window))
            self.assertEqual(sum(counted.values()), 120 * 10 + 10 * 20)
            self.assertEqual(len(seen), sum(counted.values()))  # no window twice in an epoch
            place = run.locate(125, 17)
            self.assertIn(place, run.find(place.source, first_token=place.first_token, first_step=125, end_step=126))

    def test_calls(self):
        """Loader.calls is that of the largest phase, also while another is read."""
        with mixture(phases=[dict(step=50, batch=20)]) as run, \
                run.loader(rank=1, world=2, rows=4, framework="dlpack") as loader:
            self.assertEqual((run.info.batch_most, loader.calls, len(loader)), (20, 3, 2 * 50 + 3 * 150))
            self.assertEqual(sum(1 for _ in loader), 2 * 50 + 3 * 150)

    def test_padding(self):
        with tokmap.Run(data="synthetic:vocab=100,tokens=1000", seq_len=10, batch=7, passes=1, tail="pad") as run:
            self.assertEqual((run.info.steps, run.info.real_rows_last), (15, 2))
            self.assertEqual((run.real_rows(13), run.real_rows(14)), (7, 2))
            self.assertIsNone(run.locate(14, 2).source)
            self.assertIsNotNone(run.locate(14, 1).source)
            self.assertEqual(run.documents(14, 3), [])

    def test_a_dataset_needs_one_shape(self):
        with mixture(phases=[dict(step=50, batch=20)]) as run:
            with self.assertRaisesRegex(class_of("ERROR_UNSUPPORTED"), "step 50 of the run changes the batch"):
                run.dataset()

    @needs("numpy")
    def test_loader(self):
        """The rows of a mixture are those of its sources."""
        folder = new_folder()
        truths = [Truth(pack(folder, "web", seed=5)), Truth(pack(folder, "wiki", documents=9, seed=6))]
        with tokmap.Run(sources={"web": os.path.join(folder, "web"), "wiki": os.path.join(folder, "wiki")},
                        weights={"web": 2, "wiki": 1}, seq_len=24, batch=6, steps=20) as run:
            shown = [0, 0]
            with run.loader(rank=0, world=1, fields="inputs targets position_ids") as loader:
                for b in loader:
                    for row in range(b.count):
                        place = run.locate(b.step, row)
                        shown[place.source] += 1
                        want = truths[place.source].row(place, 24)
                        self.assertEqual(values(b.inputs[row]), want["inputs"])
                        self.assertEqual(values(b.targets[row]), want["targets"])
            self.assertEqual(shown, [80, 40])


class Continued(unittest.TestCase):
    """Runs that continue another one with other weights, batch, or length."""

    PLANNED = [dict(step=40, batch=20), dict(step=90, weights="natural", seq_len=200)]

    def test_its_text(self):
        with mixture(phases=self.PLANNED) as run:
            for step, change, phases in (
                    (20, dict(weights={"web": 1, "wiki": 1}),
                     ["0 web 3 wiki 1", "20 web 1 wiki 1", "40 batch 20", "90 natural seq_len 200"]),
                    (40, dict(weights={"web": 0.1}, batch=30),
                     ["0 web 3 wiki 1", "40 web 0.1 batch 30", "90 natural seq_len 200"]),
                    (91, dict(seq_len=50), ["0 web 3 wiki 1", "40 batch 20", "90 natural seq_len 200", "91 seq_len 50"]),
                    (0, dict(weights={"wiki": 2}), ["0 wiki 2", "40 batch 20", "90 natural seq_len 200"])):
                with run.with_phase(step, **change) as after, tokmap.Run(text=after.text) as again:
                    found = [" ".join(line.split()[1:]) for line in after.text.splitlines() if line.startswith("phase ")]
                    self.assertEqual(found, phases)
                    self.assertEqual([line for line in after.text.splitlines() if not line.startswith("phase ")],
                                     [line for line in run.text.splitlines() if not line.startswith("phase ")])
                    self.assertEqual((again.text, again.info), (after.text, after.info))
                    for t in range(step + 1):
                        self.assertEqual(after.cursor(t), run.cursor(t))
                    for t in range(step):
                        self.assertEqual(after.locate(t, 3), run.locate(t, 3))
                    self.assertNotEqual(after.cursor(step + 1), run.cursor(step + 1))
                    copy = pickle.loads(pickle.dumps(after))
                    self.assertEqual(copy.text, after.text)

    def test_of_one_source(self):
        with tokmap.Run(data=WEB, seq_len=100, batch=10, steps=50) as run:
            with run.with_phase(5, batch=4) as after:
                self.assertEqual([after.rows(t) for t in (4, 5, 49)], [10, 4, 4])
                with after.with_phase(30, batch=7) as later:
                    self.assertEqual([later.rows(t) for t in (4, 29, 30)], [10, 4, 7])

    def test_at_a_skipped_step(self):
        """A program that changes the run after each step does not know which steps are skipped."""
        with mixture(steps=60, skip=[(5, 10)]) as run, run.loader(rows=0, fields="rows", framework="dlpack") as loader:
            for b in loader:
                if b.step == 4:
                    break
            with run.with_phase(b.step + 1, weights={"web": 1, "wiki": 1}) as after:
                self.assertIn("\nphase 10 web 1 wiki 1\n", re.sub(" +", " ", after.text))
                self.assertEqual(after.cursor(5), run.cursor(5))
                loader.reload(after)
                self.assertEqual(next(loader).step, 10)

    def test_a_loader_moves_to_it(self):
        """What two ranks deliver while the weights follow what was delivered is what the last text says."""
        given, runs = [], []
        run = mixture(steps=60)
        loaders = [run.loader(rank=rank, world=2, rows=3, fields="rows", framework="dlpack") for rank in (0, 1)]
        for step in range(60):
            if step and step % 12 == 0:
                run = run.with_phase(step, weights={"web": step, "wiki": 7})
                for loader in loaders:
                    loader.reload(run)
                runs.append(run)
            for loader in loaders:
                for b in loader:
                    self.assertEqual(b.step, step)
                    given += [(b.step, b.first_row + i, place.source, place.window, values(b.rows)[i])
                              for i, place in enumerate(b.places)]
                    if b.last_in_step:
                        break
        with tokmap.Run(text=run.text) as last:
            self.assertEqual(len(runs), 4)
            wanted = []
            with last.loader(fields="rows", framework="dlpack") as loader:
                for b in loader:
                    wanted += [(b.step, b.first_row + i, place.source, place.window, values(b.rows)[i])
                               for i, place in enumerate(b.places)]
        self.assertEqual(sorted(given), sorted(wanted))
        with self.assertRaisesRegex(tokmap.PastError, "data"):
            loaders[0].reload(run.with_phase(30, weights={"web": 1}))  # of steps that were delivered
        for each in loaders:
            each.close()

    def test_wrong(self):
        with mixture() as run:
            for step, change, kind, problem in (
                    (20, {}, tokmap.ArgumentError, "nothing to change"),
                    (201, dict(batch=4), IndexError, "past the end"),
                    (-1, dict(batch=4), tokmap.ArgumentError, "step"),
                    (20, dict(batch=0), tokmap.RunError, "batch 0 is out of range"),
                    (20, dict(weights={"web": 0, "wiki": 0}), tokmap.RunError, "weight"),
                    (20, dict(weights={"news": 1}), tokmap.RunError, "news"),
                    (20, dict(seq_len=30000), tokmap.TokmapError, "longer than")):
                with self.assertRaisesRegex(kind, problem):
                    run.with_phase(step, **change)
            run.close()
            with self.assertRaises(tokmap.ArgumentError):
                run.with_phase(20, batch=4)


class Evaluation(unittest.TestCase):
    """run.evaluation() delivers exactly what the run leaves out, each target once."""

    def test_each_target_counts_once(self):
        folder = new_folder()
        prefix = pack(folder, "web", documents=80, seed=5)
        truth = Truth(prefix)
        with tokmap.Run(data=prefix + "#docs=0..75%", seq_len=24, batch=6, passes=1) as run, \
                tokmap.Dataset(prefix) as whole:
            first = whole.document(60).first_token
            held = list(truth.tokens[first:])
            for stride, world in ((None, 1), (8, 1), (8, 3)):
                with run.evaluation(batch=5, stride=stride, pad=7) as evaluation:
                    self.assertEqual(evaluation.info.order, "sequential")
                    self.assertTrue(evaluation.info.tail_pad)
                    self.assertEqual(evaluation.info.pad_id, 7)
                    counted = [0] * len(held)
                    calls = set()
                    for rank in range(world):
                        with evaluation.loader(rank=rank, world=world, fields="inputs targets loss_mask rows") as loader:
                            n = 0
                            for b in loader:
                                n += 1
                                inputs, targets, counts = b.inputs.tolist(), b.targets.tolist(), b.loss_mask.tolist()
                                for row in range(b.count):
                                    place = evaluation.locate(b.step, b.first_row + row)
                                    for j in range(24):
                                        if place.source is None or not counts[row][j]:
                                            continue
                                        at = place.first_token + j
                                        self.assertEqual(inputs[row][j], held[at])
                                        self.assertEqual(targets[row][j], held[at + 1])
                                        counted[at + 1] += 1
                            calls.add(n)
                    self.assertEqual(len(calls), 1)
                    # Every token but the first is a target once, unless it begins a document.
                    starts = truth.starts[first:]
                    self.assertEqual(counted, [0 if i == 0 or starts[i] else 1 for i in range(len(held))])

    @needs("numpy")
    def test_lookahead(self):
        """An evaluation has a lookahead of 1 unless it is asked for more, and then each target counts once, too."""
        prefix = os.path.join(new_folder(), "one")
        with tokmap.ShardWriter(prefix, vocab_size=300) as writer:
            writer.add(list(range(94)))
        for lookahead in (0, 1, 4):
            with tokmap.Run(data=prefix, seq_len=10, lookahead=lookahead, batch=2) as run:
                for asked in (None, 1, 4):
                    with run.evaluation(lookahead=asked, trained=True) as evaluation:
                        self.assertEqual(evaluation.info.lookahead, asked or 1)
                        with evaluation.loader(fields="inputs targets loss_mask") as loader:
                            targets = [int(t) for b in loader for t in b.targets[b.loss_mask == 1]]
                    self.assertEqual(targets, list(range(1, 94)))

    def test_validation(self):
        folder = new_folder()
        web, val = pack(folder, "web", seed=5), pack(folder, "val", documents=20, seed=6)
        with tokmap.Run(data=web, validation={"val": val, "more": WIKI}, seq_len=24, batch=6, steps=9) as run:
            self.assertEqual([(each.name, each.data) for each in run.validations], [("val", val), ("more", WIKI)])
            self.assertEqual(len(run.sources), 1)
            self.assertEqual(run.info.sources, 1)
            self.assertIn(f"\nvalidation val \"{val}\"\nvalidation more {WIKI}\n", run.text)
            with run.evaluation() as evaluation:
                self.assertEqual([each.data for each in evaluation.sources], [val, WIKI])
            with run.evaluation("val", batch=5) as evaluation:
                self.assertEqual([each.data for each in evaluation.sources], [val])
                rows = sum(evaluation.real_rows(step) for step in range(evaluation.info.steps))
                self.assertEqual(run.validations[0].windows, rows)
            again = pickle.loads(pickle.dumps(run))
            self.assertEqual(len(again.validations), 2)
            held = pickle.loads(pickle.dumps(run.validations[0].dataset))
            self.assertEqual(held.info.content, run.validations[0].dataset.info.content)
            # A cursor does not know of them.
            with tokmap.Run(data=web, seq_len=24, batch=6, steps=9) as without:
                self.assertEqual(str(without.cursor(5)), str(run.cursor(5)))
        os.mkdir(os.path.join(folder, "copy"))
        for prefix, name in ((web, "one"), (val, "two")):
            for end in (".bin", ".tmx"):
                with open(prefix + end, "rb") as file, open(os.path.join(folder, "copy", name + end), "wb") as copy:
                    copy.write(file.read())
        with self.assertRaisesRegex(IndexError, r"set 'val' .*: source 'data' .* has tokens of .*val\.bin"):
            tokmap.Run(data=os.path.join(folder, "copy"), validation={"val": val}, seq_len=24)
        # The shard of a source with weight 0 is in a folder that is trained on.
        with tokmap.Run(sources={"web": os.path.join(folder, "copy"), "val": val}, weights={"web": 1, "val": 0},
                        seq_len=24, steps=2) as run:
            for source in (None, "val"):
                with self.assertRaisesRegex(class_of("ERROR_RANGE"), "the run trains on data of .*source 'web' is "):
                    run.evaluation(source)
            with run.evaluation("val", trained=True) as evaluation:
                self.assertEqual(len(evaluation.sources), 1)
        for wrong in (["val"], "val", {"val": 3}, {"val": {"data": val}}):
            with self.assertRaises(tokmap.ArgumentError):
                tokmap.Run(data=web, validation=wrong, seq_len=24)
        with self.assertRaises(tokmap.ArgumentError):
            tokmap.Run(text="seq_len 4\nbatch 2\nsource a " + WEB, validation={"val": val})
        with self.assertRaises(tokmap.RunError):
            tokmap.Run(data=web, validation={"data": val}, seq_len=24)

    def test_arguments(self):
        with mixture(sources={"web": WEB + "#docs=0..90%", "wiki": WIKI}) as run:
            with run.evaluation(batch=4) as evaluation:
                self.assertIn("source   web synthetic:vocab=100,tokens=100000#docs=90..100", evaluation.text)
                self.assertEqual(evaluation.info.batch, 4)
                again = pickle.loads(pickle.dumps(evaluation))
                self.assertEqual(again.text, evaluation.text)
                self.assertEqual(again.locate(3, 1), evaluation.locate(3, 1))
            with run.evaluation("web", seq_len=50, steps=3) as evaluation:
                self.assertEqual((evaluation.info.seq_len, evaluation.info.steps, evaluation.info.batch), (50, 3, 10))
            with self.assertRaisesRegex(tokmap.ArgumentError, "leaves out no data of source 'wiki'"):
                run.evaluation("wiki")
            with self.assertRaisesRegex(tokmap.ArgumentError, "no source 'none'"):
                run.evaluation("none")
            with self.assertRaises(tokmap.TokmapError):
                run.evaluation("web", part="docs=0..10%")
            with run.evaluation("web", part="docs=0..10%", trained=True) as evaluation:
                self.assertGreater(evaluation.info.steps, 0)
            for wrong in (dict(batch=0), dict(seq_len=0), dict(stride=0), dict(steps=0)):
                with self.assertRaises(class_of("ERROR_RANGE")):
                    run.evaluation(**wrong)


class Plans(unittest.TestCase):
    """A source that draws the rows of a plan."""

    def test_pieces_and_documents(self):
        folder = new_folder()
        prefix = pack(folder, "web", documents=40, seed=5)
        plan = os.path.join(folder, "web.plan")
        subprocess.run([TOKMAP, "plan", "-q", "-o", plan, "--seq-len", "200", prefix], check=True)
        with tokmap.Run(sources={"web": dict(data=prefix, plan=plan)}, seq_len=200, batch=2, passes=1) as run, \
                tokmap.Dataset(prefix) as dataset:
            self.assertEqual(run.sources[0].plan, plan)
            shown = [0] * dataset.info.tokens
            for step in range(run.info.steps):
                for row in range(2):
                    pieces = run.extents(step, row)
                    for first, count in pieces:
                        for token in range(first, first + count):
                            shown[token] += 1
                    documents = run.documents(step, row)
                    self.assertEqual([(d.column, d.tokens) for d in documents],
                                     [(sum(n for _, n in pieces[:i]), pieces[i][1]) for i in range(len(pieces))])
                    for document, (first, count) in zip(documents, pieces):
                        whole = dataset.document(document.number)
                        self.assertTrue(whole.first_token <= first < first + count <= whole.first_token + whole.tokens)
            left = run.info.remainder
            self.assertLessEqual(max(shown), 1)
            self.assertLessEqual(shown.count(0), 200 * left)


if __name__ == "__main__":
    unittest.main()
