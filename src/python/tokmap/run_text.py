# SPDX-License-Identifier: MIT
"""The text of a run file, from Python values: what tokmap.Run does with sources, weights, phases, and validation."""
from __future__ import annotations

import os
from decimal import Decimal

from .errors import ArgumentError

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping

    from .hints import Order, Path, Phase, SourceOptions, Weights

_DECIMALS = 9  # of a share in a run file


def _word(value: Path, what: str) -> str:
    """A word of a run file, in quotes where it needs them."""
    text = os.fspath(value)
    for character in text:
        if character < " " and character != "\t":
            raise ArgumentError(f"{what} is {text!r}, but a run cannot have a control character in a name: rename it")
    if text == "" or text[0] in "\"#" or " " in text or "\t" in text:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text


def _number(value: Any, what: str) -> str:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentError(f"{what} is {value!r}, but it must be a whole number")
    return str(value.__index__())


def _mapping(value: Any, what: str, example: str) -> Mapping[str, Any]:
    if not hasattr(value, "keys"):
        raise ArgumentError(f"{what} is {value!r}, but it must be a dict, such as {example}")
    found: Mapping[str, Any] = value
    return found


def _unknown(given: Iterable[str], known: tuple[str, ...], what: str) -> None:
    for name in given:
        if name not in known:
            raise ArgumentError(f"{what} has the unknown key {name!r}: the keys are {', '.join(known)}")


