#!/bin/sh
# SPDX-License-Identifier: MIT
# test_generated.sh: the generated Unicode tables are what their generators write.
#
# For classes.c, the test needs python3 and the ranges that the references match (classes_unicode16_reference.json, in
# $TOKMAP_DATA or ../shared/data); for what make_unicode.py and make_graphemes.py write it needs the Python package
# tokenizers 0.23; for lower_case_tables.c a Python with Unicode 14.0, such as 3.11.
set -u
python=${PYTHON:-python3}
unicode=$TOP/tokenize_tools/unicode
if [ -n "${SANITIZE:-}" ] || ! command -v "$python" >/dev/null 2>&1; then
    echo "skipped: needs python3, and a build without sanitizers"
    exit 77
fi

# compare NAME...: whether the files in $TMPDIR are those of the tree.
compare() {
    for name; do
        if cmp -s "$TMPDIR/$name" "$unicode/$name"; then
            echo "ok - $name"
        else
            echo "not ok - $name is not what its generator writes"
        fi
    done
}

reference=classes_unicode16_reference.json
for folder in "${TOKMAP_DATA:-}" "$TOP/../shared/data"; do
    [ ! -f "$folder/$reference" ] || break
done
if [ -f "$folder/$reference" ]; then
    "$python" "$unicode/make_classes.py" "$folder/$reference" "$TMPDIR" >/dev/null
    compare classes.c
else
    echo "ok - classes.c # SKIP $reference is missing"
fi

version=$("$python" -c 'import tokenizers; print(tokenizers.__version__)' 2>/dev/null)
case $version in
0.23.*)
    "$python" "$unicode/make_unicode.py" "$TMPDIR" >/dev/null
    "$python" "$unicode/make_graphemes.py" "$TMPDIR" >/dev/null
    compare nfc_tables.c char_map_tables.c scripts_tables.c code_sets.c grapheme_tables.c
    ;;
*) echo "ok - nfc_tables.c and others # SKIP the Python package tokenizers 0.23 is not installed" ;;
esac

version=$("$python" -c 'import unicodedata; print(unicodedata.unidata_version)')
if [ "$version" = 14.0.0 ]; then
    "$python" "$unicode/make_lower_case.py" "$TMPDIR" >/dev/null
    compare lower_case_tables.c
else
    echo "ok - lower_case_tables.c # SKIP this Python has Unicode $version"
fi
