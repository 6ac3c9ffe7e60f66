# SPDX-License-Identifier: MIT
"""What is open is closed exactly once, and only when nothing uses it: close() while other threads are inside methods,
Ctrl-C at every instruction of opening and of next(), signal handlers, and fork() while another thread has a lock."""
import traceback
import ctypes.util
import dis
import gc
import os
import pickle
import random
import shutil
import struct
import sys
import unittest

import tokmap
from tokmap.errors import class_of
from support import BATCH, SEQ, WithData, held, new_folder, pack, python, threads
from tokmap import _tokenize_library

PACKAGE = os.path.dirname(os.path.abspath(tokmap.__file__))

# Several threads call the methods of an object, and one closes it. Freed memory is overwritten (MALLOC_PERTURB_), so a
# call that still uses it does not pass by chance. Each thread may see nothing but that it is closed.
STORM = """
import faulthandler, os, re, sys, threading, time
faulthandler.enable()
faulthandler.dump_traceback_later(100, exit=True)
import tokmap
sys.setswitchinterval(1e-5)
prefix, what, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
RUN = dict(data=prefix, seq_len=48, batch=6, seed=3)

def dataset():
    ds = tokmap.Dataset(prefix)
    return ds, [lambda: ds.origin(3), lambda: ds.tokens(0, 900), lambda: ds[5], lambda: ds.shard(0),
                lambda: ds.mask(0, 900), lambda: ds.document_at(7), lambda: ds.columns, lambda: len(ds),
                lambda: sum(map(len, ds[0:9])),
                lambda: [sum(view.tolist()) for view in ds.view(0, 900)]]

def of_run(run):
    ds = run.sources[0].dataset
    return run, [lambda: run.locate(1, 3), lambda: run.cursor(2), lambda: run.text, lambda: run.documents(1, 2),
                 lambda: ds.tokens(0, 900), lambda: ds.origin(3), lambda: run.phases,
                 lambda: run.find(document=3, end_step=2),
                 lambda: [sum(view.tolist()) for view in ds.view(0, 900)], lambda: run.sources]

def run():
    return of_run(tokmap.Run(**RUN))

def evaluation():
    with tokmap.Run(**{**RUN, "data": prefix + "#docs=0..80%"}) as made:
        return of_run(made.evaluation())

def loader():
    made = tokmap.Run(**RUN)
    loader, rows = made.loader(framework="dlpack"), made.dataset(framework="dlpack", world=1)
    return made, [loader.next, loader.stats, loader.state_dict, loader.delivery, lambda: rows[3:9],
                  lambda: loader.prometheus(), loader.source_stats, loader.rewind]

def tokenizer():
    made = tokmap.Tokenizer("bytes")
    return made, [lambda: made.encode("some words " * 200), lambda: made.decode([65, 66] * 200),
                  lambda: made.id_to_token(65),
                  lambda: made.encode_batch(["some words", "more"] * 50, threads=2),
                  lambda: made.encode_array("words " * 99),
                  lambda: made.decode_batch([[65, 66]] * 50, threads=2), lambda: made.token_to_id("A")]

def writer():
    made = tokmap.ShardWriter(f"{prefix} {number}", vocab_size=300, sync=False)
    made.close = made.abandon if number % 2 else made.commit
    return made, [lambda: made.add([1, 2, 3]), lambda: made.add_batch([1, 2, 3], [1, 3]), lambda: made.tokens,
                  lambda: made.describe({"a": 1}), lambda: repr(made)]

calls = 0
for number in range(rounds):
    target, methods = globals()[what]()
    wrong, ready = [], threading.Barrier(4)

    def use(first):
        global calls
        ready.wait()
        try:
            while True:
                for method in methods[first:] + methods[:first]:
                    method()
                    calls += 1
                    if wrong:
                        return
        except BaseException as problem:
            if isinstance(problem, tokmap.ArgumentError) and re.search("is closed|has been", str(problem)):
                return
            wrong.append(problem)

    users = [threading.Thread(target=use, args=(i,)) for i in range(3)]
    for user in users:
        user.start()
    ready.wait()
    time.sleep(0.001 * (number % 7))
    while True:
        try:
            target.close()
            break
        except tokmap.TokmapError as problem:
            assert "views" in str(problem), problem
    for user in users:
        user.join()
    if wrong:
        raise wrong[0]
print(calls > 0)
"""


