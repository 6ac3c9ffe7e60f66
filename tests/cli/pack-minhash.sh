# SPDX-License-Identifier: MIT
# ci: asan
# --dedup minhash: the clusters of datatrove, against a reference in plain Python; the first document of a cluster is
# kept, for each number of threads and each memory; the share of near-duplicates that is found at known similarities.
# With TEST_SHARE=N, one of N numbers of threads is tried.
. "$TOKMAP_CLI/helpers.sh"
need python3

python3 "$TOKMAP_CLI/minhash_corpus.py"
cat >compare.py <<'EOF'
import json, sys
name, listed = sys.argv[1:3]
kept = [json.loads(line)["text"] for line in open(name, encoding="utf-8")]
wanted = json.load(open("kept.json"))
if kept != wanted:
    sys.exit("%d documents are kept, not %d, or others" % (len(kept), len(wanted)))
got = [json.loads(line) for line in open(listed, encoding="utf-8")]
wanted = json.load(open("dropped.json"))
assert len(wanted) > 30, "the test needs near-duplicates"
for a, b in zip(got, wanted):
    assert a == b, "listed %s, expected %s" % (a, b)
assert len(got) == len(wanted)
EOF
check()
{
    tokmap verify -q "$1"
    tokmap export -q --force -o "$1.jsonl" "$1"
    tokmap show --dropped --json -q "$1" >"$1.list"
    python3 compare.py "$1.jsonl" "$1.list"
}
inputs='b.jsonl a.jsonl'
for form in '3 20 3' '1 6 4' '5 14 8'; do
    set -- $form
    python3 "$TOKMAP_CLI/minhash_reference.py" $1 $2 $3 $inputs
    tokmap pack --json --force --dedup minhash --minhash-ngram $1 --minhash-bands $2 --minhash-rows $3 -o one $inputs \
        >report
    check one
done
# The last form is the default one. The report and the list say what was done.
tokmap pack -q --dedup minhash -o plain $inputs
same one.tmx plain.tmx
same one.dropped plain.dropped
json report
dropped=$(wc -l <one.list | tr -d ' ')
equal "$(field report dropped.near_duplicates) $(field report dropped.duplicates)" "$dropped 0"
equal "$(field report left_out.near_duplicate.records)" "$dropped"
equal "$(($(field report documents) + dropped))" "$(field report dropped.documents_read)"
grep -qa '"dedup": *"minhash"' one.tmx
grep -qa '"minhash": *{ *"ngram": *5, *"bands": *14, *"rows": *8, *"seed": *1' one.tmx
tokmap show --dropped one >lines 2>err
holds err "near-duplicates $dropped, excluded 0"
holds lines ': near-duplicate of b.jsonl record '
tokmap pack --force --dedup minhash -o table $inputs >out
holds out 'near-duplicates of earlier documents'
holds out 'the inputs were read twice'

# The same bytes for each number of threads and each memory, and without AVX2.
number=0
for threads in 1 2 4 7; do
    number=$((number + 1))
    in_share $number || continue
    for memory in 1G 0; do
        tokmap pack -q --force -j $threads --dedup minhash --dedup-memory $memory -o many $inputs
        for end in bin tmx dropped; do
            same one.$end many.$end
        done
    done
done
TOKMAP_CPU=scalar tokmap pack -q --force --dedup minhash -o many $inputs
same one.bin many.bin
same one.dropped many.dropped
equal "$(ls -A | grep -E 'partial|work|^[.]' | wc -l | tr -d ' ')" 0

# Shuffled, in shards, and in sets: the same documents are kept.
tokmap export -q --force -o one.jsonl one
sort one.jsonl >wanted
tokmap pack -q --shuffle 3 --shard-tokens 9k --dedup minhash -o mixed $inputs
same mixed.dropped one.dropped
tokmap export -q -o mixed.jsonl mixed
sort mixed.jsonl >got
same got wanted
tokmap pack -q --split train=0.5,val=0.5 --dedup minhash -o split $inputs
same split.dropped one.dropped

# The share that is found of pairs with known similarities s, each with words of its own: 1 - (1 - s^8)^14.
cat >pairs.py <<'EOF'
import json, random
chance, used = random.Random(8), set()

