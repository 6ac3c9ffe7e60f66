#!/bin/sh
# test_make.sh: what the Makefile promises: silence, appended flags, relinking, probes, commands that run where they lie.
set -u
if [ -n "${SANITIZE:-}" ]; then
    echo "skipped: the Makefile is tested in the plain build"
    exit 77
fi
check() {
    name=$1
    shift
    if "$@"; then echo "ok - $name"; else echo "not ok - $name: $*"; fi
}
unset MAKEFLAGS MAKELEVEL MFLAGS CFLAGS CPPFLAGS LDFLAGS LIBS TESTS SANITIZE
# A tree of its own: flags of this test must not make the other tests' programs stale. The path holds a space.
tree="$TMPDIR/a tree"
mkdir -p "$tree" || exit 1
tar -cf - Makefile include src tests/support | (cd "$tree" && tar -xf -)
run_make() {
    (cd "$tree" && $MAKE --no-print-directory CC="$CC" CXX="$CXX" BUILD=out "$@")
}

check "the first make says nothing" test -z "$(run_make -j2 lib CFLAGS=-O0 2>&1)"
check "so does the second" test -z "$(run_make lib CFLAGS=-O0 2>&1)"
ls -i "$tree"/out/lib/libtokmap.so.0 >"$TMPDIR/before"
run_make lib CFLAGS=-O0
ls -i "$tree"/out/lib/libtokmap.so.0 >"$TMPDIR/after"
check "nothing is linked again without a cause" cmp -s "$TMPDIR/before" "$TMPDIR/after"
run_make V=1 lib CFLAGS=-O0 LDFLAGS=-Wl,--hash-style=both >"$TMPDIR/log" 2>&1
check "another LDFLAGS links again, compiles nothing" sh -c \
    "grep -q -e --hash-style=both '$TMPDIR/log' && ! grep -q -e ' -c ' '$TMPDIR/log'"
touch "$tree/src/common/error.h"
run_make V=1 lib CFLAGS=-O0 >"$TMPDIR/log" 2>&1
check "a changed header compiles what includes it" grep -q -e '-c src/common/error.c' "$TMPDIR/log"
check "V=1 shows the commands" grep -q -e "-std=gnu11 .* -c src/common/error.c" "$TMPDIR/log"
run_make -n V=1 lib CFLAGS='-O1 -DOF_THE_USER' CPPFLAGS=-DOF_THE_USER_TOO >"$TMPDIR/log" 2>&1
check "given flags are appended" grep -q -e "-std=gnu11 .*-fvisibility=hidden.* -DOF_THE_USER_TOO -O1 -DOF_THE_USER .*-c" \
    "$TMPDIR/log"
check "help lists the targets" sh -c "cd '$tree' && '$MAKE' help | grep -q '^ *uninstall '"

# A compiler that sees everything but one header: the probe reads its questions from standard input.
for pair in zstd.h:libzstd-dev xxhash.h:libxxhash-dev; do
    header=${pair%%:*}
    printf '#!/bin/sh\nsed "s/<%s>/<no such header>/" | exec %s "$@"\n' "$header" "$CC" >"$TMPDIR/cc-without"
    chmod +x "$TMPDIR/cc-without"
    (cd "$tree" && $MAKE --no-print-directory CC=../cc-without BUILD=none lib) >"$TMPDIR/log" 2>&1
    status=$?
    check "without $header make stops with 2" test $status = 2
    check "and says in one line what to install" sh -c \
        "test \$(wc -l <'$TMPDIR/log') = 1 && grep -q 'apt-get install $(echo ${pair#*:})' '$TMPDIR/log'"
done
(cd "$tree" && $MAKE --no-print-directory CC=/nowhere/cc BUILD=none lib) >"$TMPDIR/log" 2>&1
status=$?
check "without a compiler make stops with 2" test $status = 2
check "and says in one line what to install" sh -c \
    "test \$(wc -l <'$TMPDIR/log') = 1 && grep -q 'apt-get install gcc' '$TMPDIR/log'"
printf '#!/bin/sh\nsed "s/<isa-l.igzip_lib.h>/<no such header>/" | exec %s "$@"\n' "$CC" >"$TMPDIR/cc-without"
(cd "$tree" && $MAKE --no-print-directory -n CC=../cc-without BUILD=none lib) >"$TMPDIR/log" 2>&1
check "an optional header that is missing is one line" sh -c \
    "test \$(grep -c '^tokmap: built without .*apt-get install libisal-dev' '$TMPDIR/log') = 1"

for name in tokmap tokmap-bench; do
    [ -x "$BUILD_DIR/bin/$name" ] || continue
    check "$name runs where it lies" sh -c "cd / && env -i '$BUILD_DIR/bin/$name' --version >/dev/null"
done
