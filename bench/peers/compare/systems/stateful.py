# SPDX-License-Identifier: MIT
"""StatefulDataLoader of torchdata, over the same Dataset as torch's own DataLoader."""
from report import Absent
from systems import _common, torch as plain

NAME = "stateful"
PACKAGES = ["numpy", "torch", "torchdata"]
ORDERS = ("sequential", "list")
ROWS = {"StatefulDataLoader/0": {}, "StatefulDataLoader/2+persistent": {"workers": 2, "persistent": True}}


def about():
    import torch
    import torchdata
    return (f"torchdata {torchdata.__version__}, torch {torch.__version__}; StatefulDataLoader/W has W workers; the "
            f"batch sampler has state_dict(), as its documentation advises, so that resuming does not draw all rows "
            f"again; a snapshot every step, which is the default")


class Sampler(_common.Batches):
    """A batch sampler whose iterators can be saved and continued."""

    def __iter__(self):
        return Pass(self)


class Pass:
    """One pass over the sampler: the rest of an epoch."""

    def __init__(self, sampler):
        self.sampler, self.done, self.left = sampler, 0, len(sampler)

    def __iter__(self):
        return self

    def __next__(self):
        if self.done == self.left:
            raise StopIteration
        position = self.sampler.position + self.done * self.sampler.rows * self.sampler.world
        self.done += 1
        return self.sampler.at(position)

    def state_dict(self):
        return {"position": self.sampler.position, "done": self.done}

    def load_state_dict(self, state):
        self.sampler.position, self.done = state["position"], state["done"]


class Loader(plain.Loader):
    """The state of an epoch is that of the StatefulDataLoader."""

    @staticmethod
    def new_sampler(order, rows, rank, world):
        return Sampler(order, rows, rank, world)

    def restore(self, resume):
        if resume is not None:
            self.batches = resume["batches"]
            self._loader.load_state_dict(resume["loader"])
            self._iterator = iter(self._loader)

    def state(self):
        return {"batches": self.batches, "loader": self._loader.state_dict()}


def open(tokens, folder, *, order, rank=0, world=1, resume=None, mode="item", workers=0, persistent=False, pin=False,
         random=False, **more):
    import torch
    from torchdata.stateful_dataloader import StatefulDataLoader
    if pin and not torch.cuda.is_available():
        raise Absent("torch pins memory only where there is a CUDA device")
    return Loader(tokens, order, rank, world, resume, mode, workers, persistent, pin, random, StatefulDataLoader, more)
