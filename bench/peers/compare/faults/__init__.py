# SPDX-License-Identifier: MIT
"""The fault matrix of `tokmap-bench faults`: matrix.py has the faults, child.py runs the loaders, fuse.py and shim.c make
reads fail, places.py counts rows, ours.py drives tokmap."""
