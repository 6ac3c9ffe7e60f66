# SPDX-License-Identifier: MIT
"""The loss of each source, from losses of rows or tokens."""
from __future__ import annotations

import sys
from math import prod

from .errors import ArgumentError
from .opened_run import OpenedRun

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Iterable


class SourceLoss:
    """Sums losses by the source of their row, on the device where they are, and averages them.

        by_source = tokmap.SourceLoss(run)
        loader = run.loader(fields="inputs targets source_ids", ...)
        for b in loader:
            losses = cross_entropy(model(b.inputs).transpose(1, 2), b.targets, reduction="none")  # [count, seq_len]
            by_source.add(b.source_ids, losses, b.targets != tokmap.IGNORE)
            if b.step % 100 == 99 and b.last_in_step:
                wandb.log(by_source.result())  # {"loss/prose": 2.31, "loss/code": 1.07}

    run  the Run whose loader makes the batches, or the names of its sources

    add() does not wait for a GPU. result() does, and in a program that uses torch.distributed it adds up what all ranks
    of a group have, so every rank of the group must call it.
    """

    def __init__(self, run: OpenedRun | Iterable[str]) -> None:
        self.names = run.source_names if isinstance(run, OpenedRun) else tuple(run)
        self._masked = isinstance(run, OpenedRun) and any(each.dataset.info.masked for each in run.sources)
        self._sums: Any = None  # float64 [2, sources]: losses times weights, and weights

    def add(self, source_ids: Any, losses: Any, weights: Any = None) -> None:
        """Adds the losses of a batch.

        source_ids  the batch's: [count]. Or the batch, which knows its run, if loader.reload() changes the sources:
                    they are summed by name
        losses      a tensor of torch or an array of NumPy: [count], or any [count, ...] such as a loss for each token
        weights     how much each counts, in the same shape: a mask, for example, or for losses that are means of rows
                    the number of targets in each that count; None: 1 each, which is right only where all targets
                    count. A loss whose weight is 0 may be NaN
        """
        if hasattr(source_ids, "source_ids"):
            self._rename(source_ids._run.source_names)
            source_ids = source_ids.source_ids
        if source_ids is None:
            raise ArgumentError("source_ids is None: add \"source_ids\" to the loader's fields")
        count = len(source_ids)
        if losses.ndim < 1 or len(losses) != count or (weights is not None and weights.shape != losses.shape):
            raise ArgumentError(f"losses have the shape {tuple(losses.shape)}" +
                                (f" and weights {tuple(weights.shape)}" if weights is not None else "") +
                                f", but source_ids {tuple(source_ids.shape)}: pass a loss for each row or token of the "
                                f"batch (reduction=\"none\"), and weights of that shape")
        if weights is None and self._masked and losses.ndim > 1:
            raise ArgumentError("weights is missing, but some targets of the data do not count: pass weights=b.targets "
                                "!= tokmap.IGNORE, of a loader with mask_targets=True, or b.loss_mask")
        if type(losses).__module__.partition(".")[0] == "torch":
            self._add_torch(source_ids, losses.detach(), weights, count)
        else:
            self._add_numpy(source_ids, losses, weights, count)

    def _rename(self, names: tuple[str, ...]) -> None:
        """Takes the numbers of another run's sources from here on. The column of sums after all sources is always 0."""
        if names != self.names[:len(names)]:
            before, self.names = self.names, names + tuple(name for name in self.names if name not in names)
            if self._sums is not None:
                order = [before.index(name) if name in before else len(before) for name in self.names]
                self._sums = self._sums[:, order + [len(before)]]

    def _add_torch(self, source_ids: Any, losses: Any, weights: Any, count: int) -> None:
        import torch
        shape = count, prod(losses.shape[1:])
        losses = losses.double().reshape(shape)
        weights = torch.ones_like(losses) if weights is None else weights.double().reshape(shape)
        weights = weights * (source_ids >= 0).unsqueeze(1)
        losses = torch.where(weights != 0, losses * weights, 0)
        if self._sums is None:
            self._sums = torch.zeros(2, len(self.names) + 1, dtype=torch.float64, device=losses.device)
        self._sums.index_add_(1, source_ids.long().clamp(min=0), torch.stack((losses.sum(1), weights.sum(1))))

    def _add_numpy(self, source_ids: Any, losses: Any, weights: Any, count: int) -> None:
        import numpy
        shape = count, prod(losses.shape[1:])
        losses = losses.astype("float64").reshape(shape)
        weights = numpy.ones_like(losses) if weights is None else weights.astype("float64").reshape(shape)
        weights = weights * (source_ids >= 0)[:, None]
        losses = numpy.where(weights != 0, losses, 0) * weights
        if self._sums is None:
            self._sums = numpy.zeros((2, len(self.names) + 1))
        for into, each in zip(self._sums, (losses, weights)):
            into += numpy.bincount(source_ids.clip(0), each.sum(1), len(self.names) + 1)

    def result(self, prefix: str = "loss/", group: Any = None, keep: bool = False) -> dict[str, float]:
        """The mean loss of each source that had any weight since the last result(), by its name after a prefix. The sums
        begin again, unless `keep`.

        group  the ranks whose sums are added, as in torch.distributed; None: all of an initialized torch.distributed
        """
        sums = self._reduced(group)
        if not keep:
            self._sums = None
        if sums is None:
            return {}
        return {prefix + name: loss / weight for name, loss, weight in zip(self.names, *sums.tolist()) if weight}

    def _reduced(self, group: Any) -> Any:
        """The sums; where torch.distributed is in use, those of all ranks. A rank without rows adds zeros."""
        torch: Any = sys.modules.get("torch")
        if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
            return self._sums
        sums = torch.zeros(2, len(self.names) + 1, dtype=torch.float64) if self._sums is None \
            else torch.as_tensor(self._sums).clone()
        if torch.distributed.get_backend(group) == "nccl":
            sums = sums.cuda()
        torch.distributed.all_reduce(sums, group=group)
        return sums
