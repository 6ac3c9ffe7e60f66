#!/bin/sh
# SPDX-License-Identifier: MIT
# test_generated.sh: the generated Unicode tables are what their generators write.
#
# For classes.c, the test needs python3 and the ranges that the references match (classes_unicode16_reference.json, in
# $TOKMAP_DATA or ../shared/data); for the others, the Python package tokenizers 0.23 and a Python with Unicode
# 14.0, such as 3.11.
set -u
python=${PYTHON:-python3}
unicode=$TOP/tokenize_tools/tokenizers/unicode
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

version=$("$python" -c 'import tokenizers, unicodedata
print(tokenizers.__version__, unicodedata.unidata_version)' 2>/dev/null)
case $version in
"0.23."*" 14.0.0")
    "$python" "$unicode/make_unicode.py" "$TMPDIR" >/dev/null
    "$python" "$unicode/make_graphemes.py" "$TMPDIR" >/dev/null
    compare nfc_tables.c code_tables.c grapheme_tables.c
    ;;
*) echo "ok - nfc_tables.c and others # SKIP needs the package tokenizers 0.23 and Unicode 14.0" ;;
esac
