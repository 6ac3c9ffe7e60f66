# SPDX-License-Identifier: MIT
# ci: asan
# Simulated reads from remote storage: what is printed, of many rows a part, and what cannot be simulated.
. "$TOKMAP_CLI/helpers.sh"
need python3
printf 'seq_len 1024\nbatch 64\nseed 3\nsource web synthetic:vocab=1000,tokens=50000000\n' >train.run
printf 'steps 300\n' | cat train.run - >shuffle.run
printf 'order even 512 16\nsteps 256\n' | cat train.run - >even.run
printf 'order sequential\nsteps 300\n' | cat train.run - >sequential.run
set -- --ranks 16 --nodes 4 --block 64Ki --sample-steps 0 -q
tokmap audit shuffle.run "$@" --cache 1G --step-time 0.5 --price-request 4e-7 >out
holds out "storage: simulated, 4 nodes, each with a cache of 1.00 GB, blocks of 65.5 kB; the data has 100 MB"
holds out "  as it is: each byte is read "
holds out "  order even 512 16: each byte is read "
holds out "  order even 512 16, nodes: each byte is read 1."
holds out " requests/s, in its busiest 100 steps "
holds out "; costs 0.00"
holds out "  with 'order even 512 16, nodes', the run would read "
tokmap audit even.run "$@" --cache 100M --json >even.json
cp even.json out
json out
tokmap audit sequential.run "$@" --cache 100M --json >out
json out
tokmap audit sequential.run -q --json >out
equal "$(field out storage)" null
tokmap audit shuffle.run -q --sample-steps 0 --cache 1G >out
holds out "storage: simulated, 1 node, each with a cache of 1.00 GB, blocks of 4.19 MB"
python3 - <<'END'
import json
cases = json.load(open("even.json"))["storage"]["cases"]
assert [case["by_node"] for case in cases] == [False, True], cases
assert cases[1]["factor"] < 1.1 < 3.5 < cases[0]["factor"], cases
assert all(case["whole"] and case["nodes_simulated"] == 4 and case["steps_simulated"] == 256 for case in cases)
END

# A run of 10^12 tokens: some nodes, or the first steps.
cat >large.run <<'RUN'
seq_len 8192
batch   2048
order   even 2048 128
source  web synthetic:vocab=100000,tokens=1000000000000
passes  1
RUN
set -- large.run -q --ranks 1024 --nodes 128 --cache 2T --draws 1k --sample-steps 0 --json
if [ -n "${SANITIZE:-}" ]; then # 8 million rows take half a minute
    tokmap audit "$@" --steps 200 >large.json
else
    tokmap audit "$@" >large.json
    python3 - <<'END'
import json
cases = json.load(open("large.json"))["storage"]["cases"]
assert cases[0]["whole"] and cases[0]["nodes_simulated"] < 128 and not cases[1]["whole"], cases
assert cases[1]["factor"] < 1.15 < 50 < cases[0]["factor"], cases
assert 4e12 < cases[1]["bytes"] < 4.6e12, cases
END
fi

exits 2 tokmap audit even.run --ranks 16 --nodes 3 --cache 1G 2>err
holds err "--nodes is 3, which does not divide the 16 ranks"
exits 2 tokmap audit even.run --ranks 16 --nodes 0 --cache 1G 2>err
holds err "--nodes is 0"
exits 2 tokmap audit even.run --ranks 16 --nodes 4 2>err
holds err "--nodes needs --cache"
exits 2 tokmap audit even.run --cache 1G --block 1K 2>err
holds err "--block must be between 64Ki and 1Gi"
exits 2 tokmap audit even.run --cache 1G --step-time -1 2>err
exits 2 tokmap audit even.run --cache much 2>err
exits 1 tokmap audit even.run --cache 4M 2>err
holds err "--cache holds less than two blocks; make it larger"
