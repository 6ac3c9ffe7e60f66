# SPDX-License-Identifier: MIT
# release_common.sh: functions for the checks of a release. Scripts source it.
set -u
LC_ALL=C
export LC_ALL
unset MAKEFLAGS MAKELEVEL MFLAGS

# check NAME COMMAND...: runs a command, and prints whether it succeeded.
check() {
    check_name=$1
    shift
    if "$@" >"$TMPDIR/check.log" 2>&1; then
        echo "ok - $check_name"
    else
        tail -n 40 "$TMPDIR/check.log"
        echo "not ok - $check_name: $*"
    fi
}
# fails COMMAND...: succeeds if the command fails.
fails() { ! "$@"; }
# skip REASON: ends the script as skipped.
skip() {
    echo "skipped: $*"
    exit 77
}
# need COMMAND PACKAGE: skips the script if a command is missing.
need() { command -v "$1" >/dev/null 2>&1 || skip "$1 is missing (apt-get install $2)"; }
# need_commit: skips the script outside a clone, because `make dist` packs a commit.
need_commit() {
    need git git
    git rev-parse -q --verify HEAD >/dev/null 2>&1 || skip "this folder is not a git clone, and make dist packs a commit"
    case $(git version) in *' '[01].* | *' 2.'[0-9].* | *' 2.'[12]?.* | *' 2.3'[0-7].*) skip "git is older than 2.38" ;; esac
}
version=$(sed -n 's/^#define TOKMAP_VERSION_STRING "\(.*\)"/\1/p' include/tokmap/*.h)
# dist: packs the last commit and names the tarball in $tarball.
dist() {
    $MAKE -s --no-print-directory BUILD="$BUILD_DIR" dist >"$TMPDIR/dist.log" 2>&1 || { cat "$TMPDIR/dist.log"; exit 1; }
    tarball=$BUILD_DIR/dist/tokmap-$version.tar.gz
}
# unpack FOLDER: unpacks the tarball, so that FOLDER is the tree.
unpack() { mkdir -p "$1" && tar -xzf "$tarball" -C "$1" --strip-components=1; }
jobs=-j$(nproc 2>/dev/null || echo 2)
