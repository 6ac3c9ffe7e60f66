/* SPDX-License-Identifier: MIT */
/*
 * case_loader.c - batches of shuffled windows on the host, warm.
 *
 * Two measurements: the rate at which a loader without a producer thread delivers batches, from the mapping and by
 * pread, beside the plain loop over the same mapping; and the first pass of a loader.
 *
 * With --cold the case runs loader_cold() instead, with --device case_loader_device.c, and with --values
 * case_loader_values.c.
 */
#include "cases.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset_values.h"
#include "harness/bench_data.h"
#include "harness/loops.h"
#include "harness/machine.h"
#include "harness/storage.h"
#include "platform/os.h"

/* ==== the case `loader` with --cold ==== */

/*
 * Batches of shuffled windows from cold storage: all tokens have been dropped from the page cache, and the loader reads
 * with pread.
 *
 * The limit is what the storage delivers: as many windows of the same order, at other places, read as whole pages with
 * O_DIRECT by 64 threads. The loader and the limit take turns in going first, so that neither profits from what the
 * other left in a cache of the storage device. With --values the loader delivers values, too, whose pages have also
 * been dropped, and the limit reads those of other rows.
 */

#define DEPTH 64 /* threads of the limit, each with one read in flight */
#define STARTING_NS 20000000
#define READ_MOST ((uint64_t)1 << 20) /* bytes */

/* Whole pages of a file. */
struct byte_range {
    uint64_t offset, bytes; /* bytes: at most READ_MOST */
};

struct cold {
    struct opened data;
    struct tokmap_shard_info shard; /* the largest one, from which the limit reads */
    uint64_t at, unit;              /* begin of its tokens, or its values, in the file, and the bytes of one */
    uint64_t first, count;          /* the limit reads those of tokens [first, first + count) of a row */
    uint64_t row_bytes;             /* that the loader needs of a row */
    double scale;                   /* of a token in rates */
    int direct;                     /* the file, opened with O_DIRECT; -1: the file system does not support that */
    struct byte_range *spans;
    uint64_t steps; /* of one repeat of the loader */
    uint64_t rows;  /* in those steps, and reads of one repeat of the limit */
    struct series rate, limit, amplification, amplification_limit, cpu, memory;
};

/* ---- the loader ---- */

static void cold_loader(struct bench *bench, struct cold *cold, uint64_t seed)
{
    struct tokmap_loader_options options = reader_options(bench, 1, READER_BOTH);
    struct reader reader;
    uint64_t tokens = 0;
    enum tokmap_status status;
    page_cache_drop(bench, cold->data.dataset);
    options.values = bench->options.values;
    struct tokmap_run *run = run_make(bench, dataset_name(bench), TOKMAP_READ_PREAD, seed, cold->steps);
    const uint64_t bytes = os_storage_bytes_read(), cpu = os_process_cpu_ns(), started = os_clock_ns();
    reader_open(bench, &reader, run, &options);
    while (!(status = reader_next(&reader)) && !bench_stopped())
        tokens += reader.batch.tokens;
    const double seconds = (double)(os_clock_ns() - started) / 1e9;
    const double cpu_seconds = (double)(os_process_cpu_ns() - cpu) / 1e9;
    if (status != TOKMAP_END && !bench_stopped())
        bench_failed(bench, &reader.error);
    series_add(&cold->memory, machine_own_mib());
    reader_close(&reader);
    tokmap_run_close(run);
    const uint64_t read = os_storage_bytes_read();
    series_add(&cold->rate, (double)tokens * cold->scale / seconds);
    series_add(&cold->cpu, cpu_seconds / ((double)tokens / 1e6));
    if (read != UINT64_MAX && tokens) {
        const uint64_t windows = tokens / bench->options.seq_len;
        series_add(&cold->amplification, (double)(read - bytes) / (double)(windows * cold->row_bytes));
    }
}

/* ---- the limit ---- */

/* Reads that threads share. */
struct direct_reads {
    int fd;
    const struct byte_range *ranges;
    uint64_t count;
    uint64_t next;       /* number of the next range; accessed atomically */
    uint64_t started_ns; /* 0: the threads wait until all have been started; accessed atomically */
    int system;          /* the errno of a failure, or 0; accessed atomically */
};

