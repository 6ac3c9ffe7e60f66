# SPDX-License-Identifier: MIT
# ci: asan
# The rows of a step: those that `order` predicts for sequential runs, the same from a run and from arguments, and the
# slices of ranks.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
printf 'seq_len 64\nbatch 8\nseed 3\nsource data small\npasses 3\nskip 2..3\n' >train.run
arguments="--seq-len 64 --batch 8 --seed 3"
for step in 0 1 28 29 57; do
    tokmap show train.run --step $step --ids >a 2>where
    # shellcheck disable=SC2086 # several words
    tokmap show small $arguments --step $step --ids >b 2>/dev/null
    same a b
    equal "$(wc -l <a | tr -d ' ')" 8
    for ranks in 1 3 8; do
        rank=0
        while [ $rank -lt $ranks ]; do
            tokmap show train.run --step $step --rank $rank --ranks $ranks --ids -q
            rank=$((rank + 1))
        done >b
        same a b
    done
    for row in 0 1 2 3 4 5 6 7; do
        tokmap show train.run --step $step --row $row --ids -q
    done >b
    same a b
    # The windows of the step are those of its draws.
    sed -n 's/^step .* epoch 0, window \([0-9]*\): .*/\1/p' where | sort -n >got
    [ $step -lt 28 ] || continue
    tokmap order --windows 230 --seed 3 --start $((step * 8)) --count 8 | sort -n >wanted
    same wanted got
done
tokmap show small --seq-len 64 --batch 8 --order sequential --step 2 --ids -q >a
for window in 16 17 18 19 20 21 22 23; do
    tokmap show small -w $window --seq-len 64 --ids -q
done >b
same a b
tokmap show train.run --step 0 --row 5 >a 2>b
cat b a
tokmap show train.run --step 0 --row 5 --json
tokmap show train.run --step 1 -q >a
tokmap show train.run --step 1 --json >b
json b
equal "$(wc -l <b | tr -d ' ')" 8
tokmap show train.run --step 2 >a 2>err
holds err "step 2 is skipped"
exits 1 tokmap show train.run --step 86 2>err
holds err "step 86 is past the end of the run, whose steps are 0 to 85"
grep -v '^steps\|^passes' train.run | sed 's/^batch .*/batch 7/' >endless.run
tokmap show endless.run --step 1317624576693539400 --row 0 -q >a
exits 1 tokmap show endless.run --step 1317624576693539401 2>err
holds err "step 1317624576693539401 does not exist"
exits 1 tokmap show train.run --step 0 --row 8 2>err
holds err "the step has 8 rows"
exits 1 tokmap show train.run --step 0 --rank 1 --ranks 3 --row 3 2>err
holds err "the slice of the rank has 3 rows"
exits 1 tokmap show train.run --step 0 --rank 1 --ranks 9 2>err
holds err "9 ranks cannot share a global batch of 8 rows"
