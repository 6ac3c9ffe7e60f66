tokmap-bench hostile
