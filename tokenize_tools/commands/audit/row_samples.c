/* SPDX-License-Identifier: MIT */
/* row_samples.c - see row_samples.h. */
#include "row_samples.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "coverage.h"
#include "platform/process.h"

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
    uint64_t steps, ranks, random;
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
                              .steps = steps,
                              .ranks = ranks,
                              .random = seed,
                              .info = {.size = sizeof sampler.info},
                              .out = TOKMAP_OUT_INIT};
    *samples = (struct row_samples){.all_ranks = true};
    enum tokmap_status status = tokmap_run_info(run, &sampler.info);
    if (status)
        return error_set(error, status, NULL, TOKMAP_NO_OFFSET, "the run cannot be described");
    samples->has_targets = sampler.info.lookahead > 0;
    /* As many whole steps as ALL_TOKENS allows. If it allows no step, some ranks of a single one. */
    const uint64_t step_tokens = sampler.info.batch_most * sampler.info.seq_len_most;
    const uint64_t count = min64(min64(most, steps), max64(1, ALL_TOKENS / step_tokens));
    const uint64_t rank_tokens = div_ceil(sampler.info.batch_most, ranks) * sampler.info.seq_len_most;
    const uint64_t sampled_ranks = step_tokens <= ALL_TOKENS ? ranks : min64(ranks, max64(1, ALL_TOKENS / rank_tokens));
    samples->all_ranks = sampled_ranks == ranks;
    sampler.works = malloc(max64(1, count * sampled_ranks) * sizeof *sampler.works);
    sampler.slowest = malloc(max64(1, count) * sizeof *sampler.slowest);
    status = sampler.works && sampler.slowest ? sampler_open(&sampler, error)
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
