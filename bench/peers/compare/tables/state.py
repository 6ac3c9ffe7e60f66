# SPDX-License-Identifier: MIT
"""What a checkpoint of the loader costs: a state_dict() every 100, 10, and 1 steps, and none.

A state is taken, pickled, and dropped; writing it to storage costs the same for every loader that is this small, and
is left out. Before it is timed, the state of each row is tested: a new loader that continues from it must deliver the
batch that the first loader delivers next.
"""
import itertools
import pickle
import time

import in_torch
import measure as common
import torch_loop as loop

NAME = "state"
EVERY = (0, 100, 10, 1)  # 0: never


class Stateful(loop.TorchVariant):
    """StatefulDataLoader of torchdata, which takes a state from its workers every snapshot_every_n_steps batches."""

    def open(self, numbers):
        self.loader = loop.needed("torchdata.stateful_dataloader").StatefulDataLoader
        return super().open(numbers)

    def resume(self, numbers, state):
        found = self.open(numbers)
        found.load_state_dict(state)
        return found


class Ours(loop.TokmapVariant):
    def resume(self, numbers, state):
        self.open(numbers)
        self.made.load_state_dict(state)
        return self


def name_of(kind, every):
    if not every:
        return f"{kind}, none"
    return f"{kind}, every {every} steps" if every > 1 else f"{kind}, every step"


def variants(tokens, workers):
    """{name: (variant, kind, every)}."""
    found = {}
    for every in EVERY:
        steps = {"snapshot_every_n_steps": every or 10 ** 9}
        for kind, make in (
                ("StatefulDataLoader, 0 workers",
                 lambda name: Stateful(name, tokens, batched=True, num_workers=0, **steps)),
                (f"StatefulDataLoader, {workers} workers",
                 lambda name: Stateful(name, tokens, batched=True, num_workers=workers, prefetch_factor=2, **steps)),
                ("tokmap", lambda name: Ours(name, tokens))):
            name = name_of(kind, every)
            found[name] = make(name), kind, every
    return found


def resumes(variant, tokens, every):
    """Whether a loader that continues from a state delivers the next batch: (verdict, text)."""
    import torch
    numbers = loop.window_order(tokens.windows(), (max(1, every) + 8) * tokens.rows, seed=4)
    try:
        loader = variant.open(numbers)
        batches = iter(loader)
        taken = every or 1
        for _ in itertools.islice(batches, taken):
            pass
        state = pickle.loads(pickle.dumps(loader.state_dict()))
        wanted = [each.clone() for each in loop.pair(next(batches))]
        del batches, loader
        variant.close()
        found = loop.pair(next(iter(variant.resume(numbers, state))))
        if all(torch.equal(one, other) for one, other in zip(found, wanted)):
            return "yes", f"a state after {taken} batches, pickled, continues with batch {taken + 1}"
        return "no", f"a state after {taken} batches continues with another batch than batch {taken + 1}"
    finally:
        variant.close()


def run_steps(variant, every, numbers, rows, epochs=1, step=None):
    """One pass that takes a state every `every` steps. found.states: the ns that each took; found.bytes: of the
    last."""
    clock, found, states, state = time.perf_counter, loop.Pass(), [], None
    step = step or loop.step_on()
    cpu, began = common.own_cpu_seconds(), clock()
    try:
        loader = variant.open(numbers)
        for number, batch in enumerate(itertools.islice(loader, len(numbers) // rows)):
            if not number:
                first = clock()
                found.first.append(first - began)
                found.last.append(0.0)
            step(batch)
            if every and (number + 1) % every == 0:
                before = time.perf_counter_ns()
                state = pickle.dumps(loader.state_dict())
                states.append(time.perf_counter_ns() - before)
        found.after_first, found.batches = clock() - first, number + 1
    finally:
        variant.close()
    found.cpu, found.wall = common.own_cpu_seconds() - cpu, clock() - began
    found.states, found.bytes = states, len(state) if state else 0
    return found


def added(passes, plain):
    """The us that states add to a step, in each turn."""
    return [1e6 / one.rate - 1e6 / other.rate for one, other in zip(passes, plain)]


def answer(kinds, rates):
    """rates: {(kind, every): rates of the turns}."""
    said = []
    for kind in kinds:
        if (kind, 0) in rates and (kind, 1) in rates:
            said.append(f"{kind}: with a state at every step, "
                        f"{loop.compared(rates[kind, 1], rates[kind, 0], 'the rate without states')}")
    return loop.sentence(said) if said else "No row could be measured, so there is nothing to compare."


def measure(report, tokens, options):
    in_torch.run_table(report, NAME, tokens, options, more=("torchdata",))


def run(report, tokens, options):
    loop.torch_for_tables()
    workers = int(loop.setting(options, "workers", 0) or min(2, loop.usable_cores()))
    rows = variants(tokens, workers)
    for name, (variant, kind, every) in list(rows.items()):
        try:
            verdict, text = resumes(variant, tokens, every)
            if every:
                report.equal(NAME, name, verdict, text)
        except Exception as problem:
            if not every:
                report.absent(NAME, kind, problem if isinstance(problem, loop.Absent) else loop.failure(problem))
            del rows[name]

    def one(variant, numbers, rows_of_batch, epochs=1, step=None):
        return run_steps(variant, rows[variant.name][2], numbers, rows_of_batch, epochs, step)

    found = loop.run_variants(report, NAME, [each[0] for each in rows.values()], tokens, options, epochs=1, run=one,
                              checked=False, whole=20.0)
    rates, kinds = {}, []
    for name, passes in found.items():
        _, kind, every = rows[name]
        kinds += [kind] if kind not in kinds else []
        rates[kind, every] = [each.rate for each in passes]
        report.row(NAME, name, "batches_per_s", "batches/s", "more", rates[kind, every])
        if not every:
            continue
        plain = name_of(kind, 0)
        if plain in found:
            report.row(NAME, name, "added_us_per_step", "us", "less", added(passes, found[plain]))
        states = [each.states for each in passes if each.states]
        report.row(NAME, name, "state_p50_us", "us", "less", [loop.median(each) / 1e3 for each in states])
        report.row(NAME, name, "state_max_us", "us", "less", [max(each) / 1e3 for each in states])
        report.row(NAME, name, "state_bytes", "bytes", "less", [each.bytes for each in passes if each.states])
    report.note(f"{loop.versions()}. state_p50_us is the time of state_dict() and pickle.dumps() in the loop. With "
                f"workers, a state is also sent along with batches, which only added_us_per_step contains.")
    report.answer(answer(kinds, rates))
