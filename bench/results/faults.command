tokmap-bench faults
