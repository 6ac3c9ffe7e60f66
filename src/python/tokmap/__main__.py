# SPDX-License-Identifier: MIT
"""`python -m tokmap pack ...` runs the command tokmap that belongs to this package."""
from _tokmap_commands import tokmap

if __name__ == "__main__":
    tokmap()
