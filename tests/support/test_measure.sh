#!/bin/sh
# SPDX-License-Identifier: MIT
# test_measure.sh: what `make measure` writes: how the rows of a step are stored, what a reference in a page becomes,
# also of a value that was not measured, and that a page is replaced as a whole. The committed pages are those of the
# committed rows, so nobody edits them by hand.
set -u
python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null 2>&1; then
    echo "skipped: python3 is missing"
    exit 77
fi
fill=$PWD/bench/measure/fill.py store=$PWD/bench/measure/rows.py
check() {
    name=$1
    shift
    if "$@"; then echo "ok - $name"; else echo "not ok - $name: $*"; fi
}
rows=$TMPDIR/rows
mkdir -p "$rows/pictures" || exit 1
store() { (cd "$TMPDIR" && "$python" "$store" "$@"); }
# add STEP COMMAND <ROWS: as measure.sh stores the rows of a step.
add() { store add rows/here.jsonl "$1" abc123 "$2" >"$TMPDIR/busy"; }
store machine rows/here.jsonl 'processor=x: y' 'memory=1 GB, ext4' 'system=Linux | 6' 'state=quiet'
head -c 1000 /dev/zero >"$TMPDIR/web-0.bin"
head -c 24 /dev/zero >"$TMPDIR/web-1.bin"
add loader 'tokmap-bench loader web --seq-len 2048' <<EOF
{"case": "loader", "metric": "tokens_per_s", "value": 4781234567.0, "unit": "tokens/s", "better": "more", "min": 4.5e9, "max": 4.9e9, "n": 7, "limit": 2.82e9, "ratio": 1.69547, "command": "tokmap-bench loader web --seq-len 2048 --json --dir $TMPDIR --plot $TMPDIR/pictures", "machine": "m", "date": "2026-01-02T03:04:05Z"}
{"case": "loader", "metric": "next_p50_us", "value": 3.3049, "unit": "us", "min": 3.1, "max": 3.4, "n": 7}
{"case": "loader", "metric": "waits", "value": 0, "unit": "calls", "min": 0, "max": 0, "n": 7}
{"case": "loader", "metric": "cpu", "value": 0.000209, "unit": "s/Mtoken", "min": 0, "max": 0, "n": 7}
{"case": "loader", "metric": "start", "value": 12345.6, "unit": "ms", "min": 1, "max": 2, "n": 7}
{"case": "loader", "metric": "equal", "value": 1, "unit": "0|1", "min": 1, "max": 1, "n": 1}
{"case": "loader", "metric": "others_percent", "value": 2.5, "unit": "%", "min": 2.5, "max": 2.5, "n": 1}
EOF
check "the busiest share of a step is reported" test "$(cat "$TMPDIR/busy")" = 2.5
add train 'tokmap-bench train' <<'EOF'
{"case": "train", "metric": "au_percent", "value": 99.976, "unit": "%", "min": 99.9, "max": 100, "n": 7, "limit": 99.9986, "ratio": 0.9998}
EOF
add compare 'tokmap-bench compare' <<'EOF'
{"case": "compare", "table": "loaders", "row": "tokmap", "metric": "warm_tokens_per_s", "value": 4e9, "unit": "tokens/s"}
{"case": "compare", "table": "loaders", "row": "torch|0, whole batches", "metric": "warm_tokens_per_s", "value": 166e6, "unit": "tokens/s"}
{"case": "compare", "table": "loaders", "row": "tokmap", "metric": "next_p50_us", "value": 2, "unit": "us"}
{"case": "compare", "table": "loaders", "row": "grain", "metric": "absent", "value": 1, "unit": "", "text": "pip says:\nno | wheel"}
{"case": "compare", "table": "loaders", "row": "tokmap", "metric": "about", "value": 1, "unit": "", "text": "tokmap 0.1.0"}
EOF
add faults 'tokmap-bench faults' <<'EOF'
{"case": "faults", "row": "tokmap", "metric": "flipped bit", "value": 0, "unit": "silent", "result": "place", "text": "CorruptError: byte 7"}
{"case": "faults", "row": "tokmap", "metric": "EIO", "value": 0, "unit": "silent", "result": "status", "text": "IoError"}
{"case": "faults", "row": "torch", "metric": "flipped bit", "value": 1, "unit": "silent", "result": "garbage", "text": "2 rows of 9 | 1"}
{"case": "faults", "row": "llm.c", "metric": "flipped bit", "value": 0, "unit": "silent", "result": "absent", "text": "no source"}
{"case": "faults", "row": "llm.c", "metric": "absent", "value": 1, "unit": "", "text": "no source"}
EOF
VOCABULARIES=/v store add rows/here.jsonl gpu abc123 'tokmap-bench gpu -t /v/gpt2.json' >"$TMPDIR/busy" <<'EOF'
{"case": "h2d", "metric": "peak_gb_s", "value": 50, "unit": "GB/s"}
{"case": "gpu", "metric": "device", "value": null, "unit": "text", "text": "a GPU"}
{"case": "gpu", "metric": "driver_call_us", "value": 7.25, "unit": "us", "limit": 6, "verdict": "short"}
{"case": "gpu", "metric": "consumer_calls", "value": 8, "unit": "calls", "verdict": null}
{"case": "gpu", "metric": "race_mismatches", "value": null, "unit": "outputs", "limit": 0, "verdict": "not measured"}
{"case": "gpu", "metric": "answer", "value": null, "unit": "text", "text": "0 of 2 are held."}
EOF
store absent rows/here.jsonl pack abc123 'tokmap-bench pack' 'no | disk'
for text in prose code; do
    store add rows/other.jsonl tokenize-gpt2-$text abc124 'tokmap-bench tokenize' >"$TMPDIR/busy" <<'EOF'
{"case": "tokenize", "metric": "cold_mb_s", "value": 375.4, "unit": "MB/s", "date": "2026-01-05T00:00:00Z"}
{"case": "tokenize", "metric": "warm_mb_s", "value": 527, "unit": "MB/s"}
{"case": "tokenize", "metric": "gigatoken_cold_times", "value": 2.6, "unit": "x"}
EOF
done
touch "$rows/here-loader.svg"

