/*
 * duplicates.h - finds documents whose key an earlier document has (`pack --dedup exact`).
 *
 * The keys are in a table in memory (key_table.h) until it would need more than `memory` bytes. Then the inputs are
 * read a second time, from the beginning to the end, while the work waits: the keys of all documents are written to a
 * file without a name (32 bytes a document), in 256 partitions by a hash of the key; the duplicates in each partition
 * are determined on their own, in passes whose keys fit in `memory`; and from then on a list of all duplicates, sorted
 * by their places, answers instead of the table. So small inputs are read once, and the memory for large ones does not
 * grow with them. Both ways find the same documents: those that are not the first of their key in the order of the
 * inputs.
 *
 * Inputs that cannot be read twice, such as standard input, have a table without a limit.
 */
#ifndef TOKMAP_PACK_DUPLICATES_H
#define TOKMAP_PACK_DUPLICATES_H

#include <stdbool.h>

#include "corpus/corpus.h"
#include "document_key.h"

struct duplicates; /* for one thread at a time */

struct duplicates_options {
    uint64_t memory;    /* bytes of the table; at least 1 MiB is used where it matters */
    const char *folder; /* where the file of keys is; NULL: none, and the table has no limit */
    bool continues;     /* earlier documents were asked about in another process: duplicates_restore() gets their keys,
                         * or else the inputs are read again at once */
    /* The documents that process found when it read the inputs again; no documents: it did not read them again. */
    struct place_counter listed;
    uint32_t partitions; /* 1 to 256; 0: 256 */
    uint32_t threads;    /* for reading the inputs again, as ordered_workers.h has them */
    struct corpus_options corpus;
    const char *const *operands;
    size_t operand_count;
    const char *other_output; /* as in ordered_workers.h */
    /* Excludes from the corpus what is no input. */
    enum tokmap_status (*prepare)(void *self, struct corpus *corpus, struct tokmap_error *error);
    void *self;
    bool (*stop)(void *user);
    void *user;
};

/* The options stay valid until duplicates_free(). Statuses: OK, ERROR_MEMORY. */
enum tokmap_status duplicates_new(struct duplicates **duplicates, const struct duplicates_options *options,
                                  struct tokmap_error *error);
void duplicates_free(struct duplicates *duplicates); /* accepts NULL */

/* Prepares for the keys that duplicates_find() is called with next. */
void duplicates_prefetch(const struct duplicates *duplicates, struct hash128 key);

/* Says whether the document at *place, which comes after all documents that were asked about before, is a duplicate,
 * and then sets *kept to the place of the first document of its key. Statuses: OK, ERROR_MEMORY, ERROR_IO, ERROR_LIMIT,
 * ERROR_INTERRUPTED, ERROR_CORRUPT (a key that was restored is wrong), and those of reading the inputs. */
enum tokmap_status duplicates_find(struct duplicates *duplicates, struct hash128 key,
                                   const struct document_place *place, bool *is_duplicate, struct document_place *kept,
                                   struct tokmap_error *error);

/* Whether duplicates_find() needs no keys any more, because the inputs were read a second time. */
bool duplicates_are_listed(const struct duplicates *duplicates);

/* Adds the key of a document that was asked about in another process, and is not a duplicate. Statuses: OK (also if the
 * table has no room for it), ERROR_MEMORY. */
enum tokmap_status duplicates_restore(struct duplicates *duplicates, struct hash128 key,
                                      const struct document_place *place, struct tokmap_error *error);

/* The documents that were found when the inputs were read again, by this process or the one before it; no documents:
 * they were not. If the two have found different ones, something that no documents have. */
struct place_counter duplicates_listed(const struct duplicates *duplicates);

/* At the end of the input: checks that all readings had the same documents. Statuses: OK, ERROR_MISMATCH. */
enum tokmap_status duplicates_finish(const struct duplicates *duplicates, const struct place_counter *all,
                                     struct tokmap_error *error);

/* Whether every input can be read twice: the operands and lists name no standard input, pipe, or device. */
bool duplicates_can_repeat(const char *const *operands, size_t count, const struct inputs_selection *select);

/* Whether the inputs were read a second time, and how many bytes the file of keys had at most. */
bool duplicates_read_twice(const struct duplicates *duplicates, uint64_t *file_bytes);

#endif
