# SPDX-License-Identifier: MIT
"""The tables of `tokmap-bench compare`, one module each, with a function measure(report, tokens, options)."""
