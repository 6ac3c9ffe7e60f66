/*
 * case_loader.c - batches of shuffled single windows on the host: flat out without a producer, by both ways of reading,
 * beside the plain loop; waits of a consumer that takes half of what it can with a producer; memory above the ring.
 * With --cold case_loader_cold.c, with --device case_loader_device.c.
 */
#include "case_loader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/child.h"
#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/dataset_make.h"
#include "harness/plain_loop.h"
#include "platform/os.h"
#include "harness/reader.h"

#define BOTH (TOKMAP_INPUTS | TOKMAP_TARGETS)

struct found {
    struct series i32, i64, pread, cpu, cpu_pread, first_pass, producer, paced;
    struct series plain_i32, plain_i64, plain_i32_inputs;
    struct spread next, plain_next;
    struct spread wait, idle, taken, ahead;
    struct series waits;
};

struct loader_case {
    struct tokmap_run *mapped_run, *pread_run;
    struct reader mapped, pread; /* without a producer */
    struct reader ahead, rows;   /* with one: outputs written, row pointers alone */
    uint64_t pass;               /* batches that touch every page */
    struct windows windows;
    uint64_t next;
    struct samples samples;
    struct found *found;
};

/* ---- flat out ---- */

/* So that a loader has populated every page once; a large dataset's first 2^20 windows do. */
static int one_pass(struct bench *bench, struct reader *reader, uint64_t batches, double *seconds)
{
    uint64_t started = os_clock_ns();
    reader->out.type = TOKMAP_I32;
    for (uint64_t i = 0; i < batches && !bench_stopped(); i++)
        if (reader_next(reader))
            return bench_failed(bench, &reader->error);
    *seconds = (double)(os_clock_ns() - started) / 1e9;
    return CLI_DONE;
}

static int flat_out_open(struct bench *bench, struct loader_case *it, const char *name)
{
    struct tokmap_source_info source = {.size = sizeof source};
    struct tokmap_error error = {0};
    int result = run_make(bench, name, TOKMAP_READ_MAPPED, 1, TOKMAP_FOREVER, &it->mapped_run);
    if (!result)
        result = run_make(bench, name, TOKMAP_READ_PREAD, 1, TOKMAP_FOREVER, &it->pread_run);
    if (!result)
        result = reader_open(bench, &it->mapped, it->mapped_run, 0, BOTH, 0);
    if (!result)
        result = reader_open(bench, &it->pread, it->pread_run, 0, BOTH, 0);
    if (result)
        return result;
    /* The loop reads the mapping that the loader reads: the same pages, huge or not. */
    if (tokmap_run_source(it->mapped_run, 0, &source))
        return CLI_FAILED;
    result = dataset_warm(bench, source.dataset); /* before anything is mapped, so that it can be dropped */
    if (!result && windows_new(&it->windows, source.dataset, bench->options.seq_len, (uint64_t)1 << 20, 2, &error))
        result = bench_failed(bench, &error);
    it->pass = min64(source.windows, (uint64_t)1 << 20) / bench->options.rows + 1;
    double seconds = 0;
    if (!result)
        result = one_pass(bench, &it->mapped, it->pass, &seconds);
    series_add(&it->found->first_pass, (double)(it->pass * bench->options.rows * bench->options.seq_len) / seconds);
    return result;
}

static int flat_out_turn(struct bench *bench, struct loader_case *it)
{
    const double seconds = bench_seconds(bench, 0.4);
    const uint64_t rows = bench->options.rows;
    const struct outputs *outputs = &it->mapped.outputs;
    struct found *found = it->found;
    double rate = 0, cpu = 0;
    int result = reader_turn(bench, &it->mapped, TOKMAP_I32, seconds, NULL, &rate, &cpu);
    series_add(&found->i32, rate);
    series_add(&found->cpu, cpu);
    series_add(&found->plain_i32, plain_loop_turn(plain_widen_base, &it->windows, &it->next, rows, TOKMAP_I32, true,
                                                  outputs, seconds, NULL));
    if (!result)
        result = reader_turn(bench, &it->mapped, TOKMAP_I64, seconds, NULL, &rate, NULL);
    series_add(&found->i64, rate);
    series_add(&found->plain_i64, plain_loop_turn(plain_widen_base, &it->windows, &it->next, rows, TOKMAP_I64, true,
                                                  outputs, seconds, NULL));
    if (!result)
        result = reader_turn(bench, &it->pread, TOKMAP_I32, seconds, NULL, &rate, &cpu);
    series_add(&found->pread, rate);
    series_add(&found->cpu_pread, cpu);
    series_add(&found->plain_i32_inputs, plain_loop_turn(plain_widen_base, &it->windows, &it->next, rows, TOKMAP_I32,
                                                         false, outputs, seconds, NULL));
    samples_clear(&it->samples);
    if (!result)
        result = reader_turn(bench, &it->mapped, TOKMAP_I32, seconds, &it->samples, NULL, NULL);
    spread_add(&found->next, &it->samples, 1000);
    samples_clear(&it->samples);
    (void)plain_loop_turn(plain_widen_base, &it->windows, &it->next, rows, TOKMAP_I32, true, outputs, seconds,
                          &it->samples);
    spread_add(&found->plain_next, &it->samples, 1000);
    return result;
}

