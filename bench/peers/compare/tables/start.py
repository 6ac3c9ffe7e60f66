# SPDX-License-Identifier: MIT
"""The table `start`: the time to the first batch of 10^9 to 10^13 tokens, by 1 to 64 ranks at once on this machine.

The tokens are zeros in sparse files, which need no storage. Each rank is a process. All ranks of a row first import
what they need, which is a figure of its own; then they are asked at the same time for their first batch, of one size
after the other, each with a loader that is opened for it. The figure is the time until the last rank has its batch.

Megatron builds an index of samples and shuffles it, and writes both to files: rank 0 first, then the others read them,
as its training program does with a barrier. That first start and a later one, which finds the files, are two rows.
torch's DataLoader shuffles a list of all windows in each rank (RandomSampler, DistributedSampler).

Nothing is extrapolated. A size is left out if the size before it shows that it cannot be measured: it took more than a
tenth of --seconds (default 60), or its ranks took more than a twentieth of the memory that is available, so that ten
times as much would take half of it. Then the row says so. So does a row whose ranks would take half of the memory by
what they import.
"""
import os
import shutil
import statistics
import sys
import time

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

import driver
import measure as meter
import setup
from report import Absent

NAME = "start"
RANKS = (1, 8, 64)
REPEATS, SECONDS = 3, 60
MAGIC = b"MMIDIDX\0\0"


def add_arguments(parser):
    parser.add_argument("--sparse", action="append", default=[], help="TOKENS=DATASET, once for each size")
    parser.add_argument("--at-once", default=",".join(map(str, RANKS)), help="numbers of ranks")


def shards_of(name):
    """The .bin files of a dataset: a prefix, or a manifest."""
    if os.path.exists(name + ".bin"):
        return [name + ".bin"]
    with open(name, encoding="utf-8") as file:
        lines = [line.split("\t")[0].strip() for line in file.readlines()[1:]]
    return [os.path.join(os.path.dirname(name), line) + ".bin" for line in lines if line and not line.startswith("#")]


# ---- a rank ----


class Tokmap:
    def load(self):
        import tokmap
        self.tokmap = tokmap

    def first(self, data, rank, world, seq_len, rows, cache, count):
        run = self.tokmap.Run(data=data, seq_len=seq_len, batch=rows * world, seed=1)
        loader = run.loader(rank=rank, world=world, dtype="int64", framework="dlpack")
        batch = loader.next()
        shape = batch.count, batch.seq_len
        loader.close()
        return shape


