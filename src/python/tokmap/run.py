"""Runs, with the methods that read them: the class that programs use."""
from __future__ import annotations

from .loader import Loader
from .opened_run import OpenedRun
from .run_dataset import RunDataset

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping

    from .hints import Device, DType, Framework


class Run(OpenedRun):
    __doc__ = OpenedRun.__doc__

    def loader(self, *, rank: int | None = None, world: int | None = None, rows: int = 0,
               fields: str | Iterable[str] = "inputs targets", dtype: DType | None = None,
               device: Device | None = "cpu", framework: Framework | None = None, mask_targets: bool = False,
               resume: Mapping[str, Any] | str | None = None, threads: int = 1, ring_bytes: int = 0,
               read_ahead: int = 0, unchecked: bool = False, drop_behind: bool = False) -> Loader:
        """Opens a loader of this run for one rank. The arguments are those of tokmap.Loader."""
        return Loader(self, rank=rank, world=world, rows=rows, fields=fields, dtype=dtype, device=device,
                      framework=framework, mask_targets=mask_targets, resume=resume, threads=threads,
                      ring_bytes=ring_bytes, read_ahead=read_ahead, unchecked=unchecked, drop_behind=drop_behind)

    def dataset(self, *, rank: int | None = None, world: int | None = None,
                fields: str | Iterable[str] = "inputs targets", dtype: DType | None = None,
                framework: Framework | None = None, mask_targets: bool = False, unchecked: bool = False) -> RunDataset:
        """The run's rows as a map-style dataset for torch's DataLoader. The arguments are those of
        tokmap.RunDataset."""
        return RunDataset(self, rank=rank, world=world, fields=fields, dtype=dtype, framework=framework,
                          mask_targets=mask_targets, unchecked=unchecked)

    def __reduce__(self) -> tuple[Any, ...]:
        # The cursor of step 1 covers everything that decides the order, so a different run under the same name is
        # detected.
        self._open()
        past = self.cursor(1) if self.info.steps is None or self.info.steps > 0 else self.cursor(0)
        return (_rebuild, (self._description, past))


def _rebuild(description: dict[str, Any], past: str) -> Run:
    if "ordering" in description:  # pickled by a version before order had its name
        description = {("order" if name == "ordering" else name): value for name, value in description.items()}
    run = Run(description["path"]) if "path" in description else Run(**description)
    run.check(past)
    return run
