/* SPDX-License-Identifier: MIT */
/*
 * pack_batches.h - batches of documents to tokens: threads encode them in parallel, and pass the tokens to the shard
 * sets, or to the shuffle before them, in the order of the input (ordered_workers.h).
 */
#ifndef TOKMAP_PACK_PACK_BATCHES_H
#define TOKMAP_PACK_PACK_BATCHES_H

#include "encode/document_encode.h"
#include "encode/ordered_workers.h"
#include "packing_options.h"
#include "shuffle/shuffle.h"

/* Parts of the work: the batches go through them, and the journal saves and restores them. */
struct pack_parts {
    struct shard_set *const *sets;
    uint32_t set_count;
    struct histogram *lengths;
    struct pack_result *result;
    uint64_t *open_tokens;
    struct ordered_workers *workers;
    struct listed_search *listed; /* NULL: no lists name documents */
    struct drop_filter *drop;     /* NULL: no document is dropped */
    struct shuffle *shuffle;      /* NULL: the documents have the order of the inputs */
};

struct pack_batches {
    const struct pack_options *options;
    struct pack_result *result;
    struct tokenizer_info tokenizer; /* without a tokenizer: width and vocabulary */
    bool one_by_one;                 /* true if documents are encoded one by one */
    struct document_rules rules;     /* rules for encoding them so */
    uint64_t batch_bytes;
    const struct pack_parts *parts;
    struct worker *threads;
    uint32_t thread_count;
    struct output *outputs; /* memory of the work items */
    uint32_t output_count;
    struct histogram lengths; /* lengths of the documents that several batches share; in the end, of all documents */
    uint64_t open_tokens;     /* tokens of the unfinished document in the committed batches */
};

/* Decides how documents are encoded. Sets result->has_mask. */
void pack_batches_begin(struct pack_batches *batches, const struct pack_options *options, struct pack_result *result);

/* Says how the corpus must make batches. */
void pack_batches_corpus(struct pack_batches *batches, struct corpus_options *corpus);

/* Makes the memory, before the first batch; the parts must stay valid. pack_batches_free() frees it, but for `lengths`,
 * also after a failure. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status pack_batches_make(struct pack_batches *batches, const struct pack_parts *parts,
                                     struct tokmap_error *error);
void pack_batches_free(struct pack_batches *batches);

/* Encodes a batch, in any thread. The tokens of its last group stay with the item until it is committed. Statuses:
 * those of tokenizer_encode(), documents_encode(), drop_filter_batch(), and of pack_batch_commit(). */
enum tokmap_status pack_batch_encode(struct pack_batches *batches, struct work_item *item, struct tokmap_error *error);

/* Writes the rest of a batch, in the order of the input. Statuses: those of shuffle_add() and shard_set_add(). */
enum tokmap_status pack_batch_commit(struct pack_batches *batches, struct work_item *item, struct tokmap_error *error);

/* Adds up the lengths that the threads have counted, in `lengths` and the result. */
void pack_batches_end(struct pack_batches *batches);

#endif
