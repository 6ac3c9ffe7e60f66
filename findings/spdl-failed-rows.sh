#!/bin/sh
# SPDX-License-Identifier: MIT
# spdl-failed-rows.sh: rows and batches whose function raises are left out of an SPDL pipeline, and the loop ends
# normally.
#
# spdl 0.8.0. A pipeline reads 12 rows, and the function of a stage raises an exception for every third one, as a
# decoder does for a damaged file. One would expect the exception in the loop over the pipeline, as in a Python loop or
# a DataLoader of torch. The rows are left out, and the loop ends without an exception; the errors are in the log. If a
# batch is made first, one row takes its whole batch along: here each batch of four has such a row, so nothing comes,
# and an epoch of no batches looks like the end of the data. DataLoader, whose interface resembles torch's, does the
# same. The builder's build(max_failures=n) makes the failures an error once there are more than n; the default of -1
# allows any number. Output seen:
#
#   pipeline                     delivered                    exception
#   each row                     1, 2, 4, 5, 7, 8, 10, 11     none
#   rows, then batches of 4      1 2 4 5, 7 8 10 11           none
#   batches of 4, then rows      nothing                      none
#   DataLoader, batch_size=4     1 2 4 5, 7 8 10 11           none
#   each row, max_failures=0     nothing                      PipelineFailure
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check spdl==0.8.0

cat >"$work/try.py" <<'END'
import logging
import sys

from spdl.dataloader import DataLoader
from spdl.pipeline import PipelineBuilder

logging.disable(logging.CRITICAL)
ROWS = range(12)


def decode(row):
    if row % 3 == 0:
        raise ValueError(f"row {row} cannot be read")
    return row


def decode_batch(rows):
    return [decode(row) for row in rows]


def delivered(*stages, **options):
    """Runs a pipeline. A stage is a function, or the size of a batch."""
    builder = PipelineBuilder().add_source(ROWS)
    for stage in stages:
        builder = builder.aggregate(stage) if isinstance(stage, int) else builder.pipe(stage)
    pipeline, rows, error = builder.add_sink(4).build(num_threads=1, **options), [], "none"
    try:
        with pipeline.auto_stop():
            rows.extend(pipeline)
    except Exception as problem:
        error = type(problem).__name__
    return rows, error


found = {
    "each row": delivered(decode),
    "rows, then batches of 4": delivered(decode, 4),
    "batches of 4, then rows": delivered(4, decode_batch),
    "DataLoader, batch_size=4": (list(DataLoader(ROWS, preprocessor=decode, batch_size=4)), "none"),
    "each row, max_failures=0": delivered(decode, max_failures=0),
}
print("pipeline                     delivered                    exception")
for name, (rows, error) in found.items():
    text = ", ".join(" ".join(map(str, row)) if isinstance(row, list) else str(row) for row in rows)
    print(f"{name:28} {text or 'nothing':28} {error}")
batches = [[1, 2, 4, 5], [7, 8, 10, 11]]
*silent, strict = found.values()
sys.exit(silent != [(sum(batches, []), "none"), (batches, "none"), ([], "none"), (batches, "none")]
         or strict[1] != "PipelineFailure")
END
"$work/venv/bin/python" "$work/try.py"
