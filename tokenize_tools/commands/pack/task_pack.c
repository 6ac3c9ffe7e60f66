/* SPDX-License-Identifier: MIT */
#include "task_pack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "encode/split.h"
#include "pack/output_names.h"
#include "pack/pack.h"
#include "pack/pack_finish.h"
#include "platform/os.h"
#include "text/path.h"
#include "work/dropped_file.h"
#include "work/task_status.h"
#include "work/work_folder.h"

/* Packs in units, which are listed. */
static enum tokmap_status units_pack(struct task_pack *tasks, const struct work_units *units,
                                     const struct pack_options *options, const char *const *operands,
                                     size_t operand_count, struct pack_result *result, struct tokmap_error *error)
{
    const struct task_arguments *asked = &tasks->asked;
    const struct pack_tasks_options work = {.pack = options,
                                            .operands = operands,
                                            .operand_count = operand_count,
                                            .units = units,
                                            .share = {.task = asked->task,
                                                      .tasks = asked->tasks,
                                                      .finish = asked->finish,
                                                      .wait_ns = asked->wait_seconds * 1000000000,
                                                      .at_once = asked->wait_given && !asked->wait_seconds},
                                            .repeats = asked->task_text != NULL,
                                            .stays = asked->stays};
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

/* Packs without units. The folder of unfinished work may be that of tasks, whose work is not removed unasked. */
static enum tokmap_status whole_pack(const struct pack_options *options, const char *const *operands,
                                     size_t operand_count, struct pack_result *result, struct tokmap_error *error)
{
    struct task_status *list = NULL;
    struct tokmap_error unused;
    size_t count = 0;
    const bool looks = !options->dry_run;
    char *folder = looks ? path_ended(options->prefix, ".work") : NULL;
    enum tokmap_status status = TOKMAP_OK;
    *result = (struct pack_result){.tokens = 0};
    if (looks && !folder)
        return error_set_memory(error, "a path", 0);
    const bool there = folder && !task_status_list(folder, false, &list, &count, &unused) && count;
    if (there && !options->start_over && work_folder_exists(options->prefix)) {
        status = work_idle_check(options->prefix, folder, error);
        if (!status)
            status = error_set(error, TOKMAP_ERROR_MISMATCH, folder, TOKMAP_NO_OFFSET,
                               "here is the unfinished work of tasks, and this command packs without units: repeat "
                               "the tasks' command, or start over with --no-resume");
    } else if (there) {
        status = pack_clear_start(options->prefix, folder, error);
    }
    free(list);
    free(folder);
    return status ? status : pack_run(options, operands, operand_count, result, error);
}

enum tokmap_status task_pack_run(struct task_pack *tasks, const struct pack_options *options,
                                 const char *const *operands, size_t operand_count, struct pack_result *result,
                                 struct tokmap_error *error)
{
    struct work_units units;
    if (!options->shard_tokens || options->dry_run)
        return whole_pack(options, operands, operand_count, result, error);
    const struct output_names names = {options->prefix, options->split, true, options->also};
    const struct corpus_footers footers = {work_units_keep_footer, options->prefix};
    struct pack_options known = *options;
    known.corpus.footers = options->start_over ? NULL : &footers;
    const struct work_units_options list = {.operands = operands,
                                            .operand_count = operand_count,
                                            .corpus = &known.corpus,
                                            .unit_bytes = options->unit_bytes ? options->unit_bytes : UINT64_MAX,
                                            .whole_lines =
                                                options->listed && listed_documents_by_record(options->listed),
                                            .examine = pack_input_check,
                                            .output = &names,
                                            .stop = options->stop,
                                            .user = options->user};
    *result = (struct pack_result){.tokens = 0};
    char inputs[33];
    enum tokmap_status status = work_units_list(&units, &list, error);
    known.corpus.footers = &footers;
    if (!status && !units.indivisible) {
        if (!pack_inputs_hash(&units, inputs))
            status = error_set_memory(error, "the names of inputs", units.file_count);
        known.inputs_hash = inputs;
    }
    /* Alone, a process reads what nobody can divide, and leaves out, where it is asked to, what cannot be listed. */
    const bool skips = status && status != TOKMAP_ERROR_INTERRUPTED && (options->corpus.skip || !options->unit_bytes);
    const bool whole = skips || (!status && (units.indivisible || units.count < 2 || !options->unit_bytes));
    if (!tasks->asked.given && whole)
        status = whole_pack(&known, operands, operand_count, result, error);
    else if (!status && units.indivisible)
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, units.indivisible_path, TOKMAP_NO_OFFSET,
                           "this input cannot be divided among tasks: %s", units.indivisible);
    else if (!status)
        status = units_pack(tasks, &units, &known, operands, operand_count, result, error);
    work_units_free(&units);
    return status;
}

