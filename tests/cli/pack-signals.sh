# SPDX-License-Identifier: MIT
# ci: asan tsan
# SIGINT, SIGTERM, and SIGHUP at any moment: the partial files are removed, the command ends by the signal, and an old
# shard stays. The waits here have no limits of their own; the time limit of the test ends a wait that does not finish.
. "$TOKMAP_CLI/helpers.sh"
printf 'old' >old
tokmap pack -q -o d old
cp d.bin old.bin
mkfifo pipe

# A command that a shell starts in the background ignores SIGINT, and under nohup also SIGHUP; a shell cannot undo that.
signals='TERM INT HUP'
if env --default-signal=INT,HUP true 2>/dev/null; then
    plainly='env --default-signal=INT,HUP'
else
    plainly=env signals=TERM
fi

# begun ARGUMENT...: starts pack in the background and sets pid.
begun()
{
    $plainly tokmap pack -q --force -o d "$@" 2>err <&5 &
    pid=$!
}
# ended SIGNAL: sends the signal and checks the files that are left.
ended()
{
    kill -s "$1" $pid
    status=0
    wait $pid || status=$?
    case $1 in HUP) equal $status 129 ;; INT) equal $status 130 ;; TERM) equal $status 143 ;; esac
    equal "$(ls d.* | tr '\n' ' ')" 'd.bin d.tmx '
    same d.bin old.bin
}
exec 5<>pipe # of which nobody ever writes to

for threads in 1 4; do
    for signal in $signals; do
        # While it waits for more bytes of a named pipe.
        mkfifo named
        begun --threads $threads named
        exec 3>named
        head -c 1000000 /dev/zero | tr '\000' 'a' >&3
        await [ -e d.bin.partial ]
        ended $signal
        holds err 'interrupted'
        exec 3>&-
        # While it waits for a named pipe that nobody opens for writing.
        begun --threads $threads named
        await [ -e d.bin.partial ]
        ended $signal
        holds err 'interrupted'
        rm named
    done
    # While it waits for standard input.
    begun --threads $threads -
    await [ -e d.bin.partial ]
    ended TERM
    holds err 'interrupted'
done

# At any moment: before any file is open, before the wait, and during the wait.
mkfifo named
for delay in 0 0 0 0.002 0.005 0.01 0.01 0.015 0.02 0.02 0.03 0.05 0.1 0.2; do
    begun --threads 3 named
    sleep $delay
    ended TERM
done

# An empty list of what was left out does not stay, either. A list that names something does, under the name that keeps
# nobody from typing the command again.
begun --on-error skip --skipped-list list.jsonl named
await [ -e d.bin.partial ]
ended TERM
[ ! -e list.jsonl ]
printf '{"id": 1}\n' >bad.jsonl
begun --on-error skip --skipped-list list.jsonl bad.jsonl named
await [ -s list.jsonl.partial ]
ended TERM
[ ! -e list.jsonl ]
holds list.jsonl.partial '{"path": "bad.jsonl"'
tokmap pack -q -o again --on-error skip --skipped-list list.jsonl bad.jsonl old 2>err
holds list.jsonl '{"path": "bad.jsonl"'
[ ! -e list.jsonl.partial ]
rm list.jsonl again.*
mkfifo pairs
tokmap train-tokenizer -q --vocab-size 260 -o again --on-error skip --skipped-list list.jsonl bad.jsonl pairs 2>err &
pid=$!
await [ -s list.jsonl.partial ]
kill -s TERM $pid
exits 143 wait $pid
[ ! -e list.jsonl ]
rm list.jsonl.partial

# Two signals in a row: the command may have no time to remove its files, but it ends, and the next command replaces
# those files. (The same signal twice within half a second, as timeout(1) sends it, counts once; test_signals tests
# that.)
for second in TERM INT; do
    begun named
    await [ -e d.bin.partial ]
    kill -s TERM $pid
    kill -s $second $pid 2>/dev/null || true
    status=0
    wait $pid || status=$?
    [ $status = 143 ] || [ $status = 130 ]
    tokmap pack -q --force -o d old
    equal "$(ls d.* | tr '\n' ' ')" 'd.bin d.tmx '
done

# A signal that was ignored at the start stays ignored.
(
    trap '' HUP
    exec tokmap pack -q --force -o ignoring named
) &
pid=$!
exec 3>named
await [ -e ignoring.bin.partial ]
kill -s HUP $pid
printf 'text' >&3
kill -s HUP $pid
exec 3>&-
wait $pid
equal "$(wc -c <ignoring.bin | tr -d ' ')" 10
