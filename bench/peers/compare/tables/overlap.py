# SPDX-License-Identifier: MIT
"""How much of the copy to the GPU a step waits for: on the stream of the computation, and on a stream of its own.

The exposed time of a row is its time a step minus that of the same step without any copy, measured in the same turn.
The step multiplies matrices for about 1 ms, which a calibration before the first turn finds.
"""
import itertools
import time

import measure as common
import torch_loop as loop

NAME, PACKAGES = "overlap", loop.PACKAGES
STEP_S = 0.001
NAMES = ("step alone", "copy on the stream of the step", "copy on a stream of its own", "tokmap")


def busy_step(torch, seconds=STEP_S):
    """A function that enqueues matrix products for about `seconds`, and uses inputs and targets once."""
    matrix = torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16)

    def products(count):
        for _ in range(count):
            torch.mm(matrix, matrix)
        torch.cuda.synchronize()
    products(50)
    before = time.perf_counter()
    products(200)
    count = max(1, round(seconds / ((time.perf_counter() - before) / 200)))

    def step(batch):
        for each in loop.pair(batch):
            each.sum()
        for _ in range(count):
            torch.mm(matrix, matrix)
    return step


def endless(torch, name, tokens):
    """An iterator over batches on the GPU, and the function that ends it."""
    if name == "step alone":
        batch = torch.ones((tokens.rows, tokens.seq_len + 1), dtype=torch.int64, device="cuda")
        return itertools.repeat(batch), lambda: None
    if name == "tokmap":
        variant = loop.TokmapVariant(name, tokens, device="cuda")
    else:
        kind = loop.StreamVariant if name.endswith("its own") else loop.TorchVariant
        variant = kind(name, tokens, batched=True, num_workers=0, pin_memory=True)
    numbers = loop.window_order(tokens.windows(), min(tokens.windows(), 20000) // tokens.rows * tokens.rows)

    def batches():
        while True:
            for batch in variant.open(numbers):
                yield loop.on(batch, "cuda")
            variant.close()
    return batches(), variant.close


def time_of_step(torch, batches, step, seconds):
    """The mean time of a step, in us."""
    for _ in range(10):
        step(next(batches))
    torch.cuda.synchronize()
    count, before = 0, time.perf_counter()
    while time.perf_counter() - before < seconds:
        step(next(batches))
        count += 1
        torch.cuda.current_stream().synchronize()
    return 1e6 * (time.perf_counter() - before) / count


def exposed(steps, alone):
    """What a step waits for, in each turn, in us."""
    return [one - other for one, other in zip(steps, alone)]


def answer(steps):
    """steps: {row: us a step, of the turns}."""
    plain, own = steps.get(NAMES[1]), steps.get(NAMES[2])
    if not plain or not own:
        return "No two rows could be measured, so there is nothing to compare."
    alone = steps[NAMES[0]]
    said = [f"exposed copy time a step: {loop.median(exposed(plain, alone)):.3g} us on the stream of the step, "
            f"{loop.median(exposed(own, alone)):.3g} us on a stream of its own; a step takes "
            f"{loop.compared(own, plain, 'the time')}"]
    if "tokmap" in steps:
        said.append(f"tokmap: {loop.median(exposed(steps['tokmap'], alone)):.3g} us, a step takes "
                    f"{loop.compared(steps['tokmap'], own, 'the time of a stream of its own')}")
    return loop.sentence(said)


def measure(report, tokens, options):
    torch = loop.torch_for_tables()
    if not torch.cuda.is_available():
        for name in NAMES:
            report.absent(NAME, name, "no GPU: there is no copy to hide")
        report.answer("Not measured: this machine has no GPU, so there is no copy to overlap with a step.")
        return
    repeats = loop.repeats_of(options)
    step, seconds = busy_step(torch), loop.turn_seconds(options, repeats * len(NAMES))
    found = {name: [] for name in NAMES}
    lost = {}
    for done, (_, name) in enumerate(common.turns(NAMES, repeats)):
        report.progress(done, repeats * len(NAMES), f"{NAME}: {name}")
        if name in lost:
            continue
        batches, close = endless(torch, name, tokens)
        try:
            found[name].append(time_of_step(torch, batches, step, seconds))
        except Exception as problem:
            lost[name] = problem
            report.absent(NAME, name, loop.failure(problem))
        finally:
            close()
    found = {name: values for name, values in found.items() if name not in lost}
    for name, values in found.items():
        report.row(NAME, name, "step_us", "us", "less", values)
        if name != NAMES[0] and NAMES[0] in found:
            report.row(NAME, name, "exposed_us", "us", "less", exposed(values, found[NAMES[0]]))
    report.note(f"{loop.versions()}. Warm-up: 10 steps of each turn. torch: batched __getitems__, 0 workers, "
                "pin_memory.")
    report.answer(answer(found))
