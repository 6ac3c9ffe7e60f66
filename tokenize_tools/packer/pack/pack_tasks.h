/* SPDX-License-Identifier: MIT */
/*
 * pack_tasks.h - one of several processes that make one output together, and that share only a file system.
 *
 * The inputs are cut into units (work_units.h), each of which pack_run() makes by itself, in the folder NAME.work. Task
 * i of n does those of its share that have no record yet. The process that finds all units finished names the shards
 * (pack_finish.h), which is the last one, or one that is started for this. The bytes are a function of inputs and
 * options alone: which process makes a unit, when, and how often it was killed does not matter.
 *
 * Where documents are dropped, other stages precede, and where they are shuffled, units are sorted, and other stages
 * make the shards (pack_stages.h).
 *
 * NAME.work/journal (work_folder.h) has the options and the inputs. The first process makes it; each later one compares
 * its own with it, and of its share of the inputs also the contents.
 */
#ifndef TOKMAP_PACK_PACK_TASKS_H
#define TOKMAP_PACK_PACK_TASKS_H

#include "pack_stages.h"
#include "packing_options.h"
#include "work/work_units.h"

struct pack_tasks_options {
    const struct pack_options *pack; /* with shard_tokens and unit_bytes, without dry_run */
    const char *const *operands;     /* of inputs.h */
    size_t operand_count;
    const struct work_units *units; /* those of the operands */
    struct task_share share;        /* with `finish`, the process only names the shards */
    bool repeats;                   /* true if an equal output that is there means success (pack_finish.h) */
    /* True if the other processes are ended when this one ends. Then it waits until they have finished the output, or
     * until none of them has worked for share.wait_ns. */
    bool stays;
};

/* Work that a process has done. */
struct pack_tasks_outcome {
    uint64_t first, end;           /* the units of its share */
    uint64_t done_before;          /* units of these that earlier processes have finished */
    uint64_t documents, tokens;    /* figures of the share */
    uint64_t text_now, stream_now; /* bytes of text and of input that this process has packed */
    struct schedule_left left;     /* a stage that is not complete */
    bool finished;                 /* true if the shards have their names */
    bool by_other;                 /* true if another process names them, or has named them: there is no result */
};

/* Does the share of a task, and, if then all units are finished, the rest. *result is of all units, once finished.
 * Statuses: those of pack_run(), task_claim_take(), work_folder_open(), and pack_finish(); ERROR_NOT_FOUND with
 * `finish` (units are missing, which the message names, or there is no unfinished work). */
enum tokmap_status pack_tasks_run(const struct pack_tasks_options *options, struct pack_result *result,
                                  struct pack_tasks_outcome *outcome, struct tokmap_error *error);

#endif
