"""tokmap's map-style dataset in a DataLoader of torch, for programs that keep their sampler and their workers."""
import pickle

from systems import _common

NAME = "tokmap_dataset"
PACKAGES = ["numpy", "torch"]
ROWS = {"tokmap Dataset in torch/0": {}, "tokmap Dataset in torch/2+persistent": {"workers": 2}}
ORDERS = ("sequential", "list")


def about():
    import tokmap
    import torch
    return (f"tokmap {tokmap.__version__}, torch {torch.__version__}; run.dataset() with int64 tensors, a batch "
            f"sampler, collate_fn=tokmap.collate")


class Loader(_common.Epochs):
    def __init__(self, tokens, order, rank, world, resume, workers):
        import tokmap
        import torch
        # With batches of one row the dataset has every window; the sampler makes the batches.
        run = tokmap.Run(data=tokens.name, seq_len=tokens.seq_len, batch=1, order="sequential", passes=1)
        self.dataset, self._workers = run.dataset(dtype=torch.int64), workers
        self._stride = tokens.rows * world
        self._sampler = _common.Batches(_common.order_of(tokens, order), tokens.rows, rank, world)
        super().__init__(torch.utils.data.DataLoader(self.dataset, batch_sampler=self._sampler, num_workers=workers,
                                                     persistent_workers=bool(workers), collate_fn=tokmap.collate),
                         resume or 0)

    def begin(self):
        self._sampler.position = self.batches * self._stride

    def next(self):
        batch = self.take()
        return batch.inputs, batch.targets

    def state(self):
        return self.batches

    def pickled(self):
        return len(pickle.dumps(self.dataset)) if self._workers else None


def open(tokens, folder, *, order, rank=0, world=1, resume=None, workers=0):
    return Loader(tokens, order, rank, world, resume, workers)
