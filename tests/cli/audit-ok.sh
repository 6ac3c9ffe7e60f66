# SPDX-License-Identifier: MIT
# ci: tsan
# Audits without faults: a run, a dataset, skipped steps, and a number of ranks that does not divide the batch.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
printf 'seq_len 64\nbatch 8\nseed 3\nsource web small\npasses 3\nskip 3..5\nskip 7..8\n' >train.run
tokmap audit train.run --ranks 3 --rows 2
echo
tokmap audit small --seq-len 10 --batch 700 --seed 18446744073709551615 --steps 21 --ranks 7
echo
tokmap audit small --seq-len 64 --batch 1000 --order sequential --steps 3 --ranks 1
echo
tokmap audit small --seq-len 64 --batch 8 --seed 1 --passes 100 --ranks 8 --draws 2k
tokmap audit train.run --ranks 8 --json >out
json out
holds out '"ok": true'
holds out '"skipped": [[3, 5], [7, 8]]'
# An end for a run without one, and an earlier end for a run that has one.
printf 'seq_len 64\nbatch 8\nseed 3\nsource web small\n' >endless.run
exits 2 tokmap audit endless.run --ranks 2 2>err
holds err "'endless.run' has no end"
tokmap audit endless.run --ranks 2 --steps 1000 --json >out
holds out '"steps": 1000,'
tokmap audit endless.run --ranks 2 --passes 2 --json >out
holds out '"steps": 57,'
tokmap audit train.run --ranks 2 --steps 4 --json >out
holds out '"steps": 4, "delivered": 3,'
tokmap audit train.run --ranks 2 --steps 1000000 --json >out
holds out '"steps": 86, "delivered": 83,'
# Ranges of skipped steps are found whatever their size, and loaders are tried after them.
printf 'seq_len 64\nbatch 8\nseed 3\nsource web small\nskip 0..3\nskip 100..1000000000\nskip 1000000001..1000000002\n' >skips.run
tokmap audit skips.run --ranks 2 --steps 2000000000 --draws 1k --json >out
holds out '"steps": 2000000000, "delivered": 1000000096, '
holds out '"skipped": [[0, 3], [100, 1000000000], [1000000001, 1000000002]]'
holds out '{"epoch": 3, "first_step": 86, "end_step": 115, "windows": 230, "windows_skipped": 120}'
holds out '8 batches with 32 rows from'
