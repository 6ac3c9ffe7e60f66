# SPDX-License-Identifier: MIT
# ci: asan
# A disk that is full while a shard is sealed: a message, an old shard that stays as it was, no sealed file, and a
# journal with which the same command continues once there is room. Needs a small file system of its own.
. "$TOKMAP_CLI/helpers.sh"
need unshare mount
unshare -rm sh -c 'mkdir -p small && mount -t tmpfs -o size=16m none small' 2>/dev/null ||
    skip "no file system can be mounted here"
# Hexadecimal digits: compressed to about a third, so 10 MB of tokens need 13 MB together, and 12 MB need 16 MB.
awk 'BEGIN { srand(9); for (i = 0; i < 50000; i++) { t = ""; for (k = 0; k < 12; k++)
    t = t sprintf("%08x", int(rand() * 4294967296)); print "{\"text\": \"" t "\"}" } }' >a.jsonl
printf '{"text": "an old one"}\n' >old.jsonl
tokmap pack -q --seal -o ref a.jsonl
tokmap pack -q --seal --shard-tokens 4M -o set a.jsonl
plain=$(tokmap info ref --json | sed -n 's/.*"tokens": \([0-9]*\).*/\1/p' | head -n 1)
export plain
unshare -rm sh -eu -c '
    fill() { head -c "$1" /dev/zero >small/filler; }
    mkdir -p small
    mount -t tmpfs -o size=16m none small
    tokmap pack -q -o small/one old.jsonl
    cp small/one.bin small/one.tmx .
    # Room for the tokens, and for little more.
    fill $((16 * 1048576 - plain * 2 - 2000000))
    status=0
    tokmap pack -q --force --seal --checkpoint-seconds 0.01 -o small/one a.jsonl 2>err || status=$?
    [ $status -eq 1 ]
    cmp one.bin small/one.bin
    cmp one.tmx small/one.tmx
    ls small >left
    rm small/filler
    tokmap pack -q --force --seal -o small/one a.jsonl
    cmp small/one.tmx ref.tmx
    cmp small/one.bin.zst ref.bin.zst
    ls small >after
    rm small/*
    fill 12000000
    status=0
    tokmap pack -q --seal --shard-tokens 4M --checkpoint-seconds 0 -o small/set a.jsonl 2>err2 || status=$?
    [ $status -eq 1 ]
    ls small >left2
    fill 0
    tokmap pack -q --seal --shard-tokens 4M -o small/set a.jsonl
    for file in set*; do cmp $file small/$file; done
'
holds err 'No space left'
holds err 'one.bin.zst.partial: '
if grep -q one.work left; then
    holds err 'the same command continues it'
fi
equal "$(grep -c zst left)" 0
equal "$(tr '\n' ' ' <after)" 'one.bin.zst one.tmx '
holds err2 'No space left'
equal "$(tr '\n' ' ' <left2)" 'filler '
