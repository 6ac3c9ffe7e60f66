# SPDX-License-Identifier: MIT
# ci: asan
# Audits of balanced rows, and of rows by node: loaders with these options, and what cannot be balanced.
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
holds out "ok     loader    "
tokmap audit mix.run --ranks 7 --rows 2 --balance 0.01 --json -q >out
json out
equal "$(field out ok)" true
tokmap audit mix.run --balance 1 -q >out
holds out "ok     loader    "

# Rows by block: each loader delivers the rows of its node.
printf 'seq_len 64\nbatch 24\nsource web synthetic:vocab=1000,tokens=500000\nsteps 40\n' >plain.run
printf 'order even 8 16\n' | cat plain.run - >even.run
tokmap audit even.run --ranks 8 --nodes 4 -q >out
holds out "ok     loader    "
exits 1 tokmap audit plain.run --ranks 8 --nodes 4 -q 2>err
exits 1 tokmap audit even.run --ranks 8 --nodes 3 -q 2>err
holds err "nodes is 3"

# The options of a simulation that tokmap-bench has now.
exits 2 tokmap audit even.run --ranks 8 --cache 1G 2>err
holds err "unknown option '--cache'; what a cache of each node reads is simulated by \`tokmap-bench cost RUN --gpus R"

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
