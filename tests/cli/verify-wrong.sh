# SPDX-License-Identifier: MIT
# ci: nonroot asan
# Misuse.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
exits 2 tokmap verify 2>err
exits 2 tokmap verify small small 2>err
exits 2 tokmap verify small --threads 5000 2>err
# -t is the tokenizer in every command, so here it is refused with the option that is meant. No command takes 0 threads.
for option in '-t 2' -t2 -t; do
    exits 2 tokmap verify small $option 2>err
    holds err "the number of threads is -j N or --threads N"
done
tokmap verify -q small -j 2
for command in verify 'audit --ranks 1 --seq-len 8 --batch 2 --passes 1' 'pack -o none'; do
    for option in '-j 0' '--threads 0' -j0; do
        exits 2 tokmap $command small $option 2>err
        holds err "--threads must be between 1 and"
    done
done
exits 1 tokmap verify nothing 2>err
printf 'seq_len 64\nbatch 8\nsource web small\nnonsense\n' >train.run
exits 1 tokmap verify train.run 2>err
holds err "train.run:4: "
[ -w /dev/full ] && exits 1 tokmap verify small >/dev/full 2>err
exit 0
