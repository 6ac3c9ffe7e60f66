# SPDX-License-Identifier: MIT
"""The package without NumPy and torch: batches, state, errors, threads, other processes."""
import copy
import gc
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import unittest
import warnings

import tokmap
from tokmap.errors import class_of
from support import BATCH, SEQ, TOKMAP, TOP, WithData, new_folder, pack, python, threads, values

HOST_FIELDS = "inputs targets position_ids document_ids loss_mask rows cu_seqlens"


class Deliveries(WithData):
    def check_batch(self, run, batch, mask_targets=False):
        expected = self.truth.batch(run, batch.step, batch.first_row, batch.count, mask_targets)
        for name in batch.keys():
            found = values(batch[name])
            if name == "cu_seqlens":
                ends = expected[name]
                self.assertEqual(found[:len(ends)], ends)
                self.assertEqual(set(found[len(ends):]) - {ends[-1]}, set())
                self.assertEqual((batch.documents, batch.max_seqlen), (len(ends) - 1, expected["max_seqlen"]))
            else:
                self.assertEqual(found, expected[name], name)

    def test_every_field(self):
        for dtype in ("int32", "int64"):
            for mask in (False, True):
                run = self.run_of(passes=1)
                with run.loader(rows=4, dtype=dtype, framework="dlpack", fields=HOST_FIELDS, mask_targets=mask) as loader:
                    count = 0
                    for batch in loader:
                        self.check_batch(run, batch, mask)
                        count += batch.last_in_step
                    self.assertEqual(count, run.info.steps)

    def test_ranks_share_the_rows(self):
        run = self.run_of(steps=7, passes=None)
        seen = {}
        for rank in range(4):
            for batch in run.loader(rank=rank, world=4, rows=1, framework="dlpack"):
                for place in batch.places:
                    seen[place.step, place.row] = seen.get((place.step, place.row), 0) + 1
                self.check_batch(run, batch)
        self.assertEqual(seen, {(step, row): 1 for step in range(7) for row in range(BATCH)})

    def test_shapes(self):
        run = self.run_of()
        loader = run.loader(rank=1, world=4, rows=1, framework="dlpack")
        self.assertEqual((loader.rows, loader.calls, len(loader)), (1, 2, 2 * run.info.delivered))
        counts = [loader.next().count for _ in range(4)]
        self.assertEqual(counts, [1, 1, 1, 1])
        self.assertEqual([len(b.inputs) for b in run.loader(rank=0, world=4, rows=1, framework="dlpack")][:4], [0, 1, 0, 1])
        batch = run.loader(framework="dlpack").next()
        self.assertEqual(batch.inputs.shape, (BATCH, SEQ))
        self.assertFalse(hasattr(batch, "position_ids"))
        with self.assertRaisesRegex(AttributeError, 'pass fields="inputs targets position_ids"'):
            batch.position_ids
        with self.assertRaisesRegex(AttributeError, 'pass fields="inputs targets cu_seqlens"'):
            batch.documents
        with self.assertRaisesRegex(AttributeError, "no attribute 'input_ids'; did you mean 'inputs'?"):
            batch.input_ids
        self.assertEqual(dict(batch).keys(), {"inputs", "targets"})
        with self.assertRaises(KeyError):
            batch["position_ids"]
        self.assertIn("inputs, targets", repr(batch))

    def test_out(self):
        run = self.run_of()
        fresh, static = run.loader(rows=4, framework="dlpack"), run.loader(rows=4, framework="dlpack")
        out = static.out()
        addresses = {name: array.address for name, array in out.items()}
        for batch in fresh:
            other = static.next(out=out)
            self.assertEqual(values(batch.inputs), values(other.inputs))
            self.assertEqual({name: other[name].address for name in out}, addresses)

    def test_run_file_and_text(self):
        text = f"seq_len {SEQ}\nbatch {BATCH}\nseed 3\nsource data web\npasses 2\nskip 2..5\n"
        by_file = tokmap.Run(self.file("train.run", text))
        by_text = tokmap.Run(text=text, folder=self.folder)
        self.assertEqual(by_file.info, by_text.info)
        self.assertEqual(by_file.cursor(9), by_text.cursor(9))
        self.assertEqual([by_file.delivers(step) for step in range(6)], [True, True, False, False, False, True])
        self.assertEqual(by_file.rows(10 ** 9), 0)
        self.assertEqual([by_file.locate(5, j) for j in range(BATCH)],
                         [self.run_of().locate(5, j) for j in range(BATCH)])

    def test_find_and_documents(self):
        run = self.run_of()
        wanted = next(n for n in range(20, 60) if run.sources[0].dataset.document(n).tokens > 40)
        found = run.find(document=wanted)
        by_hand = [(step, row) for step in range(run.info.steps) for row in range(BATCH)
                   if any(shown.number == wanted for shown in run.documents(step, row))]
        # A window has one token more than the row's inputs: the last target.
        self.assertEqual(set(by_hand) - {(place.step, place.row) for place in found}, set())
        self.assertEqual(run.find("data", document=wanted, limit=1), found[:1])
        shown = run.documents(0, 0)
        self.assertEqual(sum(one.tokens for one in shown), SEQ)
        self.assertTrue(shown[0].origin.path.endswith("web.jsonl"))
        batch = run.loader(framework="dlpack").next()
        self.assertEqual(batch.locate(2), run.documents(0, 2))

    def test_dataset(self):
        with tokmap.Dataset(self.prefix) as dataset:
            info = dataset.info
            self.assertEqual((info.tokens, info.shards, info.width), (len(self.truth.tokens), 1, 2))
            self.assertEqual(list(dataset.tokens()), list(self.truth.tokens))
            view = dataset.view(10, 20)
            self.assertEqual([token for part in view for token in part], list(self.truth.tokens[10:30]))
            with self.assertRaises(tokmap.TokmapError):
                dataset.close()
            del view
            gc.collect()
            self.assertEqual(json.loads(dataset.shard(0).about)["tool"].split()[0], "tokmap")
            self.assertEqual(list(dataset.document_tokens(4)),
                             list(dataset.tokens(dataset.document(4).first_token, dataset.document(4).tokens)))
            self.assertGreater(dataset.verify(), 2 * info.tokens)
            with self.assertRaises(IndexError):
                dataset.tokens(0, info.tokens + 1)
        with self.assertRaisesRegex(tokmap.ArgumentError, "is closed"):
            dataset.tokens()
        dataset.close()
        run = self.run_of()
        view = run.sources[0].dataset.view(0, 5)
        with self.assertRaises(tokmap.TokmapError):
            run.close()
        del run
        gc.collect()
        self.assertEqual(list(view[0]), list(self.truth.tokens[:5]))

    def test_shards_that_differ_warn(self):
        """A folder of shards of which one was packed without an EOD is read, but not without a word."""
        folder = new_folder()
        pack(folder, "a")
        source = os.path.join(folder, "a.jsonl")
        subprocess.run([TOKMAP, "pack", "-q", "--no-eod", "-o", os.path.join(folder, "b"), source], check=True)
        said = "documents end differently: those of .*a.tmx with token 256, those of .*b.tmx with no token"
        with self.assertWarnsRegex(UserWarning, said) as caught, tokmap.Dataset(folder) as dataset:
            self.assertIsNone(dataset.info.eod_id)
        self.assertEqual(caught.filename, __file__)
        with self.assertWarnsRegex(UserWarning, said) as caught, \
                tokmap.Run(data=folder, seq_len=SEQ, batch=2, passes=1) as run:
            self.assertEqual(run.info.sources, 1)
        self.assertEqual(caught.filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tokmap.Dataset(os.path.join(folder, "a")).close()
            tokmap.Run(data=os.path.join(folder, "b"), seq_len=SEQ, batch=2, passes=1).close()

    def test_verify_finds_a_fault(self):
        folder = new_folder()
        prefix = pack(folder, "spoilt")
        with open(prefix + ".bin", "r+b") as file:
            file.seek(100)
            byte = file.read(1)
            file.seek(100)
            file.write(bytes((byte[0] ^ 1,)))
        with self.assertRaises(class_of("ERROR_CORRUPT")) as caught:
            tokmap.Dataset(prefix).verify()
        self.assertTrue(caught.exception.path.endswith("spoilt.bin"))

    def test_progress_may_stop(self):
        def progress(done, total):
            raise KeyError("enough")
        with self.assertRaises(KeyError):
            tokmap.Dataset(self.prefix).verify(progress)


class State(WithData):
    def test_resumes(self):
        run = self.run_of()
        whole = [(b.step, b.first_row, values(b.inputs)) for b in run.loader(rows=2, framework="dlpack")]
        loader = run.loader(rows=2, framework="dlpack")
        for stop in (0, 3, 7, 20):
            while stop and loader.next().step < stop:
                pass
            for batch in loader if stop else ():
                if batch.last_in_step:
                    break
            state = loader.state_dict()
            self.assertEqual({type(v) for v in state.values()} - {str, int}, set())
            self.assertEqual(json.loads(json.dumps(state)), state)
            for rows, world in ((2, 1), (3, 1), (0, 1), (1, 3)):
                rest = []
                for rank in range(world):
                    other = run.loader(rank=rank, world=world, rows=rows, framework="dlpack")
                    other.next()
                    other.load_state_dict(state)
                    self.assertEqual(other.state_dict(), state)
                    rest += [(b.step, b.first_row + i, row) for b in other for i, row in enumerate(values(b.inputs))]
                expected = [(step, first + i, row) for step, first, rows_ in whole if step >= state["step"]
                            for i, row in enumerate(rows_)]
                self.assertEqual(sorted(rest), sorted(expected))

    def test_at_the_end(self):
        run = self.run_of()
        loader = run.loader(framework="dlpack")
        self.assertEqual(sum(1 for _ in loader), run.info.steps)
        state = loader.state_dict()
        self.assertEqual(state["step"], run.info.steps)
        for _ in range(2):
            with self.assertRaises(StopIteration):
                loader.next()
        self.assertEqual(list(run.loader(framework="dlpack", resume=state)), [])

    def test_of_another_run(self):
        state = self.run_of().loader(framework="dlpack", resume=self.run_of().cursor(5)).state_dict()
        for options, word in (({"seed": 4}, "seed"), ({"seq_len": 40}, "geometry"), ({"batch": 5}, "batch"),
                              ({"order": "sequential"}, "order")):
            loader = self.run_of(**options).loader(framework="dlpack")
            first = values(loader.next().inputs)
            with self.assertRaises(tokmap.PastError) as caught:
                loader.load_state_dict(state)
            self.assertIn(word, str(caught.exception))
            loader.load_state_dict(loader.run.cursor(0))  # the loader still works
            self.assertEqual(values(loader.next().inputs), first)
        other = pack(self.folder, "other", seed=2)
        with self.assertRaises(tokmap.PastError) as caught:
            tokmap.Run(data=other, seq_len=SEQ, batch=BATCH, seed=3, passes=2).loader(resume=state, framework="dlpack")
        self.assertIn("data", str(caught.exception))

    def test_every_kind_of_difference_is_named(self):
        text = "seq_len {}\nbatch {}\nseed {}\nsource web {}\nsteps 50\n{}"
        mine = (SEQ, BATCH, 1, "web", "")
        state = tokmap.Run(text=text.format(*mine), folder=self.folder).cursor(20)
        pack(self.folder, "else", seed=3)
        for wrong, kinds in (((40, *mine[1:]), ("geometry (line 1",)), ((SEQ, 5, *mine[2:]), ("batch (line 2",)),
                             ((SEQ, BATCH, 2, "web", ""), ("order (", "line 3: seed 2")),
                             ((*mine[:3], "else", ""), ("data (line 4: source web else",)),
                             ((*mine[:4], "skip 3..5\n"), ("skips (line 6: skip 3..5",)),
                             ((40, 5, 2, "else", "skip 3..5\n"), ("geometry (", "order (", "batch (", "skips (", "data ("))):
            loader = tokmap.Run(text=text.format(*wrong), folder=self.folder).loader(framework="dlpack")
            with self.assertRaises(tokmap.PastError) as caught:
                loader.load_state_dict(state)
            for kind in ("geometry (", "order (", "batch (", "skips (", "data ("):
                self.assertEqual(kind in str(caught.exception), any(kind in word for word in kinds),
                                 str(caught.exception))
            for kind in kinds:
                self.assertIn(kind, str(caught.exception))
            self.assertEqual(loader.next().step, 0)
        # A cursor allows changes to the future.
        later = tokmap.Run(text=text.format(*mine[:4], "skip 30..40\n"), folder=self.folder)
        self.assertEqual(later.loader(framework="dlpack", resume=state).next().step, 20)

    def test_of_a_newer_version(self):
        run = self.run_of()
        state = run.loader(framework="dlpack").state_dict()
        for wrong, kind, words in (({**state, "tokmap": 2}, class_of("ERROR_CURSOR"), ("version 2", "reads version 1")),
                                   ({**state, "cursor": state["cursor"].replace("tokmap1", "tokmap2")},
                                    class_of("ERROR_VERSION"),
                                    ("version 2", "newer"))):
            with self.assertRaises(kind) as caught:
                run.loader(framework="dlpack", resume=wrong)
            for word in words:
                self.assertIn(word, str(caught.exception))

    def test_that_is_not_one(self):
        loader = self.run_of().loader(framework="dlpack")
        for wrong in ({}, {"tokmap": 1}, {"tokmap": 2, "cursor": "x"}, 7, None, "nonsense", [], {"tokmap": 1, "cursor": 5}):
            with self.assertRaises(class_of("ERROR_CURSOR"), msg=repr(wrong)):
                loader.load_state_dict(wrong)
        self.assertEqual(loader.next().step, 0)

    def test_inside_a_step(self):
        run = self.run_of()
        loader = run.loader(rows=2, framework="dlpack")
        loader.next()
        self.assertEqual(loader.state_dict()["step"], 0)
        loader.next()
        loader.next()
        self.assertEqual(loader.state_dict()["step"], 1)


class BadInput(WithData):
    def raises(self, kind, function, *words):
        with self.assertRaises(kind) as caught:
            function()
        for word in words:
            self.assertIn(word, str(caught.exception))
        self.assertIsInstance(caught.exception, tokmap.TokmapError)
        return caught.exception

    def test_statuses(self):
        run = self.run_of()
        found = self.raises(FileNotFoundError, lambda: tokmap.Run("no such.run"), "no such.run")
        self.assertEqual((found.status, found.errno), ("ERROR_NOT_FOUND", 2))
        self.raises(FileNotFoundError, lambda: tokmap.Dataset(self.folder + "/nothing"), "nothing")
        found = self.raises(tokmap.RunError, lambda: tokmap.Run(self.file("bad.run", "seq_len 8\nbach 4\n")), "bad.run:2")
        self.assertEqual(found.line, 2)
        found = self.raises(class_of("ERROR_RANGE"), lambda: run.loader(rank=3, world=3), "rank is 3; it must be below world, 3")
        self.assertEqual(found.field, "rank")
        self.raises(class_of("ERROR_RANGE"), lambda: run.loader(rank=0, world=BATCH + 1), "ranks")
        self.raises(class_of("ERROR_LIMIT"), lambda: run.loader(ring_bytes=64), "ring_bytes")
        self.raises(IndexError, lambda: run.locate(10 ** 9, 0))
        self.raises(ValueError, lambda: run.locate(-1, 0), "step is -1")
        self.raises(ValueError, lambda: run.locate(2 ** 64, 0))
        self.raises(ValueError, lambda: run.locate(0.5, 0), "whole number")
        self.raises(ValueError, lambda: self.run_of(steps=5), "steps", "passes")
        self.raises(ValueError, lambda: tokmap.Run("x.run", seq_len=5), "run file")
        self.raises(ValueError, lambda: tokmap.Run(), "path (a run file), text, data (a dataset)")
        self.raises(ValueError, lambda: tokmap.Run("zero\0byte"), "zero")
        self.raises(ValueError, lambda: self.run_of(order="sorted"), "sorted", "sequential")

    def test_the_wrong_kind_of_file(self):
        """What a file is, where a run or a dataset was expected."""
        run_file = os.path.join(self.folder, "kind.run")
        with open(run_file, "w", encoding="utf-8") as file:
            file.write(f"seq_len {SEQ}\nbatch 2\nsource web {os.path.basename(self.prefix)}\n")
        manifest = os.path.join(self.folder, "kind.shards")
        with open(manifest, "w", encoding="utf-8") as file:
            file.write(f"tokmap-shards 1\n{os.path.basename(self.prefix)}\n")
        for path, said in ((self.prefix, "prefix of a shard"), (self.prefix + ".bin", "a shard"),
                           (self.folder, "this is a folder"), (manifest, "manifest of shards")):
            with self.assertRaisesRegex(class_of("ERROR_FORMAT"), said + ".*not a run file"):
                tokmap.Run(path)
        with self.assertRaisesRegex(class_of("ERROR_FORMAT"), "this is a run file, not a dataset"):
            tokmap.Dataset(run_file)
        with self.assertRaisesRegex(class_of("ERROR_FORMAT"), "this is a run file, not a dataset"):
            tokmap.Dataset(self.file("comment.run", "# a comment\n\n seq_len 8\n"))
        tokmap.Run(run_file).close()
        moved = os.path.join(new_folder(), "moved.run")
        os.rename(run_file, moved)
        with self.assertRaises(class_of("ERROR_NOT_FOUND")) as caught:
            tokmap.Run(moved)
        self.assertEqual((caught.exception.path, caught.exception.line), (moved, 3))
        self.assertIn(os.path.join(os.path.dirname(moved), os.path.basename(self.prefix)), str(caught.exception))

    def test_loader_options(self):
        run = self.run_of()
        self.raises(ValueError, lambda: run.loader(fields="inputs lables"), "lables", "targets")
        self.raises(ValueError, lambda: run.loader(dtype="float32"), "float32", "int64")
        self.raises(ValueError, lambda: run.loader(dtype=float))
        self.raises(ValueError, lambda: run.loader(device="tpu"), "tpu", "cuda")
        self.raises(ValueError, lambda: run.loader(device="cuda:x", framework="dlpack"))
        self.raises(ValueError, lambda: run.loader(framework="keras"), "keras", "torch")
        self.raises(class_of("ERROR_RANGE"), lambda: self.run_of(lookahead=0).loader(framework="dlpack"), "lookahead")
        self.raises(ValueError, lambda: run.loader(framework="dlpack").next(stream=5), "stream")
        self.raises(ValueError, lambda: run.loader(framework="dlpack").next(stream="x"), "stream")

    def test_no_driver(self):
        """In another process, with a driver that does not exist, because this machine may have a GPU."""
        said = python("""
import sys, tokmap
try:
    tokmap.Run(data=sys.argv[1], seq_len=48, batch=6).loader(device="cuda:0", framework="dlpack", fields="inputs")
except tokmap.DeviceError as problem:
    print(problem)
""", self.prefix, TOKMAP_CUDA_DRIVER="/no/such/libcuda.so.1")
        self.assertIn("no usable GPU: install NVIDIA's driver, or name no device", said)
        self.assertIn("/no/such/libcuda.so.1", said)

    def test_outputs(self):
        run = self.run_of()
        loader = run.loader(framework="dlpack")
        good, other = loader.out(), run.loader(framework="dlpack", dtype="int32").out()
        self.raises(class_of("ERROR_ARGUMENT", TypeError), lambda: loader.next(out={"inputs": good["inputs"]}),
                    "no targets", f"({BATCH}, {SEQ})")
        self.raises(TypeError, lambda: loader.next(out={**good, "targets": other["targets"]}), "out.targets", "dtype",
                    "expected int64, found int32")
        short = run.loader(framework="dlpack", rows=2).out()
        self.raises(ValueError, lambda: loader.next(out={**good, "inputs": short["inputs"]}), "out.inputs", "shape",
                    f"expected ({BATCH}, {SEQ}), found (2, {SEQ})")
        self.raises(ValueError, lambda: loader.next(out={**good, "inputs": [1, 2]}), "out.inputs", "list")
        self.assertEqual(loader.next(out=good).step, 0)  # nothing was lost

    def test_closed(self):
        run = self.run_of()
        loader, dataset = run.loader(framework="dlpack"), run.dataset(framework="dlpack")
        batch = loader.next()
        loader.close()
        loader.close()
        for use in (loader.next, loader.stats, loader.delivery, lambda: loader.load_state_dict(run.cursor(0)),
                    lambda: next(iter(loader))):
            self.raises(tokmap.ArgumentError, use, "closed")
        self.assertEqual(len(values(batch.inputs)), BATCH)
        self.assertEqual(batch.places[0], run.locate(0, 0))
        self.assertIn("closed", repr(loader))
        with run.loader(framework="dlpack") as inside:
            pass
        self.raises(ValueError, inside.next, "closed")
        open_still = run.loader(framework="dlpack")
        run.close()
        run.close()
        for use in (open_still.next, lambda: dataset[0], run.loader, lambda: run.sources, lambda: run.cursor(0),
                    lambda: pickle.dumps(run)):
            self.raises(tokmap.ArgumentError, use, "closed")

    def test_cycles_end_in_any_order(self):
        program = '''
import gc, sys, tokmap
class Holder: pass
for i in range(20):
    x = Holder(); x.me = x; x.run = tokmap.Run(data=sys.argv[1], seq_len=int(sys.argv[2]), batch=4, seed=1)
    x.loader = x.run.loader(framework="dlpack"); x.rows = x.run.dataset(framework="dlpack"); x.batch = next(x.loader)
    assert x.batch.inputs.to_host().tolist() == x.batch.inputs.tolist()
    del x; gc.collect()
# Here the loader's thread still has much to read from the run's datasets.
for i in range(20):
    x = Holder(); x.me = x; x.run = tokmap.Run(data=sys.argv[1], seq_len=int(sys.argv[2]), batch=20000, seed=1)
    x.loader = x.run.loader(framework="dlpack")
    del x; gc.collect()
'''
        subprocess.run([sys.executable, "-c", program, self.prefix, str(SEQ)], check=True,
                       env={**os.environ, "MALLOC_PERTURB_": "165"})

    def test_a_constructor_that_is_stopped(self):
        """If an exception stops the constructor, the library's loader still ends before the run, even though somebody
        keeps the unfinished object."""
        kept = []

        class Stopped(tokmap.Loader):
            def _arrive(self):
                kept.append(self)
                raise MemoryError
        run, before = self.run_of(), threads()
        with self.assertRaises(MemoryError):
            Stopped(run)
        self.assertEqual(threads(), before + 1)  # the loader's
        run.close()
        self.assertEqual((threads(), kept[0]._handle), (before, None))

    def test_failed_constructors(self):
        """An object whose constructor failed can be finalized."""
        for make in (lambda: tokmap.Run("nothing.run"), lambda: tokmap.Dataset("nothing"), lambda: self.run_of().loader(rank=9)):
            with self.assertRaises(tokmap.TokmapError):
                make()
        gc.collect()

    def test_eight_classes(self):
        """Those that programs catch."""
        self.assertEqual(sorted(tokmap.errors.__all__), sorted(
            name for name in dir(tokmap) if isinstance(getattr(tokmap, name), type)
            and issubclass(getattr(tokmap, name), Exception)))
        self.assertEqual(len(tokmap.errors.__all__), 8)
        with self.assertRaisesRegex(AttributeError, "module 'tokmap' has no attribute 'Laoder'"):
            tokmap.Laoder
        for status in tokmap.errors.STATUSES:
            made = pickle.loads(pickle.dumps(tokmap.errors.error_of(status, "text", TypeError, path="p")))
            self.assertIs(type(made), class_of(status, TypeError))
            self.assertEqual((made.status, str(made), made.path), (status, "text", "p"))

    def test_errors_pickle(self):
        with self.assertRaises(tokmap.RunError) as caught:
            tokmap.Run(text="seq_len 5\nseq_len 6\n")
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((str(again), again.line, type(again)), (str(caught.exception), 2, tokmap.RunError))

    def test_every_fault_is_reported(self):
        folder = new_folder()
        prefix = pack(folder, "spoilt")
        with open(prefix + ".bin", "r+b") as file:
            file.seek(40)
            file.write(b"\xff\xff")
        faults = []
        with tokmap.Dataset(prefix) as dataset:
            with self.assertRaises(class_of("ERROR_CORRUPT")):
                dataset.verify(on_fault=faults.append)
            self.assertTrue(faults)
            for fault in faults:
                self.assertIsInstance(fault, tokmap.TokmapError)
                self.assertTrue(fault.path.endswith("spoilt.bin"), fault)
            with self.assertRaises(KeyError):
                dataset.verify(on_fault=lambda fault: {}[fault])
        with tokmap.Dataset(self.prefix) as dataset:
            faults.clear()
            dataset.verify(on_fault=faults.append)
            self.assertEqual(faults, [])

    def test_corrupt_token_is_named(self):
        folder = new_folder()
        prefix = pack(folder, "spoilt")
        with open(prefix + ".bin", "r+b") as file:
            file.seek(40)
            file.write(b"\xff\xff")
        # The shard has hashes of its pages. Without its index, the vocabulary is what an id is compared with.
        for data, error, offset in ((prefix, class_of("ERROR_CORRUPT"), 0),
                                    (f"raw:{prefix}.bin,width=2,vocab=257", class_of("ERROR_TOKEN"), 40)):
            loader = tokmap.Run(data=data, seq_len=SEQ, batch=2, order="sequential").loader(framework="dlpack")
            with self.assertRaises(error) as caught:
                loader.next()
            self.assertEqual((caught.exception.offset, caught.exception.path.endswith("spoilt.bin")), (offset, True))
            with self.assertRaises(error):  # the next call tries the same rows again
                loader.next()
            loader.close()


class Library(unittest.TestCase):
    def made(self, text):
        """A library compiled from this C text."""
        folder = new_folder()
        source, library = os.path.join(folder, "other.c"), os.path.join(folder, "other.so")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        if subprocess.run(["sh", "-c", f"${{CC:-cc}} -shared -fPIC -o '{library}' '{source}'"]).returncode:
            self.skipTest("no C compiler")
        return library

    def test_another_version(self):
        version = 'const char *tokmap_version(void); const char *tokmap_version(void) {{ return "{}"; }}\n'
        for text, words in ((version.format("9.8.7"), ("9.8.7", tokmap.__version__)),
                            (version.format(tokmap.__version__), ("has no function tokmap_", "different sources")),
                            ("int something;\n", ("not a tokmap library",))):
            library = self.made(text)
            ran = python("import tokmap", check=False, TOKMAP_LIBRARY=library)
            self.assertEqual(ran.returncode, 1)
            for word in ("TokmapError", library, *words):
                self.assertIn(word, ran.stderr)
        self.assertEqual(python("try:\n import tokmap\nexcept ImportError: print('caught')", TOKMAP_LIBRARY=library), "caught\n")

    def test_none(self):
        ran = python("import tokmap", check=False, TOKMAP_LIBRARY="/no/such/library.so")
        self.assertIn("/no/such/library.so", ran.stderr)
        self.assertIn("make lib", ran.stderr)

    def test_import_is_light(self):
        """Importing it imports neither NumPy nor torch nor any large module."""
        code = "import sys; before = set(sys.modules); import tokmap; print(sorted(set(sys.modules) - before))"
        said = python(code)
        for name in ("'numpy", "'torch", "'inspect'", "'typing'", "'dataclasses'", "'asyncio'", "'multiprocessing'"):
            self.assertNotIn(name, said)

    def test_typed(self):
        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(tokmap.__file__), "py.typed")))
        for name in tokmap.__all__:
            self.assertTrue(name == "IGNORE" or name.startswith("__") or getattr(tokmap, name).__doc__, name)


