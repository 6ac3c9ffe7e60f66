# SPDX-License-Identifier: MIT
"""Context parallelism: slices of rows, which together are the rows, and which are those that others take."""
import os
import random
import subprocess
import unittest

import tokmap
from support import BUILD_DIR, SEQ, TOKMAP, WithData, needs, python

#: Random runs of the test, and shapes that are compared with those of others.
RUNS = int(os.environ.get("TOKMAP_CONTEXT_RUNS", 150))
LAYOUTS = ("contiguous", "zigzag", "zigzag_documents")
TOKEN_FIELDS = ("inputs", "targets", "position_ids", "document_ids", "loss_mask", "labels")


def plan(prefix, seq_len, pad, *options):
    """A plan that pads documents."""
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
        if choose.random() < .3:  # read with pread, and by other threads
            options.update(drop_behind=True, io_threads=choose.choice((0, 2)), deadline=choose.choice((None, 60)))
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
        for seed in range(RUNS):
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
                other = self.file("other.run", run.text.replace("len  64", "len  66").replace("steps    4", "steps    5"))
                if layout != "zigzag_documents":
                    self.assertRegex(self.replay(other, [traces[0, 0]], status=1), "past|cannot be cut")

    # ---- what others take ----

    def shapes(self, layouts):
        """Random batches of whole rows and of one rank's slices of them, for comparison: inputs, slices, layout, rank,
        world, and the lengths of the segments of each row."""
        for seed in range(RUNS):
            choose = random.Random(1000 + seed)
            layout, world = choose.choice(layouts), choose.choice((2, 2, 3, 4, 8))
            rank = choose.randrange(world)
            options = {"framework": "torch", "dtype": "int64", "mask_targets": True, "threads": 0}
            with self.a_run(choose, layout, world) as run, \
                    run.loader(fields="inputs position_ids cu_seqlens", **options) as whole, \
                    run.loader(fields="inputs position_ids", context_rank=rank, context_world=world,
                               context_layout=layout, **options) as loader, self.subTest(seed=seed):
                for b, part in zip(whole, loader):
                    yield b, part, layout, rank, world, segments(b.cu_seqlens.tolist(), b.documents, b.seq_len)

    @needs("torch", "megatron.core.utils")
    def test_as_megatron(self):
        """What megatron-core's get_batch_on_this_cp_rank takes of a whole batch."""
        from unittest import mock

        from megatron.core import parallel_state
        from megatron.core.utils import get_batch_on_this_cp_rank
        for b, part, _, rank, world, _ in self.shapes(["zigzag"]):
            with mock.patch.object(parallel_state, "get_context_parallel_world_size", lambda: world), \
                    mock.patch.object(parallel_state, "get_context_parallel_rank", lambda: rank):
                taken = get_batch_on_this_cp_rank({"tokens": b.inputs, "position_ids": b.position_ids})
            self.assertTrue((taken["tokens"] == part.inputs).all() and (taken["position_ids"] == part.position_ids).all())

    @needs("torch", "torch.distributed.tensor.experimental._context_parallel._load_balancer")
    def test_as_torch(self):
        """What torch's sharders of buffers give to each rank: without a balancer, with that of heads and tails, and
        with that of the heads and tails of documents."""
        import torch
        from torch.distributed.tensor.experimental._context_parallel import _load_balancer as balancers
        if not hasattr(balancers, "_PerDocumentHeadTailLoadBalancer"):
            self.skipTest("this torch has no balancer of documents")
        for b, part, layout, rank, world, lengths in self.shapes(LAYOUTS):
            order = torch.arange(b.seq_len).unsqueeze(0)
            if layout == "zigzag":
                order = balancers._HeadTailLoadBalancer(b.seq_len, world, "cpu")._generate_indices()
            elif layout == "zigzag_documents":
                order = balancers._PerDocumentHeadTailLoadBalancer(lengths, world, "cpu")._generate_indices()
            order = order.expand(b.count, -1).long()
            for name in ("inputs", "position_ids"):
                self.assertTrue((b[name].gather(1, order).chunk(world, 1)[rank] == part[name]).all(), name)

    @needs("torch")
    def test_a_mesh(self):
        """The axes of a DeviceMesh say which rows and columns a process reads."""
        program = """
import os, sys, torch, tokmap
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore
torch.distributed.init_process_group("fake", store=FakeStore(), rank=5, world_size=8)
mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("pp", "dp", "cp"))
run = tokmap.Run(data=sys.argv[1], seq_len=48, batch=6, steps=2)
for how in ({"context": "cp"}, {}, {"context": "cp", "context_layout": "zigzag"}, {"data": ("pp", "dp"), "context": "cp"}):
    with run.loader(mesh=mesh, **{"data": "dp", **how}) as loader:
        b = next(loader)
        print(loader.rank, loader.world, loader.context_rank, loader.context_world, tuple(b.inputs.shape), b.first_row,
              loader.delivery().part)
for how in ({"data": "tp"}, {}, {"data": "dp", "rank": 0, "world": 1}, {"data": "dp", "context_world": 2}):
    try:
        run.loader(mesh=mesh, **how)
    except tokmap.ArgumentError as problem:
        print(problem)
for how in ({"data": "dp"}, {"context_rank": 1, "context_world": 2}):
    try:
        run.loader(**how)
    except tokmap.ArgumentError as problem:
        print(problem)
"""
        said = python(program, self.prefix).splitlines()
        self.assertEqual(said[:4], ["0 2 1 2 (3, 24) 0 rank 0 of 2 from the axis 'dp' of the mesh",
                                    "0 2 0 1 (3, 48) 0 rank 0 of 2 from the axis 'dp' of the mesh",
                                    "0 2 1 2 (3, 24) 0 rank 0 of 2 from the axis 'dp' of the mesh",
                                    "2 4 1 2 (1, 24) 3 rank 2 of 4 from the axis ('pp', 'dp') of the mesh"])
        for line, words in zip(said[4:], ("data is 'tp', but the mesh has the axes 'pp', 'dp', 'cp'", "without data",
                                          "pass mesh, or rank", "pass mesh, or rank", "mesh is missing",
                                          "so several processes share their rows, but this process is rank 5 of 8")):
            self.assertIn(words, line)
        self.assertEqual(len(said), 10)

    # ---- bad input ----

    def test_refused(self):
        """What cannot be, in one sentence that says what to do."""
        run = self.run_of(seq_len=72)
        padded = tokmap.Run(sources={"a": {"data": self.prefix, "plan": plan(self.prefix, 72, 6)}}, seq_len=72, batch=2,
                            steps=2)
        phases = tokmap.Run(data=self.prefix, seq_len=72, batch=2, steps=9, phases=[{"step": 5, "seq_len": 68}])
        for made, options, words in (
                (run, {"context_rank": 2, "context_world": 2}, "context_rank is 2; it must be below context_world, 2"),
                (run, {"context_world": 0}, "context_world is 0, but it must be from 1 to"),
                (run, {"context_world": 2, "context_layout": "ring"}, "context_layout is 'ring', but it must be one of: "
                                                                      "contiguous, zigzag, zigzag_documents"),
                (run, {"context_world": 5}, "seq_len 72 is not a multiple of 5, .*set seq_len to 70 or 75"),
                (run, {"context_world": 8, "context_layout": "zigzag"},
                 "seq_len 72 is not a multiple of 16, .*set seq_len to 64 or 80"),
                (run, {"context_world": 100}, "seq_len 72 is not a multiple of 100, .*set seq_len to 100"),
                (phases, {"context_world": 3}, "seq_len 68 is not a multiple of 3, .*set seq_len to 66 or 69"),
                (run, {"context_world": 2, "context_layout": "zigzag_documents"},
                 "source 'data' has no plan; make one with `tokmap plan --pad-documents 4`"),
                (padded, {"context_world": 2, "context_layout": "zigzag_documents", "mask_targets": True},
                 "pads documents to a multiple of 6, but .* needs multiples of 4; make the plan with "
                 "--pad-documents 8"),
                (padded, {}, "the plan of source 'a' pads documents, but targets are requested without"),
                (run, {"context_world": 2, "fields": "inputs rows"}, "\"rows\" are whole; remove \"rows\" from fields"),
                (run, {"context_world": 2, "fields": ()}, "add \"inputs\" to fields")):
            with self.subTest(options), self.assertRaisesRegex((tokmap.TokmapError, ValueError), words):
                made.loader(**{"context_rank": 0, **options})
        with self.assertRaisesRegex(tokmap.ArgumentError, "context_world is 2, but context_rank is missing: pass both"):
            run.loader(context_world=2)
        for options, words in ((("--pad-documents", "16", "--seq-len", "40"),
                                "--seq-len is 40, which is not a multiple of --pad-documents 16; set --seq-len to 32 or "
                                "48"),
                               (("--pad-documents", "0", "--seq-len", "40"), "between 1 and --seq-len"),
                               (("--pad-documents", "41", "--seq-len", "40"), "between 1 and --seq-len")):
            ran = subprocess.run([TOKMAP, "plan", "-o", os.path.join(self.folder, "no.plan"), *options, self.prefix],
                                 capture_output=True, text=True)
            self.assertIn(words, ran.stderr)
            self.assertNotEqual(ran.returncode, 0)

    # ---- moves, devices ----

    @needs("numpy")
    def test_moves(self):
        """A loader continues as another rank, and with another run, with its slice; and so does a pickled one."""
        import pickle
        run = self.run_of()
        options = {"framework": "numpy", "context_rank": 1, "context_world": 3, "context_layout": "zigzag", "rows": 1}
        with run.loader(rank=0, world=2, **options) as loader, \
                run.loader(rank=1, world=3, resume=run.cursor(1), **options) as other:
            for _ in range(3):
                next(loader)
            loader.repartition(1, 3)
            for one, two in zip(loader, other):
                self.assertEqual(one.inputs.tolist(), two.inputs.tolist())
            loader.rewind()
            other.rewind()
            again = pickle.loads(pickle.dumps(other))
            self.assertEqual((again.context_rank, again.context_world), (1, 3))
            loader.reload(self.run_of(passes=3))
            for one, two, three in zip(loader, other, again):
                self.assertEqual(one.inputs.tolist(), two.inputs.tolist())
                self.assertEqual(one.inputs.tolist(), three.inputs.tolist())
            again.close()
            with self.assertRaisesRegex(tokmap.TokmapError, "not a multiple of 6"):
                loader.reload(self.run_of(seq_len=SEQ + 1))

    def test_documents_on_a_gpu(self):
        """Chunks of documents are expanded by the host, for the emulated GPU."""
        driver = os.path.join(BUILD_DIR, "tests", "cuda_software", "libcuda.so.1")
        if not os.path.exists(driver):
            self.skipTest("the emulated driver is not built")
        program = """
import sys, tokmap
from tokmap import device
run = tokmap.Run(sources={"a": {"data": sys.argv[1], "plan": sys.argv[2]}}, seq_len=64, batch=3, steps=5)
fields = "inputs targets labels loss_mask position_ids document_ids source_ids cu_seqlens cu_seqlens_slice"
how = {"fields": fields, "framework": "dlpack", "context_rank": 1, "context_world": 4, "mask_targets": True}
with run.loader(context_layout="zigzag_documents", device="cuda:0", **how) as a, \
        run.loader(context_layout="zigzag_documents", **how) as b:
    for one, two in zip(a, b):
        for name in fields.split():
            assert one[name].tolist() == two[name].tolist(), name
    print(a.delivery().kernel, a.delivery().reason, a.stats().host_expanded)
"""
        path = plan(self.masked, 64, 8)
        self.assertEqual(python(program, self.masked, path, TOKMAP_CUDA_DRIVER=driver, TOKMAP_CUDA_SOFTWARE="delay=30"),
                         "False the kernel has no chunks of documents 5\n")


if __name__ == "__main__":
    unittest.main()
