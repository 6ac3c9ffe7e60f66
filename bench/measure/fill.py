# SPDX-License-Identifier: MIT
"""Fills a page with measured values.

    python3 fill.py RESULTS MACHINE TEMPLATE OUT [--between MARK]

RESULTS is a folder with a file NAME.jsonl for each machine; rows.py describes its rows. Where TEMPLATE has one of
these, OUT has what it stands for. STEP is a step of MACHINE, and OTHER/STEP is a step of another machine.

    {{loader tokens_per_s}}         value and unit of the row tokens_per_s of the step loader
    {{loader tokens_per_s limit}}   its limit; also: ratio, range (smallest to largest), number (without the unit)
    {{compare-loaders ROW METRIC}}  the same for a row of a comparison; a fourth word is again limit, number, ...
    {{row STEP METRIC}}             three cells of a table: value, limit, and ratio
    {{most STEP}}                   the largest ratio of the step; {{count STEP}}: how many rows have one
    {{table STEP: METRIC...: ROW; ROW=NAME; ...}}
                                    rows of a comparison as a table: systems down, metrics across. A row may get another
                                    name. Without METRIC and ROW, all of them
    {{matrix STEP: ROW; ...}}       the fault matrix: systems down, faults across, and in each cell what happened
    {{figures STEP: METRIC...}}     a table of the rows that have a verdict, with the bar of each
    {{tokenizers MACHINE}}          the rates of the case tokenize: vocabularies down, texts across
    {{picture STEP}}                the picture of the step, which is RESULTS/MACHINE-STEP.svg
    {{date STEP}}                   the day on which a step was measured; {{commit STEP}}: the commit
    {{machine}}                     MACHINE
    {{machines}}                    a table of all machines
    {{missing}}                     the steps of MACHINE without results, each with the reason
    {{if STEP}}                     the lines from here to the line {{end}} are left out if the step was not measured

A value that was not measured becomes "not measured". With --between MARK, only the lines of OUT between the comments
<!-- MARK: begin --> and <!-- MARK: end --> are replaced. OUT is replaced at once, so a reader never sees half of it.
"""
import argparse
import glob
import os
import re
import sys
import textwrap

import rows as files

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
TEXTS = {"prose": "prose", "code": "code", "mixed": "mixed scripts", "cjk": "CJK"}


class Results:
    """The rows of all machines."""

    def __init__(self, folder, machine):
        self.folder, self.machine, self.machines, self.absent, self.used = folder, machine, {}, [], 0

    def steps(self, machine):
        """Returns the rows of a machine by step."""
        if machine not in self.machines:
            steps = self.machines[machine] = {}
            for row in files.read(os.path.join(self.folder, machine + ".jsonl")):
                steps.setdefault(row["step"], []).append(row)
        return self.machines[machine]

    def place(self, step):
        """Returns the machine and the step that "STEP" or "MACHINE/STEP" names."""
        return step.split("/", 1) if "/" in step else (self.machine, step)

    def rows(self, step):
        """Returns the rows of a step, an empty list if it was not measured."""
        machine, name = self.place(step)
        found = self.steps(machine).get(name, [])
        return [] if absence(found) else found

    def find(self, step, words):
        """Returns the row with this metric, or with this row and metric; None if it was not measured. The name of a row
        may consist of several words."""
        for row in self.rows(step):
            if words[-1] == row["metric"] and (len(words) == 1 or " ".join(words[:-1]) == row.get("row")):
                return row
        return None


def absence(rows):
    """Returns why a step has no results; None if it has."""
    return next((row["text"] for row in rows if row["case"] == files.MACHINE and row["metric"] == REASON), None)


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
    kind, rest = words[0], words[1:]
    if kind in VIEWS:
        return VIEWS[kind](results, *split(" ".join(rest)))
    if kind in ("date", "commit") and len(rest) == 1:
        return next((row[kind][:10] for row in results.rows(rest[0]) if row.get(kind)), ABSENT)
    if kind == "row":
        return " | ".join("" if value == ABSENT and field else value for field, value in (
            (field, cell(results, [*rest, *field])) for field in ([], ["limit"], ["ratio"])))
    return value_of(results, kind, rest)


def split(text):
    """Returns the step, the metrics, and the names of the rows of "STEP: METRIC...: ROW; ROW=NAME"."""
    step, metrics, chosen = (text.split(": ", 2) + ["", ""])[:3]
    names = (name.strip().split("=", 1) for name in chosen.split(";") if name.strip())
    return step, metrics.split(), {name[0]: name[-1] for name in names}


def value_of(results, step, words):
    """One value of one row."""
    words = list(words)
    field = words.pop() if len(words) > 1 and words[-1] in FIELDS else "value"
    row = results.find(step, words)
    if row is None:
        results.absent.append(" ".join([step, *words]))
        return ABSENT
    results.used += 1
    unit = row.get("unit", "")
    if field == "range":
        return f"{human(row['min'], '')} to {human(row['max'], unit)}"
    if field == "number":
        return human(row["value"], "")
    return human(row.get(field), "" if field == "ratio" else unit)


