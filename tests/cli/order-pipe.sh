# SPDX-License-Identifier: MIT
# A program asks through pipes: each answer arrives before the next question is sent. A closed pipe ends the command.
. "$TOKMAP_CLI/helpers.sh"
need mkfifo
mkfifo questions answers
tokmap order --stdin <questions >answers &
child=$!
exec 3>questions 4<answers
for seed in 1 2 3; do
    echo "100 $seed 0 0 5" >&3
    read -r answer <&4
    equal "$answer" "$(tokmap order --windows 100 --seed $seed --count 5 | tr '\n' ' ' | sed 's/ $//')"
done
exec 3>&-
wait $child
tokmap order --windows 9223372036854775808 --seed 1 | head -n 2 >out
equal "$(wc -l <out | tr -d ' ')" 2
