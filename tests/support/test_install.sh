#!/bin/sh
# SPDX-License-Identifier: MIT
# ci: nonroot
# test_install.sh: installs into a DESTDIR whose path contains a space, builds and runs a program against the
# installation as a user would, with the static and with the shared library, and uninstalls everything.
set -u
if [ -n "${SANITIZE:-}" ]; then
    echo "skipped: a sanitizer's build is not installed"
    exit 77
fi
unset MAKEFLAGS MAKELEVEL MFLAGS
into="$TMPDIR/a root"
prefix=/opt/tokmap
check() {
    name=$1
    shift
    if "$@"; then echo "ok - $name"; else echo "not ok - $name: $*"; fi
}
run_make() {
    $MAKE --no-print-directory BUILD="$BUILD" CC="$CC" CXX="$CXX" CFLAGS="$CFLAGS" LDFLAGS="$LDFLAGS" \
        CPPFLAGS="$CPPFLAGS" LIBS="$LIBS" DESTDIR="$into" prefix="$prefix" "$@"
}
run_make install >"$TMPDIR/install.log" 2>&1
check "make install" test $? = 0
for file in bin/tokmap bin/tokmap-bench lib/libtokmap.a lib/libtokmap.so lib/libtokmap.so.0 include/tokmap/tokmap.h \
    lib/libtokmap_tokenize.a lib/libtokmap_tokenize.so lib/libtokmap_tokenize.so.0 include/tokmap/tokenizer.h \
    include/tokmap/pack.h include/tokmap/error.h include/tokmap/dataset.h include/tokmap/run.h \
    include/tokmap/loader.h include/tokmap/order.h include/tokmap/cuda.h \
    lib/pkgconfig/tokmap.pc lib/pkgconfig/tokmap-tokenize.pc \
    share/man/man1/tokmap.1 share/man/man1/tokmap-bench.1 share/man/man5/tokmap-run.5; do
    check "$file" test -f "$into$prefix/$file"
done
for file in FORMAT.md RUN.md ORDER.md README.md PYTHON.md RESUME.md MIXTURES.md CLUSTER.md INSTALL.md CHANGELOG.md \
    tokmap.svg examples/train.c examples/train.py; do
    check "$file" test -f "$into$prefix/share/doc/tokmap/$file"
done
for file in encode.py compare/__main__.py compare/systems/tokmap.py compare/tables/loaders.py; do
    check "$file" test -f "$into$prefix/share/tokmap/peers/$file"
done
# Debugging information is beside the files, unless it is still in them.
for file in bin/tokmap bin/tokmap-bench lib/libtokmap.so.0 lib/libtokmap_tokenize.so.0; do
    debug=$(dirname $file)/.debug/$(basename $file).debug
    [ ! -f "$BUILD/$debug" ] || check "$debug" cmp "$BUILD/$debug" "$into$prefix/$debug"
done
# The installed command finds its scripts, of which the table below is made.
check "tokmap-bench compare finds the installed scripts" sh -c "command -v python3 >/dev/null || exit 0
    '$into$prefix/bin/tokmap-bench' compare loaders --tokens 20k --seq-len 64 --rows 2 --repeats 1 --seconds 0.01 \
        --peers memmap --offline --venv nowhere --dir '$TMPDIR' --json 2>&1 | grep -q '\"row\": \"tokmap\"'"
check "which stay as they were" test -z "$(find "$into$prefix/share/tokmap" -name '*.pyc')"
for file in bash-completion/completions/tokmap bash-completion/completions/tokmap-bench \
    zsh/site-functions/_tokmap fish/vendor_completions.d/tokmap.fish fish/vendor_completions.d/tokmap-bench.fish; do
    check "$file" test -s "$into$prefix/share/$file"
