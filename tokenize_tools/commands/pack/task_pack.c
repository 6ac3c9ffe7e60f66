/* task_pack.c - see task_pack.h. */
#include "task_pack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "pack/pack.h"
#include "work/task_status.h"
#include "pack/work_busy.h"
#include "pack/work_folder.h"
#include "text/path.h"

/* Packs in units, which are listed. */
static enum tokmap_status units_pack(struct task_pack *tasks, const struct pack_units *units,
                                     const struct pack_options *options, const char *const *operands,
                                     size_t operand_count, struct pack_result *result, struct tokmap_error *error)
{
    const struct task_arguments *asked = &tasks->asked;
    const struct pack_tasks_options work = {.pack = options,
                                            .operands = operands,
                                            .operand_count = operand_count,
                                            .units = units,
                                            .task = asked->task,
                                            .tasks = asked->tasks,
                                            .finish = asked->finish,
                                            .repeats = asked->task_text != NULL,
                                            .stays = asked->stays,
                                            .wait_ns = asked->wait_seconds * 1000000000,
                                            .at_once = asked->wait_given && !asked->wait_seconds};
    uint64_t first = 0, end = 0;
    if (!units->count)
        return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                         "the inputs contain no documents; name inputs that contain text");
    if (!asked->finish)
        schedule_share(units->count, asked->task, asked->tasks, &first, &end);
    tasks->in_units = true;
    tasks->units = units->count;
    for (uint64_t i = first; i < end; i++)
        tasks->share_bytes += units->list[i].bytes;
    return pack_tasks_run(&work, result, &tasks->outcome, error);
}

/* Packs in one piece. The folder of unfinished work may be that of tasks, whose work is not removed unasked. */
static enum tokmap_status whole_pack(const struct pack_options *options, const char *const *operands,
                                     size_t operand_count, struct pack_result *result, struct tokmap_error *error)
{
    struct task_status *list = NULL;
    struct tokmap_error unused;
    size_t count = 0;
    const bool looks = !options->dry_run;
    char *folder = looks ? path_join("", 0, options->prefix, strlen(options->prefix), ".work") : NULL;
    enum tokmap_status status = TOKMAP_OK;
    *result = (struct pack_result){.tokens = 0};
    if (looks && !folder)
        return error_set_memory(error, "a path", 0);
    const bool there = folder && !task_status_list(folder, false, &list, &count, &unused) && count;
    if (there && !options->start_over && work_folder_exists(options->prefix)) {
        status = work_idle_check(options->prefix, folder, error);
        if (!status)
            status = error_set(error, TOKMAP_ERROR_MISMATCH, folder, TOKMAP_NO_OFFSET,
                               "here is the unfinished work of tasks, and this command packs in one piece: repeat "
                               "the tasks' command, or start over with options.start_over");
    } else if (there) {
        status = work_start_over(options->prefix, folder, error);
    }
    free(list);
    free(folder);
    return status ? status : pack_run(options, operands, operand_count, result, error);
}

enum tokmap_status task_pack_run(struct task_pack *tasks, const struct pack_options *options,
                                 const char *const *operands, size_t operand_count, struct pack_result *result,
                                 struct tokmap_error *error)
{
    struct pack_units units;
    if (!options->unit_bytes || options->dry_run)
        return whole_pack(options, operands, operand_count, result, error);
    const struct pack_units_options list = {.operands = operands,
                                            .operand_count = operand_count,
                                            .corpus = &options->corpus,
                                            .unit_bytes = options->unit_bytes,
                                            .output = options->prefix,
                                            .split = options->split,
                                            .also = options->also,
                                            .stop = options->stop,
                                            .user = options->user};
    *result = (struct pack_result){.tokens = 0};
    enum tokmap_status status = pack_units_list(&units, &list, error);
    /* Alone, a process reads what nobody can divide, and leaves out, where it is asked to, what cannot be listed. */
    const bool skips = status && status != TOKMAP_ERROR_INTERRUPTED && options->corpus.skip;
    const bool whole = skips || (!status && (units.indivisible || units.count < 2));
    if (!tasks->asked.given && whole)
        status = whole_pack(options, operands, operand_count, result, error);
    else if (!status && units.indivisible)
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, units.indivisible_path, TOKMAP_NO_OFFSET,
                           "this input cannot be divided among tasks: %s", units.indivisible);
    else if (!status)
        status = units_pack(tasks, &units, options, operands, operand_count, result, error);
    pack_units_free(&units);
    return status;
}

bool task_pack_is_part(const struct task_pack *tasks)
{
    return tasks->in_units && (!tasks->outcome.finished || tasks->outcome.by_other);
}
