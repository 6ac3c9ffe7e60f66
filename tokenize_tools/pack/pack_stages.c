/*
 * pack_stages.c - see pack_stages.h.
 *
 * Waiting cannot last forever: a task that waits says so in its status file (task_status.h), and only tasks that do not
 * wait are waited for. If all of them wait for the file of a task that was killed, all end.
 */
#include "pack_stages.h"

#include <stdlib.h>

#include "common/error.h"
#include "near_resolve.h"
#include "platform/os.h"
#include "task_status.h"
#include "unit_record.h"

#define WAIT_NS ((uint64_t)100000000) /* between two looks at the files */

struct stages {
    const struct pack_stages_options *options;
    struct all_scans *scans;
    uint64_t key;
};

static struct stage_id id_of(const struct stages *stages, enum pack_stage stage, uint64_t number)
{
    return stage == PACK_STAGE_SCAN
               ? stage_scan_id(stages->options->folder, stages->key, number)
               : stage_drops_id(stages->options->folder, stages->key, number, stages->options->units);
}

static enum tokmap_status stop_check(const struct stages *stages, struct tokmap_error *error)
{
    const struct pack_options *pack = stages->options->pack;
    return pack->stop && pack->stop(pack->user)
               ? error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted")
               : TOKMAP_OK;
}

/* Counts the files of a stage that are missing. */
static enum tokmap_status stage_look(const struct stages *stages, struct pack_stage_left *left,
                                     struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    left->missing = 0;
    for (uint64_t i = 0; i < left->count && !status; i++) {
        const struct stage_id id = id_of(stages, left->stage, i);
        status = stage_find(&id, error);
        if (status != TOKMAP_ERROR_NOT_FOUND)
            continue;
        if (!left->missing++)
            left->first = i;
        status = stop_check(stages, error);
    }
    return status;
}

/* Makes a file of a stage. */
static enum tokmap_status file_make(const struct stages *stages, enum pack_stage stage, uint64_t number,
                                    struct tokmap_error *error)
{
    const struct pack_stages_options *options = stages->options;
    const struct stage_id id = id_of(stages, stage, number);
    const enum tokmap_status status = stage == PACK_STAGE_SCAN ? options->scan(options->self, number, &id, error)
                                      : options->pack->drop->minhash
                                          ? near_resolve_run(stages->scans, options->pack, error)
                                          : drop_portion_run(stages->scans, options->pack, number, error);
    if (!status)
        options->made(options->self, number);
    return status;
}

/* Makes the files of the share that are missing. */
static enum tokmap_status share_make(const struct stages *stages, enum pack_stage stage, uint64_t count,
                                     struct tokmap_error *error)
{
    const struct pack_stages_options *options = stages->options;
    uint64_t first = 0, end = 0;
    enum tokmap_status status = TOKMAP_OK;
    if (!count || options->finish)
        return TOKMAP_OK;
    pack_units_share(count, options->task, options->tasks, &first, &end);
    bool *there = calloc((size_t)(end - first) + 1, sizeof *there);
    if (!there)
        return error_set_memory(error, "the files of a stage", end - first);
    for (uint64_t i = first; i < end && !status; i++) {
        const struct stage_id id = id_of(stages, stage, i);
        status = stage_find(&id, error);
        there[i - first] = !status;
        if (status == TOKMAP_ERROR_NOT_FOUND)
            status = TOKMAP_OK;
    }
    if (!status)
        options->begins(options->self, stage, first, end, there);
    for (uint64_t i = first; i < end && !status; i++)
        if (!there[i - first])
            status = file_make(stages, stage, i, error);
    free(there);
    return status;
}

/* Whether another task works, and does not wait. */
static bool others_work(const struct stages *stages)
{
    const struct pack_stages_options *options = stages->options;
    struct task_status *list;
    struct tokmap_error unused;
    size_t count;
    bool work = false;
    if (options->finish || task_status_list(options->folder, false, &list, &count, &unused))
        return false;
    for (size_t i = 0; i < count; i++)
        work |= list[i].task != options->task && list[i].state == TASK_WORKING && list[i].moving;
    free(list);
    return work;
}

static enum tokmap_status stage_do(const struct stages *stages, struct pack_stage_left *left,
                                   struct tokmap_error *error)
{
    const struct pack_stages_options *options = stages->options;
    bool waits = false;
    enum tokmap_status status = share_make(stages, left->stage, left->count, error);
    while (!status) {
        const bool others = others_work(stages); /* before the look, which then sees what they have made */
        status = stage_look(stages, left, error);
        if (status || !left->missing || !others)
            break;
        if (!waits)
            options->waits(options->self, true);
        waits = true;
        os_sleep_ns(WAIT_NS);
        status = stop_check(stages, error);
    }
    if (waits)
        options->waits(options->self, false);
    return status;
}

enum tokmap_status pack_stages_run(const struct pack_stages_options *options, struct all_scans *scans,
                                   struct pack_stage_left *left, struct tokmap_error *error)
{
    struct stages stages = {.options = options, .scans = scans};
    *scans = (struct all_scans){.units = 0};
    *left = (struct pack_stage_left){.stage = PACK_STAGE_SCAN, .count = options->units};
    if (!unit_record_key(options->pack, &stages.key))
        return error_set_memory(error, "the stages", 0);
    enum tokmap_status status = stage_do(&stages, left, error);
    if (status || left->missing)
        return status;
    status = all_scans_read(scans, options->pack, options->folder, stages.key, options->units, error);
    scans->progress = options->progress;
    scans->user = options->self;
    if (!status) {
        *left = (struct pack_stage_left){.stage = PACK_STAGE_COMPARE, .count = scans->portions};
        status = stage_do(&stages, left, error);
    }
    if (!status && !left->missing)
        left->stage = PACK_STAGE_PACK;
    return status;
}
