/*
 * pack_stages.c - see pack_stages.h.
 *
 * Waiting cannot last forever: a task that waits says so in its status file (task_status.h), and only tasks that do not
 * wait are waited for. If all of them wait for the file of a task that was killed, all end. But a comparison is short
 * or continues, and so does a cut: the task with the lowest number makes what is missing of them, and the others wait.
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
#include "work/task_status.h"
#include "unit_record.h"

/* Between two looks at the files: twice as long each time. */
#define WAIT_LEAST_NS ((uint64_t)100000000)
#define WAIT_MOST_NS ((uint64_t)5000000000)

struct stages {
    const struct pack_stages_options *options;
    struct pack_found *found;
};

static enum tokmap_status no_memory(uint64_t bytes, struct tokmap_error *error)
{
    return error_set_memory(error, "the files of a stage", bytes);
}

/* ---- what each stage makes ---- */

static struct stage_id scan_id(const struct stages *stages, uint64_t number)
{
    return stage_scan_id(stages->options->folder, stages->found->key, number);
}

static struct stage_id drops_id(const struct stages *stages, uint64_t number)
{
    return stage_drops_id(stages->options->folder, stages->found->key, number, stages->options->inputs->count);
}

static struct stage_id sorted_id(const struct stages *stages, uint64_t number)
{
    return stage_sorted_id(stages->options->folder, stages->found->key, number);
}

static struct stage_id cuts_id(const struct stages *stages, uint64_t number)
{
    (void)number;
    return shuffle_cut_id(&stages->found->units, stages->found->key);
}

static struct stage_id merged_id(const struct stages *stages, uint64_t number)
{
    return stage_merged_id(stages->options->folder, stages->found->key, number);
}

static enum tokmap_status scan_make(const struct stages *stages, const struct stage_id *id, struct tokmap_error *error)
{
    return stages->options->scan(stages->options->self, id->number, id, error);
}

static enum tokmap_status drops_make(const struct stages *stages, const struct stage_id *id, struct tokmap_error *error)
{
    const struct pack_options *pack = stages->options->pack;
    return pack->drop->minhash ? near_resolve_run(&stages->found->scans, pack, error)
                               : drop_portion_run(&stages->found->scans, pack, id->number, error);
}

static enum tokmap_status sorted_make(const struct stages *stages, const struct stage_id *id,
                                      struct tokmap_error *error)
{
    return stages->options->sort(stages->options->self, id->number, id, error);
}

static enum tokmap_status cuts_make(const struct stages *stages, const struct stage_id *id, struct tokmap_error *error)
{
    const struct pack_options *pack = stages->options->pack;
    const struct shuffle_cut_options cut = {.units = &stages->found->units,
                                            .shard_tokens = pack->shard_tokens,
                                            .memory =
                                                pack->shuffle->memory ? pack->shuffle->memory : SHUFFLE_CHUNK_BYTES,
                                            .sync = pack->sync,
                                            .checkpoint_ns = pack->checkpoint_ns,
                                            .stop = pack->stop,
                                            .stop_user = pack->user,
                                            .progress = stages->options->progress,
                                            .user = stages->options->self};
    return shuffle_cut_run(&cut, id, error);
}

static enum tokmap_status merged_make(const struct stages *stages, const struct stage_id *id,
                                      struct tokmap_error *error)
{
    const struct shard_merge_options merge = {.pack = stages->options->pack,
                                              .units = &stages->found->units,
                                              .cuts = &stages->found->cuts,
                                              .cut = cuts_id(stages, 0),
                                              .progress = stages->options->progress,
                                              .user = stages->options->self};
    return shard_merge_run(&merge, id, error);
}

/* The stages, but `pack`, which has no row. alone: one process makes all that is missing, since the work is short. */
static const struct stage_row {
    enum stage_kind kind;
    enum task_stage task;
    bool alone, last;
    struct stage_id (*id)(const struct stages *stages, uint64_t number);
    enum tokmap_status (*make)(const struct stages *stages, const struct stage_id *id, struct tokmap_error *error);
} rows[] = {
    [PACK_STAGE_SCAN] = {STAGE_SCAN, TASK_SCANS, false, false, scan_id, scan_make},
    [PACK_STAGE_COMPARE] = {STAGE_DROPS, TASK_COMPARES, true, false, drops_id, drops_make},
    [PACK_STAGE_SORT] = {STAGE_SORTED, TASK_SORTS, false, false, sorted_id, sorted_make},
    [PACK_STAGE_CUT] = {STAGE_CUTS, TASK_CUTS, true, false, cuts_id, cuts_make},
    [PACK_STAGE_MERGE] = {STAGE_MERGED, TASK_MERGES, false, true, merged_id, merged_make},
};

/* ---- files ---- */

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
    const struct stage_row *row = &rows[left->stage];
    bool *listed = calloc((size_t)left->count + 1, sizeof *listed);
    enum tokmap_status status = listed ? stage_list(stages->options->folder, row->kind, left->count, listed, error)
                                       : no_memory(left->count, error);
    left->missing = 0;
    for (uint64_t i = 0; i < left->count && !status; i++) {
        if (!there[i] && listed[i]) {
            const struct stage_id id = row->id(stages, i);
            status = stage_find(&id, error);
            there[i] = !status;
            if (status == TOKMAP_ERROR_NOT_FOUND)
                status = TOKMAP_OK;
        }
        if (there[i])
            continue;
        if (left->missing < PACK_LEFT_LISTED)
            left->list[left->missing] = i;
        left->missing++;
    }
    free(listed);
    return status;
}

