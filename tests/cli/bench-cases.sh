# SPDX-License-Identifier: MIT
# Each case runs on a small dataset, prints one JSON object per line, and reports the metrics that other documents name.
. "$TOKMAP_CLI/helpers.sh"

export TMPDIR="$PWD"
small="--tokens 1m --repeats 1 --seconds 0.01 --text-bytes 500k --json"

# shellcheck disable=SC2086
for case in order loader open train pack verify; do
    tokmap-bench $case $small >$case.json 2>$case.err || { cat $case.err >&2; exit 1; }
    json $case.json
    for key in case metric value unit better min max n; do
        equal "$(grep -vc "\"$key\":" $case.json || :)" 0 "$case: results without $key"
    done
    equal "$(sed 's/.*"metric": *"\([^"]*\)".*/\1/' $case.json | sort | uniq -d)" '' "$case: metrics named twice"
done

results order.json order draw_ns
results loader.json loader tokens_per_s tokens_per_s_i64 tokens_per_s_pread next_p50_us next_p99_us cpu_s_per_mtok \
    tokens_per_s_first_pass tokens_per_s_first_pass_producer
# Values are created beside the dataset, and removed; those of another dataset are named.
# shellcheck disable=SC2086
tokmap-bench loader --values 16 $small >values.json
json values.json
results values.json loader values_gb_s values_gb_s_producer values_memory_mib
equal "$(ls | grep -c -e '\.values' -e '\.bin' || :)" 0 'files of values left behind'
# shellcheck disable=SC2086
tokmap-bench loader --values 16 --keep --dir . $small >out
made=$(ls *.values)
tokmap-bench loader "${made%%.*}" --values "$(echo "$made" | cut -d. -f2)" --repeats 1 --seconds 0.01 --json >named.json
results named.json loader values_gb_s
rm ./*.values ./*.bin ./*.tmx
results open.json open start_ms shards10000_ms shards10000_mib
results train.json train au_percent uncached_au_percent wait_p50_us wait_p99_us wait_p999_us wait_max_us stalls \
    waits_over_10us
# Waits are far below a step: beside a loop that does nothing they have no ratio that looks like a disaster.
equal "$(grep '"wait_p50_us"' train.json | grep -c '"ratio"' || :)" 0 'ratio of waits'
results train.json train wait_percent others_percent steal_percent load_average
# Which way is better is said of each result that has one.
for less in 'train.json wait_p50_us' 'train.json stalls' 'loader.json cpu_s_per_mtok' 'open.json start_ms' \
    'order.json draw_ns'; do
    grep "\"metric\": \"${less#* }\"" "${less% *}" | grep -q '"better": "less"' ||
        { echo "FAULT: $less is better if it is less" >&2; exit 1; }
done
for more in 'train.json au_percent' 'loader.json tokens_per_s' 'verify.json gb_s' 'pack.json text_mb_s'; do
    grep "\"metric\": \"${more#* }\"" "${more% *}" | grep -q '"better": "more"' ||
        { echo "FAULT: $more is better if it is more" >&2; exit 1; }
done
results pack.json pack text_mb_s text_peak_mib jsonl_mb_s jsonl_peak_mib jsonl_zst_mb_s shuffle_mb_s dedup_mb_s \
    seal_mb_s sealed_percent twice_threads_mb_s shards_mb_s tasks_mb_s minhash_mb_s exclude_mb_s split_mb_s \
    jsonl_zst_twice_threads_mb_s also_mb_s three_threads_mb_s three_tasks_mb_s busy_jsonl_mb_s busy_shuffle_mb_s \
    busy_also_mb_s
equal "$(grep -c before_ratio pack.json || :)" 0 'ratios to another command that was not named'
# Another command is measured as well, whose time and memory are beside ours.
# shellcheck disable=SC2086
tokmap-bench pack $small --before "$(command -v tokmap)" >before.json 2>err || { cat err >&2; exit 1; }
json before.json
for way in text jsonl minhash three_tasks busy_also; do
    results before.json pack ${way}_before_ratio ${way}_before_cpu_ratio
done
grep '"jsonl_before_ratio"' before.json | grep -q '"better": "more"'
grep '"jsonl_peak_mib"' before.json | grep -q '"limit":'
# shellcheck disable=SC2086
exits 1 tokmap-bench pack $small --before "$PWD/nowhere" >out 2>err
holds err nowhere
exits 2 tokmap-bench pack --memory --before tokmap 2>err
holds err 'leave --before out'
tokmap-bench pack --memory --tiny-documents 1000 --text-bytes 1m --json >memory.json 2>err || { cat err >&2; exit 1; }
json memory.json
results memory.json pack tiny_plain_peak_mib tiny_shuffle_peak_mib tiny_dedup_peak_mib tiny_minhash_peak_mib \
    large_peak_mib tiny_plain_s tiny_shuffle_s tiny_dedup_s tiny_minhash_s large_s
equal "$(grep -c '_peak_mib.*"better": "less".*"verdict": "' memory.json)" 5 'peaks with a verdict'
results verify.json verify gb_s

# The case tokenize, with a vocabulary and with the byte tokenizer.
ranks
i=0
while [ $i -lt 2000 ]; do
    echo "hello $i \303\251 hello hello help"
    i=$((i + 1))
done >text
tokmap-bench tokenize text -t v.tiktoken --pattern gpt2 --repeats 2 --json >tokenize.json
json tokenize.json
grep '"metric": "token_bytes"' tokenize.json | grep -q '"better": null'
results tokenize.json tokenize cold_mb_s warm_mb_s doc_cold_mb_s doc_warm_mb_s token_bytes \
    threads2_ratio threads2_warm_ratio compute2_ratio lookup2_8mib_ratio pack_mb_s pack_loading_mb_s pack_peak_mib \
    start_ms
tokmap-bench tokenize text -t bytes --documents --repeats 2 --json >bytes.json
json bytes.json
results bytes.json tokenize doc_cold_mb_s doc_warm_mb_s threads2_ratio start_ms
equal "$(grep -c '"cold_mb_s"' bytes.json || :)" 0

# Slow texts, some of which are made from the tokens of the vocabulary. The byte tokenizer has no tokens for those.
tokmap-bench tokenize --worst text -t v.tiktoken --pattern gpt2 --repeats 1 --json >worst.json
json worst.json
for text in suffixes suffixes_long suffixes_words lines emoji words marks han; do
    results worst.json tokenize ${text}_cold_mb_s ${text}_warm_mb_s ${text}_cold_slower ${text}_warm_slower
done
results worst.json tokenize prose_cold_mb_s prose_warm_mb_s worst_cold_slower worst_warm_slower
grep '"metric": "worst_cold_slower"' worst.json | grep -q '"better": "less"'
awk -F'"metric": "' '/_cold_(mb_s|slower)"/ {
        name = $2; sub(/".*/, "", name); value = $2; sub(/.*"value": /, "", value); found[name] = value + 0 }
    END { text = found["words_cold_slower"] * found["words_cold_mb_s"] / found["prose_cold_mb_s"]
          exit !(text > 0.999 && text < 1.001 && found["worst_cold_slower"] >= found["words_cold_slower"]) }' worst.json
