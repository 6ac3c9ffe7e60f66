# SPDX-License-Identifier: MIT
# --exclude-ngrams: documents with N words of a line or record of a file are dropped, as a Python reference with the
# normalization of lm-evaluation-harness finds them; the list says which n-gram it was.
. "$TOKMAP_CLI/helpers.sh"
need python3

cat >make.py <<'END'
# Random texts of a few words with punctuation, capitals, and all kinds of white space.
import json, random
random.seed(int(__import__("sys").argv[1]))
words = ["The", "cat", "it's", "--", "a-b", "DOG", "\u00c9t\u00e9", "42", "(x)", "\u4e2d\u6587", "\x02", "\u00e2\u0080"]
spaces = [" ", "  ", "\n", "\t", "\u00a0", "\u2003", "\u3000", "\x1c", "\u0085", "\u200b", "\u2028 "]
def text(count):
    return "".join(random.choice(words) + random.choice(spaces) for _ in range(random.randrange(count)))
with open("docs.jsonl", "w") as out:
    for i in range(3000):
        out.write(json.dumps({"text": text(40)}) + "\n")
    out.write(json.dumps({"text": "word " * 200000}) + "\n")
with open("eval.txt", "w") as out:
    for i in range(60):
        out.write(text(9).replace("\n", " ").replace("\u2028", " ").replace("\u0085", " ") + "\n")
with open("eval.jsonl", "w") as out:
    for i in range(60):
        out.write(json.dumps({"question": text(9)}) + "\n")
END
cat >reference.py <<'END'
import json, string, sys
n = int(sys.argv[1])
# lm_eval/decontamination/janitor.py: normalize_string() and word_ngrams()
table = str.maketrans(string.ascii_lowercase + string.ascii_uppercase, string.ascii_lowercase * 2, string.punctuation)
def ngrams(text):
    words = text.translate(table).split()
    return [" ".join(words[i:i + n]) for i in range(len(words) - n + 1)]
listed = {}
for i, line in enumerate(line for line in open("eval.txt", newline="\n").read().split("\n")):
    for ngram in ngrams(line):
        listed.setdefault(ngram, "eval.txt")
for line in open("eval.jsonl"):
    for ngram in ngrams(json.loads(line)["question"]):
        listed.setdefault(ngram, "eval.jsonl")
kept, dropped = [], []
for i, line in enumerate(open("docs.jsonl")):
    text = json.loads(line)["text"]
    found = next((ngram for ngram in ngrams(text) if ngram in listed), None)
    if found is None:
        kept.append(text)
    else:
        dropped.append((i, found, listed[found]))
assert dropped and kept, (len(dropped), len(kept))
got = [json.loads(line) for line in open("list")]
got = [(d["record"], d["listed"]["ngram"], d["listed"]["file"]) for d in got if d["reason"] == "excluded"]
assert got == dropped, next(pair for pair in zip(got + [None], dropped + [None]) if pair[0] != pair[1])
assert [json.loads(line)["text"] for line in open("out.jsonl")] == kept
END
for words in 1 2 3 5; do
    python3 make.py $words
    [ $words -gt 1 ] || { printf 'Cat! \n dog\n' >eval.txt; printf '{"question": "42"}\n' >eval.jsonl; }
    tokmap pack -q --force --exclude-ngrams eval.txt --exclude-ngrams eval.jsonl --exclude-field question \
        --exclude-words $words -o out docs.jsonl 2>err
    tokmap show --dropped --json -q out >list
    tokmap export -q --force -o out.jsonl out
    python3 reference.py $words
    for threads in 1 3 8; do
        tokmap pack -q --force --exclude-ngrams eval.txt --exclude-ngrams eval.jsonl --exclude-field question \
            --exclude-words $words -o again -j $threads docs.jsonl 2>err
        for end in bin tmx dropped; do
            same out.$end again.$end
        done
    done
done

