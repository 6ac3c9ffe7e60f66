# SPDX-License-Identifier: MIT
# ci: asan
# Orders of blocks, and mixtures. The numbers are those of the examples in ORDER.md, and of its Python program.
. "$TOKMAP_CLI/helpers.sh"
equal "$(tokmap order --windows 10 --seed 1234 --blocks 4 --span 2 | tr '\n' ' ')" '5 9 4 7 8 6 2 1 3 0 '
equal "$(tokmap order --windows 1000 --seed 1234 --source web --epoch 1 --blocks 10 --span 8 --start 333 --count 1)" 920
tokmap order --windows 5000 --seed 7 --blocks 64 --span 3 >all
tokmap order --windows 5000 --seed 7 --blocks 64 --span 3 --inverse <all >back
seq 0 4999 | cmp - back
# The first span has the windows of three blocks.
equal "$(head -n 192 all | awk '{ print int($1 / 64) }' | sort -u | wc -l | tr -d ' ')" 3

equal "$(tokmap order --weights 5,3,2 --count 10 | tr '\n' ';')" '2 0;1 0;0 0;1 1;0 1;2 1;0 2;1 2;0 3;0 4;'
tokmap order --weights 5,3,2 --count 1000 >all
tokmap order -w 0.5,0.300000000,0.2 --start 0 --count 1000 | cmp - all
tokmap order --weights 5,3,2 --inverse <all >back
seq 0 999 | cmp - back
equal "$(tokmap order --weights 5,3,2 --start 12345 --count 1)" '2 2469'
equal "$(tokmap order --weights 5,3,2 --start 4611686018427400249 --count 1)" '0 2305843009213700124'
equal "$(tokmap order --weights 5,3,2 --count 3 --json)" '[[2, 0], [1, 0], [0, 0]]'
equal "$(tokmap order --weights 7 --start 9223372036854775807 --count 1)" '0 9223372036854775807'
printf '2 0\n0 1\n' | tokmap order --weights 5,3,2 --inverse --json >out
equal "$(cat out)" '[0, 4]'

misused()
{
    exits 2 tokmap order "$@" >out 2>err </dev/null
    [ ! -s out ]
    holds err "tokmap order: "
}
misused --weights 5,3,2
holds err 'say how many draws with --count'
for wrong in '' , 5, ,5 5,,3 x 5,x -1 .5 5..3 0.1234567890 9223372036854775808 1e3 '5 3'; do
    misused --weights "$wrong" --count 1
done
misused --weights 5,0,2 --count 1
holds err 'the weight of source 1 of the mixture is 0'
misused --weights 9000000000,9000000000 --count 1
holds err '2^63 or more'
misused --weights 5,3 --count 1 --windows 5
misused --weights 5,3 --count 1 --stdin
misused --weights 5,3 --inverse --count 1
misused --weights 5,3 --start 9223372036854775808 --count 1
misused --weights 5,3 --start 9223372036854775807 --count 2
misused --windows 10 --blocks 4
misused --windows 10 --span 4
misused --windows 10 --blocks 0 --span 4
misused --stdin --blocks 4 --span 4
for bad in '3 0' '1' '1 2 3' 'x 1' '2 9223372036854775807'; do
    printf '1 0\n%s\n' "$bad" >lines
    exits 1 tokmap order --weights 5,3,2 --inverse <lines >out 2>err
    holds err 'standard input:2: '
    equal "$(cat out)" 1
done
