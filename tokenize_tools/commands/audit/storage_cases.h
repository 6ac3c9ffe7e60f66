/* SPDX-License-Identifier: MIT */
/*
 * storage_cases.h - what a run reads from remote storage through a cache of each node: how often each byte, how many
 * requests, how fast. The run is simulated as it is; with its rows by block (the loaders' option nodes); and, if it is
 * shuffled as a whole, with `order even`, too. Indexes and their requests are not counted.
 */
#ifndef TOKMAP_COMMANDS_AUDIT_STORAGE_CASES_H
#define TOKMAP_COMMANDS_AUDIT_STORAGE_CASES_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

#define STORAGE_CASES_MOST 4

struct storage_options {
    uint64_t cache;   /* bytes, of each node */
    uint64_t block;   /* bytes of a request */
    uint64_t ranks;   /* at most the rows of any step */
    uint64_t nodes;   /* divides the ranks */
    uint64_t horizon; /* rows of a rank that the cache knows ahead */
};

/* Sums of all nodes, scaled to the run from what was simulated. */
struct storage_case {
    bool as_is;                  /* the run's own order; else `order even` */
    bool affine;                 /* rows by block */
    uint64_t blocks, span;       /* W and SPAN of the order, or 0 */
    uint64_t steps, nodes, rows; /* that were simulated */
    bool whole;                  /* all steps of the run */
    double uses, requests, bytes;
    double factor;     /* bytes from storage divided by bytes of the rows */
    double most_bytes; /* from storage, of a node in a step, in the hundred steps in which a node reads most */
    double step_bytes; /* the same in the mean of all nodes and steps */
    double step_requests, most_requests;
};

struct storage_cases {
    struct storage_case of[STORAGE_CASES_MOST];
    unsigned count;
    uint64_t data_bytes; /* of the tokens of all sources */
};

/* Simulates the steps [0, steps). Statuses: OK, ERROR_LIMIT (the cache holds less than two blocks, or the data has 2^31
 * blocks or more), ERROR_INTERRUPTED (a signal arrived), ERROR_MEMORY, those of assignment_init(). */
enum tokmap_status storage_cases_take(struct storage_cases *cases, const struct tokmap_run *run, uint64_t steps,
                                      const struct storage_options *options, struct tokmap_error *error);

#endif
