/* row_samples.c - see row_samples.h. */
#include "row_samples.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/process.h"

#define READ_TOKENS ((uint64_t)1 << 18) /* about as many are read at a time */
#define ALL_TOKENS ((uint64_t)1 << 26)  /* about as many are read in all */
#define TRIES 64                        /* of finding a step that is delivered */

struct sampler {
    struct row_samples *samples;
    const struct tokmap_run *run;
    uint64_t steps, ranks, random;
    struct tokmap_run_info info;
    struct tokmap_loader *loader;
    struct tokmap_out out;
    uint64_t chunk; /* the most rows of a read */
    uint64_t *step_of, *row_of;
    uint64_t *works; /* of each rank and step so far */
    uint64_t work_count;
    double *slowest; /* of each step */
};

static uint64_t random_below(uint64_t *state, uint64_t limit)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint64_t)((unsigned __int128)(z ^ z >> 31) * limit >> 64);
}

static uint64_t add_square(uint64_t sum, uint64_t length)
{
    uint64_t square, result;
    return mul_overflows(length, length, &square) || add_overflows(sum, square, &result) ? UINT64_MAX : result;
}

/* Adds the rows of a batch to the samples, and their work to *work. */
static void batch_add(struct sampler *sampler, const struct tokmap_batch *batch, uint64_t seq_len, uint64_t *work)
{
    struct row_samples *samples = sampler->samples;
    const int32_t *ends = sampler->out.cu_seqlens, *mask = sampler->out.loss_mask;
    uint64_t row = 0, in_row = 0;
    for (uint64_t i = 0; i < batch->documents; i++) {
        const uint64_t begin = (uint64_t)ends[i], length = (uint64_t)ends[i + 1] - begin;
        if (begin / seq_len != row) {
            row = begin / seq_len;
            in_row = 0;
        }
        samples->documents_most = max64(samples->documents_most, ++in_row);
        *work = add_square(*work, length);
    }
    samples->rows += batch->count;
    if (!samples->has_targets)
        return;
    samples->targets += batch->count * seq_len;
    for (uint64_t i = 0; i < batch->count * seq_len; i++)
        samples->counted += (uint64_t)(mask[i] != 0);
}

/* Reads the rows of one rank in a step. */
static enum tokmap_status rank_read(struct sampler *sampler, uint64_t step, uint64_t rank, uint64_t *work,
                                    struct tokmap_error *error)
{
    const uint64_t batch = tokmap_run_rows(sampler->run, step);
    const uint64_t end = mul_div(rank + 1, batch, sampler->ranks);
    struct tokmap_phase_info phase = {.size = sizeof phase};
    const enum tokmap_status described =
        tokmap_run_phase(sampler->run, tokmap_run_phase_at(sampler->run, step), &phase);
    if (described)
        return error_set(error, described, NULL, TOKMAP_NO_OFFSET, "the run cannot be described");
    *work = 0;
    for (uint64_t row = mul_div(rank, batch, sampler->ranks); row < end;) {
        struct tokmap_batch delivered = TOKMAP_BATCH_INIT;
        const uint64_t count = min64(end - row, sampler->chunk);
        for (uint64_t i = 0; i < count; i++) {
            sampler->step_of[i] = step;
            sampler->row_of[i] = row + i;
        }
        const enum tokmap_status status = tokmap_loader_read(sampler->loader, sampler->step_of, sampler->row_of, count,
                                                             &sampler->out, &delivered, error);
        if (status)
            return status;
        if (os_signal_caught())
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted by a signal");
        batch_add(sampler, &delivered, phase.seq_len, work);
        row += count;
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
        *step = first + random_below(&sampler->random, end - first);
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

static int compare_double(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void samples_sum_up(struct sampler *sampler)
{
    struct row_samples *samples = sampler->samples;
    const uint64_t n = sampler->work_count, m = samples->steps;
    qsort(sampler->works, n, sizeof *sampler->works, compare_u64);
    qsort(sampler->slowest, m, sizeof *sampler->slowest, compare_double);
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

/* The loader delivers any row of any step: it is that of a single rank. */
static enum tokmap_status sampler_open(struct sampler *sampler, struct tokmap_error *error)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    const uint64_t row_tokens = sampler->info.seq_len_most + sampler->info.lookahead;
    options.fields = TOKMAP_CU_SEQLENS | (sampler->info.lookahead ? TOKMAP_LOSS_MASK : 0);
    options.threads = 0;
    options.rows = max64(1, READ_TOKENS / row_tokens);
    /* A few batches, and what belongs to each of their rows. */
    options.ring_bytes = 4 * min64(options.rows, sampler->info.batch_most) * (row_tokens * 5 + 4096) + (1 << 20);
    const enum tokmap_status status = tokmap_loader_open(&sampler->loader, sampler->run, &options, error);
    if (status)
        return status;
    const uint64_t ends = tokmap_loader_cu_seqlens(sampler->loader);
    sampler->chunk = tokmap_loader_rows(sampler->loader);
    const uint64_t elements = sampler->chunk * sampler->info.seq_len_most;
    sampler->samples->documents_bound = (ends - 1) / sampler->chunk;
    sampler->out.cu_seqlens = malloc(ends * sizeof *sampler->out.cu_seqlens);
    sampler->out.loss_mask = malloc(elements * 4);
    sampler->step_of = malloc(sampler->chunk * 8);
    sampler->row_of = malloc(sampler->chunk * 8);
    if (!sampler->out.cu_seqlens || !sampler->out.loss_mask || !sampler->step_of || !sampler->row_of)
        return error_set_memory(error, "a batch", (ends + elements) * 4);
    return TOKMAP_OK;
}

static void sampler_close(struct sampler *sampler)
{
    tokmap_loader_close(sampler->loader);
    free(sampler->out.cu_seqlens);
    free(sampler->out.loss_mask);
    free(sampler->step_of);
    free(sampler->row_of);
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