/* ---- the producer, and a consumer at half the rate ---- */

/* Takes a batch each period and computes between. `samples` gets the time of each call, `gaps` that of an empty stretch
 * between two looks at the clock: what the machine itself does to a consumer. */
static int paced_turn(struct bench *bench, struct reader *reader, uint64_t period_ns, double seconds,
                      struct samples *samples, struct samples *gaps)
{
    uint64_t length = (uint64_t)(seconds * 1e9), started = os_clock_ns(), due = started;
    samples_clear(samples);
    samples_clear(gaps);
    while (due - started < length && !bench_stopped()) {
        uint64_t before = os_clock_ns();
        if (reader_next(reader))
            return bench_failed(bench, &reader->error);
        uint64_t after = os_clock_ns(), again = os_clock_ns();
        samples_add(samples, after - before);
        samples_add(gaps, again - after);
        due += period_ns;
        if (due < again) /* a stall of the machine is not made up for */
            due = again;
        while (os_clock_ns() < due)
            os_relax();
    }
    return CLI_DONE;
}

static int producer_open(struct bench *bench, struct loader_case *it)
{
    double seconds;
    int result = reader_open(bench, &it->ahead, it->mapped_run, 1, BOTH, 0);
    if (!result)
        result = one_pass(bench, &it->ahead, it->pass, &seconds);
    if (!result)
        result = reader_open(bench, &it->rows, it->mapped_run, 1, 0, 0);
    if (!result)
        result = one_pass(bench, &it->rows, it->pass, &seconds);
    return result;
}

static int producer_turn(struct bench *bench, struct loader_case *it, struct samples *gaps)
{
    struct tokmap_stats before, after;
    struct found *found = it->found;
    uint64_t tokens = bench->options.rows * bench->options.seq_len;
    double seconds = bench_seconds(bench, 1), rate = 1;
    int result = reader_turn(bench, &it->ahead, TOKMAP_I32, seconds / 2, NULL, &rate, NULL);
    series_add(&found->producer, rate);
    series_add(&found->paced, series_median(&found->producer) / 2);
    uint64_t period = (uint64_t)(2e9 * (double)tokens / series_median(&found->producer));
    if (!result)
        result = reader_fill(bench, &it->ahead);
    reader_stats(&it->ahead, &before);
    if (!result)
        result = paced_turn(bench, &it->ahead, period, seconds, &it->samples, gaps);
    reader_stats(&it->ahead, &after);
    if (!result) {
        series_add(&found->wait.p50, waits_at(&before, &after, 0.5) / 1000);
        series_add(&found->wait.p99, waits_at(&before, &after, 0.99) / 1000);
        series_add(&found->wait.p999, waits_at(&before, &after, 0.999) / 1000);
        series_add(&found->wait.largest, waits_at(&before, &after, 1) / 1000);
        series_add(&found->waits, (double)(after.waits - before.waits));
        spread_add(&found->ahead, &it->samples, 1000);
        spread_add(&found->idle, gaps, 1000);
        result = reader_fill(bench, &it->rows);
    }
    /* Row pointers alone: the call is then nothing but the hand-over, seen from outside. */
    if (!result)
        result = paced_turn(bench, &it->rows, period, seconds, &it->samples, gaps);
    if (!result)
        spread_add(&found->taken, &it->samples, 1000);
    return result;
}

/* ---- memory, in a process of its own ---- */

static int child_rss(struct bench *bench)
{
    struct tokmap_run *run = NULL;
    struct reader reader = {.loader = NULL};
    struct tokmap_stats stats = {.size = sizeof stats};
    uint64_t most = 0;
    int result = run_make(bench, bench->options.dataset, TOKMAP_READ_PREAD, 3, TOKMAP_FOREVER, &run);
    if (!result)
        result = reader_open(bench, &reader, run, 1, BOTH, 0);
    uint64_t length = (uint64_t)(bench_seconds(bench, 0.5) * 1e9), started = os_clock_ns();
    for (uint64_t i = 0; !result && (i < 1000 || os_clock_ns() - started < length); i++) {
        if (reader_next(&reader))
            result = bench_failed(bench, &reader.error);
        else if (i % 500 == 499)
            most = max64(most, os_memory_resident());
    }
    if (!result) {
        reader_stats(&reader, &stats);
        (void)printf("rss=%llu ring=%llu\n", (unsigned long long)most, (unsigned long long)stats.ring_bytes);
    }
    if (reader.loader)
        reader_close(&reader);
    tokmap_run_close(run);
    return result;
}