/* Reads ranges until none are left, and throws the bytes away. Thread 0 says when all begin. */
static void direct_read(void *user, uint32_t thread)
{
    struct direct_reads *reads = user;
    void *buffer = NULL;
    int system = os_memory_new(READ_MOST, false, &buffer);
    if (!thread) {
        os_sleep_ns(STARTING_NS);
        __atomic_store_n(&reads->started_ns, os_clock_ns(), __ATOMIC_RELEASE);
    }
    while (!__atomic_load_n(&reads->started_ns, __ATOMIC_ACQUIRE))
        os_sleep_ns(100000);
    while (!system) {
        const uint64_t mine = __atomic_fetch_add(&reads->next, 1, __ATOMIC_RELAXED);
        size_t got;
        if (mine >= reads->count)
            break;
        system = os_pread(reads->fd, buffer, (size_t)reads->ranges[mine].bytes, reads->ranges[mine].offset, &got);
    }
    os_memory_free(buffer, READ_MOST);
    if (system)
        __atomic_store_n(&reads->system, system, __ATOMIC_RELAXED);
}

/* Returns the smallest range of whole pages that contains the bytes [offset, offset + bytes) of a file. */
static struct byte_range page_span(uint64_t offset, uint64_t bytes)
{
    const uint64_t page = os_page_bytes(), first = round_down(offset, page);
    return (struct byte_range){first, round_up(offset + bytes, page) - first};
}

/* Finds the pages of the rows that follow those of the loader in the same order, as far as these rows are in the chosen
 * shard. Returns their number. */
static uint64_t cold_spans(struct bench *bench, struct cold *cold, uint64_t seed)
{
    struct tokmap_run *run = run_make(bench, dataset_name(bench), TOKMAP_READ_PREAD, seed, TOKMAP_FOREVER);
    uint64_t count = 0, bytes = 0;
    for (uint64_t step = cold->steps; step < 64 * cold->steps && count < cold->rows; step++)
        for (uint64_t row = 0; row < operand_slice(bench) && count < cold->rows; row++) {
            struct tokmap_place place;
            bench_check(bench, tokmap_run_locate(run, step, row, &place, &bench->error));
            const uint64_t first = place.first_token - cold->shard.first_token; /* huge if it is before the shard */
            if (first >= cold->shard.tokens || cold->first + cold->count > cold->shard.tokens - first)
                continue;
            cold->spans[count] = page_span(cold->at + (first + cold->first) * cold->unit, cold->count * cold->unit);
            bytes += cold->spans[count++].bytes;
        }
    tokmap_run_close(run);
    if (count)
        series_add(&cold->amplification_limit, (double)bytes / (double)(count * cold->count * cold->unit));
    return count;
}

static void cold_limit(struct bench *bench, struct cold *cold, uint64_t seed)
{
    const uint64_t count = cold_spans(bench, cold, seed);
    struct direct_reads reads = {.fd = cold->direct, .ranges = cold->spans, .count = count};
    /* O_DIRECT must look for cached pages of the ranges that it reads, which takes longer if there are some. */
    page_cache_drop(bench, cold->data.dataset);
    os_threads_share("direct-read", DEPTH, direct_read, &reads);
    const uint64_t ns = os_clock_ns() - reads.started_ns;
    bench_check_system(bench, reads.system, cold->shard.tokens_path, "The limit's reads with O_DIRECT failed.");
    series_add(&cold->limit, (double)(count * bench->options.seq_len) * cold->scale * 1e9 / (double)ns);
}

/* ---- the case ---- */

/* Sets what the limit reads: the windows' tokens, or the values of their targets. */
static void cold_choose(struct bench *bench, struct cold *cold)
{
    cold->unit = cold->data.info.width;
    cold->count = bench->options.seq_len + 1;
    cold->row_bytes = cold->count * cold->unit;
    cold->scale = 1;
    if (!bench->options.values)
        return;
    struct tokmap_dataset *values;
    struct values_array type;
    bench_check(bench, dataset_values_open(&values, &type, cold->data.dataset,
                                           dataset_values_name(bench, cold->data.dataset), &bench->error));
    tokmap_dataset_close(values);
    cold->unit = type.value_bytes;
    cold->at = VALUES_AT;
    cold->first = 1; /* the first token of a row is no target */
    cold->count = bench->options.seq_len;
    cold->row_bytes += cold->count * cold->unit;
    cold->scale = (double)cold->unit / 1e9;
}

