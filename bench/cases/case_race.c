/* SPDX-License-Identifier: MIT */
/*
 * case_race.c - a search for races: every output of many batches on a GPU is compared with the host's, while producer
 * and consumer are delayed at random.
 *
 * The batches come in rounds. Each round has its own run and two loaders over it, with fields, row length, number of
 * rows, element type and ring size drawn at random. One loader delivers to the GPU through its ring; the other makes
 * the same batches on the host, without a producer thread. A kernel on the consumer's stream computes checksums of the
 * outputs on the GPU. The host does not look at the outputs, so nothing waits that would not wait in a training loop;
 * it fetches the checksums of a block of batches at once. A word that is wrong, too late, or in the wrong place changes
 * the checksum.
 *
 * The consumer is delayed in several ways: it sleeps, kernels delay its stream before and after a batch, and it takes
 * batches in bursts, so that the ring is full at times and empty at others. The producer is delayed by other traffic on
 * the copy engine, and by the consumer's work on the reference, which needs the same processors.
 */
#include "cases.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/bench_data.h"
#include "harness/gpu.h"
#include "platform/os.h"

#define DATA "synthetic:vocab=50257,tokens=100000007,document=60"
#define BLOCK 256                   /* most batches whose checksums are fetched together */
#define ROUND 1000                  /* batches of a round, on average */
#define SETS 2                      /* sets of outputs, one of which is drawn for each batch */
#define TRAFFIC ((uint64_t)4 << 20) /* bytes of the largest disturbing copy */
#define SEQ_LEN_MOST 700
#define ROWS_MOST 9

enum { INPUTS, TARGETS, POSITION_IDS, ROWS, DOCUMENT_IDS, LOSS_MASK, CU_SEQLENS, LABELS, FIELDS };
static const char *const field_names[FIELDS] = {"inputs",       "targets",   "position_ids", "rows",
                                                "document_ids", "loss_mask", "cu_seqlens",   "labels"};
static const uint32_t field_bits[FIELDS] = {TOKMAP_INPUTS,       TOKMAP_TARGETS,   TOKMAP_POSITION_IDS, TOKMAP_ROWS,
                                            TOKMAP_DOCUMENT_IDS, TOKMAP_LOSS_MASK, TOKMAP_CU_SEQLENS,   TOKMAP_LABELS};

struct round {
    struct tokmap_run *run;
    struct tokmap_loader *device, *host; /* deliver the same batches */
    uint64_t seq_len, rows, cu_elements, ring_bytes, seed;
    uint32_t fields, width, mask_targets;
};

struct race {
    struct gpu gpu;
    struct CUstream_st *traffic;
    void *traffic_from;
    uint64_t traffic_to, spin_out; /* on the device */
    const char *data;
    uint64_t sums;                  /* on the device: BLOCK * FIELDS checksums */
    uint64_t wanted[BLOCK][FIELDS]; /* the host's checksums */
    uint64_t outputs[SETS][FIELDS]; /* on the device */
    void *host_outputs[FIELDS];
    uint64_t output_bytes;
    struct tokmap_batch batches[BLOCK]; /* descriptions from the device's loader; their pointers are no longer valid */
    uint64_t state;                     /* of the random numbers */
    uint64_t done, rounds, compared, mismatches, waits, late_copies, host_expanded;
};

/* ---- rounds ---- */

static struct tokmap_loader *loader_open(struct bench *bench, const struct race *race, const struct round *round,
                                         bool on_device)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader *loader = NULL;
    options.fields = round->fields;
    options.mask_targets = round->mask_targets;
    options.threads = on_device;
    options.ring_bytes = on_device ? round->ring_bytes : 0;
    options.device = on_device ? race->gpu.name : NULL;
    bench_check(bench, tokmap_loader_open(&loader, round->run, &options, &bench->error));
    return loader;
}