tokmap-bench tokenize --worst text -t bytes --repeats 1 --json >worst.json 2>err
results worst.json tokenize words_cold_slower
equal "$(grep -c '"suffixes_cold_mb_s"' worst.json || :)" 0
exits 2 tokmap-bench tokenize --worst text -t bytes --against gigatoken 2>err
holds err 'give one of the two'

# Results appear beside their limits.
for case in loader pack verify tokenize; do
    holds $case.json '"limit":'
    holds $case.json '"ratio":'
done

# The table has the column, and a sentence below it.
tokmap-bench train --tokens 1m --repeats 1 --seconds 0.6 --step-ms 1 >table 2>err
grep -qE '^metric +median +unit +better +min' table
grep -qE '^train\.au_percent .* more ' table
grep -qE '^Data loading (is|slows) ' table
holds table 'of all time is computing, beside'
holds table 'load average'
holds table 'other programs used'
tokmap-bench loader --tokens 1m --repeats 1 --seconds 0.01 >table 2>err
grep -qE '^One thread delivers [0-9.]+ G tokens/s from memory' table

# A machine that others keep busy is reported: two loops that spin are 10% of all but very large machines.
if [ "$(nproc 2>/dev/null || echo 99)" -le 8 ]; then
    for i in 1 2; do
        (while :; do :; done) &
        spins="${spins:-} $!"
    done
    tokmap-bench train --tokens 1m --repeats 1 --seconds 1.5 --step-ms 1 --wait sleep >table 2>err
    # shellcheck disable=SC2086
    kill $spins
    holds err 'tokmap-bench train: warning: other programs used '
    holds err 'run it again when the machine is quiet'
fi

# The processes that keep the machine busy end when the command is killed.
mkdir busy
tokmap-bench pack --text-bytes 20m --dir "$PWD/busy" >table 2>err &
loads() {
    for one in /proc/[0-9]*/cmdline; do
        tr '\0' ' ' <"$one" && echo
    done 2>/dev/null | grep -c -e "--child [l]oad pack .*--dir $PWD/busy"
}
await loads >counts
kill -KILL $!
idle() { ! loads >counts; }
await idle
rm -r busy

# No files are left.
equal "$(find . -name 'tokmap-bench-*' | wc -l | tr -d ' ')" 0 'files left behind'
