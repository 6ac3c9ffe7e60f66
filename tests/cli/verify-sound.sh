# SPDX-License-Identifier: MIT
# ci: tsan
# A sound dataset: one line on standard output, the same for every number of threads.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
tokmap verify small 2>err
holds err "/s"
tokmap verify small --threads 1
tokmap verify small --threads 7
tokmap verify small --quiet 2>err
[ ! -s err ]
tokmap verify small --json 2>err >out
json out
holds out '"faults": [], "sound": true, "complete": true, "tokens": 14761, "documents": 18, "shards": 1, "blocks": 1'
printf '{"text": ""}\n' >nothing.jsonl
tokmap pack -q --no-eod -o none nothing.jsonl
tokmap verify none
printf 'seq_len 64\nbatch 8\nsource web small\n' >train.run
tokmap verify train.run
tokmap verify train.run --json >out
holds out '{"run": "train.run", '
flip small.bin 100
exits 1 tokmap verify train.run >out
holds out "small.bin: block 0 of the tokens"
