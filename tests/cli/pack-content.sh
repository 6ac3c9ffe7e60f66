# SPDX-License-Identifier: MIT
# ci: asan
# Prompts with completions, columns of texts, limits of length, and combinations of options that make no sense.
. "$TOKMAP_CLI/helpers.sh"
bytes() { od -An -v -tu"$1" "$2" | tr -s ' \n' ' '; }
cat >p.jsonl <<'END'
{"prompt": "ab", "completion": "c\u00e9", "u": {"v": [1, 2]}}
{"completion": "x", "prompt": ""}
{"prompt": "yz", "completion": "", "u": {"v": "ab"}}
END
tokmap pack --json --prompt-field prompt --completion-field completion --columns u.v -o p p.jsonl >report
equal "$(bytes 2 p.bin)" ' 97 98 99 195 169 256 120 256 121 122 256 '
equal "$(bytes 1 p.mask)" ' 252 4 '
holds p.tmx '[1, 2]"ab"'
if command -v python3 >/dev/null 2>&1; then
    equal "$(field report counted_tokens)" 7
    equal "$(field report text_bytes)" 8
fi
tokmap verify p >out 2>&1
tokmap pack -q --prompt-field prompt --completion-field completion --bos=0 --no-eod -o b p.jsonl
equal "$(bytes 2 b.bin)" ' 0 97 98 99 195 169 0 120 0 121 122 '
equal "$(bytes 1 b.mask)" ' 184 0 '
tokmap show --document 0 p >out
tokmap merge -o both p b >out 2>&1 || :
tokmap export -o text.jsonl p >out 2>&1
holds text.jsonl 'ab'
printf '{"prompt": "a", "completion": 1}\n' >bad.jsonl
exits 1 tokmap pack -q --prompt-field prompt --completion-field completion -o bad bad.jsonl 2>err
holds err "the field 'completion' of line 1 (record 0) is not a string; name another field with --completion-field"
printf '{"prompt": "a", "completion": "\\ud800"}\n{"prompt": "a", "completion": "b"}\n' >lone.jsonl
tokmap pack -q --prompt-field prompt --completion-field completion --invalid-utf8 skip -o lone lone.jsonl 2>err
equal "$(bytes 2 lone.bin)" ' 97 98 256 '
tokmap pack -q --prompt-field prompt --completion-field completion --invalid-utf8 replace -o lone2 lone.jsonl
equal "$(bytes 2 lone2.bin)" ' 97 239 191 189 256 97 98 256 '

# Columns beside a text, whose escapes are decoded in place; a text file has no fields.
printf '{"text": "a\\u00e9\\"b", "n": 1.50}\n{"n": {"k": "\\u00e9"}, "text": "c"}\n' >t.jsonl
tokmap pack -q --columns text,n -o t t.jsonl
holds t.tmx '"a\u00e9\"b"'
holds t.tmx '{"k": "\u00e9"}'
tokmap pack -q -o plain t.jsonl
same t.bin plain.bin
printf 'only text' >t.txt
tokmap pack -q --columns n -o mixed t.jsonl t.txt
tokmap verify mixed >out 2>&1
# An index takes values of 64 objects and arrays inside one another. One more is an error of its record.
nested() { printf '{"text": "%s", "n": %*s' "$2" 0 '' && printf '[%.0s' $(seq "$1") && printf ']%.0s' $(seq "$1") && echo '}'; }
(nested 64 ab && nested 65 c && nested 1 d) >deep.jsonl
exits 1 tokmap pack -q --columns n -o deep deep.jsonl 2>err
holds err "the field 'n' of line 2 (record 1) cannot be kept: it has objects and arrays nested more than 64 deep"
tokmap pack -q --columns n --on-error skip -o deep deep.jsonl 2>err
equal "$(bytes 2 deep.bin)" ' 97 98 256 100 256 '

# Lengths: BOS and EOD are not counted. Leaving out is not an error; the report counts it, and a list names it.
mkdir texts
printf 'short' >texts/a.txt
printf 'hello there' >texts/b.txt
head -c 300000 /dev/zero | tr '\0' 'a' >texts/c.txt
printf '{"text": "123456"}\n{"text": "12345"}\n{"text": "1234567"}\n' >texts/d.jsonl
tokmap pack --json --bos=1 --min-tokens 6 --max-tokens 11 --skipped-list list --include '*' -o m texts >report 2>err
[ ! -s err ]
equal "$(wc -c <m.bin | tr -d ' ')" $((2 * (6 + 7 + 11 + 3 * 2)))
equal "$(grep -c '"class": "length"' list)" 3
holds list 'the text has 300000 tokens, and --max-tokens is 11'
holds list 'line 2 (record 1) has 5 tokens, and --min-tokens is 6'
if command -v python3 >/dev/null 2>&1; then
    equal "$(field report documents)" 3
    equal "$(field report left_out.length.files)" 2
    equal "$(field report left_out.length.records)" 1
    equal $(($(field report document_bytes) + $(field report structure_bytes) + $(field report skipped_bytes))) \
        "$(field report input_bytes)"
