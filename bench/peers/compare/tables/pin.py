# SPDX-License-Identifier: MIT
"""Pinned or pageable memory, blocking or non_blocking copies: the four cells that every guide to DataLoader explains.

They need a GPU. Without one, the host's half of the question can still be measured: what it costs to have a page-locked
buffer. It is asked of the kernel with mlock(), in place of the driver, which also registers the pages with the
device, so the real price is higher. A loop that pins each batch pays it each time; a loop with one pinned buffer pays
it once.
"""
import ctypes
import mmap
import time

import measure as common
import torch_loop as loop

NAME, PACKAGES = "pin", loop.PACKAGES


class Host:
    """Ways to get a batch into memory that a device could read: new memory that is touched, new memory that is locked,
    and memory that was locked once."""

    def __init__(self, size):
        self.size, self.source = size, (bytes(range(256)) * (size // 256 + 1))[:size]
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.mlock.argtypes = self.libc.munlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self.kept = self.new(lock=True)

    def new(self, lock):
        """New anonymous pages. Raises Absent if they cannot be locked."""
        pages = mmap.mmap(-1, self.size)
        if lock:
            address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
            if self.libc.mlock(address, self.size):
                raise loop.Absent(f"mlock() of {self.size} bytes fails: {loop.os.strerror(ctypes.get_errno())}; "
                                  f"`ulimit -l` is the limit")
        return pages

    def rows(self):
        return {"pageable, new each batch": ("mmap() and a copy", lambda: self.fill(self.new(False))),
                "locked, new each batch": ("mmap(), mlock(), and a copy", lambda: self.fill(self.new(True))),
                "locked, kept": ("a copy into pages that are locked once", lambda: self.fill(self.kept))}

    def fill(self, pages):
        pages[:] = self.source


def timed(function, calls):
    """The us of each of `calls` calls."""
    clock, found = time.perf_counter_ns, []
    for _ in range(calls):
        before = clock()
        function()
        found.append((clock() - before) / 1e3)
    return found


def measure_rows(report, rows, options, metric):
    """rows: {name: (options, function)}. Returns {name: medians of the turns, in us}."""
    calls, repeats = int(loop.setting(options, "pin_calls", 200)), loop.repeats_of(options)
    found = {name: [] for name in rows}
    for name, (about, function) in rows.items():
        report.about(name, about)
        timed(function, calls // 4 + 1)
    for _, name in common.turns(rows, repeats):
        found[name].append(loop.median(timed(rows[name][1], calls)))
    for name, values in found.items():
        report.row(NAME, name, metric, "us", "less", values)
    report.note(f"Warm-up: {calls // 4 + 1} batches a row. Then {repeats} interleaved turns of {calls} batches; a "
                f"value is the median of a turn.")
    return found


def on_host(report, size, options):
    host = Host(size)
    found = measure_rows(report, host.rows(), options, "batch_us")
    for name, values in found.items():
        report.row(NAME, name, "gb_per_s", "GB/s", "more", [size / each / 1e3 for each in values])
    new, kept = found["locked, new each batch"], found["locked, kept"]
    plain = found["pageable, new each batch"]
    return (f"Without a GPU only the host's half was measured, for a batch of {size / 1e6:.3g} MB: locking new memory "
            f"for each batch, {loop.compared(new, plain, 'the time of new pageable memory')}, and "
            f"{loop.compared(new, kept, 'the time of one buffer that stays locked')}.")


def on_gpu(report, torch, tokens, options):
    shape = (2, tokens.rows, tokens.seq_len)
    pageable = torch.ones(shape, dtype=torch.int64)
    pinned = pageable.pin_memory()

    def copy(source, non_blocking):
        def one():
            source.to("cuda", non_blocking=non_blocking)
            torch.cuda.synchronize()
        return one

    def call(source, non_blocking):
        return lambda: source.to("cuda", non_blocking=non_blocking)

    kinds = {f"{name}, {'non_blocking' if non_blocking else 'blocking'}": (source, non_blocking)
             for name, source in (("pageable", pageable), ("pinned", pinned)) for non_blocking in (False, True)}
    rows = {name: ("to(\"cuda\"), until it has arrived", copy(*kind)) for name, kind in kinds.items()}
    rows["pin_memory() each batch, non_blocking"] = (
        "a new pinned copy of each batch, as in nanoGPT's get_batch()", lambda: copy(pageable.pin_memory(), True)())
    found = measure_rows(report, rows, options, "arrived_us")
    for name, kind in kinds.items():
        returned = []
        for _ in range(loop.repeats_of(options)):
            torch.cuda.synchronize()
            returned.append(loop.median(timed(call(*kind), 20)))
        torch.cuda.synchronize()
        report.row(NAME, name, "call_us", "us", "less", returned)
    size = pageable.numel() * 8
    for name, values in found.items():
        report.row(NAME, name, "gb_per_s", "GB/s", "more", [size / each / 1e3 for each in values])
    best, worst = found["pinned, non_blocking"], found["pageable, blocking"]
    each = found["pin_memory() each batch, non_blocking"]
    return (f"A batch of {size / 1e6:.3g} MB from pinned memory, non_blocking: "
            f"{loop.compared(best, worst, 'the time from pageable memory')}; if each batch is pinned by itself: "
            f"{loop.compared(each, worst, 'the time from pageable memory')}.")


def measure(report, tokens, options):
    torch = loop.torch_for_tables()
    if torch.cuda.is_available():
        text = on_gpu(report, torch, tokens, options)
    else:
        for name in ("pageable, blocking", "pageable, non_blocking", "pinned, blocking", "pinned, non_blocking"):
            report.absent(NAME, name, "no GPU: there is nothing to copy to")
        try:
            text = on_host(report, 2 * 8 * tokens.rows * tokens.seq_len, options)
        except loop.Absent as problem:
            report.absent(NAME, "locked", problem)
            text = "Nothing could be measured: there is no GPU, and memory cannot be locked."
    report.note(f"{loop.versions()}. A batch is inputs and targets of {tokens.rows} rows of {tokens.seq_len} "
                "tokens, int64.")
    report.answer(text)
