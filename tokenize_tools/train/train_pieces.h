/* SPDX-License-Identifier: MIT */
/*
 * train_pieces.h - what a trainer needs to know about a text: its distinct pieces and how often each occurs.
 *
 * Each thread counts into a table of its own, which is small enough to stay in the processor's cache, and flushes it
 * into a shared table. Memory therefore grows only with the number of distinct pieces: about 48 bytes for a piece of up
 * to 15 bytes, about 64 bytes plus its text for a longer one, and 5 MiB per thread. The counts do not depend on the
 * number of threads.
 */
#ifndef TOKMAP_TRAIN_TRAIN_PIECES_H
#define TOKMAP_TRAIN_TRAIN_PIECES_H

#include "bpe/bpe_model.h"

/* The memory that training may use, and uses now, in bytes. Any thread. */
struct train_budget {
    uint64_t limit, used;
};

/* Adds bytes to those in use. Statuses: OK, ERROR_LIMIT (they would exceed the limit; nothing is added). */
enum tokmap_status train_budget_reserve(struct train_budget *budget, uint64_t bytes, struct tokmap_error *error);

/* Subtracts bytes that were reserved before. */
void train_budget_release(struct train_budget *budget, uint64_t bytes);

/* ---- shared by all threads ---- */

struct train_pieces;

/* Creates an empty table. The budget must outlive it. Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status train_pieces_new(struct train_pieces **pieces, struct train_budget *budget,
                                    struct tokmap_error *error);
void train_pieces_free(struct train_pieces *pieces); /* accepts NULL */

struct train_totals {
    uint64_t distinct, bytes; /* distinct pieces in the table, and the sum of their sizes */
    uint64_t pieces, text;    /* all pieces with repetitions, and the sum of their sizes: the size of the text */
    uint64_t passed; /* slots of other pieces that were passed over to find each piece's own: the work of hashing */
};

/* Computes the totals. All counters must be finished. */
void train_pieces_totals(const struct train_pieces *pieces, struct train_totals *totals);

/* Calls `each` for every distinct piece, in no defined order, and frees the table's memory on the way. `bytes` is valid
 * during the call. All counters must be finished. */
void train_pieces_drain(struct train_pieces *pieces,
                        void (*each)(void *user, const uint8_t *bytes, uint64_t count, uint64_t times), void *user);

/* ---- one per thread ---- */

struct train_counter;

/* Creates a counter that cuts text into pieces by these rules. The pieces and the rules must outlive it. A counter is
 * used by one thread at a time. Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status train_counter_new(struct train_counter **counter, struct train_pieces *pieces,
                                     const struct split_rules *rules, struct tokmap_error *error);

/* Cuts one whole document, which is valid UTF-8, into pieces, and counts those of at least two bytes. Statuses: OK,
 * ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status train_counter_text(struct train_counter *counter, const uint8_t *text, uint64_t count,
                                      struct tokmap_error *error);

/* Flushes all counts into the shared table. Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status train_counter_finish(struct train_counter *counter, struct tokmap_error *error);
void train_counter_free(struct train_counter *counter); /* accepts NULL */

#endif
