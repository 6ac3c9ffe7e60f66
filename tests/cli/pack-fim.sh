# SPDX-License-Identifier: MIT
# ci: asan
# --fim: the same bytes for each number of threads and tasks, after kills, shuffled, split, and without duplicates; show
# and export print documents as they were; options that are wrong are named.
# TOKMAP_KILLS: how often tasks are killed (4).
. "$TOKMAP_CLI/helpers.sh"
need awk

awk 'BEGIN { srand(4); for (i = 0; i < 3000; i++) { t = ""; n = int(rand() * 40); for (k = 0; k < n; k++)
    t = t (rand() < 0.1 ? "\\n" : " ") (rand() < 0.1 ? "é😀" : "word") int(rand() * 500)
    if (i % 10 == 3) t = "the same"
    printf "{\"text\": \"%s\", \"n\": %d}\n", t, i } }' >docs.jsonl
tokens='<|endoftext|>,<fim_prefix>,<fim_middle>,<fim_suffix>'
tokmap train-tokenizer --vocab-size 700 --special-tokens "$tokens" -o star docs.jsonl >out
tokmap train-tokenizer --vocab-size 700 --special-tokens '<|endoftext|>,<a>,<b>,<c>,<d>' -o own docs.jsonl >out
tokmap train-tokenizer --vocab-size 700 --special-tokens '<|endoftext|>,▁<PRE>,▁<MID>,▁<SUF>,▁<EOT>' -o llama \
    docs.jsonl >out
fim='-t star.json --eod=<|endoftext|> --fim 0.5,spm=0.25'

# What is made is stated, and every document comes back.
tokmap pack --json $fim --columns n -o d docs.jsonl >report
tokmap verify -q d
json report
grep -q '"fim": {"psm": [1-9][0-9]*, "spm": [1-9][0-9]*, "left": 0, "tokens": [1-9]' report
tokmap info d >info
holds info 'options fim rate           0.5'
holds info 'options fim spm form       PSsMpm'
grep -qa '"fim": *{"rate": *"0.5", *"spm": *"0.25", *"spm_form": *"PSsMpm", *"seed": *1, *"prefix": *697, *"middle": *698, *"suffix": *699}' \
    d.tmx
tokmap pack $fim --force -o d docs.jsonl >out
grep -q 'rearranged .* documents: .* prefix-suffix-middle, .* suffix-prefix-middle' out
tokmap pack -q -t star.json '--eod=<|endoftext|>' -o plain docs.jsonl
awk -F'"' 'NR % 50 == 1 { gsub(/\\n/, " "); if (split($4, w, " ") > 8)
    print w[3], w[4], w[5], w[6], w[7], w[8], w[9] }' docs.jsonl >ngrams
tokmap find -q plain --ngrams ngrams --words 7 | grep -v '^#' >wanted.find
[ "$(wc -l <wanted.find)" -gt 20 ]
for unit in document 1 20 1000; do
    tokmap pack -q --force $fim --fim-unit $unit -o u docs.jsonl
    tokmap find -q u --ngrams ngrams --words 7 | grep -v '^#' >got
    same got wanted.find
    tokmap export -q --force -o u.jsonl u
    tokmap export -q --force -o plain.jsonl plain
    same u.jsonl plain.jsonl
    ! cmp -s u.bin plain.bin
    for document in 0 1 2 3 4 5 6 7; do
        tokmap show -q u --document $document >got
        tokmap show -q plain --document $document >wanted
        same got wanted
        tokmap show -q u --document $document --json | sed 's/.*"text": //' >got
        tokmap show -q plain --document $document --json | sed 's/.*"text": //' >wanted
        same got wanted
    done
done
same d.bin u.bin # no document has more than 1000 characters
for document in 0 1 2 3 4 5 6 7; do
    tokmap show d --document $document --specials 2>err >got
    tokmap show d --document $document 2>note >/dev/null
    if grep -q '^<fim_prefix>' got; then
        grep -q 'stored rearranged to fill in the middle: \(prefix-suffix\|suffix-prefix\)-middle; --specials prints it as it' note
        tokmap show -q d --document $document --json | grep -q '"fim": {"psm": [01], "spm": [01]}'
        tokmap show -q d --document $document --ids | grep -q '^697 '
    else
        equal "$(grep -c 'fill in' note || :)" 0
    fi
