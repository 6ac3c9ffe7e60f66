tokmap-bench compare progressive data/web --offline --repeats 9 --seconds 2 --json
