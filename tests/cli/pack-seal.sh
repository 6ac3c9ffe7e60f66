# SPDX-License-Identifier: MIT
# ci: asan
# --seal: the files are those of `tokmap pack` and then `tokmap seal`, byte for byte, with one shard and with many, for
# each number of threads, over old shards, after a kill at any moment, and after the disk was full. TOKMAP_KILLS: how
# often packs are killed (9).
. "$TOKMAP_CLI/helpers.sh"
need awk
kills=${TOKMAP_KILLS:-9}
awk 'BEGIN { srand(5); for (i = 0; i < 40000; i++) { t = ""; n = int(rand() * 40); for (k = 0; k < n; k++)
    t = t " word" int(rand() * 3000); printf "{\"text\":\"%s\",\"url\":\"u%d\",\"m\":[1,%d,0]}\n", t, i % 700, i % 2 } }' \
    >a.jsonl
awk 'BEGIN { for (i = 0; i < 30000; i++) printf "{\"ids\":[%d,%d,7],\"m\":[1,%d,0]}\n", i % 999, i % 17, i % 2 }' >m.jsonl
printf 'one line\n' >few.txt

# alike OPTION...: packs and seals `plain`, packs `sealed` with --seal, and compares all files.
alike()
{
    rm -rf plain* sealed*
    tokmap pack -q --checkpoint-seconds 0 -o plain "$@"
    for name in plain plain.train plain.val; do
        [ ! -e $name.tmx ] && [ ! -e $name ] || tokmap seal -q $level $name
    done
    tokmap pack -q --checkpoint-seconds 0 $sealed -o sealed "$@"
    equal "$(ls -d sealed* | sed 's/^sealed//' | tr '\n' ' ')" "$(ls -d plain* | sed 's/^plain//' | tr '\n' ' ')"
    for file in plain*; do
        case $file in
        *.zst | *.tmx | *.mask | *.dropped) same "sealed${file#plain}" "$file" ;;
        *.bin) echo "$file is not sealed" >&2; exit 1 ;;
        *) sed 's/^plain/sealed/' "$file" >wanted; same "sealed${file#plain}" wanted ;;
        esac
    done
}
level=
sealed=--seal
alike --columns url a.jsonl
alike --threads 3 a.jsonl
tokmap verify -q sealed
alike --shard-tokens 300K --columns url a.jsonl
[ "$(ls sealed-*.zst | wc -l)" -gt 5 ]
tokmap verify -q sealed
alike --shard-tokens 200K --threads 5 a.jsonl
alike --shard-tokens 200K --unit-bytes 1M --columns url a.jsonl few.txt
for task in 0/2 1/2; do
    tokmap pack -q --checkpoint-seconds 0.01 --seal -o tasks --task $task --shard-tokens 200K --unit-bytes 1M \
        --columns url a.jsonl few.txt
done
for shard in sealed-*; do same "$shard" "tasks${shard#sealed}"; done
equal "$(ls -d tasks* | wc -l)" "$(ls -d sealed* | wc -l)"
rm tasks*
alike --ids-field ids --mask-field m --vocab-size 1000 --no-eod --shard-tokens 20K m.jsonl
alike --ids-field ids --mask-field m --vocab-size 70000 --no-eod m.jsonl
alike --split train=0.9,val=0.1 few.txt
alike --shuffle 7 --dedup exact --split train=0.8,val=0.2 --shard-tokens 400K a.jsonl
level='--level 1'
sealed=--seal=1
alike a.jsonl few.txt
level='--level 17'
sealed=--seal=17
alike few.txt

# What is said.
tokmap pack --seal -o said --shard-tokens 1M a.jsonl >out
holds out 'said-00000.bin.zst and so on'
holds out ' of tokens in '
tokmap pack --seal -o one a.jsonl >out
holds out 'one.bin.zst ('
tokmap pack --seal --json -o json a.jsonl >out
json out
holds out "\"sealed_bytes\": $(wc -c <json.bin.zst | tr -d ' ')"
tokmap pack --seal --dry-run a.jsonl >out
equal "$(ls | grep -c zst)" "$(($(ls said-*.zst | wc -l) + $(ls plain*.zst sealed*.zst | wc -l) + 2))"
for wrong in 0 20 x -1 1.5; do
    exits 2 tokmap pack -q --seal=$wrong -o wrong few.txt 2>err
    holds err "--seal=LEVEL must be a level of zstd, 1 to 19; got '$wrong'"
done
[ ! -e wrong.tmx ]
if command -v zstd >/dev/null 2>&1; then
    tokmap pack -q -o raw a.jsonl
    zstd -q -dc one.bin.zst >got
    same got raw.bin
fi

