/*
 * pack.h - corpus to shard: batches are read one after the other, taken apart and encoded in parallel, and committed in
 * the order of the input. The shard is a function of inputs and options alone, whatever the number of threads.
 */
#ifndef TOKMAP_PACK_PACK_H
#define TOKMAP_PACK_PACK_H

#include <stdbool.h>

#include "corpus/corpus.h"
#include "tokenizer/tokenizer.h"

struct pack_options {
    const char *prefix; /* of the shard */
    bool dry_run;       /* do all but write */
    bool replace, sync; /* as shard_writer.h has them */
    uint32_t threads;   /* at least 1; 1 runs in the caller's thread */
    const struct tokenizer *tokenizer;
    const struct tokenizer_options *tokenizer_options; /* that it was opened with, for the about section; NULL: defaults */
    uint64_t eod_id, bos_id;      /* appended to and put before each document, or TOKMAP_NO_ID */
    struct corpus_options corpus; /* cut_anywhere, batch_bytes, before_large and user are the packer's to set */
    /* Called in the order of the input, by one thread at a time: something was left out; so much of the files has been
     * done with. Either may be NULL. */
    void (*skipped)(void *user, const struct tokmap_error *why, uint64_t bytes);
    void (*progress)(void *user, uint64_t stored_bytes);
    bool (*stop)(void *user); /* asked often: true ends the work with ERROR_INTERRUPTED; may be NULL */
    void *user;
};

struct pack_result {
    struct corpus_counts counts;
    uint64_t tokens;
    uint64_t eod_tokens, bos_tokens; /* of them */
    uint64_t largest_id;
    uint8_t content[16]; /* content id; zero for a dry run */
};

#define PACK_THREADS_MOST 256

/* On failure no file is left, and an old shard is as it was.
 * Statuses: OK, ERROR_INPUT, ERROR_ENCODING, ERROR_LIMIT, ERROR_UNSUPPORTED, ERROR_CORRUPT, ERROR_TRUNCATED,
 * ERROR_MISMATCH (inputs); ERROR_EXISTS, ERROR_BUSY (output); ERROR_NOT_FOUND, ERROR_IO, ERROR_ARGUMENT (either);
 * ERROR_INTERRUPTED, ERROR_MEMORY, ERROR_INTERNAL (the accounts do not add up). */
enum tokmap_status pack_run(const struct pack_options *options, const char *const *operands, size_t count,
                            struct pack_result *result, struct tokmap_error *error);

/* The about section: what decides the bytes, and the totals; nothing of time, host, threads or names. Allocated. NULL
 * without memory. */
char *pack_about(const struct pack_options *options, const struct pack_result *result, uint64_t *bytes);

#endif
