#!/bin/sh
# SPDX-License-Identifier: MIT
# trl-completion-mask.sh: TRL's collator ignores completion_mask in newer releases, so prompts are learned, too.
#
# trl 1.0.0 and 1.16.0, transformers 5.24.0, torch 2.15.0 (CPU). DataCollatorForLanguageModeling is given rows with
# input_ids and a completion_mask, or an assistant_masks, which say which tokens are learned. One would expect the
# labels of the others to be -100, as trl 1.0.0 makes them. trl 1.16.0 (and 1.7.0, which was tried, too) learns every
# token: it looks for labels only, and rows without them get their input_ids as labels. There is neither an error nor a
# warning. Its docstring says that SFTTrainer makes the labels; this concerns programs that use the collator with their
# own loop, or with rows that were prepared by an older release. Output seen, the labels of the ids 1 2 3 4 with the
# mask 0 0 1 1:
#
#   column             trl 1.0.0        trl 1.16.0
#   completion_mask    -100 -100 3 4    1 2 3 4
#   assistant_masks    -100 -100 3 4    1 2 3 4
#   labels             not tried        -100 -100 3 4
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check trl==1.16.0 transformers==5.24.0 torch==2.15.0
"$work/venv/bin/pip" install -q --disable-pip-version-check --no-deps --target "$work/old" trl==1.0.0

cat >"$work/try.py" <<'END'
import sys

import trl
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

assert trl.__version__ == sys.argv[1]
collator = DataCollatorForLanguageModeling(pad_token_id=0)
columns = {"completion_mask": [0, 0, 1, 1], "assistant_masks": [0, 0, 1, 1]}
if sys.argv[1] == "1.16.0":
    columns["labels"] = [-100, -100, 3, 4]
for name, values in columns.items():
    labels = collator([{"input_ids": [1, 2, 3, 4], name: values}])["labels"][0].tolist()
    print(f"trl {sys.argv[1]:8} {name:18}", *labels)
END
PYTHONPATH="$work/old" "$work/venv/bin/python" "$work/try.py" 1.0.0 >"$work/seen"
"$work/venv/bin/python" "$work/try.py" 1.16.0 >>"$work/seen"
cat "$work/seen"
masked='-100 -100 3 4'
[ "$(sed 's/.*[ks]  *//' "$work/seen" | tr '\n' ',')" = "$masked,$masked,1 2 3 4,1 2 3 4,$masked," ]
