# SPDX-License-Identifier: MIT
# Text and JSONL in, ids as text or JSON out, and back to text.
. "$TOKMAP_CLI/helpers.sh"
encoded()
{
    wanted=$1
    shift
    tokmap encode "$@" <in >out
    equal "$(cat out)" "$wanted" "$*:"
}
printf 'Hi\n' >in
encoded '72 105 10'
encoded '[72, 105, 10]' --output-format jsonl
encoded '72 105 10 256' --eod
encoded '7 72 105 10' --bos=7
: >in
encoded ''
equal "$(wc -l <out | tr -d ' ')" 1
printf '{"text": "Hi"}\n\n{"t": "x", "text": "\\u00e9"}\n{"text": ""}' >in
encoded '[72, 105]
[195, 169]
[]'
encoded '72 105
195 169' --output-format text
encoded '123 34' --input-format text --max-record 1 --field x | head -c 6 || true
tokmap encode --input-format jsonl <in | tokmap decode >back
printf '{"text": "Hi"}\n{"text": "\303\251"}\n{"text": ""}\n' >wanted
same back wanted
# Any valid UTF-8 comes back unchanged, whatever its length.
i=0
while [ $i -lt 4000 ]; do
    printf 'line %d \303\251 \360\237\230\200\r\n' $i
    i=$((i + 1))
done >long
tokmap encode long | tokmap decode | cmp - long
tokmap encode --output-format jsonl long | tokmap decode --output-format text | cmp - long
equal "$(tokmap encode long | wc -l | tr -d ' ')" 1
printf 'a\377b' >in
encoded '97 239 191 189 98' --invalid-utf8 replace
exits 1 tokmap encode <in >out 2>err
holds err 'standard input: the text is not valid UTF-8'
holds err '(byte 1)'
printf '{"text": "a"}\n{"text": 1}\n' >in
exits 1 tokmap encode <in >out 2>err
holds err "standard input:2: the field 'text' of line 2 (record 1) is not a string"
equal "$(cat out)" '[97]'
exits 1 tokmap encode -t other <in 2>err
holds err "other: there is no file or folder of this name; name a vocabulary file"
exits 1 tokmap encode -t in <in 2>err
holds err "not the JSON of a tokenizer"
exits 1 tokmap encode nowhere 2>err
holds err 'nowhere: '
exits 2 tokmap encode --eod=nothing <in 2>err