# ---- what is stored ----

# whole FILE: prints the rows of a file, each with all members. written FILE: prints the file that the rows become.
whole() {
    PYTHONPATH=$(dirname "$store") "$python" -B -c 'import json, rows, sys
for row in rows.read(sys.argv[1]): print(json.dumps(row, ensure_ascii=False))' "$1"
}
written() {
    PYTHONPATH=$(dirname "$store") "$python" -B -c 'import rows, sys
rows.write(sys.argv[2], list(rows.read(sys.argv[1])))' "$1" "$TMPDIR/written" && cat "$TMPDIR/written"
}
whole "$rows/here.jsonl" >"$TMPDIR/whole"
check "a row has its step, command, machine, date, commit, and size, and no folder of this machine" \
    test "$(grep -c '^{"step": "loader", "case": "loader", .*, "command": "tokmap-bench loader web --seq-len 2048", "machine": "m", "date": "2026-01-02T03:04:05Z", "commit": "abc123", "size": 1024}$' "$TMPDIR/whole")" = 7
check "a vocabulary is named without its folder" grep -q '"command": "tokmap-bench gpu -t vocab/gpt2.json"' "$TMPDIR/whole"
check "what all rows of a step share is stored in its first row, and separators without blanks" \
    test "$(grep '^{"step":"loader",' "$rows/here.jsonl" | grep -cE '"(command|machine|date|commit|size)":')" = 1
check "rows that describe the machine have no command" \
    test "$(head -n 4 "$TMPDIR/whole" | grep -c '"step": "machine"')$(grep -c '"step": "machine".*"command"' "$TMPDIR/whole")" = 40
cp "$rows/here.jsonl" "$TMPDIR/before"
grep '"step": "train"' "$TMPDIR/whole" | sed 's/99.976/98/' | add train 'tokmap-bench train --cold'
whole "$rows/here.jsonl" >"$TMPDIR/after"
check "rows of a step replace its earlier ones, and no others" \
    test "$(diff "$TMPDIR/whole" "$TMPDIR/after" | grep -c '^[<>]')$(grep -c '"value": 98,' "$TMPDIR/after")" = 21
grep -v '"step":"machine"' "$TMPDIR/before" >"$rows/late.jsonl"
store machine rows/late.jsonl 'state=quiet'
check "rows that describe the machine come first, so that they have no command of others" \
    test "$(head -n 1 "$rows/late.jsonl")$(whole "$rows/late.jsonl" | head -n 2 | grep -c '"command"')" = \
    '{"step":"machine","case":"machine","metric":"state","value":1,"unit":"","better":null,"text":"quiet"}1'
rm "$rows/late.jsonl"
cp "$TMPDIR/before" "$rows/here.jsonl"
check "rows that were measured with --quick are refused, and the others stay" sh -c "
    ! echo '{\"case\": \"order\", \"metric\": \"draw_ns\", \"value\": 1, \"quick\": true}' |
        '$python' '$store' add '$rows/here.jsonl' train abc123 'tokmap-bench order --quick' 2>'$TMPDIR/said' &&
    grep -q 'train: rows that were measured with --quick are not kept' '$TMPDIR/said' &&
    cmp '$TMPDIR/before' '$rows/here.jsonl'"
