# SPDX-License-Identifier: MIT
# ci: nonroot asan
# One changed bit anywhere is found, and the message names the damaged part.
. "$TOKMAP_CLI/helpers.sh"
# Three blocks of tokens, the last one short.
head -c 1200000 /dev/zero | tr '\0' 'a' >in.txt
tokmap pack -q -o big in.txt
tokmap verify big --quiet
for offset in 0 1048575 1048576 2097151 2097152 2400001; do
    block=$((offset / 1048576))
    cp big.bin bad.bin
    cp big.tmx bad.tmx
    flip bad.bin $offset
    exits 1 tokmap verify bad >out 2>err
    end=$(((block + 1) * 1048576))
    [ $end -le 2400002 ] || end=2400002
    holds out "bad.bin: block $block of the tokens (bytes $((block * 1048576))..$end)"
    holds out "bad: 1 fault"
    equal "$(wc -l <out | tr -d ' ')" 2
    exits 1 tokmap verify bad --json >out 2>err
    json out
    holds out "\"block\": $block, \"first_byte\": $((block * 1048576)), \"end_byte\": $end"
    holds out '"sound": false, "complete": true'
    exits 1 tokmap verify bad --quiet >out 2>err
    equal "$(wc -l <out | tr -d ' ')" 1
done
# If two blocks are damaged, both are found.
cp big.bin bad.bin
flip bad.bin 5
flip bad.bin 2400000
exits 1 tokmap verify bad --threads 1 >out 2>err
holds out "block 0 "
holds out "block 2 "
holds out "bad: 2 faults"
# Any byte of the index.
cp big.bin bad.bin
size=$(wc -c <big.tmx | tr -d ' ')
offset=0
while [ $offset -lt "$size" ]; do
    cp big.tmx bad.tmx
    flip bad.tmx $offset
    exits 1 tokmap verify bad --quiet >out 2>err
    holds out "bad.tmx"
    offset=$((offset + 37))
done
# Files that are too long, too short, or missing.
cp big.tmx bad.tmx
for bytes in 0 1 2400001 2400003 5000000; do
    cp big.bin bad.bin
    truncate -s $bytes bad.bin
    exits 1 tokmap verify bad >out 2>err
    holds out "bad.bin"
    holds err "cannot be opened"
    exits 1 tokmap verify bad --json >out 2>err
    json out
    holds out '"sound": false, "complete": false'
done
rm bad.bin
exits 1 tokmap verify bad 2>err
holds err "bad.bin"
