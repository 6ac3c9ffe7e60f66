# SPDX-License-Identifier: MIT
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

The files in web.work say how far the shard is, since only they outlive an actor. It has three steps, and each ends with
the file that says so:

    pack    web-00000.try-X.bin, .mask, .tmx   become   web-00000.bin, .mask, .tmx. A command that an actor has started
            can outlive it: for a moment, until it sees that the documents are cut off and removes its files, or until
            it has written a shard of all documents. Its files have the name of its own attempt, which no other process
            looks at
    seal    web-00000.bin.zst, without web-00000.bin
    also    the files of other projects, and then web-00000.also, with the reports of `tokmap convert`

Commands that seal and convert work on the shard itself. So they hold its lock, web-00000.lock, as long as they run, and
the next actor waits for it.

Importing this module does not import ray; pack() does.
"""
from __future__ import annotations

import json
import os
import shutil
import warnings
from contextlib import contextmanager, suppress
from importlib import import_module

from .dataset import Dataset
from .errors import ArgumentError, InputError, TokmapError, error_of
from .pack import Packed, _packed, _warn_of_empty, command_path, pack as pack_here
from .tokenizer import Tokenizer
from ._library import number

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator

    from .hints import Path

_MOST = 100000  # shards of a set, as for the command
_NOTE = "ray.json"
_MOVING = "moving"
_LEVEL = 6  # of zstd, as for the command
# The files that each format of another project has beside a shard, in the order in which they get their names.
_FORMATS = {"megatron": (".bin", ".idx"), "llmc": (".bin",),
            "datatrove": (".ds.index", ".ds.metadata", ".ds.loss", ".ds"), "olmo": (".csv.gz", ".npy"),
            "nanogpt": (".meta.json", ".bin")}
_SHARD = (".bin", ".bin.zst", ".mask", ".tmx")
_MASKED = ("mask_field", "labels_field", "prompt_field", "messages_field")  # the shards have a mask
# Options of the command that need more than one shard at a time, and what to do instead.
_ALL = "a shard is packed without the others, and this is about all of them; "
_COMMAND = "write the documents to files, and pack them with the command, whose tasks run on many machines, too"
_NOT_HERE = {
    **dict.fromkeys(("dedup", "dedup_memory", "minhash_ngram", "minhash_bands", "minhash_rows"),
                    _ALL + "drop the duplicates of the dataset before, or " + _COMMAND),
    **dict.fromkeys(("exclude_ngrams", "exclude_words"),
                    "what is excluded is listed for the whole output; filter the dataset before, or " + _COMMAND),
    "drop": "lists name documents of files; filter the dataset before, or " + _COMMAND,
    **dict.fromkeys(("split", "split_seed"), "an output is one set of shards; " + _COMMAND),
    **dict.fromkeys(("shuffle", "shuffle_memory"), _ALL + "shuffle the dataset before, with random_shuffle()"),
    "shard_tokens": "shards have so many documents; pass shard_documents",
    "unit_bytes": "shards have so many documents; pass shard_documents",
    "source": "the dataset is the source",
    "progress": "Ray Data has its own",
}


class _Packer:
    """What an actor does: it packs one shard at a time."""

    def __init__(self, tokenizer: Tokenizer | str, options: dict[str, Any], level: int | None,
                 also: list[str]) -> None:
        self.tokenizer = tokenizer if isinstance(tokenizer, Tokenizer) else Tokenizer(tokenizer)
        self.options = options
        self.level = level
        self.also = also

    def pack(self, prefix: str, blocks: list[Any]) -> set[str]:
        """Packs tables of Arrow, of which each is fetched when it is needed, and seals and converts the shard if asked
        to. Returns the columns without a value."""
        if not os.path.isdir(os.path.dirname(prefix)):
            raise error_of("ERROR_NOT_FOUND",
                           f"{os.path.dirname(prefix)} does not exist on this node; the output must be on a file "
                           "system that all nodes share", path=prefix)
        with _locked(prefix) as lock:
            if not _is_shard(prefix):
                self._make(prefix, blocks)
            if self.level is not None and not _is_sealed(prefix):
                _seal(prefix, self.level, self.options["threads"], lock)
            if self.also and not _is_converted(prefix):
                _convert(prefix, self.also, self.level is not None, lock)
            return _empty_columns(prefix)

    def _make(self, prefix: str, blocks: list[Any]) -> None:
        ray, pyarrow = import_module("ray"), import_module("pyarrow")
        folder, name = os.path.split(prefix)
        for entry in os.listdir(folder):  # of an actor that was killed
            if entry.startswith(name + ".try-"):
                with suppress(FileNotFoundError):
                    os.remove(os.path.join(folder, entry))
        tables = map(ray.get, blocks)
        first = next(tables)

        def batches() -> Any:
            yield from first.to_batches()
            for table in tables:
                yield from table.to_batches()

        attempt = f"{prefix}.try-{os.urandom(8).hex()}"
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "no record has the field")  # those of another shard may have it
            pack_here(pyarrow.RecordBatchReader.from_batches(first.schema, batches()), attempt,
                      tokenizer=self.tokenizer, progress=False, force=True, **self.options)
        for ending in (".bin", ".mask", ".tmx"):
            if ending == ".tmx":
                _sync(folder)
            if os.path.exists(attempt + ending):
                os.replace(attempt + ending, prefix + ending)


@contextmanager
def _locked(prefix: str) -> Iterator[int]:
    """Holds the lock of a shard, which a command holds as well if it is given the descriptor. A file system without
    locks has none: then a command that outlives its actor is an error of the next one, which says so."""
    import fcntl
    descriptor = os.open(prefix + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _is_shard(prefix: str) -> bool:
    """Whether a shard is complete; its index gets its name last."""
    return os.path.exists(prefix + ".tmx") and (os.path.exists(prefix + ".bin") or os.path.exists(prefix + ".bin.zst"))


def _empty_columns(prefix: str) -> set[str]:
    """The columns of a shard for which no document has a value."""
    absent = object()
    with Dataset(prefix) as shard:
        return {name for name in shard.columns
                if all(shard.value(number, name, absent) is absent for number in range(shard.info.documents))}


def _is_sealed(prefix: str) -> bool:
    """Whether a shard is sealed; its plain tokens are removed last."""
    return os.path.exists(prefix + ".bin.zst") and not os.path.exists(prefix + ".bin")


def _is_converted(prefix: str) -> bool:
    """Whether a shard has all of its files for other projects."""
    return os.path.exists(prefix + ".also")


def _run(wanted: str, arguments: list[str], *locks: int) -> bytes:
    """Runs a command, which holds the locks, too. Returns what it prints."""
    import subprocess
    done = subprocess.run([command_path(wanted), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, pass_fds=locks)
    if done.returncode:
        raise TokmapError(done.stderr.decode("utf-8", "replace").strip() or
                          f"tokmap {arguments[0]} ended with {done.returncode}", status="ERROR_IO", path=arguments[-1])
    return done.stdout


def _seal(prefix: str, level: int, threads: int | None, lock: int) -> None:
    """Runs tokmap seal, which continues what another process began."""
    _run("seal", ["seal", "-q", f"--level={level}", *([] if threads is None else [f"--threads={threads}"]), "--",
                  prefix], lock)
    if os.path.exists(prefix + ".bin"):  # a process was killed when only this was left to do
        os.remove(prefix + ".bin")


def _own_name(form: str, sealed: bool) -> str:
    """What a format adds to the name of a shard: PREFIX.bin is the shard's, so another .bin has a name of its own."""
    return f".{form}" if form == "llmc" or sealed and ".bin" in _FORMATS[form] else ""


