tokmap-bench compare pin data/web --offline --repeats 3 --seconds 1 --json