done

# Another seed, another share, other tokens; rate 1 leaves none; the columns and the origin are those of the documents.
tokmap pack -q --force $fim --fim-seed 2 -o e docs.jsonl
! cmp -s d.bin e.bin
tokmap pack --json --force -t star.json '--eod=<|endoftext|>' --fim 1,spm=0 -o e docs.jsonl >report
grep -q '"spm": 0, "left": 0' report
tokmap pack --json --force -t star.json '--eod=<|endoftext|>' --fim 100%,spm=100% -o e docs.jsonl >report
grep -q '"fim": {"psm": 0' report
tokmap pack -q --force -t own.json '--eod=<|endoftext|>' --fim-tokens '<a>,<b>,<c>' --fim 0.5,spm=0.25 -o e docs.jsonl
tokmap pack -q --force $fim -o d docs.jsonl
for document in 0 5 9; do
    equal "$(tokmap show -q e --document $document --specials)" "$(tokmap show -q d --document $document --specials |
        sed 's/<fim_prefix>/<a>/; s/<fim_middle>/<b>/; s/<fim_suffix>/<c>/')"
done
# A token that ends the middle is written after it, before the EOD; pieces inside a document end with the EOD else.
tokmap pack -q --force -t llama.json '--eod=<|endoftext|>' --fim 1 -o e docs.jsonl
tokmap show -q e --document 0 --specials | tail -n 1 | grep -q '▁<EOT><|endoftext|>$'
tokmap export -q --force -o u.jsonl e
same u.jsonl plain.jsonl
tokmap pack -q --force -t own.json --no-eod --fim 1 --fim-unit 9 --fim-tokens '<a>,<b>,<c>,<d>' -o e docs.jsonl
tokmap export -q --force -o u.jsonl e
same u.jsonl plain.jsonl
tokmap pack -q --force -t star.json '--eod=<|endoftext|>' --fim 1 --fim-unit 9 -o e docs.jsonl
[ "$(tokmap show -q e --document 0 --specials | grep -o '<|endoftext|>' | wc -l)" -gt 3 ]

# Texts that have the tokens: they are text inside the parts; where they are tokens, the document stays as it is.
printf '{"text": "a <fim_suffix> b <fim_middle> c and more of it"}\n{"text": ""}\n{"text": "x"}\n' >special.jsonl
tokmap pack --json --force $fim --fim 1 -o s special.jsonl >report
grep -q '"left": 0' report
equal "$(tokmap show -q s --document 0)" 'a <fim_suffix> b <fim_middle> c and more of it'
equal "$(tokmap show -q s --document 1 --ids)" 696
equal "$(tokmap show -q s --document 2)" x
tokmap pack --json --force $fim --fim 1 --special recognize -o s special.jsonl >report
grep -q '"left": 1' report
equal "$(tokmap show -q s --document 0 --specials)" 'a <fim_suffix> b <fim_middle> c and more of it<|endoftext|>'
tokmap pack --force $fim --fim 1 --special recognize -o s special.jsonl | grep -q 'and 1 document not, whose text has'
exits 1 tokmap pack -q --force $fim --special error -o s special.jsonl 2>err
holds err "contains the text of the special token '<fim_suffix>' (about byte 2)"
# Lengths count what is written.
tokmap pack --json --force $fim --fim 1 --min-tokens 4 -o s special.jsonl >report
grep -q '"documents": 2' report

# Duplicates are compared, sets chosen, and documents ordered by the texts as they were.
for more in '--dedup exact' '--dedup minhash' '--shuffle 3' '--split a=0.5,b=0.5' '--seal'; do
    rm -f one* two*
    tokmap pack -q $fim $more --columns n -o one docs.jsonl
    tokmap pack -q -t star.json '--eod=<|endoftext|>' $more --columns n -o two docs.jsonl
    for name in one two; do
        for set in '' .a .b; do
            [ ! -e $name$set.tmx ] && [ ! -e $name$set ] || tokmap export -q -o $name$set.jsonl $name$set
        done
    done
    for file in one*.jsonl; do
        same "$file" "two${file#one}"
    done
