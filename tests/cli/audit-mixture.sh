# SPDX-License-Identifier: MIT
# ci: asan
# Audits of mixtures: shares of each phase, epochs, repetitions, a change of batch and length, limits, padding, blocks.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
cat >mix.run <<'RUN'
seq_len 64
batch   8
seed    3
source  small small epochs<=4
source  web   synthetic:vocab=1000,tokens=100000,document=50
source  wiki  synthetic:vocab=1000,tokens=20000,document=90,seed=2
phase   0   web 0.50  wiki 0.30  small 0.20
phase   100 wiki 0.60  web 0.40  batch 16
phase   150 batch 24  seq_len 96
phase   200 small 1  web 2
skip    3..5
skip    199..201
steps   250
RUN
tokmap audit mix.run --ranks 3 --rows 2
echo
printf 'seq_len 64\nbatch 10\norder blocks 8 3\ntail pad\nsource a small\nsource b synthetic:vocab=9,tokens=3000\nphase 0 natural\npasses 1\n' >pad.run
tokmap audit pad.run --ranks 4
# Everything in JSON: numbers of each phase and source add up.
tokmap audit mix.run --ranks 3 --rows 2 --json >out
json out
python3 - <<'PYTHON'
import json
audit = json.load(open("out"))
assert audit["ok"] and audit["draws"] == audit["draws_counted"] == 100 * 8 + 50 * 16 + 50 * 24 + 50 * 24
assert [phase["draws"] for phase in audit["phases"]] == [800, 800, 1200, 1200]
for phase in audit["phases"]:
    assert sum(share["draws"] for share in phase["shares"]) == phase["draws"]
    assert all(abs(share["draws"] - phase["draws"] * share["weight"] / share["weights"]) < 4 for share in phase["shares"])
tokens = {}
for phase in audit["phases"]:
    for share in phase["shares"]:
        tokens[share["source"]] = tokens.get(share["source"], 0) + share["draws"] * phase["seq_len"]
assert {source["source"]: source["tokens"] for source in audit["sources"]} == tokens
assert sum(source["draws_skipped"] for source in audit["sources"]) == 2 * 8 + 2 * 24
assert audit["tokens"] == 98 * 8 * 64 + 50 * 16 * 64 + 98 * 24 * 96 + 2 * 24 * 96 - 2 * 24 * 96
assert audit["windows"] is None and audit["epochs"] == []
assert audit["sampled"]["documents_max"] <= audit["sampled"]["documents_bound"]
assert 0 < audit["sampled"]["targets_counted"] < audit["sampled"]["targets"]
for cut in audit["cut_epochs"]:
    assert cut["step"] in (150, 200) and 0 < cut["windows_shown"] < cut["windows"]
PYTHON
# A part of the steps is counted, and the rest is sampled; the shares are still those of the whole run.
tokmap audit mix.run --ranks 3 --draws 1k --sample-steps 0 --json >out
json out
holds out '"draws": 4000, "draws_counted": 992,'
holds out '"sampled": null'
holds out 'counted the first 992 of 4,000 draws'
tokmap audit mix.run --ranks 3 --steps 120 >out
holds out '120 steps (last: 119)'
holds out '100..120'
# Threads change nothing.
tokmap audit mix.run --ranks 3 --rows 2 -j 1 --json >one
tokmap audit mix.run --ranks 3 --rows 2 -j 4 --json >four
cmp one four
# A phase with a smaller batch than ranks.
exits 1 tokmap audit mix.run --ranks 12 >out
holds out 'FAULT  ranks     12 ranks cannot share'
exits 2 tokmap audit mix.run --ranks 2 --passes 2 2>err
holds err '--passes needs a run of one source and one phase'
