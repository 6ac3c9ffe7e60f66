/* SPDX-License-Identifier: MIT */
/* packing_options.h - what pack_run() takes and returns (pack.h), and what the journal saves of it. */
#ifndef TOKMAP_PACK_PACKING_OPTIONS_H
#define TOKMAP_PACK_PACKING_OPTIONS_H

#include <stdbool.h>

#include "chat/chat.h"
#include "corpus/corpus.h"
#include "corpus/record_values.h"
#include "dedup/drop_filter.h"
#include "dedup/listed_documents.h"
#include "encode/fim.h"
#include "encode/histogram.h"
#include "encode/ordered_workers.h"
#include "encode/shard_set.h"
#include "encode/split.h"
#include "engine/tokenizer.h"

#define PACK_UNIT_BYTES ((uint64_t)16 << 30)

/* See shuffle.h. */
struct pack_shuffle {
    uint64_t seed;
    uint64_t memory; /* for each of the two passes: PACK_SHUFFLE_LEAST to PACK_SHUFFLE_MOST; 0: SHUFFLE_CHUNK_BYTES. It
                      * changes no byte of the output */
};

struct pack_result;
struct shuffle_sorted;

/* One of several units of an output (work_units.h). Its shards, or sorted documents, are finished and stay in
 * PREFIX.work, and the input may have no documents. */
struct pack_unit {
    struct histogram *lengths;       /* of the documents, which are added to it */
    const struct drop_source *drops; /* documents that are dropped; NULL: none */
    uint64_t first_input;            /* the number of its first input among those of all units */
    struct tokenizer_state **states; /* options.threads of them: the next unit finds what is cached; begin as NULL */
    /* Called when the shards are finished. With a shuffle, the unit has no shards, and *sorted says where its documents
     * are; else it is zero. A status other than OK is that of the work. */
    enum tokmap_status (*committed)(void *user, const struct pack_result *result, const struct shuffle_sorted *sorted,
                                    const struct listed_search *listed, struct tokmap_error *error);
    void *user;
};

/* Files of other projects, which are written beside each shard when all shards have their names (pack_also.h). */
#define PACK_ALSO_MOST 8

struct also_written {
    uint64_t written_bytes, shared_bytes; /* shared: tokens that were not written again */
    uint64_t lost;                        /* documents whose boundaries the files do not have */
    uint64_t tokens;
};

/* Files of the same name that are replaced; others are ERROR_EXISTS. */
enum also_replace {
    ALSO_REPLACE_NONE,
    ALSO_REPLACE_EQUAL, /* those that have the same bytes, since a killed process may have written them */
    ALSO_REPLACE_ALL
};

struct pack_also {
    const char *formats; /* the names of all, which name the output as other options do */
    uint32_t count;      /* of the formats, 1 to PACK_ALSO_MOST */
    /* Writes the files of one format for the shard `prefix`, which is complete. A status other than OK ends the work.
     */
    enum tokmap_status (*write)(void *user, uint32_t format, const char *prefix, enum also_replace replace,
                                struct also_written *written, struct tokmap_error *error);
    const char *const *endings; /* of the names of all their files, after that of a shard: ".idx" */
    size_t ending_count;
    size_t mask_endings; /* number of those that only shards with a mask have */
};

/* Receives the items that were left out of all units, in the order of the inputs. A status other than OK ends the
 * work. */
struct skipped_taker {
    void *user;
    enum tokmap_status (*begin)(void *user, struct tokmap_error *error); /* also once more, after a failure */
    /* issue: left_out, is_file, bytes, and asked are those of the item, and all else is zero. */
    enum tokmap_status (*item)(void *user, const struct corpus_issue *issue, const struct tokmap_error *why,
                               struct tokmap_error *error);
    enum tokmap_status (*end)(void *user, struct tokmap_error *error);
};

/* Options, which do not depend on each other. */
struct pack_options {
    const char *prefix;    /* of the shard's files; not used for a dry run */
    bool dry_run;          /* true if nothing is written */
    uint64_t shard_tokens; /* the output is a set of shards with at most so many tokens; 0: it is one shard */
    /* Bytes of input in each unit, if the output is made in several units of work; else 0. The index records it if it
     * is not PACK_UNIT_BYTES. */
    uint64_t unit_bytes;
    const struct pack_unit *unit; /* NULL: the output is whole */
    const struct split
        *split; /* the output is the shard sets PREFIX.NAME, one for each set of it; NULL: it is PREFIX */
    const struct fim
        *fim; /* the texts are rearranged to fill in the middle, and held in memory whole; NULL: they are not */
    const struct pack_shuffle *shuffle; /* the documents are shuffled; NULL: they have the order of the inputs */
    /* Options for sealing each finished shard, with at most options.threads threads. NULL: the shards are plain. */
    const struct shard_writer_seal *seal;
    bool replace, sync;                /* as in shard_writer.h */
    uint32_t threads;                  /* 1 to PACK_THREADS_MOST; with 1, everything runs in the caller's thread */
    const struct tokenizer *tokenizer; /* NULL: corpus.content is ids, below `vocabulary` */
    uint64_t vocabulary;               /* without a tokenizer: 1 to 2^32 */
    /* For corpus.content messages: the template that writes conversations. It must belong to the tokenizer. */
    const struct chat_template *chat;
    const char *const *ignored; /* ignored_count keys of conversations that count for nothing, for the about section */
    size_t ignored_count;
    /* Documents with fewer or more tokens, without the tokens of eod_id and bos_id at their ends, are left out: they
     * become issues with `asked`. 0: no limit. Texts are then held in memory whole. */
    uint64_t min_tokens, max_tokens;
    const struct listed_documents *listed; /* left out before all else; NULL: none are */
    const struct drop_options *drop;       /* duplicates and excluded n-grams; NULL: no document is dropped for them */
    /* Options that the tokenizer was opened with, for the about section. NULL: the defaults. */
    const struct tokmap_tokenizer_options *tokenizer_options;
    const char *tokenizer_path; /* its file or folder as the user gave it, for the about section; NULL: it needs none */
    struct skip_limit skip_limit; /* ERROR_LIMIT if more than this is left out */
    /* The hash of the names of all inputs (pack_inputs_hash()), also those without documents, for the about sections of
     * a set of shards. NULL: they are not known. */
    const char *inputs_hash;
    const char *other_output; /* a file that the caller writes at the same time and that is not an input, or NULL */
    uint64_t eod_id, bos_id;  /* ids that are written after and before each document, or TOKMAP_NO_ID */
    /* pack_run() overwrites vocabulary, cut_anywhere, cut, cut_user, batch_bytes, before_large, stop and user. */
    struct corpus_options corpus;

