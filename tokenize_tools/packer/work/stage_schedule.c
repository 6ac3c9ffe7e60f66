/* SPDX-License-Identifier: MIT */
/*
 * stage_schedule.c - see stage_schedule.h.
 *
 * Waiting cannot last forever: a task that waits says so in its status file (task_status.h), and only tasks that do not
 * wait are waited for. If all of them wait for the item of a task that was killed, all end. But a stage that one
 * process makes alone is short or continues: the task with the lowest number makes what is missing, and the others
 * wait.
 *
 * Waiting costs little: the pauses grow to 5 seconds, and a look is one listing of the folder and, as long as one other
 * task works, one status file.
 */
#include "stage_schedule.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

/* Pause between two looks at the items, which doubles each time. */
#define WAIT_LEAST_NS ((uint64_t)100000000)
#define WAIT_MOST_NS ((uint64_t)5000000000)

/* ---- shares ---- */

/* floor(task * count / tasks), which fits. */
static uint64_t share_begin(uint64_t count, uint64_t task, uint64_t tasks)
{
    return (uint64_t)((unsigned __int128)task * count / tasks);
}

void schedule_share(uint64_t count, uint64_t task, uint64_t tasks, uint64_t *first, uint64_t *end)
{
    assert(tasks && task < tasks);
    *first = share_begin(count, task, tasks);
    *end = share_begin(count, task + 1, tasks);
}

uint64_t schedule_task_of(uint64_t count, uint64_t item, uint64_t tasks)
{
    assert(item < count && tasks);
    /* The task i with floor(i * count / tasks) <= item < floor((i + 1) * count / tasks). */
    return (uint64_t)(((unsigned __int128)(item + 1) * tasks - 1) / count);
}

/* ---- items ---- */

static enum tokmap_status is_done(const struct schedule *schedule, const struct stage *stage, uint64_t item, bool *done,
                                  struct tokmap_error *error)
{
    const struct stage_id id = stage->file(schedule->self, item);
    const enum tokmap_status status = stage_find(&id, error);
    *done = !status;
    return status == TOKMAP_ERROR_NOT_FOUND ? TOKMAP_OK : status;
}

/* Finds out which items are missing. One listing of the folder looks only for items that were missing before, and each
 * is examined once, when it is new. */
static enum tokmap_status stage_look(const struct schedule *schedule, const struct stage *stage, bool *there,
                                     struct schedule_left *left, struct tokmap_error *error)
{
    const struct stage_id any = stage->file(schedule->self, 0);
    bool *listed = calloc((size_t)left->count + 1, sizeof *listed);
    enum tokmap_status status = listed ? stage_list(any.folder, any.kind, left->count, listed, error)
                                       : error_set_memory(error, "the items of a stage", left->count);
    left->missing = 0;
    for (uint64_t i = 0; i < left->count && !status; i++) {
        if (!there[i] && listed[i])
            status = is_done(schedule, stage, i, &there[i], error);
        if (there[i])
            continue;
        if (left->missing < SCHEDULE_LISTED)
            left->list[left->missing] = i;
        left->missing++;
    }
    free(listed);
    return status;
}

/* Counts an item that is done. */
static enum tokmap_status item_count(const struct schedule *schedule, uint64_t item, struct tokmap_error *error)
{
    const enum tokmap_status status = schedule->made ? schedule->made(schedule->self, item, error) : TOKMAP_OK;
    if (status || !schedule->claim)
        return status;
    schedule->work->units_done++;
    schedule->work->bytes += schedule->bytes(schedule->self, item);
    task_claim_report(schedule->claim, schedule->work);
    return TOKMAP_OK;
}

/* Begins the report with the items of the share that earlier processes have made, so that the rate is that of this
 * process. */
static enum tokmap_status share_count(const struct schedule *schedule, const struct stage *stage, uint64_t count,
                                      uint64_t first, uint64_t end, const bool *there, struct tokmap_error *error)
{
    struct task_work *work = schedule->work;
    enum tokmap_status status = TOKMAP_OK;
    if (schedule->claim) {
        *work = (struct task_work){.stage = stage->number, .units = end - first};
        work->units_all = task_stage_is_of_units(stage->number) ? count : 0;
        for (uint64_t i = first; i < end; i++)
            work->bytes_all += schedule->bytes(schedule->self, i);
        task_claim_report(schedule->claim, work); /* the share may be empty */
        for (uint64_t i = first; i < end && !status; i++)
            if (there[i - first])
                status = item_count(schedule, i, error);
        work->bytes_before = work->bytes;
    }
    if (!status && schedule->begun)
        schedule->begun(schedule->self);
    return status;
}

/* Makes an item. Another task may have made it since the items were listed, because tasks of two different numbers of
 * tasks may run at a time. */
static enum tokmap_status item_make(const struct schedule *schedule, const struct stage *stage, uint64_t item,
                                    struct tokmap_error *error)
{
    bool done;
    const struct stage_id id = stage->file(schedule->self, item);
    enum tokmap_status status = is_done(schedule, stage, item, &done, error);
    if (!status && !done)
        status = stage->run(schedule->self, &id, error);
    return status ? status : item_count(schedule, item, error);
}

