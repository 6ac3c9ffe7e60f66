# SPDX-License-Identifier: MIT
# ci: nonroot
# The case faults: tokmap's cells for real, the loaders that are not here, and what a script may not print.
. "$TOKMAP_CLI/helpers.sh"
need python3
[ -z "${SANITIZE:-}" ] || skip "a library with a sanitizer cannot be loaded by Python"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' || skip "Python is older than 3.9"

mkdir work
few="--peers memmap --offline --stall 1 --dir work"
# shellcheck disable=SC2086
tokmap-bench faults $few --faults 'flipped bit,cut before opening' >table 2>err || { cat table err >&2; exit 1; }
for line in '^loader  *flipped bit  *cut before opening *$' '^tokmap  *place  *place *$' \
    '^tokmap, checked  *place  *place *$' '^  tokmap: place: DataError in batch [0-9]*: tokens.bin: bytes [0-9]*\.\.[0-9]* of the tokens do not match' \
    '^  tokmap, checked: place: DataError in open: tokens.bin' '^np.memmap  *[a-z]*  *[a-z]* *$' \
    '^unreachable: the fault cannot' '^1,536 windows of 256 tokens'; do
    grep -q -e "$line" table || { echo "FAULT: no line $line" >&2; cat table >&2; exit 1; }
done
# shellcheck disable=SC2086
tokmap-bench faults $few --json --faults 'full disk' >rows 2>err || { cat rows err >&2; exit 1; }
json rows
for row in tokmap 'tokmap, checked' np.memmap; do
    grep -F "\"row\": \"$row\"" rows | grep -F '"metric": "full disk", "value": 0' | grep -qF '"result": "' ||
        { echo "FAULT: no cell of $row" >&2; cat rows >&2; exit 1; }
done
grep -F '"row": "tokmap, checked"' rows | grep -q '"result": "place", "text": "IoError\|nothing makes reads and writes fail' ||
    { echo 'FAULT: a full disk is not a status' >&2; cat rows >&2; exit 1; }
equal "$(ls work)" '' 'files that are left'

exits 1 tokmap-bench faults --offline --faults 'no fault' 2>err
holds err "there is no fault 'no fault'"
exits 2 tokmap-bench faults data/web 2>err
holds err "the case faults makes its data itself"
exits 2 tokmap-bench faults --stall 0 2>err
holds err '--stall must be from 0.1 to 3600'

# ---- what the command makes of a script's cells ----
mkdir -p other/compare/tables
touch other/compare/tables/faults.py
# script LINE...: a script that prints these lines.
script()
{
    printf '%s\n' "$@" >other/lines
    echo "print(open('$PWD/other/lines').read(), end='')" >other/compare/__main__.py
}
script 'cell	EIO	tokmap	place	a.bin (byte 1)' 'cell	EIO	other	crash	SIGBUS after 3 batches' \
    'cell	flipped bit	tokmap	place	one row' 'cell	flipped bit	other	lost	one row'
tokmap-bench faults --peers-folder other --json >rows
json rows
grep -F '"row": "other", "metric": "flipped bit", "value": 1' rows | grep -qF '"result": "lost"' || exit 1
grep -F '"row": "other", "metric": "EIO", "value": 0' rows | grep -qF '"text": "SIGBUS after 3 batches"' || exit 1
for word in exception crash hang garbage lost repeated; do
    script "cell	EIO	tokmap	$word	a reason"
    exits 1 tokmap-bench faults --peers-folder other >table 2>err
    holds err "tokmap, EIO: $word: a reason"
    holds table "tokmap  $word"
done
script 'cell	EIO	a	none	good' 'cell	stall	b	none	good'
exits 1 tokmap-bench faults --peers-folder other >table 2>err
holds err 'a, stall: there is no result'
holds err 'b, EIO: there is no result'
for line in 'cell	EIO	tokmap	fine	text' 'cell	EIO	tokmap	none' 'EIO is fine'; do
    script "$line"
    exits 1 tokmap-bench faults --peers-folder other >table 2>err
    grep -q 'cannot be taken\|not a result' err || { cat err >&2; exit 1; }
done
script 'cell	EIO	a	none	good' 'cell	EIO	a	none	again'
exits 1 tokmap-bench faults --peers-folder other >table 2>err
holds err "the cell of the fault 'EIO' and the system 'a' cannot be taken"
