#!/bin/sh
# SPDX-License-Identifier: MIT
# datasets-json-dates.sh: JSON texts that look like dates are rewritten, even if the features say that they are strings.
#
# datasets 5.2.0, PyArrow 26.0.1, NumPy 2.4.6. load_dataset("json", features=...) reads a text column that is declared
# as a string. One would expect the characters of the file. If all texts of a block of the file look like dates,
# however, the JSON reader takes them for timestamps, and the timestamps are then printed as strings: "T" becomes a
# space, and a date gets a time that was not there. One text that is not a date keeps the whole block as it is, so the
# same record comes out differently in another file or at another place. Without features= the column has the type
# timestamp, at least visibly. With streaming=True it is the same. Output seen, with features={"text": string}:
#
#   in the file                            read
#   2024-01-01 2024-01-02                  2024-01-01 00:00:00 2024-01-02 00:00:00
#   2024-01-01T10:00:00                    2024-01-01 10:00:00
#   2024-01-01 hello                       2024-01-01 hello
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check datasets==5.2.0 pyarrow==26.0.1 numpy==2.4.6

cat >"$work/try.py" <<'END'
import json
import sys
from pathlib import Path

import datasets
from datasets import Features, Value, load_dataset

datasets.disable_progress_bars()
work = Path(sys.argv[1])
features = Features({"text": Value("string")})
cases = [
    ["2024-01-01", "2024-01-02"],
    ["2024-01-01T10:00:00"],
    ["2024-01-01", "hello"],
]


def read(number, texts, **options):
    path = work / f"{number}.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    rows = load_dataset("json", data_files=str(path), features=features, split="train", **options)
    assert rows.features == features
    return [row["text"] for row in rows]


found = [read(i, texts, cache_dir=str(work / "cache")) for i, texts in enumerate(cases)]
assert found == [read(i, texts, streaming=True) for i, texts in enumerate(cases)]
print("in the file                            read")
for texts, seen in zip(cases, found):
    print(f"{' '.join(texts):38} {' '.join(seen)}")
sys.exit(found != [["2024-01-01 00:00:00", "2024-01-02 00:00:00"], ["2024-01-01 10:00:00"], cases[2]])
END
"$work/venv/bin/python" "$work/try.py" "$work"
