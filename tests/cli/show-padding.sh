# SPDX-License-Identifier: MIT
# ci: asan
# The last step of a run with `tail pad`: real rows first, a row that padding ends, and rows of padding.
. "$TOKMAP_CLI/helpers.sh"
need python3
pack_corpus
printf 'seq_len 64\nbatch 6\nsource web small#tokens=0..1000\ntail pad\norder sequential\npasses 1\n' >pad.run
tokmap show pad.run --step 2 --ids -q --json >rows
python3 - <<'PYTHON'
import json
rows = [json.loads(line) for line in open("rows")]
assert len(rows) == 6
assert [row["source"] for row in rows] == [0, 0, 0, 0, None, None], rows
assert [row.get("padding", 0) for row in rows] == [0, 0, 0, 25, 65, 65], rows
assert [row["tokens"] for row in rows] == [65, 65, 65, 40, 0, 0]
assert len(rows[3]["ids"]) == 40 and rows[4]["documents"] == []
PYTHON
tokmap show pad.run --step 2 >text 2>err
holds err "step 2 row 3: draw 15, epoch 0, window 15: tokens 960..1000, then 25 tokens of padding"
holds err "step 2 row 5: draw 17, padding"
exits 1 tokmap show pad.run --step 3 2>err
holds err "past the end of the run, whose steps are 0 to 2"
# Every token of the part is shown by the rows that --where lists, and by no padding.
tokmap show pad.run --tokens 960..1000 --where --json -q >found
equal "$(wc -l <found | tr -d ' ')" 2
holds found '"step": 2, "row": 3, '
# Windows by number: the last one of `tail pad` is short, and windows of a stride overlap.
tokmap show pad.run --window 15 --ids -q >window
tokmap show pad.run --tokens 960..1000 --ids -q >tokens
cmp window tokens
exits 1 tokmap show pad.run --window 16 2>err
holds err "window 16 does not exist"
printf 'seq_len 64\nstride 16\nbatch 6\nsource web small#tokens=0..1000\norder sequential\npasses 1\n' >stride.run
tokmap show stride.run --window 3 --ids -q >window
tokmap show stride.run --tokens 48..113 --ids -q >tokens
cmp window tokens
tokmap show stride.run --window 58 --ids -q >window
exits 1 tokmap show stride.run --window 59 2>err
