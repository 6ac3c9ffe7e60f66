/*
 * producer.h - fills slots of the ring with batches, in the order of the run.
 *
 * The functions run on the thread that fills slots: the producer thread, or the caller of next() if the loader has no
 * producer thread. Both ways deliver the same batches.
 */
#ifndef TOKMAP_LOADER_PRODUCER_H
#define TOKMAP_LOADER_PRODUCER_H

#include "loader_state.h"

/* The body of the producer thread. user: the loader. Returns at the end of the run or when the ring is stopped. */
void producer_run(void *user);

/* The first batch is filled by the thread that comes first: a new thread may wait for a processor longer than filling a
 * batch takes, and a consumer that is already waiting has nothing else to do. Returns true to the thread that must call
 * producer_fill_first(). Any thread. */
bool producer_claim_first(struct tokmap_loader *loader);
void producer_fill_first(struct tokmap_loader *loader);

/* Fills a vacant slot with the next batch and publishes it, whatever the status; a failure is published as a slot with
 * that status, and the error is in ring_error(). After a failure the same rows are next again. Returns the slot's
 * status: OK, END, ERROR_IO, ERROR_TRUNCATED, ERROR_CORRUPT, ERROR_TOKEN, ERROR_DEVICE, ERROR_MEMORY. */
enum tokmap_status producer_fill(struct tokmap_loader *loader, struct slot *vacant);

/* Makes the batch that was filled last the next one again. Only without a producer thread, and only if it was filled
 * without a failure. */
void producer_undo(struct tokmap_loader *loader);

/* Fills row i of a slot with the window at *place. *cold: see gather_window().
 * Statuses: those of gather_window(), ERROR_CORRUPT (the documents of the index contradict each other). */
enum tokmap_status producer_fill_row(struct tokmap_loader *loader, struct slot *slot, uint64_t i,
                                     const struct tokmap_place *place, bool *cold, struct tokmap_error *error);

/* Fills cu_seqlens of a slot whose rows are filled, if the loader delivers them.
 * Statuses: OK, ERROR_CORRUPT (the rows contain more documents than was possible when the loader was opened). */
enum tokmap_status producer_fill_cu(const struct tokmap_loader *loader, struct slot *slot, struct tokmap_error *error);

#endif
