# SPDX-License-Identifier: MIT
"""Packed ids and masks, compared with a reader of .bin and .mask in Python, and with what the loader gives a trainer:
its loss_mask is the input's masks, shifted by one."""
import array
import json
import os
import random
import subprocess
import unittest

import tokmap
from support import TOKMAP, new_folder, values

VOCABULARY, EOD, SEQ = 70000, 69999, 32


def number_text(value, chance):
    """A value of a mask, in one of the ways that JSON has for it."""
    return str(value) if chance.random() < 0.7 else ("true" if value else "false")


def list_text(parts, chance):
    comma = chance.choice([", ", ",", " , ", ",\t"])
    edge = chance.choice(["", " "])
    return f"[{edge}{comma.join(parts)}{edge}]"


def read_tokens(prefix, code):
    tokens = array.array(code)
    with open(prefix + ".bin", "rb") as file:
        tokens.frombytes(file.read())
    return tokens.tolist()


def read_mask(prefix, count):
    with open(prefix + ".mask", "rb") as file:
        data = file.read()
    return [data[i // 8] >> i % 8 & 1 for i in range(count)]


class Content(unittest.TestCase):
    def setUp(self):
        self.folder = new_folder()

    def path(self, name):
        return os.path.join(self.folder, name)

    def pack(self, name, *options):
        ran = subprocess.run([TOKMAP, "pack", "--json", "--force", "-o", self.path(name), *options], capture_output=True,
                             text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return json.loads(ran.stdout)

    def documents(self, seed, count, vocabulary=VOCABULARY):
        """Random lists of ids with masks, written to a file of JSONL; some end with the EOD."""
        chance = random.Random(seed)
        made = []
        with open(self.path("in.jsonl"), "w", encoding="utf-8") as file:
            for _ in range(count):
                length = chance.choice([0, 1, 2, 7, 8, 9, 33, chance.randrange(400)])
                most = chance.choice([9, 10, 99, 100, 65535, 65536, vocabulary - 2])
                ids = [chance.randint(0, min(most, vocabulary - 2)) for _ in range(length)]
                if chance.random() < 0.3:
                    ids.append(vocabulary - 1)
                mask = [chance.randint(0, 1) for _ in ids]
                made.append((ids, mask))
                fields = [f'"input_ids": {list_text([str(i) for i in ids], chance)}',
                          f'"loss_mask": {list_text([number_text(i, chance) for i in mask], chance)}',
                          f'"name": {json.dumps(chance.choice(["a]", "é", "b"]))}']
                chance.shuffle(fields)
                file.write("{" + ", ".join(fields) + "}\n")
        return made

    def test_ids_and_masks(self):
        for vocabulary, code in ((VOCABULARY, "I"), (60000, "H")):
            made = self.documents(vocabulary, 3000, vocabulary)
            tokens, mask = [], []
            for ids, bits in made:
                ended = bool(ids) and ids[-1] == vocabulary - 1
                tokens += ids if ended else ids + [vocabulary - 1]
                mask += bits if ended else bits + [1]
            for threads in ("1", "3"):
                report = self.pack("p", "--ids-field", "input_ids", "--mask-field", "loss_mask", "--vocab-size",
                                   str(vocabulary), f"--eod={vocabulary - 1}", "-j", threads, self.path("in.jsonl"))
                self.assertEqual(read_tokens(self.path("p"), code), tokens)
                self.assertEqual(read_mask(self.path("p"), len(tokens)), mask)
                self.assertEqual(report["counted_tokens"], sum(mask))
                self.assertEqual(report["masked_tokens"], len(mask) - sum(mask))
                self.assertEqual(report["eod_present"] + report["eod_tokens"], len(made))

    def test_lengths(self):
        made = self.documents(5, 500)
        report = self.pack("p", "--ids-field", "input_ids", "--mask-field", "loss_mask", "--vocab-size",
                           str(VOCABULARY), f"--eod={EOD}", "--min-tokens", "3", "--max-tokens", "100",
                           self.path("in.jsonl"))
        tokens, mask, kept = [], [], 0
        for ids, bits in made:
            ended = bool(ids) and ids[-1] == EOD
            if not 3 <= len(ids) - ended <= 100:
                continue
            kept += 1
            tokens += ids if ended else ids + [EOD]
            mask += bits if ended else bits + [1]
        self.assertEqual((report["documents"], report["left_out"]["length"]["records"]), (kept, len(made) - kept))
        self.assertEqual(read_tokens(self.path("p"), "I"), tokens)
        self.assertEqual(read_mask(self.path("p"), len(tokens)), mask)

    def test_loader_gives_the_masks_shifted_by_one(self):
        made = [(ids, bits) for ids, bits in self.documents(9, 400) if ids]
        with open(self.path("in.jsonl"), "w", encoding="utf-8") as file:
            for ids, bits in made:
                file.write(json.dumps({"input_ids": ids, "loss_mask": bits}) + "\n")
        self.pack("p", "--ids-field", "input_ids", "--mask-field", "loss_mask", "--vocab-size", str(VOCABULARY),
                  self.path("in.jsonl"))
        tokens = [i for ids, _ in made for i in ids]
        mask = [i for _, bits in made for i in bits]
        begins, at = set(), 0
        for ids, _ in made:
            begins.add(at)
            at += len(ids)
        text = f"seq_len {SEQ}\nbatch 4\nseed 1\norder sequential\nsource a {json.dumps(self.path('p'))}\npasses 1\n"
        rows = 0
        with tokmap.Run(text=text) as run, \
                run.loader(framework="dlpack", fields="inputs targets loss_mask") as loader:
            for batch in loader:
                for i in range(batch.count):
                    first = run.locate(batch.step, batch.first_row + i).first_token
                    wanted = range(first + 1, first + 1 + SEQ)
                    self.assertEqual(values(batch.inputs)[i], tokens[first:first + SEQ])
                    self.assertEqual([int(v) for v in values(batch.loss_mask)[i]],
                                     [mask[t] if t not in begins else 0 for t in wanted])
                    rows += 1
        self.assertGreater(rows, 100)

    def test_prompts_and_columns(self):
        chance = random.Random(3)
        records, tokens, mask = [], [], []
        for i in range(700):
            prompt = "".join(chance.choice('ab"\\\n\u00e9\U0001f600') for _ in range(chance.randrange(20)))
            completion = "".join(chance.choice("xyz\t\u20ac") for _ in range(chance.randrange(20)))
            record = {"prompt": prompt, "completion": completion, "meta": {"n": i}}
            if i % 3:
                record["kind"] = chance.choice(["a", None, 2.5, {"x": [1, "\u00e9"]}])
            records.append(record)
            first, second = prompt.encode(), completion.encode()
            tokens += list(first) + list(second) + [256]
            mask += [0] * len(first) + [1] * (len(second) + 1)
        with open(self.path("in.json"), "w", encoding="utf-8") as file:
            json.dump(records, file, indent=1, ensure_ascii=chance.random() < 0.5)
        report = self.pack("p", "--prompt-field", "prompt", "--completion-field", "completion", "--columns",
                           "kind,meta.n", self.path("in.json"))
        self.assertEqual(read_tokens(self.path("p"), "H"), tokens)
        self.assertEqual(read_mask(self.path("p"), len(tokens)), mask)
        self.assertEqual(report["columns"], {"kind": sum("kind" in r for r in records), "meta.n": 700})


if __name__ == "__main__":
    unittest.main()
