/* SPDX-License-Identifier: MIT */
/*
 * pack_stages.h - the stages of packing (work/stage_schedule.h). Whether a document is a duplicate depends on those of
 * all units before, so nothing is packed before all units are scanned; and a shuffled shard has documents of all units,
 * so none is made before all units are sorted:
 *
 *     with documents left out:
 *         scan      each unit      its keys and excluded documents    scan-000012         unit_scan.h
 *         compare   each portion   which documents are dropped        drops-000003        drop_resolve.h
 *     without a shuffle:
 *         pack      each unit      its shards                         packed-000012       unit_record.h
 *     with a shuffle:
 *         sort      each unit      its documents in their order       packed-000012       sorted_units.h
 *         cut       once           where shards begin                 cuts-000000         shuffle_cut.h
 *         merge     each shard     the shard                          merged-000007       shard_merge.h
 *
 * Work without units has the first two of them, with all inputs as one unit. Near-duplicates are compared before the
 * first document is packed; equal documents only when the table of their keys is full (drop_filter.h), in the middle of
 * packing.
 *
 * The files in the folder are the state. A file that a killed task has begun is continued, in each stage by what its
 * header says; but a portion of exact duplicates is short, and begins again.
 */
#ifndef TOKMAP_PACK_PACK_STAGES_H
#define TOKMAP_PACK_PACK_STAGES_H

#include "dedup/drop_resolve.h"
#include "dedup/unit_scan.h"
#include "pack_journal.h"
#include "shuffle/shard_merge.h"
#include "work/stage_schedule.h"

/* Findings of complete stages. Begins as zero bytes. */
struct pack_found {
    uint64_t key; /* of the files of stages */
    struct all_scans scans;
    struct sorted_units units;
    struct shuffle_cuts cuts;
};

/* The work whose stages these are: `self` of a schedule. */
struct pack_stages {
    const struct pack_options *pack; /* its stop() and user are used */
    const struct work_units *inputs;
    const char *folder;
    struct pack_found found;
    /* Scans a unit; and packs it, or with a shuffle sorts it. `id` names the file. Statuses: any. */
    enum tokmap_status (*scan)(void *user, uint64_t unit, const struct stage_id *id, struct tokmap_error *error);
    enum tokmap_status (*unit)(void *user, uint64_t unit, const struct stage_id *id, struct tokmap_error *error);
    /* Reports how much of a file is done. May be NULL. */
    void (*progress)(void *user, uint64_t done, uint64_t all);
    void *user;
};

#define PACK_STAGES_MOST 5
#define PACK_STAGES_DROP 2 /* the first ones with options->drop, which find the documents that are left out */

/* Returns how the stages work that find which documents are left out; and how units are scanned, but for their
 * range. */
struct drop_stage pack_drop_stage(const struct pack_options *options);
struct unit_scan_options pack_scan_options(const struct pack_options *options);

/* Lists the stages of packing with these options. Returns how many. */
size_t pack_stages_list(const struct pack_options *options, const struct stage *list[PACK_STAGES_MOST]);

/* Sets the key of the files. pack_stages_free() frees what the stages have found. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status pack_stages_begin(struct pack_stages *stages, struct tokmap_error *error);
void pack_stages_free(struct pack_stages *stages); /* accepts zeros */

/* ---- work without units ---- */

/* Returns true if documents are compared before the first one is packed. */
bool drop_stages_precede(const struct pack_options *options);
/* Returns true if they are compared when the table of keys is full. If not, the table has no limit. */
bool drop_stages_follow(const struct pack_options *options, const struct scan_inputs *inputs);
/* Returns true if one of both may come. */
bool drop_stages_may_come(const struct pack_options *options, const struct scan_inputs *inputs);

/* Returns true if every input can be read twice: the operands and lists name no standard input, pipe, or device. */
bool drop_stages_can_repeat(const char *const *operands, size_t count, const struct inputs_selection *select);

/* Findings of these stages. Begins as zero bytes. */
struct drop_stages {
    struct pack_stages work;
    struct drop_source source; /* for drop_filter_new(); valid as long as this, and as the folder's name */
};

/* Does what is missing of the stages in the folder of the journal, which `corpus` is not to read; NULL: it is being
 * read. Statuses: OK, ERROR_ARGUMENT (an input cannot be read twice), those of pack_journal_stages() and
 * schedule_run(). drop_stages_free() follows in any case. */
enum tokmap_status drop_stages_do(struct drop_stages *stages, const struct pack_options *options,
                                  const struct scan_inputs *inputs, struct pack_journal *journal, struct corpus *corpus,
                                  struct tokmap_error *error);

/* Does them in a folder. options->drop and what unit_scan.h says are used. With --dedup exact, nothing is found out
 * about excluded n-grams. Statuses: those of schedule_run(). */
enum tokmap_status drop_stages_run(struct drop_stages *stages, const struct pack_options *options,
                                   const struct scan_inputs *inputs, const char *folder, struct tokmap_error *error);
void drop_stages_free(struct drop_stages *stages); /* accepts zeros */

#endif
