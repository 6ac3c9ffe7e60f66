# SPDX-License-Identifier: MIT
# ci: nonroot asan
# Documents taken out of a run while it trains: --exposures, compared with --where, rows that show and audit have, and
# traces of before and after, replayed with the right run and with others.
. "$TOKMAP_CLI/helpers.sh"
need python3
pack_corpus
printf 'seq_len 32\nbatch 60\nseed 3\nsource web small\nsource more small#docs=0..50%%\n' >train.run
printf 'phase 0 web 3 more 1\nphase 5 web 1 more 1 batch 80\nsteps 40\n' >>train.run
tokmap find train.run --source web -d 2 -d 7..9 -q >list
tokmap find train.run --source more -d 2 -q >>list
cp train.run taken.run
printf 'exclude list from 12\n' >>taken.run

tokmap show taken.run --exposures list --json >shown 2>err
holds err "the run excludes all of them, and only steps before that were searched"
for document in 2 7 8; do
    tokmap show train.run --source web -d $document --where --steps 0..12 --json -q
done | sed 's/"first_token": [0-9]*, "tokens": [0-9]*, //; s/"source": 0, "name"/"source"/' >where
tokmap show train.run --source more -d 2 --where --steps 0..12 --json -q >>where
equal "$(wc -l <shown)" "$(wc -l <where)"
python3 - <<'PYTHON'
import json
keys = ("step", "row", "draw", "epoch", "window", "shared")
shown = [json.loads(line) for line in open("shown")]
where = [json.loads(line) for line in open("where")]
assert [[a[k] for k in keys] for a in shown] == [[b[k] for k in keys] for b in where]
assert {(a["source"], a["document"]) for a in shown} >= {("web", 2), ("web", 7), ("web", 8)}, shown
PYTHON
tokmap show taken.run --exposures list -q >lines
equal "$(wc -l <lines)" "$(wc -l <shown)"
tokmap show taken.run --exposures list --steps 20..30 >out 2>err
[ ! -s out ]
holds err "none of 4 documents"
tokmap show train.run --exposures list --steps 20..30 >out 2>err
[ -s out ]
sed '/steps/d' train.run >endless.run
exits 1 tokmap show endless.run --exposures list 2>err
holds err "choose the steps to search with --steps A..B"
sed '/steps/d' taken.run >endless.run
tokmap show endless.run --exposures list -q >out
same out lines
printf 'web 100000\n' >bad
exits 1 tokmap show taken.run --exposures bad 2>err
holds err "bad:1: source 'web' (small): document 100000 does not exist"
exits 2 tokmap show taken.run --exposures list --ids 2>err
exits 2 tokmap show taken.run --exposures list --step 3 2>err
exits 1 tokmap show taken.run --exposures missing 2>err

# Rows as they are delivered: the pad id, or nothing in text.
first=$(tokmap show train.run --source web -d 7 --where --steps 12..40 --json -q | head -n 1)
step=$(echo "$first" | sed 's/.*"step": \([0-9]*\).*/\1/')
row=$(echo "$first" | sed 's/.*"row": \([0-9]*\).*/\1/')
shared=$(echo "$first" | sed 's/.*"shared": \([0-9]*\).*/\1/')
tokmap show taken.run --step "$step" --row "$row" --ids >ids 2>err
holds err ", excluded, at token "
tokmap show train.run --step "$step" --row "$row" --ids -q >before
pad=$(field "$(tokmap info train.run --json >info; echo info)" pad_id)
[ "$(tr ' ' '\n' <ids | grep -cx "$pad")" -ge "$shared" ]
equal "$(wc -w <ids)" "$(wc -w <before)"
tokmap show taken.run --step "$step" --row "$row" --json -q >out
json out
holds out '"excluded": true'

tokmap audit taken.run --ranks 3 >out
holds out "ok     excluded  from step 12 on, "
holds out "(a place is a row and a stretch of neighboring documents, each of which"
tokmap audit taken.run --ranks 3 --json >out
json out

# Trained up to step 15 of the old run, killed after step 11's checkpoint, and continued with the new one.
PYTHONPATH=$TOKMAP_TREE/src/python TOKMAP_LIBRARY=${TOKMAP_BIN%/bin}/lib/libtokmap.so python3 -c '
import tokmap
with tokmap.Run("train.run").loader(fields="rows", trace="old.trace") as loader:
    for b in loader:
        if b.step == 11 and b.last_in_step:
            state = loader.state_dict()
        if b.step == 15:
            break
with tokmap.Run("train.run").loader(fields="rows", trace="one.trace") as loader:
    for b in loader:
        if b.step == 11 and b.last_in_step:
            loader.reload(tokmap.Run("taken.run"))
loader = tokmap.Run("taken.run").loader(fields="rows", trace="new.trace", resume=state)
for b in loader:
    if b.step == 30 and b.last_in_step:
        late = loader.state_dict()
loader.close()
open("late", "w").write(late["cursor"])' 2>err || skip "Python cannot load this build: $(tail -n 1 err)"
tokmap replay taken.run --trace one.trace >out 2>err
holds out "the same: 40 steps"
holds out "taken.run: from step 12 on, "
tokmap replay taken.run --trace new.trace --json >out 2>err
json out
equal "$(field out same) $(field out steps)" "true 28"
[ "$(field out excluded_rows)" -gt 0 ]
exits 1 tokmap replay taken.run --trace old.trace >out 2>err # what was trained after the list is found
holds out "old.trace delivered rows"
exits 1 tokmap replay train.run --trace one.trace >out 2>err
# Another list is another past, and the message names it.
cp list kept
grep -v 'web 8' kept >list
exits 1 tokmap replay taken.run --trace one.trace >out 2>err
printf 'exclude list from 35\n' >more
cat train.run more >later.run
PYTHONPATH=$TOKMAP_TREE/src/python TOKMAP_LIBRARY=${TOKMAP_BIN%/bin}/lib/libtokmap.so python3 -c '
import tokmap
try:
    tokmap.Run("taken.run").check(open("late").read())
except tokmap.PastError as problem:
    assert "in its data (line 9: exclude list from 12" in str(problem), problem
else:
    raise SystemExit("the changed list was taken")
run = tokmap.Run("later.run")
run.check(run.cursor(35))'