printf '<text>/v/gpt2.json and /elsewhere/gpt2.json</text>\n' >"$TMPDIR/drawn.svg"
VOCABULARIES=/v store picture "$TMPDIR/drawn.svg" "$TMPDIR/shown.svg"
check "a picture is stored without the names of folders" \
    grep -qxF '<text>vocab/gpt2.json and /elsewhere/gpt2.json</text>' "$TMPDIR/shown.svg"
check "a machine has a name" sh -c "'$python' '$store' name | grep -qE '^[a-z0-9-]+$'"

# ---- what a page says ----

cat >"$TMPDIR/page.template" <<'EOF'
{{loader tokens_per_s}}; {{loader tokens_per_s limit}}; {{loader tokens_per_s ratio}}; {{loader next_p50_us range}}
{{loader waits number}}; {{loader cpu}}; {{loader start}}; {{loader equal}}; {{loader waits limit}}; {{nowhere waits}}
{{train au_percent}}; {{train au_percent limit}}; {{pack mb_s}}; {{other/tokenize-gpt2-prose cold_mb_s number}}
{{compare torch|0, whole batches warm_tokens_per_s}}; {{date loader}}; {{commit other/tokenize-gpt2-code}}; {{machine}}
{{missing}} {{most loader}} of {{count loader}}
| tokens | {{row loader tokens_per_s}} |
| waits | {{row loader waits}} |
{{table compare}}
{{table compare: next_p50_us warm_tokens_per_s: tokmap=ours; torch|0, whole batches}}
{{matrix faults}}
{{matrix nowhere}}
{{figures gpu}}
{{figures gpu: driver_call_us}}
{{figures nowhere}}
{{tokenizers other}}
{{picture loader}}
{{picture nowhere}}
{{machines}}
{{if nowhere}}
{{nowhere waits}}
{{end}}
{{if loader}}
Waits: {{loader waits number}},
and more.
{{end}}
EOF
cat >"$TMPDIR/expected" <<'EOF'
4.78 G tokens/s; 2.82 G tokens/s; 1.70; 3.10 to 3.40 µs
0; 0.00021 s; 12,346 ms; yes; not measured; not measured
99.98%; 99.999%; not measured; 375
166 M tokens/s; 2026-01-02; abc124; here
`pack` (no \| disk). 1.70 of 1
| tokens | 4.78 G tokens/s | 2.82 G tokens/s | 1.70 |
| waits | 0 calls |  |  |
| | warm | next p50 |
|---|---|---|
| tokmap | 4.00 G tokens/s | 2.00 µs |
| torch\|0, whole batches | 166 M tokens/s |  |

- grain was not measured: pip says: no \| wheel
| | next p50 | warm |
|---|---|---|
| ours | 2.00 µs | 4.00 G tokens/s |
| torch\|0, whole batches |  | 166 M tokens/s |
| | flipped bit | EIO |
|---|---|---|
| tokmap | error, place | error, file |
| torch | **wrong rows** | not measured |

Cells: error, place: an error that names the file and the position in it; error, file: an error that names the file;
**wrong rows**: rows that are not the data were delivered without a word.

- llm.c was not measured: no source
Not measured.
| figure | measured | bar | |
|---|---|---|---|
| `driver_call_us` | 7.25 µs | 6.00 µs | short |
| `race_mismatches` | not measured | 0 outputs | not measured |
| figure | measured | bar | |
|---|---|---|---|
| `driver_call_us` | 7.25 µs | 6.00 µs | short |
Not measured.
| | prose | code | mixed scripts | CJK |
|---|---|---|---|---|
| gpt2 | 375 / 527: 2.60 / not measured | 375 / 527: 2.60 / not measured |  |  |
![loader](rows/here-loader.svg)

| results | processor | memory, storage; system | rows | state |
|---|---|---|---|---|
| [here](rows/here.jsonl) | x: y | 1 GB, ext4; Linux \| 6 | 24 of 2026-01-02, at abc123 | quiet |
| [other](rows/other.jsonl) | unknown | unknown; unknown | 6 of 2026-01-05, at abc124 |  |
Waits: 0, and more.
EOF
"$python" "$fill" "$rows" here "$TMPDIR/page.template" "$TMPDIR/page" 2>"$TMPDIR/said"
check "references become values with units, three digits, and reasons" diff "$TMPDIR/expected" "$TMPDIR/page"
check "it says how many values were not measured" grep -q '6 not measured' "$TMPDIR/said"

printf 'head\n<!-- five: begin -->\nold\n<!-- five: end -->\ntail\n' >"$TMPDIR/readme"
printf 'new {{loader waits number}}\n' >"$TMPDIR/part"
"$python" "$fill" "$rows" here "$TMPDIR/part" "$TMPDIR/readme" --between five 2>/dev/null
check "only what is between the marks is replaced" \
    test "$(cat "$TMPDIR/readme")" = "$(printf 'head\n<!-- five: begin -->\nnew 0\n<!-- five: end -->\ntail')"
