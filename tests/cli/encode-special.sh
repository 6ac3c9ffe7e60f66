# SPDX-License-Identifier: MIT
# Text that reads like a special token, under each policy; text that is not valid UTF-8, with a vocabulary.
. "$TOKMAP_CLI/helpers.sh"
need base64
ranks
encode()
{
    tokmap encode -t v.tiktoken --pattern gpt2 --special-tokens specials.json "$@"
}
printf 'hello<|end|>hello<|end|' >in
plain='259 60 124 101 110 100 124 62 259 60 124 101 110 100 124'
equal "$(encode <in)" "$plain"
equal "$(encode --special text <in)" "$plain"
equal "$(encode --special recognise <in)" '259 300 259 60 124 101 110 100 124' # kept spelling
equal "$(encode --special recognize <in)" '259 300 259 60 124 101 110 100 124'
exits 1 encode --special error <in >out 2>err
holds err "standard input: the document contains the text of the special token '<|end|>'"
exits 2 encode --special maybe <in 2>err
printf 'hello' >in
equal "$(encode --special error <in)" 259
printf '{"text": "hello"}\n{"text": "x<|endoftext|>"}\n' >in.jsonl
exits 1 encode --special error in.jsonl >out 2>err
holds err "in.jsonl:2: the document contains the text of the special token '<|endoftext|>'"
equal "$(cat out)" '[259]'
equal "$(encode --special recognize in.jsonl)" '[259]
[120, 301]'
# A record that reads like a special token only after its escapes are decoded.
printf '{"text": "\\u003c|end|\\u003e"}\n' >escaped.jsonl
equal "$(encode --special recognize escaped.jsonl)" '[300]'
exits 1 encode --special error escaped.jsonl 2>err
holds err 'escaped.jsonl:1: '
# An empty document does not read like a special token.
: >none
equal "$(encode --special error --eod none)" 301
# pack reports where the text is, and leaves no files.
mkdir many
i=0
while [ $i -lt 2000 ]; do
    printf '{"text": "hello hello %d"}\n' $i
    i=$((i + 1))
done >many/a.jsonl
cat in.jsonl >>many/a.jsonl
for threads in 1 3; do
    exits 1 tokmap pack -q -o d -t v.tiktoken --pattern gpt2 --special-tokens specials.json --special error \
        --threads $threads many 2>err
    holds err "many/a.jsonl:2002: the document contains the text of the special token '<|endoftext|>'"
done
equal "$(ls d.* 2>/dev/null | wc -l | tr -d ' ')" 0
# Invalid UTF-8.
printf 'hello\377 hello' >in
exits 1 encode <in 2>err
holds err 'not valid UTF-8'
equal "$(encode --invalid-utf8 replace <in)" '259 239 191 189 260'
equal "$(encode --invalid-utf8 skip <in 2>err)" ''
holds err skipped