# Over old shards: a plain one, a sealed one, a file that belongs to no shard, and a set; and a plain one over a sealed
# one.
mkdir d
cp one.tmx one.bin.zst d/
tokmap pack -q --seal -o few few.txt
for old in few.txt a.jsonl; do
    tokmap pack -q --force -o d/one $old
    equal "$(ls d | tr '\n' ' ')" 'one.bin one.tmx '
    exits 1 tokmap pack -q --seal -o d/one few.txt 2>err
    holds err 'already exists'
    tokmap pack -q --force --seal -o d/one few.txt
    equal "$(ls d | tr '\n' ' ')" 'one.bin.zst one.tmx '
    same d/one.tmx few.tmx
    tokmap pack -q --force --seal -o d/one $old
    tokmap verify -q d/one
    tokmap pack -q --force --seal -o d/one few.txt
    same d/one.bin.zst few.bin.zst
done
rm d/one.tmx
exits 1 tokmap pack -q --seal -o d/one few.txt 2>err
holds err 'd/one.bin.zst'
mv d/one.bin.zst d/one.bin
tokmap pack -q --seal --force -o d/one few.txt
equal "$(ls d | tr '\n' ' ')" 'one.bin.zst one.tmx '
rm d/*
tokmap pack -q --shard-tokens 200K -o d/s a.jsonl
tokmap pack -q --shard-tokens 1M --seal --force -o d/s a.jsonl
equal "$(ls d | sed 's/^s-[0-9]*//' | sort -u | tr '\n' ' ')" '.bin.zst .tmx s '
equal "$(ls d/*.zst | wc -l)" "$(ls said-*.zst | wc -l)"
tokmap verify -q d/s
tokmap pack -q --shard-tokens 600K --force -o d/s a.jsonl
equal "$(ls d | sed 's/^s-[0-9]*//' | sort -u | tr '\n' ' ')" '.bin .tmx s '

# A kill at any moment, between and within the sealing of shards; the same command continues.
killed()
{
    rm -rf ref* k k.* k-*
    tokmap pack -q -o ref --checkpoint-seconds 0 --seal "$@"
    tries=0
    late=
    while [ $tries -lt 5 ]; do
        tries=$((tries + 1))
        number=$((number + 1))
        tokmap pack -q -o k --seal --checkpoint-seconds 0.00$((number % 3 * 4 + 1)) --threads $((number % 3 + 1)) "$@" \
            2>err &
        pid=$!
        sleep 0.$((number % 3))$((number * 7 % 10))$((number * 3 % 10))
        kill -s KILL $pid 2>/dev/null || true
        status=0
        wait $pid 2>/dev/null || status=$?
        if [ -e k.work/journal ]; then
            continued=$((continued + 1))
            # Units are sealed one by one: plain tokens are those of the open shard and of one before it, of each set.
            plain=$(ls k.work 2>/dev/null | grep -c '\.bin\.ready\.partial$' || true)
            [ "$plain" -le 4 ] || { ls k.work >&2; exit 1; }
        elif [ -e k.tmx ] || [ -e k ] || [ -e k.train ]; then
            late=1
            break
        fi
        [ $status -eq 137 ] || { cat err >&2; exit 1; }
    done
    if [ "$late" ]; then # it removes what the kill may have left beside the complete output
        exits 1 tokmap pack -q -o k --seal "$@" 2>err
        holds err 'already exists'
    else
        tokmap pack -q -o k --seal "$@"
    fi
    for file in ref*; do
        case $file in
        *.zst | *.tmx) same "k${file#ref}" "$file" ;;
        *) sed 's/^ref/k/' "$file" >wanted; same "k${file#ref}" wanted ;;
        esac
    done
    equal "$(ls -d k* | wc -l)" "$(ls -d ref* | wc -l)" 'files:'
}
continued=0
number=0
while [ $number -lt $kills ]; do
    killed --shard-tokens 150K a.jsonl
    killed --shard-tokens 100K --columns url --split train=0.7,val=0.3 a.jsonl
    killed a.jsonl a.jsonl
done
echo "continued: $continued"
[ $kills -lt 5 ] || [ $continued -gt 0 ]

# Another level is refused. A journal without a checkpoint, which is short, would be no work to continue.
is_saved()
{
    [ -e lev.work/journal ] && [ "$(wc -c <lev.work/journal)" -gt 4000 ]
}
tokmap pack -q -o lev --seal=1 --checkpoint-seconds 0.001 --threads 1 a.jsonl a.jsonl a.jsonl 2>err &
pid=$!
waited=0
while ! is_saved && [ $waited -lt 400 ] && kill -0 $pid 2>/dev/null; do
    sleep 0.005
    waited=$((waited + 1))
done
kill -s TERM $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
if grep -q 'the same command continues' err; then # only what can be continued is refused to others
    exits 1 tokmap pack -q -o lev --seal=2 a.jsonl a.jsonl a.jsonl 2>err
    holds err 'another --seal: it had 1, and this one has 2'
    exits 1 tokmap pack -q -o lev a.jsonl a.jsonl a.jsonl 2>err
    holds err 'another --seal: it had 1, and this one has none'
fi
