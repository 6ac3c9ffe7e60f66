tokmap-bench order
