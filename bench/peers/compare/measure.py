# SPDX-License-Identifier: MIT
"""How a table measures: turns, percentiles, intervals, and what a tree of processes uses. Standard library only.

Everything that is read from /proc returns 0 for a process that has ended in the meantime.
"""
import array
import ctypes
import math
import mmap
import os
import statistics
import time
import zlib

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = mmap.PAGESIZE

# ---- turns ----


def turns(items, repeats):
    """The interleaved repeats of several things: yields (repeat, item). Every second round runs backwards (A B, B A),
    so that a machine that becomes slower or faster favors nobody."""
    items = list(items)
    for repeat in range(repeats):
        for item in items if repeat % 2 == 0 else reversed(items):
            yield repeat, item


def percentiles(ns):
    """The exact percentiles of the times of calls: {"p50": us, "p99": us, "p999": us, "max": us}."""
    found = sorted(ns)
    if not found:
        return {}

    def at(share):
        return found[max(0, math.ceil(share * len(found)) - 1)] / 1e3
    return {"p50": at(0.5), "p99": at(0.99), "p999": at(0.999), "max": found[-1] / 1e3}


# ---- is it a difference? ----

# The quantiles 0.995 of Student's distribution, for intervals of 99%, by degrees of freedom.
_STUDENT = {1: 63.66, 2: 9.925, 3: 5.841, 4: 4.604, 5: 4.032, 6: 3.707, 7: 3.499, 8: 3.355, 9: 3.250, 10: 3.169,
            12: 3.055, 15: 2.947, 20: 2.845, 30: 2.750, 60: 2.660, 1 << 62: 2.576}


def student(freedom):
    """A bound for that quantile: of the next smaller number in the list."""
    return _STUDENT[max(n for n in _STUDENT if n <= freedom)]


class Ratio:
    """The ratio of two rows that were measured in the same turns, with its interval of confidence of 99%.

    The interval is that of the mean logarithm of the paired ratios, since a machine that is slow in one turn slows both
    of its values. `distinguishable` says that 1 is outside of it and that the ratio differs from 1 by more than 2%,
    which is what the addresses of two copies of the same program can make of it."""

    def __init__(self, values, others):
        ratios = [math.log(a / b) for a, b in zip(values, others) if a > 0 and b > 0]
        self.count = len(ratios)
        self.ratio = math.exp(statistics.median(ratios)) if ratios else math.nan
        if self.count < 2:
            self.low, self.high = 0.0, math.inf
        else:
            mean = statistics.fmean(ratios)
            half = student(self.count - 1) * statistics.stdev(ratios) / math.sqrt(self.count)
            self.low, self.high = math.exp(mean - half), math.exp(min(mean + half, 700))
        self.distinguishable = (self.low > 1 or self.high < 1) and abs(self.ratio - 1) > 0.02

    def __str__(self):
        if self.count < 3:
            return f"{self.ratio:.3g} ({self.count} turns are too few for an interval)"
        return f"{self.ratio:.3g} ({self.low:.3g} to {self.high:.3g} with 99% confidence)"


def against(rows, metric, where):
    """The sentence that compares the first of the rows with the best of the others in a rate. A row has `label` and
    `values`, a dict of lists by metric. Empty if there is nothing to compare."""
    ours = rows[0].values.get(metric, [])
    others = [row for row in rows[1:] if row.values.get(metric)]
    if not ours or not others:
        return ""
    best = max(others, key=lambda row: statistics.median(row.values[metric]))
    ratio = Ratio(ours, best.values[metric])
    rate = statistics.median(ours) / 1e6
    if not ratio.distinguishable:
        return (f"{where[:1].upper()}{where[1:]}, {rows[0].label} ({rate:.4g} M tokens/s) and {best.label} cannot be "
                f"distinguished on this machine: the ratio is {ratio}.")
    return (f"{where[:1].upper()}{where[1:]}, {rows[0].label} delivers {rate:.4g} M tokens/s, {ratio} times as many as "
            f"the best other row, {best.label}.")


# ---- processes ----


def tree(pid):
    """The process and all its descendants that run now."""
    found = [pid]
    for one in found:
        try:
            for thread in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{thread}/children", encoding="ascii") as file:
                    found += map(int, file.read().split())
        except OSError:
            continue
    return found


def _text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def cpu_seconds(pids):
    """The processor time of these processes, and of their children that have ended, so far. Hundredths of a second."""
    ticks = 0
    for pid in pids:
        fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15])) if fields else 0
    return ticks / TICKS


def own_cpu_seconds():
    """The same for this process and its descendants; the share of this process is exact."""
    ended = os.times()
    return time.process_time() + ended[2] + ended[3] + cpu_seconds(tree(os.getpid())[1:])