/* Opens the tokens, or the values, of the largest shard with O_DIRECT. */
static void cold_open_direct(struct bench *bench, struct cold *cold)
{
    const char *values = bench->options.values;
    cold->shard = cold->data.first;
    for (uint64_t i = 1; i < cold->data.info.shards; i++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        bench_check(bench, tokmap_dataset_shard(cold->data.dataset, i, &shard, &bench->error));
        if (shard.tokens > cold->shard.tokens)
            cold->shard = shard;
    }
    char *path = values ? values_file_path(cold->shard.index_path, values, VALUES_FINAL) : NULL;
    if (values && !path)
        bench_no_memory(bench);
    cold->direct = -1;
    const int system = os_open(path ? path : cold->shard.tokens_path, OS_READ_DIRECT, &cold->direct);
    if (system == EINVAL)
        bench_say(bench, "the file system does not support O_DIRECT, so the results have no limit");
    else
        bench_check_system(bench, system, path ? path : cold->shard.tokens_path,
                           "The file cannot be opened with O_DIRECT.");
    free(path);
}

static void cold_open(struct bench *bench, struct cold *cold)
{
    cold->data = dataset_open(bench, TOKMAP_READ_PREAD);
    cold_choose(bench, cold);
    page_cache_drop(bench, cold->data.dataset); /* fails early if the tokens cannot be dropped */
    const uint64_t windows = cold->data.info.tokens / bench->options.seq_len;
    cold->steps = (uint64_t)(bench_seconds(bench, 0.5) * 64000) / operand_slice(bench);
    cold->steps = max64(1, min64(cold->steps, windows / bench->options.batch / 2));
    cold->rows = cold->steps * operand_slice(bench);
    if (cold->count * cold->unit > READ_MOST - 2 * os_page_bytes())
        bench_check(bench, error_set(&bench->error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                                     "What a row needs is larger than one read of the limit (1 MiB); give a smaller "
                                     "--seq-len."));
    cold->spans = bench_new(bench, cold->rows, sizeof *cold->spans);
    cold_open_direct(bench, cold);
}

static void cold_print(struct bench *bench, const struct cold *cold)
{
    const bool values = bench->options.values;
    const double rate = series_median(&cold->rate), limit = series_median(&cold->limit);
    struct series ratios = {.count = 0};
    for (size_t i = 0; i < cold->limit.count && i < cold->rate.count; i++)
        series_add(&ratios, cold->rate.values[i] / cold->limit.values[i]);
    bench_result(bench, values ? "values_gb_s" : "tokens_per_s", values ? "GB/s" : "tokens/s", &cold->rate,
                 cold->limit.count ? &cold->limit : NULL);
    bench_derived(bench, "ratio", "1", rate / limit, &ratios);
    bench_result(bench, "amplification", "1", &cold->amplification, &cold->amplification_limit);
    bench_result(bench, "cpu_s_per_mtok", "s/Mtoken", &cold->cpu, NULL);
    if (values)
        bench_result(bench, "values_memory_mib", "MiB", &cold->memory, NULL);
    if (cold->limit.count && values)
        bench_answer(bench,
                     "One loader reads %.2f GB/s of values with their tokens from this storage, %.2f times the rate of "
                     "%d threads that read as many values without a loader.",
                     rate, rate / limit, DEPTH);
    else if (cold->limit.count)
        bench_answer(bench,
                     "One loader reads %.3g M tokens/s (%.2g GB/s) from this storage, %.2f times the rate of %d "
                     "threads that read the same windows without a loader.",
                     rate / 1e6, rate * (double)cold->data.info.width / 1e9, rate / limit, DEPTH);
}

/* Runs it. Its results have the case name "cold". */
static int loader_cold(struct bench *bench)
{
    static struct cold cold;
    bench->name = "cold";
    cold_open(bench, &cold);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 9), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats)) {
        const uint64_t seed = repeats.number + 1; /* other windows in each repeat */
        const bool limit_first = repeats.number % 2;
        if (limit_first && cold.direct >= 0)
            cold_limit(bench, &cold, seed);
        cold_loader(bench, &cold, seed);
        if (!limit_first && cold.direct >= 0)
            cold_limit(bench, &cold, seed);
    }
    if (cold.direct >= 0)
        os_close(cold.direct);
    free(cold.spans);
    tokmap_dataset_close(cold.data.dataset);
    cold_print(bench, &cold);
    return CLI_DONE;
}

/* ==== the case `loader` ==== */

/* ---- the plain loop ---- */

/* The limit of the loader is a loop in plain C that reads windows and widens them into inputs and targets. It has no
 * order to compute, no ids to check, no ring and no statistics. */

