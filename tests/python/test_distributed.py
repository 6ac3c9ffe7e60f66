# SPDX-License-Identifier: MIT
"""The examples of the pages in several processes, as torchrun, Lightning, MPI, Slurm, and JAX start them. The ranks'
rows must be disjoint and complete, and the losses must not depend on the number of ranks."""
import collections
import glob
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import tokmap
from support import TOKMAP, TOP, importable, needs, new_folder
from test_launcher import NAMES
from test_readme import examples

BATCH, STEPS, SEQ = 8, 12, 64
RUN = f"seq_len {SEQ}\nbatch {BATCH}\nseed 5\nsource web data/web\nsteps {STEPS}\n"
#: A short mixture with a phase: README's run file has the same directives.
MIXTURE = f"""seq_len {SEQ}
batch   {BATCH}
seed    5
source  web  data/books.train
source  wiki data/wiki
validation val data/books.val
phase   0 web 0.8 wiki 0.2
phase   6 web 1 wiki 1
steps   {STEPS}
"""
ROWS = re.compile(r"step (\d+) rows (\d+) to (\d+) sum (\d+)")
#: What a process says about its part, for the launchers that start a program of one line.
SAY = """import os, sys, tokmap
run = tokmap.Run("train.run")
with run.loader(framework="dlpack") as loader:
    b = next(loader)
    open(os.path.join(sys.argv[1], f"{loader.rank}-{os.getpid()}"), "w").write(
        f"{b.first_row} {b.count} {loader.delivery().part}")
"""
#: Runs the program that its arguments name and ends the process without destroying torch's threads. At the exit of a
#: process that used gloo, torch aborts now and then on a busy machine ("terminate called without an active exception").
#: A program without tokmap did so in 9 of 30 runs, so an abort there says nothing about tokmap.
RUNNER = """import os, runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Several(unittest.TestCase):
    text = RUN

    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()
        os.mkdir(os.path.join(cls.folder, "data"))
        subprocess.run([TOKMAP, "pack", "--eod", "-o", os.path.join(cls.folder, "data", "web"),
                        os.path.join(TOP, "include"), os.path.join(TOP, "src", "run")],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run([TOKMAP, "pack", "--eod", "-o", os.path.join(cls.folder, "data", "wiki"),
                        os.path.join(TOP, "src", "order")],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run([TOKMAP, "pack", "-q", "--separator", "\\n\\n", "--split", "train=0.9,val=0.1", "-o",
                        os.path.join(cls.folder, "data", "books"), os.path.join(TOP, "include"),
                        os.path.join(TOP, "src", "run")], check=True)
        with open(os.path.join(cls.folder, "train.run"), "w", encoding="utf-8") as file:
            file.write(cls.text)
        for name, program in {**examples(), "say": SAY, "runner": RUNNER}.items():
            with open(os.path.join(cls.folder, f"example_{name}.py"), "w", encoding="utf-8") as file:
                file.write(program)
        cls.run_ = tokmap.Run(os.path.join(cls.folder, "train.run"))

    def launch(self, *command, check=True, **variables):
        """Runs a command in the folder, without the variables of another launcher, and with its own for GPUs hidden."""
        kept = {name: value for name, value in os.environ.items() if name not in NAMES}
        ran = subprocess.run([str(word) for word in command], cwd=self.folder, capture_output=True, text=True,
                             timeout=600, env={**kept, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", **variables})
        if check:
            self.assertEqual(ran.returncode, 0, f"{ran.stdout}\n{ran.stderr}")
        return ran

    def torchrun(self, world, *command, check=True):
        """Runs a program under torchrun. Returns what the processes said, one after the other."""
        logs = new_folder()
        ran = self.launch(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", world,
                          "--redirects", 3, "--log-dir", logs, "example_runner.py", *command, check=False)
        said = {}
        for path in sorted(glob.glob(os.path.join(glob.escape(logs), "**", "std*.log"), recursive=True)):
            with open(path, encoding="utf-8") as file:
                said[os.path.basename(path)] = said.get(os.path.basename(path), "") + file.read()
        if check:
            self.assertEqual(ran.returncode, 0, f"{ran.stderr}\n{said}")
        return subprocess.CompletedProcess(ran.args, ran.returncode, said["stdout.log"], said["stderr.log"])

    def out(self, name):
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        return path

    def check_rows(self, said, steps, run=None):
        """The ranks delivered every row of these steps once, with the tokens that the run has there."""
        seen = collections.Counter()
        whole = (run or self.run_).dataset(framework="dlpack", world=1)
        found = [tuple(map(int, groups)) for groups in ROWS.findall(said)]
        for step, first, last, total in found:
            self.assertLessEqual(first, last)
            self.assertEqual(total, sum(sum(whole[whole.index(step, row)]["inputs"].tolist())
                                        for row in range(first, last + 1)))
            seen.update((step, row) for row in range(first, last + 1))
        self.assertEqual(seen, collections.Counter({(step, row): 1 for step in steps for row in range(BATCH)}))
        return len(found)

    def check_parts(self, into, world, source):
        """What the processes of SAY wrote: every rank once, with its source, and every row once."""
        lines = []
        for name in os.listdir(into):
            with open(os.path.join(into, name), encoding="utf-8") as file:
                lines.append(file.read().split(" ", 2))
        self.assertEqual(sorted(part for _, _, part in lines),
                         sorted(f"rank {rank} of {world} from {source}" for rank in range(world)))
        rows = [row for first, count, _ in lines for row in range(int(first), int(first) + int(count))]
        self.assertEqual(sorted(rows), list(range(BATCH)))


@needs("torch.distributed.run")
class Torchrun(Several):
    def test_torchrun(self):
        """The same losses in 1, 2, and 4 processes, and each row once."""
        losses = {}
        for world in (1, 2, 4):
            said = self.torchrun(world, "example_torchrun.py").stdout
            self.assertEqual(self.check_rows(said, range(8)), 8 * max(4, world))
            self.assertEqual(said.count("from torch.distributed"), world)
            for rank in range(world):
                self.assertIn(f"rank {rank} of {world} from torch.distributed", said)
            found = collections.defaultdict(set)
            for step, loss in re.findall(r"step (\d+) loss (\S+)", said):
                found[int(step)].add(float(loss))
            losses[world] = [found[step] for step in range(8)]
            self.assertTrue(all(len(each) == 1 for each in losses[world]), losses[world])
        plain = self.launch(sys.executable, "example_torchrun.py").stdout
        self.assertIn("rank 0 of 1 (no launcher was found)", plain)
        alone = [float(loss) for loss in re.findall(r"loss (\S+)", plain)]
        self.assertLess(alone[-1], alone[0] - 0.1)
        for world, found in losses.items():
            for one, each in zip(alone, found):
                self.assertAlmostEqual(one, each.pop(), delta=2e-6, msg=f"{world} ranks")

    def test_context(self):
        """The slices of a replica's processes add up to its rows, and each row is read once."""
        self.check_rows(self.torchrun(4, "example_context.py").stdout, range(4))

    def test_a_dataset_that_a_sampler_divides(self):
        whole = self.run_.dataset(framework="dlpack", world=1)
        expected = sorted(str(whole[i]["inputs"].tolist()) for i in range(len(whole)))
        for way in ("sampler", "part"):
            said = self.torchrun(2, "example_sampler.py", way).stdout
            self.assertEqual(sorted(re.findall(r"row (\[.*?\])", said)), expected, way)
        with open(os.path.join(self.folder, "undecided.py"), "w", encoding="utf-8") as file:
            file.write("import tokmap\ntokmap.Run('train.run').dataset(framework='dlpack')\n")
        ran = self.torchrun(2, "undecided.py", check=False)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("who divides the rows", ran.stderr)

    def test_a_loader_before_the_ranks_are_known(self):
        """Opened before init_process_group() in processes that multiprocessing starts: every rank would read all."""
        with open(os.path.join(self.folder, "early.py"), "w", encoding="utf-8") as file:
            file.write("""if 1:
                import sys, torch, torch.multiprocessing, tokmap
                from torch import distributed
                def main(rank, port):
                    loader = tokmap.Run("train.run").loader(framework="dlpack")
                    distributed.init_process_group("gloo", f"tcp://localhost:{port}", rank=rank, world_size=2)
                    try:
                        next(loader)
                        print("read", loader.delivery().part)
                    except tokmap.ArgumentError as problem:
                        print("refused:", problem)
                    late = tokmap.Run("train.run").loader(framework="dlpack")
                    print("late", next(late).first_row, late.delivery().part, flush=True)
                    late.close()
                    distributed.destroy_process_group()
                if __name__ == "__main__":
                    torch.multiprocessing.spawn(main, (sys.argv[1],), 2)
            """)
        port = free_ports(1)[0]
        said = self.launch(sys.executable, "early.py", port).stdout
        self.assertEqual(said.count("refused: this loader was opened as rank 0 of 1 (no launcher was found)"), 2, said)
        for rank in range(2):
            self.assertIn(f"late {rank * 4} rank {rank} of 2 from torch.distributed", said)


