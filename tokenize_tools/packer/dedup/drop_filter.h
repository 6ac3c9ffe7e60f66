/* SPDX-License-Identifier: MIT */
/*
 * drop_filter.h - leaves documents out between reading and encoding: duplicates or near-duplicates of earlier
 * documents, and documents that contain an excluded n-gram.
 *
 * The keys of documents are in a table in memory (document_key.h) until it would need more than options.memory bytes.
 * Then the caller compares the documents of all inputs in stages whose files a killed process leaves to the next one
 * (dedup_stages.h), while the packing waits, and from then on their list answers instead of the table. A process that
 * continues has no table, and asks the stages at once. So small inputs are read once, and the memory for large ones
 * does not grow with them. Both ways find the same documents: those that are not the first of their key in the order of
 * the inputs.
 *
 * Which documents are left out is a function of the inputs and options alone. A document with an excluded n-gram is
 * dropped for that, and so are all its duplicates; it takes no part in the search for near-duplicates. Documents are
 * compared whole, so the corpus must not cut them. What was dropped is listed in NAME.dropped (work/dropped_file.h).
 */
#ifndef TOKMAP_DEDUP_DROP_FILTER_H
#define TOKMAP_DEDUP_DROP_FILTER_H

#include "drop_list.h"
#include "encode/ordered_workers.h"
#include "format/index_writer.h"
#include "ngram_table.h"
#include "work/dropped_writer.h"

/* Counts of what was dropped so far. */
struct drop_counts {
    uint64_t documents; /* that were read */
    uint64_t duplicates, near_duplicates, excluded;
    bool by_minhash;     /* near-duplicates were searched */
    bool read_twice;     /* the inputs were read a second time for the duplicates */
    uint64_t file_bytes; /* that their keys needed in a file; of units, in all of them */
};

/* All that the journal saves, beside the numbers of listed n-grams, which are passed to its sink. */
struct drop_state {
    struct place_counter places; /* of the documents of committed batches */
    struct place_counter listed; /* of the documents that stages have compared; no documents: there were no stages */
    struct drop_counts counts;
    struct dropped_state list;
};

struct drop_filter;

struct drop_filter_options {
    const struct drop_options *drop;
    const char *name; /* of the output, for NAME.dropped; NULL: nothing is written */
    bool sync;        /* as in shard_writer.h */
    uint32_t items;   /* ordered_workers_item_count() */
    /* Documents to drop, as the stages before have found, which must precede for near-duplicates. NULL: no stages
     * precede. */
    const struct drop_source *source;
    /* The table of keys is full, and all batches before this one are committed: compares the documents of all inputs,
     * and sets *found to what is dropped, which then stays valid. Statuses: any. NULL: the table has no limit. */
    enum tokmap_status (*compare)(void *self, const struct drop_source **found, struct tokmap_error *error);
    void *self;
    /* That of a killed process, which is continued; NULL: none. There is no table of keys then. */
    const struct drop_state *resume;
};

/* Statuses: OK, those of dropped_writer_open() and of drop_list_open(), ERROR_MEMORY. */
enum tokmap_status drop_filter_new(struct drop_filter **filter, const struct drop_filter_options *options,
                                   struct tokmap_error *error);
void drop_filter_free(struct drop_filter *filter); /* accepts NULL; removes a list that was not committed */

/* Removes the dropped documents from a batch, and counts them as left out. To be called by process(), once per item.
 * Statuses: OK (also if the work has failed elsewhere), those of options.compare() and drop_list_find(), ERROR_MEMORY,
 * ERROR_LIMIT, ERROR_MISMATCH (the inputs have changed). */
enum tokmap_status drop_filter_batch(struct drop_filter *filter, struct ordered_workers *workers,
                                     struct work_item *item, struct tokmap_error *error);

/* Lists what was dropped of the batch; to be called when it is committed. Statuses: OK, ERROR_IO. */
enum tokmap_status drop_filter_committed(struct drop_filter *filter, const struct work_item *item,
                                         struct tokmap_error *error);

/* Between two commits: describes what there is of all committed batches. The list is on storage after
 * drop_filter_sync(), and drop_filter_saved() says that the next save need not repeat what this one has passed on.
 * drop_filter_load() takes back what the sink got, in the same order. Statuses: OK, ERROR_IO; of the last one also
 * ERROR_CORRUPT. */
enum tokmap_status drop_filter_save(struct drop_filter *filter, struct drop_state *state, struct state_sink *sink,
                                    struct tokmap_error *error);
enum tokmap_status drop_filter_sync(struct drop_filter *filter, struct tokmap_error *error);
void drop_filter_saved(struct drop_filter *filter);
enum tokmap_status drop_filter_load(struct drop_filter *filter, const uint8_t *bytes, size_t count,
                                    struct tokmap_error *error);
/* Frees the filter, and leaves its list for another process. NULL is ignored. */
void drop_filter_leave(struct drop_filter *filter);

/* At the end of the inputs, before the journal says that all is packed: checks that they have not changed. Statuses:
 * OK, ERROR_MISMATCH, those of drop_list_end(). */
enum tokmap_status drop_filter_check(struct drop_filter *filter, struct tokmap_error *error);
/* Then: completes the list. Statuses: OK, ERROR_IO. */
enum tokmap_status drop_filter_finish(struct drop_filter *filter, struct drop_counts *counts,
                                      struct tokmap_error *error);

/* Returns the list, which is complete then; the filter owns it. NULL without a list. */
struct dropped_writer *drop_filter_list(struct drop_filter *filter);

#endif
