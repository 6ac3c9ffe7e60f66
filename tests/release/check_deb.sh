#!/bin/sh
# SPDX-License-Identifier: MIT
# check_deb.sh: dpkg-buildpackage makes the packages of Debian from the tarball of `make dist`, and runs `make demo`
# with what it has built. Where lintian is installed, it finds no error. The packages stay in build/release/deb.
. tests/release/release_common.sh
need dpkg-buildpackage dpkg-dev
need dh debhelper
need dh_python3 dh-python
need_commit
dist
folder=$BUILD_DIR/release/deb
source=$folder/tokmap-$version
rm -rf "$folder" && mkdir -p "$folder" || exit 1
cp "$tarball" "$folder/tokmap_$version.orig.tar.gz"
unpack "$source"
cp -r "$source/.github/packaging/debian" "$source/debian"
unset CC CXX CFLAGS CPPFLAGS LDFLAGS LIBS BUILD PYTHON SANITIZE
missing=$(cd "$source" && dpkg-checkbuilddeps 2>&1) || skip "packages are missing: ${missing##*: }"
check "the changelog of the package has the version" test \
    "$(sed -n '1s/.*(\(.*\)-[^-]*).*/\1/p' "$source/debian/changelog")" = "$version"
(cd "$source" && DEB_BUILD_OPTIONS="parallel=${jobs#-j}" dpkg-buildpackage -us -uc) >"$folder/build.log" 2>&1
check "dpkg-buildpackage" test $? = 0
check "the demo ran with what was built" grep -q '^All [0-9]* checks succeeded' "$folder/build.log"
for name in libtokmap0 libtokmap-dev tokmap tokmap-bench python3-tokmap; do
    check "$name is made" test -n "$(ls "$folder/${name}_$version"-*.deb)"
done
check "the commands depend on what they load when they first use it" sh -c \
    "dpkg-deb -f '$folder'/tokmap_*.deb Depends | grep -q libzstd1 &&
        dpkg-deb -f '$folder'/tokmap_*.deb Depends | grep -q libisal2"
if command -v lintian >/dev/null 2>&1; then
    lintian --allow-root --fail-on error "$folder"/*.changes >"$folder/lintian.log" 2>&1
    check "lintian finds no error" test $? = 0
    sed 's/^/# lintian: /' "$folder/lintian.log"
else
    echo "ok - lintian # SKIP lintian is missing (apt-get install lintian)"
fi
