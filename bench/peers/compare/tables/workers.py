# SPDX-License-Identifier: MIT
"""How many workers? Batches a second and the load of each core, for 0 to 16 worker processes.

Items are read one by one, as in the tables that the field prints. Two rows without workers are beside them: whole
batches read by one call of __getitems__(), and tokmap. The load of a core is that of the whole machine, from
/proc/stat, so other programs are part of it; "own CPU" is what this loop and its workers used.
"""
import in_torch
import torch_loop as loop

NAME = "workers"
COUNTS = (0, 1, 2, 4, 8, 16)


def answer(rates):
    """The sentence below the table. rates: {number of workers, "batched", or "tokmap": rates of the turns}."""
    counts = sorted(key for key in rates if isinstance(key, int))
    if len(counts) < 2:
        return "Fewer than two numbers of workers could be measured, so there is nothing to compare."
    best = loop.knee({count: rates[count] for count in counts})
    if best == 0:
        said = ["workers do not pay here: no number of them is faster than none"]
    else:
        said = [f"workers stop paying at {best}: "
                f"{loop.compared(rates[best], rates[counts[0]], 'the rate without any')}"]
    slower = [count for count in counts if count > best and loop.faster(rates[best], rates[count])]
    if slower:
        said.append(f"{', '.join(map(str, slower))} {'is' if len(slower) == 1 else 'are'} slower than {best}")
    for key, name in (("batched", "__getitems__ without workers"), ("tokmap", "tokmap")):
        if key in rates:
            said.append(f"{name} beside {best} workers: {loop.compared(rates[key], rates[best])}")
    return loop.sentence(said)


def measure(report, tokens, options):
    in_torch.run_table(report, NAME, tokens, options)


def run(report, tokens, options):
    loop.torch_for_tables()
    counts = [count for count in loop.setting(options, "worker_counts", COUNTS)]
    names = {f"{count} workers": count for count in counts}
    variants = [loop.TorchVariant(name, tokens, num_workers=count, prefetch_factor=2 if count else None)
                for name, count in names.items()]
    variants += [loop.TorchVariant("batched __getitems__, 0 workers", tokens, batched=True, num_workers=0),
                 loop.TokmapVariant("tokmap", tokens)]
    names.update({"batched __getitems__, 0 workers": "batched", "tokmap": "tokmap"})

    def one(variant, numbers, rows, epochs=1, step=None):
        before = loop.core_ticks()
        found = loop.run_pass(variant, numbers, rows, epochs=epochs, step=step)
        found.cores = loop.core_shares(before, loop.core_ticks())
        return found

    found = loop.run_variants(report, NAME, variants, tokens, options, epochs=1, run=one)
    for name, passes in found.items():
        report.row(NAME, name, "batches_per_s", "batches/s", "more", [each.rate for each in passes])
        report.row(NAME, name, "with_start_per_s", "batches/s", "more", [each.rate_with_start for each in passes])
        report.row(NAME, name, "first_ms", "ms", "less", [1e3 * each.first[0] for each in passes])
        report.row(NAME, name, "cpu_us_per_batch", "us", "less", [1e6 * each.cpu / each.batches for each in passes])
        report.row(NAME, name, "own_cores", "cores", "less", [each.cpu / each.wall for each in passes])
        for title, values in loop.by_core([each.cores for each in passes]).items():
            report.row(NAME, name, title, "% busy", "-", values)
    report.note(f"{loop.versions()}; {loop.usable_cores()} cores may be used. \"With start\": an epoch of "
                f"{loop.EPOCH:,} batches, with the time to make the loader, and to start and end its workers.")
    report.answer(answer({names[name]: [each.rate for each in passes] for name, passes in found.items()}))
