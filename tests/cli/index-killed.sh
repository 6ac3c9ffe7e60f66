# SPDX-License-Identifier: MIT
# ci: nonroot tsan
# After kill -9 of `tokmap index` at any moment, there is no index, the old one, or the complete new one, and what the
# killed command left does not disturb the next one. Two at once: at most one works, and the other says so.
. "$TOKMAP_CLI/helpers.sh"
need python3
python3 -c '
from array import array
with open("train.bin", "wb") as file:
    file.write(array("H", ((i * 7919) % 50000 if i % 613 else 50256 for i in range(4000000))).tobytes())
with open("train.ds", "wb") as file, open("train.bin", "rb") as other:
    file.write(other.read())
with open("train.ds.index", "wb") as file:
    file.write(array("Q", range(400, 4000001, 400)).tobytes())
with open("train.ds.metadata", "w") as file:
    file.write("x|2\n4000000\n4 M")
with open("train.ds.loss", "wb") as file:
    file.write(bytes(i % 3 > 0 for i in range(4000000)))
'
raw=raw:train.bin,width=2,eod=50256
tokmap index -q "$raw"
tokmap index -q datatrove:train.ds
mv train.tmx train.whole
mv train.ds.tmx ds.whole
mv train.ds.mask ds.mask.whole
seen=
i=0
while [ $i -lt 40 ]; do
    i=$((i + 1))
    name=$raw
    [ $((i % 2)) -eq 0 ] || name=datatrove:train.ds
    tokmap index -q --force --threads $((i % 3 + 1)) "$name" 2>err &
    pid=$!
    [ $((i % 5)) -eq 0 ] || sleep 0.0$((i % 7))
    kill -s KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    tokmap verify -q "$name"
    if [ $((i % 2)) -eq 0 ]; then
        if [ -e train.tmx ]; then
            same train.tmx train.whole
            seen="$seen new"
            [ $((i % 4)) -eq 0 ] || rm train.tmx
        else
            seen="$seen none"
        fi
    elif [ -e train.ds.tmx ]; then
        same train.ds.tmx ds.whole
        same train.ds.mask ds.mask.whole
        seen="$seen new"
        [ $((i % 4)) -eq 1 ] || rm train.ds.tmx train.ds.mask
    else
        seen="$seen none"
    fi
done
echo "$seen"
tokmap index -q --force "$raw"
tokmap index -q --force datatrove:train.ds
same train.tmx train.whole
same train.ds.tmx ds.whole
equal "$(ls train.* | tr '\n' ' ')" \
    'train.bin train.ds train.ds.index train.ds.loss train.ds.mask train.ds.metadata train.ds.tmx train.tmx train.whole '

# Two at once: the index is complete, and the one that fails says why.
i=0
while [ $i -lt 10 ]; do
    i=$((i + 1))
    rm -f train.tmx
    tokmap index -q "$raw" 2>err1 &
    one=$!
    tokmap index -q "$raw" 2>err2 &
    two=$!
    first=0
    second=0
    wait $one || first=$?
    wait $two || second=$?
    [ $first -eq 0 ] || [ $second -eq 0 ]
    for told in "$first err1" "$second err2"; do
        set -- $told
        [ "$1" -eq 0 ] || grep -q 'another process is writing this index\|the index already exists' "$2"
    done
    same train.tmx train.whole
done
[ ! -e train.tmx.partial ]
