#!/bin/sh
# SPDX-License-Identifier: MIT
# test_run_tests.sh: run_tests.sh on a small tree of made-up tests: what it counts, what it prints, and what TESTS
# selects.
set -u
check() {
    name=$1
    shift
    if "$@"; then echo "ok - $name"; else echo "not ok - $name: $*"; fi
}
tree=$TMPDIR/tree
mkdir -p "$tree/tests/unit/ring" "$tree/tests/unit/text" "$tree/tests/cli" "$tree/tests/fault" "$tree/tests/support" \
    "$tree/build/tests" || exit 1
cp tests/support/run_tests.sh "$tree/tests/support/"
# unit ROOM NAME LINE...: a unit test that consists of these lines of shell.
unit() {
    : >"$tree/tests/unit/$1/$2.c"
    unit_program=$tree/build/tests/$2
    shift 2
    printf '#!/bin/sh\n' >"$unit_program"
    printf '%s\n' "$@" >>"$unit_program"
    chmod +x "$unit_program"
}
unit ring test_good 'echo 1..2' 'echo "ok 1 - a"' 'echo "ok 2 - b # SKIP no GPU"'
unit ring test_bad 'echo 1..2' 'echo "ok 1 - a"' 'echo "not ok 2 - b"' 'exit 1'
unit text test_short 'echo 1..3' 'echo "ok 1 - a"'
unit text test_crash 'echo "ok 1 - a"' 'exit 134'
unit text test_skipped 'echo "there is no compiler"' 'exit 77'
: >"$tree/tests/unit/text/test_unbuilt.c"
echo 'echo "tests: $*"; echo "4 passed, 0 failed, 0 skipped"' >"$tree/tests/cli/run.sh"
echo 'exit 0' >"$tree/tests/fault/test_plain.sh"
run() {
    (cd "$tree" && env -u TEST_SECONDS BUILD=build TESTS="$1" sh tests/support/run_tests.sh) >"$TMPDIR/out" 2>&1
    status=$?
}
# says LINE: whether the output has exactly this line.
says() { grep -qxF -e "$1" "$TMPDIR/out"; }

run ''
check "a failure makes the exit status 1" test $status = 1
check "it counts TAP lines, totals, exit statuses, missing lines and crashes" says '9 passed, 4 failed, 2 skipped'
check "it names the jobs that failed, with their rooms" says 'failed: ring/test_bad text/test_crash text/test_short'
check "it prints the reason of a skip on its line" says 'skipped ring/test_good: b # SKIP no GPU'
check "it prints the reason of a job that exits with 77" says 'skipped text/test_skipped: there is no compiler'
check "it prints the output of a failed job" says '    not ok 2 - b'
check "it leaves out a unit test that has not been built" sh -c "! grep -q test_unbuilt '$TMPDIR/out'"

run 'test_good fault/*'
check "TESTS selects unit tests by name and scripts by folder" says '2 passed, 0 failed, 1 skipped'
check "and without a failure the exit status is 0" test $status = 0
run 'ring/*'
check "TESTS selects a room" says '2 passed, 1 failed, 1 skipped'
run 'test_*'
check "a name without a folder selects no scripts" says '4 passed, 4 failed, 2 skipped'
run 'cli/pack-* cli/show-row'
check "TESTS selects single tests of commands" grep -qxF 'tests: pack-* show-row' "$tree/build/logs/cli.run.sh.log"
run 'cli/*'
check "and all tests of commands" grep -qxF 'tests: ' "$tree/build/logs/cli.run.sh.log"
run 'nothing'
check "TESTS that match nothing are an error" test $status = 2