bool task_pack_is_part(const struct task_pack *tasks)
{
    return tasks->in_units && (!tasks->outcome.finished || tasks->outcome.by_other);
}

/* ---- reports ---- */

#define LIST_ENDING ".dropped"

static const char *const stages[TASK_STAGES] = {"scan", "compare", "pack", "sort", "cut", "merge"};

/* All tasks together. No task begins a stage before the stages before it are complete, so the last one that any task
 * has begun is the one that all are in, and units to bytes_all are those of the tasks that have begun it. */
struct sum {
    enum task_stage stage;
    uint64_t working, done, again, failed, stopped, absent, behind; /* behind: tasks that have not begun the stage */
    uint64_t units, units_done, units_all, documents, dropped, skipped, tokens, bytes, bytes_all;
    double rate, left; /* bytes a second; seconds. left is negative if unknown */
};

/* Stored bytes a second, since the process began. */
static double rate_of(const struct task_status *task)
{
    const double seconds = (double)task->milliseconds * 1e-3;
    const uint64_t done = task->work.bytes - task->work.bytes_before;
    return seconds > 0 && task->work.bytes >= task->work.bytes_before ? (double)done / seconds : 0;
}

/* Seconds until the task is done; negative if unknown. */
static double left_of(const struct task_status *task)
{
    const double rate = rate_of(task);
    if (task->work.bytes >= task->work.bytes_all)
        return 0;
    return rate > 0 ? (double)(task->work.bytes_all - task->work.bytes) / rate : -1;
}

/* Also if it waits for other tasks. */
static bool is_at_work(const struct task_status *task)
{
    return task->state == TASK_WORKING || task->state == TASK_WAITING;
}

static const char *state_of(const struct task_status *task)
{
    static const char *const names[TASK_STATES] = {"working", "done", "failed", "waiting", "run again"};
    return is_at_work(task) && !task->moving ? "stopped" : names[task->state];
}

static void sum_make(struct sum *sum, const struct task_status *tasks, size_t count)
{
    uint64_t most = 0;
    *sum = (struct sum){.working = 0};
    for (size_t i = 0; i < count; i++)
        sum->stage = tasks[i].work.stage > sum->stage ? tasks[i].work.stage : sum->stage;
    for (size_t i = 0; i < count; i++) {
        const struct task_status *task = &tasks[i];
        const bool is_in = task->work.stage == sum->stage;
        const bool moves = is_at_work(task) && task->moving;
        const double left = left_of(task);
        sum->working += moves;
        sum->done += task->state == TASK_DONE;
        sum->again += task->state == TASK_AGAIN;
        sum->failed += task->state == TASK_FAILED;
        sum->stopped += is_at_work(task) && !task->moving;
        most = task->tasks > most ? task->tasks : most;
        if (!is_in) {
            sum->behind++;
            sum->left = -1;
            continue;
        }
        sum->units += task->work.units;
        sum->units_done += task->work.units_done;
        sum->units_all = task->work.units_all > sum->units_all ? task->work.units_all : sum->units_all;
        sum->documents += task->work.documents;
        sum->dropped += task->work.dropped;
        sum->skipped += task->work.skipped;
        sum->tokens += task->work.tokens;
        sum->bytes += task->work.bytes;
        sum->bytes_all += task->work.bytes_all;
        sum->rate += moves ? rate_of(task) : 0;
        if (task->state != TASK_DONE && task->state != TASK_AGAIN && (left < 0 || !moves))
            sum->left = -1;
        else if (sum->left >= 0 && left > sum->left && moves)
            sum->left = left;
    }
    sum->absent = most > count ? most - count : 0;
    if (sum->absent)
        sum->left = -1;
}

