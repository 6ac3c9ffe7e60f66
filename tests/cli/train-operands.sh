# SPDX-License-Identifier: MIT
# `tokmap train-tokenizer` of a run file or a dataset reads as if it would train a model.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
mkdir shards
cp small.* shards
printf 'seq_len 64\nbatch 8\nseed 1\nsource web small\n' >train.run
cp train.run other.txt
refused()
{
    wanted=$1
    shift
    exits 2 tokmap train-tokenizer "$@" 2>err
    holds err "$wanted"
    holds err "this command makes a vocabulary (a tokenizer) from text"
    holds err "tokmap info"
}
refused "'train.run' is a run file" train.run
holds err "'tokmap audit'"
refused "'train.run' is a run file" -o v --vocab-size 300 train.run
refused "'other.txt' is a run file" other.txt
refused "'small' is a dataset" small
refused "'small.bin' is a dataset" -o v --vocab-size 300 small.bin
refused "'small' is a dataset" -o v --vocab-size 300 in small
refused "'shards' is a dataset" --vocab-size 300 shards
exits 2 tokmap train-tokenizer nothing 2>err
holds err 'name the vocabulary that is made from the text with -o PREFIX'
# A text may say anything.
tokmap train-tokenizer -q -o v --vocab-size 260 other.txt
