/* SPDX-License-Identifier: MIT */
/*
 * planner.h - packs the documents of a dataset into rows of a fixed length, best fit, longest first.
 *
 * A document that fits a row is never cut. A longer one is cut into full rows and a rest, which is packed like a whole
 * document. These segments, longest first, go to the fullest row that has room; if no row has room, a new one begins.
 * Segments of equal length go in the order of the dataset, and of rows that are equally full the oldest is taken. So
 * the plan is a function of the lengths and the options alone.
 */
#ifndef TOKMAP_PLAN_PLANNER_H
#define TOKMAP_PLAN_PLANNER_H

#include <stdbool.h>
#include <stdint.h>

#include "format/plan_file.h"

struct planner_options {
    uint64_t seq_len;        /* tokens of a row, 1 to 2^31 */
    uint64_t documents_most; /* the most segments of a row; 0: no limit */
    uint64_t pad; /* segments take a multiple of so many tokens, as seq_len does; 0 or 1: as many as they have */
};

/* Figures of a plan. A window of concatenated documents that ends inside a document cuts it. */
struct planner_result {
    uint64_t documents; /* with tokens; empty ones are in no row */
    uint64_t tokens;
    uint64_t document_padding; /* tokens that pad segments */
    uint64_t rows, segments;
    uint64_t row_segments;      /* the most segments of any row */
    uint64_t full_rows;         /* without padding */
    uint64_t cut;               /* documents longer than seq_len */
    uint64_t concatenation_cut; /* documents that rows of seq_len consecutive tokens would cut */
};

struct planner; /* for one thread at a time */

/* Statuses: OK, ERROR_ARGUMENT, ERROR_MEMORY. */
enum tokmap_status planner_new(struct planner **planner, const struct planner_options *options,
                               struct tokmap_error *error);
void planner_free(struct planner *planner); /* accepts NULL */

/* Adds the next document, in the order of the dataset. Statuses: OK, ERROR_LIMIT (2^32 - 1 segments), ERROR_MEMORY. */
enum tokmap_status planner_add(struct planner *planner, uint64_t tokens, struct tokmap_error *error);

/* Packs what was added; to be called once. progress: may be NULL; called with the number of segments that have a row;
 * a result other than 0 ends the work. Statuses: OK, ERROR_RANGE (there is no token), ERROR_INTERRUPTED,
 * ERROR_MEMORY. */
enum tokmap_status planner_pack(struct planner *planner, int (*progress)(void *user, uint64_t done, uint64_t total),
                                void *user, struct planner_result *result, struct tokmap_error *error);

/* After planner_pack(): writes the plan to an empty file. dataset: the identity; identity: its kind (plan_file.h).
 * *made receives the header. Returns 0 or an errno. */
int planner_write(struct planner *planner, int fd, const uint8_t dataset[16], uint32_t identity,
                  struct plan_header *made);

#endif