/* Windows of a dataset in random order, each inside a single shard. Their pages are populated. */
struct plain {
    const uint8_t **at; /* address of each window's first byte */
    uint64_t *first;    /* number of its first token in the dataset */
    uint64_t count, next;
    uint64_t seq_len; /* each window has seq_len + 1 tokens */
    uint64_t shift;   /* number of the first token of window 0 */
    uint32_t width;
    /* The tokens of the dataset's first shard, to be read with bare calls of pread(). */
    int fd;
    uint64_t file_windows; /* that end in this file */
    uint8_t *window;       /* memory for one */
};

/* Returns the number of the next window, and advances to the one after it. */
static uint64_t plain_next(struct plain *plain)
{
    const uint64_t index = plain->next;
    plain->next = index + 1 == plain->count ? 0 : index + 1;
    return index;
}

static enum tokmap_status windows_find(struct plain *plain, const struct tokmap_dataset *dataset, uint64_t all,
                                       uint64_t most, struct tokmap_error *error)
{
    struct tokmap_order order;
    enum tokmap_status status = tokmap_order_init(&order, all, 2, "bench", 0);
    for (uint64_t draw = 0; !status && draw < all && plain->count < most; draw++) {
        struct tokmap_span spans[2];
        size_t used = 0;
        const uint64_t first = plain->shift + tokmap_order_window(&order, draw) * plain->seq_len;
        status = tokmap_dataset_view(dataset, first, plain->seq_len + 1, spans, 2, &used, error);
        if (status == TOKMAP_ERROR_LIMIT || (!status && used != 1)) {
            status = TOKMAP_OK; /* the window crosses the boundary of two shards */
            continue;
        }
        if (status)
            break;
        plain->first[plain->count] = first;
        plain->at[plain->count++] = spans[0].tokens;
    }
    if (!status && !plain->count)
        status = error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                           "No shard is long enough for a window of %" PRIu64 " tokens; give a smaller --seq-len.",
                           plain->seq_len + 1);
    return status;
}

/* Chooses windows of --seq-len + 1 tokens, one after another from token seq_len / 3 on: those of all epochs of a run
 * but the first begin at such a shift, so a window of 4 KiB has parts of two pages. The dataset must be mapped and must
 * stay open while the windows are used. Ends the program with a message if no shard is long enough for one. */
static void plain_open(struct bench *bench, struct plain *plain, const struct run_data *data)
{
    const struct tokmap_dataset *dataset = data->source.dataset;
    const uint64_t seq_len = bench->options.seq_len, tokens = data->info.tokens;
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    if (tokens <= seq_len)
        bench_check(bench, error_set(&bench->error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                                     "The dataset has %" PRIu64 " tokens, but a window needs %" PRIu64
                                     "; give a smaller --seq-len.",
                                     tokens, seq_len + 1));
    *plain = (struct plain){
        .seq_len = seq_len, .shift = min64(seq_len / 3, tokens - 1 - seq_len), .width = data->info.width};
    const uint64_t all = (tokens - 1 - plain->shift) / seq_len, most = min64(all, READER_WINDOWS_MOST);
    plain->at = bench_new(bench, most, sizeof *plain->at);
    plain->first = bench_new(bench, most, sizeof *plain->first);
    bench_check(bench, windows_find(plain, dataset, all, most, &bench->error));
    for (uint64_t i = 0; i < plain->count; i++)
        (void)os_map_populate(plain->at[i], (seq_len + 1) * plain->width); /* if this fails, the first repeat faults */
    bench_check(bench, tokmap_dataset_shard(dataset, 0, &shard, &bench->error));
    plain->file_windows = max64(1, (shard.tokens - min64(1 + plain->shift, shard.tokens)) / seq_len);
    plain->window = bench_new(bench, seq_len + 1, plain->width);
    bench_check_system(bench, os_open(shard.tokens_path, OS_READ, &plain->fd), shard.tokens_path,
                       "The tokens cannot be opened.");
}

static void plain_close(struct plain *plain)
{
    os_close(plain->fd);
    free(plain->window);
    free(plain->at);
    free(plain->first);
}

/* Reads the file's window in place of the dataset's window, which can be in another shard. */
static const uint8_t *plain_read(const struct plain *plain, uint64_t index)
{
    const uint64_t seq_len = plain->seq_len, shift = plain->shift;
    const uint64_t window = (plain->first[index] - shift) / seq_len % plain->file_windows;
    size_t got;
    (void)os_pread(plain->fd, plain->window, (size_t)((seq_len + 1) * plain->width),
                   (shift + window * seq_len) * plain->width, &got);
    return plain->window;
}

