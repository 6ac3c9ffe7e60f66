/* SPDX-License-Identifier: MIT */
#include "loader_trial.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/data/token_decode.h"
#include "commands/options/target.h"
#include "common/bytes.h"
#include "common/error.h"
#include "coverage.h"
#include "dataset/dataset_fetch.h"
#include "platform/process.h"
#include "run/exclusion.h"
#include "run/locate.h"
#include "run/run.h"

/* Keeps the first fault, which is the one that is printed. */
__attribute__((format(printf, 2, 3))) static void fault_set(struct loader_trial *trial, const char *format, ...)
{
    va_list arguments;
    if (trial->fault[0])
        return;
    va_start(arguments, format);
    (void)vsnprintf(trial->fault, sizeof trial->fault, format, arguments);
    va_end(arguments);
}

bool run_is_remote(const struct tokmap_run *run)
{
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    for (uint64_t i = 0; !tokmap_run_source(run, i, &source); i++)
        if (dataset_cache(source.dataset))
            return true;
    return false;
}

enum tokmap_status loader_trial_begin(struct loader_trial *trial, const struct tokmap_run *run,
                                      const struct assignment_rule *rule, double balance, struct tokmap_error *error)
{
    *trial = (struct loader_trial){.run = run, .balance = balance};
    trial->info = info_of_run(run);
    const enum tokmap_status status = assignment_init(&trial->assignment, run, rule, error);
    if (status)
        return status;
    const uint64_t row_tokens = trial->info.seq_len_most + trial->info.lookahead;
    trial->extents_most = run_extents_most(run);
    trial->expected = malloc(row_tokens * 4);
    trial->narrow = malloc(row_tokens * 4);
    trial->extents = malloc(trial->extents_most * sizeof *trial->extents);
    if (!trial->expected || !trial->narrow || !trial->extents)
        return error_set_memory(error, "a row", row_tokens * 8);
    return TOKMAP_OK;
}

void loader_trial_end(struct loader_trial *trial)
{
    assignment_free(&trial->assignment);
    free(trial->expected);
    free(trial->narrow);
    free(trial->extents);
    trial->expected = trial->narrow = NULL;
    trial->extents = NULL;
}

/* Copies tokens of a dataset to token number `at` of the expected row, in the width of rows. */
static enum tokmap_status tokens_copy(struct loader_trial *trial, const struct tokmap_dataset *dataset, uint64_t first,
                                      uint64_t count, uint64_t at, struct tokmap_error *error)
{
    const struct tokmap_dataset_info about = info_of_dataset(dataset);
    enum tokmap_status status = TOKMAP_OK;
    while (count && !status) {
        const uint64_t from = first % about.tokens, part = min64(count, about.tokens - from);
        uint8_t *into = trial->expected + at * trial->info.width;
        const bool widened = about.width != trial->info.width;
        status = tokmap_dataset_copy(dataset, from, part, widened ? trial->narrow : into, error);
        if (widened && !status)
            ids_convert(into, 4, trial->narrow, part);
        first += part;
        at += part;
        count -= part;
    }
    return status;
}

/* Writes the pad id to tokens [from, end) of the expected row. */
static void padding_fill(struct loader_trial *trial, uint64_t from, uint64_t end)
{
    const uint32_t pad = (uint32_t)trial->info.pad_id;
    for (uint64_t at = from; at < end; at++)
        memcpy(trial->expected + at * trial->info.width, &pad, trial->info.width);
}

/* Replaces the tokens of an extent that the run excludes by the pad id: each token is looked up by itself. */
static void excluded_pad(struct loader_trial *trial, const struct tokmap_place *place,
                         const struct tokmap_extent *extent, uint64_t at)
{
    const struct exclusions *exclusions = run_exclusions(trial->run);
    const uint64_t tokens = exclusions->sources->of[place->source].tokens;
    for (uint64_t i = 0; i < extent->tokens && exclusions_any(exclusions); i++)
        if (exclusion_step(exclusions, place->source, (extent->first_token + i) % tokens) <= place->step) {
            padding_fill(trial, at + i, at + i + 1);
            trial->excluded++;
        }
}

