# SIGINT, SIGTERM and SIGHUP, whenever they come: the partial files are removed, the command dies by the signal, an old
# shard stays. No wait here has a limit of its own: what is lost is found by the test's.
. "$TOKMAP_CLI/helpers.sh"
printf 'old' >old
tokmap pack -q -o d old
cp d.bin old.bin
mkfifo pipe

# What is started in the background ignores SIGINT, under nohup SIGHUP too, and a shell cannot undo that.
signals='TERM INT HUP'
if env --default-signal=INT,HUP true 2>/dev/null; then
    plainly='env --default-signal=INT,HUP'
else
    plainly=env signals=TERM
fi

# begun ARGUMENT...: packs in the background; sets pid.
begun()
{
    $plainly tokmap pack -q --force -o d "$@" 2>err <&5 &
    pid=$!
}
# ended SIGNAL: sends it, and checks what is left.
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
        # While it waits for more of a named pipe.
        mkfifo named
        begun --threads $threads named
        exec 3>named
        head -c 1000000 /dev/zero >&3
        await [ -e d.bin.partial ]
        ended $signal
        holds err 'interrupted'
        exec 3>&-
        # Of one that nobody opens for writing.
        begun --threads $threads named
        await [ -e d.bin.partial ]
        ended $signal
        holds err 'interrupted'
        rm named
    done
    # Of standard input.
    begun --threads $threads -
    await [ -e d.bin.partial ]
    ended TERM
    holds err 'interrupted'
done

# At any moment: before anything is open, before the wait and in it.
mkfifo named
for delay in 0 0 0 0.002 0.005 0.01 0.01 0.015 0.02 0.02 0.03 0.05 0.1 0.2; do
    begun --threads 3 named
    sleep $delay
    ended TERM
done

# Two at once: it may have no time to tidy up, but ends, and what it leaves is taken over. (The same at once, as timeout(1)
# sends it, is one, unless this machine takes half a second between them: test_signals has that.)
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

# One that was ignored at the start stays ignored.
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
