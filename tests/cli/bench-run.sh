# SPDX-License-Identifier: MIT
# Every case takes a run file: its source, seq_len, batch, seed, and order. What contradicts it is refused.
. "$TOKMAP_CLI/helpers.sh"

export TMPDIR="$PWD"
tokmap-bench verify --tokens 1m --repeats 1 --keep >/dev/null 2>&1
made=$(find . -name 'tokmap-bench-*.tmx')
mkdir -p runs/data
mv "$made" runs/data/web.tmx
mv "${made%.tmx}.bin" runs/data/web.bin
printf 'seq_len 300\nbatch 10\nseed 7\nsource web data/web\npasses 1\n' >runs/train.run

# The run's own text says where its dataset is, not the current folder. `all` runs the other cases.
for case in loader train verify; do
    tokmap-bench $case runs/train.run --repeats 1 --seconds 0.01 --json >$case.json
    json $case.json
    holds $case.json "\"case\": \"$case\""
done
printf 'seq_len 300\nbatch 10\norder sequential\nsource web data/web\nlookahead 4\n' >runs/other.run
tokmap-bench loader runs/other.run --ranks 3 --rows 2 --repeats 1 --seconds 0.01 --json >loader.json
json loader.json
case $(stat -f -c %T . 2>/dev/null || echo unknown) in
    tmpfs | ramfs) ;;
    *) tokmap-bench loader runs/train.run --cold --ranks 2 --repeats 1 --seconds 0.01 --json >cold.json
        results cold.json cold tokens_per_s amplification ;;
esac
tokmap-bench all runs/train.run --tokens 1m --repeats 1 --seconds 0.01 --text-bytes 500k --batches 1000 \
    --copy-bytes 1Mi --json >all.json 2>err
json all.json
for case in check order loader open train pack verify; do
    holds all.json "\"case\": \"$case\""
done

for option in '--seq-len 300' '--batch 10' '--batch-tokens 3000'; do
    # shellcheck disable=SC2086
    exits 2 tokmap-bench train runs/train.run $option 2>err
    holds err "${option% *} is only for datasets; the run file 'runs/train.run' already sets it"
done
# A run file that is wrong, and one whose dataset is missing.
printf 'seq_len 300\nbatch ten\nsource web data/web\n' >wrong.run
exits 1 tokmap-bench train wrong.run 2>err
holds err 'wrong.run:2'
printf 'seq_len 300\nbatch 10\nsource web data/nowhere\n' >missing.run
exits 1 tokmap-bench train missing.run 2>err
holds err 'data/nowhere'
# A name that is misspelled is not taken for a run file.
exits 1 tokmap-bench train runs/trian.run 2>err
holds err 'runs/trian.run'
