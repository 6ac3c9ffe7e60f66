# SPDX-License-Identifier: MIT
# ci: asan
# Rows of several sources: --where against every row of every step, with windows, a plan, and phases.
. "$TOKMAP_CLI/helpers.sh"
need python3
pack_corpus
tokmap plan -q -o small.plan small --seq-len 64 >/dev/null
cat >train.run <<'RUN'
seq_len 64
batch 8
seed 3
source web small#docs=0..50%
source docs small plan small.plan
phase 0 web 0.7 docs 0.3
phase 9 web 0.2 docs 0.8 batch 12
steps 30
skip 4..6
RUN
step=0
while [ $step -lt 30 ]; do
    tokmap show train.run --step $step --json --ids -q 2>/dev/null
    step=$((step + 1))
done >rows
for source in web docs; do
    for document in 0 1 4; do
        tokmap show train.run --source $source -d $document --where --json -q >"$source$document"
    done
done
python3 - <<'PYTHON'
import json
rows = [json.loads(line) for line in open("rows")]
assert len(rows) == 9 * 8 + 21 * 12
assert {row["name"] for row in rows} == {"web", "docs"}
assert all("pieces" in row for row in rows if row["name"] == "docs")
found_any = 0
for source in "web", "docs":
    for document in 0, 1, 4:
        wanted = {}
        for row in rows:
            shown = sum(p["count"] for p in row["documents"] if p["document"] == document)
            if shown and row["name"] == source and row["step"] not in (4, 5):
                wanted[row["step"], row["row"]] = (row["epoch"], row["window"], shown)
        found = [json.loads(line) for line in open(source + str(document))]
        got = {(f["step"], f["row"]): (f["epoch"], f["window"], f["shared"]) for f in found}
        assert got == wanted and len(got) == len(found), (source, document, got, wanted)
        assert all(f["name"] == source for f in found)
        found_any += len(found)
assert found_any > 100, found_any
PYTHON
tokmap show train.run --source docs --document 1 --where -q >text
grep -q '^step [0-9]* row [0-9]* source docs epoch 0 window [0-9]* shows [0-9]* of 13391 tokens$' text
tokmap show train.run --source docs --tokens 0..18 --ids >a 2>/dev/null
tokmap show small --tokens 0..18 --ids -q >b
same a b
exits 1 tokmap show train.run --document 1 --where 2>err
holds err "choose one with --source NAME: "
for name in docs web; do
    grep -q "NAME: .*\b$name\b" err
done
exits 1 tokmap show train.run --source none --document 1 2>err
holds err "the run has no source 'none'; it has "
{
    printf 'seq_len 4\nbatch 1\nsteps 1\n'
    for i in 10 11 12 13 14 15 16 17; do
        echo "source s$i synthetic:vocab=10,tokens=100,seed=$i"
    done
    echo 'phase 0 natural'
} >eight.run
exits 1 tokmap show eight.run --tokens 5..6 --where 2>err
holds err 'the run has 8 sources; choose one with --source NAME: s10, s11, s12, s13, s14, s15, and 2 more'
exits 2 tokmap show train.run --source web --step 1 2>err
