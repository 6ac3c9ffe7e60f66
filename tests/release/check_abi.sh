#!/bin/sh
# SPDX-License-Identifier: MIT
# check_abi.sh: the libraries have the interface of the last release (.github/packaging/abi), or more of it. Then it
# shows that the comparison notices what would break programs: it compares this tree with changed copies.
. tests/release/release_common.sh
need abidw abigail-tools
need abidiff abigail-tools
abi=.github/packaging/abi.sh
if [ -e .github/packaging/abi/libtokmap.so.0.abi ]; then
    check "the interface is that of the last release, or more" sh $abi check .github/packaging/abi
else
    echo "ok - the interface of the last release # SKIP no release has been made yet (make abi-dump)"
fi
check "the interface of this tree is stored" sh $abi dump "$TMPDIR/abi"
check "and is that of this tree" sh $abi check "$TMPDIR/abi"

# planted SED-SCRIPT FILE: compares a copy of this tree in which sed changes one file. The exit status is that of the
# comparison, or 2 if the copy cannot be built.
tree=$TMPDIR/tree
mkdir "$tree" && tar -cf - Makefile include src tokenize_tools bench | tar -xf - -C "$tree"
planted() {
    sed "$1" "$2" >"$tree/$2" && ! cmp -s "$tree/$2" "$2" || return 2
    (cd "$tree" && $MAKE --no-print-directory $jobs BUILD=out CC="$CC" CFLAGS="-O0 -g" lib) >"$TMPDIR/planted.log" 2>&1 ||
        { tail "$TMPDIR/planted.log"; return 2; }
    cp "$2" "$tree/$2"
    (cd "$tree" && BUILD=out sh "$TOP/$abi" check "$TMPDIR/abi")
}
# breaks SED-SCRIPT FILE: succeeds if the comparison finds an incompatible change, and not if the copy cannot be built.
breaks() { planted "$@"; test $? = 1; }
# The structs of tokenizer.h are those of few files, which are soon compiled.
check "a member of another type is noticed" breaks \
    '/^struct tokmap_encoded {/,/^}/s/^    uint64_t room;/    uint32_t room;/' include/tokmap/tokenizer.h
grow='/^struct tokmap_encoded {/,/^}/s/^};/    uint64_t planted;\n};/'
check "a member at the end of a struct is noticed" breaks "$grow" include/tokmap/tokenizer.h
ALLOWED=$TMPDIR/allowed.suppr
export ALLOWED
printf '%s\n' '[suppress_type]' 'name = tokmap_encoded' 'has_data_member_inserted_at = end' >"$ALLOWED"
check "and accepted if the list of what has grown names it" planted "$grow" include/tokmap/tokenizer.h
check "a function that is no longer exported is noticed" breaks \
    's/tokmap_tokenizer_\*;/tokmap_tokenizer_[!o]*;/' tokenize_tools/libtokmap_tokenize.map
