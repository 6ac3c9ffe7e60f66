# SPDX-License-Identifier: MIT
"""tokmap.pack(learn=): by the command's templates and by tokenizers of transformers, compared with each other, with
the masks of transformers, and with the collator of TRL."""
import glob
import json
import os
import pathlib
import random
import re
import unittest
import warnings

import tokmap
from support import needs
from test_conversations import SAY, WithChat, talk
from test_pack import SHARED
from tokmap._learn import Learn, calls_region, thoughts_cut

CALL = {"type": "function", "function": {"name": "get", "arguments": {"x": 1}}}
# As the command's "qwen3", without thoughts of its own, and with {% generation %}.
CALLS = ("{% for m in messages %}{% if m.role == 'tool' %}{{ '<|im_start|>user\n<tool_response>\n' + m.content + "
         "'\n</tool_response><|im_end|>\n' }}{% else %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.role == 'assistant' %}"
         "{% generation %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}{{ '\n' if m.content or not loop.first }}"
         "{{ '<tool_call>\n{\"name\": \"' + c.function.name + '\", \"arguments\": ' + c.function.arguments | tojson + "
         "'}\n</tool_call>' }}{% endfor %}{{ '<|im_end|>' }}{% endgeneration %}{% else %}{{ m.content + '<|im_end|>' }}"
         "{% endif %}{{ '\n' }}{% endif %}{% endfor %}")


def model(messages, words):
    """Which messages are learned: another way to say what --learn means."""
    roles = [word for word in words if word in ("assistant", "tool", "system", "user")] or ["assistant"]
    named = [message["role"] in roles for message in messages]
    if "last" in words and any(named):
        final = max(at for at, is_named in enumerate(named) if is_named)
        asked = max((at for at in range(final + 1) if messages[at]["role"] == "user"), default=0)
        named = [is_named and at >= asked for at, is_named in enumerate(named)]
    return [message["weight"] == 1 if message.get("weight") is not None else is_named
            for message, is_named in zip(messages, named)]


class Words(unittest.TestCase):
    def test_words(self):
        self.assertEqual(Learn(["last", "user", "-calls", "assistant"]).text, "assistant,user,-calls,last")
        self.assertEqual(Learn(["-thinking"]).text, "assistant,-thinking")
        for wrong, why in (["asistant"], "did you mean 'assistant'"), (["user", "user"], "twice"), ([""], "not one of"):
            with self.assertRaisesRegex(tokmap.ArgumentError, why):
                Learn(wrong)

    def test_thoughts(self):
        for text, kept in (("<think>t</think>\n\na|", ["a|"]), ("t</think> a|", ["a|"]), (" <think>cut|", ["|"]),
                           ("a <think> b|", ["a <think> b|"]), ("a<\U0010fffdthink>t</think>b|", ["a", "b|"]),
                           ("<think>\n\n</think>\n\n<thinking>cut|", ["|"]), ("<think>t</think>a<think>b|", ["a<think>b|"]),
                           ("<think>t</think>u</think>a|", ["a|"]),
                           ("[THINK]t[/THINK]a<think>t</think>b|", ["a", "b|"]), ("a|", ["a|"]), ("|", ["|"])):
            found = thoughts_cut(text, 0, len(text), len(text) - 1, "\U0010fffd")
            self.assertEqual([text[first:end] for first, end in found], kept, text)

    def test_calls(self):
        self.assertEqual(calls_region("ab<c>d</c><e>", "ab<e>", [(2, 5), (10, 13)]), (2, 10))
        self.assertEqual(calls_region("abcb", "ab", []), (2, 4))


