# SPDX-License-Identifier: MIT
"""Keeps the rows of each machine in one file, bench/results/MACHINE.jsonl, in JSON lines.

    python3 rows.py add FILE STEP COMMIT COMMAND <ROWS      stores what COMMAND printed with --json
    python3 rows.py absent FILE STEP COMMIT COMMAND REASON  stores that the step was not measured, and why
    python3 rows.py machine FILE NAME=TEXT...               stores what the machine is
    python3 rows.py picture FROM TO                         stores a picture without the names of this machine's folders
    python3 rows.py name                                    prints a name for this machine, such as zen4

A row is what a case of tokmap-bench prints, and before that the name of its step in steps.sh, and the rows of a step
replace all earlier ones of that step. Each row has the command that was typed, without the options that only say
where files are; a case that runs others prints their commands. Each row also has the machine and the date as the case
printed them, the commit of the program, and in `size` the bytes of the files that the command names, if it names any.
These five would be most of a file: a row without `command` has all five as the row before it has them.
Folders of one machine say nothing to a reader: this folder's name is left out, and those that TEXTS, VOCABULARIES,
and DIR in the environment name become texts, vocab, and data.
"""
import datetime
import glob
import json
import os
import re
import sys

MACHINE = "machine"  # the step of the rows that describe the machine
FOLDERS = (("TEXTS", "texts/"), ("VOCABULARIES", "vocab/"), ("DIR", "data/"))
SHARED = ("command", "machine", "date", "commit", "size")  # what a row leaves out if it is as in the row before it
ELSEWHERE = r" --(?:json\b|(?:dir|plot) \S+)"  # options that say where files are


def read(path):
    """Yields the rows of a file, each with all members. A file that does not exist has no rows."""
    before = {}
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    row = json.loads(line)
                except ValueError as problem:
                    raise SystemExit(f"{path}:{number}: this line is not JSON ({problem}); measure the step again")
                before = row if "command" in row else {**row, **shared(before)}
                yield before
    except FileNotFoundError:
        return


def shared(row):
    """Returns the members of a row that the next row leaves out if they are the same."""
    return {name: row[name] for name in SHARED if name in row}


def write(path, rows):
    """Writes a file of rows at once, in the form that read() reads."""
    before = {}
    with open(path + ".new", "w", encoding="utf-8") as file:
        for row in rows:
            kept = {name: row[name] for name in row if name not in SHARED} if shared(row) == shared(before) else row
            file.write(json.dumps(kept, ensure_ascii=False, separators=(",", ":")) + "\n")
            before = row
    os.replace(path + ".new", path)


def bytes_of(command):
    """Returns the bytes of the files and datasets that a command names, without its options; None if it names none."""
    words = re.sub(r" -\S+ \S*/\S*", "", command).split()[2:]
    found = [path for word in words if not word.startswith("-")
             for path in ([word] if os.path.isfile(word) else glob.glob(glob.escape(word) + "*.bin"))]
    return sum(map(os.path.getsize, found)) or None


def replace(path, step, rows):
    """Writes the file again, with these rows in place of the earlier ones of the step. What the machine is comes first:
    these rows have no command, and would have that of a row before them."""
    old = list(read(path))
    place = 0 if step == MACHINE else next((i for i, row in enumerate(old) if row["step"] == step), len(old))
    kept = [row for row in old if row["step"] != step]
    write(path, kept[:place] + rows + kept[place:])


def without_folders(text):
    """Returns the text with the names of this machine's folders shortened."""
    folders = [(os.environ.get(name), short) for name, short in FOLDERS] + [(os.getcwd(), "")]
    for folder, short in folders:
        if folder:
            text = text.replace(folder.rstrip("/") + "/", short)
    return text


def dressed(rows, step, commit, command):
    """Returns the printed rows of a step as they are stored."""
    size = bytes_of(command)
    known = next((row for row in rows if "machine" in row), {})
    stored = []
    for row in rows:
        about = {"command": without_folders(re.sub(ELSEWHERE, "", row.get("command", command))),
                 "machine": row.get("machine", known.get("machine")), "date": row.get("date", known.get("date")),
                 "commit": commit, **({"size": size} if size else {})}
        stored.append({"step": step, **{name: value for name, value in row.items() if name not in about}, **about})
    return stored


def said(metric, text):
    """Returns a row that has a text and no number."""
    return {"case": MACHINE, "metric": metric, "value": 1, "unit": "", "better": None, "text": text}


# Generations of Xeon that have a model number of their own. Model 85 is three of them.
XEONS = {"106": "ice-lake-sp", "143": "sapphire-rapids", "173": "granite-rapids", "207": "emerald-rapids"}


def machine_name():
    """Returns a name for processors that any two machines of the same kind share: the maker, family, and model."""
    found = {}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition(":")
            found.setdefault(name.strip(), value.strip())
    maker, family, model = (found.get(name, "") for name in ("vendor_id", "cpu family", "model"))
    if maker == "AuthenticAMD" and family in ("23", "25", "26"):
        number = int(model)
        zen = {"23": "1" if number < 0x30 else "2",
               "25": "4" if 0x10 <= number < 0x20 or number >= 0x60 else "3",
               "26": "5"}[family]
        return f"zen{zen}" + ("" if zen < "4" or "avx512f" in found.get("flags", "") else "-avx2")
    if maker == "GenuineIntel" and family == "6" and model in XEONS:
        return XEONS[model]
    return "-".join(filter(None, (maker.replace("Genuine", "").lower() or os.uname().machine, family, model)))


def main():
    what, given = sys.argv[1:2], sys.argv[2:]
    if what == ["name"] and not given:
        print(machine_name())
    elif what == ["picture"] and len(given) == 2:
        with open(given[0], encoding="utf-8") as file, open(given[1], "w", encoding="utf-8") as shown:
            shown.write(without_folders(file.read()))
    elif what == ["add"] and len(given) == 4:
        path, step, commit, command = given
        rows = [json.loads(without_folders(line)) for line in sys.stdin]
        if any(row.get("quick") for row in rows):
            raise SystemExit(f"{step}: rows that were measured with --quick are not kept; measure it without")
        replace(path, step, dressed(rows, step, commit, command))
        busy = [row["value"] for row in rows if row.get("metric") == "others_percent"]
        print(busy[-1] if busy else 0)
    elif what == ["absent"] and len(given) == 5:
        path, step, commit, command, reason = given
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        replace(path, step, [{"step": step, **said("absent", without_folders(reason)),
                              "command": without_folders(command), "date": date, "commit": commit}])
    elif what == ["machine"] and given and all("=" in word for word in given[1:]):
        replace(given[0], MACHINE, [{"step": MACHINE, **said(*word.split("=", 1))} for word in given[1:]])
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
