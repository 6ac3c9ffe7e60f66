# SPDX-License-Identifier: MIT
# ci: asan
# --dedup exact: of documents with the same text the first one in the order of the inputs is kept, across files and
# formats, whether the keys are in memory or in a file, for each number of threads; and the list NAME.dropped. With
# TEST_SHARE=N, one of N numbers of threads is tried, and the large inputs have an N-th of their documents.
. "$TOKMAP_CLI/helpers.sh"
need awk python3
share=${TEST_SHARE:-1}

# Three files with many duplicates, also inside and between them, and empty documents.
awk 'BEGIN { for (i = 0; i < 40000; i++) printf "{\"text\": \"document %d\", \"n\": %d}\n", (i * 7919) % 9000, i
    print "{\"text\": \"\"}"; print ""; print "{\"text\": \"\"}" }' >a.jsonl
awk 'BEGIN { for (i = 0; i < 5000; i++) printf "{\"text\": \"document %d\", \"n\": %d}\n", i * 3, i }' >b.jsonl
printf 'document 1' >c.txt
printf 'only here' >d.txt
cat >reference.py <<'END'
# What must be kept and dropped, as `tokmap show --dropped --json` and `tokmap export` print it.
import json, sys
seen, kept, dropped = {}, [], []
for path in sys.argv[1:]:
    if path.endswith(".jsonl"):
        records = [(i, json.loads(line)["text"]) for i, line in enumerate(open(path)) if line.strip()]
    else:
        records = [(0, open(path).read())]
    for record, text in records:
        if text in seen:
            dropped.append({"input": path, "record": record, "reason": "duplicate",
                            "kept": {"input": seen[text][0], "record": seen[text][1]}})
        else:
            seen[text] = (path, record)
            kept.append(text)
json.dump(kept, open("kept.json", "w"))
json.dump(dropped, open("dropped.json", "w"))
END
cat >compare.py <<'END'
import json, sys
name, listed = sys.argv[1:3]
kept = [json.loads(line)["text"] for line in open(name)]
assert kept == json.load(open("kept.json")), "other documents are kept"
got = [json.loads(line) for line in open(listed)]
assert got == json.load(open("dropped.json")), "other documents are listed"
END
check()
{
    tokmap verify -q "$1"
    tokmap export -q --force -o "$1.jsonl" "$1"
    tokmap show --dropped --json -q "$1" >"$1.list"
    python3 compare.py "$1.jsonl" "$1.list"
}
inputs='a.jsonl b.jsonl c.txt d.txt a.jsonl'
python3 reference.py $inputs
tokmap pack --json --dedup exact -o one $inputs >report
json report
check one
dropped=$(wc -l <one.list | tr -d ' ')
equal "$(field report dropped.duplicates)" "$dropped"
equal "$(field report dropped.excluded)" 0
equal "$(($(field report documents) + dropped))" "$(field report dropped.documents_read)"
equal "$(field report left_out.duplicate.records)" "$dropped"
equal "$(field report records_skipped)" "$dropped"
grep -qa '"dedup": *"exact"' one.tmx
tokmap show --dropped one >lines 2>err
equal "$(wc -l <lines | tr -d ' ')" "$dropped"
holds err "duplicates"
holds lines "a.jsonl record 9000: duplicate of a.jsonl record 0"
holds lines "c.txt record 0: duplicate of a.jsonl record"
tokmap show --dropped one.dropped 2>/dev/null >lines2
same lines lines2
tokmap pack --dedup exact -o table $inputs >out
holds out "duplicates of earlier documents"

# The same bytes for each number of threads, and with a file of keys, of which a reader sees nothing.
number=0
for threads in 1 2 3 5 8; do
    number=$((number + 1))
    in_share $number || continue
    for memory in 1G 0 200k; do
        tokmap pack -q --force -j $threads --dedup exact --dedup-memory $memory -o many $inputs
        for end in bin tmx dropped; do
            same one.$end many.$end
        done
    done
done
equal "$(ls -A | grep -E 'partial|work|^[.]' | wc -l | tr -d ' ')" 0
tokmap pack --json --force --dedup exact --dedup-memory 0 -o many $inputs >report
[ "$(field report dropped.key_file_bytes)" -gt $((32 * 85000)) ]

