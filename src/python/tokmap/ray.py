"""ray.pack(): the documents of a Ray Data dataset as a shard set, packed by one actor a node.

    import ray, tokmap.ray
    documents = ray.data.read_parquet("s3://bucket/fineweb")
    tokmap.ray.pack(documents, "/shared/data/web", tokenizer="o200k_base.tiktoken")

Shard k has the documents [k * shard_documents, (k + 1) * shard_documents), so shards do not depend on blocks, actors,
or nodes. An actor makes a shard in NAME.work on the shared file system and gives it its names when it is complete. If
an actor or its node is killed, Ray starts another one, which packs the same shard again; a call that was interrupted
keeps the finished shards, and the same call with resume=True continues. At the end, the shards get their names, and the
manifest is last:

    web.work/web-00000.bin   becomes   web-00000.bin;   then the .mask and the .tmx of each shard;   then web

Importing this module does not import ray; pack() does.
"""
from __future__ import annotations

import json
import os
import shutil
from importlib import import_module

from .dataset import Dataset
from .errors import ArgumentError, ExistsError, InputError, MismatchError, NotFoundError, TokmapError
from .pack import Packed, _packed, pack as pack_here
from .tokenizer import Tokenizer
from ._library import number

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any

    from .hints import Path

_MOST = 100000  # shards of a set, as for the command
_NOTE = "ray.json"
_MOVING = "moving"
_LEVEL = 6  # of zstd, as for the command
# Options of the command that need more than one shard at a time, and what to do instead.
_ALL = "a shard is packed without the others, and this is about all of them; "
_COMMAND = "write the documents to files, and pack them with the command, whose tasks run on many machines, too"
_NOT_HERE = {
    **dict.fromkeys(("dedup", "dedup_memory", "minhash_ngram", "minhash_bands", "minhash_rows"),
                    _ALL + "drop the duplicates of the dataset before, or " + _COMMAND),
    **dict.fromkeys(("exclude_ngrams", "exclude_words"),
                    "what is excluded is listed for the whole output; filter the dataset before, or " + _COMMAND),
    **dict.fromkeys(("split", "split_seed"), "an output is one set of shards; " + _COMMAND),
    **dict.fromkeys(("shuffle", "shuffle_memory"), _ALL + "shuffle the dataset before, with random_shuffle()"),
    "also": "convert the shards afterwards, each with tokmap convert, or " + _COMMAND,
    "shard_tokens": "shards have so many documents; pass shard_documents",
    "unit_bytes": "shards have so many documents; pass shard_documents",
    "source": "the dataset is the source",
    "progress": "Ray Data has its own",
}


class _Packer:
    """What an actor does: it packs one shard at a time."""

    def __init__(self, tokenizer: Tokenizer | str, options: dict[str, Any], level: int | None) -> None:
        self.tokenizer = tokenizer if isinstance(tokenizer, Tokenizer) else Tokenizer(tokenizer)
        self.options = options
        self.level = level

    def pack(self, prefix: str, blocks: list[Any]) -> None:
        """Packs tables of Arrow, of which each is fetched when it is needed, and seals the shard if asked to."""
        if not _is_shard(prefix):
            self._make(prefix, blocks)
        if self.level is not None and not _is_sealed(prefix):
            _seal(prefix, self.level, self.options["threads"])

    def _make(self, prefix: str, blocks: list[Any]) -> None:
        ray, pyarrow = import_module("ray"), import_module("pyarrow")
        if not os.path.isdir(os.path.dirname(prefix)):
            raise NotFoundError(f"{os.path.dirname(prefix)} does not exist on this node; the output must be on a file "
                                "system that all nodes share", status="ERROR_NOT_FOUND", path=prefix)
        tables = map(ray.get, blocks)
        first = next(tables)

        def batches() -> Any:
            yield from first.to_batches()
            for table in tables:
                yield from table.to_batches()

        pack_here(pyarrow.RecordBatchReader.from_batches(first.schema, batches()), prefix, tokenizer=self.tokenizer,
                  progress=False, force=True, **self.options)


