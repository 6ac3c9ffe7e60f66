/* SPDX-License-Identifier: MIT */
/*
 * stage_schedule.h - work in stages, shared by processes that have nothing in common but a folder.
 *
 * A stage has items, each a file (stage_file.h), which one process makes. Which items are done, the files in the folder
 * say, and nothing else. A task makes the items of its share that are missing, of the first stage that is not complete.
 * If then the stage is complete, the next one follows. Otherwise the task waits as long as another one works on the
 * stage, and some time more, and then ends: the same command continues later. A task does not wait for others in the
 * last stage. Of a stage whose work is short, a task that finds no other at work makes all that is missing.
 *
 * One process that does everything is task 0 of 1.
 */
#ifndef TOKMAP_WORK_STAGE_SCHEDULE_H
#define TOKMAP_WORK_STAGE_SCHEDULE_H

#include "stage_file.h"
#include "task_status.h"

/* A stage. All callbacks get the `self` of the schedule. */
struct stage {
    enum task_stage number;
    bool alone; /* True if one process makes all that is missing: the work is short, or continues */
    /* Counts the items, when the stages before are complete. Statuses: any. */
    enum tokmap_status (*count)(void *self, uint64_t *count, struct tokmap_error *error);
    struct stage_id (*file)(void *self, uint64_t item); /* names the file of an item */
    /* Makes an item. Statuses: any; of a stage with `alone`, ERROR_BUSY says that another process makes it. */
    enum tokmap_status (*run)(void *self, const struct stage_id *id, struct tokmap_error *error);
};

/* What a process does of the work. */
struct task_share {
    uint64_t task, tasks; /* 0 of 1: one process does everything */
    bool finish;          /* makes nothing */
    /* Time to wait for items that are missing while no other task works. at_once: True if it does not wait even while
     * one works. */
    uint64_t wait_ns;
    bool at_once;
};

struct schedule {
    const struct stage *stages; /* in their order, `count` of them */
    size_t count;
    bool more;  /* other stages follow in another schedule, so that the last one here is waited for, too */
    void *self; /* of all callbacks but stop() */
    const char *folder;
    struct task_share share;
    /* Returns true to end the work with ERROR_INTERRUPTED. May be NULL. */
    bool (*stop)(void *user);
    void *user;
    /* Gets the reports about *work, the share of a stage that is done; NULL: the process is no task. bytes(): about how
     * many bytes an item has. */
    struct task_claim *claim;
    struct task_work *work;
    uint64_t (*bytes)(void *self, uint64_t item);
    /* Are called when an item of the share is done, and when those are counted that earlier processes have made. May be
     * NULL. Statuses: any. */
    enum tokmap_status (*made)(void *self, uint64_t item, struct tokmap_error *error);
    void (*begun)(void *self);
};

#define SCHEDULE_LISTED 16

/* Missing items of the first stage that is not complete; missing 0: all stages are complete. */
struct schedule_left {
    enum task_stage stage;
    uint64_t missing, count;
    uint64_t list[SCHEDULE_LISTED]; /* the first ones that are missing */
};

/* Does the share of a task of all stages. Statuses: OK, ERROR_INTERRUPTED, ERROR_MEMORY, those of the callbacks. */
enum tokmap_status schedule_run(const struct schedule *schedule, struct schedule_left *left,
                                struct tokmap_error *error);

/* Finds out once more which items are missing of the stage at which schedule_run() has ended with some. Statuses: those
 * of the callbacks. */
enum tokmap_status schedule_look(const struct schedule *schedule, struct schedule_left *left,
                                 struct tokmap_error *error);

/* Waits. Statuses: OK, ERROR_INTERRUPTED. */
enum tokmap_status schedule_sleep(const struct schedule *schedule, uint64_t ns, struct tokmap_error *error);

/* Computes the items [*first, *end) of task `task` of `tasks`. */
void schedule_share(uint64_t count, uint64_t task, uint64_t tasks, uint64_t *first, uint64_t *end);
/* Returns the task of `tasks` that has an item. */
uint64_t schedule_task_of(uint64_t count, uint64_t item, uint64_t tasks);

#endif
