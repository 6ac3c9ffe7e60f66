# SPDX-License-Identifier: MIT
# ci: nonroot
# After kill -9 at any moment of `tokmap pack --shard-tokens`, the name means the old set, the new one, or nothing, but
# never shards of both; and the next pack, whatever it does, begins by completing what was finished.
. "$TOKMAP_CLI/helpers.sh"
need awk
awk 'BEGIN { for (i = 0; i < 4000; i++) printf "{\"text\": \"old %d\"}\n", i }' >old.jsonl
awk 'BEGIN { for (i = 0; i < 6000; i++) printf "{\"text\": \"a new one %d\"}\n", i }' >new.jsonl
tokmap pack -q --shard-tokens 1k -o old old.jsonl
tokmap pack -q --shard-tokens 2k -o new new.jsonl
olds=$(ls old-*.tmx | wc -l)
news=$(ls new-*.tmx | wc -l)
[ "$olds" -ne "$news" ]

# like REFERENCE: whether the set d/d is the reference, file by file, and nothing else.
like()
{
    [ "$(ls d | sed 's/^d//')" = "$(ls | grep "^$1\(-[0-9]*\.\(bin\|tmx\)\)\{0,1\}\$" | sed "s/^$1//")" ] || return 1
    for shard in "$1"-*; do
        cmp -s "$shard" "d/d${shard#"$1"}" || return 1
    done
}

mkdir d
tokmap pack -q --shard-tokens 1k -o d/d old.jsonl
like old
seen=
i=0
while [ $i -lt 16 ]; do
    i=$((i + 1))
    tokmap pack -q --force --threads $((i % 3 + 1)) --shard-tokens 2k -o d/d new.jsonl 2>err &
    pid=$!
    sleep 0.$((i % 4))$((i * 7 % 10))
    kill -s KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    if tokmap info --json d/d >info 2>err; then
        tokmap verify -q d/d
        tokens=$(cat d/d-*.bin | wc -c)
        if [ "$tokens" -eq "$(cat new-*.bin | wc -c)" ]; then
            seen="$seen new"
            for shard in new-*; do same "$shard" "d/d${shard#new}"; done
        else
            seen="$seen old"
            for shard in old-*; do same "$shard" "d/d${shard#old}"; done
        fi
    else
        seen="$seen none"
        # The whole folder is the old set, or the new one, until an index is missing: then it cannot be opened.
        if tokmap verify -q d 2>err; then
            cat d/d-*.bin >all
            cat new-*.bin >whole
            [ "$(wc -c <all)" -eq "$(wc -c <whole)" ] || cat old-*.bin >whole
            same all whole
        fi
        equal "$(ls d/d.work | grep -c -x naming)" 1 'files that say what is missing:'
        # Without --force the next pack completes the set, and then says that it exists.
        exits 1 tokmap pack -q --shard-tokens 9k -o d/d old.jsonl 2>err
        holds err 'the set is complete now'
        like new || { echo 'the set is not complete' >&2; exit 1; }
    fi
    tokmap pack -q --force --shard-tokens 1k -o d/d old.jsonl
    like old || { echo 'files are left of another set' >&2; exit 1; }
done
echo "$seen"

# A pack of one shard that starts over removes what a killed pack of a set has left.
tokmap pack -q --checkpoint-seconds 0.001 --threads 1 --shard-tokens 500 -o d/n new.jsonl new.jsonl new.jsonl 2>err &
pid=$!
waited=0
while [ ! -e d/n.work/n-00003.tmx.ready ] && [ $waited -lt 400 ] && kill -0 $pid 2>/dev/null; do
    sleep 0.005
    waited=$((waited + 1))
done
kill -s KILL $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
if [ ! -e d/n ]; then
    ls d/n.work | tail -3
    tokmap pack -q --no-resume -o d/n new.jsonl
    equal "$(ls -d d/n* | tr '\n' ' ')" 'd/n.bin d/n.tmx '
fi
