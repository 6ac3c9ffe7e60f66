# SPDX-License-Identifier: MIT
# What tasks or another command have left is not removed by a pack in one piece, unless it is asked to start over.
. "$TOKMAP_CLI/helpers.sh"
need awk
awk 'BEGIN { for (i = 0; i < 4000; i++) printf "{\"text\":\"document %d has %d words or more\"}\n", i % 3000, i % 3000 }' \
    >a.jsonl
tokmap pack -q -t bytes -o k --shard-tokens 50K --unit-bytes 50K --task 1/2 --wait 0 a.jsonl >report 2>err || true
[ -e k.work/journal ]
(cd k.work && find . -type f | sort | xargs cksum) >before
for options in '--dedup minhash --checkpoint-seconds 0' '--dedup minhash' '--dedup exact --checkpoint-seconds 0' \
    '--shard-tokens 50K --unit-bytes 1G --dedup minhash --checkpoint-seconds 0'; do
    exits 1 tokmap pack -q -t bytes -o k $options a.jsonl 2>err
    holds err 'unfinished work of tasks'
    (cd k.work && find . -type f | sort | xargs cksum) >after
    same before after
done
tokmap pack -q -t bytes -o k --shard-tokens 50K --unit-bytes 50K --task 0/2 a.jsonl
[ ! -e k.work ]
