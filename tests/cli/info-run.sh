# SPDX-License-Identifier: MIT
# ci: asan
# A run is described first, then its source; a run without an end is described as endless.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
printf 'seq_len 64\nbatch 8\nseed 3\nsource web small\npasses 2\nskip 3..5\nskip 7..8\n' >train.run
tokmap info train.run | sed '/^how it was made/,$d; /^content/d; /^read by/d; /^indexes/d'
tokmap info train.run --json >json
json json
if command -v python3 >/dev/null; then
    equal "$(field json steps)" 57
    equal "$(field json delivered)" 54
    equal "$(field json remainder)" 4
    equal "$(field json sources.0.source)" web
    equal "$(field json sources.0.rows.windows)" 230
fi
# The run that arguments make of a dataset.
tokmap info small --seq-len 64 --batch 8 --seed 3 --passes 2 --json >made
json made
holds made '{"dataset": "small", "seq_len": 64, "lookahead": 1, "batch": 8, "seed": 3, "order": "shuffle", "steps": 57, "delivered": 57, "remainder": 4, "sources": [{"source": "data", '
tokmap info small --seq-len 64 --batch 8 --order sequential --steps 5 >made
holds made "sequential"
# Without --seed the seed is 0, as in a run file and in the libraries.
tokmap info small --seq-len 64 --batch 8 --json >made
holds made '"seed": 0, "order": "shuffle"'
printf 'seq_len 64\nbatch 8\nsource data small\n' >zero.run
tokmap show zero.run --step 3 --ids -q >a
tokmap show small --seq-len 64 --batch 8 --step 3 --ids -q >b
same a b
exits 2 tokmap info small --batch 8 2>err
holds err 'needs --seq-len and --batch'
exits 2 tokmap info small --seq-len 64 --batch 8 --seed 1 --steps 2 --passes 2 2>err
exits 2 tokmap info train.run --steps 2 2>err
holds err "already sets its end"
printf 'seq_len 64\nbatch 8\nseed 3\nsource web small\n' >endless.run
tokmap info endless.run >text
holds text "endless"
tokmap info endless.run --json >json
json json
holds json '"steps": null, "delivered": null, "remainder": null'
# A run file is recognized by its text. A missing file, a folder, and a name with an index beside it mean datasets.
printf 'seq_len 64\n' >small
tokmap info small >text
holds text "14,761"
rm small
printf 'seq_len 64\nnonsense 3\n' >bad.run
exits 1 tokmap info bad.run 2>err
holds err "bad.run:2: "
