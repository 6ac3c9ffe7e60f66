# SPDX-License-Identifier: MIT
"""Runs whose sources draw the rows of a plan: every field of every row against a model that is written here from the
definitions, on several ranks, with mixtures, parts, and resumes; and the packing against a best fit in a few lines."""
import collections
import os
import subprocess
import sys
import unittest

import tokmap
from support import TOKMAP, TOP, WithData, values

sys.path.insert(0, os.path.join(TOP, "tests", "conformance"))
from plan_reader import read as read_plan  # noqa: E402

SEQ, PAD = 64, 7
FIELDS = "inputs targets position_ids document_ids loss_mask cu_seqlens rows labels"


def best_fit(documents, seq_len, most=None):
    """The rows that FORMAT.md defines: lists of [first token, tokens]."""
    items, at = [], 0
    for tokens in documents:
        for first in range(0, tokens, seq_len):
            items.append((min(seq_len, tokens - first), at + first))
        at += tokens
    rows, room = [], []
    for tokens, first in sorted(items, key=lambda item: (-item[0], item[1])):
        fits = [(room[i], i) for i in range(len(rows))
                if room[i] >= tokens and (most is None or len(rows[i]) < most)]
        row = min(fits)[1] if fits else len(rows)
        if not fits:
            rows.append([])
            room.append(seq_len)
        rows[row].append([first, tokens])
        room[row] -= tokens
    return rows


