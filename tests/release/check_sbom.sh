#!/bin/sh
# SPDX-License-Identifier: MIT
# check_sbom.sh: `make sbom` lists what the wheel has of others, as a document that the tools of SPDX accept.
. tests/release/release_common.sh
need python3 python3
check "make sbom" $MAKE --no-print-directory BUILD="$BUILD" CC="$CC" CFLAGS="$CFLAGS" sbom
sbom=$BUILD_DIR/dist/tokmap-$version.spdx.json
check "the document has what SPDX 2.3 requires" python3 .github/packaging/sbom.py --check "$sbom"
sed 's/"SPDXRef-tokmap"/"SPDXRef-other"/' "$sbom" >"$TMPDIR/wrong.spdx.json"
sed -i '0,/SPDXRef-other/s//SPDXRef-tokmap/' "$TMPDIR/wrong.spdx.json"
check "and one with a dangling reference is refused" fails python3 .github/packaging/sbom.py --check "$TMPDIR/wrong.spdx.json"
# Libraries whose headers are installed are in the wheel, as code or as a file.
for pair in zstd.h:zstd isa-l.h:isal pcre2.h:pcre2-8 snappy-c.h:snappy lz4frame.h:lz4 brotli/decode.h:brotlidec \
    bzlib.h:bz2 lzma.h:lzma; do
    found=$(printf '#if __has_include(<%s>)\nyes\n#endif\n' "${pair%%:*}" | $CC $CPPFLAGS -E -P - 2>/dev/null)
    [ -n "$found" ] || continue
    check "lib${pair#*:} is named as bundled" sh -c \
        "grep -q '\"SPDXRef-bundled-$(echo "${pair#*:}" | tr _ -)\"' '$sbom'"
done
check "every bundled library has a license" python3 -c "
import json, sys
found = [one for one in json.load(open('$sbom'))['packages'] if 'bundled' in one['SPDXID']]
sys.exit([one['name'] for one in found if one['licenseDeclared'] == 'NOASSERTION'] or 0 if found else 'nothing')"
. tests/support/reference_venv.sh
REFERENCE_PACKAGES=tests/reference/spdx.txt REFERENCE_FOLDER=venv-spdx
if reference_venv spdx_tools >"$TMPDIR/venv.log" 2>&1; then
    check "spdx-tools accepts the document" "$REFERENCE_PYTHON" -m spdx_tools.spdx.clitools.pyspdxtools --infile "$sbom"
    check "and refuses the other one" fails "$REFERENCE_PYTHON" -m spdx_tools.spdx.clitools.pyspdxtools \
        --infile "$TMPDIR/wrong.spdx.json"
else
    echo "ok - spdx-tools # SKIP $(tail -n 1 "$TMPDIR/venv.log")"
fi