/* Makes the row of a place, with the padding after its tokens. */
static enum tokmap_status row_expect(struct loader_trial *trial, const struct tokmap_place *place, uint64_t row_tokens,
                                     struct tokmap_error *error)
{
    uint64_t count = 0, at = 0;
    enum tokmap_status status = run_row_extents(trial->run, place, trial->extents, trial->extents_most, &count, error);
    for (uint64_t i = 0; i < count && !status; i++) {
        const struct tokmap_extent *extent = &trial->extents[i];
        if (extent_is_padding(extent)) {
            padding_fill(trial, at, at + extent->tokens);
        } else {
            const struct tokmap_source_info source = info_of_source(trial->run, place->source);
            status = tokens_copy(trial, source.dataset, extent->first_token, extent->tokens, at, error);
            if (!status)
                excluded_pad(trial, place, extent, at);
        }
        at += extent->tokens;
    }
    if (!status)
        padding_fill(trial, at, row_tokens);
    return status;
}

static enum tokmap_status batch_compare(struct loader_trial *trial, const struct tokmap_batch *batch, uint64_t rank,
                                        uint64_t step, uint64_t first, uint64_t count, struct tokmap_error *error)
{
    const uint64_t first_row = assignment_row(&trial->assignment, first);
    if (batch->step != step || batch->count != count || (count && batch->first_row != first_row))
        fault_set(trial,
                  "rank %" PRIu64 " received %" PRIu64 " rows from row %" PRIu64 " of step %" PRIu64
                  " on instead of %" PRIu64 " rows from row %" PRIu64 " of step %" PRIu64 " on",
                  rank, batch->count, batch->first_row, batch->step, count, first_row, step);
    for (uint64_t i = 0; i < count && !trial->fault[0]; i++) {
        struct tokmap_place place;
        const uint64_t row = assignment_row(&trial->assignment, first + i);
        enum tokmap_status status = tokmap_run_locate(trial->run, step, row, &place, error);
        if (!status)
            status = row_expect(trial, &place, batch->row_tokens, error);
        if (status)
            return status;
        const struct tokmap_place *given = &batch->places[i];
        if (given->row != row || given->draw != place.draw || given->source != place.source ||
            given->window != place.window || given->epoch != place.epoch ||
            memcmp(batch->rows[i], trial->expected, (size_t)(batch->row_tokens * batch->width)) != 0)
            fault_set(trial, "rank %" PRIu64 " received wrong tokens in step %" PRIu64 " row %" PRIu64, rank, step,
                      row);
        trial->delivered++;
    }
    trial->batches++;
    return TOKMAP_OK;
}

enum tokmap_status loader_trial_step(struct loader_trial *trial, uint64_t rank, uint64_t step,
                                     struct tokmap_error *error)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader *loader = NULL;
    struct tokmap_cursor cursor;
    char text[TOKMAP_CURSOR_TEXT];
    const struct assignment_rule *rule = &trial->assignment.rule;
    const uint64_t batch_rows = tokmap_run_rows(trial->run, step);
    const uint64_t first = mul_div(rank, batch_rows, rule->world);
    const uint64_t rows = mul_div(rank + 1, batch_rows, rule->world) - first;
    const uint64_t calls = rule->rows ? div_ceil(div_ceil(batch_rows, rule->world), rule->rows) : 1;
    enum tokmap_status status = assignment_step(&trial->assignment, step, error);
    if (!status)
        status = tokmap_run_cursor(trial->run, step, &cursor, error);
    if (status)
        return status;
    tokmap_cursor_print(&cursor, text);
    options.rank = rank;
    options.world = rule->world;
    options.rows = rule->rows;
    options.balance = trial->balance;
    options.nodes = rule->nodes;
    options.fields = 0;
    options.threads = 0;
    options.resume = text;
    status = tokmap_loader_open(&loader, trial->run, &options, error);
    if (!status && tokmap_loader_calls_per_step(loader) != calls)
        fault_set(trial, "rank %" PRIu64 " makes %" PRIu64 " calls a step, not %" PRIu64, rank,
                  tokmap_loader_calls_per_step(loader), calls);
    for (uint64_t call = 0; call < calls && !status && !trial->fault[0]; call++) {
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        const uint64_t begin = mul_div(call, rows, calls), end = mul_div(call + 1, rows, calls);
        status = tokmap_loader_next(loader, NULL, NULL, &batch, error);
        if (!status)
            status = batch_compare(trial, &batch, rank, step, first + begin, end - begin, error);
    }
    tokmap_loader_close(loader);
    return status;
}

