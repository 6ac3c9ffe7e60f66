/* SPDX-License-Identifier: MIT */
#include "dedup_stages.h"

#include <string.h>

#include "common/bytes.h"
#include "drop_resolve.h"
#include "platform/os.h"

/* ---- scan ---- */

static struct stage_id scan_file(void *self, uint64_t number)
{
    const struct dedup_stages *stages = self;
    return scan_file_id(stages->folder, stages->key, number);
}

static enum tokmap_status units_count(void *self, uint64_t *count, struct tokmap_error *error)
{
    (void)error;
    *count = ((const struct dedup_stages *)self)->units->count;
    return TOKMAP_OK;
}

static bool stages_stop(void *user)
{
    const struct dedup_stages *stages = user;
    const struct drop_stage *caller = &stages->scanning.stage;
    return (caller->stop && caller->stop(caller->user)) || (stages->claim && task_claim_lost(stages->claim));
}

static void scan_progress(void *user, uint64_t stored_bytes)
{
    const struct dedup_stages *stages = user;
    struct task_work work = stages->work;
    if (stages->claim) {
        const uint64_t all = stages->units->list[stages->unit].bytes;
        work.bytes += min64(stored_bytes, all);
        work.bytes_before += min64(stages->before, all);
        task_claim_report(stages->claim, &work);
    }
    if (stages->scanning.compared)
        stages->scanning.compared(stages->scanning.stage.user, stages->scanned + stored_bytes);
}

static enum tokmap_status unit_scan(struct dedup_stages *stages, const struct stage_id *id, struct tokmap_error *error)
{
    const struct work_units *units = stages->units;
    const struct unit *unit = &units->list[stages->unit];
    struct unit_scan_options scanning = stages->watched;
    struct corpus_range *range = &scanning.corpus.range;
    enum tokmap_status status = work_units_range(units, stages->unit, stages_stop, stages, range, error);
    const bool none = unit->end && range->begin == range->end; /* in the middle of a long line */
    const struct scan_inputs inputs = {.operands = (const char *const *)(units->paths + unit->first),
                                       .count = none ? 0 : unit->count};
    scanning.corpus.select = inputs_selection_watching(&scanning.corpus.select);
    if (!status)
        status = unit_scan_run(&scanning, &inputs, id, &stages->before, error);
    stages->scanned += unit->bytes;
    stages->work.bytes_before += min64(stages->before, unit->bytes);
    stages->before = 0;
    return status;
}

static enum tokmap_status scan_run(void *self, const struct stage_id *id, struct tokmap_error *error)
{
    struct dedup_stages *stages = self;
    stages->unit = id->number;
    if (!stages->whole)
        return unit_scan(stages, id, error);
    /* There is no scan: what a comparison has left is of another one, whose documents may have been others. Example: a
     * process that removes its files is killed after the scan and before drops-000000, and then an input changes in its
     * middle. */
    const enum tokmap_status status = stage_kind_remove(id->folder, STAGE_DROPS, error);
    return status ? status : unit_scan_run(&stages->watched, stages->whole, id, &stages->before, error);
}

/* ---- compare ---- */

static struct stage_id drops_file(void *self, uint64_t number)
{
    const struct dedup_stages *stages = self;
    return drops_file_id(stages->folder, stages->key, number, stages->units->count);
}

static enum tokmap_status portions_count(void *self, uint64_t *count, struct tokmap_error *error)
{
    struct dedup_stages *stages = self;
    const enum tokmap_status status = all_scans_read(&stages->scans, &stages->watched.stage, stages->folder,
                                                     stages->key, stages->units->count, error);
    *count = stages->scans.portions;
    return status;
}

/* Returns about how many bytes an item has. */
static uint64_t item_bytes(void *self, uint64_t item)
{
    const struct dedup_stages *stages = self;
    return stages->work.stage == TASK_SCANS ? stages->units->list[item].bytes
                                            : all_scans_portion_bytes(&stages->scans, &stages->watched.stage);
}

static void compare_progress(void *user, uint64_t done, uint64_t all)
{
    struct dedup_stages *stages = user;
    struct task_work work = stages->work;
    work.bytes += (uint64_t)((unsigned __int128)item_bytes(stages, 0) * done / max64(all, 1));
    task_claim_report(stages->claim, &work);
}

static enum tokmap_status drops_run(void *self, const struct stage_id *id, struct tokmap_error *error)
{
    struct dedup_stages *stages = self;
    const struct drop_stage *how = &stages->watched.stage;
    stages->scans.progress = stages->claim ? compare_progress : NULL;
    stages->scans.user = stages;
    return how->drop->minhash ? near_resolve_run(&stages->scans, how, error)
                              : drop_portion_run(&stages->scans, how, id->number, error);
}

/* ---- both ---- */

enum tokmap_status dedup_stages_run(struct dedup_stages *stages, struct tokmap_error *error)
{
    static const struct stage list[] = {{TASK_SCANS, false, units_count, scan_file, scan_run},
                                        {TASK_COMPARES, true, portions_count, drops_file, drops_run}};
    const struct schedule schedule = {.stages = list,
                                      .count = sizeof list / sizeof *list,
                                      .more = true,
                                      .self = stages,
                                      .folder = stages->folder,
                                      .share = stages->share,
                                      .stop = stages_stop,
                                      .user = stages,
                                      .claim = stages->claim,
                                      .work = &stages->work,
                                      .bytes = item_bytes};
    stages->watched = stages->scanning;
    stages->watched.compared = scan_progress;
    stages->watched.stage.stop = stages_stop;
    stages->watched.stage.user = stages;
    const enum tokmap_status status = schedule_run(&schedule, &stages->left, error);
    const struct stage_id missing = drops_file(stages, stages->left.list[0]);
    if (!status && stages->whole && stages->left.missing)
        return stage_busy(&missing, error);
    return status && stages->claim && task_claim_lost(stages->claim) ? task_claim_lost_error(stages->claim, error)
                                                                     : status;
}

void dedup_stages_free(struct dedup_stages *stages)
{
    all_scans_free(&stages->scans);
}

struct drop_source dedup_stages_source(const struct dedup_stages *stages, uint64_t unit)
{
    const struct all_scans *scans = &stages->scans;
    return (struct drop_source){.folder = stages->folder,
                                .key = scans->key,
                                .unit = unit,
                                .units = scans->units,
                                .portions = scans->portions,
                                .places = &scans->list[unit].places};
}

static bool is_regular(const char *path)
{
    struct os_stat stat;
    return strcmp(path, "-") != 0 && (os_stat(path, &stat) || stat.kind == OS_KIND_FILE || stat.kind == OS_KIND_FOLDER);
}

bool dedup_can_repeat(const char *const *operands, size_t count, const struct inputs_selection *select)
{
    for (size_t i = 0; i < count; i++)
        if (!is_regular(operands[i]))
            return false;
    for (size_t i = 0; i < select->list_count; i++)
        if (!is_regular(select->lists[i]))
            return false;
    return true;
}
