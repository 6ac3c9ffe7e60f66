# SPDX-License-Identifier: MIT
# ci: asan
# --drop LIST: packing with a list is packing the inputs without the documents that it names, for lists of records, of
# texts, and NAME.dropped, whatever the threads, tasks, and other options, and after kills. Lists that are wrong are
# refused with their line. DROP_ROUNDS: how many random inputs (3); TOKMAP_KILLS: how often packs are killed in all (6).
. "$TOKMAP_CLI/helpers.sh"
need python3
python3 -c 'import ctypes.util, sys; sys.exit(not ctypes.util.find_library("xxhash"))' 2>/dev/null || skip "no libxxhash"
kills=${TOKMAP_KILLS:-6}
lists() { python3 "$TOKMAP_CLI/drop_lists.py" "$@"; }

# compare LIST PREFIX OPTION...: packs the inputs with the list, and those below kept/ without it, and compares texts.
compare()
{
    list=$1
    under=$2
    shift 2
    rm -rf with* without* got wanted
    tokmap pack -q --separator '\n\n' -o with --drop $list "$@" a.jsonl b.jsonl t.txt
    # Without a document, a file is a text file with one empty document.
    tokmap pack -q --separator '\n\n' -o without "$@" $(find kept -name "$under" -size +0c | sort)
    for set in '' .train .val; do
        [ -e with$set.tmx ] || [ -e with$set ] || continue
        tokmap verify -q with$set
        tokmap export -q --force -o got with$set
        tokmap export -q --force -o wanted without$set
        same got wanted
    done
}
seed=${DROP_SEED:-$((0x$(git -C "$TOKMAP_TREE" rev-parse --short=6 HEAD 2>/dev/null || echo 7)))}
round=0
echo 'w7 w9 w200' >words.txt
while [ $round -lt "${DROP_ROUNDS:-3}" ]; do
    round=$((round + 1))
    rm -rf kept
    echo "drop_lists.py corpus $((seed + round))"
    lists corpus $((seed + round))
    for options in '-j 1' '--dedup exact' '--dedup exact --dedup-memory 0' '--dedup minhash' '--split train=0.6,val=0.4' \
        '--shard-tokens 2K' '--min-tokens 12' '--exclude-ngrams words.txt --exclude-words 2'; do
        compare records.list '[abt].*' $options
        compare binary.list '[abt].*' $options
        compare texts.list 'x*' $options
    done
    # The bytes are the same for all forms, threads, units, and tasks, and after kills.
    for list in records.list binary.list texts.list; do
        for form in '' '--shuffle 5' '--dedup exact'; do
            rm -rf u v
            mkdir u v
            options="--separator \\n\\n --drop $list $form --shard-tokens 3K --unit-bytes 4K a.jsonl b.jsonl t.txt"
            tokmap pack --json -o u/out $options >report
            for again in 1 2 3; do
                for task in 0 1 2; do
                    tokmap pack -q -o v/out --task $task/3 -j 2 $options 2>err || [ $? -eq 3 ]
                done
            done
            for file in u/*; do
                same $file "v${file#u}"
            done
        done
        packs_killed 2 --separator '\n\n' --drop $list a.jsonl b.jsonl t.txt
        rm -rf ref* k k.* k-*
        packs_killed 2 --separator '\n\n' --drop $list --dedup minhash --shard-tokens 3K a.jsonl b.jsonl t.txt
        rm -rf ref* k k.* k-*
    done
done

# The report counts by list; the first one that names a document has it.
printf '{"text":"one"}\n{"text":"two"}\n{"text":"three"}\n{"text":"two"}\n' >c.jsonl
printf 'tokmap-drop texts\n%s\n' "$(lists hash two)" >two.list
printf 'tokmap-drop records\r\nc.jsonl\t3\r\nc.jsonl\t0' | gzip >c.list.gz
tokmap pack --json -o c --drop c.list.gz --drop two.list c.jsonl >report
holds report '"listed": [{"list": "c.list.gz", "entries": 2, "documents": 2, "missing": 0}, {"list": "two.list", "entries": 1, "documents": 1, "missing": 0}]'
equal "$(tokmap export -q -o - c)" '{"text": "three"}'
tokmap pack --force -o c --drop two.list c.jsonl >report
holds report 'two.list: 2 of 4 documents'
tokmap info c >said
# A list with tabs in a path, which ends at the last one.
cp c.jsonl "$(printf 'c\td.jsonl')"
printf 'tokmap-drop records\nc\td.jsonl\t1\n' >tab.list
tokmap pack --json -o d --drop tab.list "$(printf 'c\td.jsonl')" >report
holds report '"documents": 1, "missing": 0'

# wrong TEXT MESSAGE...: a list of this text is refused with these messages.
wrong()
{
    printf "$1" >wrong.list
    shift
    exits 1 tokmap pack -q -o w --drop wrong.list c.jsonl 2>err
    for message; do
        holds err "$message"
    done
    [ ! -e w.tmx ]
}
wrong '' 'wrong.list:1: this is not a list of documents'
wrong 'c.jsonl\t1\n' 'wrong.list:1: this is not a list of documents'
wrong 'tokmap-drop records\nc.jsonl\t1\n\n' 'wrong.list:3: a line of this list is the path of an input, a tab'
wrong 'tokmap-drop records\nc.jsonl 1\n' 'wrong.list:2: '
wrong 'tokmap-drop records\nc.jsonl\t18446744073709551616\n' 'wrong.list:2: '
wrong 'tokmap-drop records\nc.jsonl\t-1\n' 'wrong.list:2: '
wrong 'tokmap-drop texts\n00000000000000000000000000000000\n0123\n' 'wrong.list:3: a line of this list is the XXH3-128'
wrong 'tokmap-drop records\nc.jsonl\t1\nc.jsonl\t4\nc.jsonl\t18446744073709551615\n' \
    '2 of the 3 records that this list names are in no input' 'byte 30'
wrong 'tokmap-drop records\nother.jsonl\t1\n' '1 of the 1 records'
wrong 'tokmap-drop texts\n00000000000000000000000000000000\n' '1 of the 1 texts'
tokmap pack --json -o w --on-error skip --drop wrong.list c.jsonl >report
holds report '"listed": [{"list": "wrong.list", "entries": 1, "documents": 0, "missing": 1}]'
# A list that belongs to the output itself, and one of other inputs.
tokmap pack -q --dedup exact -o e c.jsonl
exits 2 tokmap pack -q --force -o e --drop e.dropped c.jsonl 2>err
holds err 'has the name of the list that belongs to this output'
tokmap pack -q -o f --drop e.dropped c.jsonl
same e.bin f.bin
echo '{"text":"four"}' >>c.jsonl
exits 1 tokmap pack -q -o g --drop e.dropped c.jsonl 2>err
holds err 'this list is about 4 documents, and the inputs have 5'
exits 1 tokmap pack -q -o g --drop two.list --drop missing.list c.jsonl 2>err
holds err 'missing.list'
printf 'tokmap-drop texts\n%s\n%s\n%s\n%s\n' $(lists hash one) $(lists hash two) $(lists hash three) $(lists hash four) >all.list
exits 1 tokmap pack -q -o g --drop all.list c.jsonl 2>err
holds err 'all 5 documents are in the lists of --drop'
# A NAME.dropped that is damaged anywhere is refused.
at=0
size=$(wc -c <e.dropped)
head -n 4 c.jsonl >h.jsonl && mv h.jsonl c.jsonl
while [ $at -lt $size ]; do
    { head -c $at e.dropped; printf '\377'; tail -c +$((at + 2)) e.dropped; } >wrong.list
    cmp -s e.dropped wrong.list || exits 1 tokmap pack -q -o h --drop wrong.list c.jsonl 2>err
    at=$((at + 7))
done
