# SPDX-License-Identifier: MIT
# ci: nonroot asan tsan
# Sealing and unsealing: the commands see the same dataset, `zstd -d` restores the tokens, unsealing restores the files.
. "$TOKMAP_CLI/helpers.sh"
awk 'BEGIN { for (i = 0; i < 60000; i++) print "line " i " of a text, with words " i * i % 9973 }' >long.txt
printf 'a short text' >short.txt
mkdir data
tokmap pack -q --eod -o data/one long.txt short.txt
tokmap pack -q --eod -o data/two short.txt
cp -r data plain
look()
{
    tokmap info "$1" --json | grep -o '"content": "[0-9a-f]*"'
    tokmap show "$1" -d 1 -q
    tokmap show "$1" --tokens 65000..66000 --ids -q
    tokmap export "$1" -o - 2>/dev/null | cksum
    tokmap stats "$1" -q --json 2>/dev/null | cksum
    printf 'seq_len 100\nbatch 7\nseed 3\nsource web %s\nsteps 9\n' "$1" >one.run
    tokmap order one.run --steps 0..9 2>/dev/null | cksum
    tokmap show one.run --step 5 -q --ids
}
look data >before
tokmap seal data >out 2>err
holds out "data: sealed 2 shards: 4."
holds out "ratio "
equal "$(ls data | tr '\n' ' ')" "one.bin.zst one.tmx two.bin.zst two.tmx "
look data >after
same before after
tokmap verify data >out
holds out "sound"
tokmap info data >out
holds out "2 of 2 shards, "
tokmap info data/one.bin.zst --json >out
holds out '"sealed_shards": 1'
tokmap seal data >out
equal "$(cat out)" "data: all shards were sealed already"
if command -v zstd >/dev/null 2>&1; then
    zstd -q -dc data/one.bin.zst >got
    same got plain/one.bin
    zstd -q -t data/two.bin.zst
fi
# A name without an index, and a shard that is replaced.
cp data/two.bin.zst data/three.bin.zst
exits 1 tokmap info data 2>err
holds err "its index (.tmx) is missing"
rm data/three.bin.zst
# Levels, threads, JSON.
cp data/one.bin.zst kept
tokmap seal data/one --force -j 3 -q
same data/one.bin.zst kept
tokmap seal data/one --force --level 1 --json >out
json out
holds out '"shards": 1, "changed": 1'
! cmp -s data/one.bin.zst kept || exit 1
tokmap verify -q data
look data >after
same before after
# Back. Only one shard is sealed in between.
tokmap unseal data/one -q
same data/one.bin plain/one.bin
same data/one.tmx plain/one.tmx
look data >after
same before after
tokmap unseal data >out 2>err
holds out "data: unsealed 1 shard"
holds out "because they were not sealed: 1 shard"
diff -r data plain
tokmap unseal data >out
equal "$(cat out)" "data: no shard was sealed"
# pack replaces a sealed shard, and leaves nothing of it.
tokmap seal -q data/two
tokmap pack -q --eod --force -o data/two long.txt
equal "$(ls data | tr '\n' ' ')" "one.bin one.tmx two.bin two.tmx "
tokmap verify -q data
# A mask stays, and can be given to a sealed shard.
tokens=$(tokmap info data/one --json | grep -o '"tokens": [0-9]*' | head -n 1 | tr -dc 0-9)
head -c "$tokens" /dev/zero | tr '\0' '\1' >all.mask
tokmap index -q --mask all.mask data/one
cp data/one.tmx masked
tokmap seal -q data/one
tokmap verify -q data/one
tokmap index -q --force --mask all.mask data/one
tokmap verify -q data/one
tokmap unseal -q data/one
same data/one.tmx masked
equal "$(ls data | tr '\n' ' ')" "one.bin one.mask one.tmx two.bin two.tmx "
