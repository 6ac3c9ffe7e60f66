# SPDX-License-Identifier: MIT
# ci: asan
# A dataset of one shard, then a folder of two and a manifest.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
tokmap info small --seq-len 64
mkdir two
cp small.bin two/b.bin
cp small.tmx two/b.tmx
printf 'one' | tokmap pack -q -o two/a -
echo
tokmap info two
printf 'tokmap-shards 1\ntwo/b\ntwo/a\n' >manifest
echo
tokmap info manifest
tokmap info small.bin >a
tokmap info small.tmx >b
sed 1d a >c
sed 1d b >d
same c d
