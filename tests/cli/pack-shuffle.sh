# SPDX-License-Identifier: MIT
# ci: asan
# --shuffle: the order is the one that ORDER.md defines, in all formats; all documents are there once; the bytes do not
# depend on threads and memory; with shards, sets of a split, masks, columns, and long documents.
. "$TOKMAP_CLI/helpers.sh"
need awk

# Golden, computed by shuffle_reference.py with seed 7.
printf '{"text": "a"}\n{"text": "b"}\n{"text": "c"}\n' >one.jsonl
printf '{"text": "d"}\n{"text": "e"}\n' >two.jsonl
tokmap pack -q --shuffle 7 -o golden one.jsonl two.jsonl
tokmap export -q -o golden.jsonl golden
printf '{"text": "%s"}\n' d e c a b >wanted
same golden.jsonl wanted
tokmap info golden >out
holds out 'options shuffle            7'
tokmap show golden --document 2 >out 2>&1
holds out 'one.jsonl line 3 (record 2)'
# The report and a dry run say it; a dry run writes nothing.
tokmap pack --dry-run --shuffle 18446744073709551615 one.jsonl >out
holds out 'with seed 18446744073709551615'
tokmap pack --json --shuffle 7 -o golden2 one.jsonl two.jsonl >report
json report
holds report '"shuffle": 7'
same golden.bin golden2.bin
# A name does not matter, and what comes later moves no two of the others.
cp one.jsonl renamed.jsonl
tokmap pack -q --shuffle 7 -o renamed renamed.jsonl two.jsonl
same golden.bin renamed.bin
printf '{"text": "f"}\n{"text": "g"}\n' >three.jsonl
tokmap pack -q --shuffle 7 -o more one.jsonl two.jsonl three.jsonl
tokmap export -q -o more.jsonl more
grep -v '"[fg]"' more.jsonl >kept
same kept wanted
# Standard input is a file like another one; a compressed file has the positions of its content.
tokmap pack -q --shuffle 7 -o piped --input-format jsonl - <one.jsonl
tokmap pack -q --shuffle 7 -o alone one.jsonl
same piped.bin alone.bin
if command -v gzip >/dev/null 2>&1; then
    gzip -c one.jsonl >one.jsonl.gz
    tokmap pack -q --shuffle 7 -o packed one.jsonl.gz
    same packed.bin alone.bin
fi

# All formats, against the definition.
if command -v python3 >/dev/null 2>&1; then
    cat >formats.py <<'END'
import json, random, sys
random.seed(5)
wanted = []
def file(number, name, parts):          # parts: (bytes before the record, its text or None, its bytes)
    data = b""
    for before, text, record in parts:
        data += before
        if text is not None:
            wanted.append((number, len(data), text))
        data += record
    open(name, "wb").write(data)
text = lambda f, i: "%s%d %s" % (f, i, "x" * random.randrange(40))
row = lambda t: json.dumps({"text": t}).encode()
def jsonl(i):
    t = text("l", i)
    return (random.choice([b"", b"\n", b"\r\n"]), t, row(t) + b"\n")
file(0, "f0.jsonl", [jsonl(i) for i in range(700)])
def array(i):
    t = text("a", i)
    return (b"," if i else b"[", t, random.choice([b"", b" ", b"\n  "]) + row(t) + random.choice([b"", b" "]))
file(1, "f1.json", [array(i) for i in range(500)] + [(b"]", None, b"\n")])
def table(i):
    t = text("c", i)
    return (random.choice([b"", b"\n"]) if i else b"n,text\n", t, b'%d,"%s"\n' % (i, t.encode()))
file(2, "f2.csv", [table(i) for i in range(300)])
for i in range(40):
    t = text("t", i)
    file(4 + i, "g%02d.txt" % i, [(b"", t, t.encode())])
json.dump(wanted, open("places.json", "w"))
END
    python3 formats.py
    : >f3.txt
    tokmap pack -q --input-format csv --shuffle 99 -o csv f2.csv
    cat >compare.py <<'END'
import json, subprocess, sys
reference, seed, shift, export, names = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5]
texts = {}
for number, position, text in json.load(open("places.json")):
    if text[0] in names:
        texts["%d %d" % (number - shift, position)] = text
if "e" in names:
    texts["%d 0" % (3 - shift)] = ""
order = subprocess.run([sys.executable, reference, seed], input="\n".join(texts) + "\n", text=True,
                       stdout=subprocess.PIPE, check=True).stdout.split("\n")[:-1]
