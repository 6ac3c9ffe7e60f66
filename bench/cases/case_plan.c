/* SPDX-License-Identifier: MIT */
/*
 * case_plan.c - plans: the command `tokmap plan` on documents of web-like lengths, as a process, and the rate at which
 * a loader delivers the rows of a plan, beside windows of the same dataset.
 *
 * The first dataset is sparse: only its index is read. A hundredth of --tokens is the number of its documents, whose
 * lengths are lognormal, as those of web pages are, with a median of 400 tokens and a mean of 700. The second one is
 * that of the case loader. A row of a plan is gathered from several places, and the ends of its pieces are no
 * multiples of a cache line; that is what the ratio costs.
 */
#include "cases.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "format/plan_file.h"
#include "format/shard_writer.h"
#include "harness/child.h"
#include "harness/dataset_make.h"
#include "harness/made_files.h"
#include "harness/page_cache.h"
#include "harness/reader.h"
#include "platform/os.h"

#define BOTH (TOKMAP_INPUTS | TOKMAP_TARGETS)
#define PLANNED_SEQ_LEN 8192

struct planning {
    struct series seconds, rate, peak; /* of the command: s, documents/s, MiB */
    struct series windows, rows;       /* tokens/s of the loaders */
    struct tokmap_run *window_run, *plan_run;
    struct reader window_reader, plan_reader;
};

/* ---- the command ---- */

static uint64_t web_length(uint64_t *state)
{
    const double u = ((double)(random_next(state) >> 12) + 0.5) / 0x1p52;
    const double v = (double)(random_next(state) >> 12) / 0x1p52;
    const double length = 400 * exp(1.06 * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
    return 1 + (uint64_t)length;
}

static int lengths_make(struct bench *bench, const char *prefix, uint64_t documents)
{
    struct shard_writer_options options = {
        .width = 2, .vocabulary = 50257, .eod_id = TOKMAP_NO_ID, .bos_id = TOKMAP_NO_ID, .sync = false};
    struct shard_writer *writer = NULL;
    struct tokmap_error error = {0};
    uint64_t state = 5;
    char count[32];
    bench_say(bench, "creating an index of %s documents in %s", cli_count(documents, count), bench->options.folder);
    enum tokmap_status status = shard_writer_open(&writer, prefix, &options, &error);
    if (status)
        return bench_failed(bench, &error);
    for (uint64_t i = 0; i < documents && !status && !bench_stopped(); i++)
        status = shard_writer_add_zeros(writer, web_length(&state), &error);
    if (!status && !bench_stopped())
        return shard_writer_commit(writer, "{}", 2, NULL, &error) ? bench_failed(bench, &error) : CLI_DONE;
    shard_writer_abort(writer);
    return status ? bench_failed(bench, &error) : CLI_FAILED;
}

/* Runs `tokmap plan` and, unless the pointers are NULL, reports what it used and what its file says. */
static int plan_make(struct bench *bench, const char *dataset, const char *plan, uint64_t seq_len,
                     struct child_usage *usage, struct plan_header *header)
{
    char length[32];
    struct plan opened;
    struct tokmap_error error = {0};
    const char *const arguments[] = {"plan", "--quiet", "--force", "--seq-len", length, "-o", plan, dataset, NULL};
    (void)snprintf(length, sizeof length, "%" PRIu64, seq_len);
    const int result = child_run_tokmap(bench, arguments, usage);
    if (result)
        return result;
    if (plan_open(&opened, plan, &error))
        return bench_failed(bench, &error);
    *header = opened.header;
    plan_close(&opened);
    return CLI_DONE;
}

static int command_measure(struct bench *bench, struct planning *planning, double *fill)
{
    char dataset[BENCH_PATH], plan[BENCH_PATH];
    struct plan_header header = {.seq_len = 1, .rows = 1};
    struct child_usage usage = {.seconds = 0};
    const uint64_t documents = max64(bench->options.tokens / 100, 1);
    int result = made_shard(bench, "lengths", dataset);
    if (!result)
        result = made_file(bench, "lengths.plan", plan);
    if (!result)
        result = lengths_make(bench, dataset, documents);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 3), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result)) {
        result = plan_make(bench, dataset, plan, PLANNED_SEQ_LEN, &usage, &header);
        series_add(&planning->seconds, usage.seconds);
        series_add(&planning->rate, (double)documents / usage.seconds);
        series_add(&planning->peak, usage.peak_mib);
    }
    *fill = 100 * (double)header.tokens / ((double)header.rows * (double)header.seq_len);
    made_file_remove(bench, plan);
    return result;
}