static const char *time_text(double left, char text[32])
{
    return left < 0 ? "?" : cli_duration(left, text);
}

/* Words for what a stage makes, and for what follows it. */
static const char *const files[TASK_STAGES] = {"units", "portions of the keys", "units", "units", "cuts", "shards"};
static const char *const next[TASK_STAGES] = {"the keys are compared, and then the units packed or sorted,",
                                              "the units are packed or sorted",
                                              NULL,
                                              "the shards are cut, and then merged,",
                                              "the shards are merged",
                                              NULL};

/* Returns the words for what follows a stage; of a list of dropped documents (`tokmap dedup`), nothing is packed. */
static const char *next_of(const char *prefix, enum task_stage stage)
{
    static const char *const of_list[] = {"the keys are compared", "the list is written"};
    const size_t bytes = strlen(prefix), own = strlen(LIST_ENDING);
    return stage <= TASK_COMPARES && bytes > own && !strcmp(prefix + bytes - own, LIST_ENDING) ? of_list[stage]
                                                                                               : next[stage];
}

static struct cli_value seconds_left(double left)
{
    return left < 0 ? cli_null() : cli_real(left);
}

static void task_add(const struct task_status *task, struct cli_report *report)
{
    const struct task_work *work = &task->work;
    const bool moves = task->state == TASK_WORKING && task->moving;
    const double rate = rate_of(task), left = left_of(task);
    char time[32];
    cli_report_item(report);
    cli_fact(report, "task", "task", cli_number(task->task), "%" PRIu64 " of %" PRIu64, task->task, task->tasks);
    cli_member(report, "tasks", cli_number(task->tasks));
    cli_fact_text(report, "state", "state", state_of(task));
    cli_fact(report, "process", "process", cli_number(task->process), "%" PRIu64 " on %s", task->process, task->host);
    cli_member(report, "host", cli_text(task->host));
    cli_member(report, "counter", cli_number(task->counter));
    cli_fact_text(report, "stage", "stage", stages[work->stage]);
    cli_fact(report, "units", "units", cli_number(work->units), "%" PRIu64 "/%" PRIu64, work->units_done, work->units);
    cli_member(report, "units_done", cli_number(work->units_done));
    cli_fact_number(report, "documents", "documents", work->documents);
    cli_fact_number(report, "dropped", "dropped", work->dropped);
    cli_fact_number(report, "skipped", "skipped", work->skipped);
    cli_fact_number(report, "tokens", "tokens", work->tokens);
    cli_fact(report, "bytes", "bytes", cli_number(work->bytes), "%s", CLI_BYTES(work->bytes));
    cli_member(report, "bytes_all", cli_number(work->bytes_all));
    cli_member(report, "seconds", cli_real((double)task->milliseconds * 1e-3));
    cli_fact(report, "bytes_per_second", "a second", cli_real(rate), "%s", moves ? CLI_BYTES((uint64_t)rate) : "");
    cli_fact(report, "seconds_left", "left", seconds_left(task->state == TASK_WORKING && !task->moving ? -1 : left),
             "%s", moves ? time_text(left, time) : "");
    cli_report_close(report);
}

