#!/bin/sh
# SPDX-License-Identifier: MIT
# run_tests.sh: runs the tests that `make harness` has built, and the scripts in tests/. `make test` and `make test-run`
# call it.
#
# A job is a unit test (a program, named ROOM/test_NAME after its source tests/unit/ROOM/test_NAME.c) or a script
# (FOLDER/run.sh or FOLDER/test_NAME.sh below tests/). Without TESTS all jobs run. TESTS is a list of shell patterns:
#
#   TESTS='test_ring'            unit tests by name
#   TESTS='loader/* fault/*'     all jobs of a room, or of a folder
#   TESTS='cli/pack-*'           tests of commands: tests/cli/pack-*.sh
#
# Each job runs in the project's top folder with its own TMPDIR below build/, a time limit, and a log in build/logs/.
# The log decides about the result:
#   - Each TAP line "ok ...", "not ok ...", or "... # SKIP reason" counts as one test. cmocka prints such lines, too.
#   - Otherwise a last line "N passed, N failed, N skipped" counts as it says; lines above it name the skipped tests.
#   - Otherwise the job is one test: exit status 0 is passed, 77 is skipped (the last line is the reason), and anything
#     else is failed.
# An exit status that no line explains counts as one more failure. The last line of the output is "N passed, N failed, N
# skipped".
#
# TEST_SCRIPTS names other scripts than these. `make release-check` has scripts that take too long for every day.
#
# Environment: BUILD, CC, CXX and flags from the Makefile; TEST_SECONDS, the time limit of a job (900); TEST_JOBS, the
# number of jobs that run at a time (one per processor). Jobs also get TOP, BUILD_DIR, TOKMAP, TOKMAP_BENCH, TOKMAP_BIN
# and TMPDIR, which are absolute paths.
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
TIMEOUT=${TIMEOUT:-240} # of one test in tests/cli; slow machines and sanitizers must not cause failures
# The thread sanitizer delays the end of every program with a second thread by a second. A twentieth of that is enough.
TSAN_OPTIONS=${TSAN_OPTIONS:-atexit_sleep_ms=50}
export TIMEOUT TSAN_OPTIONS

# ---- one job: run_tests.sh --job NAME ----

# count STATUS LOG: prints the numbers of passed, failed, and skipped tests.
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
    cli/run.sh) # -f: the tests' patterns must not be expanded here
        set -f
        timeout -k 10 "$limit" sh tests/cli/run.sh ${CLI_TESTS:-} >"$log" 2>&1 </dev/null ;;
    *.sh) timeout -k 10 "$limit" sh "tests/$name" >"$log" 2>&1 </dev/null ;;
    *) CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 10 "$limit" "$BUILD_DIR/tests/${name##*/}" >"$log" 2>&1 </dev/null ;;
    esac
    status=$?
    set +f
    [ $status != 124 ] || echo "not ok - $name: ended after its time limit of $limit s" >>"$log"
    set -- $(count $status "$log")
    echo "$1 $2 $3 $name" >"${log%.log}.count"
    times >"${log%.log}.times" # in a pipe, times would print those of another shell
    used=$(tr ms '  ' <"${log%.log}.times" | awk 'END { printf "%d", 60 * ($1 + $3) + $2 + $4 }')
    rm "${log%.log}.times"
    seconds="$(($(date +%s) - started)) s, $used s of processor time"
    if [ "$2" != 0 ]; then
        echo "FAILED  $name ($1 passed, $2 failed, $3 skipped; exit $status; $seconds)"
        # The end of a long log does not show its failures, so they are printed first, each with 30 lines.
        [ "$(wc -l <"$log")" -le 60 ] || awk '
            /^not ok / { for (i = n > 30 ? n - 30 : 0; i < n; i++) print line[i]; print; failed = 1 }
            /^(not )?ok / { n = 0; next }
            { line[n++] = $0 }
            END { if (failed) print "..." }' "$log" | head -n 300 | sed 's/^/    /'
        tail -n 60 "$log" | sed 's/^/    /'
    else
        echo "passed  $name ($1$([ "$3" = 0 ] || echo ", $3 skipped"); $seconds)"
        rm -rf "$TMPDIR"
    fi
}

