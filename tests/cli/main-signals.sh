# A command that is ended by a signal dies by it, and prints no result.
. "$TOKMAP_CLI/helpers.sh"
head -c 3000000 /dev/zero >in.txt
tokmap pack -q -o zeros in.txt
tokmap audit zeros --seq-len 1 --batch 64 --seed 1 --passes 100000 --draws 1t --ranks 2 >out 2>err &
child=$!
sleep 1
kill -TERM $child
status=0
wait $child || status=$?
equal $status 143 "exit status:"
[ ! -s out ]
