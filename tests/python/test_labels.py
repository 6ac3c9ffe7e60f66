# SPDX-License-Identifier: MIT
"""Labels, and what else a batch hands to a program: the fields in their order, its share, and what is refused where
some tokens must not be learned."""
import collections
import pickle
import subprocess
import unittest

import tokmap
from support import TOKMAP, WithData, importable, needs, python, values

SEQ, BATCH, PAD = 24, 5, 7


class Masked(WithData):
    """A dataset with a mask, and its labels, computed token by token."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.chat, seed = f"{cls.folder}/chat", 5
        with tokmap.ShardWriter(cls.chat, vocab_size=70000, eod=69999, mask=True) as writer:
            for n in range(60):
                ids, mask = [], []
                for _ in range(n % 7 * 9 % 40):
                    seed = (seed * 6364136223846793005 + 1442695040888963407) % 2 ** 64
                    ids.append((seed >> 33) % 69999)
                    mask.append(seed >> 40 & 1)
                writer.add(ids, mask=mask)
        with tokmap.Dataset(cls.chat) as ds:
            cls.tokens, cls.mask = list(map(int, ds.tokens())), list(map(bool, ds.mask()))
            cls.starts = {ds.document(i).first_token for i in range(len(ds)) if ds.document(i).tokens} | {0}

    def text(self, more="", data=None, seq_len=SEQ):
        return f"seq_len {seq_len}\nbatch {BATCH}\npasses 1\nseed 3\nsource chat \"{data or self.chat}\"{more}\n"

    def labels_of(self, run, step, row, seq_len, stride=None, segments=False):
        """The labels of a row, from the definition of what counts."""
        place, tokens, starts, counts = run.locate(step, row), [], [], []
        for piece in run.extents(step, row):
            for at in range(piece.tokens):
                token = (piece.first_token + at) % len(self.tokens)
                tokens.append(self.tokens[token])
                starts.append(at == 0 or (not segments and token in self.starts))
                counts.append(self.mask[token])
        filled = min(len(tokens) if place.source is not None else 0, place.tokens)
        labels = [-100] * seq_len
        scored = seq_len - stride if stride and place.window else 0  # an earlier window has these targets
        for j in range(1, min(seq_len, filled)):
            if counts[j] and not starts[j] and j - 1 >= scored:
                labels[j] = tokens[j]
        return labels

    def check(self, run, seq_len=SEQ, **how):
        counted = 0
        for dtype in ("int32", "int64"):
            for fields in ("labels", "inputs labels", ["labels", "position_ids", "inputs"]):
                for threads in (0, 1):
                    with run.loader(fields=fields, dtype=dtype, framework="dlpack", threads=threads, rows=2) as loader:
                        for b in loader:
                            for i, row in enumerate(values(b.labels)):
                                self.assertEqual(row, self.labels_of(run, b.step, b.first_row + i, seq_len, **how))
                                counted += sum(label != -100 for label in row)
        self.assertGreater(counted, 100)

    def test_labels_are_their_definition(self):
        for seq_len in (2, SEQ, 64, 65, 130):
            self.check(tokmap.Run(text=self.text(seq_len=seq_len)), seq_len)
        self.check(tokmap.Run(text=self.text() + "lookahead 0\n"))
        self.check(tokmap.Run(text=self.text() + "lookahead 3\n"))
        self.check(tokmap.Run(text=self.text() + "tail pad\norder sequential\n"))
        self.check(tokmap.Run(text=self.text() + "tail pad\nstride 10\norder sequential\n"), stride=10)

    def test_labels_of_a_plan(self):
        subprocess.run([TOKMAP, "plan", "-q", "-o", f"{self.folder}/chat.plan", "--seq-len", str(SEQ), self.chat],
                       check=True, capture_output=True)
        self.check(tokmap.Run(text=self.text(f' plan "{self.folder}/chat.plan"')), segments=True)

    def test_labels_are_masked_targets_one_later(self):
        for data, more in ((self.chat, ""), (self.chat, "stride 7\n"), (self.prefix, "tail pad\n")):
            run = tokmap.Run(text=self.text(data=data) + more)
            for b in run.loader(fields="labels targets inputs", mask_targets=True, framework="dlpack"):
                for labels, targets, inputs in zip(*map(values, b)):
                    self.assertEqual(labels, [-100] + targets[:-1])
                    self.assertLessEqual({(label, id) for label, id in zip(labels, inputs) if label != -100},
                                         {(id, id) for id in inputs})

    def test_a_row_of_one_token_has_no_target(self):
        b = tokmap.Run(text=self.text(seq_len=1)).loader(fields="labels", framework="dlpack").next()
        self.assertEqual(values(b.labels), [[-100]] * BATCH)

    def test_a_map_style_dataset_has_labels(self):
        run = tokmap.Run(text=self.text())
        rows = run.dataset(fields="inputs labels", framework="dlpack")
        for i in range(len(rows)):
            self.assertEqual(values(rows[i:i + 1].labels)[0], self.labels_of(run, *rows.place(i), SEQ))
        again = pickle.loads(pickle.dumps(rows))
        self.assertEqual(values(again[3:5].labels), values(rows[3:5].labels))

    def test_inputs_alone_are_refused(self):
        """From inputs a program makes targets; where some do not count, it must know which."""
        subprocess.run([TOKMAP, "plan", "-q", "-o", f"{self.folder}/web.plan", "--seq-len", str(SEQ), self.prefix],
                       check=True, capture_output=True)
        for text, words in ((self.text(), "source 'chat' has a mask of the targets that count, but inputs are"),
                            (self.text(data=self.prefix) + "stride 7\n", "overlap (stride 7), so some inputs come twice"),
                            (self.text(data=self.prefix) + "tail pad\n", "padded (tail pad)"),
                            (self.text(f' plan "{self.folder}/web.plan"', self.prefix), "has a plan, whose rows can end")):
            run = tokmap.Run(text=text)
            for made in (lambda **more: run.loader(framework="dlpack", **more),
                         lambda **more: run.dataset(framework="dlpack", **more)):
                for fields in ("inputs", ["inputs", "position_ids"]):
                    with self.assertRaises(tokmap.ArgumentError) as caught:
                        made(fields=fields)
                    self.assertIn(words, str(caught.exception))
                    self.assertIn('add "labels" or "loss_mask" to fields, or set mask_targets to 1', str(caught.exception))
                for fields in ("inputs labels", "inputs loss_mask", "labels"):
                    made(fields=fields)
                made(fields="inputs", mask_targets=True)
        with self.assertRaisesRegex(tokmap.ArgumentError, "targets are requested without it; set mask_targets to 1"):
            tokmap.Run(text=self.text()).loader(fields="targets labels", framework="dlpack")
        tokmap.Run(text=self.text(data=self.prefix)).loader(fields="inputs", framework="dlpack")  # everything counts

    def test_a_place_has_the_name_of_its_source(self):
        run = tokmap.Run(text=self.text() + "tail pad\norder sequential\n")
        names = collections.Counter(place.name for b in run.loader(fields="labels", framework="dlpack") for place in b.places)
        self.assertEqual(set(names), {"chat", None})
        last = run.locate(run.info.steps - 1, BATCH - 1)
        self.assertEqual((last.source, last.name), (None, None))
        self.assertEqual({place.name for place in run.find(document=8)}, {"chat"})


class Batches(WithData):
    def batch(self, fields="targets inputs", **more):
        return self.run_of().loader(framework="dlpack", fields=fields, **more).next()

    def test_a_batch_unpacks_in_the_order_of_its_fields(self):
        for fields in ("targets inputs", "targets,inputs,targets", ["targets", "inputs"], ("targets", "inputs")):
            b = self.batch(fields)
            first, second = b
            self.assertIs(first, b.targets)
            self.assertIs(second, b.inputs)
            self.assertEqual(b.keys(), ("targets", "inputs"))
        one, = self.batch("labels")
        self.assertEqual(values(one)[0][0], -100)

    def test_the_fields_of_a_set_have_one_order_in_all_processes(self):
        names = "inputs targets position_ids document_ids loss_mask labels".split()
        for kind in (set, frozenset):
            self.assertEqual(self.batch(kind(names)).keys(), tuple(names))

    def test_a_batch_is_a_mapping(self):
        b = self.batch()
        for mapping in (dict(b), {**b}, dict(b.items()), (lambda **named: named)(**b)):
            self.assertEqual(list(mapping), ["targets", "inputs"])
            self.assertIs(mapping["inputs"], b.inputs)
        self.assertEqual(list(map(id, b.values())), [id(b.targets), id(b.inputs)])
        self.assertIn("inputs", b)
        self.assertNotIn("labels", b)
        self.assertFalse(hasattr(b, "labels"))
        self.assertIs(b["targets"], b.targets)
        with self.assertRaises(KeyError):
            b["labels"]

    def test_share(self):
        run = self.run_of(batch=6)
        for b in run.loader(framework="dlpack", rank=0, world=1, rows=4):
            self.assertEqual(b.share, b.count / 6)
        empty = run.loader(framework="dlpack", rank=0, world=4, rows=1).next()
        self.assertEqual((empty.count, empty.share), (0, 0))
        self.assertEqual(sum(self.run_of(batch=7).loader(framework="dlpack", rank=rank, world=3).next().share
                             for rank in range(3)), 1)

    @needs("numpy")
    def test_the_framework_of_the_program(self):
        """torch where the program has imported it or names a device, NumPy otherwise; what is passed decides."""
        head = ("import sys, types, tokmap\n"
                "run = tokmap.Run(data=sys.argv[1], seq_len=8, batch=2, seed=1)\n"
                "def kind(**named): return run.loader(**named)._arrays.name\n")
        self.assertEqual(python(head + "print(kind(), run.dataset()._arrays.name)", self.prefix).split(),
                         ["numpy", "numpy"])
        if importable("torch"):  # it is not installed
            self.assertEqual(python(head + "print(kind(device='cpu'))", self.prefix).split(), ["numpy"])
            return
        code = head + ("named = kind(device='cpu')\nimport torch, numpy\n"
                       "print(named, kind(), run.dataset()._arrays.name, kind(framework='numpy'), kind(dtype=numpy.int32),"
                       " kind(dtype='int32'), kind(framework='dlpack'))\n")
        self.assertEqual(python(code, self.prefix).split(), ["torch", "torch", "torch", "numpy", "numpy", "torch", "dlpack"])


class Notebooks(WithData):
    def test_tables(self):
        run = self.run_of()
        loader = run.loader(framework="dlpack")
        for shown, words in ((tokmap.Dataset(self.prefix), ("documents</th><td>60", self.prefix)),
                             (run.sources[0].dataset, ("source of a run</th><td>data",)), (run, ("source data",)),
                             (loader, ("next step</th><td>1", "inputs, targets")), (next(loader), ("(6, 48) int64",)),
                             (tokmap.Tokenizer("bytes"), ("ids</th><td>",))):
            html = shown._repr_html_()
            self.assertTrue(html.startswith("<table>") and html.endswith("</table>"), html)
            self.assertLess(len(html), 2000)
            for word in words:
                self.assertIn(word, html)

    def test_names_are_escaped(self):
        name = f"{self.folder}/<b>&"
        with tokmap.ShardWriter(name, vocab_size=9, columns=["<i>"]) as writer:
            writer.add([1] * 50)
        dataset, run = tokmap.Dataset(name), tokmap.Run(data=name, seq_len=8, batch=2)
        for shown in (dataset, run, run.loader(framework="dlpack")):
            self.assertIn("&lt;b&gt;&amp;", shown._repr_html_())
            self.assertNotRegex(shown._repr_html_(), "<[bi]>")
        dataset.close()
        run.close()
        for shown in (dataset, run):
            self.assertIn("closed", shown._repr_html_())
            self.assertIn("&lt;b&gt;&amp;", shown._repr_html_())

    def test_a_dataset_of_a_run_has_its_own_name(self):
        run = tokmap.Run(sources={"web": self.prefix}, weights="natural", seq_len=8, batch=2)
        dataset = run.sources[0].dataset
        self.assertEqual(dataset.name, self.prefix)
        self.assertEqual(repr(dataset), repr(tokmap.Dataset(self.prefix)).replace(": ", ", source 'web' of a run: ", 1))
        self.assertEqual(pickle.loads(pickle.dumps(dataset)).info.content, dataset.info.content)


class Wrong(WithData):
    """Values that are not numbers, and sources that are several datasets."""

    def refused(self, document, words, **fields):
        with self.assertRaises(tokmap.InputError) as caught:
            tokmap.pack([{"i": [1, 2], "l": [1, 0]} if "mask_field" in fields else {"i": [1, 2], "l": [1, -100]}, document],
                        f"{self.folder}/wrong", progress=False, tokenizer="bytes", ids_field="i", **fields)
        self.assertIn(words, str(caught.exception))

    def test_nan_is_not_a_number(self):
        nan = float("nan")
        for labels, words in (([-100, nan], "document 1: label 1 is nan, but must be the id, 2,"),
                              ([-100, None], "document 1: label 1 is None"), ([1, "2"], "label 1 is '2'"),
                              ([True, False], "label 0 is True"), (nan, "'l' is not a list of labels")):
            self.refused({"i": [1, 2], "l": labels}, words, labels_field="l")
        for mask, words in (([1, nan], "document 1: the field 'l' is not a list of 0 and 1: element 1 is nan"),
                            ([None, 1], "element 0 is None"), ([1.0, 0.0], "element 0 is 1.0"), ([1, 2], "element 1 is 2"),
                            (nan, "0 and 1, but a float")):
            self.refused({"i": [1, 2], "l": mask}, words, mask_field="l")
        for ids, words in (([1, nan], "document 1: the field 'i' is not a list of token ids: element 1 is nan"),
                           ([1, 2.0], "element 1 is 2.0"), (nan, "token ids, but a float")):
            self.refused({"i": ids, "l": [1, 0]}, words, mask_field="l")

    def test_a_column_names_its_document(self):
        with tokmap.ShardWriter(f"{self.folder}/columns", vocab_size=9, columns=["score"]) as writer:
            writer.add([1], columns={"score": 0.5})
            with self.assertRaisesRegex(tokmap.InputError, "document 1: the value of column 'score' cannot be written"):
                writer.add([1], columns={"score": float("nan")})
            with self.assertRaisesRegex(tokmap.InputError, "document 3: the value of column 'score' cannot be written"):
                writer.add_batch([1, 2, 3], [1, 2, 3], columns={"score": [1, 2, float("inf")]})

    def test_a_dict_of_datasets(self):
        class Rows(list):
            column_names = ["text"]
        with self.assertRaisesRegex(TypeError, r"source has 2 datasets, 'train', 'test': pack one of them, such as "
                                               r"source\['train'\]"):
            tokmap.pack({"train": Rows(), "test": Rows()}, f"{self.folder}/wrong")


if __name__ == "__main__":
    unittest.main()
