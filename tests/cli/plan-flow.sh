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
    python3 -B "$TOP/tests/conformance/plan_reader.py" data.plan >got
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