class Storms(WithData):
    ROUNDS = int(os.environ.get("TOKMAP_STORM_ROUNDS", 0))

    def storm(self, what, rounds):
        said = python(STORM, self.prefix, what, self.ROUNDS or rounds, MALLOC_PERTURB_="165", check=False)
        self.assertEqual((said.returncode, said.stdout), (0, "True\n"), said.stderr[-3000:])

    def test_datasets(self):
        self.storm("dataset", 60)

    def test_runs(self):
        self.storm("run", 40)

    def test_evaluations(self):
        self.storm("evaluation", 30)

    def test_loaders(self):
        self.storm("loader", 25)

    def test_tokenizers(self):
        self.storm("tokenizer", 60)

    def test_writers(self):
        self.storm("writer", 40)

    def test_views_keep_their_memory(self):
        dataset = tokmap.Dataset(self.prefix)
        ids, view = dataset.tokens(0, 50).tolist(), dataset.view(0, 50)[0]
        with self.assertRaisesRegex(tokmap.TokmapError, "views"):
            dataset.close()
        dataset._handle = None  # as if another thread had closed it before it could see the view
        with self.assertRaisesRegex(tokmap.ArgumentError, "is closed"):
            dataset.tokens(0, 1)
        gc.collect()
        self.assertEqual(view.tolist(), ids)
        self.assertTrue(held(self.folder))
        del view
        self.assertEqual(held(self.folder), [])


_places = {}


def places(code):
    """The instructions of a function before which the interpreter handles signals: those after a call, after the end of
    a loop's turn, and at the function's start."""
    if code not in _places:
        found, before = set(), "RESUME"
        for each in dis.get_instructions(code):
            if before in ("CALL", "CALL_KW", "CALL_FUNCTION_EX", "RESUME", "JUMP_BACKWARD"):
                found.add(each.offset)
            before = each.opname
        _places[code] = found
    return _places[code]


class At:
    """While `with` lasts: calls a function at the k-th place at which Python, executing a function of this package,
    handles signals; with k=None at each."""

    def __init__(self, k, call):
        self.k, self.call, self.seen = k, call, 0

    def trace(self, frame, event, _):
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) or code.co_name == "__del__":
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in places(code):
            self.seen += 1
            if self.k in (self.seen, None):
                self.call(frame)
        return self.trace

    def __enter__(self):
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_):
        sys.settrace(None)


def ctrl_c(_):
    raise KeyboardInterrupt


BY_CALLS = unittest.skipIf(sys.version_info < (3, 11), "before Python 3.11, signals are handled anywhere")


