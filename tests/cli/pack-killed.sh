# SPDX-License-Identifier: MIT
# ci: nonroot
# After kill -9 at any moment, there is the old shard, no shard, or the complete new one, and the files that the killed
# command left do not disturb the next one.
. "$TOKMAP_CLI/helpers.sh"
head -c 300000 /dev/zero | tr '\0' 'o' >old
head -c 3000000 /dev/zero | tr '\0' 'n' >new
tokmap pack -q -o new new
tokmap pack -q -o old old
tokmap pack -q -o d old
seen=
i=0
while [ $i -lt 40 ]; do
    i=$((i + 1))
    tokmap pack -q --force --threads $((i % 3 + 1)) -o d new 2>err &
    pid=$!
    [ $((i % 4)) -eq 0 ] || sleep 0.0$((i % 10))
    kill -s KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    if [ ! -e d.tmx ]; then
        seen="$seen none"
        tokmap pack -q --force -o d old
    else
        tokmap verify -q d # the tokens are those of the index, also if they still have a name that contains its id
        if cmp -s d.tmx new.tmx; then
            [ ! -e d.bin ] || same d.bin new.bin
            seen="$seen new"
            tokmap pack -q --force -o d old
        else
            same d.tmx old.tmx
            [ ! -e d.bin ] || same d.bin old.bin
            seen="$seen old"
        fi
    fi
done
tokmap pack -q --force -o d new
same d.bin new.bin
equal "$(ls d.* | tr '\n' ' ')" 'd.bin d.tmx '
echo "$seen"

# A pack without a mask also removes what a killed one with a mask has left.
for left in k.tmx.partial k.bin.partial k.mask.partial; do echo x >$left; done
tokmap pack -q -o k old
equal "$(echo k.*)" 'k.bin k.tmx'