fi
# Without a document that is left out, the output is that of the plain way, to the last byte of the tokens.
tokmap pack -q --min-tokens 1 -o whole texts
tokmap pack -q -o parts texts
same whole.bin parts.bin
# An EOD that a list of ids has already is not counted either.
printf '{"ids": [1, 2, 9]}\n{"ids": [1, 2, 3]}\n' >e.jsonl
tokmap pack -q --ids-field ids --vocab-size 10 --eod=9 --max-tokens 2 -o e e.jsonl
equal "$(bytes 2 e.bin)" ' 1 2 9 '
exits 1 tokmap pack -q --min-tokens 400000 -o none texts 2>err
holds err "no document is left to pack: 6 of the inputs' documents have fewer tokens than --min-tokens or more than --max-tokens"
exits 1 tokmap pack -q --min-tokens 100 -o none e.jsonl --field ids 2>err

# The same bytes for each number of threads.
i=0
while [ $i -lt 3000 ]; do
    printf '{"ids": [%d, 2, 3], "m": [0, 1, %d], "p": "p%d", "c": "\\u00e9%d", "u": %d}\n' $((i % 50)) $((i % 2)) $i $i $((i % 7))
    i=$((i + 1))
done >many.jsonl
cat many.jsonl many.jsonl many.jsonl many.jsonl >more.jsonl
for content in '--ids-field ids --mask-field m --vocab-size 50' '--prompt-field p --completion-field c --columns u,p' \
    '--field p --min-tokens 4 --max-tokens 4 --columns u' '--field c --columns p'; do
    tokmap pack -q --force -j 1 $content -o one more.jsonl
    for threads in 2 3 8; do
        tokmap pack -q --force -j $threads $content -o many more.jsonl
        same one.bin many.bin
        same one.tmx many.tmx
        [ ! -e one.mask ] || same one.mask many.mask
    done
    rm -f one.mask many.mask
done

# Options that make no sense together.
refused()
{
    text=$1
    shift
    exits 2 tokmap pack -o refused "$@" p.jsonl 2>err
    holds err "$text"
    [ ! -e refused.bin ]
}
refused 'name their field with --ids-field' --mask-field m
refused 'name both fields' --prompt-field p
refused 'name both fields' --completion-field p
refused 'name their tokenizer with -t FILE, or only the size' --ids-field a
refused 'exclude each other: the ids are checked against' --ids-field a --vocab-size 5 -t bytes
refused 'exclude each other: a record is one document' --ids-field a --vocab-size 5 --prompt-field b --completion-field c
refused 'exclude each other: a record is one document' --messages-field a --prompt-field b --completion-field c
refused 'name their field with --messages-field' --chat-template chatml
refused 'needs a tokenizer with the special tokens' --messages-field a --chat-template chatml -t bytes
refused 'needs a tokenizer with the special tokens' --messages-field a
refused '--vocab-size is about ready-made ids' --vocab-size 9
refused '--vocab-size must be between 1 and 4294967296' --ids-field a --vocab-size 0
refused '--vocab-size must be between 1 and 4294967296' --ids-field a --vocab-size 4294967297
refused '--eod needs an id where no tokenizer is named' --ids-field a --vocab-size 10 --eod
refused '--bos needs an id where no tokenizer is named' --ids-field a --vocab-size 10 --bos=start
refused '--eod=10: the ids of --vocab-size end at 9' --ids-field a --vocab-size 10 --eod=10
refused '--field names the field of a text' --field x --ids-field a --vocab-size 10
refused 'name the same field' --ids-field a --mask-field a --vocab-size 9
refused 'name the same field' --prompt-field a --completion-field a
refused '--special is about text' --ids-field a --vocab-size 10 --special error
refused 'the name of a field has 1 to 1024 bytes' --columns a,,b
refused "--columns names the field 'a' twice" --columns a,b --columns a
refused 'text files have no fields' --columns a --input-format text
refused 'no document would be left' --min-tokens 5 --max-tokens 4
refused '--max-tokens must be at least 1' --max-tokens 0

# A shard of which nothing would be learned is probably a mistake.
printf '{"i": [1, 2], "m": [0, 0]}\n{"i": [3], "m": [0]}\n' >masked.jsonl
tokmap pack -q --force --no-eod -o m --vocab-size 9 --ids-field i --mask-field m masked.jsonl 2>err
holds err 'tokmap pack: warning: no token counts as a target, so training would learn nothing from the output; check the'
printf '{"i": [4], "m": [1]}\n' >>masked.jsonl
tokmap pack -q --force --no-eod -o m --vocab-size 9 --ids-field i --mask-field m masked.jsonl 2>err
equal "$(cat err)" ''
tokmap train-tokenizer -q -o chat.json --vocab-size 260 --special-tokens '<|im_start|>,<|im_end|>' masked.jsonl --field m \
    --input-format text
printf '{"t": [{"role": "user", "content": "q"}, {"role": "bot", "content": "a"}]}\n' >chat.jsonl
tokmap pack -q --force --no-eod -o m -t chat.json --messages-field t --chat-template chatml chat.jsonl 2>err
holds err "nothing from the output; only messages with the role 'assistant' count"
sed 's/bot/assistant/' chat.jsonl >right.jsonl
tokmap pack -q --force --no-eod -o m -t chat.json --messages-field t --chat-template chatml right.jsonl 2>err
equal "$(cat err)" ''