# Both options: an excluded document is excluded, also if it is a duplicate. Shards and sets.
printf '%s\n' 'a b c' 'x y z' 'x y z' 'a b c' 'A, b C d' 'p' |
    sed 's/.*/{"text": "&"}/' >small.jsonl
printf 'b c\r\n' >small.txt
for memory in 1G 0; do
    tokmap pack --json --force --dedup exact --dedup-memory $memory --exclude-ngrams small.txt --exclude-words 2 \
        -o both small.jsonl >report
    equal "$(field report dropped.duplicates) $(field report dropped.excluded) $(field report documents)" '1 3 2'
    tokmap show --dropped both >got 2>err
    cat >wanted <<'END'
small.jsonl record 0: excluded by small.txt record 0: b c
small.jsonl record 2: duplicate of small.jsonl record 1
small.jsonl record 3: excluded by small.txt record 0: b c
small.jsonl record 4: excluded by small.txt record 0: b c
END
    same got wanted
    holds err 'dropped 4 of 6 documents: duplicates 1, excluded 3'
done
grep -qa '"exclude_ngrams": *{"words": *2, *"ngrams": *"[0-9a-f]*"}' both.tmx
tokmap pack -q --exclude-ngrams small.txt --exclude-words 2 --shard-tokens 3 --split a=0.5,b=0.5 -o sets small.jsonl
equal "$(tokmap show --dropped -q sets | wc -l | tr -d ' ')" 3
printf '{"p": "it is a b", "c": "c, yes"}\n{"p": "b", "c": "d"}\n' >prompts.jsonl
tokmap pack -q --prompt-field p --completion-field c --exclude-ngrams small.txt --exclude-words 2 -o p prompts.jsonl
equal "$(tokmap show --dropped -q p)" 'prompts.jsonl record 0: excluded by small.txt record 0: b c'

# Long words are cut in the list only; compressed lists are read.
awk 'BEGIN { for (i = 0; i < 20000; i++) printf "w"; print "" }' >long.txt
sed 's/.*/{"text": "&"}/' long.txt >long.jsonl
printf '{"text": "kept"}\n' >>long.jsonl
gzip -k long.txt
tokmap pack -q --exclude-ngrams long.txt.gz --exclude-words 1 -o long long.jsonl
tokmap show --dropped -q long >got
equal "$(wc -c <got | tr -d ' ')" "$((4096 + $(printf 'long.jsonl record 0: excluded by long.txt.gz record 0: \n' | wc -c)))"

# What is wrong.
tokmap pack -q --exclude-ngrams small.txt --exclude-ngrams eval.txt --exclude-words 3 -o warned small.jsonl 2>err
holds err 'have fewer than 3 words'
exits 1 tokmap pack -q --exclude-ngrams small.txt -o none small.jsonl 2>err
holds err 'with 13 words'
holds err '--exclude-words'
exits 1 tokmap pack -q --exclude-ngrams missing.txt -o none small.jsonl 2>err
holds err 'missing.txt'
exits 1 tokmap pack -q --exclude-ngrams eval.jsonl -o none small.jsonl 2>err
holds err '--exclude-field'
exits 1 tokmap pack -q --exclude-ngrams small.txt --exclude-words 2 --on-error skip -o none both.tmx small.txt 2>err
holds err 'all 1 documents contain'
[ ! -e none.bin ] && [ ! -e none.dropped ]
refused()
{
    text=$1
    shift
    exits 2 tokmap pack -o y "$@" small.jsonl >out 2>err
    holds err "$text"
}
refused 'must be between 1 and 1000' --exclude-ngrams small.txt --exclude-words 0
refused 'must be between 1 and 1000' --exclude-ngrams small.txt --exclude-words 1001
refused 'are about the files' --exclude-words 3
refused 'are about the files' --exclude-field x
refused 'ready-made ids have none' --exclude-ngrams small.txt --ids-field text --vocab-size 3 --no-eod
refused 'cannot be used with --messages-field' --exclude-ngrams small.txt --messages-field m --chat-template chatml