@BY_CALLS
class Interrupted(WithData):
    def everywhere(self, action, undo, check, stride=1):
        """Runs an action once for each place in it, or for one of `stride` places, which differ from run to run,
        interrupted there, and checks after each. Returns the number of places."""
        k = -random.randrange(stride)
        while True:
            k += stride
            done = None
            try:
                with At(k, ctrl_c) as place:
                    done = action()
            except KeyboardInterrupt:
                pass
            if done is not None:
                undo(done)
            del done
            gc.collect()
            check(k)
            if place.seen < k:
                return place.seen

    def leaves_nothing(self, action, stride=1):
        """Wherever Ctrl-C ends an action that opens something, nothing stays open."""
        undo = type(action()).close
        gc.collect()
        before = held(self.folder), threads(), sorted(os.listdir(self.folder))

        def check(k):
            self.assertEqual((held(self.folder), threads(), sorted(os.listdir(self.folder))), before, k)
        self.assertGreater(self.everywhere(action, undo, check, stride), 10)

    def test_opening_a_dataset(self):
        self.leaves_nothing(lambda: tokmap.Dataset(self.prefix))

    def test_opening_a_run(self):
        self.leaves_nothing(lambda: self.run_of(), 3)

    def test_opening_a_loader(self):
        with self.run_of() as run:
            run.loader(framework="dlpack").next()  # the run's dataset maps its file when it is read
            self.leaves_nothing(lambda: run.loader(framework="dlpack"), 9)
            self.leaves_nothing(lambda: run.dataset(framework="dlpack"), 9)

    def test_opening_an_evaluation(self):
        with tokmap.Run(data=self.prefix + "#docs=0..80%", seq_len=48, batch=6) as run:
            self.leaves_nothing(run.evaluation, 3)

    def test_opening_a_writer(self):
        def action():
            return tokmap.ShardWriter(os.path.join(self.folder, "written"), vocab_size=300, sync=False)
        action().abandon()
        with warnings_ignored():
            before = held(self.folder), sorted(os.listdir(self.folder))
            seen = self.everywhere(action, tokmap.ShardWriter.abandon, lambda k: self.assertEqual(
                (held(self.folder), sorted(os.listdir(self.folder))), before, k), 3)
        self.assertGreater(seen, 30)

    def test_committing(self):
        """Ctrl-C at any instruction leaves the whole shard or nothing, and the writer knows which."""
        prefix = os.path.join(self.folder, "committed")
        made = []

        def action():
            with tokmap.ShardWriter(prefix, vocab_size=300, sync=False) as writer:
                made.append(writer)
                writer.add([1, 2, 3])
            return writer

        def check(k):
            committed = bool(made) and made.pop().content is not None
            files = sorted(set(os.listdir(self.folder)) - kept)
            self.assertEqual(files, ["committed.bin", "committed.tmx"] if committed else [], k)
            for name in files:
                os.remove(os.path.join(self.folder, name))
        kept = set(os.listdir(self.folder))
        with warnings_ignored():
            self.everywhere(action, lambda _: None, check, 3)

    def test_tokenizers(self):
        """Every handle of the library's tokenizers is closed, wherever Ctrl-C arrives."""
        loaded = _tokenize_library.library()
        kinds, counts = loaded._kinds, {"open": 0}

        class Counted(kinds[0]):
            __slots__ = ()

            def __del__(self):
                if self:
                    counts["open"] -= 1
                    loaded.calls.tokmap_tokenizer_close(self)

        def counted(name):
            function = getattr(loaded.calls, name)

            def call(to, *rest):
                status = function(to, *rest)
                counts["open"] += not status
                return status
            setattr(loaded.calls, name, call)
            return function
        functions = {name: counted(name) for name in ("tokmap_tokenizer_open", "tokmap_tokenizer_share")}
        loaded._kinds = Counted, kinds[1]
        try:
            vocabulary = os.path.join(self.folder, "ranks.tiktoken")
            with open(vocabulary, "w", encoding="ascii") as file:
                import base64
                file.writelines(f"{base64.b64encode(bytes([i])).decode()} {i}\n" for i in range(256))

            def action():
                made = tokmap.Tokenizer(vocabulary, pattern="gpt2", special="recognize")
                made.encode_ordinary("words")
                return made
            seen = self.everywhere(action, tokmap.Tokenizer.close, lambda k: self.assertEqual(counts["open"], 0, k), 3)
            self.assertGreater(seen, 30)
        finally:
            loaded._kinds = kinds
            for name, function in functions.items():
                setattr(loaded.calls, name, function)

    def test_closing(self):
        """Ctrl-C in close() leaves an object that can be closed again."""
        def opened():
            run = self.run_of()
            return run, run.loader(framework="dlpack"), tokmap.Dataset(self.prefix)
        k = 0
        while True:
            k += 1
            run, loader, dataset = opened()
            try:
                with At(k, ctrl_c) as place:
                    dataset.close()
                    run.close()
            except KeyboardInterrupt:
                pass
            for each in (dataset, run, loader):
                each.close()
            self.assertEqual((held(self.folder), threads()), ([], self.before), k)
            if place.seen < k:
                break

    def setUp(self):
        gc.collect()
        self.before = threads()