def _endings(form: str, sealed: bool) -> list[str]:
    """The endings of the files that a format has beside a shard, the shared .bin left out."""
    own = _own_name(form, sealed)
    return [own + ending for ending in _FORMATS[form] if own or ending != ".bin"]


def _convert(prefix: str, also: list[str], sealed: bool, lock: int) -> None:
    """Writes the files of other projects. An actor that was killed may have written some of them, which are replaced.
    Other projects cannot read a shard without tokens, which has none of them."""
    reports = {}
    with Dataset(prefix) as dataset:
        tokens = dataset.info.tokens
    for form in also if tokens else ():
        reports[form] = json.loads(_run("also", ["convert", "--json", "--force", "--progress=none", "--to", form, "-o",
                                                 prefix + _own_name(form, sealed), "--", prefix], lock))
    _write(prefix + ".also", json.dumps(reports))


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

    def __init__(self, out: Path, also: list[str], sealed: bool) -> None:
        self.path = os.path.abspath(os.fspath(out))
        self.also, self.sealed = also, sealed
        self._owned = {*_SHARD, *(ending for form in also for kind in (False, True) for ending in _endings(form, kind))}
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
        if not self.moving():
            self._refuse_owners()
        if force:
            self._refuse_others()
            if not resume and os.path.exists(note):
                self._remove_work()
        if os.path.exists(note):
            if not resume:
                raise error_of("ERROR_EXISTS",
                               f"{self.work}: here is the unfinished work of an earlier call; if the documents are "
                               "the same, pass resume=True to keep its finished shards, else force=True to start "
                               "over", path=self.work)
            with open(note, encoding="utf-8") as file:
                before = json.load(file)
            different = sorted(name for name in {*facts, *before} if facts.get(name) != before.get(name))
            if different:
                name = different[0]
                raise error_of("ERROR_MISMATCH",
                               f"{self.work}: here is the unfinished work of a call with another {name}: it had "
                               f"{before.get(name)!r}, and this one has {facts.get(name)!r}; repeat that call to "
                               "continue it, or start over with force=True", path=self.work)
        if not force and not self.moving():
            taken = [self.name] if os.path.exists(self.path) else self._ours()
            if taken:
                raise error_of("ERROR_EXISTS",
                               f"{self.path}: the output already exists, at least {min(taken)!r}; choose another "
                               "name, or pass force=True to replace it; with resume=True, too, unfinished work is "
                               "continued", path=self.path)
        if not os.path.exists(note):
            os.makedirs(self.work, exist_ok=True)
            if set(os.listdir(self.work)) - {_NOTE + ".partial"}:
                raise error_of("ERROR_EXISTS",
                               f"{self.work}: this folder is not the unfinished work of tokmap.ray.pack(); remove "
                               "it, or choose another name", path=self.work)
            _sync(self.folder)
            _write(note, json.dumps(facts))

    def _ours(self) -> list[str]:
        """The files that have names of this set's shards, without those of a shard that has the name of a copy."""
        owners = {entry[:-len(".tmx")] for _, entry in self._owners(False)}
        return [entry for entry in os.listdir(self.folder)
                if self._is_ours(entry) and not any(entry.startswith(owner + ".") for owner in owners)]

    def _owners(self, written: bool) -> list[tuple[str, str]]:
        """The indexes of shards with the name of a copy, such as web-00000.megatron.tmx, after its path. The tokens of
        such a shard are where those of the copy would be. written: only of copies that this call writes."""
        kinds = (self.sealed,) if written else (False, True)
        names = {own + ".tmx" for form in self.also for sealed in kinds if (own := _own_name(form, sealed))}
        return [(os.path.join(self.folder, entry), entry) for entry in sorted(os.listdir(self.folder))
                if self._ending(entry) in names]

    def _is_ours(self, entry: str) -> bool:
        """Whether an entry has the name of a shard's file, or of one that is written for another project."""
        return self._ending(entry) in self._owned

    def _ending(self, entry: str) -> str | None:
        """What follows the number of a shard in the name of a file."""
        number, dot, ending = entry[len(self.name) + 1:].partition(".")
        is_file = entry.startswith(self.name + "-") and number.isdecimal() and len(number) == 5
        return dot + ending if is_file else None

    def _refuse_owners(self) -> None:
        """Refuses to write a copy where a shard has its tokens."""
        for path, _ in self._owners(True):
            raise error_of("ERROR_EXISTS",
                           f"{path}: this is the index of a shard whose name a copy of the tokens for also would "
                           "have; choose another name, or remove this index and its tokens first", path=path)

    def _refuse_others(self) -> None:
        """Refuses to replace what is not a set, or tokens for which another program has an index."""
        if "megatron" not in self.also and not self.moving():
            index = next((entry for entry in sorted(os.listdir(self.folder)) if self._ending(entry) == ".idx"), None)
            if index is not None:
                path = os.path.join(self.folder, index)
                raise error_of("ERROR_EXISTS",
                               f"{path}: this is an index of Megatron for tokens that would be replaced; write it "
                               "again with also=\"megatron\", or remove it first", path=path)
        if os.path.isdir(self.path):
            raise error_of("ERROR_EXISTS",
                           f"{self.path} is a folder, so it is not replaced; choose another name", path=self.path)
        if os.path.exists(self.path):
            with open(self.path, "rb") as file:
                if file.readline(32) not in (b"tokmap-shards 1\n", b"# tokmap manifest 2\n"):
                    raise error_of("ERROR_EXISTS",
                                   f"{self.path} is not the manifest of a shard set, so it is not replaced; choose "
                                   "another name", path=self.path)

    def _clear(self) -> None:
        """Removes a set of this name, the manifest first and the tokens last."""
        self._refuse_owners()
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

    def lost(self, count: int) -> dict[str, int]:
        """How many documents each format cannot find."""
        sums = dict.fromkeys(self.also, 0)
        for number in range(count if self.also else 0):
            path = os.path.join(self.work, self.shard(number) + ".also")
            # An earlier call may have been interrupted when it had nothing left to do but to remove these.
            with suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
                for form, report in json.load(file).items():
                    sums[form] += report["documents_lost"]
        return sums

    def finish(self, count: int, force: bool) -> None:
        """Gives the shards their names. An older set is removed only now, when nothing else can fail but the storage.
        Each step is on storage before the next; what is done is not done again."""
        if not self.moving():
            if force:
                self._clear()
            _write(os.path.join(self.work, _MOVING), "")
        files = [ending for form in self.also for ending in _endings(form, self.sealed)]
        for endings in ((*_SHARD[:-1], *files), _SHARD[-1:]):
            for number in range(count):
                for ending in endings:
                    source = os.path.join(self.work, self.shard(number) + ending)
                    if os.path.exists(source):
                        os.replace(source, os.path.join(self.folder, self.shard(number) + ending))
            _sync(self.folder)
        front = "./" if self.name[:1] in (" ", "\t", "\r", "#") else ""
        _write(self.path, "tokmap-shards 1\n" + "".join(f"{front}{self.shard(k)}\n" for k in range(count)))
        _run("the manifest", ["index", "-q", "--", self.path])  # states the facts of the shards
        self._remove_work()