done

# Threads, tasks, and kills change nothing.
for threads in 1 2 5; do
    tokmap pack -q --force $fim -j $threads -o m docs.jsonl
    same m.bin d.bin
    same m.tmx d.tmx
done
sets="$fim --fim-unit 30 --shard-tokens 9k --unit-bytes 40k --dedup exact --shuffle 5 --columns n"
mkdir ref k
tokmap pack --json $sets -o ref/d docs.jsonl >report
json report
for order in '0 1 2' '2 1 0'; do
    rm -rf t
    mkdir t
    round=0
    while [ ! -e t/d ]; do
        round=$((round + 1))
        [ $round -lt 20 ]
        for task in $order; do
            tokmap pack -q $sets --task $task/3 -o t/d docs.jsonl 2>err || :
        done
    done
    for file in ref/*; do same "$file" "t/${file#ref/}"; done
done
kills=${TOKMAP_KILLS:-4}
while [ $kills -gt 0 ]; do
    kills=$((kills - 1))
    tokmap pack -q $sets --checkpoint-seconds 0.001 --task 0/1 -o k/d docs.jsonl 2>err &
    pid=$!
    sleep 0.0$((kills * 3 % 10))
    kill -s KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
done
tokmap pack -q $sets --task 0/1 -o k/d docs.jsonl 2>err || holds err 'already exists'
for file in ref/*; do same "$file" "k/${file#ref/}"; done
# Work with other options is another work.
tokmap pack -q $sets --task 0/2 -o w docs.jsonl 2>err || :
for other in '--fim 0.4' '--fim-seed 9' '--fim-unit 31' '--fim-tokens <fim_middle>,<fim_prefix>,<fim_suffix>'; do
    exits 1 tokmap pack -q $sets $other --task 1/2 -o w docs.jsonl 2>err
    holds err "${other%% *}"
done

# refused TEXT OPTION...
refused()
{
    text=$1
    shift
    exits 2 tokmap pack '--eod=<|endoftext|>' -o y "$@" docs.jsonl >out 2>err
    holds err "$text"
    equal "$(wc -l <err | tr -d ' ')" 2
}
for share in 0 1.5 x '' 0.5000000000000000001; do
    refused "--fim $share: the share of documents is" -t star.json --fim "$share"
done
refused 'only the share of suffix-prefix-middle can follow' -t star.json --fim 0.5,psm=1
refused 'the share of suffix-prefix-middle is' -t star.json --fim 0.5,spm=2
refused "has no known tokens to fill in the middle; name them with --fim-tokens" -t own.json --fim 0.5
refused "the tokenizer 'own.json' has no special token with that name" -t own.json --fim 0.5 --fim-tokens '<a>,<b>,<x>'
for names in '<a>,<b>' '<a>,<b>,<c>,<d>,<e>' '<a>,,<b>' ''; do
    refused 'name the tokens before prefix, middle, and suffix' -t own.json --fim 0.5 --fim-tokens "$names"
done
refused "the token '<a>' has two roles" -t own.json --fim 0.5 --fim-tokens '<a>,<b>,<a>'
refused "the token '<|endoftext|>' ends documents" -t own.json --fim 0.5 --fim-tokens '<a>,<b>,<|endoftext|>'
refused 'the ids of the tokenizer' -t own.json --fim 0.5 --fim-tokens '<a>,<b>,700'
for unit in 0 -1 x ''; do
    refused '--fim-unit is the number of characters' -t star.json --fim 0.5 --fim-unit "$unit"
done
refused '--fim-unit is about --fim' -t star.json --fim-unit 5
refused '--fim-seed is about --fim' -t star.json --fim-seed 5
refused '--fim-tokens is about --fim' -t star.json --fim-tokens a,b,c
refused '--fim rearranges texts' -t star.json --fim 0.5 --ids-field n
exits 2 tokmap pack -t star.json --no-eod --fim 0.5 --fim-unit 9 -o y docs.jsonl 2>err
holds err '--fim-unit 9: a token has to end a piece inside a document'
exits 2 tokmap pack --fim 0.5 -o y docs.jsonl 2>err
holds err "the vocabulary of 'bytes' has no known tokens"
[ ! -e y.tmx ]
