/* SPDX-License-Identifier: MIT */
#include "dedup_tasks.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "drop_finish.h"
#include "platform/os.h"
#include "text/path.h"
#include "work/task_status.h"

struct tasks {
    const struct dedup_tasks_options *options;
    struct dedup_outcome *outcome;
    char *list, *folder_path;
    struct work_folder *folder;
    struct task_claim *claim;
    struct dedup_stages stages;
};

static bool is_ours(const char *folder, const char *entry, bool journal)
{
    return task_status_is_name(entry) || stage_is_ours(folder, entry, journal);
}

static bool list_exists(const struct tasks *tasks)
{
    struct os_stat found;
    return !os_lstat(tasks->list, &found);
}

/* Returns true if another process has written the list, and has removed the work or is removing it. */
static bool is_over(const struct tasks *tasks)
{
    return list_exists(tasks) && !work_folder_exists(tasks->list);
}

/* Decides what a list means that is there though no work is: success of a task that runs again, or an error. */
static enum tokmap_status list_check(const struct tasks *tasks, bool *same, struct tokmap_error *error)
{
    const struct dedup_tasks_options *options = tasks->options;
    struct dropped_file *file = NULL;
    *same = options->repeats && !dropped_open(&file, tasks->list, NULL, NULL, NULL) &&
            !strcmp(dropped_reading(file), options->reading);
    dropped_close(file);
    return *same ? TOKMAP_OK
                 : error_set(error, TOKMAP_ERROR_EXISTS, tasks->list, TOKMAP_NO_OFFSET,
                             "this list exists; replace it with --force, or choose another name");
}

/* Opens the folder of the work, or makes it. */
static enum tokmap_status folder_open(struct tasks *tasks, struct tokmap_error *error)
{
    const struct dedup_tasks_options *options = tasks->options;
    const struct drop_stage *stage = &options->scanning.stage;
    struct work_folder_options work = {.name = tasks->list,
                                       .facts = options->facts,
                                       .fact_count = options->fact_count,
                                       .inputs = {.operands = options->operands,
                                                  .count = options->operand_count,
                                                  .select = &options->scanning.corpus.select,
                                                  .cuts = options->units->cuts,
                                                  .cut_count = options->units->file_count},
                                       .owns = is_ours,
                                       .shared = true,
                                       .start_over = options->start_over,
                                       .create = true,
                                       .stop = stage->stop,
                                       .user = stage->user};
    uint64_t first, end;
    schedule_share(options->units->count, options->share.task, options->share.tasks, &first, &end);
    if (first < end) {
        const struct unit *last = &options->units->list[end - 1];
        work.inputs.compare_first = options->units->list[first].first;
        work.inputs.compare_end = last->first + last->count;
    }
    if (options->start_over && work_folder_exists(tasks->list)) {
        const enum tokmap_status status = work_idle_check(tasks->list, tasks->folder_path, error);
        if (status)
            return status;
    }
    return work_folder_await(&tasks->folder, &work, error);
}

/* Writes the list. ERROR_BUSY: another process does. */
static enum tokmap_status list_write(struct tasks *tasks, struct tokmap_error *error)
{
    const struct dedup_tasks_options *options = tasks->options;
    const struct drop_stage *stage = &options->scanning.stage;
    struct drop_counts *counts = &tasks->outcome->counts;
    struct dropped_writer *list = NULL;
    enum tokmap_status status =
        drop_finish(&list, options->name, options->reading, stage, options->units, &tasks->stages.scans, error);
    if (!status)
        status = dropped_writer_commit(list, error);
    if (!status) {
        const struct dropped_header *header = dropped_writer_header(list);
        tasks->outcome->inputs = header->inputs;
        *counts = (struct drop_counts){.documents = header->documents, .excluded = header->excluded};
        counts->by_minhash = stage->drop->minhash != NULL;
        *(counts->by_minhash ? &counts->near_duplicates : &counts->duplicates) = header->duplicates;
    }
    dropped_writer_free(list);
    return status;
}

/* Does the work of a folder that is open. */
static enum tokmap_status work_do(struct tasks *tasks, struct tokmap_error *error)
{
    const struct dedup_tasks_options *options = tasks->options;
    const struct drop_stage *stage = &options->scanning.stage;
    struct dedup_outcome *outcome = tasks->outcome;
    enum tokmap_status status = task_claim_take(&tasks->claim, tasks->folder_path, options->share.task,
                                                options->share.tasks, stage->stop, stage->user, error);
    tasks->stages = (struct dedup_stages){.scanning = options->scanning,
                                          .units = options->units,
                                          .folder = tasks->folder_path,
                                          .key = options->key,
                                          .share = options->share,
                                          .claim = tasks->claim};
    if (!status)
        status = dedup_stages_run(&tasks->stages, error);
    outcome->left = tasks->stages.left;
    if (!status && !outcome->left.missing)
        status = list_write(tasks, error);
    outcome->by_other = status == TOKMAP_ERROR_BUSY && tasks->claim && !outcome->left.missing;
    status = outcome->by_other ? TOKMAP_OK : status;
    outcome->finished = !status && !outcome->by_other && !outcome->left.missing;
    if (tasks->claim) /* before the folder is removed */
        task_claim_end(tasks->claim, status ? TASK_FAILED : outcome->left.missing ? TASK_AGAIN : TASK_DONE);
    if (outcome->finished || !is_over(tasks))
        return status;
    outcome->finished = outcome->by_other = true; /* it has removed what this one was looking for */
    outcome->left.missing = 0;
    return TOKMAP_OK;
}

/* Removes the rest of work that is over, unless there is a journal. */
static void rest_remove(const struct tasks *tasks)
{
    work_folder_sweep(tasks->list, is_ours);
    work_folder_settle(tasks->list);
}

/* Removes the work: the journal first, so that a task that does not find a file knows that the list is there. */
static void work_end(const struct tasks *tasks)
{
    char *journal = path_in(tasks->folder_path, "journal");
    if (journal && !os_unlink(journal))
        (void)os_sync_folder(journal);
    free(journal);
    rest_remove(tasks);
}

enum tokmap_status dedup_tasks_run(const struct dedup_tasks_options *options, struct dedup_outcome *outcome,
                                   struct tokmap_error *error)
{
    struct tasks tasks = {.options = options, .outcome = outcome};
    bool same = false;
    *outcome = (struct dedup_outcome){.finished = false};
    tasks.list = path_ended(options->name, ".dropped");
    tasks.folder_path = tasks.list ? path_ended(tasks.list, ".work") : NULL;
    enum tokmap_status status = tasks.folder_path ? TOKMAP_OK : error_set_memory(error, "a path", 0);
    if (!status)
        rest_remove(&tasks);
    if (!status && !options->replace && is_over(&tasks))
        status = list_check(&tasks, &same, error);
    if (!status && !same)
        status = folder_open(&tasks, error);
    if (!status && !same)
        status = work_do(&tasks, error);
    if (same)
        outcome->finished = outcome->by_other = true;
    outcome->kept = status && tasks.folder;
    work_folder_close(tasks.folder);
    if (outcome->finished && !outcome->by_other)
        work_end(&tasks);
    else if (outcome->finished) /* the other one could not remove a folder in which this one had just made a file */
        rest_remove(&tasks);
    dedup_stages_free(&tasks.stages);
    free(tasks.folder_path);
    free(tasks.list);
    return status;
}