static void tasks_report(const char *prefix, bool complete, const struct task_status *tasks, size_t count,
                         const struct sum *sum, bool json)
{
    const char *then = next_of(prefix, sum->stage);
    struct cli_report report;
    char time[32];
    if (!count && !json) {
        cli_print("%s: no task has reported yet: %s.work is the work of a command without --task, of tasks that have "
                  "just begun, or of tasks of another version of tokmap\n",
                  prefix, prefix);
        return;
    }
    cli_report_begin(&report, json, NULL);
    cli_member(&report, "output", cli_text(prefix));
    cli_member(&report, "complete", cli_bool(complete));
    cli_numbers(&report, "working|done|run_again|failed|stopped|not_begun", sum->working, sum->done, sum->again,
                sum->failed, sum->stopped, sum->absent);
    cli_member(&report, "stage", cli_text(stages[sum->stage]));
    cli_numbers(&report, "not_in_stage|units|units_done", sum->behind, sum->units, sum->units_done);
    cli_member(&report, "units_all", cli_number_if(sum->units_all, sum->units_all));
    cli_numbers(&report, "documents|dropped|skipped|tokens|bytes|bytes_all", sum->documents, sum->dropped, sum->skipped,
                sum->tokens, sum->bytes, sum->bytes_all);
    cli_member(&report, "bytes_per_second", cli_real(sum->rate));
    cli_member(&report, "seconds_left", seconds_left(sum->left));
    cli_report_list(&report, "tasks",
                    "task|state|stage|>units|>documents|>dropped|>skipped|>tokens|>bytes|>a second|>left|process");
    for (size_t i = 0; i < count; i++)
        task_add(&tasks[i], &report);
    cli_report_close(&report);
    cli_report_end(&report);
    if (json)
        return;
    cli_print("\n%s: %" PRIu64 " working, %" PRIu64 " done, %" PRIu64 " to run again, %" PRIu64 " failed, %" PRIu64
              " stopped without an end, %" PRIu64 " not begun\n",
              prefix, sum->working, sum->done, sum->again, sum->failed, sum->stopped, sum->absent);
    cli_print("%s: %" PRIu64 " of %" PRIu64 " %s%s, ", stages[sum->stage], sum->units_done,
              sum->units_all ? sum->units_all : sum->units, files[sum->stage],
              !sum->units_all && (sum->absent || sum->behind) ? " of the tasks that have begun" : "");
    if (sum->stage == TASK_PACKS || sum->stage == TASK_SORTS)
        cli_print("%s documents, %s dropped, %s skipped, %s tokens, ", CLI_COUNT(sum->documents),
                  CLI_COUNT(sum->dropped), CLI_COUNT(sum->skipped), CLI_COUNT(sum->tokens));
    cli_print("%s of %s, %s a second, time left%s: %s\n", CLI_BYTES(sum->bytes), CLI_BYTES(sum->bytes_all),
              CLI_BYTES((uint64_t)sum->rate), then ? " in this stage" : "", time_text(sum->left, time));
    if (then)
        cli_print("%s when all tasks have done their share of this stage\n", then);
    if (sum->again)
        cli_print("run the tasks again whose state is 'run again', when the others have ended: their share of an "
                  "earlier stage is done, and the rest of their work is not\n");
    if (sum->stopped || sum->failed)
        cli_print("run the tasks again that failed or stopped: what they have finished is kept\n");
}

/* Returns the length of the prefix in what a user gave: the prefix itself, or the name of its folder of unfinished
 * work. */
static size_t prefix_length(const char *given)
{
    static const char ending[] = ".work";
    const size_t own = sizeof ending - 1;
    size_t length = strlen(given);
    while (length > 1 && given[length - 1] == '/')
        length--;
    return length > own && !memcmp(given + length - own, ending, own) ? length - own : strlen(given);
}

/* Returns true if an output can be opened, or is a list. */
static bool is_complete(const char *prefix)
{
    struct tokmap_dataset *dataset = NULL;
    const bool complete = dropped_is_file(prefix) || !tokmap_dataset_open(&dataset, prefix, NULL, NULL);
    tokmap_dataset_close(dataset);
    return complete;
}

/* The complete outputs whose names are a prefix, a dot, and the name of a set (split.h). */
struct sets_found {
    const char *prefix;
    char names[SPLIT_SETS_MOST][SPLIT_NAME_MOST + 1];
    uint32_t count;
};

static int set_take(void *user, const char *name)
{
    struct sets_found *sets = user;
    const char *base = path_name(sets->prefix);
    const size_t bytes = strlen(base);
    struct split split;
    char all[SPLIT_NAME_MOST + 4];
    if (strncmp(name, base, bytes) || name[bytes] != '.' || strlen(name + bytes + 1) > SPLIT_NAME_MOST ||
        sets->count == SPLIT_SETS_MOST)
        return 0;
    (void)snprintf(all, sizeof all, "%s=1", name + bytes + 1);
    char *path = path_beside(sets->prefix, name);
    if (path && !split_parse(all, &split) && is_complete(path))
        (void)snprintf(sets->names[sets->count++], sizeof sets->names[0], "%s", name + bytes + 1);
    free(path);
    return 0;
}

