# SPDX-License-Identifier: MIT
# ci: tsan
# `tokmap-bench check`: one sentence, the figures below it, and an exit status that a job can use.
. "$TOKMAP_CLI/helpers.sh"

export TMPDIR="$PWD"
need python3
tokmap-bench verify --tokens 4m --repeats 1 --keep >/dev/null 2>&1
made=$(find . -name 'tokmap-bench-*.tmx')
mkdir data
mv "$made" data/web.tmx
mv "${made%.tmx}.bin" data/web.bin
printf 'seq_len 512\nbatch 32\nseed 7\nsource web data/web\npasses 1\n' >train.run

# verdict FILE: prints the line of the verdict.
verdict()
{
    grep '"metric": "verdict"' "$1" >verdict.json
    cat verdict.json
}

# Two ranks that need little: 32 rows of 1 KiB in each 50 ms are 655 kB/s. A machine that is busy enough may be a
# bottleneck even so.
tokmap-bench check train.run --step-ms 50 --ranks 2 --seconds 0.3 >table 2>err
grep -qE '^(ok|tight|bottleneck): 2 ranks need 0\.66 MB/s; ' table ||
    { echo "FAULT: no sentence" >&2; cat table err >&2; exit 1; }
holds table 'A step would wait '
# The sentence comes before the figures.
equal "$(grep -oE '^(ok|tight|bottleneck): |^metric ' table | tail -n 1)" 'metric '
for metric in need_gb_s need_tokens_per_s warm_gb_s warm_tokens_per_s warm_fastest_step_ms warm_wait_percent \
    warm_wait_p50_ms warm_wait_p99_ms warm_wait_max_ms warm_au_percent warm_first_wait_ms warm_cpu_ms_per_step; do
    holds table "check.$metric "
done
grep -qE '^check\.warm_gb_s .* more ' table
grep -qE '^check\.warm_wait_percent .* less ' table

tokmap-bench check train.run --step-ms 50 --ranks 2 --seconds 0.3 --json >check.json
json check.json
results check.json check need_gb_s warm_gb_s warm_wait_p99_ms warm_au_percent verdict
case $(stat -f -c %T . 2>/dev/null || echo unknown) in
    tmpfs | ramfs) holds check.json 'cold was not measured' ;;
    *) results check.json check cold_gb_s cold_tokens_per_s cold_wait_percent cold_wait_p99_ms cold_au_percent ;;