class WithoutNumpy(WithData):
    def test_it_works(self):
        code = """
import sys
sys.modules['numpy'] = sys.modules['torch'] = None
import tokmap
run = tokmap.Run(data=sys.argv[1], seq_len=8, batch=2, passes=1)
batch = run.loader().next()
view = run.sources[0].dataset.view(0, 4)[0]
print(type(batch.inputs).__name__, batch.inputs.shape, len(batch.targets.tolist()), type(view).__name__, view.readonly)
print(len(run.dataset()[0]['inputs'].tolist()))
"""
        self.assertEqual(python(code, self.prefix), "Array (2, 8) 2 memoryview True\n8\n")


class Rows(WithData):
    def test_order_is_the_loader_s(self):
        text = f"seq_len {SEQ}\nbatch {BATCH}\nseed 3\nsource data web\npasses 2\nskip 2..5\nskip 9..10\n"
        for run in (self.run_of(), tokmap.Run(text=text, folder=self.folder)):
            dataset = run.dataset(fields="inputs targets position_ids", framework="dlpack", mask_targets=True)
            fields = ("inputs", "targets", "position_ids")
            index = 0
            for batch in run.loader(fields=" ".join(fields), framework="dlpack", mask_targets=True):
                rows = dataset.__getitems__(list(range(index, index + batch.count)))
                for name in fields:
                    self.assertEqual(values(tokmap.collate(rows)[name]), values(batch[name]))
                self.assertEqual(dataset.place(index), (batch.step, 0))
                self.assertEqual(dataset.index(batch.step, 0), index)
                index += batch.count
            self.assertEqual(len(dataset), index)
            for wrong in (index, -index - 1):
                with self.assertRaises(IndexError):
                    dataset[wrong]
            self.assertEqual(values(tokmap.collate(dataset.__getitems__([-1])).inputs),
                             values(tokmap.collate(dataset.__getitems__([index - 1])).inputs))

    def test_many_at_once(self):
        run = self.run_of(batch=5)
        dataset = run.dataset(framework="dlpack")
        wanted = [(i * 37) % len(dataset) for i in range(150)]
        rows = dataset.__getitems__(wanted)
        self.assertEqual(len(rows), 150)
        found = values(tokmap.collate(rows).targets)
        for i, index in enumerate(wanted):
            self.assertEqual(found[i], self.truth.row(run.locate(*dataset.place(index)), SEQ)["targets"])
        self.assertEqual(len(dataset.__getitems__([])), 0)

    def test_skipped_rows_have_no_index(self):
        run = tokmap.Run(text=f"seq_len {SEQ}\nbatch {BATCH}\nsource data web\nsteps 9\nskip 2..5\n", folder=self.folder)
        with self.assertRaises(class_of("ERROR_RANGE")):
            run.dataset(framework="dlpack").index(3, 0)

    def test_without_end(self):
        for skip in ("", "skip 7..1000\nskip 5..6\n"):
            run = tokmap.Run(text=f"seq_len {SEQ}\nbatch {BATCH}\nsource data web\n{skip}", folder=self.folder)
            dataset = run.dataset(framework="dlpack")
            with self.assertRaises(TypeError):
                len(dataset)
            far = dataset.place(10 ** 12)
            self.assertEqual(dataset.index(*far), 10 ** 12)
            self.assertEqual(values(dataset[10 ** 12]["inputs"]), self.truth.row(run.locate(*far), SEQ)["inputs"])

    def test_threads(self):
        run = self.run_of()
        dataset = run.dataset(framework="dlpack")
        expected = [values(tokmap.collate(dataset.__getitems__([i])).inputs) for i in range(60)]
        wrong = []

        def work():
            for turn in range(5):
                for i in range(60):
                    if values(tokmap.collate(dataset.__getitems__([i])).inputs) != expected[i]:
                        wrong.append(i)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_two_sizes_at_once(self):
        """Between any two lines another thread may ask for another number of rows."""
        class Disturbed(tokmap.RunDataset):
            @property
            def _made(self):
                mine, self.__dict__["made"] = self.__dict__["made"], (5, [("inputs", "inputs", None)])
                return mine

            @_made.setter
            def _made(self, made):
                self.__dict__["made"] = made
        dataset = Disturbed(self.run_of(), framework="dlpack")
        for count in (3, 3, 4):
            dataset._made = 3, [(name, name, dataset._arrays.maker((3, SEQ), "int64")) for name in dataset.fields]
            self.assertEqual(tokmap.collate(dataset.__getitems__(range(count))).inputs.shape, (count, SEQ))

    def test_pickles_small(self):
        run = self.run_of()
        for one in (run, run.dataset(framework="dlpack"), run.loader(framework="dlpack"), run.sources[0].dataset,
                    tokmap.Dataset(self.prefix)):
            text = pickle.dumps(one)
            self.assertLess(len(text), 4096)
            self.assertEqual(type(pickle.loads(text)), type(one))
        loader = run.loader(framework="dlpack")
        loader.next()
        self.assertEqual(values(pickle.loads(pickle.dumps(loader)).next().inputs), values(loader.next().inputs))

    def test_copies_of_a_batch(self):
        """A copy has all members, also those that nobody has read before."""
        def pickled(batch):
            return pickle.loads(pickle.dumps(batch))

        for fields, copied in (("inputs cu_seqlens", copy.copy), ("inputs cu_seqlens", copy.deepcopy), ((), pickled)):
            with self.run_of().loader(framework="dlpack", fields=fields) as loader:
                batch = loader.next()
                again = copied(batch)
            for name in ("documents", "max_seqlen", "step", "first_row", "count", "real_rows", "seq_len",
                         "last_in_step", "share", "labels"):
                self.assertEqual(getattr(again, name, "none"), getattr(batch, name, "none"), name)
            self.assertEqual({name: values(array) for name, array in again.items()},
                             {name: values(array) for name, array in batch.items()})

    def test_a_pickled_dataset_is_read_the_same_way(self):
        for reading in ("mapped", "pread"):
            again = pickle.loads(pickle.dumps(tokmap.Dataset(self.prefix, reading=reading)))
            self.assertEqual(again.info.reading, reading)
        synthetic = tokmap.Dataset("synthetic:vocab=300,tokens=1000")
        self.assertEqual(pickle.loads(pickle.dumps(synthetic)).info, synthetic.info)

    def test_pickle_of_what_changed(self):
        folder = new_folder()
        prefix = pack(folder, "data")
        text = pickle.dumps(tokmap.Run(data=prefix, seq_len=SEQ, batch=2, seed=1))
        for file in ("data.bin", "data.tmx"):
            os.remove(os.path.join(folder, file))
        pack(folder, "data", seed=5)
        with self.assertRaises(tokmap.PastError):
            pickle.loads(text)


