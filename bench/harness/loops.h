/* SPDX-License-Identifier: MIT */
/*
 * loops.h - what the loops that read windows share: the body of the plain one, which is the limit, and the loader's.
 *
 * The body of the plain loop widens windows into inputs and targets. As the limit of the loader it is compiled with the
 * same flags as the rest of the program. Compiled from the same source for the processor's widest vectors (AVX2,
 * AVX-512) it is about 10% faster.
 */
#ifndef TOKMAP_BENCH_HARNESS_LOOPS_H
#define TOKMAP_BENCH_HARNESS_LOOPS_H

#include "harness.h"

/* Widens one window of seq_len + 1 tokens of `width` bytes: inputs[j] = token j, targets[j] = token j + 1, for j <
 * seq_len. */
typedef void plain_widen(const void *window, uint32_t width, uint64_t seq_len, enum tokmap_id_type type, void *inputs,
                         void *targets);
plain_widen plain_widen_base;
/* Returns the loop for the widest vectors that the processor and TOKMAP_CPU allow. */
plain_widen *plain_widen_widest(void);

/* Buffers for the outputs of a batch. */
struct outputs {
    void *inputs, *targets;
    uint64_t bytes; /* of each buffer */
};

/* Allocates the buffers for so many rows of --seq-len ids, and leaves their pages untouched. */
void outputs_allocate(struct bench *bench, struct outputs *outputs, uint64_t rows, enum tokmap_id_type type);

/* Does the same, and touches every page. */
void outputs_new(struct bench *bench, struct outputs *outputs, uint64_t rows, enum tokmap_id_type type);
/* Accepts outputs that are all zeros. */
void outputs_free(struct outputs *outputs);

/* ==== the loader's loop ==== */

/*
 * A loader together with the buffers that it fills and the last batch that it delivered.
 */
#define READER_BOTH (TOKMAP_INPUTS | TOKMAP_TARGETS)
#define READER_WINDOWS_MOST ((uint64_t)1 << 20) /* of a first pass over a large dataset */

struct reader {
    struct tokmap_loader *loader;
    struct outputs outputs;
    struct tokmap_out out;
    uint64_t values_bytes; /* of out.values[0] */
    struct tokmap_batch batch;
    struct tokmap_error error; /* of the last reader_next() that failed */
};

/* Returns the options of a loader for bench->rank of --world. threads: 0 (no producer thread) or 1. fields:
 * TOKMAP_INPUTS, TOKMAP_TARGETS, or 0 for pointers to the rows in the ring. */
struct tokmap_loader_options reader_options(const struct bench *bench, uint32_t threads, uint32_t fields);

/* Opens a loader over the run, whatever the reader held, with buffers for the inputs and targets that are among its
 * fields, and for the values of options->values, which has one name. They have room for 64-bit ids, and
 * reader->out.type is TOKMAP_ID_I32. */
void reader_open(struct bench *bench, struct reader *reader, const struct tokmap_run *run,
                 const struct tokmap_loader_options *options);

/* Does the same without buffers: the caller sets reader->out. */
void reader_open_bare(struct bench *bench, struct reader *reader, const struct tokmap_run *run,
                      const struct tokmap_loader_options *options);
/* Accepts a reader that is all zeros, and a second call. */
void reader_close(struct reader *reader);
/* Takes the next batch. Returns the status of tokmap_loader_next(). */
static inline enum tokmap_status reader_next(struct reader *reader)
{
    return tokmap_loader_next(reader->loader, &reader->out, NULL, &reader->batch, &reader->error);
}

/* Takes so many batches, or fewer if the user asked to stop. */
void reader_take(struct bench *bench, struct reader *reader, uint64_t batches);

/* Takes batches until the loader has touched every page of so many windows, of a large dataset READER_WINDOWS_MOST. The
 * first access to a mapped page costs a fault, and the first read of a page by pread reads all of it and compares it
 * with its hash. Returns the number of batches. */
uint64_t reader_first_pass(struct bench *bench, struct reader *reader, uint64_t windows);

/* Takes batches without a pause for `seconds`, with outputs of `type`. Returns tokens per second. Unless the pointers
 * are NULL, sets *cpu to the processor seconds of the whole process per million tokens, and adds the time of each call
 * to samples. */
double reader_repeat(struct bench *bench, struct reader *reader, enum tokmap_id_type type, double seconds,
                     struct samples *samples, double *cpu);

/* Measures two readers of 32-bit ids in turns, each for `seconds`, and adds the rates of readers[i] to rates[i]. */
void readers_compare(struct bench *bench, struct reader *const readers[2], struct repeats repeats, double seconds,
                     struct series rates[2]);
/* Fills in the loader's statistics. */
void reader_stats(const struct reader *reader, struct tokmap_stats *stats);

#endif