class Torch:
    """A map-style dataset over np.memmap that returns whole batches, shuffled, no workers."""

    def load(self):
        import numpy
        import torch
        import torch.utils.data.distributed
        self.numpy, self.torch = numpy, torch
        torch.set_num_threads(1)

    def first(self, data, rank, world, seq_len, rows, cache, count):
        numpy, utils = self.numpy, self.torch.utils.data
        parts = [numpy.memmap(path, numpy.uint16, "r") for path in shards_of(data)]
        windows = [(len(part) - 1) // seq_len for part in parts]

        class Windows:
            def __len__(self):
                return sum(windows)

            def __getitems__(self, numbers):
                found = numpy.empty((len(numbers), seq_len + 1), numpy.int64)
                for row, number in enumerate(numbers):
                    part = 0
                    while number >= windows[part]:
                        number, part = number - windows[part], part + 1
                    found[row] = parts[part][number * seq_len:number * seq_len + seq_len + 1]
                return found
        dataset, torch = Windows(), self.torch
        sampler = utils.distributed.DistributedSampler(dataset, world, rank) if world > 1 else None
        loader = utils.DataLoader(dataset, rows, shuffle=sampler is None, sampler=sampler,
                                  collate_fn=lambda found: torch.from_numpy(found))
        return tuple(next(iter(loader))[:, 1:].shape)


class Megatron:
    """GPTDataset over the sparse file. Its .idx is made before, from documents of 2^20 tokens."""

    def load(self):
        import megatron.core.datasets.gpt_dataset
        import torch.utils.data
        self.core, self.torch = megatron.core.datasets, torch
        torch.set_num_threads(1)

    def first(self, data, rank, world, seq_len, rows, cache, count):
        from megatron.core.datasets.indexed_dataset import IndexedDataset
        from megatron.core.datasets.utils import Split
        import numpy
        module = self.core.gpt_dataset
        config = module.GPTDatasetConfig(
            random_seed=1234, sequence_length=seq_len, blend=([data], None), split="1,0,0", path_to_cache=cache,
            tokenizer=Named(), reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False,
            create_attention_mask=False)
        documents = IndexedDataset(data, mmap=True)
        numbers = numpy.arange(len(documents.sequence_lengths), dtype=numpy.int32)
        dataset = module.GPTDataset(documents, data, numbers, None, Split.train, config)
        found = self.torch.stack([dataset[(rank * rows + row) % len(dataset)]["tokens"] for row in range(rows)])
        return tuple(found.shape)


class Named:
    """What GPTDataset asks a tokenizer for."""
    vocab_size, eod, pad, special_tokens_dict = 50257, 50256, -1, {}
    unique_identifiers = {"class": "Named", "eod": 50256}


SYSTEMS = {"tokmap": Tokmap, "torch": Torch, "megatron": Megatron}
LABELS = {"tokmap": "tokmap", "torch": "torch DataLoader, shuffled", "megatron": "Megatron GPTDataset, first start"}
AGAIN = "Megatron GPTDataset, its index exists"
PACKAGES = {"tokmap": [], "torch": ["numpy", "torch"], "megatron": ["numpy", "torch", "megatron-core"]}


class Rank:
    """Answers the requests of the parent: load, first."""

    def answer(self, do, **request):
        return getattr(self, "do_" + do)(**request)

    def do_load(self, system):
        self.system = SYSTEMS[system]()
        self.system.load()
        return {"at": time.monotonic()}

    def do_first(self, **request):
        import resource
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.monotonic()
        shape = self.system.first(**request)
        at = time.monotonic()
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {"at": at, "seconds": at - began, "bytes": 1024 * max(0, after - before), "shape": shape}


# ---- the table ----


def available_bytes():
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return 0


def write_index(path, counts):
    """Writes Megatron's .idx of uint16 documents, 2^20 tokens each and the rest, of files that hold `counts` tokens."""
    import array
    document = 1 << 20
    sizes = [document] * (counts // document) + ([counts % document] if counts % document else [])
    with open(path, "wb") as file:
        file.write(MAGIC + (1).to_bytes(8, "little") + b"\x08" + len(sizes).to_bytes(8, "little")
                   + (len(sizes) + 1).to_bytes(8, "little"))
        array.array("i", sizes).tofile(file)
        array.array("q", [2 * document * number for number in range(len(sizes))]).tofile(file)
        array.array("q", range(len(sizes) + 1)).tofile(file)


class Group:
    """The ranks of one system that work at once."""

    def __init__(self, options, python, system, count):
        self.options, self.system, self.count = options, system, count
        self.ranks = [driver.Child(options, [python, os.path.abspath(__file__)]) for _ in range(count)]
        for rank in self.ranks:
            rank.send("load", system=system)
        ended = [rank.answer(driver.WAIT + 10 * count)["at"] for rank in self.ranks]
        self.load_s = max(ended) - min(rank.started for rank in self.ranks)
        self.rank_bytes = meter.memory_bytes([self.ranks[0].pid])

    def first(self, data, tokens, cache, leader):
        """The seconds until the last rank has its first batch, and the most memory of a rank. leader: rank 0 is asked
        before the others, as a barrier would do it."""
        began, found = time.monotonic(), []
        groups = [self.ranks[:1], self.ranks[1:]] if leader else [self.ranks]
        for ranks in groups:
            for rank in ranks:
                rank.send("first", data=data, rank=self.ranks.index(rank), world=self.count,
                          seq_len=self.options.seq_len, rows=self.options.rows, cache=cache, count=tokens)
            found += [rank.answer(10 * (self.options.seconds or SECONDS)) for rank in ranks]
        wanted = [self.options.rows, self.options.seq_len]
        wrong = [one["shape"] for one in found if one["shape"] != wanted]
        if wrong:
            raise driver.Failed(f"a first batch has the shape {wrong[0]}, not {wanted}")
        return max(one["at"] for one in found) - began, max(one["bytes"] for one in found)

    def close(self):
        for rank in self.ranks:
            rank.kill()


class Table:
    def __init__(self, report, options):
        self.report, self.options = report, options
        self.seconds, self.repeats = options.seconds or SECONDS, options.repeats or REPEATS
        self.values, self.absent, self.cache = {}, {}, 0
        self.loaded = {}  # the bytes of a rank that is alone, by system, after its imports
        self.sizes = []
        for text in options.sparse:
            count, _, name = text.partition("=")
            self.sizes.append((int(count), name))
        self.folder = os.path.join(options.work, NAME)
        os.makedirs(self.folder, exist_ok=True)

    def label(self, system, count, what=None):
        return f"{what or LABELS[system]}, {count} rank{'s' if count > 1 else ''}"

    def data_of(self, system, tokens, name):
        """The name under which the system opens the data; makes Megatron's index."""
        if system != "megatron":
            return name
        shards = shards_of(name)
        if len(shards) > 1:
            raise Absent("one .bin of Megatron cannot hold it on this file system")
        prefix = os.path.join(self.folder, f"megatron-{tokens}")
        if not os.path.exists(prefix + ".idx"):
            os.symlink(os.path.abspath(shards[0]), prefix + ".bin")
            write_index(prefix + ".idx", os.path.getsize(shards[0]) // 2)
        return prefix

    def run(self, system, python, count):
        """One repeat of a row: all sizes, in their order."""
        needed, memory = count * self.loaded.get(system, 0), available_bytes()
        if needed > memory / 2:
            raise driver.Failed(f"what {count} ranks import takes up to {needed / 1e9:.1f} GB, more than half of the "
                                f"{memory / 1e9:.1f} GB that are available")
        group = Group(self.options, python, system, count)
        if count == 1:
            self.loaded[system] = group.rank_bytes
        try:
            self.add(self.label(system, count), "imports", group.load_s)
            reason = None
            for tokens, name in self.sizes:
                metric = f"{tokens:.0e}".replace("+", "")
                if (system, count, metric) in self.absent:
                    continue
                reason = reason or (None if name else "this file system cannot hold a file of that size")
                if reason is None:
                    reason = self.one(group, system, count, tokens, name, metric)
                    continue
                self.absent[system, count, metric] = reason
        finally:
            group.close()

    def one(self, group, system, count, tokens, name, metric):
        """One size. Returns the reason for which the next one cannot be measured, or None."""
        try:
            data = self.data_of(system, tokens, name)
        except Absent as problem:
            self.absent[system, count, metric] = str(problem)
            return str(problem)
        self.cache += 1
        cache = os.path.join(self.folder, f"cache-{self.cache}")
        memory = available_bytes()
        took, used = group.first(data, tokens, cache, system == "megatron")
        self.add(self.label(system, count), metric, took)
        if system == "megatron":
            again, _ = group.first(data, tokens, cache, False)
            self.add(self.label(system, count, AGAIN), metric, again)
            shutil.rmtree(cache, ignore_errors=True)
        if took > self.seconds / 10:
            return f"{metric} took {took:.1f} s, more than a tenth of {self.seconds:g} s (--seconds)"
        if used * count > memory / 20:
            return (f"{metric} took {used * count / 1e9:.1f} GB, more than a twentieth of the {memory / 1e9:.1f} GB "
                    f"that are available")
        return None

    def add(self, row, metric, value):
        self.values.setdefault(row, {}).setdefault(metric, []).append(value)

    def print(self):
        for row, metrics in self.values.items():
            for metric, values in metrics.items():
                unit = "s" if metric == "imports" else "ms"
                self.report.row(NAME, row, metric, unit, "less", [value * (1 if unit == "s" else 1e3)
                                                                 for value in values])
        for (system, count, metric), reason in self.absent.items():
            if (self.label(system, count), metric) not in [(row, m) for row, all in self.values.items() for m in all]:
                self.report.note(f"{self.label(system, count)}: {metric} tokens were not measured: {reason}.")


def measure(report, tokens, options):
    table, rows = Table(report, options), []
    if not table.sizes:
        raise Absent("the table start needs --sparse TOKENS=DATASET, which tokmap-bench compare start gives")
    wanted = [name.strip() for name in options.peers.split(",") if name.strip()] or list(SYSTEMS)
    for name in wanted:
        if name not in SYSTEMS:
            raise Absent(f"--peers: the table start has {', '.join(SYSTEMS)}, but not {name}")
    environments = setup.Setup(options, report)
    for system in SYSTEMS:
        if system != "tokmap" and system not in wanted:
            continue
        try:
            python = environments.python_with(PACKAGES[system], "start-" + system)
            rows += [(system, python, count) for count in map(int, options.at_once.split(","))]
        except Absent as problem:
            report.absent(NAME, LABELS[system], problem)
    lost = set()
    for done, (_, (system, python, count)) in enumerate(meter.turns(rows, table.repeats)):
        report.progress(done, table.repeats * len(rows), table.label(system, count))
        if (system, count) in lost or system in lost:
            continue
        try:
            table.run(system, python, count)
        except Absent as problem:
            lost.add(system)
            report.absent(NAME, LABELS[system], problem)
        except driver.Failed as problem:
            if system == "tokmap":
                raise
            lost.add((system, count))
            report.absent(NAME, table.label(system, count), problem)
    table.print()
    for system in dict.fromkeys(system for system, _, _ in rows):
        report.about(LABELS[system], ABOUT[system])
    report.note(f"A figure is the time until the last rank has its first batch of {options.rows} rows of "
                f"{options.seq_len} tokens, imports not included; the first size includes what a system does "
                f"once in a process. All tokens are zeros in sparse files.")
    answer(report, table)


ABOUT = {"tokmap": "Run(...).loader(): shuffled windows; nothing is built or read but the index's sections",
         "torch": "DataLoader without workers over np.memmap, __getitems__ returns whole batches; shuffle=True with one "
                  "rank, DistributedSampler with more",
         "megatron": "GPTDataset, one epoch, no attention mask; rank 0 builds the index and writes it, then the others "
                     "read it; documents of 2^20 tokens"}


def answer(report, table):
    ours = table.values.get(table.label("tokmap", 1), {})
    sizes = [metric for metric in ours if metric != "imports"]
    if not sizes:
        return
    first, last = sizes[0], sizes[-1]
    slowest = max(max(values) for count in table.options.at_once.split(",")
                  for metric, values in table.values.get(table.label("tokmap", int(count)), {}).items()
                  if metric != "imports")
    one, two = (1e3 * statistics.median(ours[metric]) for metric in (first, last))
    report.answer(f"tokmap's first batch takes {one:.1f} ms at {first} tokens and {two:.1f} ms at {last}, and at most "
                  f"{slowest:.2f} s until the last of {max(map(int, table.options.at_once.split(',')))} ranks has it.")


if __name__ == "__main__":
    driver.answer_requests(Rank().answer)
