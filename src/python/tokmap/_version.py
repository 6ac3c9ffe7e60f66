# SPDX-License-Identifier: MIT
"""The version of this package, which is the library's: a test compares it with tokmap.h."""
__version__ = "0.2.0"
