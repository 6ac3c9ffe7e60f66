#!/bin/sh
# SPDX-License-Identifier: MIT
# ci: nonroot
# test_deps.sh: runs deps.sh on simulated machines: with root, with sudo, with neither. It installs nothing.
set -u
check() {
    name=$1
    shift
    if "$@"; then echo "ok - $name"; else echo "not ok - $name: $*"; fi
}
# The only folder in PATH; commands that are not in it do not exist for deps.sh.
bin=$TMPDIR/bin
mkdir -p "$bin"
for name in sh mkdir dirname tail env cat; do
    ln -sf "$(command -v $name)" "$bin/$name"
done
fake() {
    printf '#!/bin/sh\n%s\n' "$2" >"$bin/$1"
    chmod +x "$bin/$1"
}
deps() {
    rm -f "$TMPDIR/called"
    CC=cc CXX=g++ BUILD="$TMPDIR/out" PATH=$bin CALLED="$TMPDIR/called" "$bin/sh" tests/support/deps.sh \
        >"$TMPDIR/log" 2>&1 </dev/null
    status=$?
}

fake id 'echo 1000'
fake apt-get 'echo "$@" >>"$CALLED"'
deps
check "without root and sudo it exits with 2" test $status = 2
check "and prints the command to run" grep -q 'apt-get install .*gcc.*libzstd-dev' "$TMPDIR/log"
check "in a single line" test "$(wc -l <"$TMPDIR/log")" = 1
check "and does not call apt-get" test ! -e "$TMPDIR/called"

fake sudo 'exit 1'
deps
check "if sudo asks for a password it exits with 2" test $status = 2
check "and prints the command to run" grep -q 'apt-get install .*gcc' "$TMPDIR/log"

fake sudo 'if [ "$1" = -n ]; then shift; fi; exec "$@"'
fake true ''
deps
check "with sudo it installs" test $status = 0
check "all packages in one call, without an update" sh -c \
    "test \$(wc -l <'$TMPDIR/called') = 1 && grep -q 'install.*libxxhash-dev.*libcmocka-dev' '$TMPDIR/called'"

# At a terminal, a line comes before the question of sudo for a password.
if command -v script >/dev/null 2>&1 && script -qc true /dev/null >/dev/null 2>&1 </dev/null; then
    ln -sf "$(command -v script)" "$bin/script"
    fake sudo 'if [ "$1" = -n ]; then exit 1; fi; echo PASSWORD; exit 1'
    CC=cc CXX=g++ BUILD="$TMPDIR/out" CALLED="$TMPDIR/called" PATH=$bin SHELL="$bin/sh" \
        "$bin/script" -qc "sh tests/support/deps.sh" /dev/null >"$TMPDIR/log" 2>&1 </dev/null
    check "it says what sudo asks the password for" grep -q 'sudo asks for your password to run: apt-get install' "$TMPDIR/log"
else
    echo "ok - it says what sudo asks the password for # SKIP script is missing, or there are no pseudo-terminals"
fi

rm -f "$bin/sudo"
fake id 'echo 0'
deps
check "as root it installs" test $status = 0
fake apt-get 'echo "$@" >>"$CALLED"
case $* in *update*) exit 0 ;; esac
test -e "$CALLED.updated" || { : >"$CALLED.updated"; exit 1; }'
deps
check "it repeats a failed install after an update" test $status = 0
check "in that order" test \
    "$(sed 's/.*\(install\|update\).*/\1/' "$TMPDIR/called" | tr '\n' ' ')" = "install update install "
fake apt-get 'exit 100'
deps
check "without a network it exits with 2" test $status = 2
rm -f "$bin/apt-get"
deps
check "without apt-get it exits with 2" test $status = 2
check "and names the missing packages" grep -q 'libzstd-dev' "$TMPDIR/log"

# If every header and every useful command exists, it does nothing.
fake cc 'case $* in *-P*) echo found ;; esac'
fake g++ ''
for name in make python3 zstd gzip bzip2 xz lz4 pkg-config gnuplot; do
    fake $name ''
done
fake apt-get 'echo "$@" >>"$CALLED"'
fake id 'echo 1000'
deps
check "if nothing is missing it exits with 0" test $status = 0
check "and prints nothing" test ! -s "$TMPDIR/log"
check "and calls nothing" test ! -e "$TMPDIR/called"
# For building alone, nothing is installed if the required headers are there; what is missing is named.
fake cc 'case $* in *-P*) if grep -q "pcre2\|isa-l"; then :; else echo found; fi ;; esac'
ln -sf "$(command -v grep)" "$bin/grep"
rm -f "$TMPDIR/called"
CC=cc CXX=g++ BUILD="$TMPDIR/out" PATH=$bin CALLED="$TMPDIR/called" "$bin/sh" tests/support/deps.sh build \
    >"$TMPDIR/log" 2>&1 </dev/null
status=$?
check "to build, it exits with 0 without ISA-L and PCRE2" test $status = 0
check "and names them" grep -q 'going on without these packages, which it can use: libisal-dev libpcre2-dev' "$TMPDIR/log"
check "and installs nothing" test ! -e "$TMPDIR/called"
# For the tests on a GPU, cmocka is required besides.
gpu() {
    CC=cc CXX=g++ BUILD="$TMPDIR/out" PATH=$bin CALLED="$TMPDIR/called" "$bin/sh" tests/support/deps.sh gpu \
        >"$TMPDIR/log" 2>&1 </dev/null
    status=$?
}
gpu
check "for a GPU, it exits with 0 without ISA-L and PCRE2" test $status = 0
check "and names them, too" grep -q 'which it can use: libisal-dev libpcre2-dev' "$TMPDIR/log"
check "and installs nothing either" test ! -e "$TMPDIR/called"
fake cc 'case $* in *-P*) if grep -q "cmocka"; then :; else echo found; fi ;; esac'
gpu
check "for a GPU, it exits with 2 without cmocka" test $status = 2
check "and says how to install that alone" grep -q 'run as root: apt-get .* libcmocka-dev (' "$TMPDIR/log"
fake cc 'case $* in *-P*) ;; esac'
CC=cc CXX=g++ BUILD="$TMPDIR/out" PATH=$bin CALLED="$TMPDIR/called" "$bin/sh" tests/support/deps.sh build \
    >"$TMPDIR/log" 2>&1 </dev/null
status=$?
check "to build, it exits with 2 without the required headers" test $status = 2
check "and points to what needs no root" grep -q 'without root: see .github/INSTALL.md' "$TMPDIR/log"
fake cc 'case $* in *-P*) echo found ;; esac'
CPPFLAGS=-I/conda/include CC=cc CXX=g++ BUILD="$TMPDIR/out" PATH=$bin "$bin/sh" -x tests/support/deps.sh 2>&1 |
    grep -q 'cc -I/conda/include -E' && echo "ok - it looks where CPPFLAGS says" || echo "not ok - CPPFLAGS is ignored"
rm -f "$bin/zstd"
deps
check "if something useful cannot be installed it exits with 0" test $status = 0
check "and says so" grep -q 'are skipped: zstd' "$TMPDIR/log"
