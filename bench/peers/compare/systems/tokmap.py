# SPDX-License-Identifier: MIT
"""tokmap's own loader, through its Python package."""
import os

NAME = "tokmap"
PACKAGES = ["numpy"]
OPTIONAL = True
ROWS = {"tokmap": {}}
ORDERS = ("sequential", "own")


def about():
    import tokmap
    return (f"tokmap {tokmap.__version__}; {framework()}, int64, fields inputs and targets, one producer thread, "
            f"next(out=...) into arrays that are used again")


def framework():
    """NumPy where it is installed, else tokmap's own arrays."""
    try:
        import numpy  # noqa: F401
        return "numpy"
    except ImportError:
        return "dlpack"


class Loader:
    def __init__(self, tokens, order, rank, world, resume, url, settings, options):
        import tokmap
        run = tokmap.Run(data=url or tokens.name, seq_len=tokens.seq_len, batch=tokens.rows * world, seed=1,
                         **{"order": {"sequential": "sequential", "own": "shuffle"}[order], **settings})
        self._loader = run.loader(rank=rank, world=world, dtype="int64", resume=resume,
                                  **{"framework": framework(), **options})
        self._out = self._loader.out()
        self._inputs, self._targets = self._out["inputs"], self._out["targets"]

    def next(self):
        self._loader.next(out=self._out)
        return self._inputs, self._targets

    def state(self):
        return self._loader.state_dict()

    def close(self):
        self._loader.close()


def open(tokens, folder, *, order, rank=0, world=1, resume=None, remote=None, settings=None, verify=False, trace=None,
         **options):
    """settings: of the run; verify: first compare the tokens with their hashes; trace: its name in the folder."""
    if verify:
        import tokmap
        with tokmap.Dataset(tokens.name) as dataset:
            dataset.verify(threads=1)
    if trace:
        options["trace"] = os.path.join(folder, f"{trace}.{rank}")
    where = remote or {"url": None, "settings": settings or {}}
    return Loader(tokens, order, rank, world, resume, where["url"], where["settings"], options)
