tokmap-bench compare pin /work/main/.gpu/data/web --offline --peers-folder /work/main/bench/peers --repeats 3 --seconds 1 --dir /tmp/tmp.Z1OlF0KBgz --json
