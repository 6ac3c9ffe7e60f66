# SPDX-License-Identifier: MIT
"""Runs a table in the Python that has torch, which is seldom the one that runs compare.

measure() of a table calls run_table(), which starts this file in that Python. There, run() of the same table does the
work, and its lines come back through the pipe of driver.Child.
"""
import argparse
import importlib
import json
import os
import sys

import driver
import setup
from report import Absent, Report
from tokens import Tokens

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ("numpy", "torch")
WAIT = 300  # seconds without a line from a table


def run_table(report, table, tokens, options):
    """Runs the function run(report, tokens, options) of a table in a process of the Python that has torch, whose
    lines it reports. A Python that cannot be had is an absent row with the reason."""
    if tokens is None:
        raise Absent(f"the table {table} needs --data and --bin")
    try:
        python = setup.Setup(options, report).python_with(list(PACKAGES), "torch")
        with driver.Child(options, [python, os.path.join(HERE, "in_torch.py"), table]) as child:
            child.send("call", tokens=tokens.to_json(), options=vars(options))
            while True:
                found = child.answer(WAIT)
                if "line" not in found:
                    return
                kind, fields = found["line"]
                getattr(report, kind)(*fields)
    except Absent as problem:
        report.absent(table, "torch", problem)
        report.answer("Nothing could be measured; the row says why.")


class _Lines:
    """What stands for the Report in the process of a table: sends each call to the parent."""

    def __init__(self, descriptor):
        self._descriptor = descriptor

    def __getattr__(self, kind):
        if not hasattr(Report, kind):
            raise AttributeError(kind)

        def send(*fields):
            fields = [str(field) if isinstance(field, Exception) else field for field in fields]
            line = json.dumps({"line": [kind, fields]}).encode() + b"\n"
            while line:
                line = line[os.write(self._descriptor, line):]
        return send


def main():
    """The main program of that process: the last argument is the descriptor of the answers."""
    lines, table = _Lines(int(sys.argv[-1])), importlib.import_module(f"tables.{sys.argv[1]}")

    def call(tokens, options):
        table.run(lines, Tokens.from_json(tokens), argparse.Namespace(**options))
        return {"done": True}
    driver.answer_requests(call)


if __name__ == "__main__":
    main()
