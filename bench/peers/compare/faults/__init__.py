# SPDX-License-Identifier: MIT
"""The fault matrix of `tokmap-bench faults`: matrix.py has the faults, child.py runs the loaders, fuse.py makes reads
fail, places.py counts rows."""
