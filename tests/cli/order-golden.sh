# SPDX-License-Identifier: MIT
# Frozen: an order never changes.
tokmap order --windows 12 --seed 1 | tr '\n' ' '
echo
tokmap order --windows 1000000007 --seed 1234 --epoch 3 --source web --start 999999999 --count 8 | tr '\n' ' '
echo
printf '10 1 0 2 3\n10 1 0 0 0\n4096\t7  1 4090 6 \r\n' | tokmap order --stdin
printf '10 1 0 2 3\n10 1 0 0 0\n' | tokmap order --stdin --json
tokmap order --windows 70 --seed 9 --count 3 --json
printf '3\n1\n' | tokmap order --windows 70 --seed 9 --inverse --json
tokmap order --windows 70 --seed 9 --count 0 --json
