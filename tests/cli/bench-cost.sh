# SPDX-License-Identifier: MIT
# tokmap-bench cost: what loading a run costs, by rows that were measured, compared with a calculation by hand.
. "$TOKMAP_CLI/helpers.sh"

cat >big.run <<'EOF'
source text synthetic:vocab=50257,tokens=15000000000000
seq_len 8192
batch   2048
passes  1
EOF
# 894,069 steps of 2,048 rows of 8,192 tokens. Two runs of the comparison: the older one is of another machine and
# another length, and has a system more.
python3 - <<'EOF'
import json
old = {"command": "tokmap-bench compare loaders old", "machine": "another machine", "date": "2026-01-01T00:00:00Z"}
new = {"command": "tokmap-bench compare loaders new --seq-len 8Ki", "machine": "a machine",
       "date": "2026-02-01T00:00:00Z"}
measured = [(old, "tokmap", "cpu_s_per_mtok", 99), (old, "peer", "cpu_s_per_mtok", 0.25),
            (new, "tokmap", "cpu_s_per_mtok", 0.0009), (new, "tokmap", "cold_cpu_s_per_mtok", 0.0045),
            (new, "tokmap", "amplification", 1.25), (new, "tokmap", "cold_requests_per_mtok", 126),
            (new, "tokmap", "memory_mib", 40), (new, "tokmap", "cold_tokens_per_s", 1000),
            (new, "tokmap", "readahead_kib", 128), (new, "plain", "cpu_s_per_mtok", 0.0018),
            (new, "plain", "cold_cpu_s_per_mtok", 0.009)]
with open("rows.jsonl", "w") as file:
    for about, row, metric, value in measured:
        file.write(json.dumps({"case": "compare", "table": "loaders", "row": row, "metric": metric, "value": value,
                               "unit": "x", "better": "less", "min": value, "max": value, "n": 1, **about}) + "\n")
EOF
tokmap-bench cost big.run --gpus 4 --step-ms 500 --figures rows.jsonl --json >printed 2>err
json printed
python3 - <<'EOF'
import json
printed = [row for row in map(json.loads, open("printed")) if row["case"] == "cost" and "row" in row]
found = {(row["row"], row["metric"]): row for row in printed}
steps = 15 * 10 ** 12 // 8192 // 2048
tokens = steps * 2048 * 8192
run_s, load_s = steps * 0.5, tokens / 4 / 1000
wanted = {("the run", "tokens"): tokens, ("the run", "steps"): steps, ("the run", "hours"): run_s / 3600,
          ("the run", "needed_tokens_per_s"): 2048 * 8192 / 0.5,
          ("tokmap", "memory_core_hours"): 0.0009 * tokens / 1e6 / 3600,
          ("tokmap", "storage_core_hours"): 0.0045 * tokens / 1e6 / 3600,
          ("tokmap", "storage_bytes"): 1.25 * tokens * 2, ("tokmap", "storage_requests"): 126 * tokens / 1e6,
          ("tokmap", "loaders_bytes"): 4 * 40 * 2 ** 20,
          ("tokmap", "storage_wait_gpu_hours"): (load_s - run_s) * 4 / 3600,
          ("plain", "memory_core_hours"): 0.0018 * tokens / 1e6 / 3600,
          ("plain", "storage_core_hours"): 0.009 * tokens / 1e6 / 3600,
          ("peer", "memory_core_hours"): 0.25 * tokens / 1e6 / 3600}
assert load_s > run_s
assert set(found) - set(wanted) == {("the run", "device_readahead_kib")}, set(found) ^ set(wanted)
for key, value in wanted.items():
    assert abs(found[key]["value"] / value - 1) < 1e-9, (key, found[key]["value"], value)
ours, peer = found["tokmap", "storage_bytes"], found["peer", "memory_core_hours"]
assert ours["measured_machine"] == "a machine" and ours["measured_date"] == "2026-02-01T00:00:00Z", ours
assert ours["measured_seq_len"] == 8192 and ours["measured_readahead_kib"] == 128, ours
assert ours["measured_command"] == "tokmap-bench compare loaders new --seq-len 8Ki", ours
assert peer["measured_machine"] == "another machine" and peer["measured_seq_len"] == 2048, peer
assert peer["measured_readahead_kib"] is None, peer
EOF

