# SPDX-License-Identifier: MIT
"""ShardWriter and the columns of datasets: ids of every kind, what is refused, and how a writer ends."""
import array
import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings

import tokmap
from tokmap.errors import class_of
from support import TOKMAP, needs, new_folder, python


class Writing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()

    def name(self, name):
        return os.path.join(self.folder, name)

    def left(self, name):
        return sorted(file for file in os.listdir(self.folder) if file.startswith(name + "."))

    def documents(self, name):
        with tokmap.Dataset(self.name(name)) as dataset:
            dataset.verify()
            return [ids.tolist() for ids in dataset]


class Ids(Writing):
    def test_lists_and_buffers(self):
        want = [[1, 2, 3], [], [255, 0], [7, 8], [5, 6], [9], [4], [100, 101]]
        with tokmap.ShardWriter(self.name("lists"), vocab_size=300) as writer:
            writer.add(want[0])
            writer.add(())
            writer.add(bytes(want[2]))
            writer.add(array.array("q", want[3]))
            writer.add(memoryview(array.array("H", [5, 0, 6]))[::2])
            writer.add(i for i in want[5])
            writer.add(bytearray(want[6]))
            writer.add(range(100, 102))
            self.assertEqual((writer.documents, writer.tokens), (8, 13))
        self.assertEqual(self.documents("lists"), want)
        self.assertEqual(self.left("lists"), ["lists.bin", "lists.tmx"])
        with tokmap.Dataset(self.name("lists")) as dataset:
            self.assertEqual(dataset.info.content, writer.content)
            self.assertEqual((dataset.info.eod_id, dataset.info.width, dataset.info.vocabulary), (None, 2, 300))
            self.assertEqual(json.loads(dataset.shard(0).about)["tool"], "tokmap_writer")

    @needs("numpy")
    def test_numpy(self):
        import numpy
        kinds = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
        strided = numpy.arange(20, dtype=numpy.int32)[::3]
        frozen = numpy.array([3, 4], dtype=numpy.int64)
        frozen.flags.writeable = False
        with tokmap.ShardWriter(self.name("numpy"), vocab_size=100000, eod=99999) as writer:
            for kind in kinds:
                writer.add(numpy.array([1, 2, 127], dtype=kind))
            writer.add(strided)
            writer.add(frozen)
            writer.add([numpy.int64(5)])
            writer.add(numpy.array([], dtype=numpy.int64))
            for wrong in (numpy.array([1.5]), numpy.array([[1]]), numpy.array(["a"]), numpy.array([1], dtype=">i4"), [1.5]):
                with self.assertRaises(tokmap.ArgumentError):
                    writer.add(wrong)
        want = [[1, 2, 127, 99999]] * 8 + [[*strided.tolist(), 99999], [3, 4, 99999], [5, 99999], [99999]]
        self.assertEqual(self.documents("numpy"), want)

    @needs("torch")
    def test_torch(self):
        import torch
        with tokmap.ShardWriter(self.name("torch"), vocab_size=1000) as writer:
            for kind in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
                writer.add(torch.tensor([1, 2, 100], dtype=kind))
            writer.add(torch.arange(10)[::2])
            writer.add(torch.tensor([3.0], requires_grad=True).detach().long())
            for wrong in (torch.tensor([1.5]), torch.tensor([[1]]), torch.empty(3, device="meta", dtype=torch.int64)):
                with self.assertRaises(tokmap.ArgumentError):
                    writer.add(wrong)
        self.assertEqual(self.documents("torch"), [[1, 2, 100]] * 5 + [[0, 2, 4, 6, 8], [3]])

    def test_batches(self):
        with tokmap.ShardWriter(self.name("batch"), vocab_size=100, bos=99, eod=98, mask=True, columns=["n"]) as writer:
            writer.add_batch(array.array("i", range(6)), [2, 2, 6], mask=[0, 1, 1, 0, 0, 1], columns={"n": [1, None, "x"]},
                             origin=("a.jsonl", 7))
            writer.add_batch([1, 2], array.array("B", [1, 2]), columns=[{}, {"n": [2.5]}])
            writer.add_batch([], [])
            with self.assertRaises(tokmap.ArgumentError):
                writer.add_batch([1], [])
            with self.assertRaises(tokmap.ArgumentError):
                writer.add_batch([1, 2], [2, 1])
            with self.assertRaises(tokmap.ArgumentError):
                writer.add_batch([1, 2], [1, 2], columns={"n": [1]})
        self.assertEqual(self.documents("batch"), [[99, 0, 1, 98], [99, 98], [99, 2, 3, 4, 5, 98], [99, 1, 98], [99, 2, 98]])
        with tokmap.Dataset(self.name("batch")) as dataset:
            self.assertEqual([int(bit) for bit in dataset.mask()],
                             [0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1])
            self.assertEqual([dataset.value(i, "n", "none") for i in range(5)], [1, None, "x", "none", [2.5]])
            self.assertEqual([dataset.origin(i) for i in (0, 4)], [("a.jsonl", 7), ("a.jsonl", 11)])

    def test_columns_in_a_str(self):
        with tokmap.ShardWriter(self.name("str"), vocab_size=9, columns="url,score") as writer:
            self.assertEqual(writer.columns, ("url", "score"))
            writer.add([1], columns={"url": "u", "score": 0.5})
        with tokmap.Dataset(self.name("str")) as dataset:
            self.assertEqual(dataset.values(0), {"url": "u", "score": 0.5})
        for wrong in ("", "url,", "url,url"):
            with self.assertRaises(tokmap.ArgumentError, msg=wrong):
                tokmap.ShardWriter(self.name("wrong"), vocab_size=9, columns=wrong)

    def test_refused_documents_leave_no_trace(self):
        with tokmap.ShardWriter(self.name("refused"), vocab_size=100, mask=True, columns=("a", "b")) as writer:
            writer.add([1])
            of_id = class_of("ERROR_TOKEN")
            for wrong, kind in (([100], of_id), ([-100], of_id), ([2 ** 70], of_id),
                                ("text", tokmap.ArgumentError), ({1: 2}, tokmap.ArgumentError),
                                ([None], tokmap.ArgumentError), (5, tokmap.ArgumentError)):
                with self.assertRaises(kind, msg=repr(wrong)):
                    writer.add(wrong)
            for mask in ([1], [0, 1, 2], [0, -1, 1], [0, 256, 1]):
                with self.assertRaises(tokmap.InputError, msg=repr(mask)):
                    writer.add([1, 2, 3], mask=mask)
            with self.assertRaises(tokmap.ArgumentError):
                writer.add([1], columns={"c": 1})
            for value in (float("nan"), object(), "\ud800", {1, 2}):
                with self.assertRaises(tokmap.InputError, msg=repr(value)):
                    writer.add([1], columns={"a": value})
            with self.assertRaisesRegex(of_id, "id 1 of document 0 .* is 100, which is not in the vocabulary"):
                writer.add([1, 100])
            writer.add([2, 3], mask=[True, False], columns={"b": {"x": [1, "ä"]}})
        self.assertEqual(self.documents("refused"), [[1], [2, 3]])
        with tokmap.Dataset(self.name("refused")) as dataset:
            self.assertEqual(dataset.columns, ("a", "b"))
            self.assertEqual(dataset.values(0), {})
            self.assertEqual(dataset.values(1), {"b": {"x": [1, "ä"]}})
            self.assertEqual(dataset.mask().tolist(), [True, True, False])
            with self.assertRaises(class_of("ERROR_NOT_FOUND")):
                dataset.value(0, "c")
            with self.assertRaises(class_of("ERROR_RANGE")):
                dataset.value(2, "a")

    def test_masks_of_no_ids(self):
        """An EOD after no id does not count, and a BOS never does; without a mask both count."""
        import array
        with tokmap.ShardWriter(self.name("none"), vocab_size=100, bos=99, eod=98, mask=True) as writer:
            writer.add([], mask=[])
            writer.add(array.array("H"), mask=array.array("B"))
            writer.add_batch([], [0, 0], mask=b"")
            writer.add([])
            writer.add([7], mask=[1])
            for mask in ([], [1, 1]):
                with self.assertRaisesRegex(tokmap.InputError, "element.*but there is 1 id"):
                    writer.add([7], mask=mask)
            with self.assertRaisesRegex(tokmap.InputError, "but there are 0 ids"):
                writer.add([], mask=[1])
        with tokmap.Dataset(self.name("none")) as dataset:
            self.assertEqual([int(bit) for bit in dataset.mask()], [0] * 8 + [1, 1] + [0, 1, 1])
        with tokmap.ShardWriter(self.name("without"), vocab_size=100) as writer:
            with self.assertRaisesRegex(tokmap.ArgumentError, "without a mask"):
                writer.add([], mask=[])
            writer.add([1])

    @needs("numpy")
    def test_masks_of_numpy(self):
        import numpy
        with tokmap.ShardWriter(self.name("masks"), vocab_size=100, mask=True, columns=["score"]) as writer:
            for kind in ("bool", "uint8", "int8", "int32", "int64"):
                writer.add([1, 2, 3], mask=numpy.array([0, 1, 1], dtype=kind), columns={"score": numpy.float32(0.5)})
            with self.assertRaises(tokmap.ArgumentError):
                writer.add([1, 2, 3], mask=numpy.array([0, 1, 0.5]))
        with tokmap.Dataset(self.name("masks")) as dataset:
            self.assertEqual(dataset.mask().tolist(), [False, True, True] * 5)
            self.assertEqual(dataset.value(4, "score"), 0.5)

    def test_the_bytes_are_those_of_the_command(self):
        with open(self.name("texts.jsonl"), "w", encoding="utf-8") as file:
            for i in range(50):
                file.write(json.dumps({"text": f"document {i}"}) + "\n")
        subprocess.run([TOKMAP, "pack", "-q", "-t", "bytes", "-o", self.name("packed"), self.name("texts.jsonl")], check=True)
        with tokmap.Tokenizer("bytes") as tokenizer, \
                tokmap.ShardWriter(self.name("own"), tokenizer=tokenizer, eod=tokenizer.eod_id) as writer:
            for i in range(50):
                writer.add(tokenizer.encode(f"document {i}"))
        with tokmap.Dataset(self.name("packed")) as packed, tokmap.Dataset(self.name("own")) as own:
            self.assertEqual(packed.info._replace(reading=""), own.info._replace(reading=""))


