# SPDX-License-Identifier: MIT
# ci: asan
# --shuffle where storage ends: while chunks are written, and while the shard is. The message has the reason and what to
# do, no file is left, an old shard stays, and a later command with more room succeeds. An interrupt leaves nothing.
. "$TOKMAP_CLI/helpers.sh"
need awk
awk 'BEGIN { for (i = 0; i < 40000; i++) printf "{\"text\": \"document %d with a text of some words\"}\n", i }' >docs.jsonl
printf old >old.txt
tokmap pack -q --shuffle 1 -o wanted docs.jsonl

# A limit for the size of a file, which the chunks pass.
tokmap pack -q -o d old.txt
cp d.bin old.bin
for kilobytes in 8 500; do
    if (trap '' XFSZ; ulimit -f $kilobytes; exec tokmap pack -q --force --shuffle 1 --shuffle-memory 64Ki -o d \
        docs.jsonl) 2>err; then
        echo "a file of 3 MB fits $kilobytes" >&2
        exit 1
    fi
    holds err 'File too large'
    holds err 'documents to shuffle'
    same d.bin old.bin
    equal "$(ls -A d.* | tr '\n' ' ')" 'd.bin d.tmx '
done
tokmap pack -q --force --shuffle 1 --shuffle-memory 64Ki -o d docs.jsonl
same d.bin wanted.bin

# An interrupt while the inputs are read, when chunks have been written.
mkfifo named
tokmap pack -q --force --shuffle 2 --shuffle-memory 64Ki --input-format jsonl -o d named 2>err &
pid=$!
exec 3>named
cat docs.jsonl >&3
await [ -e d.bin.partial ]
kill -s TERM $pid
status=0
wait $pid || status=$?
exec 3>&-
equal $status 143
holds err 'interrupted'
same d.bin wanted.bin
equal "$(ls -A d.* | tr '\n' ' ')" 'd.bin d.tmx '

# A full file system: 1 MiB ends in the first pass, 6 MiB in the second, and 12 MiB suffice. The estimate says it first
# where the input is large enough.
need unshare mount
unshare -rm sh -c 'mkdir -p small && mount -t tmpfs -o size=1m none small' 2>/dev/null ||
    skip "the rest was tested, but no file system can be mounted here"
for megabytes in 1 6 12; do
    unshare -rm sh -eu -c '
        mkdir -p small
        mount -t tmpfs -o size='$megabytes'm none small
        tokmap pack -q -o small/d old.txt
        status=0
        tokmap pack -q --force --shuffle 1 --shuffle-memory 64Ki -o small/d docs.jsonl 2>err || status=$?
        ls -A small | tr "\n" " " >files
        cp small/d.bin got.bin
        exit $status
    ' && status=0 || status=$?
    equal "$(cat files)" 'd.bin d.tmx '
    if [ $megabytes -lt 12 ]; then
        equal $status 1
        holds err 'No space left'
        holds err 'free space'
        same got.bin old.bin
    else
        equal $status 0
        same got.bin wanted.bin
    fi
    [ $megabytes != 1 ] || holds err 'the shuffle needs about as much space as the tokens'
done