def word():
    while True:
        made = "".join(chance.choice("abcdefghijklmnop") for _ in range(8))
        if made not in used:
            used.add(made)
            return made

def grams(words):
    return {tuple(words[i:i + 5]) for i in range(len(words) - 4)}

shares = []
with open("pairs.jsonl", "w") as file:
    for i in range(3000):
        first = [word() for _ in range(chance.randint(60, 100))]
        second = list(first)
        for _ in range(chance.randint(1, 6)):
            second[chance.randrange(len(second))] = word()
        both, one = grams(first) & grams(second), grams(first) | grams(second)
        shares.append(len(both) / len(one))
        file.write(json.dumps({"text": " ".join(first)}) + "\n" + json.dumps({"text": " ".join(second)}) + "\n")
json.dump(shares, open("shares.json", "w"))
EOF
cat >found.py <<'EOF'
import json, sys
shares = json.load(open("shares.json"))
found = set()
for line in open(sys.argv[1]):
    dropped = json.loads(line)
    assert dropped["record"] % 2 == 1 and dropped["kept"]["record"] == dropped["record"] - 1, dropped
    found.add(dropped["record"] // 2)
for low, high in ((0.3, 0.6), (0.6, 0.75), (0.75, 0.85), (0.85, 1)):
    group = [i for i, s in enumerate(shares) if low <= s < high]
    chances = [1 - (1 - shares[i] ** 8) ** 14 for i in group]
    wanted, deviation = sum(chances), sum(p * (1 - p) for p in chances) ** 0.5
    got = sum(i in found for i in group)
    print("similarity %.2f to %.2f: found %d of %d, expected %.0f" % (low, high, got, len(group), wanted))
    assert len(group) > 100 and abs(got - wanted) < 5 * deviation + 5
EOF
python3 pairs.py
tokmap pack -q --dedup minhash -o pairs pairs.jsonl
tokmap show --dropped --json -q pairs >list
python3 found.py list

# Chains, in any order: A and C have no word in common, and both have words of B. With many bands of one row, two texts
# with any word in common are near-duplicates.
texts()
{
    for letter; do
        case $letter in
        A) words='one two three four five six seven eight' ;;
        B) words='five six seven eight nine ten eleven twelve' ;;
        C) words='nine ten eleven twelve sun moon star sky' ;;
        D) words='quite other words than all of these' ;;
        N) words='' ;;
        S) words='four short words only' ;;
        esac
        printf '{"text": "%s"}\n' "$words"
    done
}
chain()
{
    texts $(echo "$1" | sed 's/./& /g') >chain.jsonl
    tokmap pack -q --force --dedup minhash --minhash-ngram $2 --minhash-bands 256 --minhash-rows 1 -o chain chain.jsonl
    tokmap show --dropped -q chain | sed 's/chain.jsonl record //g; s/: near-duplicate of /</' | tr '\n' ' '
}
equal "$(chain ABC 1)" '1<0 2<0 '
equal "$(chain ACB 1)" '1<0 2<0 '
equal "$(chain BDAC 1)" '2<0 3<0 '
equal "$(chain DCADBA 1)" '2<1 3<0 4<1 5<1 '
equal "$(chain CADDA 1)" '3<2 4<1 '
# Texts with fewer words than an n-gram are kept, also equal and empty ones; one with as many words is compared.
equal "$(chain SSNNDSD 5)" '6<4 '
equal "$(chain SSNNDSD 4)" '1<0 5<0 6<4 '
texts N N >empty.jsonl
tokmap pack -q --dedup minhash -o empty empty.jsonl
equal "$(tokmap show --dropped -q empty | wc -l | tr -d ' ')" 0

# Files of text; prompts, whose words are followed by those of the completion.
echo 'one two three four five six' >a.txt
echo 'One, two; THREE (four) five-six.' >b.txt
tokmap pack -q --dedup minhash -o files a.txt b.txt a.txt
equal "$(tokmap show --dropped -q files | tr '\n' ';')" \
    'b.txt record 0: near-duplicate of a.txt record 0;a.txt record 0: near-duplicate of a.txt record 0;'
