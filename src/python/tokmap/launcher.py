# SPDX-License-Identifier: MIT
"""Which rank of how many this process is, from torch.distributed, JAX, or the variables that a launcher sets.

A program that torchrun, srun, or mpirun starts N times runs N loaders. If each of them were rank 0 of 1, every rank
would read every row, and nothing would say so. A loader that is opened without rank and world therefore asks find().

The sources form layers, because launchers start launchers: srun starts mpirun's daemons, and srun or mpirun starts
torchrun, which starts the program. The layers are, from the inside:

    program   an initialized torch.distributed or jax.distributed, and RANK with WORLD_SIZE, which torchrun, DeepSpeed,
              Accelerate, and Ray set for each process
    MPI       the variables of Open MPI, MPICH and Intel MPI, MVAPICH, jsrun, and Horovod
    system    the variables of Slurm and Flux

The innermost source that says something decides. The others must agree with it, except for an outer source that
describes the launcher of this process instead of the process itself. Example: `srun --ntasks 2 torchrun
--nproc-per-node 8` gives a process RANK 11 of 16, and SLURM_PROCID 1 of 2. Slurm counts the two torchruns, so 11 of 16
is right. But RANK 0 of 1 with SLURM_PROCID 1 of 2 is a contradiction: a variable is left over from something else.

Slurm's variables are used only inside a step that srun started. A batch script and the shell of salloc have
SLURM_NTASKS (and sometimes SLURM_PROCID) too, but they are one process. The job's SLURM_NTASKS can also differ from the
number of tasks of the step, so the step's own SLURM_STEP_NUM_TASKS counts.

torch and jax are never imported here: a program that has not imported them cannot have initialized them.
"""
from __future__ import annotations

import os
import sys

from ._library import number
from .errors import ArgumentError
from .records import NamedTuple

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

_PROGRAM, _MPI, _SYSTEM = 0, 1, 2

