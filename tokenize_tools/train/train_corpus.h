/*
 * train_corpus.h - corpus to vocabulary: batches are read one after the other, taken apart and counted in parallel, and
 * accounted for in the order of the input, as packing does it; then merged and written.
 */
#ifndef TOKMAP_TRAIN_TRAIN_CORPUS_H
#define TOKMAP_TRAIN_TRAIN_CORPUS_H

#include "corpus/corpus.h"
#include "train_write.h"

enum train_stage { TRAIN_READING, TRAIN_MERGING };

struct train_corpus_options {
    const char *prefix; /* of the files */
    bool replace;
    uint32_t threads;    /* at least 1; 1 runs in the caller's thread */
    uint32_t vocabulary; /* ids that are wanted, special tokens included */
    uint64_t min_frequency;
    uint64_t memory; /* that the pieces and their merging may use */
    struct train_settings settings;
    struct corpus_options corpus; /* cut_anywhere, batch_bytes, before_large, stop and user are set here */
    /* By one thread at a time; in the order of the input: something was left out. So much is done with: stored bytes,
     * or tokens of the vocabulary. Either may be NULL. */
    void (*skipped)(void *user, const struct tokmap_error *why, uint64_t bytes);
    void (*progress)(void *user, enum train_stage stage, uint64_t done);
    bool (*stop)(void *user); /* asked often: true ends the work with ERROR_INTERRUPTED; may be NULL */
    void *user;
};

struct train_corpus_result {
    struct corpus_counts counts;
    struct train_totals totals;
    uint32_t tokens;         /* of the vocabulary, without special tokens */
    uint64_t trained_tokens; /* of the text, with it */
    double counting_seconds, merging_seconds;
};

#define TRAIN_THREADS_MOST 256

/* On failure no file is left, and old ones are as they were. Statuses: as pack_run has them. */
enum tokmap_status train_corpus(const struct train_corpus_options *options, const char *const *operands, size_t count,
                                struct train_corpus_result *result, struct tokmap_error *error);

#endif