    /* Receiver of the items that were left out of all units. The process that names the shards calls it before it
     * names them. NULL: the items are not kept. pack_run() does not use it. */
    const struct skipped_taker *skipped_taker;
    /* Called in the order of the input, by one thread at a time: after a file or record was left out, with the issue
     * (valid during the call) and its message; and after each batch, with the stored bytes of the files that are packed
     * so far. Either may be NULL. */
    void (*skipped)(void *user, const struct corpus_issue *issue, const struct tokmap_error *why);
    void (*progress)(void *user, uint64_t stored_bytes);
    /* With duplicates or near-duplicates dropped: like progress(), while the inputs are read to be compared. May be
     * NULL. */
    void (*compared)(void *user, uint64_t stored_bytes);
    /* With a shuffle, once all inputs are read: how many of all tokens are in their shards. May be NULL. */
    void (*shuffled)(void *user, uint64_t tokens, uint64_t all);
    /* Called often, by any thread: true ends the work with ERROR_INTERRUPTED. May be NULL. */
    bool (*stop)(void *user);
    /* Called once, when all is packed, checked, and on storage, and only one rename is between this call and the new
     * output. A status other than OK ends the work with it. May be NULL. */
    enum tokmap_status (*before_commit)(void *user, struct tokmap_error *error);
    const struct pack_also *also; /* called with `user` after the commit; NULL: the shards are all of the output */
    /* State that the caller keeps of the calls of skipped(): state_save() passes on increments of any kind below 2^32
     * whenever the work is saved, and state_load() gets those of a killed process in the same order. Either may be
     * NULL. Statuses of state_load(): any. */
    void (*state_save)(void *user, struct state_sink *sink);
    enum tokmap_status (*state_load)(void *user, uint32_t kind, const uint8_t *bytes, size_t count,
                                     struct tokmap_error *error);
    void *user;

    /* Interval at which the work is saved in PREFIX.work/journal, so that a killed process can be continued; 0: never.
     * Nothing is saved where an input cannot be read twice. */
    uint64_t checkpoint_ns;
    bool start_over; /* true if work of a killed process is removed instead of continued */
};

/* Numbers of the closing report, each of which has a line there. */
struct pack_result {
    struct corpus_counts counts;
    uint64_t tokens;                 /* tokens of the shard */
    uint64_t eod_tokens, bos_tokens; /* number of those that pack_run() added */
    /* Documents of ids that already had the token at the end or the beginning, so pack_run() did not add it. */
    uint64_t eod_present, bos_present;
    bool has_mask; /* true if the shard has a mask, in which counted_tokens count as targets */
    uint64_t counted_tokens;
    uint64_t untaught;                        /* conversations in which no token counts */
    struct fim_counts fim;                    /* with options.fim */
    struct chat_counts roles[CHAT_ROLES];     /* of the conversations, by enum chat_role */
    uint64_t with_value[RECORD_COLUMNS_MOST]; /* for each of corpus.columns: the documents that have a value */
    uint64_t largest_id;
    /* Documents with more bytes than a run of text that the code of the model does not cut (tokenizer_info.code_cuts),
     * where the tokenizer does not cut them; and the bytes so far of a document that has not ended. */
    uint64_t uncut, uncut_bytes;
    struct lengths lengths;      /* of the documents, with the tokens that begin and end them */
    uint8_t content[16];         /* the content id; zero for a dry run */
    struct drop_counts dropped;  /* with options.drop */
    struct listed_counts listed; /* with options.listed */
    uint64_t text_before,
        stream_before;  /* counts.text_bytes and stream_bytes of killed processes, which this continued */
    bool kept;          /* true if, after an error, the same call continues the work */
    uint64_t shards;    /* number of shards that were written */
    uint64_t oversized; /* documents longer than shard_tokens */
    struct shard_set_result sets[SPLIT_SETS_MOST]; /* with a split; the content id above is then zero */
    struct also_written also[PACK_ALSO_MOST];      /* of all shards, by number of the format */
};

#endif
