# Misuse.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
exits 2 tokmap verify 2>err
exits 2 tokmap verify small small 2>err
exits 2 tokmap verify small --threads 5000 2>err
exits 1 tokmap verify nothing 2>err
printf 'seq_len 64\nbatch 8\nsource web small\nnonsense\n' >train.run
exits 1 tokmap verify train.run 2>err
holds err "train.run:4: "
[ -w /dev/full ] && exits 1 tokmap verify small >/dev/full 2>err
exit 0
