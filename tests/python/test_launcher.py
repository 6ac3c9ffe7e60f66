# SPDX-License-Identifier: MIT
"""Which part of a global batch a process reads: what launchers set, what contradicts, and what a program passes.

The environments below are those that the launchers really make. Where a launcher is installed, test_launchers.py runs
it.
"""
import os
import pickle
import types
import unittest
from unittest import mock

import tokmap
from tokmap.errors import class_of
from support import BATCH, WithData, needs, python, values
from tokmap import launcher

TORCHRUN = {"RANK": "5", "WORLD_SIZE": "16", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "none"}
STEP = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "8", "SLURM_NTASKS": "8"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "6", "PMIX_RANK": "2"}
MPICH = {"PMI_RANK": "2", "PMI_SIZE": "6", "PMI_FD": "8"}
ALONE = "rank 0 of 1 (no launcher was found)"
#: Every variable that find() reads, so that the launcher of the tests does not change them.
NAMES = ("RANK WORLD_SIZE LOCAL_RANK TORCHELASTIC_RUN_ID OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE MV2_COMM_WORLD_RANK "
         "MV2_COMM_WORLD_SIZE JSM_NAMESPACE_RANK JSM_NAMESPACE_SIZE HOROVOD_RANK HOROVOD_SIZE PMI_RANK PMI_SIZE "
         "PMIX_RANK FLUX_TASK_RANK FLUX_JOB_SIZE SLURM_STEP_ID SLURM_PROCID SLURM_STEP_NUM_TASKS SLURM_NTASKS").split()


def torch(rank, world, initialized=True):
    """What sys.modules has in a program that imported torch."""
    return {"torch.distributed": types.SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: initialized, get_rank=lambda: rank,
        get_world_size=lambda: world)}


def jax(rank, world, client=object()):
    state = types.SimpleNamespace(client=client, process_id=rank, num_processes=world)
    return {"jax._src.distributed": types.SimpleNamespace(global_state=state)}


def environment(**variables):
    """os.environ with only these launcher's variables."""
    kept = {name: value for name, value in os.environ.items() if name not in NAMES}
    return mock.patch.dict(os.environ, {**kept, **variables}, clear=True)


