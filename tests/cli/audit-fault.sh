# SPDX-License-Identifier: MIT
# ci: nonroot asan
# More ranks than rows is a fault, damaged files are a failure, and misuse has its own exit status.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
printf 'seq_len 64\nbatch 8\nseed 3\nsource web small\npasses 3\n' >train.run
exits 1 tokmap audit train.run --ranks 9
exits 1 tokmap audit train.run --ranks 9 --json >out
json out
holds out '"ok": false'
misused()
{
    exits 2 tokmap audit "$@" 2>err
    holds err "Try 'tokmap audit --help'."
}
misused
misused train.run --ranks 0
tokmap audit train.run >out
holds out 'ranks     1 rank with '
misused train.run --ranks 2 --steps 3 --passes 1
misused train.run --ranks 2 --seq-len 64
misused small --ranks 2 --steps 5
misused small --ranks 2 --seq-len 64 --batch 8 --seed 3
misused small --ranks 2 --seq-len 64 --seed 3 --passes 1
exits 1 tokmap audit small --ranks 2 --seq-len 64000 --batch 8 --seed 3 --steps 2 2>err
exits 1 tokmap audit nothing --ranks 2 --seq-len 64 --batch 8 --seed 3 --steps 2 2>err
[ ! -w /dev/full ] || exits 1 tokmap audit train.run --ranks 2 >/dev/full 2>err