static int memory_above_ring(struct bench *bench, const char *name, double *mib)
{
    char output[256], seq_len[32], rows[32], seconds[32];
    (void)snprintf(seconds, sizeof seconds, "%g", bench_seconds(bench, 0.5));
    (void)snprintf(seq_len, sizeof seq_len, "%llu", (unsigned long long)bench->options.seq_len);
    (void)snprintf(rows, sizeof rows, "%llu", (unsigned long long)bench->options.rows);
    const char *const arguments[] = {"loader", "--child",   "rss",   "--seq-len", seq_len, "--rows",
                                     rows,     "--seconds", seconds, name,        NULL};
    int result = child_run(bench, bench->self, arguments, output, sizeof output, NULL);
    *mib = (child_number(output, "rss") - child_number(output, "ring")) / 1048576;
    return result;
}

static int measure_memory(struct bench *bench, const char *name)
{
    static struct series here, sparse;
    char huge[BENCH_PATH];
    bool unsupported = false;
    int result = dataset_make_sparse(bench, "rss", 1, (uint64_t)2000000000000, huge, &unsupported);
    for (uint64_t turn = 0; !result && turn < bench_repeats(bench, 3) && !bench_stopped(); turn++) {
        double mib = 0;
        result = memory_above_ring(bench, name, &mib);
        series_add(&here, mib);
        if (!result && !unsupported) {
            result = memory_above_ring(bench, huge, &mib);
            series_add(&sparse, mib);
        }
    }
    if (result || bench_stopped())
        return CLI_FAILED;
    bool worse = sparse.count && series_median(&sparse) > series_median(&here);
    bench_result(bench, "rss_above_ring_mib", "MiB", worse ? &sparse : &here, NULL);
    bench_result(bench, "rss_above_ring_mib_dataset", "MiB", &here, NULL);
    bench_result(bench, "rss_above_ring_mib_4tb", "MiB", &sparse, NULL);
    return CLI_DONE;
}

/* ---- the case ---- */

static void print_found(struct bench *bench, const struct found *found)
{
    bench_result(bench, "tokens_per_s", "tokens/s", &found->i32, &found->plain_i32);
    bench_result(bench, "tokens_per_s_i64", "tokens/s", &found->i64, &found->plain_i64);
    bench_result(bench, "tokens_per_s_pread", "tokens/s", &found->pread, &found->plain_i32);
    bench_result(bench, "tokens_per_s_first_pass", "tokens/s", &found->first_pass, NULL);
    bench_result(bench, "plain_inputs_alone_tokens_per_s", "tokens/s", &found->plain_i32_inputs, NULL);
    bench_result(bench, "cpu_s_per_mtok", "s/Mtoken", &found->cpu, NULL);
    bench_result(bench, "cpu_s_per_mtok_pread", "s/Mtoken", &found->cpu_pread, NULL);
    bench_spread(bench, "next", "us", &found->next, &found->plain_next);
    bench_result(bench, "tokens_per_s_producer", "tokens/s", &found->producer, &found->plain_i32);
    bench_result(bench, "paced_tokens_per_s", "tokens/s", &found->paced, NULL);
    bench_spread(bench, "wait", "us", &found->wait, NULL);
    bench_spread(bench, "next_ahead", "us", &found->ahead, &found->plain_next);
    bench_spread(bench, "take", "us", &found->taken, &found->idle);
    bench_result(bench, "waits", "calls", &found->waits, NULL);
}

static int run(struct bench *bench)
{
    static struct found found;
    struct loader_case it = {.found = &found};
    struct samples gaps = {.ns = NULL};
    const char *name = NULL;
    if (bench->options.child)
        return child_rss(bench);
    if (bench->options.device_given)
        return loader_device(bench);
    if (bench->options.cold)
        return loader_cold(bench);
    int result = dataset_get(bench, &name);
    if (!result && (!samples_new(&it.samples, (size_t)1 << 21) || !samples_new(&gaps, (size_t)1 << 21)))
        result = bench_no_memory(bench);
    if (!result)
        result = flat_out_open(bench, &it, name);
    for (uint64_t turn = 0; !result && turn < bench_repeats(bench, 7) && !bench_stopped(); turn++)
        result = flat_out_turn(bench, &it);
    if (!result)
        result = producer_open(bench, &it);
    for (uint64_t turn = 0; !result && turn < bench_repeats(bench, 5) && !bench_stopped(); turn++)
        result = producer_turn(bench, &it, &gaps);
    reader_close(&it.mapped);
    reader_close(&it.pread);
    reader_close(&it.ahead);
    reader_close(&it.rows);
    windows_free(&it.windows);
    tokmap_run_close(it.mapped_run);
    tokmap_run_close(it.pread_run);
    samples_free(&it.samples);
    samples_free(&gaps);
    if (result || bench_stopped())
        return CLI_FAILED;
    print_found(bench, &found);
    return measure_memory(bench, name);
}

const struct bench_case case_loader = {
    "loader", "batches on the host: rate, percentiles, CPU, waits, memory; --cold: from storage; --device: to a GPU", run};
