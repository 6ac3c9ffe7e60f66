/* SPDX-License-Identifier: MIT */
/*
 * train_corpus.h - trains a vocabulary on a corpus and writes its files. Batches are read one after the other, their
 * pieces are counted in parallel, and issues are reported in the order of the input, as in packing
 * (encode/ordered_workers.h). Then the vocabulary is made of them (train_merges.h) and its files are written
 * (train_write.h).
 */
#ifndef TOKMAP_TRAIN_TRAIN_CORPUS_H
#define TOKMAP_TRAIN_TRAIN_CORPUS_H

#include "corpus/corpus.h"
#include "encode/ordered_workers.h"
#include "train_write.h"

enum train_stage { TRAIN_READING, TRAIN_LEARNING };

struct train_corpus_options {
    const char *prefix;     /* of the output files */
    bool replace;           /* existing files are replaced */
    uint32_t threads;       /* 1 to TRAIN_THREADS_MOST; with 1, everything runs in the caller's thread */
    uint32_t vocabulary;    /* wanted number of ids, with special tokens: 256 + settings.special_count or more */
    uint64_t min_frequency; /* pairs that are less frequent never merge */
    uint64_t memory;        /* limit for the pieces and what is learned from them, in bytes */
    struct train_settings settings;
    struct skip_limit skip_limit; /* ERROR_LIMIT if more than this is left out */
    const char *other_output;     /* a file that the caller writes at the same time and that is not an input, or NULL */
    struct corpus_options corpus; /* cut_anywhere, batch_bytes, before_large, stop and user are overwritten */

    /* Called by one thread at a time: after a file or record was left out, in the order of the input, with the issue
     * (valid during the call) and its message; and often, with the stage and how far it is, in stored bytes of the
     * files (READING) or ids of the vocabulary (LEARNING). Either may be NULL. */
    void (*skipped)(void *user, const struct corpus_issue *issue, const struct tokmap_error *why);
    void (*progress)(void *user, enum train_stage stage, uint64_t done);
    /* Called often, by any thread: true ends the work with ERROR_INTERRUPTED. May be NULL. */
    bool (*stop)(void *user);
    void *user;
};

struct train_corpus_result {
    struct corpus_counts counts;
    struct train_totals totals;
    uint32_t tokens;         /* size of the vocabulary without special tokens */
    uint64_t trained_tokens; /* number of tokens of the text, encoded with this vocabulary */
    double counting_seconds, learning_seconds;
};

#define TRAIN_THREADS_MOST 256

/* Trains on the operands (see inputs/inputs.h). After an error, no partial file is left; existing files are unchanged
 * unless the error occurred while files were renamed. Statuses: those of pack_run(). */
enum tokmap_status train_corpus(const struct train_corpus_options *options, const char *const *operands, size_t count,
                                struct train_corpus_result *result, struct tokmap_error *error);

#endif
