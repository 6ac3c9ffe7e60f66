# SPDX-License-Identifier: MIT
# A rank file: its split pattern is required, its special tokens are optional, and ids decode to the same text.
. "$TOKMAP_CLI/helpers.sh"
need base64
ranks
encoded()
{
    wanted=$1
    shift
    equal "$(tokmap encode -t v.tiktoken "$@" <in)" "$wanted" "$*:"
}
fails()
{
    wanted=$1
    held=$2
    shift 2
    exits "$wanted" tokmap "$@" <in >out 2>err
    holds err "$held"
}
printf 'hello hello help' >in
encoded '259 260 32 256 108 112' --pattern gpt2
encoded '259 260 32 256 108 112' --pattern gpt2 --special-tokens specials.json
encoded '300 259 260 32 256 108 112 301' --pattern gpt2 --special-tokens specials.json --eod --bos='<|end|>'
encoded '259 260 32 256 108 112 300' --pattern gpt2 --special-tokens specials.json --eod=end
encoded '259 260 32 256 108 112 7' --pattern gpt2 --eod=7
encoded '259 260 32 256 108 112' --pattern gpt2 --no-eod
if tokmap encode -t v.tiktoken --pattern-regex '[^ ]+| ' <in >out 2>err; then
    equal "$(cat out)" '259 32 259 32 256 108 112'
else
    holds err PCRE2 # which this build may be without
fi
# The pattern is not guessed.
fails 1 '--pattern is missing: a rank file does not contain its split pattern' encode -t v.tiktoken
fails 1 "--pattern is 'gpt7', which is not a split pattern" encode -t v.tiktoken --pattern gpt7
fails 1 gpt2 encode -t v.tiktoken --pattern gpt7
fails 2 'exclude each other' encode -t v.tiktoken --pattern gpt2 --pattern-regex '.'
fails 2 'describes a rank file' encode --pattern gpt2
fails 2 'describes a rank file' decode --pattern-regex '.'
fails 2 'exclude each other' encode -t v.tiktoken --pattern gpt2 --eod=7 --no-eod
fails 2 'does not name a token that ends a document' encode -t v.tiktoken --pattern gpt2 --eod
fails 2 'no special token with that name' encode -t v.tiktoken --pattern gpt2 --special-tokens specials.json --bos=nothing
fails 2 'end at 260' encode -t v.tiktoken --pattern gpt2 --eod=261
fails 1 nowhere encode -t nowhere
fails 1 nowhere encode -t v.tiktoken --pattern gpt2 --special-tokens nowhere
mkdir folder empty
cp v.tiktoken folder
equal "$(tokmap encode -t folder --pattern gpt2 <in)" '259 260 32 256 108 112'
fails 1 'contains no tokenizer' encode -t empty
printf '{"<|end|>": 5}' >wrong.json
fails 1 'is a token of the file' encode -t v.tiktoken --pattern gpt2 --special-tokens wrong.json
for wrong in '' '[]' '{"a": "b"}' '{"a": -1}' '{"a": 300' '{"a": 300, "b": 300}' '{"": 300}' '{"a": 99999999999}'; do
    printf '%s' "$wrong" >wrong.json
    exits 1 tokmap encode -t v.tiktoken --pattern gpt2 --special-tokens wrong.json <in >out 2>err
    holds err wrong.json
done
# Decoding is exact, prints special tokens only on request, and refuses unknown ids with their line.
i=0
while [ $i -lt 3000 ]; do
    printf 'hello %d \303\251 \360\237\230\200\r\n' $i
    i=$((i + 1))
done >long
tokmap encode -t v.tiktoken --pattern gpt2 long | tokmap decode -t v.tiktoken --pattern gpt2 | cmp - long
echo '259 300 260 301' >ids
equal "$(tokmap decode -t v.tiktoken --pattern gpt2 --special-tokens specials.json ids)" 'hello hello'
equal "$(tokmap decode -t v.tiktoken --pattern gpt2 --special-tokens specials.json --specials ids)" \
    'hello<|end|> hello<|endoftext|>'
printf '259\n260 280\n' >ids
fails 1 'ids:2: id 280 ' decode -t v.tiktoken --pattern gpt2 --special-tokens specials.json ids
fails 1 'ids:2: id 280 is not in the vocabulary' decode -t v.tiktoken --pattern gpt2 ids
# Ids that need more than 16 bits.
printf '{"<|far|>": 70000}' >far.json
printf 'hello<|far|>' >in
encoded '259 70000' --pattern gpt2 --special-tokens far.json --special recognize
encoded '[259, 70000]' --pattern gpt2 --special-tokens far.json --special recognize --output-format jsonl
echo '259 70000' | tokmap decode -t v.tiktoken --pattern gpt2 --special-tokens far.json --specials >out
equal "$(cat out)" 'hello<|far|>'

# A token without bytes, as in Whisper's multilingual.tiktoken, is an id that no text gets and that decodes to nothing.
rank_file whisper.tiktoken he ll hell hello ' hello'
empty=$(wc -l <whisper.tiktoken)
echo "= $empty" >>whisper.tiktoken
ids=$(printf 'hello' | tokmap encode -t whisper.tiktoken --pattern gpt2)
equal "$(echo "$empty $ids $empty" | tokmap decode -t whisper.tiktoken --pattern gpt2)" hello
echo $((empty + 1)) >ids
exits 1 tokmap decode -t whisper.tiktoken --pattern gpt2 ids 2>err
holds err "is not in the vocabulary"