/* ---- rows that are sampled ---- */

#define ALL_TOKENS ((uint64_t)1 << 26) /* about as many are read in all */
#define TRIES 64                       /* of finding a step that is delivered */

/* Compares two numbers of type double, for qsort(). */
static int compare_ratios(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

struct sampler {
    struct row_samples *samples;
    const struct tokmap_run *run;
    uint64_t ranks, random;
    struct tokmap_run_info info;
    struct tokmap_loader *loader;
    struct tokmap_out out;
    uint64_t *works; /* of each rank and step so far */
    uint64_t work_count;
    double *slowest; /* of each step */
};

static uint64_t add_square(uint64_t sum, uint64_t length)
{
    uint64_t square, result;
    return mul_overflows(length, length, &square) || add_overflows(sum, square, &result) ? UINT64_MAX : result;
}

/* Adds a row to the samples, and its work to *work. */
static void row_add(struct sampler *sampler, const struct tokmap_batch *batch, uint64_t *work)
{
    struct row_samples *samples = sampler->samples;
    const int32_t *ends = sampler->out.cu_seqlens, *mask = sampler->out.loss_mask;
    for (uint64_t i = 0; i < batch->documents; i++)
        *work = add_square(*work, (uint64_t)(ends[i + 1] - ends[i]));
    samples->documents_most = max64(samples->documents_most, batch->documents);
    samples->rows++;
    if (!samples->has_targets)
        return;
    samples->targets += batch->seq_len;
    for (uint64_t i = 0; i < batch->seq_len; i++)
        samples->counted += (uint64_t)(mask[i] != 0);
}

/* Reads the rows of one rank in a step. */
static enum tokmap_status rank_read(struct sampler *sampler, uint64_t step, uint64_t rank, uint64_t *work,
                                    struct tokmap_error *error)
{
    const uint64_t batch = tokmap_run_rows(sampler->run, step);
    const uint64_t end = mul_div(rank + 1, batch, sampler->ranks);
    *work = 0;
    for (uint64_t row = mul_div(rank, batch, sampler->ranks); row < end; row++) {
        struct tokmap_batch delivered = TOKMAP_BATCH_INIT;
        const enum tokmap_status status =
            tokmap_loader_read(sampler->loader, &step, &row, 1, &sampler->out, &delivered, error);
        if (status)
            return status;
        if (os_signal_caught())
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted by a signal");
        row_add(sampler, &delivered, work);
    }
    return TOKMAP_OK;
}

static enum tokmap_status step_read(struct sampler *sampler, uint64_t step, uint64_t ranks, struct tokmap_error *error)
{
    double sum = 0, most = 0;
    for (uint64_t i = 0; i < ranks; i++) {
        uint64_t work = 0;
        const enum tokmap_status status = rank_read(sampler, step, mul_div(i, sampler->ranks, ranks), &work, error);
        if (status)
            return status;
        sampler->works[sampler->work_count++] = work;
        sum += (double)work;
        most = (double)work > most ? (double)work : most;
    }
    sampler->slowest[sampler->samples->steps++] = sum > 0 ? most * (double)ranks / sum : 1;
    return TOKMAP_OK;
}

/* Picks a step that is delivered. Returns false if none was found. */
static bool step_pick(struct sampler *sampler, uint64_t first, uint64_t end, uint64_t *step)
{
    for (int i = 0; i < TRIES && first < end; i++) {
        *step = first + coverage_random(&sampler->random, end - first);
        if (tokmap_run_delivers(sampler->run, *step))
            return true;
    }
    return false;
}

static int compare_u64(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void samples_sum_up(struct sampler *sampler)
{
    struct row_samples *samples = sampler->samples;
    const uint64_t n = sampler->work_count, m = samples->steps;
    qsort(sampler->works, n, sizeof *sampler->works, compare_u64);
    qsort(sampler->slowest, m, sizeof *sampler->slowest, compare_ratios);
    if (n) {
        samples->work_p50 = sampler->works[(n - 1) / 2];
        samples->work_p99 = sampler->works[(n - 1) * 99 / 100];
        samples->work_most = sampler->works[n - 1];
    }
    if (m) {
        samples->slowest_p50 = sampler->slowest[(m - 1) / 2];
        samples->slowest_p99 = sampler->slowest[(m - 1) * 99 / 100];
        samples->slowest_most = sampler->slowest[m - 1];
    }
}

/* Opens a loader that delivers one row at a time, of any step and rank. So its cu_seqlens has room for the documents of
 * any row of the run. */
static enum tokmap_status sampler_open(struct sampler *sampler, struct tokmap_error *error)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    options.fields = TOKMAP_CU_SEQLENS | (sampler->info.lookahead ? TOKMAP_LOSS_MASK : 0);
    options.threads = 0;
    options.rows = 1;
    const enum tokmap_status status = tokmap_loader_open(&sampler->loader, sampler->run, &options, error);
    if (status)
        return status;
    const uint64_t elements = tokmap_loader_elements(sampler->loader);
    const uint64_t ends = tokmap_loader_cu_seqlens(sampler->loader);
    sampler->samples->documents_bound = ends - 1;
    sampler->out.cu_seqlens = malloc(ends * sizeof *sampler->out.cu_seqlens);
    sampler->out.loss_mask = malloc(elements * 4);
    if (!sampler->out.cu_seqlens || !sampler->out.loss_mask)
        return error_set_memory(error, "a row", (ends + elements) * 4);
    return TOKMAP_OK;
}

static void sampler_close(struct sampler *sampler)
{
    tokmap_loader_close(sampler->loader);
    free(sampler->out.cu_seqlens);
    free(sampler->out.loss_mask);
    free(sampler->works);
    free(sampler->slowest);
}

enum tokmap_status row_samples_take(struct row_samples *samples, const struct tokmap_run *run, uint64_t steps,
                                    uint64_t ranks, uint64_t most, uint64_t seed, struct tokmap_error *error)
{
    struct sampler sampler = {.samples = samples,
                              .run = run,
                              .ranks = ranks,
                              .random = seed,
                              .info = info_of_run(run),
                              .out = TOKMAP_OUT_INIT};
    *samples = (struct row_samples){.all_ranks = true};
    samples->has_targets = sampler.info.lookahead > 0;
    /* As many whole steps as ALL_TOKENS allows. If it allows no step, some ranks of a single one. */
    const uint64_t step_tokens = sampler.info.batch_most * sampler.info.seq_len_most;
    const uint64_t count = min64(min64(most, steps), max64(1, ALL_TOKENS / step_tokens));
    const uint64_t rank_tokens = div_ceil(sampler.info.batch_most, ranks) * sampler.info.seq_len_most;
    const uint64_t sampled_ranks = step_tokens <= ALL_TOKENS ? ranks : min64(ranks, max64(1, ALL_TOKENS / rank_tokens));
    samples->all_ranks = sampled_ranks == ranks;
    sampler.works = malloc(max64(1, count * sampled_ranks) * sizeof *sampler.works);
    sampler.slowest = malloc(max64(1, count) * sizeof *sampler.slowest);
    enum tokmap_status status = sampler.works && sampler.slowest
                                    ? sampler_open(&sampler, error)
                                    : error_set_memory(error, "the samples", count * sampled_ranks * 8);
    for (uint64_t i = 0; i < count && !status; i++) {
        uint64_t step;
        if (step_pick(&sampler, mul_div(i, steps, count), mul_div(i + 1, steps, count), &step))
            status = step_read(&sampler, step, sampled_ranks, error);
    }
    if (!status)
        samples_sum_up(&sampler);
    sampler_close(&sampler);
    return status;
}