@needs("torch", "lightning")
class Lightning(Several):
    def test_a_loader_before_fit(self):
        """The loader of a Lightning program without the hook is refused: the second process does not know its rank."""
        program = examples()["lightning"].replace("trainer.fit(model, ckpt_path", "trainer.fit(model, early, ckpt_path")
        early = "early = model.run.loader(dtype=torch.int64)\n"
        program = program.replace("trainer = lightning", early + "trainer = lightning")
        with open(os.path.join(self.folder, "early.py"), "w", encoding="utf-8") as file:
            file.write(program)
        ran = self.launch(sys.executable, "early.py", self.out("early"), 2, STEPS, check=False)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("train_dataloader()", ran.stderr)
        self.assertNotIn("evaluated", ran.stdout)


class Mixture(Several):
    """README's examples of a mixture: the ranks' rows are disjoint and complete, other numbers of ranks continue exactly
    where they stopped, and each held-out target is evaluated once, whatever the number of ranks."""

    text = MIXTURE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.mixture = cls.run_
        # The held-out targets, counted from the documents: each token but the first of a document.
        with tokmap.Dataset(os.path.join(cls.folder, "data", "books.val")) as val:
            cls.held_out = sum(max(0, val.document(number).tokens - 1) for number in range(len(val)))

    def test_its_shares(self):
        first, second = self.mixture.phases
        self.assertEqual([share.weight / share.weights for phase in (first, second) for share in phase.shares],
                         [0.8, 0.2, 0.5, 0.5])

    def check_evaluated(self, said, times):
        self.assertEqual(re.findall(r"evaluated (\d+) targets", said), [str(self.held_out)] * times, said)

    def check_resume(self, name, first, then, evaluations=(2, 3)):
        """Five steps of `first()`, and the rest, over a change of the phase, on other ranks."""
        out = self.out(name)
        said = first(out, 5)
        self.check_rows(said, range(5), self.mixture)
        self.check_evaluated(said, evaluations[0])
        said = then(out, STEPS)
        self.check_rows(said, range(5, STEPS), self.mixture)
        self.check_evaluated(said, evaluations[1])

    @needs("torch.distributed.run", "torch.distributed.checkpoint")
    def test_torchtitan(self):
        self.check_resume("titan", *(lambda *given, world=world: self.torchrun(
            world, "example_torchtitan.py", *given).stdout for world in (2, 3)))

    @needs("torch.distributed.run")
    def test_megatron(self):
        """Two ranks of one replica deliver the same rows; two replicas divide them."""
        out = self.out("megatron")
        for world, stop, steps in ((2, 5, range(5)), (4, STEPS, range(5, STEPS))):
            said = self.torchrun(world, "example_megatron.py", out, stop).stdout
            lines = collections.Counter(re.findall(r"^replica \d+ step .*$", said, flags=re.M))
            self.assertEqual(set(lines.values()), {2}, said)
            self.check_rows("\n".join(lines), steps, self.mixture)
            self.check_evaluated(said, world)

    @needs("torch.distributed.run", "lightning")
    def test_lightning(self):
        def fit(devices):
            return lambda *given: self.launch(sys.executable, "example_lightning.py", given[0], devices,
                                              given[1]).stdout
        # Lightning validates after steps 2, 5, 8, and 11: once in each of two processes, and three times in one.
        self.check_resume("lightning", fit(2), fit(1))
        # torchrun starts both processes.
        said = self.torchrun(2, "example_lightning.py", self.out("torchrun"), 2, STEPS).stdout
        self.check_rows(said, range(STEPS), self.mixture)

    @needs("torch.distributed.run", "transformers", "accelerate")
    def test_trainer(self):
        """Two processes and then one. The Trainer fetches a batch ahead, which it does not train on."""
        out, said = self.out("mixture"), {}
        for world, stop, steps in ((2, 5, range(5)), (1, STEPS, range(5, STEPS))):
            said = self.torchrun(world, "example_huggingface.py", out, stop).stdout
            kept = [line for line in said.splitlines()
                    if not line.startswith("step ") or int(line.split()[1]) < stop]
            self.check_rows("\n".join(kept), steps, self.mixture)
            # It evaluates at the last step once or twice, by version.
            self.assertGreaterEqual(said.count("evaluated "), world)
            self.assertEqual(set(re.findall(r"evaluated (\d+) targets", said)), {str(self.held_out)}, said)


