# SPDX-License-Identifier: MIT
# ci: nonroot asan
# Misuse, and a dataset whose tokenizer is unknown.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
printf 'seq_len 64\nbatch 8\nseed 3\nsource data small\n' >train.run
misused()
{
    exits 2 tokmap show "$@" >out 2>err
    [ ! -s out ]
    holds err "Try 'tokmap show --help'."
}
misused
# A misspelled run file is not called a dataset.
exits 1 tokmap show nosuch.run --step 1 2>err
equal "$(cat err)" "tokmap show: nosuch.run: there is no run file and no dataset of this name (no file has this name, or \
this name with .tmx added); check the path"
misused small
misused small -d 1 -w 2
misused small -d 1 --tokens 3..5
misused small -w 1
misused small -w 1 --seq-len 0
misused small --step 1
misused small --step 1 --seq-len 5 --seed 3
misused small -d 1 --row 2
misused small -d 1 --rank 0 --ranks 2
misused train.run --step 1 --rank 0
misused train.run --step 1 --rank 2 --ranks 2
misused train.run --step 1 --ranks 2
misused train.run --step 1 --balance 0.1
misused train.run --step 1 --rank 0 --ranks 2 --rows 2
misused train.run --step 1 --where
misused train.run -d 1 --steps 0..5
misused train.run -d 1 --where --ids
misused train.run -d 1 --ids --specials
misused train.run -d 1 --seed 4
misused small --tokens 5..3
misused small --tokens 5
exits 1 tokmap show nothing -d 1 2>err
[ ! -w /dev/full ] || exits 1 tokmap show small -d 1 >/dev/full 2>err
# A message about a place past the end names the dataset.
exits 1 tokmap show small -d 99 >out 2>err
holds err 'small: document 99 does not exist: the dataset has 18 documents'
printf 'ab' >two
tokmap pack -q -o two two
exits 1 tokmap show two --seq-len 2 -w 1 2>err
holds err 'window 1 does not exist; the 3 tokens make 1 window of 2 tokens'
tokmap audit two --seq-len 2 --batch 1 --seed 1 --steps 1 --ranks 1 >out
holds out 'epoch: 1 window of 2 tokens; tail: 1 token that no row shows'
holds out '1 rank with 1 row each, disjoint, together the 1 row of a step'
tokmap info two --seq-len 2 >out
holds out '1 token per epoch that no row shows'

# Damaged tokens are an error, and are not printed.
cp small.bin damaged.bin
cp small.tmx damaged.tmx
flip damaged.bin 2
for way in '-d 0' '--tokens 0..3 --ids' '-d 0 --json' '--seq-len 64 --batch 8 --step 0'; do
    exits 1 tokmap show damaged $way >out 2>err
    holds err 'damaged.bin: block 0 of the tokens does not match its hash; restore the file'
done
exits 1 tokmap show damaged -q -d 0 >out 2>err
[ ! -s out ]