class warnings_ignored:
    """A writer that is given up warns; here that is expected."""
    def __enter__(self):
        import warnings
        self.caught = warnings.catch_warnings()
        self.caught.__enter__()
        warnings.simplefilter("ignore", ResourceWarning)

    def __exit__(self, *problem):
        self.caught.__exit__(*problem)


@BY_CALLS
class Next(WithData):
    def setUp(self):
        self.steps = [b.inputs.tolist() for b, _ in zip(self.run_of().loader(framework="dlpack"), range(9))]

    def test_ctrl_c_at_every_instruction(self):
        """The batch is neither lost nor delivered twice, whether the program continues with the loader or resumes from
        its state."""
        run, places = self.run_of(), 0
        for thread in (0, 1):
            for given in (False, True):
                loader = run.loader(framework="dlpack", threads=thread)
                out = {"out": loader.out()} if given else {}
                k = interrupted = 0
                while True:
                    step, batch = k % 8, None
                    k += 1
                    if step == 0:
                        loader.rewind()
                    try:
                        with At(k, ctrl_c) as place:
                            batch = loader.next(**out)
                    except KeyboardInterrupt:
                        interrupted += 1
                        self.assertIsNone(batch)
                        state = loader.state_dict()
                        self.assertEqual(state["step"], step, k)
                        if k % 3 == 0:
                            loader.load_state_dict(state)
                        batch = loader.next(**out)
                    self.assertEqual((batch.step, batch.inputs.tolist()), (step, self.steps[step]), k)
                    self.assertEqual(loader.state_dict()["step"], step + 1, k)
                    if place.seen < k:
                        break
                self.assertEqual(interrupted, k - 1)
                places += interrupted
                loader.close()
        self.assertGreater(places, 100)

    def test_a_handler_at_every_place_asks_for_the_state(self):
        """Until next() has returned, the state is that after the previous batch, and the handler may not close or move
        the loader."""
        loader, asked = self.run_of().loader(framework="dlpack"), []
        for step in range(3):
            def handler(frame):
                asked.append(loader.state_dict()["step"])
                for call in (loader.next, loader.close, loader.rewind, lambda: loader.load_state_dict({})):
                    if frame.f_code is not tokmap.Loader.next.__code__ or loader._returning or loader._lock._is_owned():
                        with self.assertRaisesRegex(tokmap.ArgumentError, "signal handler"):
                            call()
            with At(None, handler):
                batch = loader.next()
            self.assertEqual((batch.step, set(asked)), (step, {step}))
            self.assertGreater(len(asked), 10)
            del asked[:]

    def test_another_thread_while_next_returns(self):
        """A thread that comes between the release of the lock and the return waits for the return."""
        import threading
        loader, others = self.run_of().loader(framework="dlpack"), []
        for step in range(0, 8, 2):
            def other(frame):
                if frame.f_code is tokmap.Loader.next.__code__ and loader._returning and not others:
                    others.append(threading.Thread(target=lambda: others.append(loader.next())))
                    others[0].start()
                    others[0].join(0.05)
            with At(None, other):
                batch = loader.next()
            others[0].join()
            self.assertEqual([batch.step, others[1].step], [step, step + 1])
            self.assertEqual(batch.inputs.tolist(), self.steps[step])
            del others[:]

    def test_ctrl_c_in_moves(self):
        """After an interrupted move the loader refuses to deliver until it is moved again, or it delivers what its
        state says."""
        run = self.run_of()
        state = run.loader(framework="dlpack", resume=run.cursor(5)).state_dict()
        for name, again in (("rewind", 0), ("load_state_dict", 5)):
            k = refused = 0
            while True:
                k += 3
                loader = run.loader(framework="dlpack")
                for _ in range(3):
                    loader.next()

                def move():
                    return loader.rewind() if name == "rewind" else loader.load_state_dict(state)
                try:
                    with At(k, ctrl_c) as place:
                        move()
                except KeyboardInterrupt:
                    at = loader.state_dict()["step"]
                    self.assertIn(at, (3, again))
                    try:
                        self.assertEqual(loader.next().step, at, k)
                    except tokmap.ArgumentError as problem:
                        self.assertIn("call it again", str(problem))
                        refused += 1
                        move()
                        self.assertEqual(loader.next().inputs.tolist(), self.steps[again])
                loader.close()
                if place.seen < k:
                    break
            self.assertGreater(refused, 0)


