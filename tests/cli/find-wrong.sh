# SPDX-License-Identifier: MIT
# ci: asan
# What find refuses.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
printf 'seq_len 32\nbatch 4\nsource a small\nsource b small#docs=0..5\nphase 0 a 1 b 1\nsteps 50\n' >train.run
exits 2 tokmap find train.run 2>err
holds err "choose documents with --column, --input, --ngrams, or --document"
exits 2 tokmap find -d 3 2>err
holds err "expected one run file or dataset"
exits 2 tokmap find train.run small -d 3 2>err
exits 2 tokmap find small -d x 2>err
holds err "--document is 'x'"
exits 2 tokmap find small --column license 2>err
holds err "such as --column license=MIT"
exits 2 tokmap find small --column =x 2>err
exits 2 tokmap find small -d 1 --record 3..4 2>err
holds err "--record needs --input"
exits 2 tokmap find small -d 1 --words 3 2>err
holds err "--words and --field are about the files of --ngrams"
exits 2 tokmap find small --ngrams x --words 0 2>err
holds err "--words must be 1 to 1000"
exits 1 tokmap find train.run -d 3 2>err
holds err "the run has 2 sources, and each numbers its own documents"
exits 1 tokmap find train.run --source c -d 3 2>err
holds err "there is no source 'c'"
exits 1 tokmap find small --source c -d 3 2>err
holds err "the source of a dataset is called 'data'"
exits 1 tokmap find train.run --source b -d 5 2>err
holds err "--document 5 does not exist in source 'b', which has 5 documents"
exits 1 tokmap find small --column nothing=1 2>err
holds err "no source has a column 'nothing'"
exits 1 tokmap find small --ngrams missing 2>err
holds err "missing"
printf 'one\n' >short
exits 1 tokmap find small --ngrams short 2>err
exits 1 tokmap find missing -d 3 2>err
holds err "missing"
printf '\1\0\2\0' >raw.bin
exits 1 tokmap find raw:raw.bin,width=2,vocab=9,eod=2 -d 0 2>err
holds err "tokmap index"
