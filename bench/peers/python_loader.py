"""The cost of the Python package, beside the same call in C and beside what users write with NumPy and torch.

    python bench/peers/python_loader.py DATA [--tokens FILE.bin] [--seconds S]

DATA is a dataset of 16-bit tokens, made by `tokmap pack` or by `tokmap-bench slice --keep`. The NumPy peers map its
.bin file. Each figure is a median. The peers are measured in the same process, interleaved with tokmap. Set
PYTHONPATH=src/python. All but the first figures need torch and NumPy. Prints one line per figure.
"""
import argparse
import ctypes
import os
import pickle
import statistics
import subprocess
import sys
import time

SEQ, ROWS = 2048, 64


def say(what, value, unit, limit=""):
    print(f"{what:<78} {value:>12.3f} {unit:<8} {limit}", flush=True)


def measure_import():
    code = ("import time; a = time.perf_counter(), time.process_time(); import tokmap; "
            "print(time.perf_counter() - a[0], time.process_time() - a[1])")
    times = [[float(n) for n in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                               check=True).stdout.split()] for _ in range(15)]
    say("import tokmap, wall", 1e3 * statistics.median(t[0] for t in times), "ms", "at most 50")
    say("import tokmap, processor time", 1e3 * statistics.median(t[1] for t in times), "ms")


def measure_next(tokmap, run, seconds, framework):
    """Compares next() in Python with tokmap_loader_next(), called alternately on two loaders of the same run.
    A compiled function calls the library, because ctypes takes longer than the call."""
    from tokmap import _library as c
    ours, plain = (run.loader(rows=8, framework=framework) for _ in range(2))
    static = ours.out()
    timed = timed_next()
    batch, error = c.Batch(size=ctypes.sizeof(c.Batch)), c.Error()
    outputs = [array for array in plain.out().values()]
    out = c.Out(ctypes.sizeof(c.Out), c.I64, *(plain._arrays.pointer(array) for array in outputs))
    handle = plain._handle

    def in_c():
        """One call in C, in ns. A call that fails takes no time and must not pass for a result."""
        if timed:
            ns = timed(handle, ctypes.byref(out), ctypes.byref(batch), ctypes.byref(error))
            if not ns:
                raise SystemExit(f"tokmap_loader_next() failed: {error.message.decode()}")
            return ns
        if c.lib.tokmap_loader_next(handle, ctypes.byref(out), None, ctypes.byref(batch), ctypes.byref(error)):
            raise SystemExit(f"tokmap_loader_next() failed: {error.message.decode()}")
        return None

    for _ in range(200):
        ours.next()
        in_c()
    fresh, given, inside, outside = [], [], [], []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        a = time.perf_counter_ns()
        ours.next()
        b = time.perf_counter_ns()
        ours.next(out=static)
        d = time.perf_counter_ns()
        ns = in_c()
        e = time.perf_counter_ns()
        fresh.append(b - a)
        given.append(d - b)
        inside.append(ns)
        outside.append(e - d)
    base = statistics.median(inside) if timed else statistics.median(outside)
    say(f"tokmap_loader_next() in C, 8 rows of {run.info.seq_len}, int64", base / 1e3, "us",
        "" if timed else "(through ctypes: no compiler)")
    for what, times in (("next()", fresh), ("next(out=static)", given)):
        say(f"loader.{what}, {framework}: what Python adds", (statistics.median(times) - base) / 1e3, "us",
            "at most 15")


def timed_next():
    """Compiles a function that times one call of tokmap_loader_next(), in ns. Returns None without a compiler."""
    import tempfile
    import tokmap
    with tempfile.TemporaryDirectory() as folder:
        timed = compiled(folder)
    if timed is None:
        return None
    timed.restype = ctypes.c_uint64
    timed.argtypes = [ctypes.c_void_p] * 5
    entry = ctypes.cast(tokmap._library.lib.tokmap_loader_next, ctypes.c_void_p)
    return lambda *arguments: timed(entry, *arguments)