class Ended(WithData):
    """What has raised an exception is closed at once, not when Python collects cycles."""

    def setUp(self):
        gc.disable()
        self.addCleanup(gc.enable)

    def test_a_loader_at_the_end_of_its_run(self):
        trace = os.path.join(new_folder(), "trace")
        with tokmap.Run(data=self.prefix, seq_len=SEQ, batch=BATCH, steps=2) as run:
            for threads_ in (0, 1):
                with run.loader(trace=trace, threads=threads_) as loader:
                    self.assertEqual(sum(b.count for b in loader), 2 * BATCH)
                run.loader(trace=trace).close()  # a trace has one writer


class Forks(WithData):
    def child(self, action):
        """Runs an action in a child after fork(). It ends with 0, or is killed after 20 seconds."""
        child = os.fork()
        if not child:
            try:
                import signal
                signal.alarm(20)
                action()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_fork_while_another_thread_has_the_lock(self):
        import threading
        run = self.run_of()
        loader, rows = run.loader(framework="dlpack"), run.dataset(framework="dlpack")
        writer = tokmap.ShardWriter(os.path.join(self.folder, "of the parent"), vocab_size=300, sync=False)
        writer.add([1, 2, 3])
        begun, end = threading.Event(), threading.Event()

        def have_locks():
            with loader._lock, loader._query_lock, rows._lock, writer._lock:
                begun.set()
                end.wait()
        thread = threading.Thread(target=have_locks)
        thread.start()
        begun.wait()

        def action():
            assert rows[0]["inputs"].tolist()
            loader.stats()
            assert loader.state_dict()["step"] == 0
            repr(writer)
            for call in (writer.commit, lambda: writer.add([1])):
                try:
                    call()
                    raise AssertionError("the child used its parent's writer")
                except tokmap.ArgumentError as problem:
                    assert "belongs to the process" in str(problem)
            loader.close()
            run.close()
            writer.abandon()
        try:
            self.child(action)
            with self.subTest("while next() returns"):
                loader._returning = thread.ident
                self.child(loader.close)
                loader._returning = 0
        finally:
            end.set()
            thread.join()
        self.assertEqual(loader.next().step, 0)
        self.assertEqual(len(writer.commit()), 32)  # the child took nothing away
        self.assertEqual(tokmap.Dataset(writer.path).tokens().tolist(), [1, 2, 3])

    def test_forks_while_threads_work(self):
        """No lock of the library or of this package is needed that a thread of the parent could have."""
        import threading
        run, dataset, tokenizer = self.run_of(), tokmap.Dataset(self.prefix), tokmap.Tokenizer("bytes")
        rows, stop = run.dataset(framework="dlpack"), []
        expected = tokenizer.encode("words"), dataset[5].tolist(), rows[3]["inputs"].tolist()

        def used():
            return (tokenizer.encode("words"), dataset[5].tolist(), rows[3]["inputs"].tolist())

        def work():
            while not stop:
                used()
                tokenizer.encode_batch(["words"] * 20, threads=2)
        workers = [threading.Thread(target=work) for _ in range(2)]
        for worker in workers:
            worker.start()

        def action():
            assert used() == expected
            assert list(tokenizer.encode_batch(["words"], threads=2)[0]) == expected[0]
        try:
            for _ in range(20):
                self.child(action)
        finally:
            stop.append(True)
            for worker in workers:
                worker.join()


