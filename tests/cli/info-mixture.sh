# SPDX-License-Identifier: MIT
# ci: asan
# Sources, phases, shares, and totals of a run that mixes windows, a part, and a plan; padding; warnings.
. "$TOKMAP_CLI/helpers.sh"
need python3
pack_corpus
tokmap plan -q -o small.plan small --seq-len 64 >/dev/null
cat >train.run <<'RUN'
seq_len 64
batch 8
seed 3
source web small#docs=0..50%
source syn synthetic:vocab=257,tokens=9000,seed=1 epochs<=4
source docs small plan small.plan
phase 0 web 0.5 syn 0.3 docs 0.2
phase 10 batch 16
phase 20 web 1
steps 30
skip 3..5
RUN
tokmap info train.run --json >info
json info
tokmap info small.plan --json >plan
python3 - <<'PYTHON'
import json
info, plan = json.load(open("info")), json.load(open("plan"))
assert info["rows"] == 10 * 8 + 20 * 16 and info["tokens"] == info["rows"] * 64, info
assert info["steps"] == 30 and info["delivered"] == 28 and info["batch"] == 8 and info["batch_most"] == 16
assert info["stride"] is None and info["tail_pad"] is False and info["pad_id"] == 256
phases = [(p["first_step"], p["end_step"], p["batch"], p["mixture_step"],
           {s["source"]: s["share"] for s in p["shares"]}) for p in info["phases"]]
mixture = {"web": .5, "syn": .3, "docs": .2}
assert phases == [(0, 10, 8, 0, mixture), (10, 20, 16, 0, mixture), (20, 30, 16, 20, {"web": 1})], phases
for phase in info["phases"]:
    assert sum(s["draws"] for s in phase["shares"]) == (phase["end_step"] - phase["first_step"]) * phase["batch"]
sources = {s["source"]: s for s in info["sources"]}
windows = {"web": (13598 - 1) // 64, "syn": (9000 - 1) // 64, "docs": plan["rows"]}
for name, source in sources.items():
    draws = sum(s["draws"] for p in info["phases"] for s in p["shares"] if s["source"] == name)
    assert source["draws"] == draws and source["run_tokens"] == draws * 64, source
    assert source["rows"]["windows"] == windows[name], (name, source["rows"], windows)
    assert abs(source["epochs"] - draws / windows[name]) < 1e-9
assert sources["syn"]["epochs_most"] == 4 and sources["web"]["epochs_most"] is None
assert sources["docs"]["plan"].endswith("small.plan") and sources["web"]["plan"] is None
assert sources["web"]["part_of"] == {"dataset": "small", "tokens": 14761, "documents": 18}
assert sources["docs"]["part_of"] is None
PYTHON
tokmap info train.run >text
holds text "rows of the run    400"
holds text "tokens of the run  25,600"
grep -q '^syn  *9,000  synthetic  140 windows  .*  4  ' text
grep -q '^ *2  20..30  *16  *64  web  *100%  *160$' text
# An end that is padded; blocks; a stride.
printf 'seq_len 64\nbatch 6\nsource web small#tokens=0..1000\ntail pad\norder sequential\npasses 1\n' >pad.run
tokmap info pad.run --json >info
equal "$(field info rows)" 18
equal "$(field info valid_last)" 4
equal "$(field info tail_pad)" true
equal "$(field info sources.0.rows.windows)" 16
tokmap info pad.run >text
holds text "4 rows not padding"
printf 'seq_len 64\nbatch 6\nseed 1\nsource web small\norder blocks 8 4\nstride 16\nsteps 3\n' >blocks.run
tokmap info blocks.run --json >info
equal "$(field info blocks) $(field info span) $(field info stride) $(field info order)" '8 4 16 blocks'
equal "$(field info sources.0.rows.windows)" $((1 + (14761 - 1 - 64) / 16))
equal "$(field info sources.0.rows.tail)" $(((14761 - 64) % 16))
# Without an end there are no totals, and every phase has its shares.
sed '/^steps/d' train.run >endless.run
sed -i 's/ epochs<=4//' endless.run
tokmap info endless.run --json >info
equal "$(field info tokens) $(field info phases.2.end_step) $(field info sources.0.epochs)" 'null null null'
# Every command prints the warning of the run.
tokmap pack -q -t bytes --eod=7 -o seven in/a.txt
printf 'seq_len 8\nbatch 2\nsource a small\nsource b seven\nphase 0 a 1 b 1\nsteps 4\n' >warned.run
for command in info 'audit --ranks 2' verify 'show --step 1'; do
    # shellcheck disable=SC2086 # several words
    tokmap $command warned.run >out 2>err || :
    holds err "ends its documents with id"
done