/* Makes a file of a stage. Another task may have made it since the files were listed: tasks of an earlier and of a
 * later number of tasks may run at a time. */
static enum tokmap_status file_make(const struct stages *stages, enum pack_stage stage, uint64_t number,
                                    struct tokmap_error *error)
{
    const struct pack_stages_options *options = stages->options;
    const struct stage_id id = rows[stage].id(stages, number);
    enum tokmap_status status = stage_find(&id, error);
    if (status == TOKMAP_ERROR_NOT_FOUND)
        status = rows[stage].make(stages, &id, error);
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
        const struct stage_id id = rows[stage].id(stages, i);
        status = stage_find(&id, error);
        there[i - first] = !status;
        if (status == TOKMAP_ERROR_NOT_FOUND)
            status = TOKMAP_OK;
    }
    if (!status)
        status = options->begins(options->self, stage, first, end, there, error);
    for (uint64_t i = first; i < end && !status; i++)
        if (!there[i - first])
            status = file_make(stages, stage, i, error);
    free(there);
    /* Another task makes what was missing: its files are waited for. */
    return rows[stage].alone && status == TOKMAP_ERROR_BUSY ? TOKMAP_OK : status;
}

/* Makes those files of a stage that are missing, whoever has them. *made: no other task does the same. */
static enum tokmap_status rest_make(const struct stages *stages, const bool *there, const struct pack_stage_left *left,
                                    bool *made, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = left->list[0]; i < left->count && !status; i++)
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
    const struct stage_row *row = &rows[left->stage];
    const bool makes = row->alone && !options->finish;
    struct task_watch watch = {.count = 0};
    uint64_t pause = WAIT_LEAST_NS, last = os_clock_ns();
    bool waits = false, made = false;
    enum tokmap_status status = TOKMAP_OK;
    while (!status) {
        /* Before the look, which then sees what they have made. */
        const enum task_others others = options->finish || row->last
                                            ? TASK_OTHERS_NONE
                                            : task_watch_look(&watch, options->folder, options->task, row->task);
        const bool alone = others == TASK_OTHERS_NONE || (!makes && others == TASK_OTHERS_WAIT);
        status = stage_look(stages, there, left, error);
        if (status || !left->missing)
            break;
        if (makes && alone) {
            if (waits)
                options->waits(options->self, false);
            waits = false;
            status = rest_make(stages, there, left, &made, error);
            if (status || made)
                continue;
        }
        last = alone ? last : os_clock_ns();
        if (options->finish || options->at_once || row->last || (alone && os_clock_ns() - last >= options->wait_ns))
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

/* Goes on to a stage with so many files. Returns whether that and all before it are complete. */
static bool stage_goes(const struct stages *stages, enum pack_stage stage, uint64_t count, struct pack_stage_left *left,
                       enum tokmap_status *status, struct tokmap_error *error)
{
    if (*status || left->missing)
        return false;
    *left = (struct pack_stage_left){.stage = stage, .count = count};
    *status = stage_do(stages, left, error);
    return !*status && !left->missing;
}

enum tokmap_status pack_stages_run(const struct pack_stages_options *options, struct pack_found *found,
                                   struct pack_stage_left *left, struct tokmap_error *error)
{
    const struct stages stages = {.options = options, .found = found};
    const struct pack_options *pack = options->pack;
    const uint64_t units = options->inputs->count;
    enum tokmap_status status = TOKMAP_OK;
    *found = (struct pack_found){.key = 0};
    *left = (struct pack_stage_left){.stage = PACK_STAGE_PACK};
    if (!unit_record_key(pack, &found->key))
        return error_set_memory(error, "the stages", 0);
    if (pack->drop && stage_goes(&stages, PACK_STAGE_SCAN, units, left, &status, error)) {
        status = all_scans_read(&found->scans, pack, options->folder, found->key, units, error);
        found->scans.progress = options->progress;
        found->scans.user = options->self;
        (void)stage_goes(&stages, PACK_STAGE_COMPARE, found->scans.portions, left, &status, error);
    }
    if (pack->shuffle && stage_goes(&stages, PACK_STAGE_SORT, units, left, &status, error)) {
        status = sorted_units_read(&found->units, pack, options->inputs, options->folder, found->key, error);
        if (stage_goes(&stages, PACK_STAGE_CUT, 1, left, &status, error)) {
            const struct stage_id cut = cuts_id(&stages, 0);
            status = shuffle_cuts_read(&found->cuts, &found->units, &cut, error);
        }
        (void)stage_goes(&stages, PACK_STAGE_MERGE, shard_merge_count(&found->cuts), left, &status, error);
    }
    if (!status && !left->missing)
        left->stage = PACK_STAGE_PACK;
    return status;
}

void pack_found_free(struct pack_found *found)
{
    all_scans_free(&found->scans);
    sorted_units_free(&found->units);
}
