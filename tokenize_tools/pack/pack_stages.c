/*
 * pack_stages.c - see pack_stages.h.
 *
 * Waiting cannot last forever: a task that waits says so in its status file (task_status.h), and only tasks that do not
 * wait are waited for. If all of them wait for the file of a task that was killed, all end. But a comparison is short:
 * the task with the lowest number makes the portions that are missing, and the others wait.
 *
 * Waiting costs little: the pauses grow to 5 seconds, and a look is one listing of the folder and, as long as one other
 * task works, one status file.
 */
#include "pack_stages.h"

#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"
#include "near_resolve.h"
#include "platform/os.h"
#include "task_status.h"
#include "unit_record.h"

/* Between two looks at the files: twice as long each time. */
#define WAIT_LEAST_NS ((uint64_t)100000000)
#define WAIT_MOST_NS ((uint64_t)5000000000)

struct stages {
    const struct pack_stages_options *options;
    struct all_scans *scans;
    uint64_t key;
};

static enum tokmap_status no_memory(uint64_t bytes, struct tokmap_error *error)
{
    return error_set_memory(error, "the files of a stage", bytes);
}

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

/* Looks which files of a stage are missing. Only those that were missing before are looked for, in one listing of the
 * folder, and each is opened once, when it is new. */
static enum tokmap_status stage_look(const struct stages *stages, bool *there, struct pack_stage_left *left,
                                     struct tokmap_error *error)
{
    const enum stage_kind kind = left->stage == PACK_STAGE_SCAN ? STAGE_SCAN : STAGE_DROPS;
    bool *listed = calloc((size_t)left->count + 1, sizeof *listed);
    enum tokmap_status status =
        listed ? stage_list(stages->options->folder, kind, left->count, listed, error) : no_memory(left->count, error);
    left->missing = 0;
    for (uint64_t i = 0; i < left->count && !status; i++) {
        if (!there[i] && listed[i]) {
            const struct stage_id id = id_of(stages, left->stage, i);
            status = stage_find(&id, error);
            there[i] = !status;
            if (status == TOKMAP_ERROR_NOT_FOUND)
                status = TOKMAP_OK;
        }
        if (!there[i] && !left->missing++)
            left->first = i;
    }
    free(listed);
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
        return no_memory(end - first, error);
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
    /* Another task makes what was missing of the comparison: its files are waited for. */
    return stage == PACK_STAGE_COMPARE && status == TOKMAP_ERROR_BUSY ? TOKMAP_OK : status;
}

/* Makes those files of the comparison that are missing, whoever has them. *made: no other task does the same. */
static enum tokmap_status rest_make(const struct stages *stages, const bool *there, const struct pack_stage_left *left,
                                    bool *made, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = left->first; i < left->count && !status; i++)
        if (!there[i])
            status = file_make(stages, left->stage, i, error);
    *made = status != TOKMAP_ERROR_BUSY;
    return *made ? status : TOKMAP_OK;
}

static enum tokmap_status sleep_a_while(const struct stages *stages, uint64_t ns, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t slept = 0; slept < ns && !status; slept += WAIT_LEAST_NS) {
        os_sleep_ns(WAIT_LEAST_NS);
        status = stop_check(stages, error);
    }
    return status;
}

static enum tokmap_status stage_wait(const struct stages *stages, bool *there, struct pack_stage_left *left,
                                     struct tokmap_error *error)
{
    const struct pack_stages_options *options = stages->options;
    const bool compares = left->stage == PACK_STAGE_COMPARE && !options->finish;
    struct task_watch watch = {.count = 0};
    uint64_t pause = WAIT_LEAST_NS, last = os_clock_ns();
    bool waits = false, made = false;
    enum tokmap_status status = TOKMAP_OK;
    while (!status) {
        /* Before the look, which then sees what they have made. */
        const enum task_others others = options->finish ? TASK_OTHERS_NONE
                                                        : task_watch_look(&watch, options->folder, options->task,
                                                                          compares ? TASK_COMPARES : TASK_SCANS);
        const bool alone = others == TASK_OTHERS_NONE || (!compares && others == TASK_OTHERS_WAIT);
        status = stage_look(stages, there, left, error);
        if (status || !left->missing)
            break;
        if (compares && alone) {
            if (waits)
                options->waits(options->self, false);
            waits = false;
            status = rest_make(stages, there, left, &made, error);
            if (status || made)
                continue;
        }
        last = alone ? last : os_clock_ns();
        if (options->finish || options->at_once || (alone && os_clock_ns() - last >= options->wait_ns))
            break;
        if (!waits)
            options->waits(options->self, true);
        waits = true;
        status = sleep_a_while(stages, pause, error);
        pause = min64(2 * pause, WAIT_MOST_NS);
    }
    if (waits)
        options->waits(options->self, false);
    task_watch_free(&watch);
    return status;
}

static enum tokmap_status stage_do(const struct stages *stages, struct pack_stage_left *left,
                                   struct tokmap_error *error)
{
    bool *there = calloc((size_t)left->count + 1, sizeof *there);
    enum tokmap_status status =
        there ? share_make(stages, left->stage, left->count, error) : no_memory(left->count, error);
    if (!status)
        status = stage_wait(stages, there, left, error);
    free(there);
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
