# SPDX-License-Identifier: MIT
# The closing report: what it says, that its commands can be typed, and that --json has the same numbers.
. "$TOKMAP_CLI/helpers.sh"
need base64 python3
corpus
printf '{"text": 1}\n{"txet": ""}\nno JSON\n' >>in/c.jsonl
printf '%%PDF-1.4' >in/d.pdf
tokmap pack --on-error skip -o d in 2>err | sed '1s/ in [0-9.]* .*s ([0-9.]* .*B\/s)$/ in TIME/' >out
cat out
holds err "tokmap pack: skipped: in/c.jsonl:16: the field 'text' of line 16 (record 15) is not a string"
# No line is too long for a terminal of 80 columns.
equal "$(awk 'length > 80' out)" ''
# Every command that it shows can be typed as it is.
sed -n '/^next:$/,$s/^  //p' out >next
equal "$(wc -l <next | tr -d ' ')" 2
sh -eu next >/dev/null
# So it can where the name needs quotes and the tokenizer is a file, with all that opening it needs.
ranks
mkdir "it's here"
tokmap pack --eod=endoftext -t v.tiktoken --pattern gpt2 --special-tokens specials.json \
    -o "it's here/a b" --on-error skip in 2>err >out
holds out "v.tiktoken"
holds out "302 ids, 2 bytes a token"
holds out '<|endoftext|> (301)'
holds out "  tokmap info 'it'\\''s here/a b' --seq-len 1024"
! grep -q 'no -t FILE was given' out
sed -n '/^next:$/,$s/^  //p' out >next
sh -eu next >/dev/null
tail -n 1 next | sh -eu >shown
same shown in/a.txt
# A dataset that is shorter than the row of the example.
tokmap pack --no-eod -o ./-short in/a.txt >out
holds out '  tokmap info ./-short'
! grep -q -e '--seq-len' out
holds out 'no token'
sed -n '/^next:$/,$s/^  //p' out >next
sh -eu next >/dev/null
# JSON: the same numbers, computed from the index.
tokmap pack --json --force --on-error skip -t v.tiktoken --pattern gpt2 --eod=5 --bos=6 -o d in >report 2>err
json report
tokmap info --json d >info
for member in tokens documents content; do
    equal "$(field report $member)" "$(field info $member)" $member
done
equal "$(field report tokenizer.fingerprint)" "$(field info tokenizer)"
equal "$(field report tokenizer.path)" v.tiktoken
equal "$(field report tokenizer.vocabulary) $(field report tokenizer.width)" '261 2'
equal "$(field report tokenizer.eod_id) $(field report tokenizer.bos_id)" '5 6'
equal "$(field report left_out.field.records) $(field report left_out.syntax.records)" '2 1'
equal "$(field report left_out.format.files)" 1
equal "$(field report skipped_items)" 4
python3 "$TOKMAP_TREE/tests/conformance/reader.py" d >index
python3 - report index <<'EOF'
import json, sys
r = json.load(open(sys.argv[1]))
ends = json.load(open(sys.argv[2]))["ends"]
lengths = sorted(end - begin for begin, end in zip([0] + ends, ends))
ranks = {"p50": 50, "p90": 90, "p99": 99, "max": 100}
wanted = {name: lengths[-(-len(lengths) * percent // 100) - 1] for name, percent in ranks.items()}
mean = r["document_tokens"].pop("mean")
assert r["document_tokens"] == wanted, (r["document_tokens"], wanted)
assert abs(mean - sum(lengths) / len(lengths)) < 1e-6
assert abs(r["bytes_per_token"] - r["text_bytes"] / (r["tokens"] - r["eod_tokens"] - r["bos_tokens"])) < 1e-9
assert [x["class"] for x in r["skipped"]] == ["field", "field", "syntax", "format"], r["skipped"]
assert [x["left_out"] for x in r["skipped"]] == ["record"] * 3 + ["file"]
for unit in "files", "records", "bytes":
    total = {"files": "files_skipped", "records": "records_skipped", "bytes": "skipped_bytes"}[unit]
    assert sum(x[unit] for x in r["left_out"].values()) == r[total]
EOF
tokmap pack -q --on-error skip --force -o d in >out 2>err
[ ! -s out ]
tokmap pack --dry-run --on-error skip in >out 2>err
holds out "would pack "
! grep -q '^next' out
# Without anything left out, nothing is said about it.
tokmap pack --dry-run in/a.txt >out 2>err
! grep -q 'left out' out
# Every large number has commas, the mean, too.
head -c 1234567 /dev/zero | tr '\0' a | tokmap pack -o large - >out
holds out 'max 1,234,568, mean 1,234,568.0'
