# Each case runs on a small dataset, prints one JSON object per line, and reports the metrics that other documents name.
. "$TOKMAP_CLI/helpers.sh"

export TMPDIR="$PWD"
small="--tokens 1m --repeats 2 --seconds 0.01 --text-bytes 1m --json"

# shellcheck disable=SC2086
for case in limits order slice loader open train pack verify; do
    tokmap-bench $case $small >$case.json 2>$case.err || { cat $case.err >&2; exit 1; }
    json $case.json
    for key in case metric value unit min max n; do
        equal "$(grep -vc "\"$key\":" $case.json || :)" 0 "$case: results without $key"
    done
    equal "$(sed 's/.*"metric": *"\([^"]*\)".*/\1/' $case.json | sort | uniq -d)" '' "$case: metrics named twice"
done

results limits.json limits memcpy_l1_gb_s memcpy_l2_gb_s memcpy_ram_gb_s page_cache_read_gb_s \
    gather_widen_i32_tokens_per_s
results order.json order draw_ns
results slice.json slice view_ns view_p99_ns view_p999_ns view_max_ns gather_mapped_us gather_mapped_p99_us \
    gather_mapped_p999_us gather_mapped_max_us gather_pread_us gather_pread_p99_us gather_pread_p999_us \
    gather_pread_max_us
results loader.json loader tokens_per_s tokens_per_s_i64 tokens_per_s_pread next_p50_us next_p99_us cpu_s_per_mtok \
    wait_p999_us rss_above_ring_mib
results open.json open start_ms open_us resume_us
results train.json train au_percent wait_p50_us wait_p99_us wait_p999_us wait_max_us stalls waits_over_10us
results pack.json pack text_mb_s peak_rss_mib
results verify.json verify gb_s

# The case tokenize, with a vocabulary, whose scanner is measured, and with the byte tokenizer, which has no scanner.
ranks
i=0
while [ $i -lt 2000 ]; do
    echo "hello $i \303\251 hello hello help"
    i=$((i + 1))
done >text
tokmap-bench tokenize text -t v.tiktoken --pattern gpt2 --repeats 2 --json >tokenize.json
json tokenize.json
results tokenize.json tokenize cold_mb_s warm_mb_s doc_cold_mb_s doc_warm_mb_s cold_tokens_per_s warm_tokens_per_s \
    threads2_ratio threads2_cpu_ratio compute2_ratio scan_mb_s cold_piece_ns warm_piece_ns hit_percent \
    cold_scan_percent cold_probe_percent cold_merge_percent pack_mb_s pack_loading_mb_s pack_peak_mib start_ms \
    memory_mib
tokmap-bench tokenize text -t bytes --documents --repeats 2 --json >bytes.json
json bytes.json
results bytes.json tokenize doc_cold_mb_s doc_warm_mb_s threads2_ratio start_ms memory_mib
equal "$(grep -c '"cold_mb_s"' bytes.json || :)" 0

# Results appear beside their limits.
for case in slice loader pack verify tokenize; do
    holds $case.json '"limit":'
    holds $case.json '"ratio":'
done

# No files are left.
equal "$(find . -name 'tokmap-bench-*' | wc -l | tr -d ' ')" 0 'files left behind'
