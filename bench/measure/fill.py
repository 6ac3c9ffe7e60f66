# SPDX-License-Identifier: MIT
"""Fills a page with measured values.

    python3 fill.py RESULTS TEMPLATE OUT [--between MARK]

RESULTS is a folder in which measure.sh left a file STEP.json for each step: the lines that `tokmap-bench ... --json`
printed. Where TEMPLATE has one of these, OUT has what it stands for:

    {{loader tokens_per_s}}         value and unit of the row tokens_per_s of the step loader
    {{loader tokens_per_s limit}}   its limit; also: ratio, range (smallest to largest), number (without the unit)
    {{compare-loaders ROW METRIC}}  the same for a row of a comparison; a fourth word is again limit, number, ...
    {{table STEP}}                  all rows of a comparison as a table: systems down, metrics across; then the systems
                                    that were not measured, with reasons, and the versions and options of the others
    {{matrix STEP}}                 the fault matrix: systems down, faults across, and in each cell what happened; then
                                    the counts and messages
    {{figures STEP}}                all rows that have a verdict as a table, with the bar of each
    {{pictures STEP}}               the pictures that the step drew, each under its name
    {{fact NAME}}                   a line of the file facts: date, processor, memory, system, state, commit
    {{date STEP}}                   the day on which a step was measured
    {{missing}}                     a list of the steps without results, each with the reason
    {{if STEP}}                     the lines from here to the line {{end}} are left out if the step was not measured

A value that was not measured becomes "not measured". With --between MARK, only the lines of OUT between the comments
<!-- MARK: begin --> and <!-- MARK: end --> are replaced. OUT is replaced at once, so a reader never sees half of it.
"""
import argparse
import json
import os
import re
import sys

ABSENT = "not measured"
# Metrics that are words about a system, not values.
ABOUT, REASON = "about", "absent"
# What a cell of the fault matrix shows for a result, and what the result means.
OUTCOMES = {
    "none": ("right", "every row came once and right"),
    "place": ("error, place", "an error that names the file and the position in it"),
    "status": ("error, file", "an error that names the file"),
    "exception": ("error", "an error that names neither"),
    "crash": ("crash", "the process died by a signal"),
    "hang": ("hang", "no batch came within the limit"),
    "garbage": ("**wrong rows**", "rows that are not the data were delivered without a word"),
    "lost": ("**lost rows**", "rows never came, without a word"),
    "repeated": ("**repeated rows**", "rows came again, without a word"),
    "unreachable": ("not possible", "the fault cannot be injected into this loader"),
}
UNITS = {"us": "µs", "1": "", "x": "", "%": "%", "s/Mtoken": "s"}
# How the metrics of these units end; the head of a column leaves that out, because each value has its unit.
ENDINGS = {"tokens/s": "_tokens_per_s", "MB/s": "_mb_s", "GB/s": "_gb_s", "MiB": "_mib", "%": "_percent"}
FIELDS = ("limit", "ratio", "range", "number", "min", "max")


class Results:
    """The rows of all steps."""

    def __init__(self, folder):
        self.folder, self.steps, self.absent, self.used = folder, {}, [], 0

    def rows(self, step):
        """Returns the rows of a step, an empty list if it was not measured."""
        if step not in self.steps:
            self.steps[step] = list(read(os.path.join(self.folder, step + ".json")))
        return self.steps[step]

    def find(self, step, words):
        """Returns the row with this metric, or with this row and metric; None if it was not measured. The name of a row
        may consist of several words."""
        for row in self.rows(step):
            if "metric" in row and words[-1] == row["metric"] and (len(words) == 1
                                                                   or " ".join(words[:-1]) == row.get("row")):
                return row
        return None

    def facts(self):
        """Returns the lines "name: text" of the file facts as a dictionary."""
        try:
            with open(os.path.join(self.folder, "facts"), encoding="utf-8") as file:
                return dict(line.rstrip("\n").split(": ", 1) for line in file if ": " in line)
        except FileNotFoundError:
            return {}


def read(path):
    """Yields the JSON objects of a file, one per line. A file that does not exist has none."""
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield json.loads(line)
                except ValueError as problem:
                    raise SystemExit(f"{path}:{number}: this line is not JSON ({problem}); measure the step again")
    except FileNotFoundError:
        return