def _is_shard(prefix: str) -> bool:
    """Whether a shard is complete; its index gets its name last."""
    return os.path.exists(prefix + ".tmx") and (os.path.exists(prefix + ".bin") or os.path.exists(prefix + ".bin.zst"))


def _is_sealed(prefix: str) -> bool:
    """Whether a shard is sealed; its plain tokens are removed last."""
    return os.path.exists(prefix + ".bin.zst") and not os.path.exists(prefix + ".bin")


def _seal(prefix: str, level: int, threads: int | None) -> None:
    """Runs tokmap seal, which continues what another process began."""
    import subprocess
    try:
        from _tokmap_commands import _path as command_path
        program = command_path("tokmap")
    except ImportError:
        program = None
    if program is None:
        raise ArgumentError("seal needs the command tokmap, which this installation lacks on a node: reinstall the "
                            "package (pip install ./src/python), or build it (make)")
    done = subprocess.run([program, "seal", "-q", f"--level={level}",
                           *([] if threads is None else [f"--threads={threads}"]), "--", prefix],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise TokmapError(done.stderr.decode("utf-8", "replace").strip() or
                          f"tokmap seal ended with {done.returncode}", status="ERROR_IO", path=prefix)
    if os.path.exists(prefix + ".bin"):  # a process was killed when only this was left to do
        os.remove(prefix + ".bin")


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(path: str, text: str) -> None:
    """A file that is there completely or not at all, also after a power cut."""
    with open(path + ".partial", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".partial", path)
    _sync(os.path.dirname(path))


class _Set:
    """The names of a shard set."""

    def __init__(self, out: Path) -> None:
        self.path = os.path.abspath(os.fspath(out))
        self.folder, self.name = os.path.split(self.path)
        self.work = self.path + ".work"

    def shard(self, number: int) -> str:
        return f"{self.name}-{number:05}"

    def moving(self) -> bool:
        """Whether all shards are complete, and some may have their final names. No shard of an older set is left."""
        return os.path.exists(os.path.join(self.work, _MOVING))

    def begin(self, facts: dict[str, Any], force: bool, resume: bool) -> None:
        """Makes the folder of unfinished work, or compares its facts with those of this call."""
        note = os.path.join(self.work, _NOTE)
        if force:
            self._refuse_others()
            if not resume and os.path.exists(note):
                self._remove_work()
        if os.path.exists(note):
            if not resume:
                raise ExistsError(f"{self.work}: here is the unfinished work of an earlier call; if the documents are "
                                  "the same, pass resume=True to keep its finished shards, else force=True to start "
                                  "over", status="ERROR_EXISTS", path=self.work)
            with open(note, encoding="utf-8") as file:
                before = json.load(file)
            different = sorted(name for name in {*facts, *before} if facts.get(name) != before.get(name))
            if different:
                name = different[0]
                raise MismatchError(f"{self.work}: here is the unfinished work of a call with another {name}: it had "
                                    f"{before.get(name)!r}, and this one has {facts.get(name)!r}; repeat that call to "
                                    "continue it, or start over with force=True", status="ERROR_MISMATCH",
                                    path=self.work)
        if not force and not self.moving():
            taken = [self.name] if os.path.exists(self.path) else self._ours()
            if taken:
                raise ExistsError(f"{self.path}: the output already exists, at least {min(taken)!r}; choose another "
                                  "name, or pass force=True to replace it; with resume=True, too, unfinished work is "
                                  "continued", status="ERROR_EXISTS", path=self.path)
        if not os.path.exists(note):
            os.makedirs(self.work, exist_ok=True)
            if set(os.listdir(self.work)) - {_NOTE + ".partial"}:
                raise ExistsError(f"{self.work}: this folder is not the unfinished work of tokmap.ray.pack(); remove "
                                  "it, or choose another name", status="ERROR_EXISTS", path=self.work)
            _sync(self.folder)
            _write(note, json.dumps(facts))

    def _ours(self) -> list[str]:
        """The files that have names of this set's shards."""
        return [entry for entry in os.listdir(self.folder) if self._is_ours(entry)]

    def _is_ours(self, entry: str) -> bool:
        """Whether an entry has the name of a shard's file."""
        number, dot, ending = entry[len(self.name) + 1:].partition(".")
        return (entry.startswith(self.name + "-") and number.isdigit() and len(number) >= 5 and bool(dot)
                and ending in ("bin", "tmx", "mask", "bin.zst"))

    def _refuse_others(self) -> None:
        """Refuses to replace what is not a set."""
        if os.path.isdir(self.path):
            raise ExistsError(f"{self.path} is a folder, so it is not replaced; choose another name",
                              status="ERROR_EXISTS", path=self.path)
        if os.path.exists(self.path):
            with open(self.path, "rb") as file:
                if file.read(16) != b"tokmap-shards 1\n":
                    raise ExistsError(f"{self.path} is not the manifest of a shard set, so it is not replaced; choose "
                                      "another name", status="ERROR_EXISTS", path=self.path)

    def _clear(self) -> None:
        """Removes a set of this name, the manifest first and the tokens last."""
        self._refuse_others()
        if os.path.exists(self.path):
            os.remove(self.path)
            _sync(self.folder)
        for entry in sorted(self._ours(), key=lambda entry: not entry.endswith(".tmx")):
            os.remove(os.path.join(self.folder, entry))
        _sync(self.folder)

    def _remove_work(self) -> None:
        """The note is removed last, so that what an interrupted call leaves is still known as work."""
        for entry in os.listdir(self.work):
            if entry != _NOTE:
                os.remove(os.path.join(self.work, entry))
        shutil.rmtree(self.work)
        _sync(self.folder)

    def finish(self, count: int, force: bool) -> None:
        """Gives the shards their names. An older set is removed only now, when nothing else can fail but the storage.
        Each step is on storage before the next; what is done is not done again."""
        if not self.moving():
            if force:
                self._clear()
            _write(os.path.join(self.work, _MOVING), "")
        for endings in ((".bin", ".bin.zst", ".mask"), (".tmx",)):
            for number in range(count):
                for ending in endings:
                    source = os.path.join(self.work, self.shard(number) + ending)
                    if os.path.exists(source):
                        os.replace(source, os.path.join(self.folder, self.shard(number) + ending))
            _sync(self.folder)
        front = "./" if self.name[:1] in (" ", "\t", "\r", "#") else ""
        _write(self.path, "tokmap-shards 1\n" + "".join(f"{front}{self.shard(k)}\n" for k in range(count)))
        self._remove_work()


def pack(dataset: Any, out: Path, *, tokenizer: Tokenizer | Path = "bytes", shard_documents: int = 1_000_000,
         threads: int | None = None, seal: bool | int = False, force: bool = False, resume: bool = False,
         **options: Any) -> Packed:
    """Packs a ray.data.Dataset into a shard set: the manifest `out` and its shards out-00000, out-00001, and so on.

    dataset    its rows are the documents, in their order. It is computed once, into Ray's object store
    out        on a file system that all nodes share
    shard_documents
               documents of each shard but the last. Work on a shard that was not finished is lost if its actor is
               killed; fewer shards than nodes leave nodes idle
    threads    how many encode on a node; None: one for each of its processors
    seal       True, or a level of zstd from 1 to 19 (True: 6): each shard is stored compressed, as tokmap seal does it,
               by the actor that has packed it
    force      replaces an existing shard set once all shards are complete, and without resume also unfinished work
    resume     continues the unfinished work of a call that failed or was interrupted: its finished shards are kept. The
               dataset must be the same; only the number of its documents and the options are compared. Without it,
               unfinished work is an ExistsError
    tokenizer and all other options are those of tokmap.pack() for tables: eod, bos, field, ids_field, mask_field,
    columns, min_tokens, max_tokens, on_error, ... A file of a tokenizer must be on the shared file system, too.

    The tokens are those that tokmap.pack() and the command give the same documents in the same order. The number of
    nodes, blocks, and threads changes no byte, and neither does an actor or a node that is killed: Ray starts another.

    dedup, exclude_ngrams, split, and shuffle of the command are refused: an actor sees the documents of one shard
    alone. Drop duplicates or shuffle with Ray Data before (the bytes are then a function of what it does), or pack
    files with the command, whose tasks do all of that on many machines.
    """
    ray = import_module("ray")
    number(shard_documents, "shard_documents", 1)
    if not hasattr(dataset, "split_at_indices") or not hasattr(dataset, "materialize"):
        raise ArgumentError(f"dataset is {type(dataset).__name__}, but it must be a ray.data.Dataset; tokmap.pack() "
                            "takes other documents")
    for name in options:
        if name in _NOT_HERE:
            raise ArgumentError(f"{name}: ray.pack() has no such option: {_NOT_HERE[name]}")
    level = _LEVEL if seal is True else None if seal is False else number(seal, "seal", 1, 19)
    names = _Set(out)
    if not names.name or not os.path.isdir(names.folder):
        raise NotFoundError(f"{names.folder}: the folder of the output does not exist", status="ERROR_NOT_FOUND",
                            path=names.folder)
    if not isinstance(tokenizer, Tokenizer):
        known = os.fspath(tokenizer)
        tokenizer = Tokenizer(os.path.abspath(known) if os.path.exists(known) else known)
    data = dataset.materialize()
    documents = data.count()
    count = -(-documents // shard_documents)
    if not documents:
        raise InputError("the dataset contains no documents", status="ERROR_INPUT")
    if count > _MOST:
        raise ArgumentError(f"{documents} documents need {count} shards, more than {_MOST}; choose a larger "
                            "shard_documents")
    facts = {"tokenizer": tokenizer.fingerprint, "number of documents": documents, "shard_documents": shard_documents,
             **({} if level is None else {"seal": level}),
             **{name: value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)
                for name, value in options.items()}}
    names.begin(facts, force, resume)
    options["threads"] = threads
    is_made = _is_shard if level is None else _is_sealed
    missing = [k for k in range(count)
               if not names.moving() and not is_made(os.path.join(names.work, names.shard(k)))]
    parts = data.split_at_indices([k * shard_documents for k in range(1, count)]) if count > 1 else [data]
    try:
        _pack_shards(ray, names, tokenizer, options, level, {k: parts[k] for k in missing})
    except ray.exceptions.RayTaskError as error:  # an error of the documents, not of Ray
        if isinstance(error.cause, TokmapError):
            raise error.cause from None
        raise
    names.finish(count, force)
    made = _packed(names.path, 0)
    made.skipped = documents - made.documents
    return made


def _pack_shards(ray: Any, names: _Set, tokenizer: Tokenizer, options: dict[str, Any], level: int | None,
                 parts: dict[int, Any]) -> None:
    """Gives each actor one shard after the other."""
    affinity = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    packer = ray.remote(_Packer)
    actors = []
    # An actor that was killed begins again, on another node if its own is gone, and is given its shard again. It takes
    # no processor of Ray's count: its threads use all of the node, on which nothing else of this dataset runs any more.
    for node in nodes[:len(parts)]:
        strategy = affinity(node, soft=True)
        actors.append(packer.options(num_cpus=0, max_restarts=-1, max_task_retries=-1,
                                     scheduling_strategy=strategy).remote(tokenizer, options, level))
    working: dict[Any, Any] = {}
    try:
        waiting = list(parts.items())
        idle = list(actors)
        while waiting or working:
            while waiting and idle:
                shard, part = waiting.pop(0)
                actor = idle.pop()
                prefix = os.path.join(names.work, names.shard(shard))
                working[actor.pack.remote(prefix, part.to_arrow_refs())] = actor
            done, _ = ray.wait(list(working), num_returns=1)
            for reference in done:
                ray.get(reference)
                idle.append(working.pop(reference))
    finally:
        for actor in actors:
            ray.kill(actor)