class Encoding(unittest.TestCase):
    def test_a_handler_that_encodes(self):
        """A signal handler interrupts encode() after the library's call, and encodes another text."""
        tokenizer = tokmap.Tokenizer("bytes")
        other, answers = "other words than these", []
        with At(None, lambda _: answers.append(tokenizer.encode(other))):
            self.assertEqual(tokenizer.encode("some words"), list(b"some words"))
            self.assertEqual(tokenizer.encode_array("some words").tolist(), list(b"some words"))
        self.assertGreater(len(answers), 8)
        self.assertTrue(all(answer == list(other.encode()) for answer in answers))


class Pickles(unittest.TestCase):
    def test_other_contents(self):
        """A pickled dataset is refused over files with other contents, as a run is."""
        folder = new_folder()
        prefix = pack(folder, seed=1)
        dataset = tokmap.Dataset(prefix, reading="pread")
        text = pickle.dumps(dataset)
        again = pickle.loads(text)
        self.assertEqual((again.info, again[5].tolist()), (dataset.info, dataset[5].tolist()))
        part = pickle.dumps(tokmap.Dataset(prefix + "#docs=0..50%"))
        for end in (".bin", ".tmx"):
            os.remove(prefix + end)
        pack(folder, seed=2)
        before = held(folder)
        for pickled in (text, part):
            with self.assertRaisesRegex(class_of("ERROR_MISMATCH"), "was pickled with the content id .*have changed"):
                pickle.loads(pickled)
        gc.collect()
        self.assertEqual(held(folder), before)
        shutil.rmtree(folder)

    def test_a_closed_dataset(self):
        folder = new_folder()
        dataset = tokmap.Dataset(pack(folder))
        content = dataset.info.content
        dataset.close()
        self.assertEqual(pickle.loads(pickle.dumps(dataset)).info.content, content)
        shutil.rmtree(folder)


class About(unittest.TestCase):
    def test_bytes_that_are_not_utf_8(self):
        """An index of another program, whose checksums are right and whose about is not UTF-8, is shown all the same."""
        path = ctypes.util.find_library("xxhash")
        if path is None:
            self.skipTest("no libxxhash")
        hash64 = ctypes.CDLL(path).XXH3_64bits
        hash64.restype, hash64.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
        folder = new_folder()
        prefix = pack(folder)
        with tokmap.Dataset(prefix) as dataset:
            about = dataset.shard(0).about
        with open(prefix + ".tmx", "rb") as file:
            index = bytearray(file.read())
        count, table = struct.unpack_from("<IQ", index, 20)
        for entry in range(table, table + 40 * count, 40):
            kind, _, offset, length = struct.unpack_from("<IIQQ", index, entry)
            if kind == 7:
                at = index.index(b"tokmap", offset)
                index[at] = 0xFF
                struct.pack_into("<Q", index, entry + 24, hash64(bytes(index[offset:offset + length]), length))
        struct.pack_into("<Q", index, 40, hash64(bytes(index[table:]), len(index) - table))
        struct.pack_into("<Q", index, 56, hash64(bytes(index[:56]), 56))
        os.chmod(prefix + ".tmx", 0o644)
        with open(prefix + ".tmx", "wb") as file:
            file.write(index)
        with tokmap.Dataset(prefix) as dataset:
            self.assertEqual(dataset.shard(0).about, about.replace("tokmap", "\ufffdokmap", 1))
            self.assertEqual(tokmap.Tokenizer.of(dataset).name, "bytes")
        shutil.rmtree(folder)


if __name__ == "__main__":
    unittest.main()