static int names_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void sets_find(struct sets_found *sets, const char *prefix)
{
    char *folder = path_folder(prefix);
    *sets = (struct sets_found){.prefix = prefix};
    if (folder && *path_name(prefix))
        (void)os_folder_list(folder, set_take, sets);
    free(folder);
    qsort(sets->names, sets->count, sizeof sets->names[0], names_compare);
}

/* Reports an output that no task works on. */
static int complete_report(const struct cli_command *command, const char *prefix, bool json)
{
    const bool whole = is_complete(prefix);
    const struct sum none = {.stage = TASK_PACKS};
    struct sets_found sets = {.count = 0};
    if (!whole)
        sets_find(&sets, prefix);
    if (!whole && !sets.count) {
        cli_say(command->program,
                "no tasks work on '%s': it has no folder of unfinished work, and no shard, manifest, or split has this "
                "name",
                prefix);
        return CLI_FAILED;
    }
    if (json)
        tasks_report(prefix, true, NULL, 0, &none, true);
    else if (whole)
        cli_print("%s: the output is complete, and no task works on it\n", prefix);
    for (uint32_t i = 0; i < sets.count && !json; i++)
        cli_print("%s.%s: the set is complete, and no task works on it\n", prefix, sets.names[i]);
    return cli_finish(command->program, CLI_DONE);
}

int task_status_report(const struct cli_command *command, const char *given, bool json)
{
    struct tokmap_error error;
    struct task_status *tasks = NULL;
    size_t count = 0;
    struct sum sum;
    int result = CLI_FAILED;
    const size_t length = prefix_length(given);
    char *prefix = path_join("", 0, given, length, ""), *folder = path_join("", 0, given, length, ".work");
    enum tokmap_status status = TOKMAP_ERROR_MEMORY;
    if (folder && prefix)
        status = task_status_list(folder, true, &tasks, &count, &error);
    if (!folder || !prefix) {
        cli_output_lost();
        result = cli_finish(command->program, CLI_FAILED);
    } else if (status == TOKMAP_ERROR_NOT_FOUND) {
        result = complete_report(command, prefix, json);
    } else if (status) {
        result = command_failed(command, &error);
    } else {
        sum_make(&sum, tasks, count);
        tasks_report(prefix, false, tasks, count, &sum, json);
        result = cli_finish(command->program, CLI_DONE);
    }
    free(tasks);
    free(folder);
    free(prefix);
    return result;
}

/* Returns the stages of work of some kind, in order. */
static const enum task_stage *stages_of(bool drops, bool shuffles, size_t *count)
{
    static const enum task_stage all[] = {TASK_SCANS, TASK_COMPARES, TASK_SORTS, TASK_CUTS, TASK_MERGES};
    static const enum task_stage drop[] = {TASK_SCANS, TASK_COMPARES, TASK_PACKS};
    *count = shuffles && !drops ? 3 : shuffles ? 5 : 3;
    return shuffles && !drops ? all + 2 : shuffles ? all : drop;
}

/* Says what is missing of a stage, and what to do next. */
static void left_print(const struct task_pack *tasks, const struct pack_options *options)
{
    static const char *const what[] = {[TASK_SCANS] = "scans of units are missing, without which no unit can be",
                                       [TASK_COMPARES] =
                                           "portions of the comparison are missing, without which no unit can be",
                                       [TASK_SORTS] = "sorted units are missing, without which no shard can be made",
                                       [TASK_CUTS] = "cuts are missing, without which no shard can be made"};
    const struct schedule_left *left = &tasks->outcome.left;
    const char *rest = left->stage > TASK_PACKS ? "" : options->shuffle ? " sorted" : " packed";
    size_t count = 0, at = 0;
    const enum task_stage *list = stages_of(options->drop != NULL, options->shuffle != NULL, &count);
    cli_print("%" PRIu64 " of %" PRIu64 " %s%s; run this command again when the other tasks have ended (the first one "
              "missing is number %" PRIu64 ", of task %" PRIu64 " of %" PRIu64 ")\n",
              left->missing, left->count, what[left->stage], rest, left->list[0],
              schedule_task_of(left->count, left->list[0], tasks->asked.tasks), tasks->asked.tasks);
    while (at + 1 < count && list[at] != left->stage)
        at++;
    cli_print("stage %zu of %zu, %s; what follows: ", at + 1, count, stages[left->stage]);
    for (size_t i = at + 1; i < count; i++)
        cli_print("%s%s", stages[list[i]], i + 1 < count ? ", " : "");
    cli_print(" (exit status %d)\n", CLI_AGAIN);
}

