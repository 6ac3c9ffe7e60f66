tokmap-bench pack