static void plain_batch(struct plain *plain, uint64_t rows, const struct outputs *outputs, enum tokmap_id_type type,
                        bool by_pread)
{
    const uint64_t row_bytes = plain->seq_len * (type == TOKMAP_ID_I64 ? 8 : 4);
    uint8_t *inputs = outputs->inputs, *targets = outputs->targets;
    for (uint64_t row = 0; row < rows; row++) {
        const uint64_t index = plain_next(plain);
        plain_widen_base(by_pread ? plain_read(plain, index) : plain->at[index], plain->width, plain->seq_len, type,
                         inputs + row * row_bytes, targets + row * row_bytes);
    }
}

/* ---- what is measured ---- */

struct found {
    /* Rates in tokens per second, and processor seconds per million tokens. */
    struct series i32, i64, pread, cpu, cpu_pread, plain_i32, plain_i64, plain_pread;
    struct spread next, plain_next; /* microseconds of calls */
};

struct loader_case {
    struct tokmap_run *mapped_run, *pread_run;
    struct reader mapped, pread; /* without a producer thread */
    struct plain plain;
    struct samples samples;
    struct found *found;
};

/* ---- without a producer thread ---- */

static void flat_out_open(struct bench *bench, struct loader_case *it, const char *name)
{
    const struct tokmap_loader_options options = reader_options(bench, 0, READER_BOTH);
    it->mapped_run = run_make(bench, name, TOKMAP_READ_MAPPED, 1, TOKMAP_FOREVER);
    it->pread_run = run_make(bench, name, TOKMAP_READ_PREAD, 1, TOKMAP_FOREVER);
    reader_open(bench, &it->mapped, it->mapped_run, &options);
    reader_open(bench, &it->pread, it->pread_run, &options);
    const struct run_data data = run_get_data(bench, it->mapped_run);
    page_cache_warm(bench, data.source.dataset); /* before any page is mapped */
    /* The plain loop reads the same mapping as the loader, so both have the same page sizes. */
    plain_open(bench, &it->plain, &data);
    (void)reader_first_pass(bench, &it->mapped, data.source.windows);
    (void)reader_first_pass(bench, &it->pread, data.source.windows);
}

/* Runs the plain loop as the limit of the loader's outputs of `type`. If samples is not NULL, the time of each batch is
 * added to it. Returns tokens per second. */
static double plain_repeat(struct bench *bench, struct loader_case *it, enum tokmap_id_type type, bool by_pread,
                           struct samples *samples)
{
    const uint64_t length = (uint64_t)(bench_seconds(bench, 0.4) * 1e9), rows = bench->options.rows;
    const uint64_t started = os_clock_ns();
    uint64_t batches = 0, now = started;
    while (now - started < length) {
        const int looks_after = samples ? 1 : 16; /* batches for each look at the clock */
        for (int i = 0; i < looks_after; i++)
            plain_batch(&it->plain, rows, &it->mapped.outputs, type, by_pread);
        const uint64_t then = os_clock_ns();
        if (samples)
            samples_add(samples, then - now);
        now = then;
        batches += (uint64_t)looks_after;
    }
    return (double)(batches * rows * bench->options.seq_len) / ((double)(now - started) / 1e9);
}

static void flat_out_repeat(struct bench *bench, struct loader_case *it)
{
    const double seconds = bench_seconds(bench, 0.4);
    struct found *found = it->found;
    double cpu = 0;
    series_add(&found->i32, reader_repeat(bench, &it->mapped, TOKMAP_ID_I32, seconds, NULL, &cpu));
    series_add(&found->cpu, cpu);
    series_add(&found->plain_i32, plain_repeat(bench, it, TOKMAP_ID_I32, false, NULL));
    series_add(&found->i64, reader_repeat(bench, &it->mapped, TOKMAP_ID_I64, seconds, NULL, NULL));
    series_add(&found->plain_i64, plain_repeat(bench, it, TOKMAP_ID_I64, false, NULL));
    series_add(&found->pread, reader_repeat(bench, &it->pread, TOKMAP_ID_I32, seconds, NULL, &cpu));
    series_add(&found->cpu_pread, cpu);
    series_add(&found->plain_pread, plain_repeat(bench, it, TOKMAP_ID_I32, true, NULL));
    samples_clear(&it->samples);
    (void)reader_repeat(bench, &it->mapped, TOKMAP_ID_I32, seconds, &it->samples, NULL);
    spread_add(&found->next, &it->samples, 1000);
    samples_clear(&it->samples);
    (void)plain_repeat(bench, it, TOKMAP_ID_I32, false, &it->samples);
    spread_add(&found->plain_next, &it->samples, 1000);
}

