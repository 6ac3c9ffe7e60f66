/*
 * pack_stages.h - the stages of packing (work/stage_schedule.h). Whether a document is a duplicate depends on those of
 * all units before, so nothing is packed before all units are scanned; and a shuffled shard has documents of all units,
 * so none is made before all units are sorted:
 *
 *     with documents left out:
 *         scan      each unit      its keys and excluded documents    scan-000012         unit_scan.h
 *         compare   each portion   which documents are dropped        drops-000003        drop_resolve.h
 *     without a shuffle:
 *         pack      each unit      its shards                         unit-000012.done    unit_record.h
 *     with a shuffle:
 *         sort      each unit      its documents in their order       sorted-000012       sorted_units.h
 *         cut       once           where shards begin                 cuts-000000         shuffle_cut.h
 *         merge     each shard     the shard                          merged-000007       shard_merge.h
 *
 * The files in the folder are the state. A file that a killed task has begun is continued, in each stage by what its
 * header says; but a portion of exact duplicates is short, and begins again.
 */
#ifndef TOKMAP_PACK_PACK_STAGES_H
#define TOKMAP_PACK_PACK_STAGES_H

#include "drop_resolve.h"
#include "shard_merge.h"
#include "work/stage_schedule.h"

/* What complete stages have found. Begins as zero bytes. */
struct pack_found {
    uint64_t key; /* of the files of stages */
    struct all_scans scans;
    struct sorted_units units;
    struct shuffle_cuts cuts;
};

/* The work whose stages these are: `self` of a schedule. */
struct pack_stages {
    const struct pack_options *pack; /* its stop() and user are used */
    const struct pack_units *inputs;
    const char *folder;
    struct pack_found found;
    /* Scans a unit; and packs it, or sorts it if `sorted` names a file. Statuses: any. */
    enum tokmap_status (*scan)(void *user, uint64_t unit, const struct stage_id *id, struct tokmap_error *error);
    enum tokmap_status (*unit)(void *user, uint64_t unit, const struct stage_id *sorted, struct tokmap_error *error);
    /* Reports how much of a file is done. May be NULL. */
    void (*progress)(void *user, uint64_t done, uint64_t all);
    void *user;
};

#define PACK_STAGES_MOST 5
#define PACK_STAGES_DROP 2 /* the first ones with options->drop, which find the documents that are left out */

/* Lists the stages of packing with these options. Returns how many. */
size_t pack_stages_list(const struct pack_options *options, const struct stage *list[PACK_STAGES_MOST]);

/* Sets the key of the files. pack_stages_free() frees what the stages have found. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status pack_stages_begin(struct pack_stages *stages, struct tokmap_error *error);
void pack_stages_free(struct pack_stages *stages); /* accepts zeros */

#endif
