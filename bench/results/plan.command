tokmap-bench plan --repeats 3
