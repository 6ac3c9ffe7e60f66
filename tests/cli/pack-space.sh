# SPDX-License-Identifier: MIT
# ci: asan
# A disk that will be too small is foretold, from what is packed so far. Needs a small file system of its own.
. "$TOKMAP_CLI/helpers.sh"
need unshare mount
unshare -rm sh -c 'mkdir -p small && mount -t tmpfs -o size=44m none small' 2>/dev/null ||
    skip "no file system can be mounted here"
head -c 20000000 /dev/zero | tr '\0' a >a.txt
head -c 20000000 /dev/zero | tr '\0' b >b.txt
cp a.txt c.txt
unshare -rm sh -eu -c '
    mkdir -p small
    mount -t tmpfs -o size=44m none small
    status=0
    tokmap pack -q -o small/d a.txt b.txt c.txt 2>err || status=$?
    [ $status -eq 1 ]
    tokmap pack -q -o small/e a.txt 2>err2
    rm small/e.*
    tokmap pack -q --seal --also olmo -o small/f a.txt 2>err3
    rm small/f.*
    status=0
    tokmap pack -q --seal --also olmo,megatron -o small/g a.txt 2>err4 || status=$?
    [ $status -eq 1 ]
    tokmap verify -q small/g
    [ -e small/g.megatron.bin ] && [ ! -e small/g.npy ]
'
holds err 'warning: the output will probably not fit: small/d.bin is growing to about 120 MB, and its disk has '
equal "$(grep -c warning err)" 1
holds err 'No space left'
[ ! -s err2 ]
# A sealed shard and one copy of its tokens fit, and two do not. The shard is complete by then.
[ ! -s err3 ]
holds err4 'warning: the output will probably not fit: small/g.bin is growing to about 40.0 MB, the copies for other'
holds err4 'No space left'
holds err4 'the shards of small/g are complete, but not all of their files for other projects: the same command writes'
