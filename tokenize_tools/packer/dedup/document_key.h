/* SPDX-License-Identifier: MIT */
/*
 * document_key.h - what --dedup exact compares, and how documents are numbered for it.
 *
 * The key of a document is the XXH3-128 of its text in UTF-8; of ids, of the ids as numbers of 4 bytes; of the messages
 * of a conversation, of their JSON text. Of a prompt with a completion, of messages with something beside them, and of
 * ids with a mask, it is the XXH3-128 of the 32 bytes of both hashes (the low half of each first, little-endian), so
 * that the border between the two counts. Among 10^9 different documents, two have the same key with a chance of
 * 10^-21.
 */
#ifndef TOKMAP_DEDUP_DOCUMENT_KEY_H
#define TOKMAP_DEDUP_DOCUMENT_KEY_H

#include <stdbool.h>

#include "common/hash.h"
#include "corpus/corpus_batch.h"
#include "key_table.h"

struct hash128 document_key(const struct corpus_document *document);

/* Numbers the documents of all inputs in their order. Begins as zero bytes. */
struct place_counter {
    uint64_t inputs;    /* with documents, so far */
    uint64_t input;     /* of the last document, as the corpus numbers inputs */
    uint64_t documents; /* so far */
    uint64_t digest;    /* of the keys and places of all documents, in order */
};

/* Determines the place of the next document. *is_new: it is the first one of its input. Statuses: OK, ERROR_LIMIT (2^32
 * - 1 inputs). */
enum tokmap_status place_counter_next(struct place_counter *counter, const struct corpus_part *part, uint64_t record,
                                      struct hash128 key, struct document_place *place, bool *is_new,
                                      struct tokmap_error *error);

#endif
