# SPDX-License-Identifier: MIT
# ci: nonroot asan
# The message about a wrong line names its number, and the lines before it are answered.
. "$TOKMAP_CLI/helpers.sh"
misused()
{
    exits 2 tokmap order "$@" >out 2>err </dev/null
    [ ! -s out ]
    holds err "tokmap order: "
}
misused
holds err '--windows is required'
misused --seed 5
misused --windows 0 --seed 1
misused --windows 9223372036854775809 --seed 1
misused --windows 5 --seed 18446744073709551616
misused --windows 5 --seed -1
misused --windows 5 --seed 1 --start 6
misused --windows 5 --seed 1 --start 3 --count 3
misused --windows 5 --seed 1 --inverse --start 1
misused --windows 5 --seed 1 --stdin
misused --windows 5 --seed 1 operand
misused --windows 5x --seed 1

# wrong LINE ARGUMENT...: runs the command with the file `lines` as standard input, of which that line is wrong.
wrong()
{
    line=$1
    shift
    exits 1 tokmap order "$@" <lines >out 2>err
    holds err "standard input:$line: "
    equal "$(wc -l <out | tr -d ' ')" $((line - 1)) "answers before the fault:"
}
for bad in '10 1 0 2' '10 1 0 2 3 4' 'x' '' '0 1 0 0 0' '10 1 0 8 3' '10 1 0 -1 3' '9223372036854775809 1 0 0 1' \
    '10 18446744073709551616 0 0 1' '10 1 0 11 0'; do
    printf '10 1 0 2 3\n10 2 0 2 3\n%s\n10 1 0 2 3\n' "$bad" >lines
    wrong 3 --stdin
done
printf '10 1 0 2 3\n10 2 0 \0002 3\n' >lines
wrong 2 --stdin
holds err "got 'a zero byte'"
for bad in 5 x '' '1 2' -1; do
    printf '3\n4\n%s\n1\n' "$bad" >lines
    wrong 3 --windows 5 --seed 1 --inverse
done
printf '10 1 0 2 3\n10 \0001 0 2 3\n' >lines
wrong 2 --stdin
# A last line without a newline counts.
printf '10 1 0 2 3' | tokmap order --stdin >out
equal "$(wc -l <out | tr -d ' ')" 1
head -c 100000 /dev/zero | tr '\0' 1 >lines
wrong 1 --stdin
