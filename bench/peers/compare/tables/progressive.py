# SPDX-License-Identifier: MIT
"""The table that most articles about DataLoader print: one improvement after another, each added to all before it.

Its usual form ends with the fastest row of its author's machine. Two rows are added here because the usual form leaves
out what it depends on: the same whole batches without any worker, which for rows of tokens is often torch's best, and
tokmap.
"""
import os

import torch_loop as loop

NAME, PACKAGES = "progressive", loop.PACKAGES


def variants(tokens, options, gpu):
    """The rows in their order: (variant, step), or (name, reason) for a row that this machine cannot have."""
    workers = int(loop.setting(options, "workers", 0) or min(2, len(os.sched_getaffinity(0))))
    device = "cuda" if gpu else "cpu"
    plain = loop.step_on(device)
    rows = [(loop.TorchVariant("baseline: 0 workers", tokens, num_workers=0), plain)]
    so_far = {"num_workers": workers, "prefetch_factor": 2}
    rows.append((loop.TorchVariant(f"+ {workers} workers and prefetch", tokens, **so_far), plain))
    if gpu:
        so_far["pin_memory"] = True
        plain = loop.step_on(device, non_blocking=True)
        rows.append((loop.TorchVariant("+ pin_memory", tokens, **so_far), plain))
    else:
        rows.append(("+ pin_memory", "no GPU: torch ignores pin_memory=True, so this row would equal the row before"))
    so_far["persistent_workers"] = True
    rows.append((loop.TorchVariant("+ persistent_workers", tokens, **so_far), plain))
    if gpu:
        plain = loop.step_on(device)
        rows.append((loop.StreamVariant("+ prefetcher on its own stream", tokens, **so_far), plain))
        rows.append((loop.StreamVariant("+ batched __getitems__", tokens, batched=True, **so_far), plain))
        rows.append((loop.StreamVariant("batched __getitems__, 0 workers", tokens, batched=True, num_workers=0,
                                        pin_memory=True), plain))
    else:
        rows.append(("+ prefetcher on its own stream", "no GPU: there is no copy to overlap with the step"))
        rows.append((loop.TorchVariant("+ batched __getitems__", tokens, batched=True, **so_far), plain))
        rows.append((loop.TorchVariant("batched __getitems__, 0 workers", tokens, batched=True, num_workers=0), plain))
    rows.append((loop.TokmapVariant("tokmap", tokens, device=device), loop.step_on(device)))
    return rows


def chain(names, rates):
    """[(name, speedup in each turn, gain over the row before in each turn)]. In each turn, the gains multiply to the
    speedup."""
    found, first, before = [], None, None
    for name in names:
        if name in rates:
            first, before = first or rates[name], before or rates[name]
            found.append((name, loop.ratios(rates[name], first), loop.ratios(rates[name], before)))
            before = rates[name]
    return found


def answer(names, rates):
    """The sentence below the table, from the rates of its rows."""
    present = [name for name in names if name in rates]
    if len(present) < 2:
        return "Fewer than two rows could be measured, so there is nothing to compare."
    middle = {name: loop.median(rates[name]) for name in present}
    peers = [name for name in present if name != "tokmap"]
    best = max(peers, key=middle.get)
    helped = [name for before, name in zip(peers, peers[1:])
              if loop.measure.Ratio(rates[name], rates[before]).distinguishable and middle[name] > middle[before]]
    said = [f"steps that gained over the row before: {', '.join(helped)}" if helped
            else "no step gained over the row before it"]
    if best == peers[0]:
        said.append(f"no row of torch is faster than {best}")
    else:
        said.append(f"torch's best row is \"{best}\", {loop.compared(rates[best], rates[peers[0]], 'the baseline')}")
    if "tokmap" in rates:
        said.append(f"tokmap beside that row: {loop.compared(rates['tokmap'], rates[best])}")
    return loop.sentence(said)


def measure(report, tokens, options):
    torch = loop.torch_for_tables()
    gpu = torch.cuda.is_available()
    rows = variants(tokens, options, gpu)
    names = [row[0] if isinstance(row[0], str) else row[0].name for row in rows]
    for variant, reason in rows:
        if isinstance(variant, str):
            report.absent(NAME, variant, reason)
    steps = {variant.name: step for variant, step in rows if not isinstance(variant, str)}

    def one(variant, numbers, rows_of_batch, epochs):
        return loop.run_pass(variant, numbers, rows_of_batch, steps[variant.name], epochs)

    found = loop.run_variants(report, NAME, [row[0] for row in rows if not isinstance(row[0], str)], tokens, options,
                              one)
    rates = {name: [each.rate for each in passes] for name, passes in found.items()}
    started = {name: [each.rate_with_start for each in passes] for name, passes in found.items()}
    for (name, speedups, gains), (_, speedups_started, _) in zip(chain(names, rates), chain(names, started)):
        report.row(NAME, name, "with_start_per_s", "batches/s", "more", started[name])
        report.row(NAME, name, "speedup_with_start", "x", "-", speedups_started)
        report.row(NAME, name, "batches_per_s", "batches/s", "more", rates[name])
        report.row(NAME, name, "speedup", "x", "-", speedups)
        report.row(NAME, name, "over_row_before", "x", "-", gains)
        report.row(NAME, name, "first_ms", "ms", "less", [1e3 * each.first[0] for each in found[name]])
        report.row(NAME, name, "cpu_us_per_batch", "us", "less",
                   [1e6 * each.cpu / each.batches for each in found[name]])
    report.note(f"{loop.versions()}. The step reads each batch once{' on the GPU' if gpu else ''} and trains no model. "
                f"Speedups are over the first row. \"With start\": epochs of {loop.EPOCH:,} batches, with the time "
                f"to make the loader, and to start and end its workers.")
    report.answer(answer(names, rates))
