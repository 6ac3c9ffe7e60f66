# SPDX-License-Identifier: MIT
"""Context parallelism: slices of rows, which together are the rows, and which are those that others take."""
import os
import random
import subprocess
import unittest

import tokmap
from support import TOKMAP, WithData, needs, pack, values

LAYOUTS = ("contiguous", "zigzag", "zigzag_documents")
TOKEN_FIELDS = ("inputs", "targets", "position_ids", "document_ids", "loss_mask", "labels")


def plan(prefix, seq_len, pad, *options):
    """A plan that pads documents, made anew."""
    path = f"{prefix}-{seq_len}-{pad}.plan"
    subprocess.run([TOKMAP, "plan", "-q", "--force", "-o", path, "--seq-len", str(seq_len), "--pad-documents", str(pad),
                    *options, prefix], check=True)
    return path


def segments(cu_seqlens, documents, seq_len):
    """The lengths of the segments of each row, from cu_seqlens of the whole rows."""
    rows = [[]]
    for a, b in zip(cu_seqlens[:documents], cu_seqlens[1:documents + 1]):
        if a and a % seq_len == 0:
            rows.append([])
        rows[-1].append(b - a)
    return rows


def columns(layout, rank, world, seq_len, lengths):
    """The columns of a rank, from the definitions in loader.h."""
    if layout == "contiguous":
        return list(range(rank * seq_len // world, (rank + 1) * seq_len // world))
    found, first = [], 0
    for length in [seq_len] if layout == "zigzag" else lengths:
        part = length // (2 * world)
        for chunk in (rank, 2 * world - 1 - rank):
            found += range(first + chunk * part, first + (chunk + 1) * part)
        first += length
    return found


def thd_indices(cu_seqlens, world, rank):
    """Transformer Engine's rule for packed sequences (thd_get_partitioned_indices: its own code needs a GPU): each
    sequence is cut into 2 * world equal chunks, of which a rank has number rank and number 2 * world - rank - 1."""
    found = []
    for start, end in zip(cu_seqlens, cu_seqlens[1:]):
        size = (end - start) // (2 * world)
        found += range(start + rank * size, start + (rank + 1) * size)
        found += range(end - (rank + 1) * size, end - rank * size)
    return found


class Slices(WithData):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.masked = os.path.join(cls.folder, "masked")
        choose = random.Random(7)
        with tokmap.ShardWriter(cls.masked, vocab_size=100000, eod=7, mask=True, width=4, sync=False) as writer:
            for _ in range(80):
                ids = [choose.randrange(100000) for _ in range(choose.choice((1, 3, 20, 90)))]
                writer.add(ids, mask=[choose.randrange(2) for _ in ids])

    def a_run(self, choose, layout, world):
        """A random run of which every row can be cut, and the fields that it can deliver."""
        seq_len = 2 * world * choose.randrange(1, 40 if choose.random() < .9 else 120)
        data = {"a": choose.choice((self.prefix, self.masked))}
        how = {"lookahead": choose.choice((0, 1, 1, 1, 3))}
        if layout == "zigzag_documents" or choose.random() < .2:
            # Of a plan for more ranks, or for one chunk of several columns, too.
            pads = [pad for pad in range(2 * world, seq_len + 1, 2 * world) if seq_len % pad == 0]
            pad = choose.choice(pads)
            data["a"] = {"data": data["a"], "plan": plan(data["a"], seq_len, pad)}
        elif choose.random() < .2:
            how["stride"] = choose.randrange(1, seq_len + 1)
        elif choose.random() < .3:
            how["tail"] = "pad"
            data["b"] = self.masked
        return tokmap.Run(sources=data, seq_len=seq_len, batch=choose.randrange(1, 5), seed=choose.randrange(99),
                          steps=2, weights="natural", **how)

    def check(self, run, choose, layout, world, **options):
        """Compares the slices of all ranks with the whole rows."""
        names = [name for name in TOKEN_FIELDS if run.info.lookahead or name not in ("targets", "loss_mask")]
        if choose.random() < .4:
            names = choose.sample(names, choose.randrange(1, len(names)))
        if "loss_mask" not in names and ("inputs" in names or "targets" in names) or choose.random() < .3:
            options["mask_targets"] = "inputs" in names or "targets" in names
        extra = [name for name in ("source_ids",) if choose.random() < .3]
        if run.info.lookahead and choose.random() < .2:
            extra.append("targets_ahead")
            if "loss_mask" not in names:
                options["mask_targets"] = True
        slice_extra = extra + [name for name in ("cu_seqlens", "cu_seqlens_slice") if choose.random() < .5]
        options.update(rows=choose.randrange(3), threads=choose.randrange(2), dtype=choose.choice(("int32", "int64")))
        whole = run.loader(fields=(*names, *extra, "cu_seqlens"), framework="numpy", **options)
        ranks = [run.loader(fields=(*names, *slice_extra), framework="numpy", context_rank=rank, context_world=world,
                            context_layout=layout, **options) for rank in range(world)]
        for b in whole:
            ends = b.cu_seqlens.tolist()
            lengths = segments(ends, b.documents, b.seq_len)
            for rank, loader in enumerate(ranks):
                part = next(loader)
                self.assertEqual((part.step, part.first_row, part.count, part.seq_len, part.columns),
                                 (b.step, b.first_row, b.count, b.seq_len, b.seq_len // world))
                at = [columns(layout, rank, world, b.seq_len, row) for row in lengths]
                for name in names + extra:
                    for i in range(b.count):
                        want = getattr(b, name)[i] if name == "source_ids" else getattr(b, name)[i][at[i]]
                        self.assertEqual(getattr(part, name)[i].tolist(), want.tolist(), (name, rank, i, at[i]))
                if "cu_seqlens" in slice_extra:
                    self.assertEqual((part.cu_seqlens.tolist(), part.documents, part.max_seqlen),
                                     (ends, b.documents, b.max_seqlen))
                if "cu_seqlens_slice" in slice_extra:
                    mine = [i * b.seq_len + j for i in range(b.count) for j in at[i]]
                    want = [sum(x < end for x in mine) for end in ends]
                    self.assertEqual(part.cu_seqlens_slice.tolist(), want)
                    self.assertEqual(part.max_seqlen_slice, max(y - x for x, y in zip(want, want[1:])))
                if layout == "zigzag_documents" and "inputs" in names and b.count:
                    flat = b.inputs.reshape(-1)[thd_indices(ends[:b.documents + 1], world, rank)]
                    self.assertEqual(part.inputs.reshape(-1).tolist(), flat.tolist())
        self.assertEqual([next(loader, None) for loader in ranks], [None] * world)
        self.assertEqual({loader.state_dict()["cursor"] for loader in ranks}, {whole.state_dict()["cursor"]})
        for loader in (whole, *ranks):
            loader.close()

    @needs("numpy")
    def test_random(self):
        """Slices of random runs, put together, are their rows."""
        for seed in range(int(os.environ.get("TOKMAP_CONTEXT_RUNS", 150))):
            choose = random.Random(seed)
            layout, world = choose.choice(LAYOUTS), choose.choice((1, 2, 2, 3, 4, 8))
            with self.subTest(seed=seed, layout=layout, world=world), self.a_run(choose, layout, world) as run:
                self.check(run, choose, layout, world)

    def trace(self, run, of, layout, context, world=2, **options):
        """Delivers a run to all ranks with traces. Returns the names of these, by rank and context rank."""
        names = {}
        for rank in range(world):
            for c in range(context):
                name = names[rank, c] = os.path.join(self.folder, f"{layout}-{of}-{context}-{rank}-{c}.trace")
                with run.loader(rank=rank, world=world, context_rank=c, context_world=context, context_layout=layout,
                                mask_targets=True, framework="dlpack", trace=name, **options) as loader:
                    for _ in loader:
                        pass
        return names

    def replay(self, run_file, names, *options, status=0):
        ran = subprocess.run([TOKMAP, "replay", run_file, *options, "--trace", *names], capture_output=True, text=True)
        self.assertEqual(ran.returncode, status, ran.stdout + ran.stderr)
        return ran.stdout

    def test_traces(self):
        """They prove what each rank got, and that no rank is missing, whatever the cut."""
        for layout in LAYOUTS:
            data = {"data": self.masked, "plan": plan(self.masked, 64, 8)} if layout == "zigzag_documents" else self.masked
            with self.subTest(layout), tokmap.Run(sources={"a": data}, seq_len=64, batch=5, seed=1, steps=4) as run:
                run_file = self.file(f"{layout}.run", run.text)
                traces = self.trace(run, layout, layout, 4, rows=2, threads=1)
                whole = self.trace(run, layout, "contiguous", 1, world=3)
                self.assertIn("the same: 4 steps, 20 rows", self.replay(run_file, traces.values()))
                self.assertIn("the same", self.replay(run_file, [*whole.values(), *traces.values()]))
                self.assertIn("the same", self.replay(run_file, [*whole.values(), traces[1, 3]]))
                lacking = [name for at, name in traces.items() if at != (1, 2)]
                self.assertRegex(self.replay(run_file, lacking, status=1),
                                 r"step 0, .*no record of rank 2 of the 4 that share rows")
                self.assertIn("rank 1: has no record", self.replay(run_file, [traces[0, c] for c in range(4)], status=1))
                with open(traces[1, 1], "r+b") as file:  # a sum of step 1
                    file.seek(64 + 16 + 8)
                    file.write(b"wrong")
                self.assertRegex(self.replay(run_file, traces.values(), status=1), r"step 1, rank 1: .*-1-1.trace deliv")
                # Of a run with other lengths, which it does not divide.
                other = self.file("other.run", run.text.replace("64", "66").replace("steps 4", "steps 5"))
                if layout != "zigzag_documents":
                    self.assertRegex(self.replay(other, [traces[0, 0]], status=1), "past|cannot be cut")


if __name__ == "__main__":
    unittest.main()