#: The variables that hold rank and world, from the inside, with the layer they belong to and a name for messages.
_VARIABLES = (
    (_PROGRAM, "RANK", "WORLD_SIZE", "RANK and WORLD_SIZE"),
    (_MPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI (OMPI_COMM_WORLD_RANK and _SIZE)"),
    (_MPI, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MVAPICH (MV2_COMM_WORLD_RANK and _SIZE)"),
    (_MPI, "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "jsrun (JSM_NAMESPACE_RANK and _SIZE)"),
    (_MPI, "HOROVOD_RANK", "HOROVOD_SIZE", "Horovod (HOROVOD_RANK and HOROVOD_SIZE)"),
    (_MPI, "PMI_RANK", "PMI_SIZE", "MPI (PMI_RANK and PMI_SIZE)"),
    (_SYSTEM, "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "Flux (FLUX_TASK_RANK and FLUX_JOB_SIZE)"),
)

#: Slurm numbers the steps that srun starts from 0. Larger numbers are reserved for steps that are not srun's tasks: the
#: shell of salloc, the batch script, and others.
_SLURM_RESERVED_STEPS = 0xffffff00

_REMEDY = "pass rank= and world=, or world=1 if this process is to read everything"


class Part(NamedTuple):
    """Which part of every global batch a process reads: rank and world, the source that says so, and whether find()
    found it (False: the caller passed it)."""
    rank: int
    world: int
    source: str
    found: bool

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.world}{self.source}"


class _Source(NamedTuple):
    """What says which rank this process is. live is True for a framework that runs, and False for the environment."""
    layer: int
    name: str
    rank: int
    world: int
    live: bool

    def __str__(self) -> str:
        return f"{self.name}: rank {self.rank} of {self.world}"


def _integer(environ: Mapping[str, str], name: str) -> int | None:
    """A variable's value; None if it is not set or empty."""
    text = environ.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise ArgumentError(f"the environment variable {name} is {text!r}, but it must be a whole number: unset it, or "
                            f"{_REMEDY}")
    return int(text)


def _frameworks(modules: Mapping[str, Any]) -> list[_Source]:
    """torch.distributed and jax.distributed, if the program has initialized them."""
    found = []
    torch = modules.get("torch.distributed")
    if torch is not None and getattr(torch, "is_available", bool)() and torch.is_initialized():
        found.append(_Source(_PROGRAM, "torch.distributed", torch.get_rank(), torch.get_world_size(), True))
    # jax.process_index() would start JAX's backend, and the state of jax.distributed has it without that.
    state: Any = getattr(modules.get("jax._src.distributed"), "global_state", None)
    if getattr(state, "client", None) is not None:
        found.append(_Source(_PROGRAM, "jax.distributed", state.process_id, state.num_processes, True))
    return found


def _slurm(environ: Mapping[str, str]) -> tuple[_Source | None, str]:
    """The task of a step that srun started; or why Slurm's variables do not say which rank this process is."""
    step = _integer(environ, "SLURM_STEP_ID")
    if step is None or step >= _SLURM_RESERVED_STEPS:
        tasks = _integer(environ, "SLURM_NTASKS")
        return None, f"SLURM_NTASKS is {tasks}, but srun did not start this process" if tasks and tasks > 1 else ""
    rank = _integer(environ, "SLURM_PROCID")
    name, world = "SLURM_STEP_NUM_TASKS", _integer(environ, "SLURM_STEP_NUM_TASKS")
    if world is None:
        name, world = "SLURM_NTASKS", _integer(environ, "SLURM_NTASKS")
    if rank is None or world is None:
        return None, ""
    return _Source(_SYSTEM, f"Slurm (SLURM_PROCID and {name})", rank, world, False), ""


def _launches(outer: _Source, inner: _Source, environ: Mapping[str, str]) -> bool:
    """Whether the outer source describes a launcher that started this process, and not the process itself."""
    if outer.layer == _PROGRAM or outer.layer <= inner.layer:
        return False
    if inner.layer == _PROGRAM and environ.get("TORCHELASTIC_RUN_ID"):
        return True  # torchrun is between the two, also if it started a single process
    if inner.world <= outer.world:
        return False
    # One task of the outer launcher started several ranks. mpirun does so by its daemons; a program does so itself, by
    # multiprocessing, or through a launcher that numbers the ranks of a node.
    return outer.world == 1 or inner.layer == _MPI or inner.live or _integer(environ, "LOCAL_RANK") is not None


def _incomplete(environ: Mapping[str, str], chosen: _Source | None) -> None:
    """Raises if only one of RANK and WORLD_SIZE is set and contradicts the source that was chosen, or if there is no
    such source and the variable says that there are several ranks."""
    rank, world = _integer(environ, "RANK"), _integer(environ, "WORLD_SIZE")
    if (rank is None) == (world is None):
        return
    name, value = ("RANK", rank) if world is None else ("WORLD_SIZE", world)
    missing = "WORLD_SIZE" if world is None else "RANK"
    if chosen is not None:
        if value != (chosen.rank if world is None else chosen.world):
            raise ArgumentError(f"two sources disagree about this process: {chosen}; the environment variable {name} "
                                f"is {value}. Unset {name} if it is left over from something else, or {_REMEDY}")
    elif name == "RANK" or value != 1:
        raise ArgumentError(
            f"the environment variable {name} is {value}, but {missing} is not set, so this process does not know "
            f"which rows are its own: {_REMEDY}. A program that Lightning starts again for each rank knows its rank "
            f"only when training starts: open the loader in train_dataloader(), not before")


def find(environ: Mapping[str, str] | None = None, modules: Mapping[str, Any] | None = None) -> Part:
    """The rank and the world of this process: from an initialized torch.distributed or jax.distributed, else from the
    environment, else rank 0 of 1. Raises an ArgumentError if two sources disagree, or if the environment is incomplete.

    environ, modules    what to ask in place of os.environ and sys.modules
    """
    environ = os.environ if environ is None else environ
    sources = _frameworks(sys.modules if modules is None else modules)
    for layer, rank_name, world_name, name in _VARIABLES:
        rank, world = _integer(environ, rank_name), _integer(environ, world_name)
        if rank is not None and world is not None:
            sources.append(_Source(layer, name, rank, world, False))
    slurm, note = _slurm(environ)
    if slurm is not None:
        sources.append(slurm)
    for source in sources:
        if source.rank >= source.world:
            raise ArgumentError(f"{source}: this is not possible, because ranks are counted from 0. Correct it, or "
                                f"{_REMEDY}")
    chosen = sources[0] if sources else None
    _incomplete(environ, chosen)
    if chosen is None:
        if _integer(environ, "PMIX_RANK"):
            raise ArgumentError(f"the environment variable PMIX_RANK is {environ['PMIX_RANK']}, so this process is one "
                                f"of several, but no variable says of how many: {_REMEDY}")
        return Part(0, 1, f" ({note or 'no launcher was found'})", True)
    for other in sources[1:]:
        if (other.rank, other.world) != (chosen.rank, chosen.world) and not _launches(other, chosen, environ):
            raise ArgumentError(f"two sources disagree about this process: {chosen}; {other}. Unset the variables that "
                                f"are left over from something else, or {_REMEDY}")
    return Part(chosen.rank, chosen.world, f" from {chosen.name}", True)


def _given(rank: int | None, world: int | None) -> Part | None:
    """What the caller passed; None if it is nothing."""
    if rank is None and world is None:
        return None
    if world is None:
        raise ArgumentError(f"rank is {rank}, but world is missing: pass both, or neither to take them from the "
                            f"launcher")
    world = number(world, "world")
    if rank is None:
        if world != 1:
            raise ArgumentError(f"world is {world}, but rank is missing: pass both, or neither to take them from the "
                                f"launcher")
        rank = 0
    return Part(number(rank, "rank"), world, " as passed", False)


def of_loader(rank: int | None, world: int | None) -> Part:
    """The part that a loader delivers: what the caller passed, else what find() finds.

    The workers of a DataLoader have the rank of the process that started them, so several of them would deliver the
    same rows. That is refused unless the caller passes rank and world."""
    given = _given(rank, world)
    if given is not None:
        return given
    data = sys.modules.get("torch.utils.data")
    worker = data.get_worker_info() if data is not None else None
    if worker is not None and worker.num_workers > 1:
        raise ArgumentError(
            f"this is worker {worker.id} of {worker.num_workers} of a DataLoader, and each worker would deliver the "
            f"same rows: use run.dataset(), which workers share, or num_workers=0 (a loader works ahead by itself), or "
            f"pass rank= and world= that count the workers of all ranks")
    return find()


class Slice(NamedTuple):
    """Which columns of its rows a loader delivers: context_rank and context_world."""
    rank: int
    world: int


def _axes(mesh: Any, names: str | Sequence[str], argument: str) -> tuple[int, int]:
    """The rank and the world of this process along axes of a torch.distributed.device_mesh.DeviceMesh, or along
    several of them as one."""
    known, rank, world = tuple(mesh.mesh_dim_names or ()), 0, 1
    for name in (names,) if isinstance(names, str) else tuple(names):
        if name not in known:
            raise ArgumentError(f"{argument} is {names!r}, but the mesh has "
                                f"{'the axes ' + ', '.join(map(repr, known)) if known else 'no names of axes'}: name "
                                f"one of them, or several in a tuple")
        size = mesh.size(known.index(name))
        rank, world = rank * size + mesh.get_local_rank(name), world * size
    return rank, world


def of_mesh(mesh: Any, data: str | Sequence[str] | None, context: str | None, rank: int | None, world: int | None,
            context_rank: int | None, context_world: int) -> tuple[Part, Slice]:
    """The rows and the columns that a loader delivers, as the axes of a mesh say, or as passed."""
    slice_ = Slice(number(context_rank or 0, "context_rank"), number(context_world, "context_world", 1))
    if mesh is None:
        if context_rank is None and slice_.world > 1:
            raise ArgumentError(f"context_world is {slice_.world}, but context_rank is missing: pass both, so that "
                                f"each process gets its own slice of the rows")
        if data is not None or context is not None:
            raise ArgumentError("data and context name axes of a mesh, but mesh is missing: pass a DeviceMesh")
        part = of_loader(rank, world)
        if slice_.world > 1 and part.found and part.world > 1:
            raise ArgumentError(
                f"context_world is {slice_.world}, so several processes share their rows, but this process is {part}, "
                f"which would give each of them other rows: pass rank= and world= that count the groups of processes "
                f"that share rows, or mesh=, data=, and context=")
        return part, slice_
    if rank is not None or world is not None or slice_ != (0, 1):
        raise ArgumentError("the axes of the mesh say which part this process reads: pass mesh, or rank, world, "
                            "context_rank, and context_world")
    if data is None:
        raise ArgumentError("mesh is passed without data: name the axis along which processes read other rows, such as "
                            'data="dp", and with context="cp" the one along which they share them')
    part = Part(*_axes(mesh, data, "data"), f" from the axis {data!r} of the mesh", False)
    return part, slice_ if context is None else Slice(*_axes(mesh, context, "context"))


def of_dataset(rank: int | None, world: int | None) -> Part:
    """The part that a map-style dataset holds: what the caller passed, else all rows, if this is the only process.

    In one of several processes the caller has to choose, because both answers are common and each would be silently
    wrong for the other case. With a DistributedSampler, a dataset that is already divided would lose rows; without one,
    a whole dataset would give every rank the same rows."""
    given = _given(rank, world)
    if given is not None:
        return given
    part = find()
    if part.world > 1:
        raise ArgumentError(
            f"this process is {part}, and nothing says who divides the rows of this dataset: pass world=1 if a sampler "
            f"divides them (a DistributedSampler; Lightning, Accelerate, and the Hugging Face Trainer add one), or "
            f"rank={part.rank} and world={part.world} for this rank's rows alone")
    return part


def confirm(part: Part) -> None:
    """Raises if find() does not say the same any more. A loader calls it before its first batch, since a program may
    open its loader before it initializes torch.distributed, or send it to other processes; every rank would then read
    everything."""
    if not part.found:
        return
    now = of_loader(None, None)
    if (now.rank, now.world) != (part.rank, part.world):
        raise ArgumentError(f"this loader was opened as {part}, but now this process is {now}: open the loader where "
                            f"torch.distributed has been initialized (in Lightning: in train_dataloader()), or "
                            f"{_REMEDY}")