static void round_open(struct bench *bench, struct race *race, struct round *round)
{
    char numbers[128];
    memset(round, 0, sizeof *round);
    round->seed = random_next(&race->state);
    round->seq_len = 1 + random_below(&race->state, SEQ_LEN_MOST);
    round->rows = 1 + random_below(&race->state, ROWS_MOST);
    const uint64_t drawn = 1 + random_below(&race->state, (1 << FIELDS) - 1);
    for (unsigned field = 0; field < FIELDS; field++)
        round->fields |= drawn >> field & 1 ? field_bits[field] : 0;
    round->mask_targets = round->fields & TOKMAP_TARGETS && random_below(&race->state, 2);
    round->ring_bytes = random_below(&race->state, 2) ? 0 : (uint64_t)1 << (17 + random_below(&race->state, 4));
    (void)snprintf(numbers, sizeof numbers, "seq_len %" PRIu64 "\nbatch %" PRIu64 "\nseed %" PRIu64 "\n",
                   round->seq_len, round->rows, round->seed);
    round->run = run_of_dataset(bench, race->data, numbers, TOKMAP_READ_AUTO);
    round->width = run_get_data(bench, round->run).info.width;
    round->device = loader_open(bench, race, round, true);
    round->host = loader_open(bench, race, round, false);
    round->cu_elements = tokmap_loader_cu_seqlens(round->device);
    if (round->cu_elements * 4 <= race->output_bytes)
        return;
    cli_say(bench->program,
            "the documents of this dataset are too short for this case: a batch can contain %" PRIu64 " of them",
            round->cu_elements);
    bench_end(bench, CLI_FAILED);
}

static void round_close(struct race *race, struct round *round)
{
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    if (!tokmap_loader_stats(round->device, &stats)) {
        race->waits += stats.waits;
        race->late_copies += stats.late_copies;
        race->host_expanded += stats.host_expanded;
    }
    tokmap_loader_close(round->device);
    tokmap_loader_close(round->host);
    tokmap_run_close(round->run);
    memset(round, 0, sizeof *round);
}

/* ---- one batch ---- */

static struct tokmap_out out_of(void *const fields[FIELDS], enum tokmap_id_type type)
{
    return (struct tokmap_out){.size = sizeof(struct tokmap_out),
                               .type = type,
                               .inputs = fields[INPUTS],
                               .targets = fields[TARGETS],
                               .position_ids = fields[POSITION_IDS],
                               .rows = fields[ROWS],
                               .document_ids = fields[DOCUMENT_IDS],
                               .loss_mask = fields[LOSS_MASK],
                               .cu_seqlens = fields[CU_SEQLENS],
                               .labels = fields[LABELS]};
}

/* Returns number and size of the words in one output of a batch. */
static struct gpu_checksum words_of(const struct round *round, const struct tokmap_batch *batch, int field,
                                    enum tokmap_id_type type)
{
    if (field == ROWS)
        return (struct gpu_checksum){.count = batch->count * batch->row_tokens, .word_bytes = round->width};
    if (field == CU_SEQLENS)
        return (struct gpu_checksum){.count = round->cu_elements, .word_bytes = 4};
    return (struct gpu_checksum){.count = batch->count * round->seq_len * (type == TOKMAP_ID_I64 ? 2 : 1),
                                 .word_bytes = 4};
}

/* Delays the consumer's stream, the consumer or the copy engine, in about a third of the calls. */
static void delay_something(struct race *race)
{
    struct gpu *gpu = &race->gpu;
    const uint64_t which = random_below(&race->state, 16);
    if (which < 3)
        gpu_launch_spin(gpu, &(struct gpu_spin){race->spin_out, random_below(&race->state, 20000)});
    if (which == 3)
        os_sleep_ns(random_below(&race->state, 100000));
    if (which == 4)
        gpu_check(gpu,
                  gpu->driver->copy_to_device(race->traffic_to, race->traffic_from,
                                              4096 << random_below(&race->state, 11), race->traffic),
                  "copying beside the loader");
}

