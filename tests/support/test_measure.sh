#!/bin/sh
# SPDX-License-Identifier: MIT
# test_measure.sh: the pages that `make measure` writes: what a reference becomes, also of a value that was not
# measured, that a page is replaced as a whole, and that the committed pages are those of the committed rows.
set -u
python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null 2>&1; then
    echo "skipped: python3 is missing"
    exit 77
fi
fill=bench/measure/fill.py
check() {
    name=$1
    shift
    if "$@"; then echo "ok - $name"; else echo "not ok - $name: $*"; fi
}
rows=$TMPDIR/rows
mkdir -p "$rows" || exit 1
cat >"$rows/loader.json" <<'EOF'
{"case": "loader", "metric": "tokens_per_s", "value": 4781234567.0, "unit": "tokens/s", "better": "more", "min": 4.5e9, "max": 4.9e9, "n": 7, "limit": 2.82e9, "ratio": 1.69547}
{"case": "loader", "metric": "next_p50_us", "value": 3.3049, "unit": "us", "min": 3.1, "max": 3.4, "n": 7}
{"case": "loader", "metric": "waits", "value": 0, "unit": "calls", "min": 0, "max": 0, "n": 7}
{"case": "loader", "metric": "cpu", "value": 0.000209, "unit": "s/Mtoken", "min": 0, "max": 0, "n": 7}
{"case": "loader", "metric": "start", "value": 12345.6, "unit": "ms", "min": 1, "max": 2, "n": 7}
{"case": "loader", "metric": "equal", "value": 1, "unit": "0|1", "min": 1, "max": 1, "n": 1}
EOF
cat >"$rows/train.json" <<'EOF'
{"case": "train", "metric": "au_percent", "value": 99.976, "unit": "%", "min": 99.9, "max": 100, "n": 7, "limit": 99.9986}
EOF
cat >"$rows/compare.json" <<'EOF'
{"case": "compare", "table": "loaders", "row": "tokmap", "metric": "warm_tokens_per_s", "value": 4e9, "unit": "tokens/s"}
{"case": "compare", "table": "loaders", "row": "torch|0, whole batches", "metric": "warm_tokens_per_s", "value": 166e6, "unit": "tokens/s"}
{"case": "compare", "table": "loaders", "row": "tokmap", "metric": "next_p50_us", "value": 2, "unit": "us"}
{"case": "compare", "table": "loaders", "row": "grain", "metric": "absent", "value": 1, "unit": "", "text": "pip says:\nno | wheel"}
{"case": "compare", "table": "loaders", "row": "tokmap", "metric": "about", "value": 1, "unit": "", "text": "tokmap 0.1.0"}
EOF
cat >"$rows/faults.json" <<'EOF'
{"case": "faults", "row": "tokmap", "metric": "flipped bit", "value": 0, "unit": "silent", "result": "place", "text": "CorruptError: byte 7"}
{"case": "faults", "row": "tokmap", "metric": "EIO", "value": 0, "unit": "silent", "result": "status", "text": "IoError"}
{"case": "faults", "row": "torch", "metric": "flipped bit", "value": 1, "unit": "silent", "result": "garbage", "text": "2 rows of 9 | 1"}
{"case": "faults", "row": "llm.c", "metric": "flipped bit", "value": 0, "unit": "silent", "result": "absent", "text": "no source"}
{"case": "faults", "row": "llm.c", "metric": "absent", "value": 1, "unit": "", "text": "no source"}
EOF
cat >"$rows/gpu.json" <<'EOF'
{"case": "h2d", "metric": "peak_gb_s", "value": 50, "unit": "GB/s"}
{"case": "gpu", "metric": "device", "value": null, "unit": "text", "text": "a GPU"}
{"case": "gpu", "metric": "driver_call_us", "value": 7.25, "unit": "us", "limit": 6, "verdict": "short"}
{"case": "gpu", "metric": "consumer_calls", "value": 8, "unit": "calls", "verdict": null}
{"case": "gpu", "metric": "race_mismatches", "value": null, "unit": "outputs", "limit": 0, "verdict": "not measured"}
{"case": "gpu", "metric": "answer", "value": null, "unit": "text", "text": "0 of 2 are held."}
EOF
printf 'date: 2026-01-02\nprocessor: x: y\n' >"$rows/facts"
mkdir -p "$rows/pictures/loader"
touch "$rows/pictures/loader/loader-tokens.svg" "$rows/pictures/loader/loader-next-us.svg"
printf 'gpu: this machine has no GPU\n' >"$rows/missing"
cat >"$TMPDIR/page.template" <<'EOF'
{{loader tokens_per_s}}; {{loader tokens_per_s limit}}; {{loader tokens_per_s ratio}}; {{loader next_p50_us range}}
{{loader waits number}}; {{loader cpu}}; {{loader start}}; {{loader equal}}; {{loader waits limit}}; {{nowhere waits}}
{{train au_percent}}; {{train au_percent limit}}
{{compare torch|0, whole batches warm_tokens_per_s}}; {{fact date}}; {{fact processor}}; {{fact nothing}}
{{missing}}
{{table compare}}
{{matrix faults}}
{{matrix nowhere}}
{{figures gpu}}
{{figures nowhere}}
{{pictures loader}}
{{pictures nowhere}}
{{if nowhere}}
{{nowhere waits}}
{{end}}
{{if loader}}
waits: {{loader waits number}}
{{end}}
EOF
cat >"$TMPDIR/expected" <<'EOF'
4.78 G tokens/s; 2.82 G tokens/s; 1.70; 3.10 to 3.40 µs
0; 0.00021 s; 12,346 ms; yes; not measured; not measured
99.98%; 99.999%
166 M tokens/s; 2026-01-02; x: y; unknown
- `gpu`: this machine has no GPU
| | warm | next p50 |
|---|---|---|
| tokmap | 4.00 G tokens/s | 2.00 µs |
| torch\|0, whole batches | 166 M tokens/s |  |

