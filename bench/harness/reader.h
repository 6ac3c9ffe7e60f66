/* SPDX-License-Identifier: MIT */
/*
 * reader.h - a loader together with the buffers that it fills and the last batch that it delivered.
 *
 * Functions that return an int return CLI_DONE, or CLI_FAILED after a message.
 */
#ifndef TOKMAP_BENCH_HARNESS_READER_H
#define TOKMAP_BENCH_HARNESS_READER_H

#include "harness.h"
#include "plain_loop.h"

struct reader {
    struct tokmap_loader *loader;
    struct outputs outputs;
    struct tokmap_out out;
    struct tokmap_batch batch;
    struct tokmap_error error; /* of the last reader_next() that failed */
};

/* Empties a reader, whatever it held. */
static inline void reader_clear(struct reader *reader)
{
    *reader = (struct reader){.out = TOKMAP_OUT_INIT, .batch = TOKMAP_BATCH_INIT};
}

/* Opens a loader over the run for bench->rank of --world, beginning at `step`. threads: 0 (no producer thread) or 1.
 * fields: TOKMAP_INPUTS, TOKMAP_TARGETS, or 0 for pointers to the rows in the ring. Call reader_close() in either
 * case. */
int reader_open(struct bench *bench, struct reader *reader, const struct tokmap_run *run, uint32_t threads,
                uint32_t fields, uint64_t step);
/* The same without outputs: the caller sets reader->out. */
int reader_open_loader(struct bench *bench, struct reader *reader, const struct tokmap_run *run, uint32_t threads,
                       uint32_t fields, uint64_t step);
/* Accepts a reader that is all zeros, and a second call. */
void reader_close(struct reader *reader);

/* Takes the next batch. Returns the status of tokmap_loader_next(). */
static inline enum tokmap_status reader_next(struct reader *reader)
{
    return tokmap_loader_next(reader->loader, &reader->out, NULL, &reader->batch, &reader->error);
}

/* Takes batches without a pause for `seconds`, with outputs of `type`. Unless the pointers are NULL, sets *rate to
 * tokens per second, sets *cpu to the processor seconds of the whole process per million tokens, and adds the time of
 * each call to samples. */
int reader_repeat(struct bench *bench, struct reader *reader, enum tokmap_type type, double seconds,
                  struct samples *samples, double *rate, double *cpu);

/* Fills in the loader's statistics. */
void reader_stats(const struct reader *reader, struct tokmap_stats *stats);

/* Takes batches until the ring has been full once, but for at most a second. */
int reader_fill(struct bench *bench, struct reader *reader);

/* Returns the wait in nanoseconds that `share` (0 to 1) of the calls between two snapshots of the statistics did not
 * exceed. The value is interpolated linearly inside a bucket of the loader's histogram. */
double waits_at(const struct tokmap_stats *before, const struct tokmap_stats *after, double share);

#endif
