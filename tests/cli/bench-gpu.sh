# The cases that need a GPU, without one, and on the software driver, where results must be right but figures mean
# nothing.
. "$TOKMAP_CLI/helpers.sh"

export TMPDIR="$PWD"
driver=${BUILD_DIR:-$TOKMAP_BIN/..}/tests/cuda_software/libcuda.so.1

# Without a GPU each of them fails with a message. (`all` skips them with a message; bench-dataset.sh runs it.)
TOKMAP_CUDA_DRIVER=$PWD/nowhere.so
export TOKMAP_CUDA_DRIVER
for case in h2d expand race "loader --device 0" "train --device 0"; do
    # shellcheck disable=SC2086
    exits 1 tokmap-bench $case --tokens 100k >out 2>err
    holds err 'no GPU: '
    holds err 'nowhere.so'
done
exits 2 tokmap-bench race --batches 0 2>err
holds err '--batches must be from 1'
exits 2 tokmap-bench h2d --copy-bytes 100 2>err
holds err '--copy-bytes'
exits 2 tokmap-bench h2d --device x 2>err

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
