# SPDX-License-Identifier: MIT
"""The size of a batch, and nothing else: tokens a second and the time of a batch for 1 to 256 rows, without workers."""
import in_torch
import torch_loop as loop

NAME = "batch"
SIZES = (1, 4, 16, 64, 256)


class Sized:
    """The tokens with another number of rows in a batch."""

    def __init__(self, tokens, rows):
        self._tokens, self.rows = tokens, rows

    def __getattr__(self, name):
        return getattr(self._tokens, name)


def kinds(tokens):
    return {"torch, per item": loop.TorchVariant("torch, per item", tokens, num_workers=0),
            "torch, batched": loop.TorchVariant("torch, batched __getitems__", tokens, batched=True, num_workers=0),
            "tokmap": loop.TokmapVariant("tokmap", tokens)}


def answer(rates):
    """rates: {kind: {size: tokens a second in each turn}}."""
    said = []
    for kind, by_size in rates.items():
        sizes = sorted(by_size)
        if len(sizes) < 2:
            continue
        best = loop.knee(by_size)
        if best == sizes[0]:
            said.append(f"{kind}: no size is faster than {sizes[0]} row{'s' * (sizes[0] != 1)}")
        else:
            said.append(f"{kind}: gains up to {best} rows, "
                        f"{loop.compared(by_size[best], by_size[sizes[0]], f'the rate of {sizes[0]}')}")
    return loop.sentence(said) if said else "Fewer than two sizes could be measured, so there is nothing to compare."


def measure(report, tokens, options):
    in_torch.run_table(report, NAME, tokens, options)


def run(report, tokens, options):
    loop.torch_for_tables()
    sizes = [size for size in loop.setting(options, "batch_sizes", SIZES) if size <= max(1, tokens.windows())]
    variants, place = [], {}
    for size in sizes:
        sized = Sized(tokens, size)
        for kind, variant in kinds(sized).items():
            variant.name = f"{kind}, {size} row{'s' * (size != 1)}"
            place[variant.name] = kind, size
            variants.append(variant)

    def one(variant, numbers, _, epochs=1, step=None):
        # The list of windows is as long as the number of batches times the rows of `tokens`.
        batches = len(numbers) // tokens.rows
        numbers = loop.window_order(tokens.windows(), batches * variant.tokens.rows)
        return loop.run_pass(variant, numbers, variant.tokens.rows, epochs=epochs, step=step)

    found = loop.run_variants(report, NAME, variants, tokens, options, epochs=1, step=lambda batch: None,
                              run=one)
    rates = {}
    for name, passes in found.items():
        kind, size = place[name]
        each_token = size * tokens.seq_len
        values = [each.rate * each_token for each in passes]
        rates.setdefault(kind, {})[size] = values
        report.row(NAME, name, "tokens_per_s", "tokens/s", "more", values)
        report.row(NAME, name, "batch_us", "us", "less", [1e6 / each.rate for each in passes])
        report.row(NAME, name, "row_us", "us", "less", [1e6 / each.rate / size for each in passes])
    report.note(f"{loop.versions()}. In isolation: no worker, and no step that reads the batch.")
    report.answer(answer(rates))
