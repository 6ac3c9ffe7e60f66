# SPDX-License-Identifier: MIT
# ci: nonroot
# A command that receives a signal ends by that signal and prints no result.
. "$TOKMAP_CLI/helpers.sh"
head -c 3000000 /dev/zero | tr '\000' 'a' >in.txt
tokmap pack -q -o zeros in.txt
tokmap audit zeros --seq-len 1 --batch 64 --seed 1 --passes 100000 --draws 1t --ranks 2 >out 2>err &
child=$!
sleep 1
kill -TERM $child
status=0
wait $child || status=$?
equal $status 143 "exit status:"
[ ! -s out ]

# The same while it waits for a reader that does not read.
cp zeros.bin bad.bin
cp zeros.tmx bad.tmx
flip bad.bin 100
head -c 100000 /dev/zero | tokmap encode --input-format text >ids
mkfifo full
exec 5<>full
dd if=/dev/zero of=full bs=4096 oflag=nonblock 2>dd.err || true
for command in 'verify bad' 'verify bad --json' 'encode in.txt' 'decode ids' 'show zeros --tokens 0..1000000' 'export zeros'; do
    tokmap $command >full 2>err &
    child=$!
    sleep 0.5
    kill -0 $child
    kill -TERM $child
    status=0
    wait $child || status=$?
    equal $status 143 "$command: exit status:"
done
