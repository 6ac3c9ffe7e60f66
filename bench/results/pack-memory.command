tokmap-bench pack --memory
