/* SPDX-License-Identifier: MIT */
/*
 * plain_loop.h - the limit of the loader: a loop in plain C that reads windows from the mapping and widens them into
 * inputs and targets. It has no order to compute, no ids to check, no ring and no statistics.
 *
 * The loop reads each window once, from the mapping, and writes both outputs. As the limit it is compiled with the same
 * flags as the rest of the program. Compiled from the same source for the processor's widest vectors (AVX2, AVX-512) it
 * is about 10% faster; the case `limits` shows both.
 */
#ifndef TOKMAP_BENCH_HARNESS_PLAIN_LOOP_H
#define TOKMAP_BENCH_HARNESS_PLAIN_LOOP_H

#include "harness.h"

/* Windows of a dataset in random order, each inside a single shard. Their pages are populated. */
struct windows {
    const uint8_t **at; /* address of each window's first byte */
    uint64_t *first;    /* number of its first token in the dataset */
    uint64_t count;
    uint64_t seq_len; /* each window has seq_len + 1 tokens */
    uint32_t width;
};

/* Chooses at most `most` windows of seq_len + 1 tokens that begin at multiples of seq_len. The dataset must be
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
    uint64_t windows; /* that begin at multiples of seq_len and end in this file */
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
typedef void plain_widen(const void *window, uint32_t width, uint64_t seq_len, enum tokmap_type type, void *inputs,
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
int outputs_allocate(struct outputs *outputs, uint64_t rows, uint64_t seq_len, enum tokmap_type type);
/* The same, and touches every page. */
int outputs_new(struct outputs *outputs, uint64_t rows, uint64_t seq_len, enum tokmap_type type);
/* Accepts outputs that are all zeros. */
void outputs_free(struct outputs *outputs);

/* How to run the loop. */
struct plain_loop {
    plain_widen *widen;
    const struct windows *windows;
    const struct outputs *outputs;
    uint64_t rows; /* windows in a batch */
    enum tokmap_type type;
    bool with_targets;             /* false: write inputs only */
    const struct plain_file *file; /* NULL: the windows are read from the mapping */
};

/* Runs the loop for at least `seconds`, beginning with window *next, which it advances. If samples is not NULL, the
 * time of each batch is added to it. Returns the rate in tokens per second; a batch counts as rows * seq_len tokens. */
double plain_loop_repeat(const struct plain_loop *loop, uint64_t *next, double seconds, struct samples *samples);

#endif