class Find(unittest.TestCase):
    def found(self, *parts, modules=None):
        part = launcher.find({name: value for each in parts for name, value in each.items()}, modules or {})
        self.assertTrue(part.found)
        return str(part)

    def refused(self, *words, parts=(), modules=None):
        with self.assertRaises(tokmap.ArgumentError) as caught:
            self.found(*parts, modules=modules)
        for word in (*words, "world=1"):  # every message names the remedy
            self.assertIn(word, str(caught.exception))

    def test_nothing(self):
        self.assertEqual(self.found({}), ALONE)
        self.assertEqual(self.found({"RANK": "", "WORLD_SIZE": " ", "LOCAL_RANK": "1"}), ALONE)
        self.assertEqual(self.found({}, modules=torch(1, 2, initialized=False)), ALONE)
        self.assertEqual(self.found({}, modules=jax(1, 2, client=None)), ALONE)
        # torch without its distributed package has the module, but not its functions
        bare = {"torch.distributed": types.SimpleNamespace(is_available=lambda: False)}
        self.assertEqual(self.found({}, modules=bare), ALONE)

    def test_each_source(self):
        for variables, expected in (
                (TORCHRUN, "rank 5 of 16 from RANK and WORLD_SIZE"),
                (STEP, "rank 3 of 8 from Slurm (SLURM_PROCID and SLURM_STEP_NUM_TASKS)"),
                (OPEN_MPI, "rank 2 of 6 from Open MPI (OMPI_COMM_WORLD_RANK and _SIZE)"),
                (MPICH, "rank 2 of 6 from MPI (PMI_RANK and PMI_SIZE)"),
                ({"MV2_COMM_WORLD_RANK": "0", "MV2_COMM_WORLD_SIZE": "2"},
                 "rank 0 of 2 from MVAPICH (MV2_COMM_WORLD_RANK and _SIZE)"),
                ({"JSM_NAMESPACE_RANK": "1", "JSM_NAMESPACE_SIZE": "2"},
                 "rank 1 of 2 from jsrun (JSM_NAMESPACE_RANK and _SIZE)"),
                ({"HOROVOD_RANK": "1", "HOROVOD_SIZE": "2"},
                 "rank 1 of 2 from Horovod (HOROVOD_RANK and HOROVOD_SIZE)"),
                ({"FLUX_TASK_RANK": "1", "FLUX_JOB_SIZE": "2", "PMI_RANK": "1", "PMI_SIZE": "2"},
                 "rank 1 of 2 from MPI (PMI_RANK and PMI_SIZE)"),
                ({"FLUX_TASK_RANK": "1", "FLUX_JOB_SIZE": "2"},
                 "rank 1 of 2 from Flux (FLUX_TASK_RANK and FLUX_JOB_SIZE)")):
            self.assertEqual(self.found(variables), expected)
        self.assertEqual(self.found({}, modules=torch(1, 2)), "rank 1 of 2 from torch.distributed")
        self.assertEqual(self.found({}, modules=jax(1, 2)), "rank 1 of 2 from jax.distributed")
        self.assertEqual(self.found(TORCHRUN, modules=torch(5, 16)), "rank 5 of 16 from torch.distributed")

    def test_slurm_without_srun(self):
        """A batch script and the shell of salloc are one process, whatever the job's variables are."""
        note = "rank 0 of 1 (SLURM_NTASKS is 8, but srun did not start this process)"
        self.assertEqual(self.found({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "8"}), note)
        self.assertEqual(self.found({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "8", "SLURM_PROCID": "0"}), note)
        interactive = {**STEP, "SLURM_STEP_ID": "4294967290", "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}
        self.assertEqual(self.found(interactive), note)
        self.assertEqual(self.found({**interactive, "PMIX_RANK": "0"}), note)
        # srun in such a shell passes the job's SLURM_NTASKS on; the step has its own number of tasks
        self.assertEqual(self.found({**STEP, "SLURM_NTASKS": "64"}),
                         "rank 3 of 8 from Slurm (SLURM_PROCID and SLURM_STEP_NUM_TASKS)")

    def test_launchers_that_start_launchers(self):
        nodes = {**STEP, "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4"}
        # srun, one torchrun a node: torchrun numbers the nodes as it likes, and a node may have one process
        self.assertEqual(self.found(nodes, TORCHRUN), "rank 5 of 16 from RANK and WORLD_SIZE")
        self.assertEqual(self.found(nodes, TORCHRUN, modules=torch(5, 16)), "rank 5 of 16 from torch.distributed")
        self.assertEqual(self.found(nodes, {**TORCHRUN, "RANK": "2", "WORLD_SIZE": "4"}),
                         "rank 2 of 4 from RANK and WORLD_SIZE")
        self.assertEqual(self.found(STEP, {**TORCHRUN, "RANK": "0", "WORLD_SIZE": "1"}),
                         "rank 0 of 1 from RANK and WORLD_SIZE")
        self.assertEqual(self.found({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, TORCHRUN),
                         "rank 5 of 16 from RANK and WORLD_SIZE")
        # Ray in a job: a task of Slurm is a node; Ray sets the variables of each worker
        ray = {"RANK": "5", "WORLD_SIZE": "14", "LOCAL_RANK": "1"}
        self.assertEqual(self.found(nodes, ray), "rank 5 of 14 from RANK and WORLD_SIZE")
        # mpirun in a batch script starts a daemon on each of the other nodes by srun, and Hydra on all nodes
        self.assertEqual(self.found({**STEP, "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "3"}, OPEN_MPI),
                         "rank 2 of 6 from Open MPI (OMPI_COMM_WORLD_RANK and _SIZE)")
        self.assertEqual(self.found({"SLURM_NTASKS": "6", "SLURM_PROCID": "0"}, MPICH),
                         "rank 2 of 6 from MPI (PMI_RANK and PMI_SIZE)")
        # a program that srun started once on each node, and that starts its own ranks by multiprocessing
        self.assertEqual(self.found(nodes, modules=torch(9, 16)), "rank 9 of 16 from torch.distributed")
        # ranks started by hand in a step of one task
        self.assertEqual(self.found({**STEP, "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"},
                                    {"RANK": "1", "WORLD_SIZE": "2"}),
                         "rank 1 of 2 from RANK and WORLD_SIZE")

    def test_agreement(self):
        self.assertEqual(self.found(STEP, {"RANK": "3", "WORLD_SIZE": "8"}), "rank 3 of 8 from RANK and WORLD_SIZE")
        self.assertEqual(self.found(STEP, {"WORLD_SIZE": "8", "MASTER_ADDR": "a"}),
                         "rank 3 of 8 from Slurm (SLURM_PROCID and SLURM_STEP_NUM_TASKS)")
        self.assertEqual(self.found({"WORLD_SIZE": "2", "LOCAL_RANK": "1"}, modules=torch(1, 2)),
                         "rank 1 of 2 from torch.distributed")
        self.assertEqual(self.found({"WORLD_SIZE": "1"}), ALONE)

    def test_disagreement(self):
        self.refused("two sources disagree", "torch.distributed: rank 0 of 2", "RANK and WORLD_SIZE: rank 5 of 16",
                     parts=[TORCHRUN], modules=torch(0, 2))
        self.refused("torch.distributed: rank 0 of 1", "SLURM_PROCID and SLURM_STEP_NUM_TASKS): rank 3 of 8",
                     parts=[STEP], modules=torch(0, 1))
        self.refused("torch.distributed: rank 0 of 2", "jax.distributed: rank 1 of 2",
                     modules={**torch(0, 2), **jax(1, 2)})
        # left over in every task: rank 0 of 1, or the same rank for all
        self.refused("RANK and WORLD_SIZE: rank 0 of 1", "rank 3 of 8", parts=[STEP, {"RANK": "0", "WORLD_SIZE": "1"}])
        self.refused("RANK and WORLD_SIZE: rank 0 of 8", "rank 3 of 8", parts=[STEP, {"RANK": "0", "WORLD_SIZE": "8"}])
        self.refused("RANK and WORLD_SIZE: rank 3 of 16", "rank 3 of 8",
                     parts=[STEP, {"RANK": "3", "WORLD_SIZE": "16"}])
        self.refused("Open MPI", "PMI_RANK", parts=[OPEN_MPI, {**MPICH, "PMI_RANK": "1"}])
        self.refused("Open MPI", "Slurm", parts=[STEP, OPEN_MPI])
        self.refused("Slurm", "WORLD_SIZE is 4", parts=[STEP, {"WORLD_SIZE": "4"}])
        self.refused("torch.distributed: rank 0 of 2", "RANK is 1", parts=[{"RANK": "1"}], modules=torch(0, 2))

    def test_incomplete(self):
        # Lightning starts the program again for each further rank, with these variables
        self.refused("WORLD_SIZE is 2", "RANK is not set", "train_dataloader",
                     parts=[{"WORLD_SIZE": "2", "LOCAL_RANK": "1"}])
        self.refused("RANK is 0", "WORLD_SIZE is not set", parts=[{"RANK": "0"}])
        self.refused("PMIX_RANK is 1", parts=[{"PMIX_RANK": "1"}])

    def test_wrong_values(self):
        for text in ("one", "-1", "1.5", "²", "1_0"):
            self.refused("RANK is", repr(text), parts=[{"RANK": text, "WORLD_SIZE": "2"}])
        self.refused("rank 2 of 2", "counted from 0", parts=[{"RANK": "2", "WORLD_SIZE": "2"}])
        self.refused("rank 0 of 0", parts=[{"RANK": "0", "WORLD_SIZE": "0"}])


class Loaders(WithData):
    def part(self, **options):
        with self.run_of().loader(framework="dlpack", **options) as loader:
            found = loader.delivery()
            self.assertEqual((found.rank, found.world), (loader.rank, loader.world))
            next(loader)
            return found.part

    def test_a_loader_takes_its_rank(self):
        with environment():
            self.assertEqual(self.part(), ALONE)
        with environment(RANK="1", WORLD_SIZE="2"):
            self.assertEqual(self.part(), "rank 1 of 2 from RANK and WORLD_SIZE")
            rows = [tuple(b.places[0]) for b in self.run_of().loader(framework="dlpack")]
        expected = [tuple(b.places[0]) for b in self.run_of().loader(framework="dlpack", rank=1, world=2)]
        self.assertEqual(rows, expected)

    def test_what_is_passed_is_obeyed(self):
        with environment(RANK="1", WORLD_SIZE="2"):
            self.assertEqual(self.part(world=1), "rank 0 of 1 as passed")
            self.assertEqual(self.part(rank=0, world=1), "rank 0 of 1 as passed")
            self.assertEqual(self.part(rank=2, world=3), "rank 2 of 3 as passed")
        with environment(RANK="1"):  # not even asked
            self.assertEqual(self.part(world=1), "rank 0 of 1 as passed")
        for passed, words in (({"rank": 1}, "world is missing"), ({"rank": 0}, "world is missing"),
                              ({"world": 2}, "rank is missing")):
            for opened in (self.run_of().loader, self.run_of().dataset):
                with self.assertRaises(tokmap.ArgumentError) as caught:
                    opened(framework="dlpack", **passed)
                self.assertIn(words, str(caught.exception))

    def test_training_starts_after_opening(self):
        """A loader that was opened before the ranks were known is refused at its first batch."""
        for before, after in (({}, {"RANK": "0", "WORLD_SIZE": "2"}),
                              ({"RANK": "0", "WORLD_SIZE": "2"}, {"RANK": "1", "WORLD_SIZE": "2"})):
            with environment(**before):
                loader = self.run_of().loader(framework="dlpack")
            with environment(**after):
                with self.assertRaises(tokmap.ArgumentError) as caught:
                    next(loader)
                self.assertIn("opened as rank 0", str(caught.exception))
            with environment(**before):
                self.assertEqual(next(loader).step, 0)  # nothing was lost
            with environment(**after):
                self.assertEqual(next(loader).step, 1)  # asked once

    def test_pickling_keeps_the_part(self):
        with environment(RANK="1", WORLD_SIZE="2"):
            text = pickle.dumps(self.run_of().loader(framework="dlpack"))
            again = pickle.loads(text)
            self.assertEqual(again.delivery().part, "rank 1 of 2 from RANK and WORLD_SIZE")
            next(again)
        with environment(RANK="0", WORLD_SIZE="2"):  # sent to another rank: it would read rank 1's rows twice
            self.assertRaises(tokmap.ArgumentError, next, pickle.loads(text))

    def test_a_dataset_asks_who_divides(self):
        """The map-style dataset is whole in a single process. Among several, it is not divided or whole silently."""
        with environment():
            whole = self.run_of().dataset(framework="dlpack")
        self.assertEqual((whole.rank, whole.world), (0, 1))
        with environment(RANK="1", WORLD_SIZE="2"):
            with self.assertRaises(tokmap.ArgumentError) as caught:
                self.run_of().dataset(framework="dlpack")
            for words in ("rank 1 of 2 from RANK and WORLD_SIZE", "DistributedSampler", "world=1",
                          "rank=1 and world=2"):
                self.assertIn(words, str(caught.exception))
            self.assertEqual(len(self.run_of().dataset(framework="dlpack", world=1)), len(whole))

    def test_parts_of_a_dataset(self):
        """The parts of all ranks are disjoint and complete, and are what the ranks' loaders deliver."""
        for options in ({}, {"steps": None, "passes": None}, {"text": "skip"}):
            run = self.run_of(**options) if "text" not in options else tokmap.Run(
                text=f"seq_len 48\nbatch {BATCH}\nseed 3\nsource web web\nsteps 9\nskip 2..4\nskip 7..8\n",
                folder=self.folder)
            whole, seen = run.dataset(framework="dlpack", world=1), []
            for rank in range(4):
                part = run.dataset(framework="dlpack", rank=rank, world=4)
                loader = run.loader(rank=rank, world=4, framework="dlpack")
                rows = [(b.step, b.first_row + i) for b, _ in zip(loader, range(8)) for i in range(b.count)]
                self.assertEqual([part.place(i) for i in range(len(rows))], rows)
                self.assertEqual([part.index(*place) for place in rows], list(range(len(rows))))
                for i, place in enumerate(rows):
                    self.assertEqual(values(part[i]["inputs"]), values(whole[whole.index(*place)]["inputs"]))
                if run.info.delivered is not None:
                    self.assertEqual(part.place(-1), part.place(len(part) - 1))
                    seen += [part.place(i) for i in range(len(part))]
                    self.assertIn(f"rank {rank} of 4", repr(part))
                    self.assertEqual([part.place(i) for i in range(len(part))],
                                     [pickle.loads(pickle.dumps(part)).place(i) for i in range(len(part))])
                with self.assertRaises(class_of("ERROR_RANGE")) as caught:
                    part.index(0, (rank + 1) % 4 * BATCH // 4)
                self.assertIn("another rank", str(caught.exception))
            if run.info.delivered is not None:
                self.assertEqual(sorted(seen), [whole.place(i) for i in range(len(whole))])
        for rank, world in ((1, 1), (0, 0), (0, BATCH + 1)):
            self.assertRaises(class_of("ERROR_RANGE"), run.dataset, rank=rank, world=world, framework="dlpack")

    @needs("torch")
    def test_workers_of_a_data_loader(self):
        """Workers inherit the environment. A dataset is not divided again; loaders in several workers are refused."""
        code = """if 1:
            import sys, torch, tokmap
            from torch.utils.data import DataLoader, IterableDataset
            run = tokmap.Run(data=sys.argv[1], seq_len=48, batch=6, seed=3, passes=1)
            class Rows(IterableDataset):
                def __iter__(self):
                    for b in run.loader(dtype=torch.int64): yield b.step, b.first_row, b.count
            class Sent(IterableDataset):
                def __init__(self): self.loader = run.loader(dtype=torch.int64, threads=0)
                def __iter__(self):
                    for b in self.loader: yield b.step, b.first_row, b.count
            if __name__ == "__main__":
                ds = run.dataset(dtype=torch.int64, rank=1, world=2)
                batches = list(DataLoader(ds, batch_size=3, num_workers=2, collate_fn=tokmap.collate))
                assert torch.equal(torch.cat([b.inputs for b in batches]),
                                   torch.cat([b.inputs for b in run.loader(dtype=torch.int64)]))
                for kind in (Rows, Sent):
                    got = [tuple(map(int, each)) for each in DataLoader(kind(), batch_size=None, num_workers=1)]
                    assert got == [(step, 3, 3) for step in range(run.info.steps)], got
                    try:
                        list(DataLoader(kind(), batch_size=None, num_workers=2))
                        print("not refused")
                    except ValueError as problem:
                        print("worker" in str(problem) and "the same rows" in str(problem))
        """
        ran = python(code, self.prefix, **{**{name: "" for name in NAMES}, "RANK": "1", "WORLD_SIZE": "2"})
        self.assertEqual(ran, "True\nTrue\n")


if __name__ == "__main__":
    unittest.main()
