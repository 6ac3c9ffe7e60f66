/*
 * pack_stages.h - the stages of packing in units with documents left out. Whether a document is a duplicate depends on
 * those of all units before, so nothing is packed before all units are scanned:
 *
 *     scan      each unit        its keys and excluded documents      scan-000012       unit_scan.h
 *     compare   each portion     which documents are dropped          drops-000003      drop_resolve.h
 *     pack      each unit        its shards                           unit-000012.done  pack_tasks.h
 *
 * The state of the work is which files there are. A task makes those of its share that are missing, of the first stage
 * that is not complete. If then the stage is complete, the next one follows. Otherwise it waits as long as another task
 * works on it, and some time more, and then ends: the same command continues later. A task that finds no other at work
 * makes all that is missing of the comparison.
 */
#ifndef TOKMAP_PACK_PACK_STAGES_H
#define TOKMAP_PACK_PACK_STAGES_H

#include "drop_resolve.h"

enum pack_stage { PACK_STAGE_SCAN, PACK_STAGE_COMPARE, PACK_STAGE_PACK };

struct pack_stages_options {
    const struct pack_options *pack; /* with drop; its stop() and user are used */
    const char *folder;
    uint64_t units;
    uint64_t task, tasks;
    bool finish; /* makes no file */
    /* How long to wait for files that are missing while no other task works; at_once: not even while one does. */
    uint64_t wait_ns;
    bool at_once;
    /* Scans a unit. */
    enum tokmap_status (*scan)(void *self, uint64_t unit, const struct stage_id *id, struct tokmap_error *error);
    /* Says that a stage begins, and which files of the share [first, end) are there already; and that one more is. */
    void (*begins)(void *self, enum pack_stage stage, uint64_t first, uint64_t end, const bool *there);
    void (*made)(void *self, uint64_t number);
    /* As in struct all_scans. */
    void (*progress)(void *self, uint64_t done, uint64_t all);
    /* Says that the process now waits for others, or no longer. */
    void (*waits)(void *self, bool waits);
    void *self;
};

/* What the first stage that is not complete lacks. */
struct pack_stage_left {
    enum pack_stage stage; /* PACK_STAGE_PACK: both stages before it are complete */
    uint64_t missing, count;
    uint64_t first; /* the first one that is missing */
};

/* Does the share of a task of the stages before packing. *scans is what they have found, if both are complete;
 * all_scans_free() frees it in any case. Statuses: those of unit_scan_run() and drop_portion_run(). */
enum tokmap_status pack_stages_run(const struct pack_stages_options *options, struct all_scans *scans,
                                   struct pack_stage_left *left, struct tokmap_error *error);

#endif
