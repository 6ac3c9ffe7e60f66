# SPDX-License-Identifier: MIT
"""tokmap's library in a C program: a copy of tokmap-bench that does nothing else. What its times differ from those of
the row `tokmap` is what Python adds."""
import os

NAME = "tokmap_c"
PACKAGES = []
ROWS = {"tokmap in C": {}}
ORDERS = ("sequential", "own")


def command(options, tokens):
    return [os.path.join(os.path.dirname(options.tokmap), "tokmap-bench"), "--child", "loader", "compare",
            "--seq-len", str(tokens.seq_len), "--rows", str(tokens.rows), tokens.name]