/* ---- the loader ---- */

/* Makes a run of the dataset, with the plan or, if it is NULL, with windows. */
static int run_parse(struct bench *bench, const char *dataset, const char *plan, struct tokmap_run **run)
{
    static char text[3 * BENCH_PATH];
    struct tokmap_error error = {0};
    (void)snprintf(text, sizeof text,
                   "seq_len %" PRIu64 "\nlookahead %" PRIu64 "\nbatch %" PRIu64 "\nsource data \"%s\"%s%s%s\n",
                   bench->options.seq_len, bench->options.lookahead, bench->options.batch, dataset,
                   plan ? " plan \"" : "", plan ? plan : "", plan ? "\"" : "");
    return tokmap_run_parse(run, text, NULL, &error) ? bench_failed(bench, &error) : CLI_DONE;
}

/* Takes batches until the loader has touched every page, since the first access to a mapped page costs a fault. */
static int first_pass(struct bench *bench, struct reader *reader, const struct tokmap_source_info *source)
{
    const uint64_t batches = min64(source->windows, (uint64_t)1 << 20) / bench->options.rows + 1;
    reader->out.type = TOKMAP_I32;
    for (uint64_t i = 0; i < batches && !bench_stopped(); i++)
        if (reader_next(reader))
            return bench_failed(bench, &reader->error);
    return CLI_DONE;
}

static int reader_prepare(struct bench *bench, struct reader *reader, const struct tokmap_run *run)
{
    struct tokmap_source_info source = {.size = sizeof source};
    struct tokmap_dataset_info info = {.size = sizeof info};
    int result = run_get_info(bench, run, &source, &info);
    if (!result)
        result = page_cache_warm(bench, source.dataset);
    if (!result)
        result = reader_open(bench, reader, run, 0, BOTH, 0);
    return result ? result : first_pass(bench, reader, &source);
}

static int loader_measure(struct bench *bench, struct planning *planning)
{
    char plan[BENCH_PATH];
    const char *name = NULL;
    struct plan_header header;
    int result = dataset_name(bench, &name);
    if (!result)
        result = made_file(bench, "data.plan", plan);
    if (!result)
        result = plan_make(bench, name, plan, bench->options.seq_len, NULL, &header);
    if (!result)
        result = run_parse(bench, name, NULL, &planning->window_run);
    if (!result)
        result = run_parse(bench, name, plan, &planning->plan_run);
    if (!result)
        result = reader_prepare(bench, &planning->window_reader, planning->window_run);
    if (!result)
        result = reader_prepare(bench, &planning->plan_reader, planning->plan_run);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 7), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result)) {
        double rate = 0;
        result =
            reader_repeat(bench, &planning->window_reader, TOKMAP_I32, bench_seconds(bench, 0.4), NULL, &rate, NULL);
        series_add(&planning->windows, rate);
        if (!result)
            result =
                reader_repeat(bench, &planning->plan_reader, TOKMAP_I32, bench_seconds(bench, 0.4), NULL, &rate, NULL);
        series_add(&planning->rows, rate);
    }
    reader_close(&planning->window_reader);
    reader_close(&planning->plan_reader);
    tokmap_run_close(planning->window_run);
    tokmap_run_close(planning->plan_run);
    return result;
}

static int run(struct bench *bench)
{
    static struct planning planning;
    double fill = 0;
    int result = command_measure(bench, &planning, &fill);
    if (!result)
        result = loader_measure(bench, &planning);
    if (result || bench_stopped())
        return CLI_FAILED;
    bench_result(bench, "seconds", "s", &planning.seconds, NULL);
    bench_result(bench, "documents_per_s", "documents/s", &planning.rate, NULL);
    bench_result(bench, "peak_rss_mib", "MiB", &planning.peak, NULL);
    bench_value(bench, "fill_percent", "%", fill, (double)NAN);
    bench_result(bench, "tokens_per_s", "tokens/s", &planning.rows, &planning.windows);
    bench->name = "loader";
    bench_derived(bench, "plan_ratio", "x", series_median(&planning.rows) / series_median(&planning.windows),
                  &planning.rows);
    return CLI_DONE;
}

const struct bench_case case_plan = {"plan",
                                     "tokmap plan on web-like documents, and a loader of its rows beside windows", run};