def digits(value):
    """Three significant digits, without an exponent, with separators from 10,000 on."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 9999.5:
        return f"{value:,.0f}"
    if size >= 99.95:
        return f"{value:.0f}"
    decimals = 1 if size >= 9.995 else 2 if size >= 0.9995 else 3
    while size < 0.5 * 10 ** (1 - decimals) and decimals < 9:
        decimals += 1
    return f"{value:.{decimals}f}"


def human(value, unit):
    """A value with its unit, as a reader writes it."""
    if value is None:
        return ABSENT
    if unit == "0|1":
        return "yes" if value else "no"
    if unit == "tokens/s":
        for size, letter in ((1e9, "G "), (1e6, "M "), (1e3, "k ")):
            if abs(value) >= size:
                return f"{digits(value / size)} {letter}tokens/s"
    name = UNITS.get(unit, unit)
    if unit == "%" and 99 <= value < 100:  # what is lacking must not be rounded away
        return f"{value:.{3 if value > 99.995 else 2}f}%"
    return digits(value) + ("" if name in ("", "%") else " ") + name


def cell(results, words):
    """What a reference stands for."""
    if words[0] == "fact":
        return results.facts().get(words[1], "unknown")
    if words[0] == "date":
        return next((row["date"][:10] for row in results.rows(words[1]) if "date" in row), ABSENT)
    if words[0] == "missing":
        return missing(results)
    if words[0] == "table":
        return table(results, words[1])
    if words[0] == "matrix":
        return matrix(results, words[1])
    if words[0] == "figures":
        return figures(results, words[1])
    if words[0] == "pictures":
        return pictures(results, words[1])
    step, rest = words[0], words[1:]
    field = rest.pop() if len(rest) > 1 and rest[-1] in FIELDS else "value"
    row = results.find(step, rest)
    if row is None:
        results.absent.append(" ".join(words))
        return ABSENT
    results.used += 1
    unit = row.get("unit", "")
    if field == "range":
        return f"{human(row['min'], '')} to {human(row['max'], unit)}"
    if field == "number":
        return human(row["value"], "")
    return human(row.get(field), "" if field == "ratio" else unit)


def table(results, step):
    """A comparison as a table in Markdown, in the order in which its rows and metrics first appear."""
    rows, metrics, values = [], [], {}
    for found in results.rows(step):
        name = found.get("row")
        if name is None or "metric" not in found or found["metric"] in (ABOUT, REASON):
            continue
        if name not in rows:
            rows.append(name)
        column = (found["metric"], found.get("unit", ""))
        if column not in metrics:
            metrics.append(column)
        values[name, column] = found["value"]
    if not rows:
        results.absent.append("table " + step)
        return ABSENT + "."
    lines = head_of_table(heading(column) for column in metrics)
    for name in rows:
        found = (values.get((name, column)) for column in metrics)
        lines.append(f"| {escape(name)} | "
                     + " | ".join("" if value is None else human(value, column[1])
                                  for value, column in zip(found, metrics)) + " |")
    results.used += len(values)
    return "\n".join(lines + reasons(results, step) + about_systems(results, step)).rstrip()


def matrix(results, step):
    """The fault matrix. A system that cannot be had has no row in the table, but a line with the reason."""
    absent = set(words_about(results, step, REASON))
    cells = [row for row in results.rows(step) if "result" in row and row.get("row") not in absent]
    if not cells:
        results.absent.append("matrix " + step)
        return ABSENT + "."
    faults = list(dict.fromkeys(cell["metric"] for cell in cells))
    systems = list(dict.fromkeys(cell["row"] for cell in cells))
    found = {(cell["row"], cell["metric"]): cell for cell in cells}
    lines = head_of_table(escape(fault) for fault in faults)
    for system in systems:
        lines.append(f"| {escape(system)} | " + " | ".join(
            OUTCOMES[found[system, fault]["result"]][0] if (system, fault) in found else ABSENT for fault in faults)
            + " |")
    results.used += len(cells)
    used = {cell["result"] for cell in cells}
    lines += [""] + [f"- {word}: {meaning}" for result, (word, meaning) in OUTCOMES.items() if result in used]
    lines += reasons(results, step)
    for system in systems:
        lines += folded(f"{system}: messages and counts", (
            f"- {fault}: {escape(found[system, fault]['text'])}" for fault in faults if (system, fault) in found))
    return "\n".join(lines + about_systems(results, step)).rstrip()


def head_of_table(names):
    """The two lines that begin a table whose first column has no name."""
    names = list(names)
    return ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]


def words_about(results, step, metric):
    """What the rows of a step say in words, by system: why it was not measured, or its version and options."""
    return {row["row"]: row.get("text") or "" for row in results.rows(step)
            if row.get("metric") == metric and row.get("row") is not None}


def reasons(results, step):
    """A list of the systems that were not measured."""
    found = words_about(results, step, REASON)
    return [""] * bool(found) + [f"- {escape(name)} was not measured: {escape(why)}" for name, why in found.items()]


def about_systems(results, step):
    """The versions and options of the systems, folded."""
    return folded("Versions and options", (f"- {escape(name)}: {escape(text)}"
                                           for name, text in words_about(results, step, ABOUT).items()))


def folded(title, lines):
    """Lines that a reader opens by their title; nothing if there are none."""
    lines = list(lines)
    return ["", f"<details><summary>{title}</summary>", "", *lines, "", "</details>"] if lines else []


def figures(results, step):
    """The figures of a case that says of each whether its bar is held, and its own sentence about all of them."""
    rows = [row for row in results.rows(step) if "verdict" in row and "metric" in row]
    if not rows:
        results.absent.append("figures " + step)
        return ABSENT[0].upper() + ABSENT[1:] + "."
    lines = ["| figure | measured | bar | |", "|---|---|---|---|"]
    for row in rows:
        unit, bar = row.get("unit", ""), row.get("limit")
        lines.append(f"| `{escape(row['metric'])}` | {human(row['value'], unit)} | "
                     f"{'' if bar is None else human(bar, unit)} | {row['verdict'] or ''} |")
    results.used += len(rows)
    texts = {row["metric"]: row["text"] for row in results.rows(step) if "text" in row and "metric" in row}
    lines += [""] + [escape(texts[name]) for name in ("device", "answer") if name in texts]
    return "\n".join(lines).rstrip()


def pictures(results, step):
    """The pictures of a step, which are seen from the folder above the results; nothing if it drew none."""
    folder = os.path.join(results.folder, "pictures", step)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    base = os.path.basename(os.path.abspath(results.folder))
    return "\n\n".join(f"![{name[:-4].replace('-', ' ')}]({base}/pictures/{step}/{name})" for name in names
                       if name.endswith(".svg"))


def heading(column):
    """The head of a column: its metric in words, without the unit."""
    metric, unit = column
    return escape(re.sub("(?<=.)" + re.escape(ENDINGS.get(unit, "_" + unit)) + "$", "", metric).replace("_", " "))


def escape(text):
    """Text for a cell of a table."""
    return text.replace("\n", " ").replace("|", "\\|")


def missing(results):
    """Why steps have no results: the lines of the file missing, which measure.sh writes."""
    try:
        with open(os.path.join(results.folder, "missing"), encoding="utf-8") as file:
            lines = [line.rstrip("\n").split(": ", 1) for line in file if ": " in line]
    except FileNotFoundError:
        lines = []
    return "\n".join(f"- `{step}`: {escape(reason)}" for step, reason in lines) or "Every step was measured."


def fill(results, text):
    """Replaces the references of a page."""
    text = re.sub(r"^\{\{if ([^{} ]+)\}\}\n(.*?)^\{\{end\}\}\n",
                  lambda found: found.group(2) if results.rows(found.group(1)) else "", text, flags=re.S | re.M)
    return re.sub(r"\{\{([^{}]+)\}\}", lambda found: cell(results, found.group(1).split()), text)


def between(page, mark, text):
    """Replaces what is between the two comments with this mark."""
    begin, end = f"<!-- {mark}: begin -->\n", f"<!-- {mark}: end -->"
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise SystemExit(f"the page must contain {begin.strip()} and {end} once, on lines of their own")
    head, rest = page.split(begin)
    return head + begin + text + end + rest.split(end)[1]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("results", "template", "out"):
        arguments.add_argument(name)
    arguments.add_argument("--between", metavar="MARK")
    given = arguments.parse_args()
    results = Results(given.results)
    with open(given.template, encoding="utf-8") as file:
        page = fill(results, file.read())
    if given.between:
        with open(given.out, encoding="utf-8") as file:
            page = between(file.read(), given.between, page)
    with open(given.out + ".new", "w", encoding="utf-8") as file:
        file.write(page)
    os.replace(given.out + ".new", given.out)
    print(f"{given.out}: {results.used} values" + (f", {len(results.absent)} not measured" if results.absent else ""),
          file=sys.stderr)


if __name__ == "__main__":
    main()