# The table quotes where each row is from; what was not measured is a question mark.
tokmap-bench cost big.run --gpus 1024 --step-ms 8000 --figures rows.jsonl >table
holds table 'big.run: 15 T tokens in rows of 8,192, 894,069 steps of 8000 ms on 1,024 GPUs: 1,987 hours'
holds table '[1] 2026-02-01, rows of 8,192 tokens, readahead 128 KiB, a machine: tokmap-bench compare loaders new'
holds table '[2] 2026-01-01, rows of 2,048 tokens, another machine: tokmap-bench compare loaders old'
grep -q '^tokmap  *3.75 core-h  *18.7 core-h  *37.5 TB  *1.89 G  *42.9 GB ' table || { cat table >&2; exit 1; }
grep -q '^peer  *1,042 core-h  *?  *?  *?  *?  *?  *\[2\]' table || { cat table >&2; exit 1; }
holds table 'takes tokmap 18.7 core-hours from storage and 3.75 from memory; the cheapest other loader, plain, takes 37'
grep -q 'block device' table

# What the caches of nodes read, in blocks of 64 KiB: 100,000,000 bytes are 1,526 blocks.
printf 'seq_len 1024\nbatch 64\nseed 3\nsource web synthetic:vocab=1000,tokens=50000000\n' >train.run
printf 'passes 2\n' | cat train.run - >shuffle.run
printf 'order even 512 16\nsteps 256\n' | cat train.run - >even.run
set -- --gpus 16 --nodes 4 --step-ms 500 --figures rows.jsonl --block 64Ki
tokmap-bench cost shuffle.run "$@" --cache 1G --json >shuffle.json 2>err
tokmap-bench cost even.run "$@" --cache 60M --json >even.json 2>err
tokmap-bench cost even.run "$@" --cache 60M >table
holds table 'the run, on 4 nodes with a cache of 60.0 MB each: simulated 256 steps, each byte is read '
holds table 'the run, with nodes, on 4 nodes with a cache of 60.0 MB each: simulated 256 steps, each byte is read 1.0'
python3 - <<'EOF'
import json
def read(path):
    rows = [row for row in map(json.loads, open(path)) if row["case"] == "cost" and "row" in row]
    return {(row["row"], row["metric"]): row["value"] for row in rows}
shuffle, even = read("shuffle.json"), read("even.json")
# Every node reads every block once, whatever the number of passes.
assert shuffle["the run", "cache_requests"] == 4 * 1526, shuffle
assert shuffle["the run", "cache_bytes"] == 4 * 100_000_000, shuffle
assert abs(shuffle["the run", "cache_reads"] - 2) < 0.1, shuffle
assert ("the run, with nodes", "cache_reads") not in shuffle, shuffle
assert even["the run, with nodes", "cache_reads"] < 1.1 < 3.5 < even["the run", "cache_reads"], even
assert even["the run", "cache_steps_simulated"] == 256, even
EOF
exits 2 tokmap-bench cost even.run "$@" --cache 1G --nodes 3 2>err
holds err '--nodes, the machines with a cache each, must divide --gpus'
exits 2 tokmap-bench cost even.run "$@" --cache 1G --block 1K 2>err
holds err '--block must be between 64Ki and 1Gi'
exits 1 tokmap-bench cost even.run "$@" --cache 4k 2>err
holds err '--cache holds no block; choose another --block'

# What is missing is named.
sed '/^passes/d' big.run >endless.run
exits 1 tokmap-bench cost endless.run --gpus 4 --step-ms 500 --figures rows.jsonl 2>err
holds err 'endless.run: the run has no end, and so no cost; set its steps or passes'
exits 2 tokmap-bench cost big.run --gpus 0 --step-ms 500 2>err
holds err '--gpus must be at least 1'
exits 2 tokmap-bench cost big.run --step-ms 500 2>err
holds err '--gpus must be at least 1'
exits 2 tokmap-bench cost big.run --gpus 4 2>err
holds err '--step-ms is missing'
exits 2 tokmap-bench cost --gpus 4 --step-ms 500 2>err
holds err 'name a run file'
exits 2 tokmap-bench cost big.run --gpus 2049 --step-ms 500 --figures rows.jsonl 2>err
holds err '2049 GPUs cannot share a global batch of 2048 rows'
exits 1 tokmap-bench cost big.run --gpus 4 --step-ms 500 --figures nowhere 2>err
holds err nowhere
grep -v loaders rows.jsonl >none.jsonl || :
exits 1 tokmap-bench cost big.run --gpus 4 --step-ms 500 --figures none.jsonl 2>err
holds err 'no loader was measured in none.jsonl; measure with `tokmap-bench compare loaders --seq-len 8192 --json >'
tokmap-bench cost --help >help
holds help '--gpus'
holds help '--figures'
holds help '--step-ms'
