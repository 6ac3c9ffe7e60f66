tokmap-bench gpu --tokens 200m --repeats 5 --batches 700000