def read_bytes(pids):
    """The bytes that these processes caused to be read from storage so far, by calls and by page faults."""
    total = 0
    for pid in pids:
        for line in _text(f"/proc/{pid}/io").splitlines():
            if line.startswith("read_bytes:"):
                total += int(line.split()[1])
    return total


def device_figure(path, name):
    """A number that the kernel has about the block device below a file: the first in the file `name` of the device's
    folder in /sys. 0 if there is no block device."""
    number = os.stat(path).st_dev
    folder = f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"
    words = (_text(f"{folder}/{name}") or _text(f"{folder}/../{name}")).split()  # a partition has only a part of them
    return int(words[0]) if words else 0


def requests_read(path):
    """The reads that the block device below a file has completed so far, for all programs."""
    return device_figure(path, "stat")


def memory_bytes(pids, data=()):
    """The proportional set size of these processes, without the pages of mapped files below the paths in `data`: those
    belong to the page cache, which gives them back when memory is short."""
    total = 0
    for pid in pids:
        counts = True
        for line in _text(f"/proc/{pid}/smaps").splitlines():
            words = line.split(None, 5)
            if words and not words[0].endswith(":"):
                path = words[5] if len(words) > 5 else ""
                counts = not any(path.startswith(one) for one in data)
            elif counts and words and words[0] == "Pss:":
                total += int(words[1]) * 1024
    return total


# ---- the page cache ----


def _files(paths):
    for path in paths:
        if os.path.isdir(path):
            for folder, _, names in os.walk(path):
                yield from (os.path.join(folder, name) for name in names)
        elif os.path.exists(path):
            yield path


def evict(paths):
    """Drops the files, or all files below the folders, from the page cache. Pages that a process has mapped stay, so
    no process may have them open. Returns the share of the bytes that is still cached (0: all is cold)."""
    cached = size = 0
    for path in _files(paths):
        with open(path, "rb") as file:
            length = os.fstat(file.fileno()).st_size
            os.fdatasync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        size += length
        cached += resident_bytes(path)
    return cached / size if size else 0.0


def warm(paths):
    """Reads the files, or all files below the folders, into the page cache."""
    for path in _files(paths):
        with open(path, "rb", buffering=0) as file:
            while file.read(1 << 22):
                pass


def resident_bytes(path):
    """The bytes of a file that are in the page cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            return 0
        start = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
    if start == ctypes.c_void_p(-1).value:
        return 0
    pages = (ctypes.c_ubyte * ((size + PAGE - 1) // PAGE))()
    failed = libc.mincore(start, size, pages)
    libc.munmap(start, size)
    return 0 if failed else min(size, PAGE * bytes(pages).translate(_LOWEST).count(1))


_LOWEST = bytes(value & 1 for value in range(256))

# ---- what was delivered ----


def wide(values):
    """The bytes of an array of tokens as little-endian 64-bit integers. values: a NumPy array, a torch or JAX or
    TensorFlow array, an array of tokmap, or anything with the buffer protocol; for each row one."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    elif not hasattr(values, "astype") and hasattr(values, "numpy"):
        values = values.numpy()
    if hasattr(values, "astype"):
        return values.astype("<i8").tobytes()
    view = values.memoryview() if hasattr(values, "memoryview") else memoryview(values)
    if view.itemsize == 8:
        return view.tobytes()
    code = {1: "B", 2: "H", 4: "i"}[view.itemsize] if view.format not in "bBhHiIlL" else view.format
    return array.array("q", array.array(code, view.tobytes())).tobytes()


def rows_of(inputs, targets, seq_len):
    """The rows of a batch as pairs of bytes: inputs and targets as 64-bit integers."""
    one, two, step = wide(inputs), wide(targets), 8 * seq_len
    return [(one[at:at + step], two[at:at + step]) for at in range(0, len(one), step)]


def row_sums(inputs, targets, seq_len):
    """The checksums of each row of a batch: pairs of CRC-32, of its inputs and of its targets."""
    return [(zlib.crc32(one), zlib.crc32(two)) for one, two in rows_of(inputs, targets, seq_len)]


def checksum(sums):
    """One short text for all these rows, in this order."""
    return f"{zlib.crc32(repr([tuple(pair) for pair in sums]).encode()):08x}"


def first_difference(sums, wanted, rows):
    """Where two lists of row_sums() differ first, as a text, or None."""
    for number, (found, right) in enumerate(zip(sums, wanted)):
        for what, one, two in zip(("inputs", "targets"), found, right):
            if one != two:
                return f"batch {number // rows}, row {number % rows}: other {what} than the reference"
    if len(sums) != len(wanted):
        return f"{len(sums)} rows were delivered, and {len(wanted)} were expected"
    return None