if [ "${1-}" = --job ]; then
    run_job "$2"
    exit 0
fi

# ---- all jobs ----

rm -rf "$logs" "$BUILD_DIR/tmp"
mkdir -p "$logs" "$BUILD_DIR/tmp"

# Every script, then every unit test that has been built, by room. Scripts come first because the longest jobs are among
# them. Programs in build/tests whose source is gone are left out.
list_all() {
    for script in ${TEST_SCRIPTS:-tests/*/run.sh tests/*/test_*.sh}; do
        [ ! -f "$script" ] || echo "${script#tests/}"
    done
    for source in tests/unit/*/test_*.c; do
        name=${source#tests/unit/}
        name=${name%.c}
        [ ! -x "$BUILD_DIR/tests/${name##*/}" ] || echo "$name"
    done
}

# chosen NAME: whether a pattern of TESTS matches the job. A unit test is also known by its name without the room.
chosen() {
    for pattern in ${TESTS:-*}; do
        case $1 in $pattern) return 0 ;; esac
        case $1 in
        *.sh) ;;
        *) case ${1##*/} in $pattern) return 0 ;; esac ;;
        esac
    done
    return 1
}

jobs=$logs/jobs
list_all >"$logs/all"
set -f # patterns stay patterns
# Single tests of commands are run by the job cli/run.sh, which gets their patterns: "pack-*" for cli/pack-*.
CLI_TESTS=
if ! chosen cli/run.sh; then
    for pattern in ${TESTS:-}; do
        case $pattern in cli/?*) CLI_TESTS="$CLI_TESTS ${pattern#cli/}" ;; esac
    done
fi
export CLI_TESTS
while read -r name; do
    if chosen "$name" || { [ "$name" = cli/run.sh ] && [ -n "$CLI_TESTS" ]; }; then
        echo "$name"
    fi
done <"$logs/all" >"$jobs"
set +f
if [ ! -s "$jobs" ]; then
    echo "no test matches TESTS='${TESTS:-}'" >&2
    exit 2
fi

# What other tests run must stay what it was. A file that is linked again has another inode or time.
built() {
    find "$BUILD_DIR/bin" "$BUILD_DIR/lib" "$BUILD_DIR/tests" -maxdepth 1 -type f -printf '%p %i %T@\n' 2>/dev/null | sort
}
built >"$logs/built"

started=$(date +%s)
tr '\n' '\0' <"$jobs" | xargs -0 -n 1 -P "${TEST_JOBS:-$(nproc 2>/dev/null || echo 2)}" sh "$0" --job

# Prints each skipped test with its reason: the text on its line, or the line before it, or the last line of the log if
# the job ended with exit status 77.
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

# Names each failure with the lines that explain it, where the end of a long output still shows it.
while read -r name; do
    log=$logs/$(echo "$name" | tr / .)
    read -r _ failures _ _ <"$log.count"
    [ "$failures" = 0 ] || awk -v name="$name" '
        /^(not ok|FAILED) / && toupper($0) !~ /# *SKIP/ { print "failure in " name ": " $0; follow = /^FAILED/ ? 25 : 0
            for (i = n > 12 ? n - 12 : 0; !follow && i < n; i++) print "    " line[i]; n = 0; next }
        follow > 0 { print "    " $0; follow-- }
        /^(not )?ok / { n = 0; next }
        { line[n++] = $0 }' "$log.log" 2>/dev/null | head -n 80
done <"$jobs"

built >"$logs/built.after"
changed=$(comm -23 "$logs/built" "$logs/built.after" | sed 's/ [^ ]* [^ ]*$//')
if [ -n "$changed" ]; then
    echo "0 1 0 programs-and-libraries" >"$logs/built.count"
    echo "failure: a test has linked these files again, which other tests run at the same time:" $changed
fi

cat "$logs"/*.count | awk -v seconds=$(($(date +%s) - started)) '
    { p += $1; f += $2; s += $3; if ($2) failed = failed " " $4 }
    END {
        if (failed) print "failed:" failed
        print "in " seconds " s"
        print p " passed, " f " failed, " s " skipped"
        exit f > 0
    }'
