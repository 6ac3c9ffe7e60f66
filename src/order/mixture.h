/* SPDX-License-Identifier: MIT */
/*
 * mixture.h - which of several weighted leaves a draw belongs to, and the inverse: functions of integers, without a
 * schedule array. A leaf is a source of a run; its k-th draw shows the source's k-th window.
 *
 * The first p draws give each leaf its exact share p * weight / sum, to within ceil(log2 count) draws, and the counts
 * sum to p. ORDER.md defines the numbers, which are frozen; mixture.c explains how they are computed.
 *
 * A mixture is immutable: any number of threads may use it at the same time. Only the ratios of the weights matter:
 * weights 1, 2 and 500, 1000 are the same mixture. All numbers count from 0.
 */
#ifndef TOKMAP_ORDER_MIXTURE_H
#define TOKMAP_ORDER_MIXTURE_H

#include "tokmap/tokmap.h"

#define MIXTURE_DRAWS ((uint64_t)1 << 63) /* draws are below this */
#define MIXTURE_NONE UINT64_MAX           /* there is no such draw below MIXTURE_DRAWS */

struct mixture;

/* Makes the mixture of `count` leaves with these weights.
 *   mixture  receives the mixture; free it with mixture_free(). NULL after a failure
 *   weights  one for each leaf, each at least 1, with a sum below 2^63; the caller keeps them
 *   count    at least 1. The order of the leaves matters: a run passes its sources in byte order of their names
 * It takes O(count) time and 64 bytes a leaf.
 * Statuses: OK, ERROR_RANGE (a weight is 0, the sum is 2^63 or more, or there is no leaf), ERROR_MEMORY. */
TOKMAP_MUST_CHECK enum tokmap_status mixture_new(struct mixture **mixture, const uint64_t *weights, uint64_t count,
                                                 struct tokmap_error *error);
/* Accepts NULL. */
void mixture_free(struct mixture *mixture);

uint64_t mixture_leaves(const struct mixture *mixture);

/* Returns the leaf of draw p, and in *k which of the leaf's draws it is. p: below MIXTURE_DRAWS. O(log count). */
uint64_t mixture_draw(const struct mixture *mixture, uint64_t p, uint64_t *k);

/* Returns, as the inverse, the draw that is the k-th of the leaf, or MIXTURE_NONE if it is not below MIXTURE_DRAWS.
 * leaf: below mixture_leaves(); k: any. O(log count). */
uint64_t mixture_draw_of(const struct mixture *mixture, uint64_t leaf, uint64_t k);

/* Returns how many of the first `draws` draws the leaf has: its draws [0, result) are the mixture's below `draws`.
 * draws: at most MIXTURE_DRAWS. O(log count). */
uint64_t mixture_count(const struct mixture *mixture, uint64_t leaf, uint64_t draws);

#endif
