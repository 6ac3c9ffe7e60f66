/* SPDX-License-Identifier: MIT */
/*
 * loops.h - the two loops that read windows: the plain one, which is the limit, and the loader's.
 *
 * The limit of the loader: a loop in plain C that reads windows from the mapping and widens them into inputs and
 * targets. It has no order to compute, no ids to check, no ring and no statistics.
 *
 * The loop reads each window once, from the mapping, and writes both outputs. As the limit it is compiled with the same
 * flags as the rest of the program. Compiled from the same source for the processor's widest vectors (AVX2, AVX-512) it
 * is about 10% faster; the case `limits` shows both.
 */
#ifndef TOKMAP_BENCH_HARNESS_LOOPS_H
#define TOKMAP_BENCH_HARNESS_LOOPS_H

#include "harness.h"

/* Windows of a dataset in random order, each inside a single shard. Their pages are populated. */
struct windows {
    const uint8_t **at; /* address of each window's first byte */
    uint64_t *first;    /* number of its first token in the dataset */
    uint64_t count;
    uint64_t seq_len; /* each window has seq_len + 1 tokens */
    uint64_t shift;   /* number of the first token of window 0 */
    uint32_t width;
};

/* Chooses at most `most` windows of seq_len + 1 tokens, one after another from token seq_len / 3 on: those of all
 * epochs of a run but the first begin at such a shift, so a window of 4 KiB has parts of two pages. The dataset must be
 * mapped and must stay open while the windows are used. Statuses: as for tokmap_dataset_view(); ERROR_RANGE if no
 * shard is long enough for one; ERROR_MEMORY. After a failure *windows is empty. */
enum tokmap_status windows_new(struct windows *windows, const struct tokmap_dataset *dataset, uint64_t seq_len,
                               uint64_t most, uint64_t seed, struct tokmap_error *error);
/* Accepts windows that are all zeros. */
void windows_free(struct windows *windows);
/* Returns the index of the next window and advances *next, which starts again at 0 after the last one. */
static inline uint64_t windows_next(const struct windows *windows, uint64_t *next)
{
    const uint64_t index = *next;
    *next = index + 1 == windows->count ? 0 : index + 1;
    return index;
}

/* The tokens of a dataset's first shard, to be read with bare calls of pread(). */
struct plain_file {
    int fd;
    uint64_t windows; /* that end in this file */
    uint8_t *window;  /* memory for one */
};
/* `tokens` is the number of tokens in the file. Returns 0 or an errno; after a failure *file is all
 * zeros. */
int plain_file_open(struct plain_file *file, const struct windows *windows, const char *path, uint64_t tokens);
/* Accepts a file that is all zeros. */
void plain_file_close(struct plain_file *file);
/* Reads the file's window in place of the dataset's next window, which can be in another shard, and advances *next. */
void plain_file_read(const struct plain_file *file, const struct windows *windows, uint64_t *next, uint8_t *into);

/* Widens one window of seq_len + 1 tokens of `width` bytes: inputs[j] = token j, targets[j] = token j + 1, for j <
 * seq_len. targets may be NULL. */
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
/* Allocates the buffers, and leaves their pages untouched. Returns 0 or an errno. */
int outputs_allocate(struct outputs *outputs, uint64_t rows, uint64_t seq_len, enum tokmap_id_type type);
/* Does the same, and touches every page. */
int outputs_new(struct outputs *outputs, uint64_t rows, uint64_t seq_len, enum tokmap_id_type type);
/* Accepts outputs that are all zeros. */
void outputs_free(struct outputs *outputs);

/* Parameters of the loop. */
struct plain_loop {
    plain_widen *widen;
    const struct windows *windows;
    const struct outputs *outputs;
    uint64_t rows; /* windows in a batch */
    enum tokmap_id_type type;
    bool with_targets;             /* false: write inputs only */
    const struct plain_file *file; /* NULL: the windows are read from the mapping */
};

/* Runs the loop for at least `seconds`, beginning with window *next, which it advances. If samples is not NULL, the
 * time of each batch is added to it. Returns the rate in tokens per second; a batch counts as rows * seq_len tokens. */
double plain_loop_repeat(const struct plain_loop *loop, uint64_t *next, double seconds, struct samples *samples);

/* ==== the loader's loop ==== */

/*
 * A loader together with the buffers that it fills and the last batch that it delivered.
 *
 * Functions that return an int return CLI_DONE, or CLI_FAILED after a message.
 */

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
/* Does the same without outputs: the caller sets reader->out. */
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
int reader_repeat(struct bench *bench, struct reader *reader, enum tokmap_id_type type, double seconds,
                  struct samples *samples, double *rate, double *cpu);

/* Fills in the loader's statistics. */
void reader_stats(const struct reader *reader, struct tokmap_stats *stats);

/* Takes batches until the ring has been full once, but for at most a second. */
int reader_fill(struct bench *bench, struct reader *reader);

/* Returns the wait in nanoseconds that `share` (0 to 1) of the calls between two snapshots of the statistics did not
 * exceed. The value is interpolated linearly inside a bucket of the loader's histogram. */
double waits_at(const struct tokmap_stats *before, const struct tokmap_stats *after, double share);

#endif
