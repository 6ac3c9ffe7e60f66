/* SPDX-License-Identifier: MIT */
/* train_memory.h - memory of trainers, reserved in the budget of train_pieces.h. */
#ifndef TOKMAP_TRAIN_TRAIN_MEMORY_H
#define TOKMAP_TRAIN_TRAIN_MEMORY_H

#include "train_pieces.h"

/* Allocates zeroed memory of count * each bytes, which stay reserved until train_give(). *into is NULL after a failure.
 * Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status train_take(struct train_budget *budget, void **into, uint64_t count, uint64_t each,
                              struct tokmap_error *error);

/* Frees what train_take() has allocated with the same numbers. Accepts NULL. */
void train_give(struct train_budget *budget, void *memory, uint64_t count, uint64_t each);

/* Makes the memory larger; what is added is not zeroed. Statuses: as above; the memory stays as it was on failure. */
enum tokmap_status train_grow(struct train_budget *budget, void **memory, uint64_t count, uint64_t wanted,
                              uint64_t each, struct tokmap_error *error);

#endif
