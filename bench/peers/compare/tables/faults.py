# SPDX-License-Identifier: MIT
"""The table of `tokmap-bench faults`: see faults/matrix.py."""
from faults.matrix import add_arguments, measure  # noqa: F401