got = [json.loads(line)["text"] for line in open(export)]
assert len(order) == len(got) == len(texts), (len(order), len(got), len(texts))
for i, place in enumerate(order):
    assert got[i] == texts[place], (i, place, got[i], texts[place])
END
    tokmap export -q -o csv.jsonl csv
    python3 compare.py "$TOKMAP_CLI/shuffle_reference.py" 99 2 csv.jsonl c
    tokmap pack -q --input-format json --shuffle 98 -o array f1.json
    tokmap export -q -o array.jsonl array
    python3 compare.py "$TOKMAP_CLI/shuffle_reference.py" 98 1 array.jsonl a
    tokmap pack -q --shuffle 97 -o texts f3.txt g*.txt
    tokmap export -q -o texts.jsonl texts
    python3 compare.py "$TOKMAP_CLI/shuffle_reference.py" 97 3 texts.jsonl te
    for memory in 4Ki 96Mi; do
        tokmap pack -q --force --shuffle 96 --shuffle-memory $memory -o lines f0.jsonl
        tokmap export -q --force -o lines.jsonl lines
        python3 compare.py "$TOKMAP_CLI/shuffle_reference.py" 96 0 lines.jsonl l
    done
    # A separator: each text is at the byte after the one before it.
    printf 'p0|p1||p2|p3' >separated.txt
    tokmap pack -q --separator '|' --shuffle 5 -o separated separated.txt
    tokmap export -q -o separated.jsonl separated
    printf '0 0\n0 3\n0 7\n0 10\n' | python3 "$TOKMAP_CLI/shuffle_reference.py" 5 |
        sed 's/0 0/p0/; s/0 3/p1/; s/0 7/p2/; s/0 10/p3/; s/.*/{"text": "&"}/' >wanted
    same separated.jsonl wanted
    # Records that are left out move nothing.
    sed 's/.*"l7 .*/not a record/' f0.jsonl >bad.jsonl
    tokmap pack -q --on-error skip --shuffle 96 -o bad bad.jsonl 2>/dev/null || true
    tokmap export -q -o bad.jsonl.out bad
    [ "$(wc -l <bad.jsonl.out)" -lt 700 ]
fi

# The same bytes for every number of threads and every memory: with an empty and equal documents, a document that is
# longer than a chunk, texts in parts, columns.
awk 'BEGIN { for (i = 0; i < 4000; i++) printf "{\"text\": \"document %d\", \"n\": %d}\n", i % 3000, i
             for (i = 0; i < 50; i++) print "{\"text\": \"\", \"n\": \"empty\"}"
             printf "{\"text\": \""; for (i = 0; i < 30000; i++) printf "long %d ", i
             print "\", \"n\": [1]}" }' >docs.jsonl
awk 'BEGIN { for (i = 0; i < 200000; i++) print "line " i " of a long text" }' >long.txt
tokmap pack -q -o plain docs.jsonl long.txt one.jsonl
tokmap pack -q --columns n -o ordered docs.jsonl long.txt one.jsonl
tokmap pack -q --shuffle 1 --columns n -o s docs.jsonl long.txt one.jsonl
tokmap verify -q s
tokmap export -q -o ordered.out ordered
tokmap export -q -o s.out s
! cmp -s s.out ordered.out
sort s.out >got
sort ordered.out >wanted
same got wanted
for threads in 1 2 3 4 5 6 7 8; do
    for memory in 4096 64Ki 1M 96Mi; do
        [ $threads -lt 3 ] || [ $memory = 64Ki ] || [ $memory = 96Mi ] || continue
        tokmap pack -q --force --shuffle 1 --shuffle-memory $memory --columns n -j $threads -o m docs.jsonl long.txt \
            one.jsonl
        same s.bin m.bin
        same s.tmx m.tmx
    done
done
# Each file is in the index once: an index that named one for each document would be longer.
[ "$(grep -ao 'docs.jsonl' s.tmx | wc -l)" -eq 1 ]
# Values belong to their documents still.
for document in 17 1234 4040; do
    tokmap show s --document $document >out 2>err
    number=$(sed -n 's/^document \([0-9]*\)$/\1/p' out)
    [ -z "$number" ] || grep -q "^ *n: \($number\|$((number + 3000))\)$" err || { cat out err >&2; exit 1; }