done
check "the links of the installed documents lead to installed files" sh -c "
    cd '$into$prefix/share/doc/tokmap' || exit
    grep -q '](RUN.md)' README.md && grep -q '](PYTHON.md)' README.md || exit
    sed 's/](/\n](/g' *.md | sed -n 's/^](\([^)#]*\).*/\1/p' | grep -v '^https*:' | sort -u | while read -r file; do
        case \$file in
        '' | '$prefix'/include/tokmap*) test -z \"\$file\" || test -e \"$into\$file\" ;;
        *) test -f \"\$file\" ;;
        esac || { echo \"no file \$file\"; exit 1; }
    done"
# A manual page names the documents where they are installed.
check "manual pages name the installed documents" sh -c \
    "grep -q '$prefix/share/doc/tokmap/RUN.md' '$into$prefix/share/man/man5/tokmap-run.5' &&
        ! grep -rq /usr/local '$into$prefix/share/man'"
check "with DESTDIR make names ldconfig" grep -q 'run as root: ldconfig' "$TMPDIR/install.log"
for page in tokenize_tools/man/*.[1-9] bench/man/*.[1-9]; do
    check "$(basename "$page")" test -f "$into$prefix/share/man/man${page##*.}/$(basename "$page")"
done

# tokmap.pc contains paths below the prefix, without DESTDIR.
check "tokmap.pc names the prefix" grep -q "^prefix=$prefix\$" "$into$prefix/lib/pkgconfig/tokmap.pc"
cat >"$TMPDIR/program.c" <<'PROGRAM'
#include <stdio.h>
#include <string.h>
#include <tokmap/tokmap.h>
int main(void)
{
    struct tokmap_dataset *dataset;
    struct tokmap_error error = {0};
    if (tokmap_dataset_open(&dataset, "no such dataset", NULL, &error) != TOKMAP_ERROR_NOT_FOUND || dataset)
        return 1;
    puts(tokmap_version());
    return strcmp(tokmap_version(), TOKMAP_VERSION_STRING) != 0;
}
PROGRAM
cat >"$TMPDIR/tokenizer.c" <<'PROGRAM'
#include <stdio.h>
#include <string.h>
#include <tokmap/tokenizer.h>
#include <tokmap/tokmap.h>
int main(void)
{
    struct tokmap_tokenizer *tokenizer;
    struct tokmap_error error = {0};
    uint32_t ids[8];
    char text[1500];
    struct tokmap_encoded encoded = TOKMAP_ENCODED_INIT;
    encoded.ids = ids;
    encoded.room = 8;
    if (tokmap_tokenizer_open(&tokenizer, "no such file", NULL, &error) != TOKMAP_ERROR_NOT_FOUND || tokenizer)
        return 1;
    if (!strstr(tokmap_error_print(&error, text, sizeof text), "no such file"))
        return 2;
    if (tokmap_tokenizer_open(&tokenizer, "bytes", NULL, &error) ||
        tokmap_tokenizer_encode(tokenizer, "Hi", 2, &encoded, &error))
        return 3;
    tokmap_tokenizer_close(tokenizer);
    return encoded.count != 2 || ids[0] != 'H' || strcmp(tokmap_tokenizer_version(), tokmap_version());
}
PROGRAM
if command -v pkg-config >/dev/null 2>&1; then
    PKG_CONFIG_PATH="$into$prefix/lib/pkgconfig"
    export PKG_CONFIG_PATH
    check "pkg-config reports the version" test \
        "$(pkg-config --modversion tokmap)" = "$("$into$prefix/bin/tokmap" --version | awk '{ print $2; exit }')"
    check "tokmap.pc contains no path of this tree" test -z "$(pkg-config --cflags --libs tokmap | grep -F "$TOP")"
    # Use the installation through a path without a space, because how pkg-config quotes spaces is not under test.
    ln -s "a root" "$TMPDIR/root"
    found=$(cd "$TMPDIR" && PKG_CONFIG_PATH=root$prefix/lib/pkgconfig \
        pkg-config --define-variable=prefix=root$prefix --cflags --libs tokmap)
    check "a program builds with the flags of pkg-config" \
        sh -c "cd '$TMPDIR' && $CC $CFLAGS program.c $found $LDFLAGS -o program_pc"
    check "and runs" env LD_LIBRARY_PATH="$into$prefix/lib" "$TMPDIR/program_pc"
    found=$(cd "$TMPDIR" && PKG_CONFIG_PATH=root$prefix/lib/pkgconfig \
        pkg-config --define-variable=prefix=root$prefix --cflags --libs tokmap-tokenize)
    check "a program with a tokenizer builds with the flags of pkg-config" \
        sh -c "cd '$TMPDIR' && $CC $CFLAGS tokenizer.c $found $LDFLAGS -o tokenizer_pc"
    check "and runs" env LD_LIBRARY_PATH="$into$prefix/lib" "$TMPDIR/tokenizer_pc"
else
    echo "ok - pkg-config # SKIP pkg-config is missing"
fi
check "a program with the shared library builds" $CC $CFLAGS -I"$into$prefix/include" "$TMPDIR/program.c" \
    -L"$into$prefix/lib" $LDFLAGS -ltokmap -o "$TMPDIR/program"
check "and runs" env LD_LIBRARY_PATH="$into$prefix/lib" "$TMPDIR/program"
# What pkg-config --static adds.
private() {
    sed -n 's/^Libs.private: //p' "$into$prefix/lib/pkgconfig/$1.pc"
}
check "a program with the static library builds" $CC $CFLAGS -I"$into$prefix/include" "$TMPDIR/program.c" $LDFLAGS \
    "$into$prefix/lib/libtokmap.a" $(private tokmap) -o "$TMPDIR/program_static"
check "and runs without the shared library" "$TMPDIR/program_static"
check "a program with the static library of tokenizers builds" $CC $CFLAGS -I"$into$prefix/include" \
    "$TMPDIR/tokenizer.c" $LDFLAGS "$into$prefix/lib/libtokmap_tokenize.a" "$into$prefix/lib/libtokmap.a" \
    $(private tokmap-tokenize) $(private tokmap) -o "$TMPDIR/tokenizer_static"
check "and runs without the shared library" "$TMPDIR/tokenizer_static"
# A program that is linked with -static cannot load libraries, and reads a sealed dataset nevertheless.
cat >"$TMPDIR/sealed.c" <<'PROGRAM'
#include <tokmap/tokmap.h>
int main(int count, char **arguments)
{
    struct tokmap_dataset *dataset;
    uint16_t ids[3];
    if (count != 2 || tokmap_dataset_open(&dataset, arguments[1], NULL, NULL))
        return 1;
    const enum tokmap_status status = tokmap_dataset_copy(dataset, 0, 3, ids, NULL);
    tokmap_dataset_close(dataset);
    return status ? 2 : ids[0] != 'a' || ids[1] != 'b' || ids[2] != 'c';
}
PROGRAM
printf abc >"$TMPDIR/abc"
if ! printf 'int main(void) { return 0; }' |
    $CC $CFLAGS -x c - -x none $LDFLAGS -static -Wl,--no-as-needed -lzstd -o "$TMPDIR/static" 2>"$TMPDIR/static.log"; then
    echo "ok - a static program # SKIP the flags, or a missing libzstd.a, allow none"
else
    check "a sealed dataset is made" \
        "$into$prefix/bin/tokmap" pack -q -t bytes --no-eod --seal -o "$TMPDIR/sealed_abc" "$TMPDIR/abc"
    check "a static program builds" $CC $CFLAGS -I"$into$prefix/include" "$TMPDIR/sealed.c" $LDFLAGS -static \
        "$into$prefix/lib/libtokmap.a" $(private tokmap) -o "$TMPDIR/sealed_static"
    check "and reads a sealed dataset" "$TMPDIR/sealed_static" "$TMPDIR/sealed_abc"
fi
if command -v readelf >/dev/null 2>&1; then
    check "the soname contains the version of the interface" sh -c \
        "readelf -d '$into$prefix/lib/libtokmap.so' | grep -q 'SONAME.*libtokmap\\.so\\.[0-9]'"
fi
check "make uninstall" run_make uninstall
check "no file is left" test -z "$(find "$into" ! -type d)"
check "and no folder of debugging information" test -z "$(find "$into" -name .debug)"

# Without DESTDIR: a folder that the dynamic linker does not search, then one that it searches, with a false ldconfig.
into=
prefix="$TMPDIR/elsewhere"
printf '#!/bin/sh\ncase $* in -vNX) echo "/lib: (from <builtin>:0)"; %s ;; *) echo ran >>"%s/ldconfig.log" ;; esac\n' \
    "cat '$TMPDIR/searched' 2>/dev/null" "$TMPDIR" >"$TMPDIR/ldconfig"
chmod +x "$TMPDIR/ldconfig"
run_make LDCONFIG="'$TMPDIR/ldconfig'" install >"$TMPDIR/install.log" 2>&1
check "outside the folders of the linker make says what to type" \
    grep -qF "export LD_LIBRARY_PATH=$prefix/lib" "$TMPDIR/install.log"
check "and does not run ldconfig" test ! -e "$TMPDIR/ldconfig.log"
echo "$prefix/lib: (from /etc/ld.so.conf:1)" >"$TMPDIR/searched"
run_make LDCONFIG="'$TMPDIR/ldconfig'" install >"$TMPDIR/install.log" 2>&1
check "in a folder of the linker make runs ldconfig" test -s "$TMPDIR/ldconfig.log"
check "and has nothing to say" test ! -s "$TMPDIR/install.log"
run_make LDCONFIG="'$TMPDIR/ldconfig'" uninstall
check "no file is left, again" test -z "$(find "$prefix" ! -type d)"

# What README says, typed as it is: install into /usr/local of this machine, build, run. It happens in a mount namespace
# with a /usr/local and an /etc of its own.
cat >"$TMPDIR/as_readme.sh" <<'SCRIPT'
set -eu
mkdir "$TMPDIR/etc" "$TMPDIR/local"
cp -a /etc/. "$TMPDIR/etc/" 2>/dev/null || true
mount --bind "$TMPDIR/etc" /etc
mount --bind "$TMPDIR/local" /usr/local
ldconfig=$(command -v ldconfig || echo /sbin/ldconfig)
$ldconfig
$MAKE --no-print-directory -s BUILD="$BUILD" CC="$CC" CXX="$CXX" CFLAGS="$CFLAGS" LDFLAGS="$LDFLAGS" CPPFLAGS="$CPPFLAGS" \
    LIBS="$LIBS" prefix=/usr/local install
cp /usr/local/share/doc/tokmap/examples/train.c "$TMPDIR/"
cd "$TMPDIR"
unset PKG_CONFIG_PATH LD_LIBRARY_PATH
$CC train.c $(pkg-config --cflags --libs tokmap) -o train
status=0
./train || status=$?
test $status = 2 # it names its arguments
SCRIPT
if ! command -v pkg-config >/dev/null 2>&1 || ! unshare -rm mount --bind "$TMPDIR" /usr/local 2>/dev/null; then
    echo "ok - as README says # SKIP no pkg-config, or no mount namespace of one's own"
else
    export TMPDIR BUILD CC CXX CFLAGS LDFLAGS CPPFLAGS LIBS MAKE
    check "after make install a program builds and runs as README says" unshare -rm sh "$TMPDIR/as_readme.sh"
fi
