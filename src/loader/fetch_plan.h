/* SPDX-License-Identifier: MIT */
/*
 * fetch_plan.h - which blocks of datasets in object storage a loader will read, and in which order: what is fetched
 * ahead, and what the cache keeps. A loader without such datasets has no plan. One thread at a time may use it.
 */
#ifndef TOKMAP_LOADER_FETCH_PLAN_H
#define TOKMAP_LOADER_FETCH_PLAN_H

#include "row_queue.h"

struct fetch_plan;

/* What is read of the row of a place. user: as it was given. */
struct fetch_reads {
    struct row_extents (*extents)(const void *user, const struct tokmap_place *place);
    const void *user;
};

/* Makes the plan of a residency of a loader, or NULL if no dataset of it is in object storage. The residency and its
 * gathers outlive the plan. reads: NULL: the tokens of the row. The other arguments are those of row_queue_init().
 * Statuses: OK, ERROR_MEMORY, those of row_queue_init(). */
enum tokmap_status fetch_plan_new(struct fetch_plan **plan, const struct residency *residency,
                                  const struct schedule *schedule, const struct assignment_rule *rule,
                                  const struct context *context, struct gather *const *gathers,
                                  const struct fetch_reads *reads, struct tokmap_error *error);
void fetch_plan_free(struct fetch_plan *plan); /* accepts NULL */
/* Begins again with row 0. Accepts NULL. */
void fetch_plan_restart(struct fetch_plan *plan);

/* Says that row `number` is read next, after those below it. */
void fetch_plan_next(struct fetch_plan *plan, uint64_t number);

#endif
