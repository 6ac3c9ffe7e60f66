# SPDX-License-Identifier: MIT
"""table_text.py - how the generators of this folder write tables: decimal numbers, and runs of equal ones as a range.

`[8 ... 70]=4` gives the elements 8 to 70 the value 4, in GNU C. Elements that nothing names are 0.
"""

import os


def table_file(folder, name, about, maker, header=None):
    """Opens FOLDER/NAME.c and writes its head."""
    out = open(os.path.join(folder, name + ".c"), "w", encoding="ascii")
    out.write("/* SPDX-License-Identifier: MIT */\n/* %s.c - %s.\n * Made by %s: do not edit. */\n#include \"%s\"\n\n" %
              (name, about, maker, header or name + ".h"))
    return out


def numbered(items):
    """Returns the different items, and the number of each item among them."""
    numbers = {}
    order = [numbers.setdefault(item, len(numbers)) for item in items]
    return list(numbers), order


def lines(items):
    """Joins items to lines of at most 120 columns."""
    made, line = [], "    "
    for item in items:
        if len(line) + len(item) + 1 > 120:
            made.append(line)
            line = "    "
        line += item + ","
    return "\n".join(made + [line])


def runs(values, form="%d"):
    """Returns the items of an array, each run of equal values as the shortest of: numbers, a range, and nothing."""
    items, at, first = [], 0, 0  # at: the element to which C gives an item without a designator
    while first < len(values):
        end = first
        while end < len(values) and values[end] == values[first]:
            end += 1
        number = form % values[first]
        place = "" if at == first else "[%d]=" % first
        span = "[%d ... %d]=%s" % (first, end - 1, number)
        numbers = [place + number] + [number] * (end - first - 1)
        if values[first] == 0 and (end == len(values) or len("[%d]=" % end) <= 2 * (end - first)) and end > 1:
            pass  # the next run names its place
        elif len(span) < len(",".join(numbers)):
            items.append(span)
            at = end
        else:
            items += numbers
            at = end
        first = end
    return items or ["0"]


def rows(table):
    """Returns the items of an array of arrays."""
    items = []
    for row in table:
        row = runs(row)
        row[0] = "{" + row[0]
        row[-1] += "}"
        items += row
    return items


def braced(table):
    """Returns the items of an array of structs or of arrays of a few numbers."""
    return ["{" + ",".join(map(str, row)) + "}" for row in table]
