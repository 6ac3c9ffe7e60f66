# SPDX-License-Identifier: MIT
"""The lines that a table prints for tokmap-bench, which makes the table, the JSON lines, medians, and spread of them.

A line is a word and its fields, separated by tabs, on standard output:

    row TABLE ROW METRIC UNIT BETTER V1,V2,...   values of the interleaved repeats; BETTER is more, less, or -
    absent TABLE ROW REASON                      a system that cannot be had
    equal TABLE ROW yes|no|undefined TEXT        whether what it delivered equals the reference
    about ROW TEXT                               its version, and the options it was run with
    cell FAULT SYSTEM RESULT TEXT                one cell of the fault matrix
    note TEXT                                    a sentence below the table
    progress DONE TOTAL TEXT                     where the run is, for the terminal
    say TEXT                                     a message on standard error, at once
    answer TEXT                                  the sentence that answers the table's question

Nothing else may be written to standard output: __main__.py therefore gives the lines a descriptor of their own and
turns descriptor 1 into standard error before it imports anything.
"""
import math
import os

BETTER = ("more", "less", "-")
VERDICTS = ("yes", "no", "undefined")


class Absent(Exception):
    """A system that cannot be had here. Its text is the reason, which becomes the row's."""


def clean(text):
    """One field of a line: without tabs and ends of lines, and never empty."""
    return " ".join(str(text).split()) or "-"


class Report:
    """Writes lines to a descriptor. Each line is written at once, with a single call."""

    def __init__(self, descriptor=1):
        self._descriptor = descriptor

    def _line(self, *fields):
        line = ("\t".join(clean(field) for field in fields) + "\n").encode("utf-8", "backslashreplace")
        while line:
            line = line[os.write(self._descriptor, line):]

    def row(self, table, row, metric, unit, better, values):
        """One metric of one row. values: a number, or the numbers of all repeats in their order, so that the values
        with the same index in two rows were measured in the same turn. None and NAN are left out; without any number
        nothing is written."""
        if better not in BETTER:
            raise ValueError(f"better is {better!r}; it must be one of {', '.join(BETTER)}")
        if isinstance(values, (int, float)):
            values = [values]
        numbers = [float(value) for value in values if value is not None and math.isfinite(value)]
        if numbers:
            self._line("row", table, row, metric, unit, better, ",".join(repr(number) for number in numbers))

    def absent(self, table, row, reason):
        """A row without figures, and the sentence that says why."""
        self._line("absent", table, row, reason)

    def equal(self, table, row, verdict, text):
        """verdict: True or "yes", False or "no", None or "undefined" (the order is the system's own). text: the order
        in which it was compared and a checksum, or the place of the first difference."""
        verdict = {True: "yes", False: "no", None: "undefined"}.get(verdict, verdict)
        if verdict not in VERDICTS:
            raise ValueError(f"the verdict is {verdict!r}; it must be one of {', '.join(VERDICTS)}")
        self._line("equal", table, row, verdict, text)

    def about(self, row, text):
        """The version of a row's system and the options it was run with."""
        self._line("about", row, text)

    def cell(self, fault, system, result, text):
        """One cell of the fault matrix."""
        self._line("cell", fault, system, result, text)

    def note(self, text):
        self._line("note", text)

    def say(self, text):
        self._line("say", text)

    def progress(self, done, total, text):
        self._line("progress", int(done), int(total), text)

    def answer(self, text):
        """The sentence below the table. The last one counts."""
        self._line("answer", text)