static void device_batch(struct bench *bench, struct race *race, const struct round *round, uint64_t number,
                         enum tokmap_id_type type)
{
    struct gpu *gpu = &race->gpu;
    struct tokmap_batch *batch = &race->batches[number];
    const uint64_t *outputs = race->outputs[random_below(&race->state, SETS)];
    void *fields[FIELDS];
    assert(number < BLOCK);
    for (int field = 0; field < FIELDS; field++)
        fields[field] = (void *)(uintptr_t)outputs[field]; /* NOLINT: a device address */
    const struct tokmap_out out = out_of(fields, type);
    delay_something(race);
    *batch = (struct tokmap_batch)TOKMAP_BATCH_INIT;
    bench_check(bench, tokmap_loader_next(round->device, &out, gpu->stream, batch, &bench->error));
    delay_something(race);
    for (int field = 0; field < FIELDS; field++) {
        struct gpu_checksum work = words_of(round, batch, field, type);
        work.words = outputs[field];
        work.sum = race->sums + (number * FIELDS + (uint64_t)field) * 8;
        if (round->fields & field_bits[field])
            gpu_launch_checksum(gpu, &work);
    }
}

static uint64_t host_sum(const void *words, const struct gpu_checksum *work)
{
    uint64_t sum = 0;
    if (work->word_bytes == 4)
        for (uint64_t at = 0; at < work->count; at++)
            sum += gpu_word_sum(((const uint32_t *)words)[at], at);
    else
        for (uint64_t at = 0; at < work->count; at++)
            sum += gpu_word_sum(((const uint16_t *)words)[at], at);
    return sum;
}

static void mismatch(struct bench *bench, struct race *race, const struct round *round, const char *what, uint64_t step)
{
    if (!race->mismatches++)
        cli_say(bench->program,
                "MISMATCH: %s of step %" PRIu64 " in the run with seq_len %" PRIu64 ", batch %" PRIu64 ", seed %" PRIu64
                ", fields 0x%x, mask_targets %u, ring_bytes %" PRIu64 " (further mismatches are only counted)",
                what, step, round->seq_len, round->rows, round->seed, round->fields, round->mask_targets,
                round->ring_bytes);
}

/* Makes the same batch on the host, compares its description, and computes the checksums of its outputs. */
static void host_batch(struct bench *bench, struct race *race, const struct round *round, uint64_t number,
                       enum tokmap_id_type type)
{
    const struct tokmap_out out = out_of(race->host_outputs, type);
    const struct tokmap_batch *device = &race->batches[number];
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    bench_check(bench, tokmap_loader_next(round->host, &out, NULL, &batch, &bench->error));
    if (batch.step != device->step || batch.count != device->count || batch.first_row != device->first_row ||
        batch.documents != device->documents || batch.max_seqlen != device->max_seqlen ||
        memcmp(&batch.cursor, &device->cursor, sizeof batch.cursor) != 0)
        mismatch(bench, race, round, "the description", batch.step);
    for (int field = 0; field < FIELDS; field++) {
        const struct gpu_checksum work = words_of(round, &batch, field, type);
        if (round->fields & field_bits[field])
            race->wanted[number][field] = host_sum(race->host_outputs[field], &work);
    }
}

/* ---- blocks ---- */

static void block_run(struct bench *bench, struct race *race, const struct round *round, uint64_t count)
{
    static uint64_t found[BLOCK][FIELDS];
    struct gpu *gpu = &race->gpu;
    const enum tokmap_id_type type = random_below(&race->state, 2) ? TOKMAP_ID_I64 : TOKMAP_ID_I32;
    gpu_check(gpu, gpu->driver->memset_bytes(race->sums, 0, sizeof found, gpu->stream), "clearing memory");
    for (uint64_t i = 0; i < count; i++)
        device_batch(bench, race, round, i, type);
    for (uint64_t i = 0; i < count; i++)
        host_batch(bench, race, round, i, type);
    gpu_check(gpu, gpu->driver->copy_to_host(found, race->sums, sizeof found, gpu->stream), "reading checksums");
    gpu_synchronize(gpu);
    for (uint64_t i = 0; i < count; i++)
        for (int field = 0; field < FIELDS; field++) {
            if (!(round->fields & field_bits[field]))
                continue;
            race->compared++;
            if (found[i][field] != race->wanted[i][field])
                mismatch(bench, race, round, field_names[field], race->batches[i].step);
        }
    race->done += count;
}

