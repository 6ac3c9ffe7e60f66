/*
 * pack_stages.h - the stages of packing in units with documents left out, or shuffled. Whether a document is a
 * duplicate depends on those of all units before, so nothing is packed before all units are scanned; and a shuffled
 * shard has documents of all units, so none is made before all units are sorted:
 *
 *     with documents left out:
 *         scan      each unit      its keys and excluded documents    scan-000012         unit_scan.h
 *         compare   each portion   which documents are dropped        drops-000003        drop_resolve.h
 *     without a shuffle:
 *         pack      each unit      its shards                         unit-000012.done    pack_tasks.h
 *     with a shuffle:
 *         sort      each unit      its documents in their order       sorted-000012       sorted_units.h
 *         cut       once           where shards begin                 cuts-000000         shuffle_cut.h
 *         merge     each shard     the shard                          merged-000007       shard_merge.h
 *
 * The state of the work is which files there are. A task makes those of its share that are missing, of the first stage
 * that is not complete. If then the stage is complete, the next one follows. Otherwise it waits as long as another task
 * works on it, and some time more, and then ends: the same command continues later. A task that finds no other at work
 * makes all that is missing of the comparison, and the cut. Nobody waits for the last stage. A file that a killed task
 * has begun is continued, in each stage by what its header says; but a portion of exact duplicates is short, and begins
 * again.
 */
#ifndef TOKMAP_PACK_PACK_STAGES_H
#define TOKMAP_PACK_PACK_STAGES_H

#include "drop_resolve.h"
#include "shard_merge.h"

enum pack_stage {
    PACK_STAGE_SCAN,
    PACK_STAGE_COMPARE,
    PACK_STAGE_PACK,
    PACK_STAGE_SORT,
    PACK_STAGE_CUT,
    PACK_STAGE_MERGE
};

/* What complete stages have found. Begins as zero bytes. */
struct pack_found {
    uint64_t key; /* of the files of stages */
    struct all_scans scans;
    struct sorted_units units;
    struct shuffle_cuts cuts;
};

struct pack_stages_options {
    const struct pack_options *pack; /* with drop or shuffle; its stop() and user are used */
    const struct pack_units *inputs;
    const char *folder;
    uint64_t task, tasks;
    bool finish; /* makes no file */
    /* How long to wait for files that are missing while no other task works; at_once: not even while one does. */
    uint64_t wait_ns;
    bool at_once;
    /* Scans, or sorts, a unit. */
    enum tokmap_status (*scan)(void *self, uint64_t unit, const struct stage_id *id, struct tokmap_error *error);
    enum tokmap_status (*sort)(void *self, uint64_t unit, const struct stage_id *id, struct tokmap_error *error);
    /* Says that a stage begins, and which files of the share [first, end) are there already; and that one more is.
     * Statuses of begins(): any. */
    enum tokmap_status (*begins)(void *self, enum pack_stage stage, uint64_t first, uint64_t end, const bool *there,
                                 struct tokmap_error *error);
    void (*made)(void *self, uint64_t number);
    /* How much of a file is done. */
    void (*progress)(void *self, uint64_t done, uint64_t all);
    /* Says that the process now waits for others, or no longer. */
    void (*waits)(void *self, bool waits);
    void *self;
};

#define PACK_LEFT_LISTED 16

/* What the first stage that is not complete lacks. */
struct pack_stage_left {
    enum pack_stage stage; /* PACK_STAGE_PACK: all stages of this module are complete */
    uint64_t missing, count;
    uint64_t list[PACK_LEFT_LISTED]; /* the first ones that are missing */
};

/* Does the share of a task of all stages but `pack`. *found is what the complete ones have found; pack_found_free()
 * frees it in any case. Statuses: those of unit_scan_run(), drop_portion_run(), options.sort(), shuffle_cut_run(), and
 * shard_merge_run(). */
enum tokmap_status pack_stages_run(const struct pack_stages_options *options, struct pack_found *found,
                                   struct pack_stage_left *left, struct tokmap_error *error);
void pack_found_free(struct pack_found *found);

#endif
