/*
 * train_pieces.h - what a text is to a trainer: its different pieces, and how often each is in it.
 *
 * Threads count into tables of their own, small enough to stay in the processor's cache, and empty these into one that
 * is shared. So memory grows with the different pieces of the text alone: about 48 bytes for each of up to 15 bytes,
 * about 64 and its text for each longer one, and 5 MiB a thread. What is counted does not depend on the number of
 * threads.
 */
#ifndef TOKMAP_TRAIN_TRAIN_PIECES_H
#define TOKMAP_TRAIN_TRAIN_PIECES_H

#include "bpe/bpe_model.h"

/* Memory that training may use. Any thread. */
struct train_budget {
    uint64_t limit, used;
};
/* Statuses: OK, ERROR_LIMIT (it is more than the limit allows). */
enum tokmap_status train_budget_reserve(struct train_budget *budget, uint64_t bytes, struct tokmap_error *error);
void train_budget_release(struct train_budget *budget, uint64_t bytes);

/* ---- all threads ---- */

struct train_pieces;
/* budget outlives it. Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status train_pieces_new(struct train_pieces **pieces, struct train_budget *budget,
                                    struct tokmap_error *error);
void train_pieces_free(struct train_pieces *pieces); /* accepts NULL */

struct train_totals {
    uint64_t different, bytes; /* pieces of two bytes and more, and their bytes, each piece once */
    uint64_t pieces, text;     /* all pieces, and their bytes */
};
/* When all counters are done. */
void train_pieces_totals(const struct train_pieces *pieces, struct train_totals *totals);
/* Calls `each` with every piece of two bytes and more, in no order, and gives back their memory as it goes. */
void train_pieces_drain(struct train_pieces *pieces,
                        void (*each)(void *user, const uint8_t *bytes, uint64_t count, uint64_t times), void *user);

/* ---- one thread ---- */

struct train_counter;
/* Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status train_counter_new(struct train_counter **counter, struct train_pieces *pieces,
                                     const struct split_rules *rules, struct tokmap_error *error);
/* Counts the pieces of a document, which is valid UTF-8. Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status train_counter_text(struct train_counter *counter, const uint8_t *text, uint64_t count,
                                      struct tokmap_error *error);
/* Hands over what it has. Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status train_counter_finish(struct train_counter *counter, struct tokmap_error *error);
void train_counter_free(struct train_counter *counter); /* accepts NULL */

#endif
