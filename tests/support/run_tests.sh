#!/bin/sh
# run_tests.sh: runs the tests that `make harness` has built, and the scripts beside them; all of them, or with TESTS
# those whose name matches one of its shell patterns ("test_ring* cli/*").
#
# A job is a program build/tests/test_* or a script tests/*/run.sh, tests/*/test_*.sh. Each runs in the project's
# top folder with a TMPDIR of its own below build/, a time limit and a log in build/logs/. What it prints decides:
#   - lines "ok ...", "not ok ...", "... # SKIP reason" (TAP; cmocka's too) count one test each;
#   - else a last line "N passed, N failed, N skipped" counts as it says, the skips being named above it;
#   - else it is one test: exit 0 passed, 77 skipped (the last line being the reason), anything else failed.
# An exit status that none of its lines explains is one failure more. Ends with "N passed, N failed, N skipped".
#
# From the Makefile: BUILD, CC, CXX, flags. For the tests: TOP, BUILD_DIR, TOKMAP, TOKMAP_BENCH, TOKMAP_BIN and TMPDIR,
# all absolute.
set -u
LC_ALL=C
export LC_ALL
TOP=$(pwd)
BUILD=${BUILD:-build}
case $BUILD in
/*) BUILD_DIR=$BUILD ;;
*) BUILD_DIR=$TOP/$BUILD ;;
esac
TOKMAP=$BUILD_DIR/bin/tokmap
TOKMAP_BENCH=$BUILD_DIR/bin/tokmap-bench
PYTHONDONTWRITEBYTECODE=1
TOKMAP_BIN=$BUILD_DIR/bin
export TOP BUILD BUILD_DIR TOKMAP TOKMAP_BENCH TOKMAP_BIN PYTHONDONTWRITEBYTECODE
logs=$BUILD_DIR/logs
limit=${TEST_SECONDS:-900}
TIMEOUT=${TIMEOUT:-240} # of one test of tests/cli: slow machines and sanitizers are no failures
# The thread sanitizer lets every program with a second thread rest for a second before its end: a twentieth will do.
TSAN_OPTIONS=${TSAN_OPTIONS:-atexit_sleep_ms=50}
export TIMEOUT TSAN_OPTIONS

# ---- one job: run_tests.sh --job NAME ----

# Counts a log: prints "passed failed skipped".
count() {
    awk -v status="$1" '
        /^ok / || /^not ok / {
            if (toupper($0) ~ /# *SKIP/) s++; else if ($1 == "ok") p++; else f++
            tap = 1
        }
        /^1\.\.[0-9]+$/ { planned += substr($0, 4) }
        /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { tp = $1; tf = $3; ts = $5; total = 1 }
        END {
            if (total) { p = tp; f = tf; s = ts }
            else if (!tap) { if (status == 0) p = 1; else if (status == 77) s = 1; else f = 1 }
            else if (planned > p + f + s) f += planned - p - f - s
            if (status != 0 && status != 77 && f == 0) f = 1
            print p + 0, f + 0, s + 0
        }' "$2"
}

run_job() {
    name=$1
    log=$logs/$(echo "$name" | tr / .).log
    TMPDIR=$BUILD_DIR/tmp/$(echo "$name" | tr / .)
    export TMPDIR
    rm -rf "$TMPDIR"
    mkdir -p "$TMPDIR"
    started=$(date +%s)
    case $name in
    *.sh) timeout -k 10 "$limit" sh "tests/$name" >"$log" 2>&1 </dev/null ;;
    *) CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 10 "$limit" "$BUILD_DIR/tests/$name" >"$log" 2>&1 </dev/null ;;
    esac
    status=$?
    [ $status != 124 ] || echo "not ok - $name: over its time of $limit s" >>"$log"
    set -- $(count $status "$log")
    echo "$1 $2 $3 $name" >"${log%.log}.count"
    seconds=$(($(date +%s) - started))
    if [ "$2" != 0 ]; then
        echo "FAILED  $name ($1 passed, $2 failed, $3 skipped; exit $status; $seconds s)"
        tail -n 60 "$log" | sed 's/^/    /'
    else
        echo "passed  $name ($1$([ "$3" = 0 ] || echo ", $3 skipped"); $seconds s)"
        rm -rf "$TMPDIR"
    fi
}

if [ "${1-}" = --job ]; then
    run_job "$2"
    exit 0
fi

# ---- all of them ----

rm -rf "$logs" "$BUILD_DIR/tmp"
mkdir -p "$logs" "$BUILD_DIR/tmp"

# Programs that lie in build/tests but have lost their source are left out.
list_all() {
    for script in tests/*/run.sh tests/*/test_*.sh; do
        [ ! -f "$script" ] || echo "${script#tests/}"
    done
    for source in tests/unit/*/test_*.c; do
        program=$(basename "$source" .c)
        [ ! -x "$BUILD_DIR/tests/$program" ] || echo "$program"
    done
}
jobs=$logs/jobs
list_all | while read -r name; do
    set -f
    for pattern in ${TESTS:-*}; do
        case $name in $pattern) echo "$name" && break ;; esac
    done
    set +f
done >"$jobs"
if [ ! -s "$jobs" ]; then
    echo "no test here${TESTS:+ is named $TESTS}" >&2
    exit 2
fi

started=$(date +%s)
tr '\n' '\0' <"$jobs" | xargs -0 -n 1 -P "$(nproc 2>/dev/null || echo 2)" sh "$0" --job

# Each skip with its reason: the one on its line, else the line before it, else the log's last line (exit status 77).
while read -r name; do
    log=$logs/$(echo "$name" | tr / .)
    [ -f "$log.count" ] || echo "0 1 0 $name" >"$log.count"
    read -r _ _ skipped _ <"$log.count"
    [ "$skipped" = 0 ] || awk -v name="$name" '
        toupper($0) ~ /^(NOT )?OK .*# *SKIP/ {
            line = $0
            sub(/^(not )?ok *[0-9]* *(- )?/, "", line)
            if (line ~ /^# *SKIP [a-zA-Z0-9_]*$/ && before !~ /^(ok|not ok|1\.\.|$)/) line = line ": " before
            print "skipped " name ": " line
            n++
        }
        /^skipped:? / { print "skipped " name ": " substr($0, index($0, " ") + 1); n++ }
        { before = $0 }
        END { if (!n) print "skipped " name ": " before }' "$log.log"
done <"$jobs"

cat "$logs"/*.count | awk -v seconds=$(($(date +%s) - started)) '
    { p += $1; f += $2; s += $3; if ($2) failed = failed " " $4 }
    END {
        if (failed) print "failed:" failed
        print "in " seconds " s"
        print p " passed, " f " failed, " s " skipped"
        exit f > 0
    }'
