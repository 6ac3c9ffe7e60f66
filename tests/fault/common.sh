# SPDX-License-Identifier: MIT
# common.sh: functions for the tests in this folder. test_pack.sh and test_reading.sh make system calls and allocations
# of a command fail, one in each attempt. Calls are also interrupted, and reads and writes are cut to half their size.
# inject.c makes the calls fail. These functions check the result:
#   - The command does not crash or hang. It exits with 0 and the right result, or with 1 and a message.
#   - A failed write, sync, or rename is never ignored.
#   - A .tmx exists only beside its complete .bin: the old shard, no shard, or the complete new shard.
#   - No *.partial file is left, unless its removal is the call that failed.
# A failure that happens once must not last: the loader's second next() delivers the same rows.
#
# By default, a test takes a sample of the calls: more of the last ones, which give files their names, than of those
# before. The commit chooses the sample, so that other commits take other calls. FAULT_COMMIT=NUMBER replaces the
# commit, and FAULT_ALL=1 takes all calls. A process is killed only instead of calls that change files or folders,
# unless FAULT_ALL=1: a kill instead of any other call leaves the same files as one instead of the next of these.
set -u
inject=$BUILD_DIR/tests/inject.so
reader=$BUILD_DIR/tests/fault_reader
if [ -n "${SANITIZE:-}" ]; then
    echo "skipped: a preloaded library cannot be combined with the runtime of a sanitizer"
    exit 77
fi
if [ ! -x "$TOKMAP" ]; then
    echo "skipped: the command tokmap is not built"
    exit 77
fi
work=$TMPDIR/work
mkdir -p "$work/in" || exit 1
cd "$work" || exit 1

# ---- inputs: a few files, some longer than a block of tokens, so that every path of the writer is taken ----
awk 'BEGIN { for (i = 0; i < 60000; i++) print "line " i " of a text, with words " i * i % 9973 }' >in/long.txt
printf 'a short text\n' >in/short.txt
: >in/void.txt
gzip -c in/short.txt >in/packed.txt.gz 2>/dev/null || rm -f in/packed.txt.gz
zstd -q -c in/short.txt >in/packed.txt.zst 2>/dev/null || rm -f in/packed.txt.zst
awk 'BEGIN { for (i = 0; i < 3000; i++) print "{\"text\": \"document " i " \\u00e9 with text\", \"n\": " i "}" }' >docs.jsonl
awk 'BEGIN { for (i = 0; i < 3000; i++) print "an older text, line " i }' >old.txt

"$TOKMAP" pack --eod -o whole in >/dev/null 2>pack.err || { cat pack.err; echo "not ok - pack without faults"; exit 1; }
"$TOKMAP" pack --eod -o whole_jsonl docs.jsonl >/dev/null 2>&1 && jsonl=yes || jsonl=
"$TOKMAP" pack --eod -o old old.txt >/dev/null 2>&1 || { echo "not ok - pack without faults"; exit 1; }
"$reader" old mapped 0 >old.hash || { echo "not ok - reading without faults"; exit 1; }

commit=${FAULT_COMMIT:-$((0x$(git -C "$TOP" rev-parse --short=7 HEAD 2>/dev/null || echo 0)))} # chooses the sample
[ -n "${FAULT_ALL:-}" ] || export INJECT_CHANGES=1

problem() {
    echo "  $scenario, $kind fault $number ($(cat report 2>/dev/null)), exit $status: $1"
    sed 's/^/    /' err | head -n 5
    problems=$((problems + 1))
}

limit='timeout -k 2 120'
# with_fault COMMAND...: runs the command with call `number` failing, and sets status.
with_fault() {
    rm -f report
    INJECT_KIND=$kind INJECT_NUMBER=$number INJECT_REPORT=report LD_PRELOAD=$inject \
        $limit "$@" >out 2>err </dev/null
    status=$?
    case $status in
    0) ;;
    1 | 4) [ -s err ] || problem "failed without a message" ;;
    124 | 137) problem "hung" ;;
    *) problem "crashed" ;;
    esac
}

# bad WHAT: reports what is wrong after `attempt_fault`.
bad() {
    echo "  ${scenario:+$scenario, }$kind at call $number ($(cat report 2>/dev/null)), exit $status: $1"
    sed 's/^/    /' err | head -n 3
    problems=$((problems + 1))
}

# attempt_fault: runs the command $attempt with call `number` failing, and sets status. Returns 1 if there is no such
# call. Whatever failed, the command ends with 0, or with 1 and a message, or is killed by kind `kill`. It ignores no
# failed write, sync, or rename, and repeats what was interrupted or cut short. Only writes of files
# that match the pattern `spare` may be ignored; it is empty unless a test sets it. So may a failed sync once the path
# INJECT_GONE no longer exists, if a test sets that.
attempt_fault() {
    rm -f report report.gone
    status=0
    INJECT_KIND=$kind INJECT_NUMBER=$number INJECT_REPORT=report LD_PRELOAD=$inject \
        timeout -k 2 120 $attempt >out 2>err </dev/null || status=$?
    [ -e report ] || return 1
    case $kind:$status in
    kill:137 | *:0 | *:1) ;;
    *) bad "the exit status" ;;
    esac
    [ $status != 1 ] || [ -s err ] || bad "failed without a message"
    case $kind:$status:$(cat report) in
    system:0:pwrite)
        case $(cat report.file) in
        ${spare:-none}) ;;
        *) bad "the failure was ignored" ;;
        esac
        ;;
    system:0:fsync) [ -n "${INJECT_GONE:-}" ] && grep -q gone report.gone || bad "the failure was ignored" ;;
    system:0:rename) bad "the failure was ignored" ;;
    eintr:1:* | short:1:*) bad "a call that must be repeated ended the work" ;;
    esac
    return 0
}