class Ending(Writing):
    def test_an_exception_leaves_nothing(self):
        for kind in (ValueError, KeyboardInterrupt, SystemExit, class_of("ERROR_TOKEN")):
            with self.assertRaises(kind):
                with tokmap.ShardWriter(self.name("gone"), vocab_size=10) as writer:
                    writer.add([1])
                    self.assertEqual(self.left("gone"), ["gone.bin.partial", "gone.tmx.partial"])
                    writer.add([11] if kind is class_of("ERROR_TOKEN") else [2])
                    raise kind("on purpose")
            self.assertEqual(self.left("gone"), [])
            self.assertIsNone(writer.content)
            self.assertEqual(writer.documents, 1 if kind is class_of("ERROR_TOKEN") else 2)
            with self.assertRaisesRegex(tokmap.ArgumentError, "given up"):
                writer.add([1])

    def test_commit_abandon_and_close(self):
        writer = tokmap.ShardWriter(self.name("ends"), vocab_size=10)
        with self.assertRaises(class_of("ERROR_BUSY")):
            tokmap.ShardWriter(self.name("ends"), vocab_size=10)
        writer.add([1])
        self.assertIn("1 token, 1 document>", repr(writer))
        content = writer.commit()
        self.assertEqual((content, writer.content, writer.tokens), (writer.commit(), content, 1))
        writer.abandon()
        writer.close()
        self.assertIn("committed", repr(writer))
        with self.assertRaisesRegex(tokmap.ArgumentError, "committed"):
            writer.add([1])
        with self.assertRaises(class_of("ERROR_EXISTS")):
            tokmap.ShardWriter(self.name("ends"), vocab_size=10)
        with tokmap.ShardWriter(self.name("ends"), vocab_size=10, replace=True, sync=False) as writer:
            writer.abandon()
        self.assertEqual(self.documents("ends"), [[1]])
        with tokmap.ShardWriter(self.name("ends"), vocab_size=10, replace=True) as writer:
            writer.add([2])
        self.assertEqual(self.documents("ends"), [[2]])
        with self.assertRaises(TypeError):
            pickle.dumps(writer)

    def test_a_forgotten_writer_warns(self):
        writer = tokmap.ShardWriter(self.name("forgotten"), vocab_size=10)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del writer
            gc.collect()
        self.assertEqual([warning.category for warning in caught], [ResourceWarning])
        self.assertEqual(self.left("forgotten"), [])

    def test_a_child_does_not_touch_its_parents_files(self):
        with tokmap.ShardWriter(self.name("fork"), vocab_size=10) as writer:
            writer.add([1])
            child = os.fork()
            if not child:
                status = 1
                try:
                    writer.add([2])
                except tokmap.ArgumentError:
                    writer.abandon()
                    status = 0
                finally:
                    os._exit(status)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            writer.add([3])
        self.assertEqual(self.documents("fork"), [[1], [3]])

    def test_a_signal_leaves_nothing(self):
        """Ctrl-C in a program that writes."""
        code = ("import sys, tokmap\n"
                "with tokmap.ShardWriter(sys.argv[1], vocab_size=1000) as w:\n"
                "    print('ready', flush=True)\n"
                "    while True:\n        w.add(list(range(1000)))\n")
        program = subprocess.Popen([sys.executable, "-c", code, self.name("signal")], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        self.assertEqual(program.stdout.readline(), b"ready\n")
        time.sleep(0.2)
        program.send_signal(signal.SIGINT)
        self.assertNotEqual(program.wait(60), 0)
        program.stdout.close()
        self.assertEqual(self.left("signal"), [])

    def test_threads_take_turns(self):
        with tokmap.ShardWriter(self.name("threads"), vocab_size=100) as writer:
            def work(number):
                for _ in range(200):
                    writer.add([number] * number)
            threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        found = self.documents("threads")
        self.assertEqual(len(found), 800)
        self.assertTrue(all(set(ids) == {len(ids)} for ids in found))

    def test_without_numpy(self):
        code = ("import sys; sys.modules['numpy'] = None; import tokmap, array\n"
                "with tokmap.ShardWriter(sys.argv[1], vocab_size=9, mask=True) as w:\n"
                "    w.add([1, 2], mask=array.array('i', [0, 1])); w.add(memoryview(b'\\3'))\n"
                "print(tokmap.Dataset(sys.argv[1]).tokens().tolist())")
        self.assertEqual(python(code, self.name("plain")).strip(), "[1, 2, 3]")


class Options(Writing):
    def test_wrong_options(self):
        for options, words in (({}, "vocab_size is missing"), ({"vocab_size": 0}, "vocab_size is 0"),
                               ({"vocab_size": "x"}, "vocab_size is 'x'"), ({"vocab_size": 9, "eod": 9}, "EOD or BOS id"),
                               ({"vocab_size": 9, "eod": -1}, "eod is -1"), ({"vocab_size": 9, "width": 3}, "width is 3"),
                               ({"vocab_size": 70000, "width": 2}, "wider tokens"),
                               ({"vocab_size": 9, "columns": ["a", "a"]}, "'a' twice"),
                               ({"vocab_size": 9, "columns": [""]}, "is empty"),
                               ({"vocab_size": 9, "delimited": True}, "delimited"),
                               ({"vocab_size": 9, "tokenizer": "12"}, "fingerprint"),
                               ({"vocab_size": 9, "about": {"a": object()}}, "cannot be written as JSON")):
            with self.assertRaisesRegex(ValueError, words):
                tokmap.ShardWriter(self.name("never"), **options)
        with self.assertRaises(class_of("ERROR_NOT_FOUND")):
            tokmap.ShardWriter(self.name("no/such"), vocab_size=9)
        self.assertEqual(self.left("never"), [])

    def test_delimited_and_about(self):
        with tokmap.ShardWriter(self.name("delimited"), vocab_size=9, eod=8, delimited=True, columns="url",
                                about={"tokenizer": {"name": "mine"}}, tokenizer="ab" * 16) as writer:
            writer.add([1, 8], columns={"url": "https://example.org"}, origin="a.txt")
            with self.assertRaisesRegex(tokmap.InputError, "does not end with id 8"):
                writer.add([1])
        with tokmap.Dataset(self.name("delimited")) as dataset:
            self.assertEqual((dataset.info.eod_id, dataset.info.tokenizer), (8, "ab" * 16))
            self.assertEqual(json.loads(dataset.shard(0).about), {"tokenizer": {"name": "mine"}})
            self.assertEqual(dataset.value(0, "url"), "https://example.org")
            self.assertEqual(dataset.origin(0), ("a.txt", 0))

    def test_a_long_about_is_printed_in_part(self):
        with tokmap.ShardWriter(self.name("long"), vocab_size=9,
                                about={"key%u" % i: {"value": i} for i in range(20000)}) as writer:
            writer.add([1])
        text = subprocess.run([TOKMAP, "info", self.name("long")], check=True, stdout=subprocess.PIPE).stdout.decode()
        self.assertIn("key999 value  999\n", text)
        self.assertNotIn("key1000 value", text)
        self.assertIn("these are the first 1000 values of ", text)


if __name__ == "__main__":
    unittest.main()