def table(results, step, chosen, names):
    """A comparison as a table in Markdown, in the order in which its rows and metrics first appear, or as chosen."""
    order, metrics, values = [], [], {}
    for found in results.rows(step):
        name = found.get("row")
        if name is None or found["metric"] in (ABOUT, REASON):
            continue
        if name not in order:
            order.append(name)
        column = (found["metric"], found.get("unit", ""))
        if column not in metrics:
            metrics.append(column)
        values[name, column] = found["value"]
    if not order:
        return nothing(results, "table " + step)
    if chosen:
        metrics = [column for metric in chosen for column in metrics if column[0] == metric]
    lines = head_of_table(heading(column) for column in metrics)
    for name in names or order:
        found = [values.get((name, column)) for column in metrics]
        results.used += len(found)
        lines.append(f"| {escape(names.get(name, name))} | "
                     + " | ".join("" if value is None else human(value, column[1])
                                  for value, column in zip(found, metrics)) + " |")
    return "\n".join(lines + ([] if names else reasons(results, step)))


def matrix(results, step, _metrics, names):
    """The fault matrix. A system that cannot be had has no row in the table, but a line with the reason."""
    absent = set(words_about(results, step, REASON))
    cells = [row for row in results.rows(step) if "result" in row and row.get("row") not in absent]
    if not cells:
        return nothing(results, "matrix " + step)
    faults = list(dict.fromkeys(found["metric"] for found in cells))
    found = {(one["row"], one["metric"]): one["result"] for one in cells}
    systems = list(names or dict.fromkeys(one["row"] for one in cells))
    if names:  # faults that strike one of them
        faults = [fault for fault in faults if any(found.get((system, fault)) not in (None, "unreachable")
                                                   for system in systems)]
    lines = head_of_table(escape(fault) for fault in faults)
    for system in systems:
        lines.append(f"| {escape(names.get(system, system))} | " + " | ".join(
            OUTCOMES[found[system, fault]][0] if (system, fault) in found else ABSENT for fault in faults) + " |")
    results.used += len(cells)
    used = {found.get((system, fault)) for system in systems for fault in faults}
    meanings = (": ".join(meaning) for result, meaning in OUTCOMES.items() if result in used)
    lines += ["", "Cells: " + "; ".join(meanings) + "."]
    return "\n".join(lines + ([] if names else reasons(results, step)))


def ratios(results, step):
    """Returns the ratios of a step."""
    return [row["ratio"] for row in results.rows(step) if row.get("ratio") is not None]


def nothing(results, what):
    """Notes that a table was not measured."""
    results.absent.append(what)
    return ABSENT[0].upper() + ABSENT[1:] + "."


def head_of_table(names):
    """The two lines that begin a table whose first column has no name."""
    names = list(names)
    return ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]


def words_about(results, step, metric):
    """What the rows of a step say in words, by system: why it was not measured, or its version and options."""
    return {row["row"]: row.get("text") or "" for row in results.rows(step)
            if row["metric"] == metric and row.get("row") is not None}


def reasons(results, step):
    """A list of the systems that were not measured."""
    found = words_about(results, step, REASON)
    return [""] * bool(found) + [f"- {escape(name)} was not measured: {escape(why)}" for name, why in found.items()]


def figures(results, step, chosen, *_):
    """The figures of a case that says of each whether its bar is held."""
    found = [row for row in results.rows(step) if row.get("verdict") and row["metric"] in (chosen or [row["metric"]])]
    if not found:
        return nothing(results, "figures " + step)
    lines = ["| figure | measured | bar | |", "|---|---|---|---|"]
    for row in found:
        unit, bar = row.get("unit", ""), row.get("limit")
        lines.append(f"| `{escape(row['metric'])}` | {human(row['value'], unit)} | "
                     f"{'' if bar is None else human(bar, unit)} | {row['verdict'] or ''} |")
    results.used += len(found)
    return "\n".join(lines)


def tokenizers(results, machine, *_):
    """Cold and warm rates for each vocabulary and text, and each divided by the other tokenizer's rate."""
    machine = machine or results.machine
    vocabularies = list(dict.fromkeys(step.split("-")[1] for step in results.steps(machine)
                                      if re.fullmatch(r"tokenize-[^-]+-(prose|code|mixed|cjk)", step)))
    if not vocabularies:
        return nothing(results, "tokenizers " + machine)
    lines = head_of_table(TEXTS.values())
    for name in sorted(vocabularies, key=lambda name: (results.find(f"{machine}/tokenize-{name}-code", ["cold_mb_s"])
                                                       is None, name)):
        cells = []
        for text in TEXTS:
            step = f"{machine}/tokenize-{name}-{text}"
            kind = "" if results.find(step, ["cold_mb_s"]) else "doc_"
            numbers = [value_of(results, step, [metric.format(kind), "number"]) if results.rows(step) else ""
                       for metric in ("{}cold_mb_s", "{}warm_mb_s", "gigatoken_{}cold_times", "gigatoken_{}warm_times")]
            cells.append("{} / {}: {} / {}".format(*numbers) if results.rows(step) else "")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def picture(results, step, *_):
    """The picture of a step, which is seen from the folder above the results; nothing if there is none."""
    machine, name = results.place(step)
    file = f"{machine}-{name}.svg"
    base = os.path.basename(os.path.abspath(results.folder))
    return f"![{name.replace('-', ' ')}]({base}/{file})" if os.path.exists(os.path.join(results.folder, file)) else ""