cp "$TMPDIR/readme" "$TMPDIR/before"
check "a page without the marks is refused" sh -c \
    "! '$python' '$fill' '$rows' here '$TMPDIR/part' '$TMPDIR/page' --between five 2>'$TMPDIR/said' && grep -q 'five: begin' '$TMPDIR/said'"
printf '{"case": "loa' >>"$rows/here.jsonl"
check "a torn result is an error with file and line, and the page stays" sh -c \
    "! '$python' '$fill' '$rows' here '$TMPDIR/part' '$TMPDIR/readme' --between five 2>'$TMPDIR/said' &&
     grep -q 'here.jsonl:[0-9]*: ' '$TMPDIR/said' && cmp -s '$TMPDIR/readme' '$TMPDIR/before'"

# ---- the whole way: commands that print rows, their file, and both pages ----

mkdir -p "$TMPDIR/tree/bench" "$TMPDIR/tree/build/bin" || exit 1
cp -r bench/measure bench/results bench/RESULTS.md "$TMPDIR/tree/bench" && cp README.md "$TMPDIR/tree" || exit 1
cat >"$TMPDIR/tree/build/bin/tokmap-bench" <<'EOF'
#!/bin/sh
case $1 in
verify) while [ "$1" != --dir ]; do shift; done; touch "$2/tokmap-bench-1.bin" "$2/tokmap-bench-1.tmx" ;;
order) echo '{"case": "order", "metric": "draw_ns", "value": 12.5, "unit": "ns", "command": "tokmap-bench order --json", "machine": "m", "date": "2026-01-02T03:04:05Z"}' ;;
*) echo 'no such thing' >&2; exit 1 ;;
esac
EOF
chmod +x "$TMPDIR/tree/build/bin/tokmap-bench"
measure() { # VARIABLE=VALUE...
    (cd "$TMPDIR/tree" && env -u BUILD -u DIR BUSY=mark OFFLINE=1 PYTHON="$python" "$@" bash bench/measure/measure.sh) \
        >"$TMPDIR/said" 2>&1
}
measure ONLY='order plan' MACHINE=new || cat "$TMPDIR/said"
new=$TMPDIR/tree/bench/results/new.jsonl
check "a step is stored in the machine's file" grep -q '^{"step":"order",.*"value":12.5,.*"commit":"' "$new"
check "a step that fails is stored with its reason" grep -q '^{"step":"plan",.*"text":"no such thing"' "$new"
check "the machine is described" grep -q '^{"step":"machine",.*"metric":"processor"' "$new"
check "the page shows the machine" grep -q 'worst of all sizes up to 2^63 | C | 12.5 ns |' "$TMPDIR/tree/bench/RESULTS.md"
cp "$TMPDIR/tree/bench/RESULTS.md" "$TMPDIR/before"
measure ONLY=none || cat "$TMPDIR/said"
check "ONLY=none writes the pages of the same machine again" cmp "$TMPDIR/before" "$TMPDIR/tree/bench/RESULTS.md"

# ---- the committed pages ----

for file in bench/results/*.jsonl; do
    written "$file" >"$TMPDIR/again"
    check "$file has the form that rows.py writes" cmp "$file" "$TMPDIR/again"
    check "$file has less than 1 MiB" test "$(wc -c <"$file")" -lt 1048576
done
machine=$(sed -n 's|^<!-- Written from results/\([^ /]*\)\.jsonl .*|\1|p' bench/RESULTS.md)
cp README.md "$TMPDIR" || exit 1
same() { # PAGE ARGUMENT...
    page=$1
    shift
    "$python" "$fill" bench/results "$machine" "$@" 2>"$TMPDIR/said" && cmp "$TMPDIR/$(basename "$page")" "$page"
}
check "bench/RESULTS.md is what bench/results says (make measure ONLY=none writes it)" \
    same bench/RESULTS.md bench/measure/RESULTS.template.md "$TMPDIR/RESULTS.md"
check "README.md's five numbers are those of bench/results" \
    same README.md bench/measure/five_numbers.template.md "$TMPDIR/README.md" --between 'five numbers'
check "bench/RESULTS.md has at most 200 lines" test "$(wc -l <bench/RESULTS.md)" -le 200
check "at most four pictures are beside the rows, and a page shows each" sh -c '
    set -- bench/results/*.svg
    [ $# -le 4 ] && for picture; do grep -qF "$(basename "$picture")" bench/RESULTS.md README.md || exit 1; done'
