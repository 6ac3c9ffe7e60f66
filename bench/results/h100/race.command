tokmap-bench race --batches 1000000 --json