def machine_table(results, *_):
    """All machines: what they are, and how many rows they have, of which days and commits."""
    lines = ["| results | processor | memory, storage; system | rows | state |", "|---|---|---|---|---|"]
    names = sorted(os.path.basename(path)[:-6] for path in glob.glob(os.path.join(results.folder, "*.jsonl")))
    base = os.path.basename(os.path.abspath(results.folder))
    for name in sorted(names, key=lambda name: (name != results.machine, name)):
        facts = {row["metric"]: escape(row["text"]) for row in results.steps(name).get(files.MACHINE, [])}
        found = [row for step, rows in results.steps(name).items() if step != files.MACHINE and not absence(rows)
                 for row in rows]
        days = sorted({row["date"][:10] for row in found if row.get("date")}) or ["no day"]
        commits = sorted({row["commit"] for row in found if row.get("commit")})
        lines.append(f"| [{name}]({base}/{name}.jsonl) | {facts.get('processor', 'unknown')} | "
                     f"{facts.get('memory', 'unknown')}; {facts.get('system', 'unknown')} | {len(found):,} of "
                     f"{' to '.join(dict.fromkeys((days[0], days[-1])))}, at {', '.join(commits)} | "
                     f"{facts.get('state', '')} |")
    return "\n".join(lines)


def missing(results, *_):
    """Why steps have no results."""
    found = {step: absence(rows) for step, rows in results.steps(results.machine).items() if absence(rows)}
    return "; ".join(f"`{step}` ({escape(why)})" for step, why in found.items()) + "." if found else "none."


VIEWS = {"most": lambda results, step, *_: human(max(ratios(results, step), default=None), ""),
         "count": lambda results, step, *_: str(len(ratios(results, step))),
         "table": table, "matrix": matrix, "figures": figures, "tokenizers": tokenizers,
         "picture": picture, "machines": machine_table, "missing": missing,
         "machine": lambda results, *_: results.machine}


def heading(column):
    """The head of a column: its metric in words, without the unit."""
    metric, unit = column
    return escape(re.sub("(?<=.)" + re.escape(ENDINGS.get(unit, "_" + unit)) + "$", "", metric).replace("_", " "))


def escape(text):
    """Text for a cell of a table."""
    return text.replace("\n", " ").replace("|", "\\|")


def fill(results, text):
    """Replaces the references of a page."""
    text = re.sub(r"^\{\{if ([^{} ]+)\}\}\n(.*?)^\{\{end\}\}\n",
                  lambda found: found.group(2) if results.rows(found.group(1)) else "", text, flags=re.S | re.M)
    return re.sub(r"\{\{([^{}]+)\}\}", lambda found: cell(results, found.group(1).split()), text)


def wrapped(page):
    """Wraps the paragraphs again, because values are shorter than references."""
    return re.sub(r"^(?=[A-Z*`]).*(?:\n(?![-#|<!]).+)*", lambda found: textwrap.fill(
        found.group().replace("\n", " "), 120, break_long_words=False, break_on_hyphens=False), page, flags=re.M)


def between(page, mark, text):
    """Replaces what is between the two comments with this mark."""
    begin, end = f"<!-- {mark}: begin -->\n", f"<!-- {mark}: end -->"
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise SystemExit(f"the page must contain {begin.strip()} and {end} once, on lines of their own")
    head, rest = page.split(begin)
    return head + begin + text + end + rest.split(end)[1]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("results", "machine", "template", "out"):
        arguments.add_argument(name)
    arguments.add_argument("--between", metavar="MARK")
    given = arguments.parse_args()
    results = Results(given.results, given.machine)
    with open(given.template, encoding="utf-8") as file:
        page = wrapped(fill(results, file.read()))
    if given.between:
        page = re.sub(r"\A<!-- SPDX.*-->\n", "", page)  # a page has this line once, at its beginning
        with open(given.out, encoding="utf-8") as file:
            page = between(file.read(), given.between, page)
    with open(given.out + ".new", "w", encoding="utf-8") as file:
        file.write(page)
    os.replace(given.out + ".new", given.out)
    print(f"{given.out}: {results.used} values" + (f", {len(results.absent)} not measured" if results.absent else ""),
          file=sys.stderr)


if __name__ == "__main__":
    main()
