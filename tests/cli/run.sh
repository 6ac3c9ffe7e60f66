#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the tests of the commands: tests/cli/run.sh [NAME | PATTERN]...   (default: all)
#
# A test is tests/cli/NAME.sh. It runs under `sh -eu` in its own folder, which is empty at first, is removed afterwards,
# and has a space in its path. tokmap and tokmap-bench are on PATH, and standard input is empty. These files may be
# beside it:
#   NAME.out, NAME.err            the expected standard output and error, byte for byte
#   NAME.out.glob, NAME.err.glob  or a shell pattern for each line; the line "..." matches any number of lines
#   NAME.exit                     the exit status; without this file, 0
# Output without such a file is not compared. Exit status 77 is a skip; its reason is the last line of output.
# Tests read functions from helpers.sh: . "$TOKMAP_CLI/helpers.sh"
#
# Environment variables:
#   TOKMAP_BIN  folder of the commands (default: bin in $BUILD_DIR, or in build of this tree)
#   UPDATE=1    rewrite NAME.out and NAME.err if they exist
#   TIMEOUT     time limit of a test in seconds (default: 180)
#   JOBS        number of tests that run at a time (default: one per processor)
#   KEEP=1      keep the folders of the tests
#   V=1         print the names of the tests that pass, too, each with its processor time
set -u
LC_ALL=C
export LC_ALL
unset COLUMNS CDPATH

TOKMAP_CLI=$(cd "$(dirname "$0")" && pwd) || exit 1
TOKMAP_TREE=$(cd "$TOKMAP_CLI/../.." && pwd) || exit 1
TOKMAP_BIN=$(cd "${TOKMAP_BIN:-${BUILD_DIR:-$TOKMAP_TREE/build}/bin}" && pwd) || exit 1
[ -x "$TOKMAP_BIN/tokmap" ] || { echo "run.sh: no tokmap in $TOKMAP_BIN: build it, or set TOKMAP_BIN" >&2; exit 1; }
PATH=$TOKMAP_BIN:$PATH
export TOKMAP_CLI TOKMAP_TREE TOKMAP_BIN PATH

if [ "${1-}" != --test ]; then
    work=$(mktemp -d "${TMPDIR:-/tmp}/tokmap-cli.XXXXXX") || exit 1
    work=$work/'a case'
    mkdir "$work" || exit 1
    export work
fi
clean()
{
    [ "${KEEP:-}" ] && { echo "kept: $work"; return; }
    chmod -R u+rwX "${work%/*}" 2>/dev/null
    rm -rf "${work%/*}"
}

limit=
if command -v timeout >/dev/null 2>&1; then
    limit="timeout -k 5 ${TIMEOUT:-180}"
fi

# Compares the lines of $2 with the patterns of $1. Each "..." ends at the first line that matches the pattern after it.
globs_match()
{
    awk -v patterns="$1" '
    function match_line(pattern, line) {
        # Turns a shell pattern with * and ? into a regular expression.
        gsub(/[][\\.^$+(){}|]/, "\\\\&", pattern)
        gsub(/\*/, ".*", pattern)
        gsub(/\?/, ".", pattern)
        return line ~ ("^" pattern "$")
    }
    BEGIN { while ((getline line < patterns) > 0) wanted[++count] = line }
    { got[NR] = $0 }
    END {
        p = 1; g = 1; star = 0
        while (g <= NR) {
            if (p <= count && wanted[p] == "...") { star = p++; mark = g }
            else if (p <= count && match_line(wanted[p], got[g])) { p++; g++ }
            else if (star) { p = star + 1; g = ++mark }
            else { print "line " g " is not as line " p " of the patterns: " got[g]; exit 1 }
        }
        while (p <= count && wanted[p] == "...") p++
        if (p <= count) { print "missing: " wanted[p]; exit 1 }
    }' "$2"
}

