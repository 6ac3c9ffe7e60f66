#!/bin/sh
# SPDX-License-Identifier: MIT
# test_hardened.sh: what was built is hardened, the user's flags win over the Makefile's, and this test would see a file
# that lacks something. test_install.py looks at the files of the wheel.
set -u
[ -z "${SANITIZE:-}" ] || { echo "skipped: sanitizers replace these checks" && exit 77; }
command -v "${PYTHON:-python3}" >/dev/null 2>&1 || { echo "skipped: Python is missing" && exit 77; }
python=${PYTHON:-python3}
check() {
    name=$1
    shift
    if "$@"; then echo "ok - $name"; else echo "not ok - $name: $*"; fi
}
case " ${CPPFLAGS:-} ${CFLAGS:-} ${LDFLAGS:-} " in
*-fno-stack-protector* | *-z,lazy* | *-no-pie* | *_FORTIFY_SOURCE=0*)
    echo "skipped: these flags of the user leave protections out: ${CPPFLAGS:-} ${CFLAGS:-} ${LDFLAGS:-}" && exit 77 ;;
esac
case " ${CFLAGS:--O2} " in
*' -O0 '*) fortified= ;;
*' -O'*) fortified=--fortified ;;
*) fortified= ;;
esac
"$python" tests/support/elf_hardening.py $fortified "$BUILD_DIR/bin/tokmap" "$BUILD_DIR/bin/tokmap-bench" \
    "$BUILD_DIR"/lib/*.so.[0-9]

# Programs that lack one thing each. A linker or a compiler that cannot leave it out is not a failure of this test.
printf '#include <string.h>\nint main(int c, char **v) { char a[64]; strcpy(a, v[0]); return a[c]; }\n' >"$TMPDIR/a.c"
good='-O2 -fPIC -fstack-protector-strong -D_FORTIFY_SOURCE=2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2'
link='-pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack'
seen() {
    $CC $good $link $1 -o "$TMPDIR/a" "$TMPDIR/a.c" >/dev/null 2>&1 || return 0
    "$python" tests/support/elf_hardening.py --fortified "$TMPDIR/a" >"$TMPDIR/said"
    grep -q "$2" "$TMPDIR/said"
}
check "a program that lacks nothing passes" seen '' '^ok - '
check "lazy binding is seen" seen -Wl,-z,lazy 'lacks full RELRO'
check "missing RELRO is seen" seen -Wl,-z,norelro 'lacks full RELRO'
check "a fixed address is seen" seen -no-pie 'lacks an address'
check "a stack with code is seen" seen -Wl,-z,execstack 'lacks a stack without code'
check "missing checks of the stack are seen" seen -fno-stack-protector 'lacks checks of the stack'
check "missing checks of calls are seen" seen -U_FORTIFY_SOURCE "lacks checks of the C library's calls"

# The user's flags: make prints the commands, without running them. The folder is relative, because make takes no path
# that contains a space.
commands() {
    env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u CFLAGS -u CPPFLAGS -u LDFLAGS $MAKE --no-print-directory -n V=1 CC="$CC" \
        BUILD=build/none tools "$@" >"$TMPDIR/said" 2>&1
}
# without PATTERN: make would compile and link, and no command matches the pattern.
without() {
    grep -q -e '-o [^ ]*/bin/tokmap ' "$TMPDIR/said" && ! grep -q -e "$1" "$TMPDIR/said"
}
commands CPPFLAGS=-D_FORTIFY_SOURCE=3 CFLAGS='-O3 -fno-stack-protector' LDFLAGS='-Wl,-z,lazy -no-pie'
check "another _FORTIFY_SOURCE is used" grep -q -e '-D_FORTIFY_SOURCE=3 .*-c src/' "$TMPDIR/said"
check "and ours is left out" without '_FORTIFY_SOURCE=2'
check "flags of the compiler come after ours" grep -q -e '-fstack-protector-strong .*-fno-stack-protector .*-c src/' \
    "$TMPDIR/said"
check "flags of the linker come after ours" grep -q -e '-z,now .*-z,lazy -no-pie -o [^ ]*/bin/tokmap ' "$TMPDIR/said"
check "and -no-pie is not contradicted" without ' -pie '
commands CFLAGS=-O0
check "without optimization there is no _FORTIFY_SOURCE" without '_FORTIFY_SOURCE='
commands SANITIZE=address
check "nor with a sanitizer" without '_FORTIFY_SOURCE='
commands HARDEN=no
check "HARDEN=no leaves all of it out" without '_FORTIFY_SOURCE=\|stack-protector\|z,now\| -pie '
