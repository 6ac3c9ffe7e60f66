# SPDX-License-Identifier: MIT
# The cases that need a GPU, without one, and on the software driver, where results must be right but figures mean
# nothing.
. "$TOKMAP_CLI/helpers.sh"

export TMPDIR="$PWD"
driver=${BUILD_DIR:-$TOKMAP_BIN/..}/tests/cuda_software/libcuda.so.1

# Without a GPU each of them fails with a message. (`all` skips them with a message; bench-dataset.sh runs it.)
TOKMAP_CUDA_DRIVER=$PWD/nowhere.so
export TOKMAP_CUDA_DRIVER
for case in h2d expand race gpu "loader --device 0" "train --device 0"; do
    # shellcheck disable=SC2086
    exits 1 tokmap-bench $case --tokens 100k >out 2>err
    holds err 'no GPU: '
    holds err 'nowhere.so'
    holds err 'run it on a machine with one'
done
exits 2 tokmap-bench race --batches 0 2>err
holds err '--batches must be from 1'
exits 2 tokmap-bench h2d --copy-bytes 100 2>err
holds err '--copy-bytes'
exits 2 tokmap-bench h2d --device x 2>err
exits 2 tokmap-bench gpu --step-ms 5 2>err
holds err '--step-ms is for train'
exits 2 tokmap-bench gpu --cold 2>err
holds err '--cold is for loader and train'
exits 2 tokmap-bench gpu --require ok 2>err
holds err '--require is here followed by held'
exits 2 tokmap-bench check synthetic:vocab=9 --batch 8 --step-ms 1 --require held 2>err
holds err '--require held is for the case gpu'

[ -e "$driver" ] || skip "the software driver has not been built (make harness)"
TOKMAP_CUDA_DRIVER=$driver

small="--repeats 2 --seconds 0.01 --json"
# shellcheck disable=SC2086
{
    tokmap-bench h2d $small --copy-bytes 64Ki >h2d.json
    tokmap-bench expand $small --copy-bytes 64Ki --seq-len 500 >expand.json
    tokmap-bench loader --device 0 $small --tokens 1m >loader.json
    tokmap-bench train --device 0 $small --step-ms 1 --repeats 3 synthetic:vocab=50257 >train.json
}
for file in *.json; do
    json "$file"
    equal "$(sed 's/.*"metric": *"\([^"]*\)".*/\1/' "$file" | sort | uniq -d)" '' "$file: metrics named twice"
done
results h2d.json h2d peak_gb_s pinned_gb_s_4kib registered_gb_s_64kib pageable_gb_s_64kib
results expand.json expand small_batch_us gb_s_i32 gb_s_all_i64 us_i32_4096 from_pinned_us_4096 launch_p50_us
results loader.json device_loader tokens_per_s next_p50_us next_over_launch_us enqueue_p50_us ready_p50_us not_ready \
    open_64mib_ms
results train.json device_train share_percent share_low_percent share_high_percent au_percent step_ms waits
holds loader.json '"metric": "kernel", "value": 1'

# The figures of all these cases, beside their bars. The times are those of the emulation, but what is counted is what a
# real driver would be asked to do: 6 calls a batch of the producer, none that waits or allocates, and in each process
# one module of the library beside the one of the benchmark, also while several loaders are open.
TOKMAP_CUDA_SOFTWARE=report=$PWD/counts tokmap-bench gpu --repeats 1 --seconds 0.01 --copy-bytes 64Ki --tokens 1m \
    --batches 500 --batch-tokens 4096 --json >gpu.json 2>err
json gpu.json
equal "$(grep -c '"case": *"gpu".*"verdict": "' gpu.json)" 20 'figures with a verdict'
for figure in producer_calls:6 waiting_calls:0 race_mismatches:0 kernel:1; do
    grep -q "\"gpu\", \"metric\": \"${figure%:*}\", \"value\": ${figure#*:}, .*\"verdict\": \"held\"" gpu.json || {
        echo "FAULT: not held: $figure" >&2
        grep '"gpu"' gpu.json >&2
        exit 1
    }
done
grep -q '"gpu", "metric": "consumer_calls", "value": \(9\|9\.[0-9]*\|10\),' gpu.json || { # 10: the copy is late
    grep consumer_calls gpu.json >&2
    exit 1
}
holds gpu.json '"metric": "race_batches", "value": 500, '
grep -q '"race_batches", .*"limit": 1000000, .*"verdict": "short"' gpu.json || exit 1
grep -q '"expand_i32_32k_us", "value": null, .*"limit": 3, *"verdict": "not measured"' gpu.json || exit 1
holds gpu.json '"metric": "capability", "value": 9,'
holds gpu.json '"metric": "coherent", "value": 0,'
holds gpu.json 'figures that have a bar are held'
results gpu.json gpu h2d_same_size_share h2d_small_pages_share expand_all_i64_share next_over_launch_us driver_call_us \
    open_first_64mib_ms open_64mib_ms open_first_compiled_64mib_ms train_24ms_share_percent train_2ms_share_percent \
    clock_share
results gpu.json h2d registered_small_gb_s_64kib register_ms
equal "$(grep '^modules_loaded' counts | sort -n -k 2 | tail -n 1)" 'modules_loaded 2' 'modules of a process'
equal "$(grep '^modules_compiled' counts)" 'modules_compiled 2' 'processes that compile kernels: the one that measures it'
equal "$(grep -c '^violations' counts || :)" 0 'violations'

# With --require the exit status says whether all figures are held. A case that fails costs its own figures only.
tiny="--repeats 1 --seconds 0.001 --copy-bytes 4Ki --batches 10 --batch-tokens 2048 synthetic:vocab=50257"
# shellcheck disable=SC2086
{
    exits 1 tokmap-bench gpu $tiny --require held >out 2>err
    TOKMAP_CUDA_SOFTWARE=fail=cuMemHostAlloc:1,quiet exits 1 tokmap-bench gpu $tiny >failing 2>err
}
grep -q '^gpu.race_mismatches  *0 .* held' out || exit 1
holds out 'of 20 figures that have a bar are held'
grep -q '^gpu.race_mismatches  *outputs .* not measured' failing || exit 1
grep -q '^gpu.train_2ms_share_percent  *[0-9]' failing || exit 1
holds err 'tokmap-bench race: allocating page-locked memory failed: CUDA_ERROR_UNKNOWN (999)'

# Every output is right: when both sides are delayed, without delays, and when the host expands because the driver loads
# the benchmark's module but not the loader's.
TOKMAP_CUDA_SOFTWARE=delay=20,seed=5 tokmap-bench race --batches 2000 --json >race.json
holds race.json '"metric": "mismatches", "value": 0'
holds race.json '"metric": "batches", "value": 2000'
tokmap-bench race --batches 10000 --json >race.json
json race.json
holds race.json '"metric": "mismatches", "value": 0'
holds race.json '"metric": "batches", "value": 10000'

TOKMAP_CUDA_SOFTWARE=fail=cuModuleLoadDataEx:2+:218 tokmap-bench race --batches 1000 --json >race.json
holds race.json '"metric": "mismatches", "value": 0'
holds race.json '"metric": "host_expanded", "value": 1000'

# If the driver fails in the middle, the command ends with a message and does not hang.
TOKMAP_CUDA_SOFTWARE=fail=cuLaunchKernel:500:700,lenient exits 1 tokmap-bench race --batches 5000 >out 2>err
holds err '(700)'