class Plans(WithData):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with tokmap.Dataset(cls.prefix) as dataset:
            cls.documents = [dataset.document(i) for i in range(len(dataset))]
            cls.lengths = [document.tokens for document in cls.documents]
        cls.plan = cls.plan_of(cls.prefix, "web.plan")
        cls.rows = read_plan(cls.plan)["rows"]

    @classmethod
    def plan_of(cls, name, file, *options, seq_len=SEQ):
        path = os.path.join(cls.folder, file)
        subprocess.run([TOKMAP, "plan", "--quiet", "--force", "-o", path, "--seq-len", str(seq_len), *options, name],
                       check=True, stderr=subprocess.PIPE)
        return path

    def text(self, *lines, lookahead=1, batch=5, plan=True):
        source = [f'source web "{self.prefix}"' + (f' plan "{self.plan}"' if plan else "")]
        return "\n".join([f"seq_len {SEQ}", f"lookahead {lookahead}", f"batch {batch}", "seed 11", f"pad {PAD}",
                          *(lines if any(line.startswith("source") for line in lines) else source + list(lines))])

    def row_model(self, segments, lookahead, mask_targets):
        """Every field of a row, from its segments alone."""
        tokens = [token for first, count in segments for token in self.truth.tokens[first:first + count]]
        segment = [i for i, (_, count) in enumerate(segments) for _ in range(count)]
        filled = len(tokens)
        tokens += [PAD] * (SEQ + lookahead - filled)
        segment += [len(segments)] * (SEQ + lookahead - filled)
        counts = [j + 1 < filled and segment[j] == segment[j + 1] for j in range(SEQ)]
        starts = [j for j in range(SEQ) if j == 0 or segment[j] != segment[j - 1]]
        return {"inputs": tokens[:SEQ],
                "targets": [tokens[j + 1] if counts[j] or (not mask_targets and j + 1 < filled) else -100
                            for j in range(SEQ)],
                "position_ids": [j - max(start for start in starts if start <= j) for j in range(SEQ)],
                "document_ids": segment[:SEQ], "loss_mask": [int(count) for count in counts], "rows": tokens,
                "labels": [-100] + [tokens[j + 1] if counts[j] else -100 for j in range(SEQ - 1)],
                "starts": starts}

    def check_batch(self, run, batch, lookahead, mask_targets=False, sources=None):
        ends, longest = [0], 0
        for i, place in enumerate(batch.places):
            rows = self.rows if sources is None else sources[place.source]
            segments = rows[place.window]
            self.assertEqual(place.tokens, sum(count for _, count in segments))
            self.assertEqual(place.first_token, segments[0][0])
            self.assertEqual([tuple(piece) for piece in run.extents(batch.step, batch.first_row + i)],
                             [tuple(segment) for segment in segments])
            model = self.row_model(segments, lookahead, mask_targets)
            for name in FIELDS.split():
                if name != "cu_seqlens":
                    self.assertEqual(values(batch[name])[i], model[name], f"step {batch.step} row {i} {name}")
            for start in model["starts"][1:] + [SEQ]:
                ends.append(i * SEQ + start)
        longest = max((b - a for a, b in zip(ends, ends[1:])), default=0)
        cu = values(batch.cu_seqlens)
        self.assertEqual(cu[:len(ends)], ends)
        self.assertEqual(set(cu[len(ends):]) | {ends[-1]}, {ends[-1]})
        self.assertEqual(batch.max_seqlen, longest)

    def loader(self, run, **options):
        return run.loader(**{"fields": FIELDS, "dtype": "int64", "framework": "dlpack", "threads": 0, "rank": 0,
                             "world": 1, **options})

    def test_the_packing_is_best_fit(self):
        self.assertEqual(self.rows, best_fit(self.lengths, SEQ))
        for seq_len, options, most in ((16, (), None), (300, (), None), (100, ("--max-documents", "3"), 3),
                                       (50, ("--one-document",), 1), (100000, (), None)):
            made = read_plan(self.plan_of(self.prefix, "other.plan", *options, seq_len=seq_len))
            self.assertEqual(made["rows"], best_fit(self.lengths, seq_len, most))

    def test_every_field_of_every_row(self):
        for lookahead in (1, 3):
            for mask_targets in (False, True):
                run = tokmap.Run(text=self.text("passes 3", lookahead=lookahead))
                with self.loader(run, rows=2, mask_targets=mask_targets) as loader:
                    batches = 0
                    for batch in loader:
                        self.check_batch(run, batch, lookahead, mask_targets)
                        batches += 1
                self.assertEqual(batches, 3 * (3 * len(self.rows) // 5))

    def test_every_token_once_an_epoch_on_any_number_of_ranks(self):
        whole = {}
        for world in (1, 2, 3):
            run = tokmap.Run(text=self.text("passes 4"))
            shown = collections.defaultdict(list)
            for rank in range(world):
                with self.loader(run, rank=rank, world=world, rows=0, threads=rank % 2) as loader:
                    for batch in loader:
                        self.check_batch(run, batch, 1)
                        for i, place in enumerate(batch.places):
                            segments = self.rows[place.window]
                            shown[place.epoch] += [t for first, count in segments for t in range(first, first + count)]
                            whole.setdefault((batch.step, batch.first_row + i), values(batch.inputs)[i])
                            self.assertEqual(whole[batch.step, batch.first_row + i], values(batch.inputs)[i])
            for epoch in range(3):
                self.assertEqual(sorted(shown[epoch]), list(range(len(self.truth.tokens))))

    def test_resume(self):
        run = tokmap.Run(text=self.text("passes 2"))
        with self.loader(run, rows=0) as loader:
            batches = [(batch.step, values(batch.inputs)) for batch in loader]
        cursor = run.cursor(7)
        with self.loader(run, rows=0, resume=cursor) as loader:
            self.assertEqual([(batch.step, values(batch.inputs)) for batch in loader], batches[7:])
        # The plan is part of the past: windows of the same dataset, or another plan of it, are another run.
        self.plan_of(self.prefix, "single.plan", "--one-document")
        single = os.path.join(self.folder, "single.plan")
        for other in (self.text("passes 2", plan=False),
                      self.text("passes 2", f'source web "{self.prefix}" plan "{single}"')):
            with self.assertRaisesRegex(tokmap.PastError, "data"):
                tokmap.Run(text=other).check(cursor)

    def test_find(self):
        run = tokmap.Run(text=self.text("passes 2"))
        places = [run.locate(step, row) for step in range(run.info.steps) for row in range(5)]
        for number in (1, 2, 17, 30, 59):
            document = self.documents[number]
            held = range(document.first_token, document.first_token + document.tokens)
            wanted = {(p.step, p.row) for p in places
                      if any(first < held.stop and held.start < first + count for first, count in self.rows[p.window])}
            found = run.find(document=number) if document.tokens else []
            self.assertEqual({(p.step, p.row) for p in found}, wanted if document.tokens else set())
            self.assertEqual(len(found), len(wanted) if document.tokens else 0)

    def test_documents_of_a_row(self):
        run = tokmap.Run(text=self.text("passes 1"))
        for row in range(5):
            place = run.locate(0, row)
            segments = self.rows[place.window]
            shown = run.documents(0, row)
            self.assertEqual([document.tokens for document in shown], [count for _, count in segments])
            self.assertEqual([document.column for document in shown],
                             [sum(count for _, count in segments[:i]) for i in range(len(segments))])
            for document, (first, count) in zip(shown, segments):
                held = self.documents[document.number]
                self.assertTrue(held.first_token <= first and first + count <= held.first_token + held.tokens)
        with self.loader(run, rows=0) as loader:
            batch = next(iter(loader))
            text = batch.text(0)
            data = [t for first, count in self.rows[batch.places[0].window]
                    for t in self.truth.tokens[first:first + count] if t < 256]
            self.assertEqual(text, bytes(data).decode("utf-8"))

    def test_a_part_has_a_plan_of_its_own(self):
        name = self.prefix + "#docs=10..40"
        plan = self.plan_of(name, "part.plan")
        rows, before = read_plan(plan)["rows"], sum(self.lengths[:10])
        self.assertEqual(rows, best_fit(self.lengths[10:40], SEQ))
        run = tokmap.Run(text=self.text("passes 1", f'source web "{name}" plan "{plan}"', batch=1))
        shown = []
        with self.loader(run) as loader:
            for batch in loader:
                segments = rows[batch.places[0].window]
                model = self.row_model([[first + before, count] for first, count in segments], 1, False)
                self.assertEqual(values(batch.inputs)[0], model["inputs"])
                shown += [t for first, count in segments for t in range(first, first + count)]
        self.assertEqual(sorted(shown), list(range(sum(self.lengths[10:40]))))
        with self.assertRaisesRegex(tokmap.TokmapError, "part.plan"):
            tokmap.Run(text=self.text("passes 1", f'source web "{self.prefix}" plan "{plan}"'))

    def test_a_plan_in_a_mixture(self):
        single = self.plan_of(self.prefix, "single.plan", "--one-document")
        sources = [self.rows, read_plan(single)["rows"]]
        run = tokmap.Run(text=self.text(f'source a "{self.prefix}" plan "{self.plan}"',
                                         f'source b "{self.prefix}" plan "{single}"', "phase 0 a 3 b 1", "steps 60"))
        drawn = collections.Counter()
        with self.loader(run, rows=3) as loader:
            for batch in loader:
                self.check_batch(run, batch, 1, sources=sources)
                drawn.update(place.source for place in batch.places)
        self.assertTrue(abs(drawn[0] - 225) <= 1 and drawn[0] + drawn[1] == 300, drawn)

    def test_a_padded_tail(self):
        run = tokmap.Run(text=self.text("passes 1", "tail pad", "order sequential", batch=len(self.rows) - 3))
        self.assertEqual(run.info.steps, 2)
        inputs, rows = [], 0
        with self.loader(run, rows=0) as loader:
            for batch in loader:
                inputs += values(batch.inputs)
                rows += sum(bool(run.extents(batch.step, batch.first_row + i)) for i in range(batch.count))
        self.assertEqual(rows, len(self.rows))
        self.assertEqual(inputs[:rows], [self.row_model(segments, 1, False)["inputs"] for segments in self.rows])
        self.assertEqual(inputs[rows:], [[PAD] * SEQ] * (len(self.rows) - 6))


if __name__ == "__main__":
    unittest.main()