- grain was not measured: pip says: no \| wheel

<details><summary>Versions and options</summary>

- tokmap: tokmap 0.1.0

</details>
| | flipped bit | EIO |
|---|---|---|
| tokmap | error, place | error, file |
| torch | **wrong rows** | not measured |

- error, place: an error that names the file and the position in it
- error, file: an error that names the file
- **wrong rows**: rows that are not the data were delivered without a word

- llm.c was not measured: no source

<details><summary>tokmap: messages and counts</summary>

- flipped bit: CorruptError: byte 7
- EIO: IoError

</details>

<details><summary>torch: messages and counts</summary>

- flipped bit: 2 rows of 9 \| 1

</details>
not measured.
| figure | measured | bar | |
|---|---|---|---|
| `driver_call_us` | 7.25 µs | 6.00 µs | short |
| `consumer_calls` | 8.00 calls |  |  |
| `race_mismatches` | not measured | 0 outputs | not measured |

a GPU
0 of 2 are held.
Not measured.
![loader next us](rows/pictures/loader/loader-next-us.svg)

![loader tokens](rows/pictures/loader/loader-tokens.svg)

waits: 0
EOF
"$python" "$fill" "$rows" "$TMPDIR/page.template" "$TMPDIR/page" 2>"$TMPDIR/said"
check "references become values with units, three digits, and reasons" diff "$TMPDIR/expected" "$TMPDIR/page"
check "it says how many values were not measured" grep -q '3 not measured' "$TMPDIR/said"

printf 'head\n<!-- five: begin -->\nold\n<!-- five: end -->\ntail\n' >"$TMPDIR/readme"
printf 'new {{loader waits number}}\n' >"$TMPDIR/part"
"$python" "$fill" "$rows" "$TMPDIR/part" "$TMPDIR/readme" --between five 2>/dev/null
check "only what is between the marks is replaced" \
    test "$(cat "$TMPDIR/readme")" = "$(printf 'head\n<!-- five: begin -->\nnew 0\n<!-- five: end -->\ntail')"
cp "$TMPDIR/readme" "$TMPDIR/before"
check "a page without the marks is refused" sh -c \
    "! '$python' '$fill' '$rows' '$TMPDIR/part' '$TMPDIR/page' --between five 2>'$TMPDIR/said' && grep -q 'five: begin' '$TMPDIR/said'"
printf '{"case": "loa' >>"$rows/loader.json"
check "a torn result is an error with file and line, and the page stays" sh -c \
    "! '$python' '$fill' '$rows' '$TMPDIR/part' '$TMPDIR/readme' --between five 2>'$TMPDIR/said' &&
     grep -q 'loader.json:7: ' '$TMPDIR/said' && cmp -s '$TMPDIR/readme' '$TMPDIR/before'"

# The committed pages say what the committed rows say.
cp README.md "$TMPDIR" || exit 1
same() { # PAGE ARGUMENT...
    page=$1
    shift
    "$python" "$fill" bench/results "$@" 2>"$TMPDIR/said" && cmp "$TMPDIR/$(basename "$page")" "$page"
}
if [ -e bench/results/facts ]; then
    check "bench/RESULTS.md is what bench/results says (make measure ONLY=none writes it)" \
        same bench/RESULTS.md bench/measure/RESULTS.template.md "$TMPDIR/RESULTS.md"
    check "README.md's five numbers are those of bench/results" \
        same README.md bench/measure/five_numbers.template.md "$TMPDIR/README.md" --between 'five numbers'
else
    echo "ok - the committed pages # SKIP bench/results has no results"
fi