def _share(value: Any, name: str) -> str:
    """A weight as a run file has it. A float is rounded to the digits that a share may have."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not (hasattr(value, "__index__") or hasattr(value, "__float__")):
        raise ArgumentError(f"the weight of {name!r} is {value!r}, but it must be a number, 'natural', or "
                            f"'tokens=300B'")
    if hasattr(value, "__index__"):
        exact = Decimal(value.__index__())
    elif isinstance(value, Decimal):
        exact = value
    else:
        exact = Decimal(repr(float(value)))
    if not exact.is_finite() or exact < 0:
        raise ArgumentError(f"the weight of {name!r} is {value!r}, but it must be 0 or more")
    text = f"{exact:.{_DECIMALS}f}"
    if exact and not float(text):
        raise ArgumentError(f"the weight of {name!r} is {value!r}, which is less than the smallest share, "
                            f"0.{'0' * (_DECIMALS - 1)}1: multiply all weights by the same number")
    return text.rstrip("0").rstrip(".")


def _weights(weights: Weights) -> str:
    if isinstance(weights, str):
        if weights != "natural":
            raise ArgumentError(f"weights is {weights!r}, but it must be 'natural' or a dict of weights, such as "
                                f"{{'web': 0.8, 'wiki': 0.2}}")
        return "natural"
    found = _mapping(weights, "weights", "{'web': 0.8, 'wiki': 0.2}")
    return " ".join(f"{_word(name, 'the name of a source')} {_word(_share(value, name), 'a weight')}"
                    for name, value in found.items())


def _source(name: str, value: Path | SourceOptions) -> str:
    options: Mapping[str, Any] = {"data": value} if isinstance(value, (str, os.PathLike)) else \
        _mapping(value, f"source {name!r}", "dict(data='data/web', epochs=4)")
    _unknown(options, ("data", "epochs", "plan"), f"source {name!r}")
    if "data" not in options:
        raise ArgumentError(f"source {name!r} has no key 'data': set it to the name of its dataset")
    line = f"source {_word(name, 'the name of a source')} {_word(options['data'], f'the dataset of {name!r}')}"
    if options.get("plan") is not None:
        line += f" plan {_word(options['plan'], f'the plan of {name!r}')}"
    if options.get("epochs") is not None:
        line += f" epochs<={_number(options['epochs'], f'epochs of source {name!r}')}"
    return line


def _phase(phase: Phase) -> str:
    found = _mapping(phase, "a phase", "dict(step=1000, weights={'web': 1})")
    _unknown(found, ("step", "weights", "batch", "seq_len"), "a phase")
    if "step" not in found:
        raise ArgumentError(f"the phase {phase!r} has no key 'step': set it to the step at which the phase begins")
    change = change_of(found.get("weights"), found.get("batch"), found.get("seq_len"))
    return f"phase {_number(found['step'], 'step of a phase')} {change}".rstrip()


def change_of(weights: Weights | None, batch: int | None, seq_len: int | None) -> str:
    """What a phase line says after its step."""
    words = [] if weights is None else [_weights(weights)]
    words += [f"{name} {_number(number, f'{name} of a phase')}" for name, number in (("batch", batch),
                                                                                     ("seq_len", seq_len))
              if number is not None]
    return " ".join(words)


def _order(order: Order) -> str:
    if isinstance(order, str):
        if order in ("shuffle", "sequential"):
            return order
    elif len(order) == 3 and order[0] in ("blocks", "even"):
        return f"{order[0]} {_number(order[1], 'W of order')} {_number(order[2], 'SPAN of order')}"
    raise ArgumentError(f"order is {order!r}, but it must be 'shuffle', 'sequential', ('blocks', W, SPAN), "
                        "or ('even', W, SPAN)")


def text_of(sources: Mapping[str, Path | SourceOptions], *, seq_len: int, batch: int, seed: int, lookahead: int,
            order: Order, weights: Weights | None, phases: Iterable[Phase] | None, stride: int | None,
            tail: str | None, pad: int | None, steps: int | None, passes: int | str | None,
            skip: Iterable[tuple[int, int]] | None, validation: Mapping[str, Path] | None,
            exclude: Iterable[tuple[Path, int]] | None) -> str:
    """The text of the run file that has these values."""
    lines = [f"seq_len {_number(seq_len, 'seq_len')}", f"lookahead {_number(lookahead, 'lookahead')}",
             f"batch {_number(batch, 'batch')}", f"seed {_number(seed, 'seed')}", f"order {_order(order)}"]
    if stride is not None:
        lines.append(f"stride {_number(stride, 'stride')}")
    if tail is not None:
        lines.append(f"tail {_word(tail, 'tail')}")
    if pad is not None:
        lines.append(f"pad {_number(pad, 'pad')}")
    found = _mapping(sources, "sources", "{'web': 'data/web', 'wiki': 'data/wiki'}")
    lines += [_source(name, value) for name, value in found.items()]
    if validation is not None:
        held_out = _mapping(validation, "validation", "{'val': 'data/web.val'}")
        for name, value in held_out.items():
            if not isinstance(value, (str, os.PathLike)):
                raise ArgumentError(f"validation set {name!r} is {value!r}, but it must be the name of a dataset")
            lines.append(f"validation {_word(name, 'the name of a validation set')} "
                         f"{_word(value, f'the dataset of {name!r}')}")
    later = list(phases or ())
    if weights is not None:
        if any(hasattr(each, "keys") and each.get("step") == 0 for each in later):
            raise ArgumentError("weights are those of step 0, but phases also has a phase with step 0: pass one of the "
                                "two")
        lines.append(f"phase 0 {_weights(weights)}")
    elif len(found) > 1 and not later:
        raise ArgumentError("a run of several sources needs weights: pass weights='natural', or a number for each "
                            "source, such as weights={'web': 0.8, 'wiki': 0.2}")
    lines += [_phase(each) for each in later]
    if steps is not None:
        lines.append(f"steps {_number(steps, 'steps')}")
    if isinstance(passes, str):
        words = passes.split()
        if len(words) not in (1, 3):
            raise ArgumentError(f"passes is {passes!r}, but it must be a number, or a number of a source, such as "
                                f"'2 of web'")
        lines.append("passes " + " ".join(_word(word, "passes") for word in words))
    elif passes is not None:
        lines.append(f"passes {_number(passes, 'passes')}")
    for first, end in skip or ():
        lines.append(f"skip {_number(first, 'the first step of skip')}..{_number(end, 'the end of skip')}")
    for each in [exclude] if isinstance(exclude, str) else exclude or ():
        if not isinstance(each, (tuple, list)) or len(each) != 2:
            raise ArgumentError(f"exclude has {each!r}, but it must have pairs of a list and a step, such as "
                                f"('takedown.txt', 12000)")
        lines.append(f"exclude {_word(each[0], 'a list of exclude')} from {_number(each[1], 'a step of exclude')}")
    return "\n".join(lines) + "\n"