# next_process: runs the attempt again, without a fault. It ends the work, or sees that the work was complete.
next_process() {
    again=0
    $attempt >out 2>err </dev/null || again=$?
    case $again in
    0) ;;
    1) grep -q 'already exists' err || bad "the next process fails" ;;
    *) bad "the next process ends with $again" ;;
    esac
}

# count_calls ATTEMPT...: sets number to the first call that is made to fail, and calls to how many there are. Unless
# FAULT_ALL=1, next_call takes every ninth call of those before the last 40, or every third one of kind `kill`. The
# commit chooses which ones, so that nine commits may cover all of them.
count_calls() {
    INJECT_KIND=$kind INJECT_NUMBER=1000000000 INJECT_COUNT=count LD_PRELOAD=$inject "$@" >out 2>err </dev/null
    calls=$(cat count)
    number=1
    far=9
    [ $kind != kill ] || far=3
    [ -n "${FAULT_ALL:-}" ] || [ "$calls" -lt $((40 + far)) ] || number=$((1 + commit % far))
}
next_call() {
    if [ -z "${FAULT_ALL:-}" ] && [ $((number + 40 + far)) -le "$calls" ]; then number=$((number + far))
    else number=$((number + 1)); fi
}

# is_shard PREFIX REFERENCE: whether the two shards are equal byte for byte.
# A shard whose writer failed late may have its tokens under the name with the index's id (see format/shard_commit.h).
is_shard() {
    tokens=$1.bin
    [ -e "$tokens" ] || tokens=$tokens.$(od -An -v -tx8 -j40 -N8 "$1.tmx" | tr -d ' ')
    cmp -s "$1.tmx" "$2.tmx" && cmp -s "$tokens" "$2.bin"
}

check_pack() {
    call=$(cat report 2>/dev/null)
    for left in *.partial; do
        [ -e "$left" ] || continue
        case $call:$left in
        unlink:*) ;;
        # Unless it is known to be its own, the file could belong to another writer, so it is kept.
        fstat:*.tmx.partial | lstat:*.tmx.partial) [ ! -s "$left" ] || problem "$left was left" ;;
        *) problem "$left was left" ;;
        esac
    done
    if [ -e new.tmx ] && ! is_shard new "$1" && ! { [ -n "$2" ] && is_shard new "$2"; }; then
        problem "a shard is visible that is neither the old nor the new one"
    fi
    case $status in
    0)
        is_shard new "$1" || problem "it exited with 0, but the shard is wrong"
        case $kind:$call in
        system:fsync | system:write | system:pwrite | system:rename) problem "the failure was ignored" ;;
        esac
        ;;
    1)
        [ "$kind" != eintr ] || problem "an interrupted call is not a failure"
        [ "$kind" != short ] || problem "a short read or write is not a failure"
        ;;
    esac
    rm -f ./*.partial
}

# sweep NAME KIND: runs `attempt` without a fault, and then with calls failing, until no call is left to fail. Unless
# FAULT_ALL=1, every second one of the last 20 calls fails, and every sixth one before, or every 30th one where there
# are 300 calls, most of which are those of one loop. The commit chooses which ones.
sweep() {
    scenario=$1
    kind=$2
    problems=0
    taken=0
    far=1 near=1
    number=1000000000
    rm -f count
    export INJECT_COUNT=count
    limit=
    attempt
    limit='timeout -k 2 120'
    unset INJECT_COUNT
    calls=$(cat count 2>/dev/null || echo 0)
    if [ -z "${FAULT_ALL:-}" ]; then
        far=6 near=2
        [ $calls -lt 300 ] || far=30
        [ $calls -gt $((20 + far)) ] || far=2
    fi
    number=$((1 + commit % far))
    while [ $problems -lt 5 ]; do
        attempt
        [ -e report ] || break
        taken=$((taken + 1))
        if [ $((number + far + 20)) -le $calls ]; then number=$((number + far))
        else number=$((number + near)); fi
        [ $number -lt 3000 ] || break
    done
    if [ -e report ] && [ $problems = 0 ]; then
        problem "there are more calls than this test makes fail"
    elif [ ! -e report ] && [ $status != 0 ]; then
        problem "fails without a fault"
    fi
    if [ $problems = 0 ]; then
        echo "ok - $scenario, $kind: $taken of $calls faults"
    else
        echo "not ok - $scenario, $kind"
    fi
}