static void round_run(struct bench *bench, struct race *race, uint64_t batches)
{
    struct round round;
    round_open(bench, race, &round);
    const uint64_t goal = race->done + min64(batches, ROUND / 2 + random_below(&race->state, ROUND));
    while (race->done < goal && !bench_stopped())
        block_run(bench, race, &round, min64(goal - race->done, 1 + random_below(&race->state, BLOCK)));
    gpu_synchronize(&race->gpu);
    round_close(race, &round);
    race->rounds++;
}

/* ---- the case ---- */

static void race_open(struct bench *bench, struct race *race)
{
    race->data = bench->options.dataset ? bench->options.dataset : DATA;
    race->output_bytes = (uint64_t)ROWS_MOST * (SEQ_LEN_MOST + 2) * 8;
    race->state = 20261120;
    gpu_open(bench, &race->gpu);
    race->sums = gpu_memory_new(&race->gpu, sizeof race->wanted);
    race->traffic_to = gpu_memory_new(&race->gpu, TRAFFIC);
    race->spin_out = gpu_memory_new(&race->gpu, 8);
    for (int field = 0; field < FIELDS; field++) {
        for (int set = 0; set < SETS; set++)
            race->outputs[set][field] = gpu_memory_new(&race->gpu, race->output_bytes);
        race->host_outputs[field] = bench_new(bench, race->output_bytes, 1);
    }
    gpu_check(&race->gpu, race->gpu.driver->host_alloc(&race->traffic_from, TRAFFIC, CUDA_HOST_PORTABLE),
              "allocating page-locked memory");
    gpu_check(&race->gpu, race->gpu.driver->stream_create(&race->traffic, CUDA_STREAM_NON_BLOCKING),
              "creating a stream");
    memset(race->traffic_from, 0x5a, TRAFFIC);
    gpu_synchronize(&race->gpu);
}

static void race_close(struct race *race)
{
    struct gpu *gpu = &race->gpu;
    (void)gpu->driver->stream_synchronize(gpu->stream);
    (void)gpu->driver->stream_synchronize(race->traffic);
    (void)gpu->driver->stream_destroy(race->traffic);
    (void)gpu->driver->host_free(race->traffic_from);
    gpu_memory_free(gpu, &race->sums);
    gpu_memory_free(gpu, &race->traffic_to);
    gpu_memory_free(gpu, &race->spin_out);
    for (int field = 0; field < FIELDS; field++) {
        for (int set = 0; set < SETS; set++)
            gpu_memory_free(gpu, &race->outputs[set][field]);
        free(race->host_outputs[field]);
    }
    gpu_close(gpu);
}

static int run(struct bench *bench)
{
    static struct race race;
    race_open(bench, &race);
    const uint64_t started = os_clock_ns();
    while (race.done < bench->options.batches && !bench_stopped())
        round_run(bench, &race, bench->options.batches - race.done);
    const double seconds = (double)(os_clock_ns() - started) / 1e9;
    race_close(&race);
    bench_stop_check(bench);
    bench_value(bench, "mismatches", "outputs", (double)race.mismatches, 0);
    bench_value(bench, "outputs_compared", "outputs", (double)race.compared, (double)NAN);
    bench_value(bench, "batches", "batches", (double)race.done, (double)bench->options.batches);
    bench_value(bench, "rounds", "rounds", (double)race.rounds, (double)NAN);
    bench_value(bench, "batches_per_s", "batches/s", (double)race.done / seconds, (double)NAN);
    bench_value(bench, "producer_late", "batches", (double)race.waits, (double)race.done);
    bench_value(bench, "copies_late", "batches", (double)race.late_copies, (double)race.done);
    bench_value(bench, "host_expanded", "batches", (double)race.host_expanded, (double)race.done);
    return race.mismatches ? CLI_FAILED : CLI_DONE;
}

const struct bench_case case_race = {
    "race", "every output of --batches batches on a GPU, compared with the host's under random delays", run};