def _sum_of_rows(dataset, indices, answers):
    answers.put(sum(sum(row) for row in values(tokmap.collate(dataset.__getitems__(indices)).inputs)))


class OtherProcesses(WithData):
    def test_fork_and_spawn(self):
        run = self.run_of()
        dataset = run.dataset(framework="dlpack")
        expected = sum(sum(row) for row in values(tokmap.collate(dataset.__getitems__([5, 17, 3])).inputs))
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            answers = context.SimpleQueue()
            workers = [context.Process(target=_sum_of_rows, args=(dataset, [5, 17, 3], answers)) for _ in range(2)]
            for worker in workers:
                worker.start()
            for worker in workers:
                self.assertEqual(answers.get(), expected)
                worker.join()
                self.assertEqual(worker.exitcode, 0)

    def test_loader_in_a_forked_child(self):
        """A forked child cannot use a loader with a thread: it gets an error, may close the loader, and can open
        another."""
        run = self.run_of()
        loader = run.loader(framework="dlpack")
        first = values(loader.next().inputs)
        child = os.fork()
        if child == 0:
            try:
                try:
                    loader.next()
                    os._exit(3)
                except tokmap.ArgumentError as problem:
                    assert "fork" in str(problem)
                loader.close()
                again = run.loader(framework="dlpack")
                assert values(again.next().inputs) == first
                again.close()
                os._exit(0)
            except BaseException as problem:
                print(problem, file=sys.stderr)
                os._exit(4)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(loader.next().step, 1)


class Threads(WithData):
    def test_other_threads_run_meanwhile(self):
        """The library releases the GIL: verify() works in one thread while another runs its progress callback."""
        dataset = tokmap.Dataset(self.prefix)
        seen = []
        dataset.verify(lambda done, total: seen.append(threading.current_thread().name))
        self.assertTrue(all(name != threading.main_thread().name for name in seen))

    def test_loader_in_threads(self):
        run = self.run_of()
        loader = run.loader(rows=1, framework="dlpack")
        seen, lock = [], threading.Lock()

        def work():
            while True:
                try:
                    batch = loader.next()
                except StopIteration:  # another thread may have taken the last batch before this thread began
                    return
                with lock:
                    seen.append((batch.step, batch.first_row, values(batch.inputs)))
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            loader.stats()
        alone = [(b.step, b.first_row, values(b.inputs)) for b in run.loader(rows=1, framework="dlpack")]
        self.assertEqual(sorted(seen), sorted(alone))


if __name__ == "__main__":
    unittest.main()
