/* SPDX-License-Identifier: MIT */
/*
 * near_resolve.h - the second stage of packing in units with near-duplicates left out: joins documents that have a band
 * in common to clusters, and writes those that are not the first of their cluster to NAME.work/drops-000000.
 *
 * One process does this, because a cluster may have documents of any unit and bands of any partition. It needs 4 bytes
 * of memory for each document, and a table for the bands of a partition.
 *
 * If it is killed, the next process continues where it was some seconds before.
 */
#ifndef TOKMAP_DEDUP_NEAR_RESOLVE_H
#define TOKMAP_DEDUP_NEAR_RESOLVE_H

#include "drop_resolve.h"

/* Statuses: those of stage files, ERROR_LIMIT (2^32 - 1
 * documents), ERROR_INTERRUPTED, ERROR_MEMORY. */
enum tokmap_status near_resolve_run(const struct all_scans *scans, const struct drop_stage *stage,
                                    struct tokmap_error *error);

#endif