# Standard input cannot be read twice, so its keys are in memory.
cat a.jsonl | tokmap pack -q --dedup exact --dedup-memory 0 -o piped --input-format jsonl -
tokmap pack -q --dedup exact -o direct a.jsonl
same piped.bin direct.bin
printf '%s\n' $inputs | tokmap pack -q --dedup exact --dedup-memory 0 -o listed --files-from -
same listed.bin one.bin
same listed.dropped one.dropped
mkfifo pipe
cat a.jsonl >pipe &
tokmap pack -q --dedup exact --dedup-memory 0 -o fifo --input-format jsonl pipe
wait
same fifo.bin direct.bin

# A dry run counts the same, and writes nothing.
tokmap pack --json --dry-run --dedup exact --dedup-memory 0 $inputs >dry
equal "$(field dry dropped.duplicates)" "$dropped"

# With shards, sets, columns, lengths; each document is packed once.
tokmap pack -q --dedup exact --columns n --shard-tokens 20k -o shards $inputs
check shards
for memory in 1G 0; do
    tokmap pack -q --force --dedup exact --dedup-memory $memory --split train=0.8,val=0.2 -o split $inputs
    same split.dropped one.dropped
    tokmap export -q --force -o train.jsonl split.train
    tokmap export -q --force -o val.jsonl split.val
    equal "$(cat train.jsonl val.jsonl | sort | uniq -d | wc -l | tr -d ' ')" 0
    equal "$(cat train.jsonl val.jsonl | wc -l | tr -d ' ')" "$(wc -l <one.jsonl | tr -d ' ')"
done
tokmap pack -q --dedup exact --min-tokens 12 -o long $inputs
tokmap pack -q --min-tokens 12 -o wanted one.jsonl
same long.bin wanted.bin

# Shuffled: the same documents are kept; the order is that of all documents, without those that are dropped.
tokmap pack -q --shuffle 3 -o mixed b.jsonl
tokmap export -q -o mixed.jsonl mixed
awk 'BEGIN { for (i = 0; i < 5000; i += 7) print "document " i * 3 }' >listed.txt
tokmap pack -q --shuffle 3 --exclude-ngrams listed.txt --exclude-words 2 -o few b.jsonl
tokmap export -q -o few.jsonl few
sed 's/.*/{"text": "&"}/' listed.txt >listed.jsonl
grep -vxFf listed.jsonl mixed.jsonl >wanted
same few.jsonl wanted
sort one.jsonl >wanted
for memory in 1G 0; do
    tokmap pack -q --force --shuffle 3 --dedup exact --dedup-memory $memory -j 3 -o mixed $inputs
    same mixed.dropped one.dropped
    tokmap export -q --force -o mixed.jsonl mixed
    sort mixed.jsonl >got
    same got wanted
done

# All documents equal; one input alone has all of them; many tiny ones.
awk 'BEGIN { for (i = 0; i < '$((100000 / share))'; i++) print "{\"text\":\"x\"}" }' >equal.jsonl
for memory in 1G 0; do
    tokmap pack -q --force --dedup exact --dedup-memory $memory -o equal equal.jsonl
    equal "$(wc -c <equal.bin | tr -d ' ')" 4
    tokmap show --dropped --json equal 2>/dev/null | tail -n 1 >last
    holds last "\"record\": $((100000 / share - 1))"
done
printf 'a\nb\na\n\nb\nc' >lines.txt
tokmap pack -q --dedup exact --separator '\n' -o separated lines.txt
equal "$(od -An -tu2 <separated.bin | tr -s ' ' | sed 's/ $//')" ' 97 256 98 256 99 256'

