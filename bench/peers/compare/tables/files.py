# SPDX-License-Identifier: MIT
"""Many small files against one flat file: the same tokens in 1, 10, 1,000, and 10,000 files.

Both systems read the same files. They are shards that tokmap's ShardWriter makes, whose .bin files hold nothing but
tokens. torch maps each of them with np.memmap and finds a window by bisecting; tokmap opens the folder. torch's
windows end with their file, as in every such dataset; tokmap's continue in the next file.

Everything is in the page cache. A cold start depends on the file system's metadata, which one machine cannot answer
for.
"""
import bisect
import glob
import itertools
import os
import shutil
import time

import in_torch
import measure as common
import torch_loop as loop

NAME = "files"
COUNTS = (1, 10, 1000, 10000)
WINDOWS = 2  # that a file has at least


class Files:
    """A map-style dataset over many files: window i of all, found by bisecting. Every file is mapped at the start."""

    def __init__(self, paths, tokens):
        import numpy
        self.seq_len = tokens.seq_len
        self.maps = [numpy.memmap(path, tokens.dtype, "r") for path in paths]
        self.ends = list(itertools.accumulate((len(each) - 1) // tokens.seq_len for each in self.maps))

    def __len__(self):
        return self.ends[-1]

    def find(self, i):
        """(file, its first token of window i)."""
        file = bisect.bisect_right(self.ends, i)
        return file, (i - (self.ends[file - 1] if file else 0)) * self.seq_len

    def __getitems__(self, numbers):
        import numpy
        import torch
        rows = numpy.empty((len(numbers), self.seq_len + 1), numpy.int64)
        for k, i in enumerate(numbers):
            file, first = self.find(i)
            rows[k] = self.maps[file][first:first + self.seq_len + 1]
        return torch.from_numpy(rows)


class TorchFiles(loop.TorchVariant):
    """The DataLoader over Files, which is made for each pass, since opening many files is the question."""

    def __init__(self, name, tokens, folder):
        super().__init__(name, tokens, batched=True, num_workers=0)
        self.paths = sorted(glob.glob(os.path.join(glob.escape(folder), "*.bin")))

    def open(self, numbers):
        self.dataset = Files(self.paths, self.tokens)
        return super().open([i % len(self.dataset) for i in numbers])

    def first_tokens(self, numbers):
        sizes = [os.path.getsize(path) // self.tokens.width for path in self.paths]
        starts, found = [0, *itertools.accumulate(sizes)], []
        for i in numbers:
            file, first = self.dataset.find(i % len(self.dataset))
            found.append(starts[file] + first)
        return found

    def close(self):
        super().close()
        self.dataset = None


class Part:
    """The first tokens of a file, as Tokens are used here."""

    def __init__(self, tokens, count, seq_len):
        self.path, self.width, self.dtype, self.rows = tokens.path, tokens.width, tokens.dtype, tokens.rows
        self.name = None
        self.count, self.seq_len, self._tokens = count, seq_len, tokens

    def windows(self):
        return (self.count - 1) // self.seq_len

    def array(self):
        return self._tokens.array()[:self.count]


def part_for(tokens, counts):
    """The tokens that are cut into files: so many that each of the most files has WINDOWS windows. Windows are shorter
    than asked for if the data is too small for that, and the longer numbers of files are left out if it does not
    help."""
    seq_len = tokens.seq_len
    while seq_len > 64 and (WINDOWS * seq_len + 1) * counts[-1] > tokens.count:
        seq_len //= 2
    counts = [count for count in counts if (WINDOWS * seq_len + 1) * count <= tokens.count]
    if not counts:
        raise loop.Absent(f"{tokens.count} tokens are too few for one file of {WINDOWS} windows of {seq_len}")
    most = max((WINDOWS * seq_len + 1) * counts[-1], min(tokens.count, 16 << 20))
    return Part(tokens, most, seq_len), counts


def write_files(folder, part, count):
    """Writes the tokens as `count` shards of nearly equal size. Returns the seconds that took."""
    import tokmap
    os.makedirs(folder)
    array = part.array()
    ids, before = int(array.max()) + 1, time.perf_counter()
    for i in range(count):
        first, end = i * part.count // count, (i + 1) * part.count // count
        with tokmap.ShardWriter(os.path.join(folder, f"{i:05d}"), vocab_size=ids, width=part.width,
                                sync=False) as writer:
            writer.add(array[first:end])
    return time.perf_counter() - before


def answer(counts, opens, rates):
    """opens and rates: {(system, files): values of the turns}."""
    least, most, said = counts[0], counts[-1], []
    if least == most:
        return "The data is large enough for one number of files only, so there is nothing to compare."
    for system in ("torch", "tokmap"):
        if (system, most) in opens:
            said.append(f"{system}: {most:,} files take {loop.median(opens[system, most]):.3g} ms to the first batch, "
                        f"{loop.compared(opens[system, most], opens[system, least], 'the time of one file')}, and then "
                        f"the rate is {loop.compared(rates[system, most], rates[system, least], 'that of one file')}")
    if len(said) == 2:
        said.append(f"tokmap beside torch over {most:,} files: "
                    f"{loop.compared(rates['tokmap', most], rates['torch', most])}, "
                    f"{loop.compared(opens['tokmap', most], opens['torch', most], 'the time to the first batch')}")
    return loop.sentence(said)


def measure(report, tokens, options):
    in_torch.run_table(report, NAME, tokens, options)


def run(report, tokens, options):
    loop.torch_for_tables()
    try:
        loop.needed("tokmap")
    except loop.Absent as problem:
        raise loop.Absent(f"the files of this table are made by tokmap, and {problem}") from None
    part, counts = part_for(tokens, sorted(loop.setting(options, "file_counts", COUNTS)))
    top = os.path.join(options.work, "files")
    shutil.rmtree(top, ignore_errors=True)
    try:
        measure_files(report, part, counts, top, options)
    finally:
        shutil.rmtree(top, ignore_errors=True)


def measure_files(report, part, counts, top, options):
    rows, place = [], {}
    for done, count in enumerate(counts):
        report.progress(done, len(counts), f"{NAME}: writing {count:,} files")
        folder = os.path.join(top, str(count))
        seconds = write_files(folder, part, count)
        report.note(f"{count:,} file{'s' * (count != 1)} of {part.count * part.width / count / 1e3:,.0f} kB, written "
                    f"in {seconds:.2g} s.")
        common.warm([folder])
        name = f"{count:,} file{'s' * (count != 1)}"
        for system, variant in (("torch", TorchFiles(f"torch, {name}", part, folder)),
                                ("tokmap", loop.TokmapVariant(f"tokmap, {name}", part, data=folder))):
            rows.append(variant)
            place[variant.name] = system, count
    found = loop.run_variants(report, NAME, rows, part, options, epochs=1, whole=20.0)
    opens, rates = {}, {}
    for name, passes in found.items():
        key = place[name]
        opens[key] = [1e3 * each.first[0] for each in passes]
        rates[key] = [each.rate for each in passes]
        report.row(NAME, name, "open_ms", "ms", "less", [1e3 * each.opened for each in passes])
        report.row(NAME, name, "first_ms", "ms", "less", opens[key])
        report.row(NAME, name, "batches_per_s", "batches/s", "more", rates[key])
        report.row(NAME, name, "cpu_us_per_batch", "us", "less", [1e6 * each.cpu / each.batches for each in passes])
    report.note(f"{loop.versions()}. The same {part.count * part.width / 1e6:.3g} MB in all rows, windows of "
                f"{part.seq_len} tokens, in the page cache. first_ms is from before the files are opened to the "
                "first batch.")
    report.answer(answer(counts, opens, rates))
