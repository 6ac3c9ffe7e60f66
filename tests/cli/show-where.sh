# SPDX-License-Identifier: MIT
# ci: asan
# --where, compared with every row of every step.
. "$TOKMAP_CLI/helpers.sh"
need python3
pack_corpus
printf 'seq_len 64\nlookahead 3\nbatch 8\nseed 3\nsource data small\npasses 3\nskip 2..4\nskip 30..33\n' >train.run
last=$(field "$(tokmap info train.run --json >info; echo info)" steps)
step=0
while [ $step -lt "$last" ]; do
    tokmap show train.run --step $step --json --ids -q 2>/dev/null
    step=$((step + 1))
done >rows
for document in 0 1 2 3 9 17; do
    tokmap show train.run --document $document --where --json >"found$document" 2>/dev/null
    tokmap show train.run --document $document --where --json --steps 20..40 >"part$document" 2>/dev/null
done
python3 - <<'PYTHON'
import json
rows = [json.loads(line) for line in open("rows")]
assert len(rows) == 230 * 3 // 8 * 8, len(rows)
skipped = {2, 3, 30, 31, 32}
for document in (0, 1, 2, 3, 9, 17):
    wanted = {}
    for row in rows:
        shown = sum(part["count"] for part in row["documents"] if part["document"] == document)
        if shown and row["step"] not in skipped:
            wanted[row["step"], row["row"]] = (row["epoch"], row["window"], shown)
    found = [json.loads(line) for line in open("found%d" % document)]
    got = {(f["step"], f["row"]): (f["epoch"], f["window"], f["shared"]) for f in found}
    assert got == wanted, (document, set(got) ^ set(wanted))
    assert len(got) == len(found)
    order = [(f["step"], f["row"]) for f in found]
    assert order == sorted(order)
    part = [json.loads(line) for line in open("part%d" % document)]
    assert part == [f for f in found if 20 <= f["step"] < 40]
PYTHON
tokmap show train.run --document 0 --where 2>err
holds err "shown in 2 rows"
tokmap show train.run --tokens 0..17 --where >a 2>err
tokmap show train.run --document 0 --where -q >b 2>err
[ ! -s err ]
cut -d' ' -f1-9 a >c
cut -d' ' -f1-9 b >d
same c d
printf 'seq_len 64\nbatch 8\nseed 3\nsource data small\n' >endless.run
exits 1 tokmap show endless.run -d 0 --where 2>err
holds err "--steps A..B"
tokmap show endless.run -d 0 --where --steps 0..1000 2>err >out
equal "$(wc -l <out | tr -d ' ')" "$(sed -n 's/.*shown in \([0-9]*\) rows/\1/p' err)"
