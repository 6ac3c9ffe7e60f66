# SPDX-License-Identifier: MIT
# ci: asan
# --shard-tokens: the shards of a set together hold what a single shard holds, are cut at ends of documents, and have
# the same bytes for each number of threads; the set is replaced as a whole; all commands work on its manifest.
. "$TOKMAP_CLI/helpers.sh"
need awk

awk 'BEGIN {
    for (i = 0; i < 3000; i++) {
        text = ""
        for (k = i * 7 % 23; k > 0; k--)
            text = text "w" k " of " i " "
        if (i == 1500)
            for (k = 0; k < 2000; k++)
                text = text "a long document "
        printf "{\"text\": \"%s\", \"n\": %d}\n", text, i
    }
}' >docs.jsonl
tokmap pack -q --columns n -o one docs.jsonl
tokmap pack --json --columns n --shard-tokens 20k -o set docs.jsonl >report
json report
if command -v python3 >/dev/null 2>&1; then
    equal "$(field report shards)" "$(ls set-*.bin | wc -l | tr -d ' ')"
    equal "$(field report oversized_documents)" 1
fi
equal "$(ls | grep '^set' | grep -v -e '-[0-9][0-9][0-9][0-9][0-9]\.\(bin\|tmx\)$')" set
cat set-*.bin >all
same all one.bin
equal "$(head -n 4 set | cut -f 1)" "# tokmap manifest 2
# shards: width=2 vocabulary=257 eod=256 bos=none tokenizer=838f97144d8539b9b44dfc8fdc71fcb5 pages=yes sealed=no
set-00000
set-00001"
shards=$(ls set-*.tmx | wc -l | tr -d ' ')
[ "$shards" -gt 10 ]

# The shards are cut by the rule: each document, with its EOD, goes to the open shard if it fits there.
awk -v most=20000 '{
    tokens = length($0) - index($0, ": \"") - 2 - length(", \"n\": }") - length(NR - 1) - 1 + 1
    if (documents && held + tokens > most) {
        print held * 2
        held = documents = 0
    }
    held += tokens
    documents++
} END { print held * 2 }' docs.jsonl >wanted
for shard in set-*.bin; do wc -c <"$shard" | tr -d ' '; done >got
same wanted got
tokmap verify -q set

# The documents: texts, columns, and origins are those of the single shard.
tokmap export -q -o one.jsonl one 2>/dev/null || tokmap export -o one.jsonl one >/dev/null
tokmap export -q -o set.jsonl set 2>/dev/null || tokmap export -o set.jsonl set >/dev/null
same one.jsonl set.jsonl
for document in 0 1499 1500 1501 2999; do
    tokmap show one --document $document >a 2>err
    tokmap show set --document $document >b 2>err
    grep -v -e 'shard' -e '^one' -e 'one\.' a >a.lines || true
    grep -v -e 'shard' -e '^set' -e 'set-' b >b.lines || true
    same a.lines b.lines
done
tokmap info set >info
equal "$(sed -n "s/^shards *//p" info)" "$shards"
tokmap stats set >/dev/null
printf 'seq_len 128\nbatch 4\nseed 1\nsource s set\npasses 1\n' >t.run
tokmap audit t.run --ranks 2 >/dev/null
tokmap show t.run --step 3 --row 1 >/dev/null

# The same bytes for each number of threads.
for threads in 1 2 5; do
    tokmap pack -q --columns n --shard-tokens 20k -j $threads -o many docs.jsonl --force
    for shard in set-*.bin set-*.tmx; do
        same "$shard" "many${shard#set}"
    done
done

# A document that comes in parts, longer than a batch, goes where it would go if it were whole.
awk 'BEGIN { for (i = 0; i < 40000; i++) printf "a line %d of a text in parts\n", i }' >long.txt
printf 'short' >a.txt
printf 'also short' >z.txt
for tokens in 1 5 6 7 1000 1200000 1300000 10M; do
    tokmap pack -q --input-format text -j 2 --force --shard-tokens $tokens -o parts a.txt long.txt z.txt a.txt
    tokmap pack -q --input-format text -j 1 --force --min-tokens 1 --shard-tokens $tokens -o whole \
        a.txt long.txt z.txt a.txt
    equal "$(ls parts-*)" "$(ls whole-* | sed 's/whole/parts/')"
    for shard in parts-*.bin; do
        same "$shard" "whole${shard#parts}"
    done
    tokmap verify -q parts
done
equal "$(echo parts*)" 'parts parts-00000.bin parts-00000.tmx'

# --force replaces a set with another number of shards, also with and without a mask, and leaves nothing of it.
printf '{"i": [1,2,3], "m": [0,1,1]}\n{"i": [4,5], "m": [1,1]}\n{"i": [6], "m": [0]}\n' >ids.jsonl
tokmap pack -q --force --shard-tokens 3 --vocab-size 9 --ids-field i --mask-field m -o many ids.jsonl
equal "$(echo many*)" \
    'many many-00000.bin many-00000.mask many-00000.tmx many-00001.bin many-00001.mask many-00001.tmx'
tokmap verify -q many
tokmap pack -q --force --vocab-size 9 --ids-field i --mask-field m -o masked ids.jsonl
equal "$(od -An -tx1 masked.mask)" ' 1e'
equal "$(od -An -tx1 many-00000.mask many-00001.mask)" ' 06 03'
tokmap seal -q many-00001
equal "$(echo many-00001*)" 'many-00001.bin.zst many-00001.mask many-00001.tmx'
tokmap pack -q --force --shard-tokens 1M -o many docs.jsonl
equal "$(echo many*)" 'many many-00000.bin many-00000.tmx'
same many-00000.bin one.bin

# What is refused, and with what message.
refused()
{
    status=$1
    text=$2
    shift 2
    exits $status tokmap pack "$@" docs.jsonl >out 2>err
    holds err "$text"
}
refused 2 '--shard-tokens must be at least 1' --shard-tokens 0 -o x
refused 2 '--shard-tokens' --shard-tokens many -o x
refused 1 'the output already exists' --shard-tokens 20k -o set
refused 1 'so '"'one'"' means it and would not mean the shard set' --shard-tokens 20k --force -o one
refused 1 'this is a manifest' -o set --force
refused 1 '--shard-tokens' -o set --force
cp one.tmx stray-00007.tmx
refused 1 "at least 'stray-00007.tmx'" --shard-tokens 20k -o stray
mkdir folder
refused 1 'this is a folder' --shard-tokens 20k -o folder
tokmap merge -q -o merged set one
refused 1 'is not the manifest of a shard set' --shard-tokens 20k --force -o merged
echo text >plain
refused 1 'is not the manifest of a shard set' --shard-tokens 20k --force -o plain
mkdir busy.work
echo mine >busy.work/mine
refused 1 'cannot be emptied' --shard-tokens 20k -o busy
equal "$(cat busy.work/mine)" mine
[ ! -e busy.partial ]
# An output inside of the inputs is not read as an input.
mkdir in
cp docs.jsonl in
exits 1 tokmap pack -q --shard-tokens 20k -o in/d in 2>err
holds err 'is an output of the same command'
equal "$(ls in)" docs.jsonl
# The dry run writes nothing.
tokmap pack --dry-run --shard-tokens 20k -o dry docs.jsonl >/dev/null
[ ! -e dry ] && [ ! -e dry.work ]
# The set as such is unchanged by all this.
tokmap verify -q set
