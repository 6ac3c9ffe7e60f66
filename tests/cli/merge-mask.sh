# SPDX-License-Identifier: MIT
# ci: asan
# A manifest of shards with and without masks: what counts is that of each shard, and verify reads every mask.
. "$TOKMAP_CLI/helpers.sh"
printf '{"ids": [1, 2, 3], "m": [0, 1, 1]}\n{"ids": [4], "m": [0]}\n' >a.jsonl
printf '{"ids": [5, 6], "m": [1, 0]}\n' >b.jsonl
tokmap pack -q --ids-field ids --mask-field m --vocab-size 10 --eod=9 -o a a.jsonl
tokmap pack -q --ids-field ids --mask-field m --vocab-size 10 --eod=9 -o b b.jsonl
tokmap merge -o both a b >out
holds out 'both: 9 tokens in 3 documents and 2 shards'
tokmap verify both >out 2>&1
holds out 'both: sound: 9 tokens, 3 documents in 2 shards'
tokmap info both >out
holds out '6 tokens count as targets (66.67%)'
equal "$(tokmap show --ids --document 0 both 2>&1 | grep '^(')" '(1) 2 3 9'
equal "$(tokmap show --ids --document 2 both 2>&1 | grep '^5')" '5 (6) 9'
tokmap show --json --ids --document 2 both >third
holds third '"ids": [5, 6, 9], "uncounted": [[1, 2]]'
# The identity is that of the shards in their order, with their masks.
tokmap merge -q -o again a b
tokmap merge -q -o turned b a
id() { tokmap info --json "$1" | sed -n 's/.*"content": "\([0-9a-f]*\)".*/\1/p' | head -n 1; }
equal "$(id again)" "$(id both)"
[ "$(id turned)" != "$(id both)" ]
tokmap merge -q -o alone b
equal "$(id alone)" "$(id b)"
# One shard has no mask: all of its tokens count.
tokmap pack -q --ids-field ids --vocab-size 10 --eod=9 -o c a.jsonl
tokmap merge -q -o some c b
tokmap verify some >out 2>&1
tokmap info some >out
holds out '8 tokens count as targets (88.89%)'
equal "$(tokmap show --ids --document 0 some 2>&1 | grep '^1')" '1 2 3 9'
# verify reads the masks of all shards, and names the one that is damaged.
printf '\007' >b.mask
exits 1 tokmap verify both >out 2>&1
holds out 'b.mask'
