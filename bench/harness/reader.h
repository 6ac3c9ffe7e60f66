/* reader.h - a loader with the memory that it writes into, as a case uses it. */
#ifndef TOKMAP_BENCH_HARNESS_READER_H
#define TOKMAP_BENCH_HARNESS_READER_H

#include "harness.h"
#include "plain_loop.h"

struct reader {
    struct tokmap_loader *loader;
    struct outputs outputs;
    struct tokmap_out out;
    struct tokmap_batch batch;
    struct tokmap_error error;
};

/* Opens a loader of rank 0 of 1 over the run: threads 0 or 1; fields of the loader (0: row pointers alone); at the
 * start of `step`. CLI_DONE, or CLI_FAILED after a message. Close it in either case. */
int reader_open(struct bench *bench, struct reader *reader, const struct tokmap_run *run, uint32_t threads,
                uint32_t fields, uint64_t step);
void reader_close(struct reader *reader);

static inline enum tokmap_status reader_next(struct reader *reader)
{
    return tokmap_loader_next(reader->loader, &reader->out, NULL, &reader->batch, &reader->error);
}

/* Batches for `seconds`, flat out, widened to `type`. Sets tokens a second and, where asked, CPU seconds of the process
 * a million tokens. With samples each call is timed. CLI_DONE, or CLI_FAILED after a message. */
int reader_turn(struct bench *bench, struct reader *reader, enum tokmap_type type, double seconds,
                struct samples *samples, double *rate, double *cpu);

/* Statistics of the loader now. */
void reader_stats(const struct reader *reader, struct tokmap_stats *stats);
/* Takes batches until the ring has been full once, a second at most. CLI_DONE or CLI_FAILED. */
int reader_fill(struct bench *bench, struct reader *reader);

/* The wait that `share` of the calls between two snapshots did not exceed, in ns, straight inside a bucket. */
double waits_at(const struct tokmap_stats *before, const struct tokmap_stats *after, double share);

#endif
