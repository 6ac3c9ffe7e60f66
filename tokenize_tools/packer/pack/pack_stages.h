/* SPDX-License-Identifier: MIT */
/*
 * pack_stages.h - the stages of packing in units (work/stage_schedule.h), which follow those that find the documents
 * that are left out (dedup/dedup_stages.h). A shuffled shard has documents of all units, so none is made before all
 * units are sorted:
 *
 *     without a shuffle:
 *         pack      each unit      its shards                         packed-000012       unit_record.h
 *     with a shuffle:
 *         sort      each unit      its documents in their order       packed-000012       sorted_units.h
 *         cut       once           where shards begin                 cuts-000000         shuffle_cut.h
 *         merge     each shard     the shard                          merged-000007       shard_merge.h
 *
 * The files in the folder are the state. A file that a killed task has begun is continued, in each stage by what its
 * header says.
 */
#ifndef TOKMAP_PACK_PACK_STAGES_H
#define TOKMAP_PACK_PACK_STAGES_H

#include "dedup/drop_resolve.h"
#include "dedup/unit_scan.h"
#include "packing_options.h"
#include "shuffle/shard_merge.h"
#include "work/stage_schedule.h"

/* Findings of complete stages. Begins as zero bytes. */
struct pack_found {
    uint64_t key;                  /* of the files of stages */
    const struct all_scans *scans; /* NULL without options->drop */
    struct sorted_units units;
    struct shuffle_cuts cuts;
};

/* The work whose stages these are: `self` of a schedule. */
struct pack_stages {
    const struct pack_options *pack; /* its stop() and user are used */
    const struct work_units *inputs;
    const char *folder;
    struct pack_found found;
    /* Packs a unit, or with a shuffle sorts it. `id` names the file. Statuses: any. */
    enum tokmap_status (*unit)(void *user, uint64_t unit, const struct stage_id *id, struct tokmap_error *error);
    /* Reports how much of a file is done. May be NULL. */
    void (*progress)(void *user, uint64_t done, uint64_t all);
    void *user;
};

/* Returns how units are scanned, but for their range, and compared. */
struct unit_scan_options pack_scan_options(const struct pack_options *options);

/* Returns the stages of packing with these options, *count of them. */
const struct stage *pack_stages_list(const struct pack_options *options, size_t *count);

/* Sets the key of the files. pack_stages_free() frees what the stages have found. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status pack_stages_begin(struct pack_stages *stages, struct tokmap_error *error);
void pack_stages_free(struct pack_stages *stages); /* accepts zeros */

#endif
