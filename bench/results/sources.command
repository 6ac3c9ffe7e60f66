tokmap-bench sources --repeats 5
