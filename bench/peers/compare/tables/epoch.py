# SPDX-License-Identifier: MIT
"""The first batch of each epoch: what it costs to begin one, with and without persistent workers."""
import in_torch
import torch_loop as loop

NAME = "epoch"
EPOCHS = 4


def answer(later):
    """later: {row: the waits of the turns, in ms, for the first batch of an epoch after the first}."""
    workers = [name for name in later if name not in ("0 workers", "tokmap")]
    said = []
    if len(workers) == 2:
        plain, persistent = workers
        said.append(f"the first batch of a later epoch: {loop.median(later[plain]):.3g} ms with workers that start "
                    f"again, {loop.median(later[persistent]):.3g} ms with persistent workers: "
                    f"{loop.compared(later[persistent], later[plain], 'the wait')}")
    if "tokmap" in later:
        said.append(f"tokmap has no workers and needs {loop.median(later['tokmap']):.3g} ms")
        if len(workers) == 2:
            said.append(f"beside persistent workers {loop.compared(later['tokmap'], later[workers[1]], 'the wait')}")
    return loop.sentence(said) if said else "No row could be measured, so there is nothing to compare."


def measure(report, tokens, options):
    in_torch.run_table(report, NAME, tokens, options)


def run(report, tokens, options):
    loop.torch_for_tables()
    workers = int(loop.setting(options, "workers", 0) or min(2, loop.usable_cores()))
    variants = [loop.TorchVariant("0 workers", tokens, num_workers=0),
                loop.TorchVariant(f"{workers} workers", tokens, num_workers=workers, prefetch_factor=2),
                loop.TorchVariant(f"{workers} workers, persistent", tokens, num_workers=workers, prefetch_factor=2,
                                  persistent_workers=True),
                loop.TokmapVariant("tokmap", tokens)]
    found = loop.run_variants(report, NAME, variants, tokens, options, epochs=EPOCHS, whole=20.0)
    later = {}
    for name, passes in found.items():
        later[name] = [1e3 * loop.mean(each.first[1:]) for each in passes]
        for epoch in range(EPOCHS):
            report.row(NAME, name, f"epoch{epoch + 1}_ms", "ms", "less", [1e3 * each.first[epoch] for each in passes])
        report.row(NAME, name, "later_epochs_ms", "ms", "less", later[name])
        report.row(NAME, name, "other_batches_ms", "ms", "less", [1e3 / each.rate for each in passes])
    report.note(f"{loop.versions()}. Epoch 1 includes making the loader. later_epochs_ms is the mean of epochs 2 to "
                f"{EPOCHS}, other_batches_ms the mean of the batches after the first of an epoch. tokmap's run has no "
                f"end, so an epoch of it begins where the last one ended.")
    report.answer(answer(later))
