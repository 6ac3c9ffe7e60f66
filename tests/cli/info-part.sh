# SPDX-License-Identifier: MIT
# ci: asan
# A part of a dataset says of what it is a part.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
tokmap info 'small#docs=0..50%' >text
holds text "small#docs=0..50%"
holds text "92.12% of the 14,761 tokens, 18 documents, of small"
tokmap info 'small#docs=3..18' --json >json
json json
holds json '"documents": 15,'
holds json '"part_of": {"dataset": "small", "tokens": 14761, "documents": 18}'
tokmap info small --json >json
holds json '"part_of": null'
tokmap info 'small#tokens=100..1000' --seq-len 64 --json >json
holds json '"windows": 14, "tail": 4,'
exits 1 tokmap info 'small#docs=5..5' 2>err
[ -s err ]
