/*
 * plain_loop.h - the limit of the loader: a loop in plain C that takes windows from the mapping and widens them into
 * inputs and targets, and does nothing else: no order, no checks, no ring, no statistics.
 *
 * Each window is read once, from the mapping straight into both outputs. The limit is the loop as the compiler makes it
 * with the flags of the rest of the program. Compiled from the same source for the processor's widest vectors (AVX2,
 * AVX-512) it is some 10% faster; `limits` shows both.
 */
#ifndef TOKMAP_BENCH_HARNESS_PLAIN_LOOP_H
#define TOKMAP_BENCH_HARNESS_PLAIN_LOOP_H

#include "harness.h"

/* Windows of a dataset in random order, each wholly inside one shard. Their pages are populated. */
struct windows {
    const uint8_t **at; /* first byte of each */
    uint64_t *first;    /* its first token */
    uint64_t count;
    uint64_t seq_len; /* each holds one token more */
    uint32_t width;
};

/* At most `most` windows of seq_len + 1 tokens at multiples of seq_len. Statuses: as tokmap_dataset_view(), and
 * ERROR_RANGE if the dataset holds none. */
enum tokmap_status windows_new(struct windows *windows, const struct tokmap_dataset *dataset, uint64_t seq_len,
                               uint64_t most, uint64_t seed, struct tokmap_error *error);
void windows_free(struct windows *windows);

/* Widens one window of `seq_len` + 1 tokens: inputs[j] = token j, targets[j] = token j + 1. targets may be NULL. */
typedef void plain_widen(const void *window, uint32_t width, uint64_t seq_len, enum tokmap_type type, void *inputs,
                         void *targets);
plain_widen plain_widen_base;
plain_widen *plain_widen_widest(void);

/* Buffers for the outputs of a batch. */
struct outputs {
    void *inputs, *targets;
    uint64_t bytes; /* each */
};
/* 0 or an errno; the memory has been touched. */
int outputs_new(struct outputs *outputs, uint64_t rows, uint64_t seq_len, enum tokmap_type type);
void outputs_free(struct outputs *outputs);

/* One turn of the loop: batches of `rows` windows for at least `seconds`, from *next on, round and round. With
 * `samples` each batch is timed. `with_targets` false writes inputs alone. Returns tokens (rows * seq_len a batch) a
 * second. */
double plain_loop_turn(plain_widen *body, const struct windows *windows, uint64_t *next, uint64_t rows,
                       enum tokmap_type type, bool with_targets, const struct outputs *outputs, double seconds,
                       struct samples *samples);

#endif
