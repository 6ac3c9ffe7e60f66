# SPDX-License-Identifier: MIT
# ci: asan
# Documents by number, column, input and record, and n-grams, alone and together, from a run and from a dataset.
. "$TOKMAP_CLI/helpers.sh"
need python3
python3 - <<'PYTHON'
import json
words = "one two three four five six seven eight nine ten eleven twelve".split()
with open("a.jsonl", "w") as a, open("b.jsonl", "w") as b:
    for i in range(40):
        text = " ".join(words[(i * k + k) % 12] for k in range(1, 20)) + ("" if i % 10 else f". A Secret, of the {i} kings!")
        record = {"text": text, "id": i, "license": ["MIT", "a \"b\"", None, 7][i % 4]}
        if i % 7 == 3:
            del record["license"]
        (a if i < 25 else b).write(json.dumps(record) + "\n")
PYTHON
tokmap pack -q -t bytes -o web --columns id,license a.jsonl b.jsonl
tokmap pack -q -t bytes -o more --columns id a.jsonl
printf 'seq_len 32\nbatch 4\nsource web web\nsource more more\nphase 0 web 1 more 1\nsteps 50\n' >train.run
numbers()
{
    tokmap find "$@" -q | sed -n 's/^[a-z]* \([0-9]*\)$/\1/p' | tr '\n' ' '
}
equal "$(numbers web -d 3 -d 38..40 -d 2..4)" "2 3 38 39 "
equal "$(numbers web --column license=MIT)" "0 4 8 12 16 20 28 32 36 "
equal "$(numbers web --column 'license=a "b"')" "1 5 9 13 21 25 29 33 37 "
equal "$(numbers web --column 'license="a \"b\""')" "1 5 9 13 21 25 29 33 37 "
equal "$(numbers web --column license=7)" "7 11 15 19 23 27 35 39 "
equal "$(numbers web --column license=null)" "2 6 14 18 22 26 30 34 "
equal "$(numbers web --column id=3 --column id=17)" "3 17 "
equal "$(numbers web --column license=MIT --column license=7 -d 0..9)" "0 4 7 8 "
equal "$(numbers web --input b.jsonl)" "25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 "
equal "$(numbers web --input a.jsonl --input b.jsonl --record 3..5)" "3 4 28 29 "
equal "$(numbers web --input b.jsonl --column license=MIT --record 0..4)" "28 "
printf 'nobody\na secret of the 10 kings\n' >words
equal "$(numbers web --ngrams words --words 4)" "0 10 20 30 "
equal "$(numbers web --ngrams words --words 6)" "10 "
equal "$(numbers web --ngrams words --words 4 --column license=7)" ""
equal "$(numbers web --ngrams words --words 4 --input b.jsonl)" "30 "
printf '{"body": "secret of the 20 kings"}\n' >words.jsonl
equal "$(numbers web --ngrams words.jsonl --words 5 --field body)" "20 "

# The list of a run: sources that have nothing are not named.
tokmap find train.run --column id=30 >list 2>err
content=$(tokmap info web --json | sed -n 's/.*"content": "\([0-9a-f]*\)".*/\1/p')
equal "$(cat list)" "# content-id web $content
web 30"
holds err "found 1 document with "
tokmap find train.run --column id=3 >list 2>err
equal "$(grep -c '^# content-id' list) $(sed -n '/^#/!p' list | tr '\n' ' ')" "2 web 3 more 3 "
tokmap find train.run --source more --column id=3 --json >out 2>err
json out
equal "$(field out source) $(field out document) $(field out input) $(field out record)" "more 3 a.jsonl 3"
tokmap find train.run --input other.jsonl >out 2>err
holds err "found 0 documents"
holds err "such as 'a.jsonl'"
[ ! -s out ]
# The list is that of a run, which takes it only with its datasets.
tokmap find train.run --column id=3 -q >list
printf 'exclude list from 20\n' >>train.run
tokmap info train.run >out
sed 's/source web web/source web web#docs=0..30/' train.run >part.run
exits 1 tokmap info part.run 2>err
holds err "list:1: the list is of a dataset with the content id $content, but source 'web'"
