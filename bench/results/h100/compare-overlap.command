tokmap-bench compare overlap data/web --offline --repeats 9 --seconds 2 --json