printf '{"p": "one two three", "c": "four five six"}\n{"p": "One, two", "c": "three four five six!"}\n' >prompts.jsonl
tokmap pack -q --dedup minhash --prompt-field p --completion-field c -o prompts prompts.jsonl
equal "$(tokmap show --dropped -q prompts)" 'prompts.jsonl record 1: near-duplicate of prompts.jsonl record 0'

# A document with excluded words is in no cluster: what is near it is kept.
texts A B C >chain.jsonl
echo 'one two three' >words.txt
tokmap pack -q --force --dedup minhash --minhash-ngram 1 --minhash-bands 256 --minhash-rows 1 \
    --exclude-ngrams words.txt --exclude-words 3 -o chain chain.jsonl
equal "$(tokmap show --dropped -q chain | sed 's/chain.jsonl record //g' | tr '\n' ';')" \
    '0: excluded by words.txt record 0: one two three;2: near-duplicate of 1;'

# A bad record, with its place; what is skipped in both readings.
printf '{"text": "a b c d e f"}\nbad\n{"text": "a b c d e f"}\n' >bad.jsonl
exits 1 tokmap pack -q --dedup minhash -o bad bad.jsonl 2>err
holds err 'bad.jsonl:2'
[ ! -e bad.dropped ] && [ ! -e bad.bin ]
tokmap pack -q --dedup minhash --on-error skip --skipped-list skipped.txt -o bad bad.jsonl 2>err
equal "$(wc -l <skipped.txt | tr -d ' ')" 1
equal "$(tokmap show --dropped -q bad)" 'bad.jsonl record 2: near-duplicate of bad.jsonl record 0'

# Outputs in the folder of the inputs are no documents, whether they are there before the search or after it.
mkdir inside
cp chain.jsonl inside/
for how in exact minhash; do
    tokmap pack -q --dedup $how -o outside chain.jsonl --force
    tokmap pack -q --dedup $how --on-error skip -o inside/new inside 2>err
    cmp inside/new.bin outside.bin
    rm inside/new.*
done

# A folder NAME.work of the user keeps his files, also those whose names are those of unfinished work. Only a journal
# says that the folder is ours.
mkdir data.work
for name in scan-000001 drops-000007.partial chunks-3 long-0 notes; do
    echo mine >data.work/$name
done
tokmap pack -q -o data chain.jsonl
tokmap pack -q -o data --force --shuffle 1 chain.jsonl
for name in scan-000001 drops-000007.partial chunks-3 long-0 notes; do
    equal "$(cat data.work/$name)" mine
done

refused()
{
    status=$1
    text=$2
    shift 2
    exits $status "$@" >out 2>err <chain.jsonl
    holds err "$text"
}
refused 1 '--dedup minhash reads the inputs twice' tokmap pack --dedup minhash -o x --input-format jsonl -
refused 1 '--dedup minhash reads the inputs twice' tokmap pack --dedup minhash -o x --files-from -
[ ! -e x.bin ] && [ ! -e x.bin.partial ] && [ ! -e x.dropped.partial ]
refused 2 'cannot be used with --dry-run' tokmap pack --dedup minhash --dry-run chain.jsonl
refused 2 'are about --dedup minhash' tokmap pack --minhash-rows 4 -o x chain.jsonl
refused 2 'are about --dedup minhash' tokmap pack --dedup exact --minhash-bands 4 -o x chain.jsonl
refused 2 'ready-made ids' tokmap pack --dedup minhash --ids-field i --vocab-size 9 --no-eod -o x chain.jsonl
refused 2 '--messages-field' tokmap pack --dedup minhash --messages-field m --chat-template chatml -o x chain.jsonl
refused 2 'between 1 and 100' tokmap pack --dedup minhash --minhash-ngram 101 -o x chain.jsonl
refused 2 'between 1 and 100' tokmap pack --dedup minhash --minhash-ngram 0 -o x chain.jsonl
for wrong in '0 1' '1 0' '257 1' '65 64' '4294967297 1' '1 18446744073709551615'; do
    set -- $wrong
    refused 2 'at most 4096' tokmap pack --dedup minhash --minhash-bands $1 --minhash-rows $2 -o x chain.jsonl
done
tokmap pack -q --dedup minhash --minhash-bands 64 --minhash-rows 64 -o most chain.jsonl
