tokmap-bench writer