esac
equal "$(sed 's/.*"metric": *"\([^"]*\)".*/\1/' check.json | sort | uniq -d)" '' 'metrics named twice'
equal "$(grep -vcE '"better": ("more"|"less"|null), "min"' check.json || :)" 0 'results that do not say what is better'
# The verdict follows from the figures.
verdict check.json >/dev/null
python3 - <<'END'
import json
found = {row["metric"]: row for row in map(json.loads, open("check.json"))}
side = [name for name in ("cold", "warm") if name + "_gb_s" in found]
room = min(found[name + "_gb_s"]["ratio"] for name in side)
wait = max(found[name + "_wait_percent"]["value"] for name in side)
wanted = "bottleneck" if room < 1 or wait >= 5 else "tight" if room < 2 or wait >= 1 else "ok"
verdict = found["verdict"]
assert verdict["verdict"] == wanted, (verdict, room, wait)
assert verdict["value"] == ["ok", "tight", "bottleneck"].index(wanted)
assert (verdict["binds"] == "nothing") == (wanted == "ok")
END
status=0
tokmap-bench check train.run --step-ms 50 --ranks 2 --seconds 0.3 --require ok --json >required.json || status=$?
verdict required.json | grep -q '"verdict": "ok"' && wanted=0 || wanted=1
equal $status $wanted 'status with --require ok'
# What the ranks need is arithmetic: 32 rows of 512 tokens of 2 bytes in 50 ms; of 16 of 64 ranks a quarter.
python3 - <<'END'
import json
need = [json.loads(line) for line in open("check.json") if '"need_gb_s"' in line][0]["value"]
assert abs(need - 32 * 512 * 2 / 0.05 / 1e9) < 1e-9, need
END
tokmap-bench check train.run --step-ms 50 --ranks 2 --world 8 --seconds 0.2 --json >part.json
python3 - <<'END'
import json
need = [json.loads(line) for line in open("part.json") if '"need_gb_s"' in line][0]["value"]
assert abs(need - 8 * 512 * 2 / 0.05 / 1e9) < 1e-9, need
END

# No machine feeds a step of 32 rows in a tenth of a microsecond: a bottleneck, which only --require makes a failure.
tokmap-bench check train.run --step-ms 0.0001 --seconds 0.1 --json >fast.json
verdict fast.json | grep -q '"verdict": "bottleneck", "binds": "[a-z]*", "sentence": "bottleneck: 1 rank needs '
exits 1 tokmap-bench check train.run --step-ms 0.0001 --seconds 0.1 --require tight >table 2>err
holds table 'bottleneck: 1 rank needs '
grep -qE 'The (processors|storage) binds?: |threads bind' table
# --wait spin, and several calls in a step.
tokmap-bench check train.run --step-ms 5 --ranks 3 --rows 3 --wait spin --seconds 0.2 --json >spin.json
results spin.json check verdict warm_wait_p50_ms

# Without a step time: how often these ranks can be fed a step, also if the time is over before the first one.
tokmap-bench check train.run --ranks 2 --seconds 0.000001 >table 2>err
grep -qE '^This machine can feed 2 ranks a step every [0-9.]+ (us|ms|s)' table
holds table 'With --step-ms'
equal "$(grep -c wait_p99 table || :)" 0 'waits without a step'

# A dataset without a run file, a synthetic one, and one of four bytes that the command creates.
tokmap-bench check data/web --seq-len 512 --batch 32 --step-ms 50 --seconds 0.1 --json >dataset.json
results dataset.json check need_gb_s warm_gb_s verdict
tokmap-bench check synthetic:vocab=50257 --seq-len 512 --batch 32 --step-ms 50 --seconds 0.1 >table 2>err
holds table 'cold was not measured: the dataset has no files'
tokmap-bench check --tokens 1m --width 4 --seq-len 512 --batch 32 --step-ms 50 --ranks 2 --seconds 0.1 --json >own.json
python3 - <<'END'
import json
need = [json.loads(line) for line in open("own.json") if '"need_gb_s"' in line][0]["value"]
assert abs(need - 32 * 512 * 4 / 0.05 / 1e9) < 1e-9, need
END
equal "$(find . -name 'tokmap-bench-*' | wc -l | tr -d ' ')" 0 'files left behind'

# Nothing to measure.
exits 2 tokmap-bench check 2>err
holds err 'name a run file'
exits 2 tokmap-bench check data/web 2>err
holds err '--seq-len and --batch'
exits 2 tokmap-bench check train.run --require ok 2>err
holds err '--step-ms'
exits 2 tokmap-bench check train.run --cold 2>err
holds err 'both cold and warm'
exits 2 tokmap-bench check train.run --device 0 2>err
holds err 'train --device'
exits 2 tokmap-bench check train.run --ranks 33 2>err
holds err '33 ranks cannot share a global batch of 32 rows; lower --ranks'
exits 2 tokmap-bench check train.run --ranks 4 --world 2 2>err
holds err '--world'
exits 2 tokmap-bench check synthetic:vocab=9 --batch 100000 --ranks 300 2>err
holds err 'at most 256'
exits 1 tokmap-bench check nowhere --batch 4 2>err
holds err nowhere

# A signal ends the ranks, too.
tokmap-bench check train.run --step-ms 100 --ranks 2 --seconds 30 >/dev/null 2>&1 &
child=$!
sleep 1
kill -TERM $child
status=0
wait $child || status=$?
equal $status 143 'status after SIGTERM'
