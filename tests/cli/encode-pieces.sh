# SPDX-License-Identifier: MIT
# --text, --pieces, and --json of encode, and --ids of decode.
. "$TOKMAP_CLI/helpers.sh"
equal "$(tokmap encode --text Hi)" '72 105'
equal "$(tokmap encode --text '')" ''
equal "$(tokmap encode --text Hi --eod --json)" '[72, 105, 256]'
equal "$(tokmap encode --text "$(printf 'a\n"\\\t\033\303\251')" --pieces --eod)" '        97  "a"
        10  "\n"
        34  "\""
        92  "\\"
         9  "\t"
        27  "\x1b"
       195  "\xc3"
       169  "\xa9"
       256  "<|endoftext|>"'
printf '{"text": "ab"}\n{"text": ""}\n{"text": "c"}\n' >in.jsonl
tokmap encode --pieces in.jsonl >out
json out
equal "$(cat out)" '{"tokens": [{"id": 97, "text": "a"}, {"id": 98, "text": "b"}]}
{"tokens": []}
{"tokens": [{"id": 99, "text": "c"}]}'
equal "$(tokmap encode --pieces --output-format text in.jsonl | tr '\n' ';')" '        97  "a";        98  "b";;;        99  "c";;'
# A document that is encoded in parts has one list.
head -c 300000 /dev/zero | tr '\0' x >long
tokmap encode --pieces --json --input-format text long >out
json out
equal "$(wc -l <out | tr -d ' ')" 1
equal "$(grep -o '"id"' out | wc -l | tr -d ' ')" 300000
exits 2 tokmap encode --text a in.jsonl 2>err
holds err '--text and inputs (in.jsonl) exclude each other'
exits 2 tokmap encode --text "$(printf 'a\377')" 2>err
holds err '--text is not UTF-8 (byte 1)'
exits 2 tokmap encode --json --output-format text --text a 2>err
holds err '--json and --output-format text exclude each other'
# The byte tokenizer finds no special tokens, so asking for them is misuse.
for action in error recognize recognise; do # kept spelling
    exits 2 tokmap encode --special $action --text '<|endoftext|>' 2>err
    holds err "the tokenizer 'bytes' finds no special tokens in text"
    exits 2 tokmap pack --special $action --eod -o data/x in.jsonl 2>err
    holds err "the tokenizer 'bytes' finds no special tokens in text"
done
equal "$(tokmap encode --special text --text a)" 97

equal "$(tokmap decode --ids '72 105')" Hi
equal "$(tokmap decode --ids '[72, 105]')" '{"text": "Hi"}'
equal "$(tokmap decode --ids '[72, 256, 105]' --output-format text --specials)" 'H<|endoftext|>i'
exits 1 tokmap decode --ids '72 300' 2>err
holds err "--ids:1: id 300 is not in the vocabulary of the tokenizer 'bytes', whose ids end at 256"
holds err '(byte 3)'
exits 2 tokmap decode --ids 72 in.jsonl 2>err
holds err '--ids and files (in.jsonl) exclude each other'