/* Makes the items of the share that are missing. */
static enum tokmap_status share_make(const struct schedule *schedule, const struct stage *stage, uint64_t count,
                                     struct tokmap_error *error)
{
    uint64_t first = 0, end = 0;
    enum tokmap_status status = TOKMAP_OK;
    if (!count || schedule->share.finish)
        return TOKMAP_OK;
    schedule_share(count, schedule->share.task, schedule->share.tasks, &first, &end);
    bool *there = calloc((size_t)(end - first) + 1, sizeof *there);
    if (!there)
        return error_set_memory(error, "the items of a stage", end - first);
    for (uint64_t i = first; i < end && !status; i++)
        status = is_done(schedule, stage, i, &there[i - first], error);
    if (!status)
        status = share_count(schedule, stage, count, first, end, there, error);
    for (uint64_t i = first; i < end && !status; i++)
        if (!there[i - first])
            status = item_make(schedule, stage, i, error);
    free(there);
    /* Another task makes the missing items, and this one waits for it. */
    return stage->alone && status == TOKMAP_ERROR_BUSY ? TOKMAP_OK : status;
}

/* Makes all missing items of a stage, in whatever share they are. Sets *made if no other task does the same. */
static enum tokmap_status rest_make(const struct schedule *schedule, const struct stage *stage, const bool *there,
                                    const struct schedule_left *left, bool *made, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = left->list[0]; i < left->count && !status; i++)
        if (!there[i])
            status = item_make(schedule, stage, i, error);
    *made = status != TOKMAP_ERROR_BUSY;
    return *made ? status : TOKMAP_OK;
}

/* ---- waiting ---- */

enum tokmap_status schedule_sleep(const struct schedule *schedule, uint64_t ns, struct tokmap_error *error)
{
    for (uint64_t slept = 0; slept < ns; slept += WAIT_LEAST_NS) {
        os_sleep_ns(WAIT_LEAST_NS);
        if (schedule->stop && schedule->stop(schedule->user))
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
    }
    return TOKMAP_OK;
}

static void waits_set(const struct schedule *schedule, bool *waits, bool now)
{
    if (*waits != now && schedule->claim)
        task_claim_wait(schedule->claim, now);
    *waits = now;
}

/* Waits until the stage is complete, or no task works on it. last: does not wait. */
static enum tokmap_status stage_wait(const struct schedule *schedule, const struct stage *stage, bool last, bool *there,
                                     struct schedule_left *left, struct tokmap_error *error)
{
    const bool makes = stage->alone && !schedule->share.finish;
    struct task_watch watch = {.count = 0};
    uint64_t pause = WAIT_LEAST_NS, since = os_clock_ns();
    bool waits = false, made = false;
    enum tokmap_status status = TOKMAP_OK;
    while (!status) {
        /* The other tasks are examined before the items, so that all that they have made is seen. */
        const enum task_others others =
            schedule->share.finish || last
                ? TASK_OTHERS_NONE
                : task_watch_look(&watch, schedule->folder, schedule->share.task, stage->number);
        const bool alone = others == TASK_OTHERS_NONE || (!makes && others == TASK_OTHERS_WAIT);
        status = stage_look(schedule, stage, there, left, error);
        if (status || !left->missing)
            break;
        if (makes && alone) {
            waits_set(schedule, &waits, false);
            status = rest_make(schedule, stage, there, left, &made, error);
            if (status || made)
                continue;
        }
        since = alone ? since : os_clock_ns();
        if (schedule->share.finish || schedule->share.at_once || last ||
            (alone && os_clock_ns() - since >= schedule->share.wait_ns))
            break;
        waits_set(schedule, &waits, true);
        status = schedule_sleep(schedule, pause, error);
        pause = min64(2 * pause, WAIT_MOST_NS);
    }
    waits_set(schedule, &waits, false);
    task_watch_free(&watch);
    return status;
}

enum tokmap_status schedule_run(const struct schedule *schedule, struct schedule_left *left, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    *left = (struct schedule_left){.missing = 0};
    assert(schedule->count && schedule->share.task < schedule->share.tasks);
    for (size_t i = 0; i < schedule->count && !status && !left->missing; i++) {
        const struct stage *stage = &schedule->stages[i];
        *left = (struct schedule_left){.stage = stage->number};
        status = stage->count(schedule->self, &left->count, error);
        bool *there = status ? NULL : calloc((size_t)left->count + 1, sizeof *there);
        if (!status && !there)
            status = error_set_memory(error, "the items of a stage", left->count);
        if (!status)
            status = share_make(schedule, stage, left->count, error);
        if (!status)
            status = stage_wait(schedule, stage, i + 1 == schedule->count && !schedule->more, there, left, error);
        free(there);
    }
    return status;
}

enum tokmap_status schedule_look(const struct schedule *schedule, struct schedule_left *left,
                                 struct tokmap_error *error)
{
    size_t at = 0;
    assert(left->missing && left->missing <= left->count);
    while (schedule->stages[at].number != left->stage)
        at++;
    bool *there = calloc((size_t)left->count + 1, sizeof *there);
    const enum tokmap_status status = there ? stage_look(schedule, &schedule->stages[at], there, left, error)
                                            : error_set_memory(error, "the items of a stage", left->count);
    free(there);
    return status;
}
