# SPDX-License-Identifier: MIT
# ci: nonroot asan
# Ready-made token ids, with and without masks: what is written, the EOD, the columns, and each kind of bad record.
. "$TOKMAP_CLI/helpers.sh"
bytes() { od -An -v -tu"$1" "$2" | tr -s ' \n' ' '; }
cat >a.jsonl <<'END'
{"input_ids": [1, 2, 3], "loss_mask": [0, 1, 1], "url": "http://x/é", "meta": {"score": 0.5}}
{"loss_mask": [true,false], "input_ids": [ 7,
8 ]}
{"input_ids": [], "loss_mask": [], "meta.score": "named so", "meta": {"score": 1}}
{"input_ids": "[5, 9]", "loss_mask": [1,1], "url": null}
END
ids="--ids-field input_ids --mask-field loss_mask --vocab-size 100"
tokmap pack $ids --input-format json --eod=9 --columns url,meta.score --json -o a a.jsonl >report
equal "$(bytes 2 a.bin)" ' 1 2 3 9 7 8 9 9 5 9 '
equal "$(bytes 1 a.mask)" ' 222 3 '
json report
if command -v python3 >/dev/null 2>&1; then
    equal "$(field report eod_tokens)" 3
    equal "$(field report eod_present)" 1
    equal "$(field report counted_tokens)" 8
    equal "$(field report masked_tokens)" 2
    equal "$(field report empty_documents)" 1
    equal "$(field report tokenizer.fingerprint)" 00000000000000000000000000000000
    equal "$(field report columns.url)" 2
    equal $(($(field report document_bytes) + $(field report structure_bytes))) "$(wc -c <a.jsonl | tr -d ' ')"
fi
tokmap verify a >out 2>&1
for text in '"http://x/é"' '0.5' '"named so"' 'null'; do
    holds a.tmx "$text"
done
tokmap info a >out
holds out '8 tokens count as targets'
tokmap pack $ids --input-format json --eod=9 -o people a.jsonl >out
holds out 'there already in 1, added to 3'
holds out 'tokmap show people --document 0 --ids'
tokmap show --ids --document 0 people >out
holds out '1'
# Without a tokenizer nothing is appended unless an id is given; --bos does not count, and is not doubled.
tokmap pack -q --ids-field input_ids --vocab-size 100 --input-format json -o plain a.jsonl
equal "$(bytes 2 plain.bin)" ' 1 2 3 7 8 5 9 '
[ ! -e plain.mask ]
tokmap pack -q $ids --bos=7 --input-format json -o bos a.jsonl
equal "$(bytes 2 bos.bin)" ' 7 1 2 3 7 8 7 7 5 9 '
equal "$(bytes 1 bos.mask)" ' 28 3 '
# The size of the vocabulary decides the width of a token, and a tokenizer gives its fingerprint and its EOD.
echo '{"input_ids": [65535, 0, 4294967295]}' >wide.jsonl
tokmap pack -q --ids-field input_ids --vocab-size 4294967296 -o wide wide.jsonl
equal "$(bytes 4 wide.bin)" ' 65535 0 4294967295 '
echo '{"input_ids": [65535]}' >narrow.jsonl
tokmap pack -q --ids-field input_ids --vocab-size 65536 -o narrow narrow.jsonl
equal "$(bytes 2 narrow.bin)" ' 65535 '
echo '{"input_ids": [104, 105]}' >bytes.jsonl
tokmap pack -q --ids-field input_ids -t bytes -o bytes bytes.jsonl
equal "$(bytes 2 bytes.bin)" ' 104 105 256 '
tokmap show --document 0 bytes >out 2>&1
holds out 'hi'
# CSV: lists and masks are JSON in a field.
printf 'input_ids,loss_mask,n\n"[1, 2]","[0,1]",7\n[3],[true],"a ""b"""\n' >t.csv
tokmap pack -q $ids --input-format csv --columns n,none -o t t.csv 2>err
equal "$(bytes 2 t.bin)" ' 1 2 3 '
equal "$(bytes 1 t.mask)" ' 6 '
holds t.tmx '"a \"b\""'
holds err "no record has the field 'none' of --columns"