/* ---- the first pass, which maps pages and compares them with their hashes, beside the pass after it ---- */

/* Makes `passes` passes of a loader that has just been opened, and sets rates[i] to the tokens per second of pass i.
 * A pass ends after READER_WINDOWS_MOST rows. */
static void passes_make(struct bench *bench, const char *name, uint32_t threads, uint32_t passes, double *rates)
{
    const struct tokmap_loader_options options = reader_options(bench, threads, READER_BOTH);
    struct tokmap_run *run = run_make(bench, name, TOKMAP_READ_MAPPED, 1, TOKMAP_FOREVER);
    struct reader reader;
    const uint64_t windows = run_get_data(bench, run).source.windows;
    const uint64_t batches = max64(1, min64(windows, READER_WINDOWS_MOST) / bench->options.rows);
    reader_open(bench, &reader, run, &options);
    for (uint32_t pass = 0; pass < passes; pass++) {
        const uint64_t started = os_clock_ns();
        reader_take(bench, &reader, batches);
        rates[pass] = (double)(batches * bench->options.rows * bench->options.seq_len) /
                      ((double)(os_clock_ns() - started) / 1e9);
    }
    reader_close(&reader);
    tokmap_run_close(run);
}

/* Measures the first pass. The dataset must be in the page cache, and this process must have no mapping of it. */
static void measure_first_pass(struct bench *bench, const char *name)
{
    static struct series first[2], second[2];
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 5), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats))
        for (uint32_t threads = 0; threads < 2; threads++) {
            double rates[2] = {0, 0};
            passes_make(bench, name, threads, 2, rates);
            series_add(&first[threads], rates[0]);
            series_add(&second[threads], rates[1]);
        }
    bench_result(bench, "tokens_per_s_first_pass", "tokens/s", &first[0], &second[0]);
    bench_result(bench, "tokens_per_s_first_pass_producer", "tokens/s", &first[1], &second[1]);
}

/* ---- the case ---- */

static void print_found(struct bench *bench, const struct found *found)
{
    bench_result(bench, "tokens_per_s", "tokens/s", &found->i32, &found->plain_i32);
    bench_result(bench, "tokens_per_s_i64", "tokens/s", &found->i64, &found->plain_i64);
    bench_result(bench, "tokens_per_s_pread", "tokens/s", &found->pread, &found->plain_i32);
    bench_result(bench, "plain_pread_tokens_per_s", "tokens/s", &found->plain_pread, NULL);
    bench_result(bench, "cpu_s_per_mtok", "s/Mtoken", &found->cpu, NULL);
    bench_result(bench, "cpu_s_per_mtok_pread", "s/Mtoken", &found->cpu_pread, NULL);
    bench_spread(bench, "next", "us", &found->next, &found->plain_next);
    const double rate = series_median(&found->i32), plain = series_median(&found->plain_i32);
    bench_answer(
        bench,
        "One thread delivers %.2f G tokens/s from memory, as 32-bit inputs and targets: %.2f times the rate of "
        "a loop in plain C in the same minutes. Other machines have other rates; compare that ratio, and ask "
        "`tokmap-bench check` whether it is enough.",
        rate / 1e9, rate / plain);
}

static int run(struct bench *bench)
{
    static struct found found;
    struct loader_case it = {.found = &found};
    if (bench->options.child || bench->options.device_given)
        return case_loader_device.run(bench);
    if (bench->options.cold)
        return loader_cold(bench);
    if (bench->options.values)
        return case_loader_values.run(bench);
    const char *name = dataset_name(bench);
    bench_samples_new(bench, &it.samples, (size_t)1 << 21);
    flat_out_open(bench, &it, name);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 7), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats))
        flat_out_repeat(bench, &it);
    reader_close(&it.mapped);
    reader_close(&it.pread);
    plain_close(&it.plain);
    tokmap_run_close(it.mapped_run);
    tokmap_run_close(it.pread_run);
    samples_free(&it.samples);
    print_found(bench, &found);
    measure_first_pass(bench, name);
    return CLI_DONE;
}

const struct bench_case case_loader = {
    "loader", "batches on the host: rate, latency, CPU time, the first pass; --cold: from storage; --device: to a GPU",
    .run = run, .reads_files = true};
