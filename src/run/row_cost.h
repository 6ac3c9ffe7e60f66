/* SPDX-License-Identifier: MIT */
/*
 * row_cost.h - what a row costs a model, computed from indexes and plans alone.
 *
 * A document of L tokens costs L + q * L^2: each token passes through the matrices of the model, and attends to the
 * tokens of its document. q says how much the second costs; tokmap.h has the formula. Costs are integers, so that every
 * machine computes the same: q is a multiple of 2^-40, and so is the cost.
 */
#ifndef TOKMAP_RUN_ROW_COST_H
#define TOKMAP_RUN_ROW_COST_H

#include "order/balance.h"

#define ROW_COST_ONE ((uint64_t)1 << 40) /* the cost of a token that attends to nothing */

/* Sets *scale to q * 2^40, rounded, which is at least 1. Statuses: OK, ERROR_RANGE (q is not in [2^-40, 1]). */
enum tokmap_status row_cost_scale(double q, uint64_t *scale, struct tokmap_error *error);

/* Computes the cost of a row: the sum over the documents in its first seq_len tokens, as cu_seqlens has them. Padding
 * is a document, too. At most 2^103.
 *   place    of a row of the run, whose sources have document indexes or plans
 *   extents  room for `capacity` of them, at least run_extents_most(run); its contents do not matter
 * Statuses: OK, ERROR_CORRUPT, ERROR_IO, those of opening a shard. */
enum tokmap_status row_cost(const struct tokmap_run *run, const struct tokmap_place *place, uint64_t seq_len,
                            uint64_t scale, struct tokmap_extent *extents, uint64_t capacity, balance_cost *cost,
                            struct tokmap_error *error);

#endif
