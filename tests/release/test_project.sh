#!/bin/sh
# SPDX-License-Identifier: MIT
# test_project.sh: a project of a user's, outside this tree, finds the installed libraries with find_package() of CMake
# and with pkg-config, links them as shared libraries and as archives, and runs.
. tests/release/release_common.sh
[ -z "${SANITIZE:-}" ] || skip "a sanitizer's build is not installed"
prefix=$TMPDIR/prefix
check "make install" $MAKE --no-print-directory BUILD="$BUILD" CC="$CC" CXX="$CXX" CFLAGS="$CFLAGS" LDFLAGS="$LDFLAGS" \
    CPPFLAGS="$CPPFLAGS" LIBS="$LIBS" prefix="$prefix" LDCONFIG=false install
project=$TMPDIR/project
mkdir "$project"
cat >"$project/program.c" <<'C'
#include <string.h>
#include <tokmap/tokenizer.h>
#include <tokmap/tokmap.h>

int main(void)
{
    struct tokmap_tokenizer *tokenizer;
    struct tokmap_error error = {0};
    uint32_t ids[8];
    struct tokmap_encoded encoded = TOKMAP_ENCODED_INIT;
    encoded.ids = ids;
    encoded.room = 8;
    if (tokmap_tokenizer_open(&tokenizer, "bytes", NULL, &error) ||
        tokmap_tokenizer_encode(tokenizer, "Hi", 2, &encoded, &error))
        return 1;
    tokmap_tokenizer_close(tokenizer);
    return encoded.count != 2 || strcmp(tokmap_version(), TOKMAP_VERSION_STRING) != 0;
}
C
cat >"$project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.13)
project(program C)
find_package(tokmap ${ASKED} REQUIRED)
add_executable(shared program.c)
target_link_libraries(shared PRIVATE tokmap::tokenize tokmap::tokmap)
add_executable(static program.c)
target_link_libraries(static PRIVATE tokmap::tokenize_static)
CMAKE
cat >"$project/Makefile" <<'MAKEFILE'
shared: program.c
	$(CC) $(CFLAGS) $< $$(pkg-config --cflags --libs tokmap-tokenize) $(LDFLAGS) -o $@
static: program.c
	$(CC) $(CFLAGS) $$(pkg-config --cflags tokmap-tokenize) $< $(LDFLAGS) -o $@ -L$(PREFIX)/lib -Wl,-Bstatic \
	  -ltokmap_tokenize -ltokmap -Wl,-Bdynamic $$(pkg-config --static --libs-only-l tokmap-tokenize | \
	  sed 's/-ltokmap[_a-z]*//g') -pthread
MAKEFILE
# runs FOLDER: runs both programs; the one with shared libraries must need the installed ones.
runs() {
    LD_LIBRARY_PATH=$prefix/lib "$1/shared" && "$1/static" &&
        readelf -d "$1/shared" | grep -q 'NEEDED.*libtokmap_tokenize\.so\.' &&
        ! readelf -d "$1/static" | grep -q 'NEEDED.*libtokmap'
}
if command -v cmake >/dev/null 2>&1; then
    configure() {
        cmake -S "$project" -B "$1" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="${CC%% *}" \
            -DCMAKE_C_FLAGS="$CFLAGS" -DCMAKE_EXE_LINKER_FLAGS="$LDFLAGS" -DASKED="$2"
    }
    check "CMake finds this version" configure "$TMPDIR/cmake" "$version"
    check "and builds" cmake --build "$TMPDIR/cmake"
    check "programs that run" runs "$TMPDIR/cmake"
    check "CMake finds any version of 0" configure "$TMPDIR/older" "${version%%.*}.1"
    check "and accepts no version after this one" fails configure "$TMPDIR/newer" "${version%%.*}.99"
    check "and none of another interface" fails configure "$TMPDIR/other" "$((${version%%.*} + 1)).0"
else
    echo "ok - find_package # SKIP cmake is missing (apt-get install cmake)"
fi
if command -v pkg-config >/dev/null 2>&1; then
    check "a Makefile builds with pkg-config" env PKG_CONFIG_PATH="$prefix/lib/pkgconfig" $MAKE -C "$project" CC="$CC" \
        CFLAGS="$CFLAGS" LDFLAGS="$LDFLAGS" PREFIX="$prefix" shared static
    check "programs that run" runs "$project"
else
    echo "ok - pkg-config # SKIP pkg-config is missing (apt-get install pkg-config)"
fi
check "make uninstall" $MAKE --no-print-directory BUILD="$BUILD" CC="$CC" CXX="$CXX" CFLAGS="$CFLAGS" LDFLAGS="$LDFLAGS" \
    CPPFLAGS="$CPPFLAGS" LIBS="$LIBS" prefix="$prefix" LDCONFIG=false uninstall
check "leaves no file" test -z "$(find "$prefix" ! -type d)"
