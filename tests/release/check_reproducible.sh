#!/bin/sh
# SPDX-License-Identifier: MIT
# check_reproducible.sh: two builds of the tarball of `make dist`, in folders with different names, one after the other,
# in different time zones and orders of compilation, have the same bytes: libraries, archives, commands, debugging
# information, and the wheel. (test_dist.sh compares tarballs.) No cache of compilers is used.
. tests/release/release_common.sh
need_commit
need python3 python3
dist
export CCACHE_DISABLE=1
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
run_make() {
    $MAKE -s CC="$CC" CXX="$CXX" CFLAGS="$CFLAGS" CPPFLAGS="$CPPFLAGS" LDFLAGS="$LDFLAGS" LIBS="$LIBS" "$@"
}
# build FOLDER JOBS
build() { unpack "$1" && (cd "$1" && run_make "-j$2" lib tools bench && run_make wheel); }
unset BUILD
first=$TMPDIR/first second="$TMPDIR/a/much longer path of/the second build"
check "the first build" build "$first" "${jobs#-j}"
TZ=Pacific/Auckland
export TZ
check "the second build" build "$second" 1
for file in lib/libtokmap.so.0 lib/libtokmap.a lib/libtokmap_tokenize.so.0 lib/libtokmap_tokenize.a \
    lib/linked/libtokmap.a lib/linked/libtokmap_tokenize.a bin/tokmap bin/tokmap-bench lib/.debug/libtokmap.so.0.debug \
    lib/.debug/libtokmap_tokenize.so.0.debug bin/.debug/tokmap.debug bin/.debug/tokmap-bench.debug; do
    check "$file" cmp "$first/build/$file" "$second/build/$file"
done
check "the wheel" sh -c 'cmp "$1"/build/wheel/*.whl "$2"/build/wheel/*.whl' cmp "$first" "$second"
