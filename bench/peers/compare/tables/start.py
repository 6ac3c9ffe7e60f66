# SPDX-License-Identifier: MIT
"""The table `start`: the time to the first batch of 10^9 to 10^13 tokens, by one rank.

The tokens are zeros in sparse files, which need no storage. The rank is a process, which first imports what it needs,
which is a figure of its own; then it is asked for its first batch, of one size after the other, each with a loader that
is opened for it.

Megatron builds an index of samples and shuffles it, and writes both to files. That first start and a later one, which
finds the files, are two rows. torch's DataLoader shuffles a list of all windows (RandomSampler).

Nothing is extrapolated. A size is left out if the size before it shows that it cannot be measured: it took more than a
tenth of --seconds (default 60), or more than a twentieth of the memory that is available, so that ten times as much
would take half of it. Then the row says so.
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
REPEATS, SECONDS = 3, 60
MAGIC = b"MMIDIDX\0\0"


def add_arguments(parser):
    parser.add_argument("--sparse", action="append", default=[], help="TOKENS=DATASET, once for each size")


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

    def first(self, data, seq_len, rows, cache):
        run = self.tokmap.Run(data=data, seq_len=seq_len, batch=rows, seed=1)
        loader = run.loader(rank=0, world=1, dtype="int64", framework="dlpack")
        batch = loader.next()
        shape = batch.count, batch.seq_len
        loader.close()
        return shape


class Torch:
    """A map-style dataset over np.memmap that returns whole batches, shuffled, no workers."""

    def load(self):
        import numpy
        import torch
        import torch.utils.data
        self.numpy, self.torch = numpy, torch
        torch.set_num_threads(1)

    def first(self, data, seq_len, rows, cache):
        numpy, torch = self.numpy, self.torch
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
        loader = torch.utils.data.DataLoader(Windows(), rows, shuffle=True, collate_fn=torch.from_numpy)
        return tuple(next(iter(loader))[:, 1:].shape)


class Megatron:
    """GPTDataset over the sparse file. Its .idx is made before, from documents of 2^20 tokens."""

    def load(self):
        import megatron.core.datasets.gpt_dataset
        import torch.utils.data
        self.core, self.torch = megatron.core.datasets, torch
        torch.set_num_threads(1)

    def first(self, data, seq_len, rows, cache):
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
        found = self.torch.stack([dataset[row % len(dataset)]["tokens"] for row in range(rows)])
        return tuple(found.shape)


class Named:
    """What GPTDataset asks a tokenizer for."""
    vocab_size, eod, pad, special_tokens_dict = 50257, 50256, -1, {}
    unique_identifiers = {"class": "Named", "eod": 50256}


SYSTEMS = {"tokmap": Tokmap, "torch": Torch, "megatron": Megatron}
LABELS = {"tokmap": "tokmap", "torch": "torch DataLoader, shuffled", "megatron": "Megatron GPTDataset, first start"}
AGAIN = "Megatron GPTDataset, its index exists"
NEEDS = {"tokmap": [], "torch": ["numpy", "torch"], "megatron": ["numpy", "torch", "megatron-core"]}


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
        shape = self.system.first(**request)
        at = time.monotonic()
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {"at": at, "bytes": 1024 * max(0, after - before), "shape": shape}


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


class Table:
    def __init__(self, report, options):
        self.report, self.options = report, options
        self.seconds, self.repeats = options.seconds or SECONDS, options.repeats or REPEATS
        self.values, self.absent, self.cache = {}, {}, 0
        self.sizes = []
        for text in options.sparse:
            count, _, name = text.partition("=")
            self.sizes.append((int(count), name))
        self.folder = os.path.join(options.work, NAME)
        os.makedirs(self.folder, exist_ok=True)

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

    def first(self, child, data, cache):
        """The seconds until the rank has its first batch, and the memory that this took."""
        began, wanted = time.monotonic(), [self.options.rows, self.options.seq_len]
        found = child.ask("first", 10 * self.seconds, data=data, seq_len=wanted[1], rows=wanted[0], cache=cache)
        if found["shape"] != wanted:
            raise driver.Failed(f"a first batch has the shape {found['shape']}, not {wanted}")
        return found["at"] - began, found["bytes"]

    def run(self, system, python):
        """One repeat of a row: all sizes, in their order."""
        with driver.Child(self.options, [python, os.path.abspath(__file__)]) as child:
            self.add(LABELS[system], "imports", child.ask("load", system=system)["at"] - child.started)
            reason = None
            for tokens, name in self.sizes:
                metric = f"{tokens:.0e}".replace("+", "")
                if (system, metric) in self.absent:
                    continue
                reason = reason or (None if name else "this file system cannot hold a file of that size")
                if reason is None:
                    reason = self.one(child, system, tokens, name, metric)
                    continue
                self.absent[system, metric] = reason

    def one(self, child, system, tokens, name, metric):
        """One size. Returns the reason for which the next one cannot be measured, or None."""
        try:
            data = self.data_of(system, tokens, name)
        except Absent as problem:
            self.absent[system, metric] = str(problem)
            return str(problem)
        self.cache += 1
        cache = os.path.join(self.folder, f"cache-{self.cache}")
        memory = available_bytes()
        took, used = self.first(child, data, cache)
        self.add(LABELS[system], metric, took)
        if system == "megatron":
            self.add(AGAIN, metric, self.first(child, data, cache)[0])
            shutil.rmtree(cache, ignore_errors=True)
        if took > self.seconds / 10:
            return f"{metric} took {took:.1f} s, more than a tenth of {self.seconds:g} s (--seconds)"
        if used > memory / 20:
            return (f"{metric} took {used / 1e9:.1f} GB, more than a twentieth of the {memory / 1e9:.1f} GB that are "
                    f"available")
        return None

    def add(self, row, metric, value):
        self.values.setdefault(row + ", 1 rank", {}).setdefault(metric, []).append(value)

    def print(self):
        for row, metrics in self.values.items():
            for metric, values in metrics.items():
                unit = "s" if metric == "imports" else "ms"
                self.report.row(NAME, row, metric, unit, "less", [value * (1 if unit == "s" else 1e3)
                                                                 for value in values])
        for (system, metric), reason in self.absent.items():
            if metric not in self.values.get(LABELS[system] + ", 1 rank", {}):
                self.report.note(f"{LABELS[system]}: {metric} tokens were not measured: {reason}.")


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
            rows.append((system, environments.python_with(NEEDS[system], "start-" + system)))
        except Absent as problem:
            report.absent(NAME, LABELS[system], problem)
    lost = set()
    for done, (_, (system, python)) in enumerate(meter.turns(rows, table.repeats)):
        report.progress(done, table.repeats * len(rows), LABELS[system])
        if system in lost:
            continue
        try:
            table.run(system, python)
        except (Absent, driver.Failed) as problem:
            if system == "tokmap":
                raise
            lost.add(system)
            report.absent(NAME, LABELS[system], problem)
    table.print()
    for system, _ in rows:
        report.about(LABELS[system], ABOUT[system])
    report.note(f"A figure is the time until a rank has its first batch of {options.rows} rows of {options.seq_len} "
                f"tokens, imports not included; the first size includes what a system does once in a process. All "
                f"tokens are zeros in sparse files.")
    answer(report, table)


ABOUT = {"tokmap": "Run(...).loader(): shuffled windows; nothing is built or read but the index's sections",
         "torch": "DataLoader without workers over np.memmap, __getitems__ returns whole batches; shuffle=True",
         "megatron": "GPTDataset, one epoch, no attention mask; it builds the index and writes it; documents of 2^20 "
                     "tokens"}


def answer(report, table):
    ours = table.values.get(LABELS["tokmap"] + ", 1 rank", {})
    sizes = [metric for metric in ours if metric != "imports"]
    if sizes:
        first, last = (f"{1e3 * statistics.median(ours[size]):.1f} ms at {size}" for size in (sizes[0], sizes[-1]))
        report.answer(f"tokmap's first batch takes {first} tokens and {last}.")


if __name__ == "__main__":
    driver.answer_requests(Rank().answer)