/* Returns what the items of the stage that is not complete are called. */
static const char *share_name(const struct schedule_left *left)
{
    return left->stage == TASK_SORTS  ? "sorting"
           : left->stage == TASK_CUTS ? "cutting into shards"
                                      : "search for duplicates and excluded texts";
}

void task_end_print(const struct task_pack *tasks, const struct pack_options *options, double seconds)
{
    const struct pack_tasks_outcome *outcome = &tasks->outcome;
    const struct task_arguments *arguments = &tasks->asked;
    const bool is_last = task_stage_is_last(outcome->left.stage);
    if (arguments->task_text && outcome->left.missing && !is_last)
        cli_print("task %" PRIu64 " of %" PRIu64 ": its share of the %s is done in %s\n", arguments->task,
                  arguments->tasks, share_name(&outcome->left), CLI_SECONDS(seconds));
    else if (arguments->task_text)
        cli_print("task %" PRIu64 " of %" PRIu64 "%s%s%s: %" PRIu64 " of all %" PRIu64 " units are done in %s (%s "
                  "documents, %s tokens; %" PRIu64 " units were done before)\n",
                  arguments->task, arguments->tasks, arguments->variables ? " (from " : "",
                  arguments->variables ? arguments->variables : "", arguments->variables ? ")" : "",
                  outcome->end - outcome->first, tasks->units, CLI_SECONDS(seconds), CLI_COUNT(outcome->documents),
                  CLI_COUNT(outcome->tokens), outcome->done_before);
    if (arguments->task_text && tasks->units < arguments->tasks)
        cli_print("there are fewer units (%" PRIu64 ") than tasks (%" PRIu64 "), so some tasks have no work; smaller "
                  "units (--unit-bytes) or, where files are not cut, more files give work to all\n",
                  tasks->units, arguments->tasks);
    if (outcome->left.missing && outcome->left.stage == TASK_MERGES)
        cli_print("%" PRIu64 " of %" PRIu64 " shards, of other tasks, are missing; the task that finishes last names "
                  "the shards of %s\n",
                  outcome->left.missing, outcome->left.count, options->prefix);
    else if (outcome->left.missing && !is_last)
        left_print(tasks, options);
    else if (outcome->finished)
        cli_print("%s is complete: another process has named the shards\n", options->prefix);
    else if (outcome->by_other)
        cli_print("another process is naming the shards of %s\n", options->prefix);
    else
        cli_print("%s of other tasks %s missing; the task that finishes last names the shards of %s\n",
                  CLI_COUNTED(outcome->left.missing, "unit"), outcome->left.missing == 1 ? "is" : "are",
                  options->prefix);
    if (arguments->stays && !outcome->finished && (is_last || !outcome->left.missing))
        cli_print("this is the main node, at whose end AWS Batch ends the others, and none of them works on it: run "
                  "the job again (exit status %d)\n",
                  CLI_AGAIN);
}

void task_end_json(const struct task_pack *tasks, const struct pack_options *options, double seconds)
{
    const struct pack_tasks_outcome *outcome = &tasks->outcome;
    struct cli_report report;
    cli_report_begin(&report, true, NULL);
    cli_member(&report, "output", cli_text(options->prefix));
    cli_numbers(&report, "task|tasks", tasks->asked.task, tasks->asked.tasks);
    cli_member_text_if(&report, "variables", tasks->asked.variables);
    cli_numbers(&report, "units|units_done_before|units_all|units_missing", outcome->end - outcome->first,
                outcome->done_before, tasks->units, outcome->left.stage == TASK_PACKS ? outcome->left.missing : 0);
    cli_member(&report, "stage",
               cli_text(stages[outcome->left.missing ? outcome->left.stage
                               : options->shuffle    ? TASK_MERGES
                                                     : TASK_PACKS]));
    cli_numbers(&report, "stage_missing|documents|tokens", outcome->left.missing, outcome->documents, outcome->tokens);
    cli_member(&report, "complete", cli_bool(outcome->finished));
    cli_member(&report, "seconds", cli_real(seconds));
    cli_report_end(&report);
}
