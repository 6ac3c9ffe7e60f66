#!/bin/sh
# SPDX-License-Identifier: MIT
# test_make.sh: what the Makefile promises: silence, the user's flags after its own, relinking, probes for headers, and
# commands that run from the build folder.
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
# A copy of the tree, because the flags of this test must not make the programs of other tests stale. Its path contains
# a space.
tree="$TMPDIR/a tree"
mkdir -p "$tree" || exit 1
tar -cf - Makefile include src tokenize_tools tests/tests.mk tests/support | (cd "$tree" && tar -xf -)
# A compiler that copies what the build has compiled already, because what make does is the same and takes no time.
objects=$BUILD_DIR/obj/$(sed -n '1s|[^ ]*/\([0-9]*\) .*|\1|p' "$BUILD_DIR/linked_from")
cat >"$TMPDIR/cc-copying" <<SCRIPT
#!/bin/sh
object= source= before=
for word; do
    case \$before in -o) object=\$word ;; -c) source=\$word ;; -include) source= && break ;; esac
    before=\$word
done
done=\$(case \$object in */linked/*) echo linked/ ;; esac)\$source
if [ -z "\$source" ] || [ ! -e "$objects/\$done.o" ]; then exec $CC "\$@"; fi
sed "1s|^[^ ]*:|\$object:|" "$objects/\$done.d" >"\${object%.o}.d" && cp "$objects/\$done.o" "\$object"
SCRIPT
chmod +x "$TMPDIR/cc-copying"
run_make() {
    (cd "$tree" && $MAKE --no-print-directory CC=../cc-copying CXX="$CXX" BUILD=out "$@")
}

run_make -j2 lib CFLAGS=-O0 >"$TMPDIR/log" 2>&1
check "the first make names the files that it compiles" grep -qx '  CC   src/common/error.c' "$TMPDIR/log"
check "and what it links, and prints nothing else" sh -c \
    "grep -qx '  LINK out/lib/libtokmap.so.0' '$TMPDIR/log' && ! grep -qv '^  \(CC  \|AR  \|LINK\) [a-z]' '$TMPDIR/log'"
check "the second prints nothing" test -z "$(run_make lib CFLAGS=-O0 2>&1)"
touch "$tree/src/common/error.c"
check "with -s it is silent" test -z "$(run_make -s lib CFLAGS=-O0 2>&1)"
check "make all would end with what was built and what it reads" sh -c \
    "cd '$tree' && $MAKE -n CC='$CC' BUILD=out all | tail -n 1 | grep -q 'tokmap is built: .*\.zst.* split pattern'"
ls -i "$tree"/out/lib/libtokmap.so.0 >"$TMPDIR/before"
run_make lib CFLAGS=-O0
ls -i "$tree"/out/lib/libtokmap.so.0 >"$TMPDIR/after"
check "make does not link again without a reason" cmp -s "$TMPDIR/before" "$TMPDIR/after"
run_make V=1 lib CFLAGS=-O0 LDFLAGS=-Wl,--hash-style=both >"$TMPDIR/log" 2>&1
check "after a change of LDFLAGS make links again but does not compile" sh -c \
    "grep -q -e --hash-style=both '$TMPDIR/log' && ! grep -q -e ' -c ' '$TMPDIR/log'"
touch "$tree/src/cuda/cuda_device.h" # few files include it
run_make V=1 lib CFLAGS=-O0 >"$TMPDIR/log" 2>&1
check "after a change of a header make compiles the files that include it" \
    grep -q -e '-c src/cuda/cuda_public.c' "$TMPDIR/log"
check "and no others" sh -c "! grep -q -e '-c src/common/error.c' '$TMPDIR/log'"
check "V=1 shows the commands" grep -q -e "-std=gnu11 .* -c src/cuda/cuda_public.c" "$TMPDIR/log"
run_make -n V=1 lib CFLAGS='-O1 -DOF_THE_USER' CPPFLAGS=-DOF_THE_USER_TOO >"$TMPDIR/log" 2>&1
check "the user's flags come after those of the Makefile" grep -q -e "-std=gnu11 .*-fvisibility=hidden.* -DOF_THE_USER_TOO -O1 -DOF_THE_USER .*-c" \
    "$TMPDIR/log"
for target in all lib tools bench wheel test demo install uninstall; do
    check "help lists $target" sh -c "cd '$tree' && '$MAKE' help | grep -q '^ *$target '"
done

# A compiler for which one header does not exist. The Makefile passes the names of headers to it on standard input.
for pair in zstd.h:libzstd-dev xxhash.h:libxxhash-dev; do
    header=${pair%%:*}
    printf '#!/bin/sh\nsed "s/<%s>/<no such header>/" | exec %s "$@"\n' "$header" "$CC" >"$TMPDIR/cc-without"
    chmod +x "$TMPDIR/cc-without"
    (cd "$tree" && $MAKE --no-print-directory CC=../cc-without BUILD=none lib) >"$TMPDIR/log" 2>&1
    status=$?
    check "without $header make exits with 2" test $status = 2
    check "and prints one line that says what to install" sh -c \
        "test \$(wc -l <'$TMPDIR/log') = 1 && grep -q 'apt-get install $(echo ${pair#*:}) (without root: ' '$TMPDIR/log'"
done
(cd "$tree" && $MAKE --no-print-directory CC=/nowhere/cc BUILD=none lib) >"$TMPDIR/log" 2>&1
status=$?
check "without a compiler make exits with 2" test $status = 2
check "and prints one line that says what to install" sh -c \
    "test \$(wc -l <'$TMPDIR/log') = 1 && grep -q 'apt-get install gcc' '$TMPDIR/log'"
for pair in isa-l.igzip_lib.h:libisal-dev snappy-c.h:libsnappy-dev lz4frame.h:liblz4-dev brotli.decode.h:libbrotli-dev \
    bzlib.h:libbz2-dev lzma.h:liblzma-dev \
    curl.curl.h:libcurl4-openssl-dev pcre2.h:libpcre2-dev; do
    header=${pair%%:*}
    printf '#!/bin/sh\nsed "s/<%s>/<no such header>/" | exec %s "$@"\n' "$header" "$CC" >"$TMPDIR/cc-without"
    (cd "$tree" && $MAKE --no-print-directory -n CC=../cc-without BUILD=none lib) >"$TMPDIR/log" 2>&1
    check "a missing optional $header causes one line of output" sh -c \
        "test \$(grep -c '^tokmap: built without .*apt-get install ${pair#*:}' '$TMPDIR/log') = 1"
done

for name in tokmap tokmap-bench; do
    [ -x "$BUILD_DIR/bin/$name" ] || continue
    check "$name runs from the build folder" sh -c "cd / && env -i '$BUILD_DIR/bin/$name' --version >/dev/null"
done
