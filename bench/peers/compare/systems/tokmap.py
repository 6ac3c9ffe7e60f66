# SPDX-License-Identifier: MIT
"""tokmap's own loader, through its Python package."""
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
    def __init__(self, tokens, order, rank, world, resume, remote, options):
        import tokmap
        run = tokmap.Run(data=remote["url"] if remote else tokens.name, seq_len=tokens.seq_len,
                         batch=tokens.rows * world, seed=1,
                         **{"order": {"sequential": "sequential", "own": "shuffle"}[order],
                            **(remote["settings"] if remote else {})})
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


def open(tokens, folder, *, order, rank=0, world=1, resume=None, remote=None, **options):
    return Loader(tokens, order, rank, world, resume, remote, options)
