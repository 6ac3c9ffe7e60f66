/* SPDX-License-Identifier: MIT */
/*
 * shard_set.h - what the packer hands finished documents to: one shard, or a set of shards that are cut at the ends of
 * documents.
 *
 * A document goes to the current shard if it fits there, which means that the shard then has at most shard_tokens
 * tokens, or if the shard has no document yet. Else it begins the next shard. So a document that is longer than
 * shard_tokens has a shard of its own. Documents may come in parts, whose length is known only at the last one: until
 * then the tokens wait in an unnamed file, or, once it is clear which shard they belong to, are written there.
 *
 * Example, with shard_tokens 10: of documents with 4, 5, 2, and 12 tokens, the shards have 4 + 5, 2, and 12.
 *
 * Where the shards are cut depends only on the documents and on shard_tokens, not on how many documents a call adds.
 */
#ifndef TOKMAP_ENCODE_SHARD_SET_H
#define TOKMAP_ENCODE_SHARD_SET_H

#include <stdbool.h>

#include "corpus/corpus_batch.h"
#include "format/shard_save.h"
#include "format/shard_writer.h"
#include "work/set_commit.h"

struct shard_set; /* for one thread at a time */

/* Figures of one shard. */
struct shard_totals {
    uint64_t documents, tokens;
    uint64_t counted_tokens; /* if there is a mask */
    uint64_t text_bytes;     /* of the documents */
};

struct shard_set_options {
    struct shard_writer_options shard; /* shard.seal is copied, and its sealed_bytes is not used */
    /* NULL: the set is one shard, `prefix`, which replaces an older one at the commit. */
    struct set_work *work;
    uint32_t number;       /* of the set in this work */
    const char *prefix;    /* without work */
    uint64_t shard_tokens; /* at least 1; UINT64_MAX: all documents are in one shard */
    /* Makes the about section of a shard, which free() frees; NULL without memory. */
    char *(*about)(void *user, const struct shard_totals *shard, uint64_t *bytes);
    void *user;
};

/* Consecutive documents that come from one file and have consecutive record numbers. The first one may be the rest of a
 * document, and tokens after the last end are the beginning of one. */
struct document_run {
    const char *path; /* of the file */
    uint64_t input;   /* number of the file: see struct corpus_document. Not used here */
    const char *tokens;
    uint64_t count;
    uint64_t *ends;     /* of each document that ends here, in tokens of the run; the set may change them */
    uint64_t documents; /* that end here */
    bool unfinished;    /* one more document begins or continues here, and ends in a later run */
    /* The documents, and how many bytes of text the tokens stand for: `documents` of each, and one more with
     * `unfinished`. */
    const struct corpus_document *from;
    const uint64_t *text_bytes;
    uint64_t largest;    /* of a single shard: at least the largest id of the run, and at most that of all runs */
    const uint8_t *mask; /* with shard.mask: bit mask_first + i is that of token i; documents are then whole */
    uint64_t mask_first;
};

/* Statuses: those of shard_writer_open(). */
enum tokmap_status shard_set_open(struct shard_set **set, const struct shard_set_options *options,
                                  struct tokmap_error *error);

/* State of a set beside its open shard, for a process that continues it. */
struct shard_set_state {
    struct shard_totals shard; /* of the open shard */
    uint64_t shards, documents, tokens, oversized;
    uint64_t open, placed, open_tokens, open_text; /* of the document that has not ended */
};

/* Returns false while tokens wait for their shard: the set cannot be saved at the moment. */
bool shard_set_can_save(const struct shard_set *set);
/* Passes on what was added to the open shard since the last call, and states the rest. Increments are those of one
 * shard: state->shards is its number. Statuses: those of shard_writer_save(). */
enum tokmap_status shard_set_save(struct shard_set *set, struct shard_set_state *state, struct state_sink *sink,
                                  struct tokmap_error *error);
enum tokmap_status shard_set_sync(struct shard_set *set, struct tokmap_error *error);
/* Removes, when the state of the last shard_set_save() is on storage, what only the state before it needed, the tokens
 * of a shard that is sealed now. */
void shard_set_saved(struct shard_set *set);

/* Opens the set of a killed process with the state that it saved last; shard_set_load() takes the increments of the
 * shard state->shards, in order, and shard_set_restored() ends that. Shards that were finished later are removed.
 * Statuses: those of shard_set_open(), ERROR_NOT_FOUND (a file of it is missing), ERROR_CORRUPT. */
enum tokmap_status shard_set_reopen(struct shard_set **set, const struct shard_set_options *options,
                                    const struct shard_set_state *state, struct tokmap_error *error);
enum tokmap_status shard_set_load(struct shard_set *set, uint32_t kind, const uint8_t *bytes, size_t count,
                                  struct tokmap_error *error);
enum tokmap_status shard_set_restored(struct shard_set *set, struct tokmap_error *error);

/* Statuses: OK, those of shard_writer.h, ERROR_LIMIT (more than SET_SHARDS_MOST shards). */
enum tokmap_status shard_set_add(struct shard_set *set, const struct document_run *run, struct tokmap_error *error);

struct shard_set_result {
    uint64_t shards, documents, tokens;
    uint64_t sealed_bytes; /* of all NAME.bin.zst; 0: the shards are not sealed */
    uint64_t oversized;    /* documents that are longer than shard_tokens */
    uint8_t content[16];   /* of the dataset */
};

/* Reports what was added so far. */
void shard_set_result(const struct shard_set *set, struct shard_set_result *result);

/* Does everything of shard_set_commit() that can take long, or fail for want of space: files get their names in that
 * call alone. After a failure the set can only be left or abandoned. Statuses: those of shard_writer_finish(). */
enum tokmap_status shard_set_finish(struct shard_set *set, struct tokmap_error *error);

/* Commits the last shard: without work under its name, else as one that waits, which set_work_commit() names. A set
 * without documents gets one empty shard. Frees the set with every status; *result is set with status OK. */
enum tokmap_status shard_set_commit(struct shard_set *set, struct shard_set_result *result, struct tokmap_error *error);

/* Returns true if the shards of a set have their names, which a killed process has given them after it saved the state:
 * reads what they say. PREFIX.bin, or with `numbered` PREFIX.ENDING-00000.bin and so on, without the point if the
 * ending is "". */
bool shard_set_is_complete(const char *prefix, const char *ending, bool numbered, const struct shard_set_state *state,
                           struct shard_set_result *result);

/* Frees the set and leaves its shards, for shard_set_reopen(). NULL is ignored. */
void shard_set_leave(struct shard_set *set);

/* Removes the unfinished shard and frees the set. NULL is ignored. */
void shard_set_abandon(struct shard_set *set);

#endif