# Prompts with completions: the border counts. Ids: the mask counts. Conversations: their JSON.
printf '{"p": "a", "c": "bc"}\n{"p": "ab", "c": "c"}\n{"p": "a", "c": "bc"}\n' >prompts.jsonl
tokmap pack -q --dedup exact --prompt-field p --completion-field c -o prompts prompts.jsonl
tokmap show --dropped -q prompts >got
equal "$(cat got)" "prompts.jsonl record 2: duplicate of prompts.jsonl record 0"
printf '{"i": [1, 2], "m": [0, 1]}\n{"i": [1, 2], "m": [1, 1]}\n{"i": [1,2], "m": [0,1]}\n{"i": []}\n' >ids.jsonl
head -n 3 ids.jsonl >masked.jsonl
tokmap pack -q --dedup exact --vocab-size 9 --no-eod --ids-field i --mask-field m -o masked masked.jsonl
tokmap show --dropped -q masked >got
equal "$(cat got)" "masked.jsonl record 2: duplicate of masked.jsonl record 0"
tokmap pack -q --dedup exact --dedup-memory 0 --vocab-size 9 --no-eod --ids-field i -o ids ids.jsonl
equal "$(tokmap show --dropped -q ids | wc -l | tr -d ' ')" 2

# Other packers of the name: an older list goes with its shard, a foreign file stays, a bad record is said as ever.
tokmap pack -q --force -o one d.txt
[ ! -e one.dropped ]
echo 'not a list' >mine.dropped
exits 1 tokmap pack -q --dedup exact -o mine d.txt 2>err
holds err 'mine.dropped'
[ ! -e mine.bin ] && [ ! -e mine.dropped.partial ]
rm mine.dropped
tokmap pack -q --dedup exact -o mine d.txt
[ "$(wc -c <mine.dropped | tr -d ' ')" -gt 80 ]
printf '{"text": "a"}\nbad\n' >bad.jsonl
for memory in 1G 0; do
    exits 1 tokmap pack -q --dedup exact --dedup-memory $memory -o bad bad.jsonl 2>err
    holds err 'bad.jsonl:2'
    [ ! -e bad.dropped ] && [ ! -e bad.bin ]
    tokmap pack -q --force --dedup exact --dedup-memory $memory --on-error skip -o skipped bad.jsonl bad.jsonl \
        --skipped-list skipped.txt 2>err
    equal "$(wc -l <skipped.txt | tr -d ' ')" 2
    equal "$(tokmap show --dropped -q skipped)" "bad.jsonl record 0: duplicate of bad.jsonl record 0"
done

# An interrupt while keys are read leaves nothing, and the next command works.
unlike=$((400000 / share / 2 * 2))
awk 'BEGIN { for (i = 0; i < '$((3 * unlike / 2))'; i++) printf "{\"text\":\"%d\"}\n", i % '$unlike' }' >many.jsonl
tokmap pack -q --dedup exact --dedup-memory 0 -o int many.jsonl 2>err &
await test -e int.dropped.partial
kill -INT $! 2>/dev/null || true
status=0
wait $! || status=$?
[ $status -eq 130 ] || [ $status -eq 0 ]
[ ! -e int.dropped.partial ]
[ $status -eq 0 ] || [ ! -e int.dropped ]
tokmap pack -q --force --dedup exact --dedup-memory 0 -o int many.jsonl
equal "$(tokmap show -q --dropped int | wc -l | tr -d ' ')" $((unlike / 2))
rm many.jsonl

refused()
{
    text=$1
    shift
    exits 2 "$@" >out 2>err
    holds err "$text"
}
refused 'one of exact|minhash' tokmap pack --dedup other -o y d.txt
refused 'is about --dedup' tokmap pack --dedup-memory 1G -o y d.txt
refused 'choose what to show' tokmap show --dropped --document 1 one
refused 'can be added' tokmap show --dropped --ids one
exits 1 tokmap show --dropped one 2>err
holds err 'there is no list of dropped documents'
exits 1 tokmap show --dropped d.txt 2>err
# The sets of a split have one list.
printf '{"text": "a"}\n{"text": "a"}\n{"text": "b"}\n{"text": "c"}\n{"text": "d"}\n' >twice.jsonl
tokmap pack -q -o sets --dedup exact --split train=0.5,val=0.5 twice.jsonl
exits 1 tokmap show --dropped sets.train 2>err
holds err 'the sets of a split have one list: name it with --dropped sets'
equal "$(tokmap show -q --dropped sets)" 'twice.jsonl record 1: duplicate of twice.jsonl record 0'