# Bad records, each between two good ones: the message, the exit status, and what is left out.
bad()
{
    printf '{"input_ids": [1], "loss_mask": [1]}\n%s\n{"input_ids": [2], "loss_mask": [0]}\n' "$1" >bad.jsonl
    exits 1 tokmap pack -q $ids -o bad bad.jsonl 2>err
    holds err "$2"
    holds err 'bad.jsonl:2: '
    [ ! -e bad.bin ]
    tokmap pack --json $ids --on-error skip --force -o skip bad.jsonl >report 2>err
    equal "$(bytes 2 skip.bin)" ' 1 2 '
    equal "$(bytes 1 skip.mask)" ' 1 '
    holds report "\"$3\": {"
}
token="the field 'input_ids' of line 2 (record 1) has a token id that cannot be used: number"
mask="the mask 'loss_mask' of line 2 (record 1) cannot be used:"
bad '{"input_ids": [3, -1], "loss_mask": [1, 1]}' "$token 2 of the list, -1, is negative" token
bad '{"input_ids": [100], "loss_mask": [1]}' "$token 1 of the list, 100, is not below the size" token
bad '{"input_ids": [4294967297], "loss_mask": [1]}' "$token 1 of the list, 4294967297, is not below" token
bad '{"input_ids": [3, 4, 2.5], "loss_mask": [1, 1, 1]}' "$token 3 of the list, 2.5, is not written as a whole" token
bad '{"input_ids": [1e1], "loss_mask": [1]}' "$token 1 of the list, 1e1, is not written as a whole" token
bad '{"input_ids": ["]", 1], "loss_mask": [1, 1]}' "$token 1 of the list, \"]\", is not a number" token
bad '{"input_ids": [1, null], "loss_mask": [1, 1]}' "$token 2 of the list, null, is not a number" token
bad '{"input_ids": [[1]], "loss_mask": [1]}' "$token 1 of the list, [1], is not a number" token
bad '{"input_ids": [3, 4], "loss_mask": [1]}' "$mask it has 1 values for 2 ids" mask
bad '{"input_ids": [3], "loss_mask": [1, 0]}' "$mask it has 2 values for 1 ids" mask
bad '{"input_ids": [3], "loss_mask": [2]}' "$mask number 1 of the list, 2, is not 0, 1, false" mask
bad '{"input_ids": [3], "loss_mask": [0.0]}' "$mask number 1 of the list, 0.0, is not 0, 1" mask
bad '{"input_ids": [3], "loss_mask": null}' "the field 'loss_mask' of line 2 (record 1) is not a list; name" field
bad '{"input_ids": {"a": [3]}, "loss_mask": [1]}' "the field 'input_ids' of line 2 (record 1) is not a list" field
bad '{"input_ids": [3]}' "line 2 (record 1) has no field 'loss_mask'; it has: input_ids; name another" field
bad '{"loss_mask": [3]}' "line 2 (record 1) has no field 'input_ids'; it has: loss_mask; name another" field
bad '{"input_ids": [3], "loss_mask": [1], "input_ids": [3]}' "the field 'input_ids' appears twice in line 2" field
bad '{"input_ids": [3,,4], "loss_mask": [1, 1]}' 'line 2 (record 1) is not valid JSON: this is not a JSON value' syntax
bad '{"input_ids": [03], "loss_mask": [1]}' 'line 2 (record 1) is not valid JSON: a number has a leading zero' syntax
bad '{"input_ids": [3, "loss_mask": [1]}' 'line 2 (record 1) is not valid JSON:' syntax
bad '{"input_ids": "[3", "loss_mask": [1]}' "the field 'input_ids' of line 2 (record 1) is not a list" field
# The message about a text file says that it has no fields.
echo 'some words' >words.txt
exits 1 tokmap pack -q $ids -o words words.txt 2>err
holds err "the file is text without records, so it has no field 'input_ids' (--ids-field)"
printf 'a,b\n1,2\n' >head.csv
exits 1 tokmap pack -q $ids --input-format csv -o head head.csv 2>err
holds err "the header has no column 'input_ids'; it has: a, b; name another column with --ids-field"
