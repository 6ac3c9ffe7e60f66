# SPDX-License-Identifier: MIT
"""Runs, with the methods that read them: the class that programs use."""
from __future__ import annotations

import os
import weakref
from ctypes import byref, sizeof

from . import _library as c
from ._library import check, did_you_mean, lib
from .errors import ArgumentError, error_of
from .handles import RunHandle, new
from .loader import Loader
from .opened_run import OpenedRun
from .run_dataset import RunDataset
from .run_text import change_of

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    from typing_extensions import Concatenate, ParamSpec

    from .hints import Reading, Weights

    Arguments = ParamSpec("Arguments")
    Opened = TypeVar("Opened")


#: What takes the place of arguments of torch's DataLoader.
_INSTEAD = {
    "batch_size": "the run has the rows of a step, tokmap.Run(batch=); rows= of loader() are the most of one call",
    "num_workers": "a loader works ahead by itself, with threads=1; workers are for a DataLoader over run.dataset()",
    "shuffle": "the run has the order of all rows: pass order= and seed= to tokmap.Run()",
    "drop_last": "the run says how it ends: pass tail= to tokmap.Run()"}


def _opener(kind: Callable[Concatenate[Any, Arguments], Opened]) -> Callable[Concatenate[Any, Arguments], Opened]:
    """A method that opens a reader of a run. Its arguments are those of the class, without the run."""
    def opened(run: Any, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Opened:
        known: Any = kind.__init__.__kwdefaults__
        for name in options.keys() - known.keys():
            instead = f"; {_INSTEAD[name]}" if name in _INSTEAD else did_you_mean(name, known)
            raise error_of("ERROR_ARGUMENT", f"{opened.__name__}() has no argument {name!r}{instead}", TypeError)
        return kind(run, *arguments, **options)
    opened.__name__ = {"Loader": "loader", "RunDataset": "dataset"}[kind.__name__]
    opened.__qualname__, opened.__doc__ = f"Run.{opened.__name__}", kind.__doc__
    opened.__wrapped__ = kind  # type: ignore[attr-defined]  # for help() and inspect.signature()
    return opened


class Run(OpenedRun):
    __doc__ = OpenedRun.__doc__

    if not TYPE_CHECKING:  # tools that read types know the arguments from __init__()
        def __new__(cls, *arguments, **named):
            """Refuses unknown arguments in words of this package. A class of the program may have more of them."""
            known = OpenedRun.__init__.__kwdefaults__
            passed = arguments[0] if arguments and hasattr(arguments[0], "keys") else named
            for name in passed if cls.__init__ is OpenedRun.__init__ else ():
                if name not in known and name != "path":
                    raise error_of("ERROR_ARGUMENT",
                                   f"Run() has no argument {name!r}{did_you_mean(name, known)}", TypeError)
            return super().__new__(cls)

        __new__.__wrapped__ = OpenedRun.__init__  # for help() and inspect.signature()

    loader = _opener(Loader)
    dataset = _opener(RunDataset)

    def evaluation(self, source: str | None = None, *, part: str | None = None, batch: int | None = None,
                   seq_len: int | None = None, lookahead: int | None = None, stride: int | None = None,
                   pad: int | None = None, steps: int | None = None, trained: bool = False,
                   reading: Reading = "auto") -> Run:
        """A run that evaluates on what this run leaves out: windows in the order of the dataset, one pass, padded at its
        end, so that every target counts exactly once and every rank makes the same calls with the same shapes.

            run = tokmap.Run(data="data/web.train", validation={"val": "data/web.val"}, seq_len=2048, batch=512)
            run.evaluation(batch=32)                       # data/web.val

        What it reads is compared with what this run trains on, by the content of shards and the tokens of each. If they
        have any in common, it is an ArgumentError.

        source     the name of one validation set or source; None: all validation sets, or, of a run without any, all
                   sources of which the run leaves documents out
        part       a part of the source's dataset, such as "docs=99..100%"; None: a validation set as it is, or what the
                   #docs= of a source leaves out
        batch      rows of a global batch; None: that of this run's first phase
        seq_len    tokens of a row; None: the largest of this run
        lookahead  tokens that a window has beyond seq_len; None: 1, whatever this run has
        stride     less than seq_len: windows overlap, and only the last `stride` targets of each count (all of the
                   first), which is perplexity with a sliding window
        pad        the id of padding; None: that of this run
        steps      end after this many steps; None: after one pass
        trained    True: also data that this run trains on may be read; otherwise it is refused
        reading    "auto", "mapped", or "pread"
        """
        options = c.EvaluationOptions(
            sizeof(c.EvaluationOptions), None if source is None else c.text_argument(source, "source"),
            None if part is None else c.text_argument(part, "part"),
            0 if seq_len is None else c.number(seq_len, "seq_len", 1),
            c.DEFAULT if lookahead is None else c.number(lookahead, "lookahead"),
            0 if stride is None else c.number(stride, "stride", 1), 0 if batch is None else c.number(batch, "batch", 1),
            c.FOREVER if steps is None else c.number(steps, "steps", 1),
            c.DEFAULT if pad is None else c.number(pad, "pad"), bool(trained),
            c.choice(reading, c.READINGS, "reading"))
        handle, error = new(RunHandle), c.Error()
        status = lib.tokmap_run_evaluation(byref(handle), self._open(), byref(options), byref(error))
        if status == c.NOT_FOUND and not error.path:  # not a file, but what the arguments or the run should name
            raise error_of("ERROR_ARGUMENT", error.message.decode("utf-8", "replace"))
        check(status, error)
        return self._derived(f"evaluation of {self.name}", handle, reading)

    def with_phase(self, step: int, *, weights: Weights | None = None, batch: int | None = None,
                   seq_len: int | None = None) -> Run:
        """The run that continues this one with other weights, rows of a global batch, or tokens of a row from a step on.
        All steps before it are the same, and later phases stay; a phase that begins with the step is replaced. A step
        that the run skips stands for the next one that it does not.

            if b.last_in_step and b.step % 1000 == 999:  # every rank makes the same change
                run = run.with_phase(b.step + 1, weights={"prose": 0.6, "code": 0.4})
                loader.reload(run)
                save(run.text, loader.state_dict())
        """
        change = change_of(weights, batch, seq_len)
        if not change:
            raise ArgumentError("with_phase() has nothing to change: pass weights, batch, or seq_len")
        handle, error = new(RunHandle), c.Error()
        check(lib.tokmap_run_continue(byref(handle), self._open(), c.number(step, "step"),
                                      c.text_argument(change, "weights"), byref(error)), error)
        return self._derived(self.name, handle, self._description.get("reading", "auto"))

    def _derived(self, name: str, handle: RunHandle, reading: Any) -> Run:
        run = type(self).__new__(type(self))
        run.name = name
        run._handle, run._loaders, run._views = None, weakref.WeakSet(), weakref.WeakSet()
        run._opened(handle)
        run._description = {"text": run.text, "folder": os.getcwd(), "reading": reading}
        return run

    def __reduce__(self) -> tuple[Any, ...]:
        # The cursor of step 1 covers everything that decides the order, so a different run under the same name is
        # detected.
        self._open()
        past = self.cursor(1) if self.info.steps is None or self.info.steps > 0 else self.cursor(0)
        return (_rebuild, (self._description, past))


def _rebuild(description: dict[str, Any], past: str) -> Run:
    run = Run(description["path"]) if "path" in description else Run(**description)
    run.check(past)
    return run
