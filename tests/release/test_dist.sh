#!/bin/sh
# SPDX-License-Identifier: MIT
# test_dist.sh: `make dist` makes the same bytes in another clone, at another time, with another umask. The tarball has
# all tracked files, and what it contains passes `reuse lint` where that is installed.
. tests/release/release_common.sh
need_commit
dist
cp "$tarball" "$TMPDIR/first.tar.gz"
check "sha256sum accepts the tarball" sh -c "cd '$BUILD_DIR/dist' && sha256sum -c 'tokmap-$version.tar.gz.sha256'"
git clone -q --no-local . "$TMPDIR/another clone" 2>/dev/null || git clone -q . "$TMPDIR/another clone"
sleep 1
check "another clone makes a tarball" sh -c "umask 077 && cd '$TMPDIR/another clone' && TZ=Asia/Tokyo $MAKE -s BUILD=out dist"
check "of the same bytes" cmp "$TMPDIR/first.tar.gz" "$TMPDIR/another clone/out/dist/tokmap-$version.tar.gz"
tar -tzf "$tarball" | grep -v '/$' | sed "s|^tokmap-$version/||" | grep -vx -e LICENSES/MIT.txt -e .github/CHANGELOG.md | sort >"$TMPDIR/packed"
git -c core.quotePath=off ls-tree -r --name-only HEAD | sort >"$TMPDIR/tracked"
check "it has every tracked file and no other" cmp "$TMPDIR/packed" "$TMPDIR/tracked"
check "CHANGELOG.md has an entry for each file of the changelog" test \
    "$(tar -xzOf "$tarball" "tokmap-$version/.github/CHANGELOG.md" | grep -c '^- ')" = \
    "$(grep -c '^\.github/changelog/.*-' "$TMPDIR/tracked")"
if command -v reuse >/dev/null 2>&1; then
    unpack "$TMPDIR/tree"
    check "reuse lint accepts the tarball" reuse --root "$TMPDIR/tree" lint
    rm "$TMPDIR/tree/.reuse/dep5"
    check "and without .reuse/dep5 it misses the licenses of data" fails reuse --root "$TMPDIR/tree" lint
else
    echo "ok - reuse lint # SKIP reuse is missing (apt-get install reuse)"
fi
