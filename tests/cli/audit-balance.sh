# SPDX-License-Identifier: MIT
# ci: asan
# Audits of balanced rows: how long ranks wait, loaders with the option, and what cannot be balanced.
. "$TOKMAP_CLI/helpers.sh"
need python3
pack_corpus
tokmap plan -q -o small.plan small --seq-len 128 2>err
cat >mix.run <<'RUN'
seq_len 128
batch   28
seed    3
source  small small plan small.plan
source  web   synthetic:vocab=1000,tokens=100000,document=200
phase   0   web 1  small 2
phase   20  batch 56
skip    3..5
steps   40
RUN
tokmap audit mix.run --ranks 7 --rows 2 --balance 0.01 -q >out
holds out "ok     balance   computed for 38 steps with"
holds out "balance: 38 steps of the run, q 0.01; the largest cost divided by the mean of the step"
tokmap audit mix.run --ranks 7 --rows 2 --balance 0.01 --json -q >balance.json
cp balance.json out
json out

python3 - <<'END'
import json
found = json.load(open("balance.json"))
assert found["ok"], found
balance = found["balance"]
for name in ("calls", "balanced_calls", "bound_calls", "waits", "balanced_waits", "ranks",
             "balanced_ranks"):
    assert 1 <= balance[name + "_p50"] <= balance[name + "_max"], (name, balance)
for which in ("p50", "max"):
    assert balance["bound_calls_" + which] <= balance["balanced_calls_" + which] <= balance["calls_" + which], balance
    assert balance["balanced_waits_" + which] < balance["waits_" + which], balance
    assert balance["balanced_ranks_" + which] < balance["ranks_" + which], balance
assert (balance["steps"], balance["rows"], balance["q"]) == (38, 18 * 28 + 20 * 56, 0.01)
END
tokmap audit mix.run --ranks 7 --steps 3 --balance 0 --json -q >out
json out
equal "$(field out balance)" null

# One rank with one call has all rows, whatever they cost.
tokmap audit mix.run --balance 1 -q >out
holds out "of a call: p50 1.000, max 1.000; balanced: p50 1.000, max 1.000"

for q in -1 1.5 1e-13; do
    exits 1 tokmap audit mix.run --balance=$q 2>err
    holds err "balance is "
done
exits 2 tokmap audit mix.run --balance much 2>err
python3 -c 'open("ids.bin", "wb").write(bytes(range(200)) * 20)'
printf 'seq_len 16\nbatch 4\nsource ids raw:ids.bin,width=2,eod=7,vocab=65536\nsteps 3\n' >raw.run
tokmap audit raw.run --ranks 2 -q >out 2>err
exits 1 tokmap audit raw.run --ranks 2 --balance 0.1 2>err
holds err "raw:ids.bin"
holds err "source 'ids' has no document index; make one with \`tokmap index\`"
