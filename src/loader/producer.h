/* SPDX-License-Identifier: MIT */
/*
 * producer.h - fills slots of the ring with batches, in the order of the run.
 *
 * The functions run on the thread that fills slots: the producer thread, or the caller of next() if the loader has no
 * producer thread. Both ways deliver the same batches.
 */
#ifndef TOKMAP_LOADER_PRODUCER_H
#define TOKMAP_LOADER_PRODUCER_H

#include "loader_state.h"

/* Runs in the producer thread. user: the loader.
 *
 * The thread works in turns. A turn fills slots up to the end of the run, or until the ring is stopped. Then the thread
 * sleeps until producer_resume() begins another turn or producer_end() ends the thread. So tokmap_loader_rewind() needs
 * no new thread, and cannot fail for the lack of one. */
void producer_run(void *user);

/* Stops the ring and waits until the producer thread has ended its turn: it uses nothing of the loader until
 * producer_resume(). If it is reading a batch, the wait ends after that batch. For the thread that calls next(). */
void producer_pause(struct tokmap_loader *loader);
/* Begins another turn after producer_pause(), once the loader is in the state in which the turn is to begin. */
void producer_resume(struct tokmap_loader *loader);
/* Stops the ring, and ends and joins the producer thread. */
void producer_end(struct tokmap_loader *loader);

/* Claims the first batch of a turn, which is filled by the thread that comes first: a new thread may wait for a
 * processor longer than filling a batch takes, and a consumer that is already waiting has nothing else to do. Returns
 * true to the thread that must call producer_fill_first(). Any thread. */
bool producer_claim_first(struct tokmap_loader *loader);
void producer_fill_first(struct tokmap_loader *loader);

/* Fills a vacant slot with the next batch and publishes it, whatever the status; a failure is published as a slot with
 * that status, and the error is in ring_error(). After a failure the same rows are next again. Returns the slot's
 * status: OK, END, ERROR_IO, ERROR_TRUNCATED, ERROR_CORRUPT, ERROR_TOKEN, ERROR_DEVICE, ERROR_MEMORY. */
enum tokmap_status producer_fill(struct tokmap_loader *loader, struct slot *vacant);

/* Makes the batch that was filled last the next one again. Only without a producer thread, and only if it was filled
 * without a failure. */
void producer_undo(struct tokmap_loader *loader);

/* Fills *form for batches of up to `rows` rows. Returns false if a size overflows. */
bool form_make(struct form *form, const struct form_needs *needs, uint64_t rows, uint64_t seq_len);

/* Arranges a slot for batches of up to `rows` rows of seq_len tokens. Statuses: OK, ERROR_LIMIT (they do not fit). */
enum tokmap_status producer_arrange(struct tokmap_loader *loader, struct slot *slot, uint64_t rows, uint64_t seq_len,
                                    struct tokmap_error *error);

/* Fills row i of an arranged slot with the row at *place, and what marks, masks, and bounds say of it. *cold: see
 * gather_row(). Statuses: those of gather_row(), ERROR_CORRUPT (the documents of the index contradict each other, or
 * are more than was possible when the loader was opened). */
enum tokmap_status producer_fill_row(struct tokmap_loader *loader, struct slot *slot, uint64_t i,
                                     const struct tokmap_place *place, bool *cold, struct tokmap_error *error);

/* Called before the first row of an arranged slot is filled, and after the last one: rows that are filled in between,
 * in their order, add up what a slot has of all its rows together. */
void producer_begin_rows(struct tokmap_loader *loader, struct slot *slot);
void producer_end_rows(struct tokmap_loader *loader, struct slot *slot);

#endif
