# SPDX-License-Identifier: MIT
"""The first mistakes of a user: what is refused, or taken, and which argument the message names. And what a loader
counts after a resume, and leaves to others after its end."""
import os
import unittest
import warnings

import tokmap
from tokmap.errors import class_of
from support import WithData, needs


class Packing(WithData):
    def out(self):
        return os.path.join(self.folder, "mistakes")

    def refused(self, kind, words, source=("text",), **options):
        with self.assertRaisesRegex(kind, words) as caught:
            tokmap.pack(source, self.out(), progress=False, **options)
        self.assertNotRegex(str(caught.exception), r"(?<![\w`])--[a-z]|Try 'tokmap|-t FILE")

    def test_tokenizers_of_others(self):
        class Auto:
            vocab_size = 9

            def save_pretrained(self, folder):
                raise AssertionError

        advice = r'an Auto, but it must be a tokmap.Tokenizer or the path .*save_pretrained\("FOLDER"\), and pass "FOLDER"'
        for source in (["text"], self.file("in.txt", "text"), [{"messages": []}]):
            self.refused(tokmap.ArgumentError, advice, source, tokenizer=Auto())
        for call in (lambda: tokmap.Tokenizer(Auto()), lambda: tokmap.index("raw:x,width=2", tokenizer=Auto())):
            with self.assertRaisesRegex(TypeError, advice):
                call()
        with self.assertRaisesRegex(tokmap.ArgumentError, "tokenizer is .*Auto.*, but must be a tokmap.Tokenizer"):
            tokmap.ShardWriter(self.out(), tokenizer=Auto())

    def test_the_template_of_a_folder(self):
        """It is found as the command finds it, and what is learned is counted without learn=, too."""
        talks = [{"messages": [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "cd cd"}]}] * 3
        template = (r"{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
                    r"'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
        from test_tokenizer import small
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        tokens = [{"id": 11 + i, "content": name, **flags} for i, name in enumerate(("<|im_start|>", "<|im_end|>"))]
        bare, beside = os.path.join(self.folder, "bare"), os.path.join(self.folder, "beside")
        for folder in bare, beside:
            os.mkdir(folder)
            os.rename(small(folder, "t.json", tokens), os.path.join(folder, "tokenizer.json"))
        with open(os.path.join(beside, "chat_template.jinja"), "w", encoding="utf-8") as file:
            file.write(template)
        options = {"messages_field": "messages", "eod": False, "force": True, "progress": False}
        named = tokmap.pack(talks, self.out(), tokenizer=bare, chat_template="chatml", **options)
        found = tokmap.pack(talks, self.out(), tokenizer=beside, **options)
        self.assertEqual((found.content, found.tokens), (named.content, named.tokens))
        with tokmap.Dataset(self.out()) as dataset:
            counted = sum(map(int, dataset.mask()))
        self.assertEqual((named.learned, found.learned), ({"assistant": counted}, {"assistant": counted}))
        self.assertGreater(counted, 0)
        self.refused(tokmap.ArgumentError, 'choose one with chat_template="chatml", .*or a tokenizer of transformers', talks,
                     messages_field="messages", tokenizer=bare)

    def test_documents(self):
        more = r'; on_error="skip" leaves such documents out$'
        self.refused(tokmap.InputError, "document 0: the field 'text' is NoneType, but it must be str or bytes" + more,
                     [{"text": None}])
        self.refused(tokmap.InputError, "document 1 is null" + more, ["a", None])
        for options, argument in (({}, "field"), ({"field": "words"}, "field"), ({"ids_field": "ids", "tokenizer": "bytes"}, "ids_field")):
            self.refused(tokmap.InputError, f"document 0 has no field '.*'; its fields are: 'content'; {argument}= names it, "
                         'and on_error="skip" leaves such documents out', [{"content": "a"}], **options)
        self.assertEqual(tokmap.pack([{"text": None}, "a"], self.out(), on_error="skip", force=True, progress=False).skipped, 1)

    def test_options(self):
        """Messages of the command have Python's names."""
        file = self.file("in.txt", "some text")
        self.refused(tokmap.ArgumentError, "hidden: these options are for files, but source is not a path; write the "
                     "documents to files", hidden=True)
        for source in (["text"], file):
            self.refused(tokmap.ArgumentError, "(?s)name them with fim_tokens=PREFIX,MIDDLE,SUFFIX.*help\\(tokmap.pack\\) lists",
                         source, fim=0.5)
        self.refused(tokmap.ArgumentError, "with shuffle=7", file, shuffle_memory=5000)
        self.refused(tokmap.ArgumentError, "threads= must be between 1 and", file, threads=0)
        self.refused(tokmap.ArgumentError, "with bos=NAME or bos=ID", file, bos=True)


class Loading(WithData):
    def test_arguments_of_other_loaders(self):
        run = self.run_of()
        for name, words in (("num_workers", "works ahead by itself"), ("shuffle", r"pass order= and seed= to tokmap.Run"),
                            ("batch_size", r"tokmap.Run\(batch=\); rows= of loader"), ("row", "did you mean 'rows'"),
                            ("nothing_like_it", "has no argument 'nothing_like_it'$")):
            with self.assertRaisesRegex(TypeError, words) as caught:
                run.loader(**{name: 1})
            self.assertIsInstance(caught.exception, tokmap.ArgumentError)
        with self.assertRaisesRegex(tokmap.ArgumentError, r"dataset\(\) has no argument 'batch_size'; "):
            run.dataset(batch_size=4)

    def test_an_evaluation_without_data(self):
        for arguments, words in (((), "the run leaves out no data of its sources"), (("val",), "no source 'val'")):
            with self.assertRaisesRegex(tokmap.ArgumentError, words) as caught:
                self.run_of().evaluation(*arguments)
            self.assertNotIsInstance(caught.exception, OSError)

    def test_a_run_without_batch(self):
        with self.assertWarnsRegex(UserWarning, "batch is missing, so each step has 1 row: pass batch=") as caught:
            run = tokmap.Run(data=self.prefix, seq_len=16, steps=3)
        self.assertEqual((run.info.batch, caught.filename), (1, __file__))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(tokmap.Run(data=self.prefix, seq_len=16, batch=1, steps=3).text, run.text)
            tokmap.Run(text=run.text)

    def test_length_after_a_resume(self):
        """It is what a loop delivers from there, whatever moved the loader, and progress bars call it before the loop."""
        changing = dict(phases=[{"step": 7, "weights": "natural", "batch": 5}, {"step": 15, "weights": "natural", "seq_len": 24}])
        for options in ({"steps": 20}, {"steps": 20, "skip": [(4, 6), (12, 13)]}, {"passes": 1, "tail": "pad"},
                        {"steps": 20, "sources": {"web": self.prefix}, "weights": "natural", **changing}):
            run = tokmap.Run(**{"seq_len": 16, "batch": 6, "seed": 3, **({} if "sources" in options else {"data": self.prefix}),
                                **options})
            for rank, world, rows in (0, 1, 0), (1, 4, 1), (0, 2, 2):
                with run.loader(rank=rank, world=world, rows=rows, framework="dlpack") as whole:
                    length = len(whole)
                    self.assertEqual(length, sum(1 for _ in whole))
                for step in (0, 1, 5, 10, run.info.steps):
                    state = run.cursor(step)
                    with run.loader(rank=rank, world=world, rows=rows, framework="dlpack", resume=state) as loader:
                        left = len(loader)
                        self.assertEqual(left, sum(1 for _ in loader), (options, step))
                        loader.load_state_dict(run.cursor(2))
                        self.assertEqual(len(loader), sum(1 for _ in loader))
                        loader.rewind()
                        self.assertEqual(len(loader), left)
                    self.assertLessEqual(left, length)

    def test_a_trace_after_the_end(self):
        """A loader that has finished and is not closed leaves its trace to others; a move takes it back."""
        run, path = self.run_of(passes=None, steps=4), os.path.join(self.folder, "end.trace")
        for threads in (0, 1):
            if os.path.exists(path):
                os.remove(path)
            first = run.loader(framework="dlpack", trace=path, threads=threads)
            next(first)
            with self.assertRaisesRegex(class_of("ERROR_BUSY"), "another loader is writing this trace"):
                run.loader(framework="dlpack", trace=path)
            self.assertEqual(sum(1 for _ in first), 3)
            first.state_dict()
            with run.loader(framework="dlpack", trace=path, threads=threads) as second:
                next(second)
                with self.assertRaises(class_of("ERROR_BUSY")):
                    first.rewind()
                self.assertEqual(sum(1 for _ in second), 3)
                first.rewind()
                self.assertEqual(sum(1 for _ in first), 4)
            with self.assertRaises(StopIteration):
                first.next()
            size = os.path.getsize(path)
            first.close()
            self.assertEqual(os.path.getsize(path), size)
            self.assertGreaterEqual(size, 3 * 4 * 16)

    @needs("torch")
    def test_losses_of_rows_are_of_targets_that_count(self):
        import json
        import torch
        run = self.run_of()
        for fields, options in (("inputs targets", {"mask_targets": True}), ("inputs targets loss_mask", {})):
            for b in run.loader(fields=fields, framework="torch", **options):
                losses = torch.arange(1.0, b.count * b.seq_len + 1).reshape(b.count, b.seq_len)
                counts = b.targets != tokmap.IGNORE if options else b.loss_mask.bool()
                counts[0] = False  # a row in which no target counts
                if options:
                    b.targets[0] = tokmap.IGNORE
                else:
                    b.loss_mask[0] = 0
                lines = [json.loads(line) for line in b.rows_of_loss(losses).splitlines()]
                self.assertEqual([line["row"] for line in lines], list(b.row_numbers)[1:])
                for line, row, one in zip(lines, losses[1:], counts[1:]):
                    self.assertAlmostEqual(line["loss"], row[one].mean().item(), places=3)
                break

    @needs("numpy")
    def test_losses_of_sources_need_weights_where_data_is_masked(self):
        import numpy
        path = os.path.join(self.folder, "masked")
        with tokmap.ShardWriter(path, vocab_size=9, mask=True) as writer:
            writer.add([1, 2] * 50, mask=[1, 0] * 50)
        run = tokmap.Run(data=path, seq_len=8, batch=2, steps=2)
        by_source = tokmap.SourceLoss(run)
        b = next(run.loader(fields="inputs targets source_ids", mask_targets=True, framework="numpy"))
        losses, counts = numpy.where(b.targets != tokmap.IGNORE, 3.0, 0.0), b.targets != tokmap.IGNORE
        with self.assertRaisesRegex(tokmap.ArgumentError, "weights is missing, but some targets of the data do not count"):
            by_source.add(b.source_ids, losses)
        by_source.add(b.source_ids, losses, counts)
        by_source.add(b.source_ids[:0], losses[:0], counts[:0])  # a rank without rows
        self.assertEqual(by_source.result(), {"loss/data": 3.0})


if __name__ == "__main__":
    unittest.main()