def pack(dataset: Any, out: Path, *, tokenizer: Tokenizer | Path = "bytes", shard_documents: int = 1_000_000,
         threads: int | None = None, seal: bool | int = False, also: str | Iterable[str] = (), force: bool = False,
         resume: bool = False, **options: Any) -> Packed:
    """Packs a ray.data.Dataset into a shard set: the manifest `out` and its shards out-00000, out-00001, and so on.

    dataset    its rows are the documents, in their order. It is computed once, into Ray's object store
    out        on a file system that all nodes share
    shard_documents
               documents of each shard but the last. Work on a shard that was not finished is lost if its actor is
               killed; fewer shards than nodes leave nodes idle
    threads    how many encode on a node; None: one for each of its processors
    seal       True, or a level of zstd from 1 to 19 (True: 6): each shard is stored compressed, as tokmap seal does it,
               by the actor that has packed it
    also       formats of other projects in which each shard is written, too, by the actor that has packed it: a list,
               or a str such as "megatron,olmo", of megatron, llmc, datatrove, olmo, nanogpt. Their files are those of
               the command's --also: they share the tokens of the shard, but for llmc, and with seal each has a copy
    force      replaces an existing shard set, with its files of the formats in also, once all shards are complete, and
               without resume also unfinished work
    resume     continues the unfinished work of a call that failed or was interrupted: its finished shards are kept. The
               dataset must be the same; only the number of its documents and the options are compared. Without it,
               unfinished work is a FileExistsError
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
    formats = _formats(also, options)
    names = _Set(out, formats, level is not None)
    if not names.name or not os.path.isdir(names.folder):
        raise error_of("ERROR_NOT_FOUND", f"{names.folder}: the folder of the output does not exist", path=names.folder)
    if not isinstance(tokenizer, Tokenizer):
        known = os.fspath(tokenizer)
        tokenizer = Tokenizer(os.path.abspath(known) if os.path.exists(known) else known)
    if "nanogpt" in formats and tokenizer.vocab_size > 65536:
        raise ArgumentError("also: nanogpt's tokens have 2 bytes, but those of this tokenizer have 4; leave it out")
    data = dataset.materialize()
    documents = data.count()
    count = -(-documents // shard_documents)
    if not documents:
        raise InputError("the dataset contains no documents", status="ERROR_INPUT")
    if count > _MOST:
        raise ArgumentError(f"{documents} documents need {count} shards, more than {_MOST}; choose a larger "
                            "shard_documents")
    facts = {"tokenizer": tokenizer.fingerprint, "number of documents": documents, "shard_documents": shard_documents,
             **({} if level is None else {"seal": level}), **({"also": ",".join(formats)} if formats else {}),
             **{name: value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)
                for name, value in options.items()}}
    names.begin(facts, force, resume)
    options["threads"] = threads

    def is_complete(prefix: str) -> bool:
        return _is_shard(prefix) and (level is None or _is_sealed(prefix)) and (not formats or _is_converted(prefix))

    missing = [k for k in range(count)
               if not names.moving() and not is_complete(os.path.join(names.work, names.shard(k)))]
    parts = data.split_at_indices([k * shard_documents for k in range(1, count)]) if count > 1 else [data]
    try:
        empty = _pack_shards(ray, names, (tokenizer, options, level, formats), {k: parts[k] for k in missing})
    except ray.exceptions.RayTaskError as error:  # an error of the documents, not of Ray
        if isinstance(error.cause, TokmapError):
            raise error.cause from None
        raise
    lost = names.lost(count)
    names.finish(count, force)
    empty += [_empty_columns(os.path.join(names.folder, names.shard(k))) for k in range(count) if k not in missing]
    _warn_of_empty(sorted(set.intersection(*empty)), 2)
    for form in formats:
        if lost[form]:
            warnings.warn(f"{form} has no index of documents, and {lost[form]} of them cannot be found by their EOD or "
                          "BOS: they lack it, or contain it elsewhere", stacklevel=2)
    made = _packed(names.path, 0)
    made.skipped = documents - made.documents
    return made


def _formats(also: str | Iterable[str], options: dict[str, Any]) -> list[str]:
    """The formats of other projects, in one order, which differences in the order of the argument do not change."""
    asked = [] if also == "" else also.split(",") if isinstance(also, str) else list(also)
    for form in asked:
        if form not in _FORMATS:
            raise ArgumentError(f"also: {form!r} is not a format; name some of {', '.join(_FORMATS)}")
        if asked.count(form) > 1:
            raise ArgumentError(f"also: {form!r} is named twice")
    masked = next((name for name in _MASKED if options.get(name) is not None), None)
    for form in asked:
        if masked is not None and form != "datatrove":
            raise ArgumentError(f"also: with {masked} the documents have masks, and the files of {form} cannot have "
                                "one; leave it out, or convert the shards later with `tokmap convert --drop-mask`")
    return [form for form in _FORMATS if form in asked]


def _pack_shards(ray: Any, names: _Set, arguments: tuple[Any, ...], parts: dict[int, Any]) -> list[set[str]]:
    """Gives each actor one shard after the other. Returns the columns without a value of each."""
    affinity = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    packer = ray.remote(_Packer)
    actors = []
    # An actor that was killed begins again, on another node if its own is gone, and is given its shard again. It takes
    # no processor of Ray's count: its threads use all of the node, on which nothing else of this dataset runs any more.
    for node in nodes[:len(parts)]:
        strategy = affinity(node, soft=True)
        actors.append(packer.options(num_cpus=0, max_restarts=-1, max_task_retries=-1,
                                     scheduling_strategy=strategy).remote(*arguments))
    working: dict[Any, Any] = {}
    empty = []
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
                empty.append(ray.get(reference))
                idle.append(working.pop(reference))
    finally:
        for actor in actors:
            ray.kill(actor)
    return empty