done
tokmap pack -q --force --shuffle 2 --columns n -o m docs.jsonl long.txt one.jsonl
! cmp -s s.bin m.bin

# Shards are cut from the shuffled order: together they are the single shard. Sets of a split hold it in order.
tokmap pack -q --shuffle 1 --columns n --shard-tokens 20k -o set docs.jsonl long.txt one.jsonl
tokmap verify -q set
tokmap export -q -o set.out set
same set.out s.out
for memory in 4096 64Ki 300k; do
    tokmap pack -q --force --shuffle 1 --shuffle-memory $memory --columns n --shard-tokens 20k -j 3 -o set2 docs.jsonl \
        long.txt one.jsonl
    for file in set-*; do
        same "$file" "set2${file#set}"
    done
done
tokmap pack -q --shuffle 1 --columns n --split train=0.8,val=0.2 -o split docs.jsonl long.txt one.jsonl
tokmap pack -q --columns n --split train=0.8,val=0.2 -o unshuffled docs.jsonl long.txt one.jsonl
for set in train val; do
    tokmap verify -q split.$set
    tokmap export -q -o split.$set.out split.$set
    tokmap export -q -o unshuffled.$set.out unshuffled.$set
    sort split.$set.out >got
    sort unshuffled.$set.out >wanted
    same got wanted
    ! cmp -s split.$set.out unshuffled.$set.out
done
grep -qa '"shuffle": *1' split.val-00000.tmx

# Masks: of prompts and of ids, also of documents that are longer than a chunk. Each token keeps its bit.
awk 'BEGIN { for (i = 0; i < 900; i++) {
    n = i == 500 ? 5000 : i % 23
    printf "{\"ids\": [%d", i % 250; for (k = 0; k < n; k++) printf ", %d", (i + k) % 250
    printf "], \"m\": [1"; for (k = 0; k < n; k++) printf ", %d", (i + k) % 250 < 100; print "]}" } }' >ids.jsonl
tokmap pack -q --ids-field ids --mask-field m --vocab-size 250 --shuffle 4 -o ids ids.jsonl
tokmap verify -q ids
for memory in 4096 20k; do
    tokmap pack -q --force --ids-field ids --mask-field m --vocab-size 250 --shuffle 4 \
        --shuffle-memory $memory -o ids2 ids.jsonl
    same ids.bin ids2.bin
    same ids.mask ids2.mask
    same ids.tmx ids2.tmx
done
if command -v python3 >/dev/null 2>&1; then
    python3 - <<'END'
import array
ids = array.array("H", open("ids.bin", "rb").read())
mask = open("ids.mask", "rb").read()
wrong = [i for i in range(len(ids)) if ids[i] < 100 and not mask[i // 8] >> i % 8 & 1]
assert not wrong, wrong[:5]
assert sum(bin(byte).count("1") for byte in mask) < len(ids)
END
fi
printf '{"p": "a", "c": "bc"}\n{"p": "ab", "c": "c"}\n{"p": "x", "c": "y"}\n' >prompts.jsonl
tokmap pack -q --prompt-field p --completion-field c --shuffle 8 -o prompts prompts.jsonl
tokmap verify -q prompts

# An output among the inputs does not count: the first and the second command have the same numbers.
mkdir in
cp one.jsonl two.jsonl in
for _ in 1 2; do
    tokmap pack -q --force --on-error skip --shuffle 7 -o in/a in 2>/dev/null
    same in/a.bin golden.bin
done

# Documents that are left out for their lengths move no other.
tokmap pack -q --min-tokens 13 --shuffle 1 -o lengths docs.jsonl long.txt one.jsonl 2>/dev/null
tokmap export -q -o lengths.out lengths
grep -Fx -f lengths.out s.out >kept || true
cmp -s kept lengths.out || { echo "documents of some lengths are in another order" >&2; exit 1; }

exits 2 tokmap pack --shuffle-memory 1M -o x one.jsonl 2>err
holds err 'is about --shuffle'
exits 2 tokmap pack --shuffle 1 --shuffle-memory 4095 -o x one.jsonl 2>err
holds err 'between 4096 bytes and 1 TiB'
exits 2 tokmap pack --shuffle -1 -o x one.jsonl 2>err
exits 2 tokmap pack --shuffle 18446744073709551616 -o x one.jsonl 2>err
: >nothing.jsonl
exits 1 tokmap pack --shuffle 1 -o x nothing.jsonl 2>err
holds err 'no documents'
[ ! -e x.bin ]
