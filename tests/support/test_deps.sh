#!/bin/sh
# test_deps.sh: deps.sh on machines that are made up: root, sudo, neither; nothing is installed here.
set -u
check() {
    name=$1
    shift
    if "$@"; then echo "ok - $name"; else echo "not ok - $name: $*"; fi
}
# A folder of commands that is all of PATH: what is not in it is not there.
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
check "neither root nor sudo: stops with 2" test $status = 2
check "and prints the one line to run" grep -q 'apt-get install .*gcc.*libzstd-dev' "$TMPDIR/log"
check "one line, no more" test "$(wc -l <"$TMPDIR/log")" = 1
check "and calls no apt-get" test ! -e "$TMPDIR/called"

fake sudo 'exit 1'
deps
check "sudo that asks for a password: stops with 2" test $status = 2
check "and prints the one line to run" grep -q 'apt-get install .*gcc' "$TMPDIR/log"

fake sudo 'if [ "$1" = -n ]; then shift; fi; exec "$@"'
fake true ''
deps
check "sudo: installs" test $status = 0
check "the packages, once, without an update" sh -c \
    "test \$(wc -l <'$TMPDIR/called') = 1 && grep -q 'install.*libxxhash-dev.*libcmocka-dev' '$TMPDIR/called'"

rm -f "$bin/sudo"
fake id 'echo 0'
deps
check "root: installs" test $status = 0
fake apt-get 'echo "$@" >>"$CALLED"
case $* in *update*) exit 0 ;; esac
test -e "$CALLED.updated" || { : >"$CALLED.updated"; exit 1; }'
deps
check "an install that fails is tried again after an update" test $status = 0
check "in that order" test \
    "$(sed 's/.*\(install\|update\).*/\1/' "$TMPDIR/called" | tr '\n' ' ')" = "install update install "
fake apt-get 'exit 100'
deps
check "no network: stops with 2" test $status = 2
rm -f "$bin/apt-get"
deps
check "no apt-get: stops with 2" test $status = 2
check "and says what is missing" grep -q 'libzstd-dev' "$TMPDIR/log"

# A compiler for which every header is there, and every useful command: nothing is done.
fake cc 'case $* in *-P*) echo found ;; esac'
fake g++ ''
for name in make python3 zstd gzip pkg-config; do
    fake $name ''
done
fake apt-get 'echo "$@" >>"$CALLED"'
fake id 'echo 1000'
deps
check "all is there: does nothing" test $status = 0
check "and says nothing" test ! -s "$TMPDIR/log"
check "and calls nothing" test ! -e "$TMPDIR/called"
rm -f "$bin/zstd"
deps
check "something useful is missing and cannot be installed: goes on" test $status = 0
check "and says so" grep -q 'skipped: zstd' "$TMPDIR/log"
