/* SPDX-License-Identifier: MIT */
/*
 * dedup_tasks.h - one of several processes that make a list of dropped documents together, and that share only a file
 * system: `tokmap dedup`. The list is NAME.dropped (work/dropped_file.h).
 *
 * NAME.dropped.work/journal (work_folder.h) has the options and the inputs, and beside it are the files of the stages
 * (dedup_stages.h). The process that finds the last of them complete writes the list, gives it its name, and then
 * removes the folder, with the journal first. So a list with a journal beside it may be written again, with the same
 * bytes, and a folder without a journal is rest, which the next process removes.
 */
#ifndef TOKMAP_DEDUP_DEDUP_TASKS_H
#define TOKMAP_DEDUP_DEDUP_TASKS_H

#include "dedup_stages.h"
#include "drop_filter.h"
#include "work/work_folder.h"

struct dedup_tasks_options {
    const char *name;                  /* of the list, without its ending */
    struct unit_scan_options scanning; /* for the stages; its stop() is called */
    const struct work_fact *facts;     /* fact_count of them: all that the list depends on */
    size_t fact_count;
    uint64_t key;                /* a hash of them */
    const char *reading;         /* for the list (dropped_reading()) */
    const char *const *operands; /* of inputs.h */
    size_t operand_count;
    const struct work_units *units; /* those of the operands */
    struct task_share share;        /* without `finish` */
    bool repeats;                   /* true if a list that is there, and says the same reading, means success */
    bool replace, start_over;       /* as in pack_options */
};

struct dedup_outcome {
    struct schedule_left left; /* a stage that is not complete */
    bool finished;             /* true if the list has its name */
    bool by_other;             /* true if another process writes the list, or has written it: there are no counts */
    bool kept;                 /* true if, after an error, the same call continues the work */
    uint64_t inputs;           /* with documents */
    struct drop_counts counts;
};

/* Does the share of a task, and, if then all is complete, writes the list. Statuses: those of work_folder_open(),
 * task_claim_take(), dedup_stages_run(), drop_finish(), and dropped_writer_commit(); ERROR_EXISTS. */
enum tokmap_status dedup_tasks_run(const struct dedup_tasks_options *options, struct dedup_outcome *outcome,
                                   struct tokmap_error *error);

#endif