class Mpi(Several):
    """Real MPI launchers. Debian installs them under these names side by side; elsewhere mpirun is one of them."""

    def mpirun(self, program, *options, **variables):
        found = shutil.which(program)
        if found is None:
            self.skipTest(f"{program} is not installed")
        into = self.out(program)
        self.launch(found, *options, "-np", 2, sys.executable, "example_say.py", into, **variables)
        return into

    def test_open_mpi(self):
        into = self.mpirun("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "plm", "isolated",
                           OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.check_parts(into, 2, "Open MPI (OMPI_COMM_WORLD_RANK and _SIZE)")

    def test_mpich(self):
        into = self.mpirun("mpirun.mpich", "-launcher", "fork")
        self.check_parts(into, 2, "MPI (PMI_RANK and PMI_SIZE)")


SLURM_CONF = """ClusterName=tokmap
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
LaunchParameters=use_interactive_step
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Slurm(Several):
    """A real Slurm of one node with 8 processors, whose daemons and files are private to this test."""
    daemons: list = []

    @classmethod
    def setUpClass(cls):
        if os.getuid():
            raise unittest.SkipTest("slurmd needs root")
        for name in ("munged", "slurmctld", "slurmd", "srun", "sbatch", "salloc", "script"):
            if shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin") is None:
                raise unittest.SkipTest(f"{name} is not installed (slurmctld slurmd slurm-client munge bsdutils)")
        super().setUpClass()
        cls.slurm = tempfile.mkdtemp(prefix="tokmap-slurm-", dir="/tmp")  # a socket's path is at most 107 bytes
        cls.addClassCleanup(shutil.rmtree, cls.slurm, True)
        for name in ("state", "spool"):
            os.mkdir(os.path.join(cls.slurm, name))
        key = os.path.join(cls.slurm, "key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o400), "wb") as file:
            file.write(os.urandom(1024))
        host = socket.gethostname().split(".")[0]
        cls.conf = os.path.join(cls.slurm, "slurm.conf")
        with open(cls.conf, "w", encoding="utf-8") as file:
            file.write(SLURM_CONF.format(host=host, folder=cls.slurm, ports=free_ports(2)))
        cls.addClassCleanup(cls.stop)
        cls.daemon("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={cls.slurm}/munge.socket",
                   f"--pid-file={cls.slurm}/munge.pid", f"--log-file={cls.slurm}/munge.log",
                   f"--seed-file={cls.slurm}/seed")
        cls.wait(lambda: os.path.exists(f"{cls.slurm}/munge.socket"), "munged")
        cls.daemon("slurmctld", "-D", "-f", cls.conf)
        cls.daemon("slurmd", "-D", "-f", cls.conf, "-N", host)
        cls.wait(lambda: "idle" in subprocess.run(["sinfo", "-h"], capture_output=True, text=True,
                                                  env={**os.environ, "SLURM_CONF": cls.conf}).stdout, "Slurm")

    @classmethod
    def daemon(cls, name, *arguments):
        cls.daemons.append(subprocess.Popen([shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin"), *arguments],
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    @classmethod
    def stop(cls):
        for each in reversed(cls.daemons):
            each.terminate()
            each.wait()
        cls.daemons.clear()

    @classmethod
    def wait(cls, ready, name):
        for _ in range(300):
            if ready():
                return
            time.sleep(0.1)
        raise unittest.SkipTest(f"{name} does not start on this machine")

    def slurm_run(self, *command, **options):
        return self.launch("timeout", 120, *command, SLURM_CONF=self.conf, **options)

    def test_srun(self):
        for name, options in (("plain", ()), ("pmi2", ("--mpi=pmi2",))):
            into = self.out(name)
            self.slurm_run("srun", "-n", 3, *options, sys.executable, "example_say.py", into)
            self.check_parts(into, 3, "MPI (PMI_RANK and PMI_SIZE)" if options else
                             "Slurm (SLURM_PROCID and SLURM_STEP_NUM_TASKS)")

    def test_without_srun(self):
        """A batch script, the command of salloc, and the shell of salloc are one process of a job of 4 tasks; a step
        of 2 tasks in them is 2 ranks."""
        alone, step = self.out("alone"), self.out("step")
        say = f"'{sys.executable}' example_say.py"
        with open(os.path.join(self.folder, "batch.sh"), "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{say} '{alone}' && srun -n 2 {say} '{step}'\n")
        self.slurm_run("sbatch", "--wait", "-n", 4, "-o", "batch.out", "batch.sh")
        self.slurm_run("salloc", "-n", 4, "sh", "batch.sh")
        shell = subprocess.Popen(["timeout", "60", "script", "-qc", "salloc -n 4", "/dev/null"], cwd=self.folder,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 # salloc starts the user's shell, and a CI service may not set one.
                                 env={**os.environ, "SLURM_CONF": self.conf, "SHELL": "/bin/sh"})
        said = shell.communicate("sh batch.sh; exit\n")[0]
        found = {into: sorted(open(os.path.join(into, name), encoding="utf-8").read() for name in os.listdir(into))
                 for into in (alone, step)}
        self.assertEqual(found[alone], 3 * ["0 8 rank 0 of 1 (SLURM_NTASKS is 4, but srun did not start this process)"],
                         said)
        self.assertEqual(found[step], [f"{rank * 4} 4 rank {rank} of 2 from Slurm (SLURM_PROCID and "
                                       f"SLURM_STEP_NUM_TASKS)" for rank in range(2) for _ in range(3)], said)

    @needs("torch.distributed.run")
    def test_srun_of_torchrun(self):
        """torchrun's ranks count, not Slurm's tasks, of which each starts one torchrun."""
        into = self.out("nested")
        self.slurm_run("srun", "-n", 1, sys.executable, "-m", "torch.distributed.run", "--standalone",
                       "--nproc-per-node", 2, "example_say.py", into)
        self.check_parts(into, 2, "RANK and WORLD_SIZE")
        # Two torchruns of one process each, which number the ranks in the order in which they meet.
        into = self.out("two")
        self.slurm_run("srun", "-n", 2, sys.executable, "-m", "torch.distributed.run", "--nnodes", 2,
                       "--nproc-per-node", 1, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{free_ports(1)[0]}", "--rdzv-id", 7,
                       "example_say.py", into)
        self.check_parts(into, 2, "RANK and WORLD_SIZE")

    def test_what_is_left_over(self):
        """Variables that a batch script exports for all tasks contradict Slurm."""
        ran = self.slurm_run("srun", "-n", 2, sys.executable, "example_say.py", self.out("left"), check=False, RANK="0",
                             WORLD_SIZE="1")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("two sources disagree about this process: RANK and WORLD_SIZE: rank 0 of 1; Slurm (SLURM_PROCID "
                      "and SLURM_STEP_NUM_TASKS): rank 1 of 2", ran.stderr)


class Jax(Several):
    def test_jax(self):
        reason = importable("jax")
        if reason is not None:
            self.skipTest(f"jax is not usable: {reason}")
        into = self.out("jax")
        port = free_ports(1)[0]
        program = (f"import sys, jax; jax.distributed.initialize('localhost:{port}', 2, int(sys.argv[2])); "
                   f"exec(open('example_say.py').read())")
        kept = {name: value for name, value in os.environ.items() if name not in NAMES}
        started = [subprocess.Popen([sys.executable, "-c", program, into, str(rank)], cwd=self.folder,
                                    env={**kept, "JAX_PLATFORMS": "cpu"}, stderr=subprocess.PIPE) for rank in range(2)]
        for each in started:
            said = each.communicate(timeout=300)[1]
            self.assertEqual(each.returncode, 0, said)
        self.check_parts(into, 2, "jax.distributed")


if __name__ == "__main__":
    unittest.main()