@needs("transformers")
@unittest.skipIf(SHARED is None, "there are no real vocabularies here")
class Learned(WithChat, unittest.TestCase):
    def pack(self, records, chat=None, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().pack(records, chat, **options)

    def mask(self, made):
        """The bits of each document."""
        import numpy
        bits = numpy.unpackbits(numpy.fromfile(made.path + ".mask", dtype="u1"), bitorder="little")
        with tokmap.Dataset(made.path) as dataset:
            ends = [0]
            for document in dataset:
                ends.append(ends[-1] + len(document))
        return [bits[first:end].tolist() for first, end in zip(ends, ends[1:])]

    def learned(self, records, learn, chat=None, **options):
        """What is learned of the first document, in brackets."""
        made = self.pack(records, chat, learn=learn, **options)
        with tokmap.Dataset(made.path) as dataset:
            ids, bits = [*dataset[0]], self.mask(made)[0]
        text, before = "", 0
        for id, bit in zip(ids, bits):
            text += ("[" if bit > before else "]" if bit < before else "") + self.chat.decode([id])
            before = bit
        return re.sub(r"<\|im_start\|>", "<", text).replace("<|im_end|>", ">")

    def test_parts(self):
        call = {"content": "a", "tool_calls": [CALL]}
        only = {"content": "", "tool_calls": [CALL]}
        self.chat.chat_template = CALLS
        shown = '<tool_call>\n{"name": "get", "arguments": {"x": 1}}\n</tool_call>'
        for words, said, wanted in (
                ("user", ("q", "a"), "<user\n[q>]\n<assistant\na>\n"),
                ("assistant,user", ("q", "a"), "<user\n[q>]\n<assistant\n[a>]\n"),
                ("-thinking", ("q", "<think>t</think>\n\na"), "<user\nq>\n<assistant\n<think>t</think>\n\n[a>]\n"),
                ("last", ("q", "a", "r", "b"), "<user\nq>\n<assistant\na>\n<user\nr>\n<assistant\n[b>]\n"),
                ("-calls", ("q", call), f"<user\nq>\n<assistant\n[a]\n{shown}[>]\n"),
                ("assistant", ("q", call), f"<user\nq>\n<assistant\n[a\n{shown}>]\n"),
                ("-calls", ("q", only, "r", "a"), f"<user\nq>\n<assistant\n{shown}>\n<user\nr>\n<assistant\n[a>]\n"),
                ("-calls", ("q", {**only, "weight": 1}), f"<user\nq>\n<assistant\n[{shown}>]\n"),
                ("assistant", ({"content": "q", "weight": 1}, {"content": "a", "train": False}),
                 "<user\n[q>]\n<assistant\na>\n")):
            for chat in self.chat, "qwen3-2507":
                self.assertEqual(self.learned([talk(*said)], words, chat), wanted, (words, chat))

    def test_both_ways_and_transformers_agree(self):
        """Random conversations, by three programs: a template of transformers gets what the model of --learn says."""
        self.chat.chat_template = CALLS
        told = (
            "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' }}{% if m.learned %}{% generation %}"
            "{{ m.content + '<|im_end|>' }}{% endgeneration %}{% else %}{{ m.content + '<|im_end|>' }}{% endif %}{{ '\n' }}"
            "{% endfor %}")
        chance = random.Random(1)
        texts = ["a", " b ", "two words", "\n", "<think> x", "é 日本語", "<|im_end|>", "1\n\n2 "]
        for _ in range(12):
            records = []
            for _ in range(6):
                messages = [{"role": chance.choice(["user", "assistant", "assistant", "system"]),
                             "content": "".join(chance.choices(texts, k=chance.randrange(1, 4)))}
                            for _ in range(chance.randrange(1, 7))]
                for message in messages:
                    if chance.random() < 0.2:
                        message["weight"] = chance.choice([0, 1])
                records.append({"messages": messages})
            words = chance.sample(["assistant", "system", "user", "last"], chance.randrange(1, 5))
            learned = [model(record["messages"], words) for record in records]
            if not any(map(any, learned)):
                with self.assertRaisesRegex(tokmap.InputError, "no token of 6 conversations is learned"):
                    self.pack(records, learn=words)
                continue
            marked = [[{**message, "learned": said} for message, said in zip(record["messages"], which)]
                      for record, which in zip(records, learned)]
            command, own = (self.pack(records, chat, learn=words) for chat in ("chatml", self.chat))
            made = self.mask(command)
            self.assertEqual(command.content, own.content, (words, records))
            self.assertEqual(command.learned, own.learned)
            for messages, bits in zip(marked, made):
                if not any("<|im_end|>" in message["content"] for message in messages):  # which is a token there
                    wanted = self.chat.apply_chat_template(messages, chat_template=told, tokenize=True,
                                                           return_dict=True, return_assistant_tokens_mask=True)
                    self.assertEqual(wanted["assistant_masks"], bits, (words, messages))

    def test_union(self):
        records = [talk("q", "a <think>t</think> b", "r", "c"), {"messages": [{"role": "system", "content": "S"},
                                                                              *talk("q", "a")["messages"]]}]
        for chat in "chatml", self.chat:
            masks = {words: self.mask(self.pack(records, chat, learn=words))
                     for words in ("assistant", "user", "system", "assistant,user,system", "-thinking", "last")}
            for number in range(2):
                one, two, three, every, less, last = (mask[number] for mask in masks.values())
                self.assertEqual([a | b | c for a, b, c in zip(one, two, three)], every)
                self.assertEqual([a & b for a, b in zip(one, less)], less)
                self.assertEqual([a & b for a, b in zip(one, last)], last)

    def test_bad(self):
        with self.assertRaisesRegex(tokmap.ArgumentError, "learn is about conversations"):
            tokmap.pack(["a"], os.path.join(self.folder, "x"), learn="assistant")
        for chat in "chatml", self.chat:
            with self.assertRaisesRegex(tokmap.ArgumentError, "did you mean 'assistant'"):
                self.pack([talk("q", "a")], chat, learn="asistant")
            with self.assertRaisesRegex(tokmap.InputError, "no token of 1 conversations is learned with learn='tool'"):
                self.pack([talk("q", "a")], chat, learn=["tool"])
            for weight in 0.5, 2, "1":
                with self.assertRaisesRegex(tokmap.InputError, "neither 0 nor 1"):
                    self.pack([talk("q", {"content": "a", "weight": weight})], chat, learn="assistant")
            with self.assertWarnsRegex(UserWarning, "no message has the role 'tool' of (--)?learn"):
                tokmap.pack([talk("q", "a")], os.path.join(self.folder, "x"), tokenizer=self.vocabulary, eod=False,
                            messages_field="messages", chat_template=chat, learn="assistant,tool", force=True,
                            progress=False)
        self.chat.chat_template = SAY.replace("m.content + '<|im_end|>'", "(m.content | length | string) + '<|im_end|>'")
        with self.assertRaisesRegex(tokmap.InputError, "message 1: where its template writes what it says is not known"):
            self.pack([talk("q", "a")], learn="user")

        class Other:
            def apply_chat_template(self):
                """Is not called."""

        with self.assertRaisesRegex(tokmap.ArgumentError, "learn needs a chat_template whose text is known"):
            self.pack([talk("q", "a")], Other(), learn="assistant")

    def test_labels_of_files(self):
        path = os.path.join(self.folder, "l.jsonl")
        pathlib.Path(path).write_text(json.dumps({"i": [1, 2, 3], "l": [-100, 2, 3]}) + "\n")
        options = {"ids_field": "i", "labels_field": "l", "tokenizer": self.vocabulary, "eod": False, "force": True,
                   "progress": False}
        one = tokmap.pack(path, os.path.join(self.folder, "x"), **options)
        two = tokmap.pack([{"i": [1, 2, 3], "l": [-100, 2, 3]}], os.path.join(self.folder, "y"), **options)
        self.assertEqual(self.mask(one), [[0, 1, 1]])
        self.assertEqual(one.content, two.content)

    @needs("pyarrow")
    def test_labels_of_parquet(self):
        import pyarrow
        import pyarrow.parquet
        path = os.path.join(self.folder, "l.parquet")
        options = {"ids_field": "i", "labels_field": "l", "tokenizer": self.vocabulary, "eod": False, "force": True,
                   "progress": False}
        for kind in pyarrow.int16(), pyarrow.int32(), pyarrow.int64():
            table = pyarrow.table({"i": [[1, 2, 3], [4]], "l": pyarrow.array([[-100, 2, 3], [-100]],
                                                                              pyarrow.list_(kind))})
            pyarrow.parquet.write_table(table, path)
            self.assertEqual(self.mask(tokmap.pack(path, os.path.join(self.folder, "x"), **options)), [[0, 1, 1], [0]])
        for wrong, why in (([1, 2, 4], "number 3 of the list, 4, is neither -100 nor the id"),
                           ([-100, 2], "2 values for 3 ids"), ([-100, 2, 3, 4], "4 values for 3 ids"),
                           ([-100, 2, -1], "number 3 of the list, -1, is neither")):
            pyarrow.parquet.write_table(pyarrow.table({"i": [[1, 2, 3]], "l": [wrong]}), path)
            with self.assertRaisesRegex(tokmap.InputError, why):
                tokmap.pack(path, os.path.join(self.folder, "x"), **options)


@needs("transformers", "trl", "torch")
@unittest.skipIf(SHARED is None, "there are no real vocabularies here")
class Trl(Learned):
    """The templates that TRL trains with, and what its collator makes of their masks."""
    test_parts = test_both_ways_and_transformers_agree = test_union = test_bad = None
    test_labels_of_files = test_labels_of_parquet = None

    def test_templates(self):
        import transformers
        import trl
        from trl.trainer.sft_trainer import DataCollatorForLanguageModeling
        paths = sorted(glob.glob(os.path.join(os.path.dirname(trl.__file__), "chat_templates", "*_training.jinja")))
        self.assertTrue(paths)
        templates = {os.path.basename(path)[:-len("_training.jinja")]: pathlib.Path(path).read_text("utf-8")
                     for path in paths}
        with open(os.path.join(self.vocabulary, "tokenizer.json"), encoding="utf-8") as file:
            data = json.load(file)
        known = {token["content"] for token in data["added_tokens"]}
        top = max(token["id"] for token in data["added_tokens"]) + 1
        found = {text for template in templates.values()
                 for text in re.findall(r"<[|｜][^\s<>'\"]+[|｜]>|<\w+_of_\w+>|<[|]\w+>|<\w+[|]>", template)}
        for id, text in enumerate(sorted(found - known), top):
            data["added_tokens"].append({"id": id, "content": text, "special": True, "normalized": False, "lstrip": False,
                                         "rstrip": False, "single_word": False})
        self.vocabulary = os.path.join(self.folder, "v")
        os.makedirs(self.vocabulary)
        with open(os.path.join(self.vocabulary, "tokenizer.json"), "w", encoding="utf-8") as file:
            json.dump(data, file)
        self.chat = transformers.PreTrainedTokenizerFast(tokenizer_file=os.path.join(self.vocabulary, "tokenizer.json"),
                                                         eos_token="<|im_end|>", bos_token="<|endoftext|>")
        collate, chance = DataCollatorForLanguageModeling(pad_token_id=0), random.Random(2)
        for name, template in templates.items():
            self.chat.chat_template = template
            parts = name in ("idefics3", "llava_next", "smolvlm")
            records = []
            for at in range(6):
                said = ["".join(chance.choices(["a ", "two words ", "é", "1"], k=5)).strip() for _ in range(2 + at % 3 * 2)]
                said = [{"content": [{"type": "text", "text": text}]} if parts else text for text in said]
                records.append(talk(*said))
            made = [self.chat.apply_chat_template(record["messages"], tokenize=True, return_dict=True,
                                                  return_assistant_tokens_mask=True) for record in records]
            labels = [[id if counts else -100 for id, counts in zip(each["input_ids"], each["assistant_masks"])]
                      for each in made]  # as SFTTrainer does with assistant_only_loss
            wanted = collate([{"input_ids": each["input_ids"], "labels": label}
                              for each, label in zip(made, labels)])["labels"].tolist()
            with self.subTest(name):
                masks = [self.mask(self.pack(records, learn=learn))
                         for learn in (None, "user", "assistant,user", "last,-thinking" if "think" in template else "last")]
                for number, row in enumerate(wanted):
                    one, two, both, last = (mask[number] for mask in masks)
                    self.assertEqual([label != -100 for label in row][:len(one)], [*map(bool, one)])
                    self.assertEqual(set(row[len(one):]) - {-100}, set())
                    self.assertEqual([a | b for a, b in zip(one, two)], both)
                    self.assertFalse(any(a & b for a, b in zip(one, two)))
                    self.assertTrue(any(two))
                    self.assertEqual([a & b for a, b in zip(one, last)], last)
                    self.assertTrue(any(last))
                    if "think" not in template:
                        self.assertEqual(last == one, len(records[number]["messages"]) == 2)


if __name__ == "__main__":
    unittest.main()
