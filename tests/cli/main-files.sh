# SPDX-License-Identifier: MIT
# Datasets of more shards than files may be open: commands raise the soft limit to the hard one, and below that open
# shards when they are needed, with the results of a higher limit. Where the limit still stops, the remedy is named.
. "$TOKMAP_CLI/helpers.sh"
need awk python3

awk 'BEGIN { for (i = 0; i < 600; i++) printf "{\"text\": \"document %d of many\", \"n\": \"%d\"}\n", i, i % 5 }' >d.jsonl
tokmap pack -q --columns n --shard-tokens 200 -o set/w d.jsonl
rm set/w
awk 'BEGIN { for (i = 0; i < 450; i++) printf "{\"ids\": [%d, 1, 2, 3], \"mask\": [0, 1, 1, 0]}\n", i % 9 }' >m.jsonl
tokmap pack -q --ids-field ids --mask-field mask --vocab-size 9 --no-eod --shard-tokens 30 -o masked/m m.jsonl
rm masked/m
[ "$(ls set/*.tmx | wc -l)" -gt 50 ]
[ "$(ls masked/*.tmx | wc -l)" -gt 50 ]
printf 'tokmap-shards 1\n' >old
ls set/*.tmx >>old
printf 'seq_len 16\nbatch 4\nsource a set\nsource b masked\nphase 0 a 0.5 b 0.5\nsteps 20\n' >two.run

# all FOLDER: what commands say and write, in a folder of their own.
all()
{
    mkdir "$1"
    for data in set masked old; do
        tokmap info --json $data
        tokmap stats --json $data
        tokmap verify -q $data
        tokmap merge -q --force -o merged $data
        cat merged
        [ $data = old ] || tokmap copy -q $data "$1"/copy-$data
        tokmap convert -q --to nanogpt --drop-mask -o "$1"/nano-$data $data
        tokmap plan -q --seq-len 16 -o "$1"/plan-$data $data
    done >"$1"/said
    tokmap seal -q "$1"/copy-set
    tokmap verify -q "$1"/copy-set
    tokmap audit --ranks 2 two.run 2>/dev/null >"$1"/audit
    tokmap show --ids --step 7 two.run >"$1"/show
    tokmap info two.run >"$1"/run
}
all high
(ulimit -Sn 40 && all soft)
(ulimit -n 40 && all hard)
for where in soft hard; do
    sed "s|$where/|high/|g" $where/audit >changed && mv changed $where/audit
    diff -r high $where
done

# A library leaves the limit alone, and opens the folder all the same.
PYTHONPATH=$TOKMAP_TREE/src/python TOKMAP_LIBRARY=${TOKMAP_BIN%/bin}/lib/libtokmap.so python3 - <<'PY'
import resource, sys
import tokmap
resource.setrlimit(resource.RLIMIT_NOFILE, (60, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
with tokmap.Dataset("set") as few:
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 60
    tokens = few.tokens()
    assert few.origin(len(few) - 1).record == 599
    assert [few.value(number, "n") for number in (3, 598)] == ["3", "3"]
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
with tokmap.Dataset("set") as all:
    assert bytes(tokens) == bytes(all.tokens())
PY

# Files of other projects have no index from which they could be opened later.
mkdir raw
for i in $(seq 1 60); do
    cp set/w-00000.bin raw/$i.bin
done
(ulimit -n 40 && exits 1 tokmap info 'raw:raw/*.bin,width=2' 2>err)
holds err 'raise the limit of open files (ulimit -n), or name shards in a manifest'
