tokmap-bench gpu --tokens 200m --dir /tmp/tokmap-gpu --repeats 5 --batches 700000
