# SPDX-License-Identifier: MIT
# ci: nonroot asan tsan
# plan packs documents into rows without cutting one that fits, and verify checks what it wrote.
. "$TOKMAP_CLI/helpers.sh"
# Documents of 4, 13, 6, 3, and 10 tokens (bytes), and an empty one.
printf '%s\n' '{"text": "aaaa"}' '{"text": "bbbbbbbbbbbbb"}' '{"text": "cccccc"}' '{"text": ""}' '{"text": "ddd"}' \
    '{"text": "eeeeeeeeee"}' >in.jsonl
tokmap pack -q --no-eod -o data in.jsonl
tokmap plan -o data.plan --seq-len 10 data >out
holds out 'data.plan: 4 rows of 10 tokens, 90.00% full'
holds out '36 tokens in 5 documents, 4 padding tokens at the ends of rows'
holds out '1 document (20.00%), because longer than a row'
# Rows of 10 consecutive tokens would be cut after a4 b6, b7 c3, and c3 d3 e4.
holds out '3 documents (60.00%)'
holds out '6, 1.5 a row, at most 2'
tokmap plan -o two.plan --seq-len 10 --json data >report
json report
holds report '"rows": 4, "full_rows": 3, "tokens": 36, "padding": 4, "fill": 0.9, "documents": 5, "documents_cut": 1, '
holds report '"concatenation_cut": 3, "segments": 6, "row_segments": 2, "targets": 30, "bytes": 240}'
same data.plan two.plan
tokmap verify data.plan >out
equal "$(cat out)" 'data.plan: sound: 4 rows, 6 segments'
tokmap verify data.plan --json >out
json out
holds out '"plan": "data.plan", "faults": [], "sound": true, "rows": 4, "segments": 6, "tokens": 36'
need_python=$(command -v python3 || true)
if [ -n "$need_python" ]; then
    python3 -B "$TOKMAP_TREE/tests/conformance/plan_reader.py" data.plan >got
    # b in two parts, of which the first is a full row; then e; c and a; and both rests of 3.
    holds got '"rows": [[[4, 10]], [[26, 10]], [[17, 6], [0, 4]], [[14, 3], [23, 3]]]'
fi
tokmap info data.plan >out
holds out '36 tokens, and 4 padding tokens'
tokmap info --json data.plan >out
json out
holds out '"seq_len": 10, "rows": 4, "tokens": 36, "documents": 5, "documents_cut": 1, "segments": 6, '
# Limits on the documents of a row.
tokmap plan -q -o data.plan --force --seq-len 10 --one-document data >out
[ ! -s out ]
tokmap verify data.plan >out
equal "$(cat out)" 'data.plan: sound: 6 rows, 6 segments'
tokmap plan --json -o data.plan --force --seq-len 1Ki --max-documents 2 data >report
holds report '"max_documents": 2, "rows": 3, '
tokmap plan --json -o data.plan --force --seq-len 1Ki data >report
holds report '"max_documents": null, "rows": 1, '
# Each damaged byte is found.
cp two.plan bad.plan
for offset in 8 20 60 125 128 140 144 152 156 239; do
    cp two.plan bad.plan
    flip bad.plan $offset
    exits 1 tokmap verify bad.plan >out 2>err
    holds out 'bad.plan'
    holds out 'bad.plan: 1 fault'
done
cp two.plan bad.plan
truncate -s 200 bad.plan
exits 1 tokmap verify bad.plan --json >out 2>err
json out
holds out '"sound": false'
holds out '200 bytes long, but its header says 240'
# A run draws the rows of the plan: show prints their segments, --where finds them, and verify compares both.
printf 'seq_len 10\nbatch 2\norder sequential\nsource data data plan two.plan\npasses 1\n' >train.run
tokmap show train.run --step 1 -q >got
printf 'ccccccaaaa\nbbbddd\n' >wanted
same got wanted
tokmap show train.run --step 1 --row 0 >/dev/null 2>err
holds err 'row 2 of the plan: 10 tokens in 2 segments, then 1 token of padding'
tokmap show train.run --step 1 --row 1 --json >got
json got
holds got '"padding": 5'
holds got '"from": 10, "count": 3, "offset": 0'
holds got '"from": 0, "count": 3, "offset": 3'
holds got '"pieces": [{"first_token": 14, "tokens": 3, "text": "bbb"}, {"first_token": 23, "tokens": 3, "text": "ddd"}]'
tokmap show train.run --document 1 --where -q >got
equal "$(cat got)" 'step 0 row 0 epoch 0 window 0 shows 10 of 13 tokens
step 1 row 1 epoch 0 window 3 shows 3 of 13 tokens'
tokmap verify train.run -q
tokmap verify train.run >got
holds got 'train.run: sound: 36 tokens, 6 documents in 1 shard, and 1 plan'
exits 1 tokmap show train.run --window 0 2>err
holds err 'draws the rows of a plan'
# A plan of another dataset, or of another length, is refused with both.
printf '{"text": "other"}' >other.jsonl
tokmap pack -q --no-eod -o other other.jsonl
printf 'seq_len 10\nbatch 2\nsource data other plan two.plan\n' >other.run
exits 1 tokmap info other.run 2>err
holds err 'other.run:3: '
holds err 'two.plan'
holds err "$(tokmap info --json other | sed 's/.*"content": "\([0-9a-f]*\)".*/\1/')"
holds err "$(tokmap info --json data | sed 's/.*"content": "\([0-9a-f]*\)".*/\1/')"
printf 'seq_len 20\nbatch 1\nsource data data plan two.plan\n' >long.run
exits 1 tokmap info long.run 2>err
holds err 'rows of 10 tokens'
holds err 'seq_len 20'
# A plan that is missing or damaged names the line, and damage that opening does not see is found by verify.
printf 'seq_len 10\nbatch 1\nsource data data plan missing.plan\n' >missing.run
exits 1 tokmap info missing.run 2>err
holds err 'missing.plan'
cp two.plan bad.plan
flip bad.plan 239
printf 'seq_len 10\nbatch 1\nsource data data plan bad.plan\n' >bad.run
exits 1 tokmap verify bad.run >got 2>err
holds got 'bad.plan'
holds got 'bad.run: 1 fault'
# A part of a dataset has a plan of its own.
tokmap plan -q -o part.plan --seq-len 10 'data#docs=0..3'
printf 'seq_len 10\nbatch 1\norder sequential\nsource data data#docs=0..3 plan part.plan\npasses 1\n' >part.run
tokmap show part.run --step 1 -q >got
equal "$(cat got)" 'ccccccaaaa'
printf 'seq_len 10\nbatch 1\nsource data data#docs=0..3 plan two.plan\n' >part.run
exits 1 tokmap info part.run 2>err
holds err 'two.plan'

# Padding between documents is not a segment.
tokmap plan -q -o padded.plan --seq-len 12 --pad-documents 4 data
printf 'seq_len 12\nbatch 2\norder sequential\nsource data data plan padded.plan\npasses 1\n' >padded.run
for step in 0 1; do
    tokmap show padded.run --step $step --json -q >got
    tokmap show padded.run --step $step >/dev/null 2>err
    equal "$(sed 's/"offset": /\n&/g' got | grep -c '^"offset"')" \
        "$(sed -n 's/.* tokens in \([0-9]*\) segment.*/\1/p' err | awk '{ sum += $1 } END { print sum }')"
done
