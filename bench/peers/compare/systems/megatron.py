# SPDX-License-Identifier: MIT
"""Megatron-core's GPTDataset, through the DataLoader of torch, as its training programs use it."""
import os

from systems import _common

NAME = "megatron"
PACKAGES = ["numpy", "torch", "megatron-core", "tqdm"]  # it imports tqdm and does not require it
ORDERS = ("own",)
STITCHED = True  # a row continues in another document, which is not the next one in the file
ROWS = {
    "Megatron GPTDataset/0": {},
    "Megatron GPTDataset/0, no mmap": {"mapped": False},
    "Megatron GPTDataset/2+persistent": {"workers": 2},
}
LONGEST = 1 << 30  # tokens of a sequence, whose length has 31 bits


def about():
    import megatron.core
    return (f"megatron-core {megatron.core.__version__}; mmap_bin_files or not, create_attention_mask=False (with the "
            "default, True, it makes a mask of S x S for each row), nothing reset at the end of documents; the index "
            "of one epoch, made when it is first opened and cached; windows over the shuffled documents overlap by "
            "one token; each row also has loss_mask and position_ids, which cannot be left out; the state is the "
            "number of consumed samples, as in its training loop")


def ends_of(tokens):
    """The ends of the documents: after each `eod`, or of the whole file if there is none."""
    import numpy
    ends, data = [], tokens.array()
    if tokens.eod is not None:
        for at in range(0, len(data), 1 << 24):
            ends.append(numpy.flatnonzero(data[at:at + (1 << 24)] == tokens.eod) + at + 1)
    ends.append(numpy.arange(LONGEST, len(data) + LONGEST, LONGEST).clip(max=len(data)))
    return numpy.unique(numpy.concatenate(ends))


def convert(tokens, folder):
    def write(new):
        import numpy
        from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
        prefix, data = os.path.join(new, "tokens"), tokens.array()
        builder = IndexedDatasetBuilder(prefix + ".bin", dtype=numpy.uint16 if tokens.width == 2 else numpy.int32)
        first = 0
        for end in ends_of(tokens).tolist():
            builder.add_document(data[first:end], [end - first])
            first = end
        builder.finalize(prefix + ".idx")
    _common.convert(tokens, folder, write)


class Tokenizer:
    """What GPTDataset asks a tokenizer for."""

    def __init__(self, tokens):
        self.vocab_size = 1 << 16 if tokens.width == 2 else 1 << 31
        self.eod = tokens.eod if tokens.eod is not None else self.vocab_size - 1
        self.pad = -1
        self.special_tokens_dict = {"eos_token": self.eod}
        self.unique_identifiers = {"class": "Tokenizer", "eod": self.eod}


class Loader(_common.Epochs):
    def __init__(self, tokens, path, rank, world, resume, workers, mapped):
        import numpy
        import torch
        from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
        from megatron.core.datasets.indexed_dataset import IndexedDataset
        from megatron.core.datasets.utils import Split
        prefix = os.path.join(path, "tokens")
        config = GPTDatasetConfig(random_seed=1234, sequence_length=tokens.seq_len, blend=([prefix], None),
                                  split="1,0,0", path_to_cache=os.path.join(path, "cache"),
                                  tokenizer=Tokenizer(tokens), reset_position_ids=False, reset_attention_mask=False,
                                  eod_mask_loss=False, create_attention_mask=False,
                                  mmap_bin_files=mapped)
        documents = IndexedDataset(prefix, mmap=config.mmap_bin_files)
        numbers = numpy.arange(len(documents.sequence_lengths), dtype=numpy.int32)
        data = GPTDataset(documents, prefix, numbers, None, Split.train, config)
        self._stride = tokens.rows * world
        self._sampler = _common.Batches(range(len(data)), tokens.rows, rank, world)
        more = {"num_workers": workers, "persistent_workers": True} if workers else {}
        loader = torch.utils.data.DataLoader(data, batch_sampler=self._sampler, pin_memory=torch.cuda.is_available(),
                                             **more)
        super().__init__(loader, (resume or 0) // self._stride)

    def begin(self):
        self._sampler.position = self.batches * self._stride

    def next(self):
        batch = self.take()
        return batch["tokens"], batch["labels"]

    def state(self):
        return self.batches * self._stride


def open(tokens, folder, *, order, rank=0, world=1, resume=None, workers=0, mapped=True):
    return Loader(tokens, _common.place(tokens, folder), rank, world, resume, workers, mapped)
