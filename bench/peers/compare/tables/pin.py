# SPDX-License-Identifier: MIT
"""Pinned or pageable memory, blocking or non_blocking copies: the four cells that every guide to DataLoader explains.
They need a GPU.
"""
import time

import measure as common
import torch_loop as loop

NAME, PACKAGES = "pin", loop.PACKAGES


def timed(function, calls):
    """The us of each of `calls` calls."""
    clock, found = time.perf_counter_ns, []
    for _ in range(calls):
        before = clock()
        function()
        found.append((clock() - before) / 1e3)
    return found


def measure_rows(report, rows, options):
    """rows: {name: (options, function)}. Returns {name: medians of the turns, in us}."""
    calls, repeats = int(loop.setting(options, "pin_calls", 200)), loop.repeats_of(options)
    found = {name: [] for name in rows}
    for name, (about, function) in rows.items():
        report.about(name, about)
        timed(function, calls // 4 + 1)
    for _, name in common.turns(rows, repeats):
        found[name].append(loop.median(timed(rows[name][1], calls)))
    for name, values in found.items():
        report.row(NAME, name, "arrived_us", "us", "less", values)
    report.note(f"Warm-up: {calls // 4 + 1} batches a row. Then {repeats} interleaved turns of {calls} batches; a "
                f"value is the median of a turn.")
    return found


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
    found = measure_rows(report, rows, options)
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
    if not torch.cuda.is_available():
        for name in ("pageable, blocking", "pageable, non_blocking", "pinned, blocking", "pinned, non_blocking"):
            report.absent(NAME, name, "no GPU: there is nothing to copy to")
        report.answer("Not measured: this machine has no GPU, so there is nothing to copy to.")
        return
    text = on_gpu(report, torch, tokens, options)
    report.note(f"{loop.versions()}. A batch is inputs and targets of {tokens.rows} rows of {tokens.seq_len} "
                "tokens, int64.")
    report.answer(text)
