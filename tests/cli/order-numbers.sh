# SPDX-License-Identifier: MIT
# A part of an order equals that part of the whole order; --inverse is its inverse; --stdin gives the same answers.
. "$TOKMAP_CLI/helpers.sh"
for windows in 1 2 3 63 64 65 1000 1025; do
    for epoch in 0 1 7; do
        tokmap order --windows $windows --seed 5 --epoch $epoch >all
        equal "$(sort -n all | uniq | wc -l | tr -d ' ')" $windows "different numbers:"
        equal "$(sort -n all | tail -n 1)" $((windows - 1)) "the largest:"
        tokmap order --windows $windows --seed 5 --epoch $epoch --inverse <all >back
        seq 0 $((windows - 1)) >straight
        same straight back
        half=$((windows / 2))
        tokmap order --windows $windows --seed 5 --epoch $epoch --start $half --count 1 >one
        sed -n "$((half + 1))p" all >wanted
        same wanted one
        echo "$windows 5 $epoch 0 $windows" | tokmap order --stdin >line
        tr '\n' ' ' <all | sed 's/ $//' >wanted
        echo >>wanted
        same wanted line
    done
done
# Each seed, epoch, and source name has its own order.
tokmap order --windows 1000 --seed 5 >a
tokmap order --windows 1000 --seed 6 >b
tokmap order --windows 1000 --seed 5 --epoch 1 >c
tokmap order --windows 1000 --seed 5 --source web >d
tokmap order --windows 1000 --seed 5 --source data >e
same a e
for other in b c d; do
    ! cmp -s a $other || { echo "FAULT: a and $other are the same" >&2; exit 1; }
done
# The default of --seed is that of a run without a seed.
tokmap order --windows 1000 >a
tokmap order --windows 1000 --seed 0 >b
same a b
# The limits of the ranges.
tokmap order --windows 9223372036854775808 --seed 18446744073709551615 --epoch 18446744073709551615 \
    --start 9223372036854775800 >far
equal "$(wc -l <far | tr -d ' ')" 8
tokmap order --windows 9223372036854775808 --seed 18446744073709551615 --epoch 18446744073709551615 --inverse <far >back
equal "$(head -n 1 back)" 9223372036854775800
tokmap order --windows 5 --seed 1 --count 0 >none
[ ! -s none ]
tokmap order --windows 5 --seed 1 --start 5 >none
[ ! -s none ]
