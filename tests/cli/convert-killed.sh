# SPDX-License-Identifier: MIT
# ci: nonroot
# After kill -9 of `tokmap convert` at any moment, there is the old set of files, the complete new one, or none, and
# what the killed command left does not disturb the next one. Two at once: at most one works, and the other says so.
. "$TOKMAP_CLI/helpers.sh"
need python3
python3 -c '
from array import array
with open("train.bin", "wb") as file:
    file.write(array("H", ((i * 7919) % 50000 if i % 613 else 50256 for i in range(4000000))).tobytes())
'
raw=raw:train.bin,width=2,eod=50256
tokmap convert -q --to megatron -o m "$raw"
mkdir whole
mv m.bin m.idx whole
tokmap convert -q --to datatrove -o m "$raw"
mv m.ds m.ds.index m.ds.metadata whole
seen=
i=0
while [ $i -lt 40 ]; do
    i=$((i + 1))
    format=megatron
    key=m.idx
    [ $((i % 2)) -eq 0 ] || format=datatrove key=m.ds
    tokmap convert -q --force --to $format -o m "$raw" 2>err &
    pid=$!
    [ $((i % 5)) -eq 0 ] || sleep 0.0$((i % 7))
    kill -s KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    if [ -e $key ]; then
        seen="$seen set"
        for file in m.bin m.idx; do
            [ $format != megatron ] || same $file whole/$file
        done
        for file in m.ds m.ds.index m.ds.metadata; do
            [ $format != datatrove ] || same $file whole/$file
        done
        [ $((i % 4)) -gt 1 ] || rm -f m.bin m.idx m.ds m.ds.*
    else
        seen="$seen none"
    fi
done
echo "$seen"
tokmap convert -q --force --to megatron -o m "$raw"
tokmap convert -q --force --to datatrove -o m "$raw"
equal "$(ls m.* | tr '\n' ' ')" 'm.bin m.ds m.ds.index m.ds.metadata m.idx '
for file in m.bin m.idx m.ds m.ds.index m.ds.metadata; do
    same $file whole/$file
done

# Two at once.
i=0
while [ $i -lt 10 ]; do
    i=$((i + 1))
    rm -f m.bin m.idx
    tokmap convert -q --to megatron -o m "$raw" 2>err1 &
    one=$!
    tokmap convert -q --to megatron -o m "$raw" 2>err2 &
    two=$!
    first=0
    second=0
    wait $one || first=$?
    wait $two || second=$?
    [ $first -eq 0 ] || [ $second -eq 0 ]
    for failure in "$first err1" "$second err2"; do
        set -- $failure
        [ "$1" -eq 0 ] || grep -q 'another process is writing this output\|the output already exists' "$2"
    done
    same m.bin whole/m.bin
    same m.idx whole/m.idx
done
[ ! -e m.idx.partial ] && [ ! -e m.bin.partial ]

# An interrupt leaves nothing.
rm -f m.*
tokmap convert -q --to megatron -o m "$raw" 2>err &
pid=$!
kill -s TERM $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
[ ! -e m.bin.partial ] && [ ! -e m.idx.partial ]