def compiled(folder):
    """Compiles timed() in the folder and loads it, after which the file is not needed."""
    source, library = os.path.join(folder, "timed.c"), os.path.join(folder, "timed.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write("""#include <stdint.h>
#include <time.h>
typedef int next_call(void *, const void *, void *, void *, void *);
uint64_t timed(next_call *next, void *loader, const void *out, void *batch, void *error)
{
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (next(loader, out, 0, batch, error)) return 0;
    clock_gettime(CLOCK_MONOTONIC, &to);
    return (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000 + (uint64_t)to.tv_nsec - (uint64_t)from.tv_nsec;
}
""")
    try:
        if subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source],
                          stderr=subprocess.DEVNULL).returncode:
            return None
    except FileNotFoundError:
        return None
    return ctypes.CDLL(library).timed


class MemmapRows:
    """What users write: one row by index from a memory map, with inputs and targets as int64 tensors."""

    def __init__(self, path, torch, numpy):
        self.data = numpy.memmap(path, dtype=numpy.uint16, mode="r")
        self.torch, self.numpy = torch, numpy

    def __len__(self):
        return (len(self.data) - 1) // SEQ

    def __getitem__(self, i):
        row = self.data[i * SEQ:i * SEQ + SEQ + 1].astype(self.numpy.int64)
        return self.torch.from_numpy(row[:-1]), self.torch.from_numpy(row[1:])


class MemmapBatches(MemmapRows):
    """The same with whole batches, as in nanoGPT's get_batch() but without the two copies made by its stack()."""

    def __getitems__(self, indices):
        rows = self.numpy.stack([self.data[i * SEQ:i * SEQ + SEQ + 1] for i in indices]).astype(self.numpy.int64)
        return self.torch.from_numpy(rows[:, :-1].copy()), self.torch.from_numpy(rows[:, 1:].copy())


class MemmapViews(MemmapRows):
    """Whole batches whose inputs and targets are non-contiguous views of one array: half as much is written."""

    def __getitems__(self, indices):
        rows = self.numpy.empty((len(indices), SEQ + 1), self.numpy.int64)
        for k, i in enumerate(indices):
            rows[k] = self.data[i * SEQ:i * SEQ + SEQ + 1]
        found = self.torch.from_numpy(rows)
        return found[:, :-1], found[:, 1:]


def measure_map_style(tokmap, run, path, seconds):
    import numpy
    import torch
    from torch.utils.data import DataLoader
    torch.set_num_threads(1)
    dataset = run.dataset(dtype=torch.int64)
    rows = min(len(dataset), ROWS * 30)
    order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(1))[:rows].tolist()
    peers = {
        "tokmap Dataset.__getitems__, collate_fn=tokmap.collate": (dataset, tokmap.collate),
        "NumPy memmap, __getitem__": (MemmapRows(path, torch, numpy), None),
        "NumPy memmap, whole batches": (MemmapBatches(path, torch, numpy), lambda batch: batch),
        "NumPy memmap, whole batches as views": (MemmapViews(path, torch, numpy), lambda batch: batch),
    }

    def pass_over(dataset, collate):
        loader = DataLoader(dataset, batch_size=ROWS, sampler=order, num_workers=0, collate_fn=collate)
        start = time.perf_counter()
        for _ in loader:
            pass
        return rows / (time.perf_counter() - start)

    rates = {name: [] for name in peers}
    for name, arguments in peers.items():
        pass_over(*arguments)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not all(rates.values()):
        for name, arguments in peers.items():
            rates[name].append(pass_over(*arguments))
    for name, found in rates.items():
        say(f"DataLoader, batches of {ROWS} rows of {SEQ}: {name}", statistics.median(found), "rows/s")
    turns = list(zip(*rates.values()))
    for i, (what, limit) in enumerate((("memmap __getitem__", "at least 5"), ("memmap in whole batches", "at least 2"),
                                       ("memmap in whole batches as views", "")), 1):
        ratio = statistics.median(turn[0] / turn[i] for turn in turns)
        say(f"  ours to {what}, median of {len(turns)} turns", ratio, "x", limit)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("data")
    arguments.add_argument("--tokens", help="the .bin file (default: DATA.bin)")
    arguments.add_argument("--seconds", type=float, default=5.0)
    given = arguments.parse_args()
    measure_import()
    import tokmap
    run = tokmap.Run(data=given.data, seq_len=SEQ, batch=ROWS, seed=1, passes=1)
    say("pickle of a run", len(pickle.dumps(run)), "bytes", "below 4096")
    say("pickle of a map-style dataset", len(pickle.dumps(run.dataset(framework="dlpack"))), "bytes", "below 4096")
    endless = tokmap.Run(data=given.data, seq_len=SEQ, batch=ROWS, seed=1)
    for framework in ("dlpack", "numpy", "torch"):
        try:
            measure_next(tokmap, endless, given.seconds, framework)
        except ImportError as problem:
            print(f"{framework} is skipped: {problem}")
    try:
        measure_map_style(tokmap, run, given.tokens or given.data + ".bin", 2 * given.seconds)
    except ImportError as problem:
        print(f"map-style datasets are skipped: {problem}")


if __name__ == "__main__":
    main()