# check NAME out|err: compares one output and prints the differences.
check()
{
    if [ -f "$TOKMAP_CLI/$1.$2" ]; then
        cmp -s "$TOKMAP_CLI/$1.$2" "$work/$1.$2" && return 0
        if [ "${UPDATE:-}" ]; then
            cp "$work/$1.$2" "$TOKMAP_CLI/$1.$2"
            echo "updated $1.$2"
            return 0
        fi
        echo "-- std$2 differs (expected -, got +):"
        diff -u "$TOKMAP_CLI/$1.$2" "$work/$1.$2" | sed 1,2d | head -60
        return 1
    elif [ -f "$TOKMAP_CLI/$1.$2.glob" ]; then
        differs=$(globs_match "$TOKMAP_CLI/$1.$2.glob" "$work/$1.$2") && return 0
        echo "-- std$2 is not as $1.$2.glob: $differs"
        return 1
    fi
}

# Says that a test has passed, with the processor time of this shell's children.
say_time()
{
    times >"$work/$name.times" # in a pipe, times would print those of another shell
    tr ms '  ' <"$work/$name.times" | awk -v name="$name" '
        END { printf "passed %s (%.1f s of processor time)\n", name, 60 * ($1 + $3) + $2 + $4 }'
}

# Runs one test: writes its verdict to NAME.verdict and its messages to standard output.
run_test()
{
    name=$1
    report=$work/$name.report
    mkdir "$work/$name" || exit 1
    (cd "$work/$name" && TMPDIR=$work/$name && export TMPDIR && unset work &&
        exec $limit sh -eu "$TOKMAP_CLI/$name.sh") </dev/null >"$work/$name.out" 2>"$work/$name.err"
    status=$?
    wanted=0
    [ -f "$TOKMAP_CLI/$name.exit" ] && wanted=$(cat "$TOKMAP_CLI/$name.exit")
    verdict=passed
    if [ $status -eq 77 ] && [ "$wanted" -ne 77 ]; then
        verdict=skipped
        reason=$(tail -n 1 "$work/$name.out") # the shell may have written about a killed process to the other file
        [ -n "$reason" ] || reason=$(tail -n 1 "$work/$name.err")
        echo "skipped $name: ${reason:-no reason given}"
    else
        : >"$report"
        if [ "$status" -ne "$wanted" ]; then
            verdict=failed
            case $status in
            124 | 137) [ "$limit" ] && echo "-- ended after ${TIMEOUT:-180} seconds" ;;
            esac
            echo "-- exit status $status, expected $wanted; its output ends:"
            tail -n 20 "$work/$name.out" "$work/$name.err"
        fi >>"$report"
        check "$name" out >>"$report" || verdict=failed
        check "$name" err >>"$report" || verdict=failed
        if [ $verdict = failed ]; then
            echo "FAILED $name"
            cat "$report"
        else
            [ -z "${V:-}" ] || say_time
            grep '^updated ' "$report"
        fi
    fi
    echo $verdict >"$work/$name.verdict"
    [ "${KEEP:-}" ] || { chmod -R u+rwX "$work/$name"; rm -rf "${work:?}/$name"; }
}

if [ "${1-}" = --test ]; then
    # Printed in one write, because other tests run at the same time.
    said=$(run_test "$2")
    [ -z "$said" ] || printf '%s\n' "$said"
    exit 0
fi
trap 'clean; exit 130' INT TERM HUP

[ $# -gt 0 ] || set -- '*'
for script in "$TOKMAP_CLI"/*.sh; do
    name=${script##*/}
    name=${name%.sh}
    case $name in run | helpers) continue ;; esac
    for pattern; do
        # shellcheck disable=SC2254 # the pattern is meant as one
        case $name in $pattern) echo "$name" && break ;; esac
    done
done >"$work/names"
[ -s "$work/names" ] || { echo "run.sh: no test is called $*" >&2; clean; exit 1; }
xargs -n 1 -P "${JOBS:-$(nproc 2>/dev/null || echo 2)}" sh "$TOKMAP_CLI/run.sh" --test <"$work/names"

passed=0 failed=0 skipped=0
while read -r name; do
    case $(cat "$work/$name.verdict" 2>/dev/null) in
    passed) passed=$((passed + 1)) ;;
    skipped) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)) ;;
    esac
done <"$work/names"
clean
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
