/* SPDX-License-Identifier: MIT */
#include "pack_tasks.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "dedup/dedup_stages.h"
#include "output_names.h"
#include "pack.h"
#include "pack_also.h"
#include "pack_facts.h"
#include "pack_finish.h"
#include "pack_output.h"
#include "platform/os.h"
#include "skipped_items.h"
#include "text/path.h"
#include "unit_record.h"
#include "work/set_commit.h"
#include "work/task_status.h"
#include "work/work_folder.h"
#include "work/work_units.h"

#define BUSY_WAIT_NS ((uint64_t)50000000) /* between two tries, while another process names the output */
#define BUSY_TRIES 36000                  /* half an hour */
#define STAY_NS ((uint64_t)2000000000)    /* between two looks at the other tasks */
#define LOCK_TRIES 20                     /* a second: another process has the lock of the output for a moment */

struct tasks {
    const struct pack_tasks_options *options;
    struct pack_tasks_outcome *outcome;
    char *folder;
    struct task_claim *claim;
    struct task_work work;       /* work of the stage that is done */
    struct pack_options watched; /* options of the work, with unit_stop() */
    struct dedup_stages dedup;
    struct pack_stages stages;
    /* The unit that is being made. */
    struct {
        uint64_t number;
        const struct stage_id *record;
        struct unit_result *now;
        struct histogram lengths;
        struct skipped_items *skipped; /* the list, if one is wanted */
        struct tokenizer_state *states[PACK_THREADS_MOST];
    } unit;
    bool named;              /* true if the output had a name when this process began, */
    struct os_stat manifest; /* its manifest then */
    struct os_stat journal;  /* journal that was compared */
    bool made;               /* true if this process has made the journal after another one had named the output */
};

/* ---- the journal of all tasks ---- */

/* Returns true for files that are work to continue. Without a journal they cannot be identified. */
static bool is_work(const char *folder, const char *entry, bool journal)
{
    bool is_folder = false;
    return task_status_is_name(entry) || stage_is_ours(folder, entry, journal) || set_note_is_named(folder, entry) ||
           (unit_is_name(entry, &is_folder) && !is_folder);
}

/* Compares options and inputs with those of the work that has begun, or begins it. Without `create`, *absent says that
 * there is none; *found: it had begun. */
static enum tokmap_status work_compare(struct tasks *tasks, bool create, bool *absent, bool *found,
                                       struct tokmap_error *error)
{
    const struct pack_options *pack = tasks->options->pack;
    const struct work_units *units = tasks->options->units;
    const struct pack_tasks_outcome *share = tasks->outcome;
    struct work_fact list[PACK_FACTS_MOST + 2] = {{"kind of work", "units"},
                                                  {"--skipped-list", pack->skipped_taker ? "FILE" : ""}};
    struct pack_facts facts;
    const struct output_names names = {pack->prefix, pack->split, true, pack->also};
    struct work_folder_options work = {.name = pack->prefix,
                                       .facts = list,
                                       .inputs = {.operands = tasks->options->operands,
                                                  .count = tasks->options->operand_count,
                                                  .select = &pack->corpus.select,
                                                  .is_output = output_names_either,
                                                  .output = &names,
                                                  .cuts = units->cuts,
                                                  .cut_count = units->file_count},
                                       .owns = is_work,
                                       .shared = true,
                                       .create = create,
                                       .stop = pack->stop,
                                       .user = pack->user};
    if (share->first < share->end) {
        const struct unit *last = &units->list[share->end - 1];
        work.inputs.compare_first = units->list[share->first].first;
        work.inputs.compare_end = last->first + last->count;
    }
    const bool made = pack_facts_make(&facts, pack, unit_record_layout());
    enum tokmap_status status = made ? TOKMAP_OK : error_set_memory(error, "the tasks", 0);
    memcpy(list + 2, facts.list, facts.count * sizeof *list);
    work.fact_count = facts.count + 2;
    struct work_folder *folder = NULL;
    if (!status)
        status = work_folder_await(&folder, &work, error);
    *absent = !status && !folder;
    *found = !status && folder && work_folder_found(folder);
    work_folder_close(folder);
    pack_facts_free(&facts);
    return status;
}

/* ---- callbacks of a unit ---- */

static bool unit_stop(void *user)
{
    const struct tasks *tasks = user;
    const struct pack_options *pack = tasks->options->pack;
    return (pack->stop && pack->stop(pack->user)) || (tasks->claim && task_claim_lost(tasks->claim));
}

static void unit_skipped(void *user, const struct corpus_issue *issue, const struct tokmap_error *why)
{
    const struct tasks *tasks = user;
    const struct pack_options *pack = tasks->options->pack;
    if (tasks->unit.skipped)
        skipped_items_add(tasks->unit.skipped, issue, why);
    if (pack->skipped)
        pack->skipped(pack->user, issue, why);
}

static void skipped_save(void *user, struct state_sink *sink)
{
    const struct tasks *tasks = user;
    skipped_items_save(tasks->unit.skipped, sink);
}

static enum tokmap_status skipped_load(void *user, uint32_t kind, const uint8_t *bytes, size_t count,
                                       struct tokmap_error *error)
{
    const struct tasks *tasks = user;
    return skipped_items_load(tasks->unit.skipped, kind, bytes, count, error);
}

/* Adds what a unit has become so far. */
static void result_add(struct task_work *work, const struct pack_result *result)
{
    const struct corpus_counts *counts = &result->counts;
    const uint64_t dropped =
        counts->left_out[CORPUS_REASON_DUPLICATE].records + counts->left_out[CORPUS_REASON_NEAR_DUPLICATE].records +
        counts->left_out[CORPUS_REASON_EXCLUDED].records + counts->left_out[CORPUS_REASON_LISTED].records;
    work->documents += counts->documents;
    work->tokens += result->tokens;
    work->dropped += dropped;
    work->skipped += counts->files_skipped + counts->records_skipped - dropped;
}

static void unit_progress(void *user, uint64_t stored_bytes)
{
    struct tasks *tasks = user;
    const struct pack_options *pack = tasks->options->pack;
    struct task_work work = tasks->work;
    result_add(&work, &tasks->unit.now->pack);
    work.bytes += min64(stored_bytes, tasks->options->units->list[tasks->unit.number].bytes);
    task_claim_report(tasks->claim, &work);
    if (pack->progress)
        pack->progress(pack->user, work.bytes);
}

static enum tokmap_status unit_committed(void *user, const struct pack_result *result,
                                         const struct shuffle_sorted *sorted, const struct listed_search *listed,
                                         struct tokmap_error *error)
{
    struct tasks *tasks = user;
    const struct pack_tasks_options *options = tasks->options;
    const struct unit *unit = &options->units->list[tasks->unit.number];
    if (task_claim_lost(tasks->claim))
        return task_claim_lost_error(tasks->claim, error);
    /* Parts of a file are counted like the whole file: line numbers continue from one part to the next. After a fault
     * in a row group the rest of the part is left out, as the rest of a whole file would be. */
    if (unit->end && !unit->groups && result->counts.files_skipped)
        return error_set(error, TOKMAP_ERROR_INPUT, options->units->paths[unit->first], TOKMAP_NO_OFFSET,
                         "a part of this file cannot be read, and others of its parts are packed; run the task again, "
                         "or repair the file, or leave it out, and begin again in a new folder of unfinished work");
    const bool sync = options->pack->sync;
    tasks->unit.now->skipped = (struct skipped_size){.bytes = 0};
    const enum tokmap_status status =
        tasks->unit.skipped ? skipped_items_end(tasks->unit.skipped, sync, &tasks->unit.now->skipped, error)
                            : TOKMAP_OK;
    assert(result == &tasks->unit.now->pack);
    return status ? status
                  : unit_record_write(tasks->unit.record, tasks->unit.now, &tasks->unit.lengths, sorted, listed, sync,
                                      error);
}

/* ---- one unit ---- */

/* Frees what one unit leaves for the next. */
static void states_free(struct tasks *tasks)
{
    for (uint32_t i = 0; i < tasks->options->pack->threads; i++) {
        tokenizer_state_free(tasks->unit.states[i]);
        tasks->unit.states[i] = NULL;
    }
}

static enum tokmap_status unit_pack(struct tasks *tasks, struct tokmap_error *error)
{
    const struct pack_tasks_options *options = tasks->options;
    const struct work_units *units = options->units;
    const struct unit *unit = &units->list[tasks->unit.number];
    const struct drop_source drops =
        options->pack->drop ? dedup_stages_source(&tasks->dedup, tasks->unit.number) : (struct drop_source){.key = 0};
    const struct pack_unit kind = {.lengths = &tasks->unit.lengths,
                                   .drops = options->pack->drop ? &drops : NULL,
                                   .first_input = unit->first,
                                   .states = tasks->unit.states,
                                   .committed = unit_committed,
                                   .user = tasks};
    struct pack_options pack = *options->pack;
    enum tokmap_status status =
        work_units_range(units, tasks->unit.number, unit_stop, tasks, &pack.corpus.range, error);
    if (!status && unit->end && pack.corpus.range.begin == pack.corpus.range.end) { /* in the middle of a long line */
        const struct shuffle_sorted none = {.count = 0};
        memset(tasks->unit.now, 0, sizeof *tasks->unit.now);
        return unit_committed(tasks, &tasks->unit.now->pack, &none, NULL, error);
    }
    char *prefix = unit_path(tasks->folder, tasks->unit.number, "");
    if (!prefix)
        return error_set_memory(error, "the tasks", 0);
    pack.prefix = prefix;
    pack.unit = &kind;
    pack.replace = false;
    pack.start_over = false;
    pack.skip_limit = (struct skip_limit){.text = ""}; /* pack_finish() looks at all units */
    pack.corpus.select = inputs_selection_watching(&tasks->options->pack->corpus.select);
    pack.skipped = unit_skipped;
    pack.progress = unit_progress;
    pack.stop = unit_stop;
    pack.before_commit = NULL;
    pack.also = NULL;
    pack.state_save = tasks->unit.skipped ? skipped_save : NULL;
    pack.state_load = tasks->unit.skipped ? skipped_load : NULL;
    pack.user = tasks;
    if (!status)
        status = pack_run(&pack, (const char *const *)(units->paths + unit->first), unit->count, &tasks->unit.now->pack,
                          error);
    if (status && task_claim_lost(tasks->claim))
        status = task_claim_lost_error(tasks->claim, error);
    else if (status && unit->end && !unit->groups &&
             tasks->unit.now->pack.counts.files_skipped) { /* the next attempt reads the part again. */
        pack_clear_unit(tasks->folder, tasks->unit.number);
        tasks->unit.now->pack.kept = false;
    }
    free(prefix);
    return status;
}

/* ---- other stages ---- */

/* Returns the bytes of a unit, or about those of another item of the stage. */
static uint64_t item_bytes(const struct tasks *tasks, uint64_t item)
{
    const struct pack_options *pack = tasks->options->pack;
    const struct pack_found *found = &tasks->stages.found;
    uint64_t documents = 0;
    if (tasks->work.stage == TASK_MERGES)
        return shard_merge_tokens(&found->cuts) * pack_output_shard(pack).width;
    if (tasks->work.stage != TASK_CUTS)
        return tasks->options->units->list[item].bytes;
    for (uint32_t set = 0; set < SPLIT_SETS_MOST; set++)
        documents += found->units.all.sets[set].documents;
    return documents * sizeof(struct shuffle_key);
}

/* Returns the work that a callback of the schedule is about. */
static struct tasks *tasks_of(void *self)
{
    return ((struct pack_stages *)self)->user;
}

static uint64_t stage_bytes(void *self, uint64_t item)
{
    return item_bytes(tasks_of(self), item);
}

/* Adds what a unit that is done has become. */
static enum tokmap_status stage_made(void *self, uint64_t item, struct tokmap_error *error)
{
    struct tasks *tasks = tasks_of(self);
    if (!task_stage_is_of_units(tasks->work.stage))
        return TOKMAP_OK;
    const struct stage_id id = unit_record_id(tasks->folder, tasks->stages.found.key, item);
    const enum tokmap_status status = unit_record_read(&id, tasks->unit.now, NULL, NULL, error);
    if (status)
        return status;
    result_add(&tasks->work, &tasks->unit.now->pack);
    tasks->outcome->documents = tasks->work.documents;
    tasks->outcome->tokens = tasks->work.tokens;
    return TOKMAP_OK;
}

static void stage_begun(void *self)
{
    struct tasks *tasks = tasks_of(self);
    if (task_stage_is_of_units(tasks->work.stage))
        tasks->outcome->done_before = tasks->work.units_done;
    else
        states_free(tasks);
}

static void stage_progress(void *user, uint64_t done, uint64_t all)
{
    const struct tasks *tasks = user;
    const struct pack_options *pack = tasks->options->pack;
    struct task_work work = tasks->work;
    work.bytes += (uint64_t)((unsigned __int128)item_bytes(tasks, 0) * done / max64(all, 1));
    task_claim_report(tasks->claim, &work);
    if (pack->shuffled && work.stage == TASK_MERGES) {
        const uint64_t width = pack_output_shard(pack).width;
        pack->shuffled(pack->user, min64(work.bytes, work.bytes_all) / width, work.bytes_all / width);
    }
}

/* Packs a unit, or sorts it. */
static enum tokmap_status unit_make(void *user, uint64_t number, const struct stage_id *record,
                                    struct tokmap_error *error)
{
    struct tasks *tasks = user;
    const struct pack_result *now = &tasks->unit.now->pack;
    struct pack_tasks_outcome *outcome = tasks->outcome;
    enum tokmap_status status = TOKMAP_OK;
    tasks->unit.number = number;
    tasks->unit.record = record;
    if (!histogram_new(&tasks->unit.lengths))
        return error_set_memory(error, "the tasks", 0);
    if (tasks->options->pack->skipped_taker)
        status = skipped_items_open(&tasks->unit.skipped, tasks->folder, record->key, number, error);
    if (!status)
        status = unit_pack(tasks, error);
    skipped_items_free(tasks->unit.skipped);
    tasks->unit.skipped = NULL;
    histogram_free(&tasks->unit.lengths);
    outcome->text_now += now->counts.text_bytes - now->text_before;
    outcome->stream_now += now->counts.stream_bytes - now->stream_before;
    return status;
}

/* ---- what is missing ---- */

/* Returns the number of tasks that the processes of this work had; 0 if they do not agree. *at_work: how many work
 * now. */
static uint64_t tasks_known(const struct tasks *tasks, uint64_t *at_work)
{
    struct task_status *list;
    size_t count;
    uint64_t known = 0;
    bool agree = true;
    struct tokmap_error unused;
    *at_work = 0;
    if (task_status_list(tasks->folder, false, &list, &count, &unused))
        return 0;
    for (size_t i = 0; i < count; i++) {
        agree = agree && (!known || known == list[i].tasks);
        known = list[i].tasks;
        *at_work += list[i].moving && (list[i].state == TASK_WORKING || list[i].state == TASK_WAITING);
    }
    free(list);
    return agree ? known : 0;
}

/* Appends to a text that is cut if it is full. */
static void text_add(char *text, size_t capacity, const char *more_text)
{
    const size_t used = strlen(text), more = strlen(more_text);
    if (used + more < capacity)
        memcpy(text + used, more_text, more + 1);
}

/* Names the parts of the work that are missing, and the tasks that make them. any: every task makes all of them. */
static enum tokmap_status parts_missing(const struct tasks *tasks, const char *what, const struct schedule_left *left,
                                        const char *before, bool any, struct tokmap_error *error)
{
    uint64_t at_work, last = UINT64_MAX;
    const uint64_t known = tasks_known(tasks, &at_work);
    char list[SCHEDULE_LISTED * 24 + 8] = "", again[SCHEDULE_LISTED * 24 + 8] = "", one[48], wait[96] = "";
    for (uint64_t i = 0; i < left->missing && i < SCHEDULE_LISTED; i++) {
        (void)snprintf(one, sizeof one, "%s%" PRIu64, i ? ", " : "", left->list[i]);
        text_add(list, sizeof list, one);
        const uint64_t task = known ? schedule_task_of(left->count, left->list[i], known) : 0;
        if (task == last)
            continue;
        (void)snprintf(one, sizeof one, "%s%" PRIu64, last == UINT64_MAX ? "" : ", ", task);
        text_add(again, sizeof again, one);
        last = task;
    }
    if (left->missing > SCHEDULE_LISTED) {
        text_add(list, sizeof list, ", ...");
        text_add(again, sizeof again, ", ...");
    }
    if (at_work)
        (void)snprintf(wait, sizeof wait, "; wait for the tasks that are still at work (now %" PRIu64 "), or", at_work);
    const char *then = at_work ? wait : ";";
    if (any || !known)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, tasks->folder, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " of %" PRIu64 " %s are missing: %s (counted from 0)%s%s run %s", left->missing,
                         left->count, what, list, before, then,
                         any ? "any task again" : "the tasks again that have them, or all as task 0 of 1");
    return error_set(error, TOKMAP_ERROR_NOT_FOUND, tasks->folder, TOKMAP_NO_OFFSET,
                     "%" PRIu64 " of %" PRIu64 " %s are missing: %s (counted from 0)%s%s run again, of %" PRIu64
                     " tasks: %s",
                     left->missing, left->count, what, list, before, then, known, again);
}

/* Says what is missing of a stage. */
static enum tokmap_status stage_missing(const struct tasks *tasks, struct tokmap_error *error)
{
    static const char *const what[] = {[TASK_SCANS] = "scans of units",
                                       [TASK_COMPARES] = "portions of the comparison",
                                       [TASK_PACKS] = "units",
                                       [TASK_SORTS] = "sorted units",
                                       [TASK_CUTS] = "cuts between shards",
                                       [TASK_MERGES] = "shards"};
    const struct schedule_left *left = &tasks->outcome->left;
    const char *before = task_stage_is_last(left->stage) ? ""
                         : tasks->options->pack->shuffle ? ", and no shard is made before"
                                                         : ", and no unit is packed before";
    return parts_missing(tasks, what[left->stage], left, before,
                         left->stage == TASK_COMPARES || left->stage == TASK_CUTS, error);
}

static struct schedule schedule_of(struct tasks *tasks)
{
    const struct pack_tasks_options *options = tasks->options;
    size_t count;
    const struct stage *stages = pack_stages_list(options->pack, &count);
    return (struct schedule){.stages = stages,
                             .count = count,
                             .self = &tasks->stages,
                             .folder = tasks->folder,
                             .share = options->share,
                             .stop = unit_stop,
                             .user = tasks,
                             .claim = tasks->claim,
                             .work = &tasks->work,
                             .bytes = stage_bytes,
                             .made = stage_made,
                             .begun = stage_begun};
}

/* Finds the documents that are left out. */
static enum tokmap_status dropped_find(struct tasks *tasks, struct tokmap_error *error)
{
    const struct pack_tasks_options *options = tasks->options;
    tasks->dedup = (struct dedup_stages){.scanning = pack_scan_options(options->pack),
                                         .units = options->units,
                                         .folder = tasks->folder,
                                         .key = tasks->stages.found.key,
                                         .share = options->share,
                                         .claim = tasks->claim};
    const enum tokmap_status status = dedup_stages_run(&tasks->dedup, error);
    tasks->outcome->left = tasks->dedup.left;
    tasks->stages.found.scans = &tasks->dedup.scans;
    return status;
}

/* Does the share of all stages. */
static enum tokmap_status stages_run(struct tasks *tasks, struct tokmap_error *error)
{
    const struct pack_tasks_options *options = tasks->options;
    const struct schedule schedule = schedule_of(tasks);
    tasks->watched = *options->pack;
    tasks->watched.stop = unit_stop;
    tasks->watched.user = tasks;
    tasks->stages = (struct pack_stages){.pack = &tasks->watched,
                                         .inputs = options->units,
                                         .folder = tasks->folder,
                                         .unit = unit_make,
                                         .progress = stage_progress,
                                         .user = tasks};
    enum tokmap_status status = pack_stages_begin(&tasks->stages, error);
    if (!status && options->pack->drop)
        status = dropped_find(tasks, error);
    if (!status && !tasks->outcome->left.missing)
        status = schedule_run(&schedule, &tasks->outcome->left, error);
    if (status && tasks->claim && task_claim_lost(tasks->claim))
        status = task_claim_lost_error(tasks->claim, error);
    return !status && tasks->outcome->left.missing && options->share.finish ? stage_missing(tasks, error) : status;
}

/* ---- the end ---- */

/* Finds the manifest that is named last, of those of all sets. Returns false if it is not there. */
static bool manifest_find(const struct pack_options *pack, struct os_stat *found)
{
    char ending[SPLIT_NAME_MOST + 2];
    pack_set_ending(pack, pack_output_sets(pack) - 1, ending);
    char *path = path_ended(pack->prefix, ending);
    const bool there = path && !os_lstat(path, found);
    free(path);
    return there;
}

/* Returns true if the output has got its name since this process began: another process has finished it. */
static bool is_named(const struct tasks *tasks)
{
    struct os_stat now;
    return manifest_find(tasks->options->pack, &now) &&
           (!tasks->named || now.inode != tasks->manifest.inode || now.device != tasks->manifest.device);
}

/* Finds the journal of the work. Returns whether it is there. */
static bool journal_find(const struct tasks *tasks, struct os_stat *found)
{
    char *path = path_in(tasks->folder, "journal");
    const bool there = path && !os_lstat(path, found);
    free(path);
    return there;
}

/* Returns whether another process has finished the output: its note says so, or the output has a new name, and the
 * journal is not the one any more which this process has compared itself with. */
static bool is_over(const struct tasks *tasks)
{
    struct os_stat now;
    enum set_note note;
    if (!set_note_find(tasks->options->pack->prefix, &note, NULL) && note == SET_NOTE_NAMED)
        return true;
    return is_named(tasks) && (!journal_find(tasks, &now) || now.inode != tasks->journal.inode ||
                               now.modified_ns != tasks->journal.modified_ns);
}

/* Writes the files of other projects beside the shards, which have their names. again: another process has given them,
 * and was killed. */
static enum tokmap_status also_finish(const struct tasks *tasks, bool again, struct pack_result *result,
                                      struct tokmap_error *error)
{
    const struct pack_tasks_options *options = tasks->options;
    struct pack_tasks_outcome *outcome = tasks->outcome;
    enum tokmap_status status =
        pack_finish_also(options->pack, again ? options->units : NULL, tasks->folder, result, error);
    outcome->finished = !status;
    outcome->by_other = (status == TOKMAP_ERROR_BUSY && !options->share.finish) ||
                        (status == TOKMAP_ERROR_NOT_FOUND && !pack_also_begun(options->pack->prefix));
    if (outcome->by_other)
        outcome->finished = status == TOKMAP_ERROR_NOT_FOUND;
    return outcome->by_other ? TOKMAP_OK : status;
}

/* Ends work whose shards have their names, which another process has given them: completes what it was killed before,
 * or only removes what is left. */
static enum tokmap_status over_finish(struct tasks *tasks, struct pack_result *result, struct tokmap_error *error)
{
    const struct pack_options *pack = tasks->options->pack;
    struct pack_tasks_outcome *outcome = tasks->outcome;
    enum set_note note = SET_NOTE_NONE;
    enum tokmap_status status = set_note_find(pack->prefix, &note, error);
    outcome->by_other = true;
    outcome->left.missing = 0;
    if (status || pack_also_begun(pack->prefix))
        return status ? status : also_finish(tasks, true, result, error);
    if (note == SET_NOTE_NAMED)
        pack_output_settle(pack);
    if (note == SET_NOTE_NAMED || tasks->made || !work_folder_exists(pack->prefix))
        status = pack_clear_work(tasks->folder, pack->sync, error);
    if (!status)
        pack_clear_settle(pack, tasks->folder);
    outcome->finished = !status;
    return status;
}

/* Returns whether a status, or items that are missing, are because another process has finished the output, and has
 * removed what this one was looking for, or is removing it. */
static bool is_by_other(const struct tasks *tasks, enum tokmap_status status)
{
    /* A failure to write or to sync is excluded, because it may have happened after this process has named the output
     * itself. */
    const bool may =
        !status || status == TOKMAP_ERROR_NOT_FOUND || status == TOKMAP_ERROR_EXISTS || status == TOKMAP_ERROR_CORRUPT;
    return may && is_over(tasks);
}

/* Names the shards if all units are finished. ERROR_BUSY: another process has the lock. */
static enum tokmap_status names_give(struct tasks *tasks, struct pack_result *result, struct tokmap_error *error)
{
    const struct pack_tasks_options *options = tasks->options;
    const struct pack_options *pack = options->pack;
    enum set_note note;
    enum tokmap_status status =
        pack_units_sum(pack, options->units, tasks->folder, tasks->stages.found.key, result, error);
    if (!status)
        status = pack_names_check(pack, &note, error);
    if (!status)
        status = pack_finish(pack, options->units, tasks->folder, &tasks->stages.found, result, error);
    if (!status && pack->also)
        return also_finish(tasks, false, result, error);
    tasks->outcome->finished = !status;
    return status && is_by_other(tasks, status) ? over_finish(tasks, result, error) : status;
}

/* Waits for another process that has the lock, probably because it, too, has seen that all units are finished: until it
 * has recorded that the set is complete, or has named it, which sets *recorded; or until it has released the lock. */
static enum tokmap_status other_wait(const struct tasks *tasks, bool *recorded, struct tokmap_error *error)
{
    const struct pack_options *pack = tasks->options->pack;
    for (uint64_t i = 0; i < BUSY_TRIES; i++) {
        enum set_note note;
        *recorded = (!set_note_find(pack->prefix, &note, NULL) && note) || is_over(tasks);
        if (*recorded || (i && !work_is_locked(pack->prefix)))
            return TOKMAP_OK;
        if (pack->stop && pack->stop(pack->user))
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        os_sleep_ns(BUSY_WAIT_NS);
    }
    return work_locked_error(pack->prefix, error);
}

/* Names the shards if all units are finished. Leaves that to another process only when that process has written its
 * note, after which any later process must complete the names. Before that, the lock may belong to other work, or be
 * released without a result. */
static enum tokmap_status all_finish(struct tasks *tasks, struct pack_result *result, struct tokmap_error *error)
{
    struct pack_tasks_outcome *outcome = tasks->outcome;
    enum tokmap_status status = TOKMAP_ERROR_BUSY;
    for (int i = 0; i < LOCK_TRIES && status == TOKMAP_ERROR_BUSY; i++) {
        bool recorded = false;
        status = names_give(tasks, result, error);
        if (status != TOKMAP_ERROR_BUSY || tasks->options->share.finish)
            return status;
        const enum tokmap_status waited = other_wait(tasks, &recorded, error);
        if (waited)
            return waited;
        outcome->by_other = recorded;
        if (recorded)
            return is_over(tasks) ? over_finish(tasks, result, error) : TOKMAP_OK;
    }
    return status;
}

/* Completes the naming of the shards, if a process was killed after it had begun it. A process that is at it now is
 * left alone. */
static enum tokmap_status naming_complete(struct tasks *tasks, struct pack_result *result, struct tokmap_error *error)
{
    const struct pack_options *pack = tasks->options->pack;
    struct pack_tasks_outcome *outcome = tasks->outcome;
    const enum tokmap_status status = set_work_recover(pack->prefix, pack->sync, true, error);
    if (!status)
        return over_finish(tasks, result, error);
    outcome->by_other = status == TOKMAP_ERROR_BUSY && !tasks->options->share.finish;
    return outcome->by_other ? TOKMAP_OK : status;
}

/* Fails if a `pack` without tasks is using the output. If such a `pack` was killed while it renamed its shards,
 * finishes the renaming. Waits for a process that holds the lock for a moment, such as another task that does the
 * same. */
static enum tokmap_status names_take(struct tasks *tasks, struct tokmap_error *error)
{
    const struct pack_options *pack = tasks->options->pack;
    enum tokmap_status status = TOKMAP_OK;
    for (int i = 0; i < LOCK_TRIES && !status; i++) {
        enum set_note note;
        if (i)
            os_sleep_ns(BUSY_WAIT_NS);
        status = pack_names_check(pack, &note, error);
        if (status || work_folder_exists(pack->prefix) || (note != SET_NOTE_NAMING && !work_is_locked(pack->prefix)))
            return status;
        if (note == SET_NOTE_NAMING) {
            status = set_work_recover(pack->prefix, pack->sync, false, error);
            tasks->named = manifest_find(pack, &tasks->manifest); /* by this process */
        }
        status = status == TOKMAP_ERROR_BUSY ? TOKMAP_OK : status;
        if (!status && pack->stop && pack->stop(pack->user))
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
    }
    return status ? status : work_locked_error(pack->prefix, error);
}

static enum tokmap_status work_do(struct tasks *tasks, struct pack_result *result, struct tokmap_error *error)
{
    const struct pack_tasks_options *options = tasks->options;
    bool absent = false, found = false;
    enum set_note note;
    tasks->named = manifest_find(options->pack, &tasks->manifest);
    enum tokmap_status status = set_note_find(options->pack->prefix, &note, error);
    if (!status && note) {
        status = work_compare(tasks, false, &absent, &found, error);
        tasks->outcome->done_before = found ? tasks->outcome->end - tasks->outcome->first : 0;
        if (found)
            return note == SET_NOTE_NAMED ? over_finish(tasks, result, error) : naming_complete(tasks, result, error);
        if (!status && note == SET_NOTE_NAMED)
            pack_clear_settle(options->pack, tasks->folder);
    }
    if (!status)
        status = names_take(tasks, error);
    if (status == TOKMAP_ERROR_EXISTS)
        pack_clear_settle(options->pack, tasks->folder);
    /* A task that runs again after all tasks were done has nothing to do. */
    if (status == TOKMAP_ERROR_EXISTS && options->repeats && pack_output_is_same(options->pack, options->units)) {
        tasks->outcome->finished = tasks->outcome->by_other = true;
        tasks->outcome->done_before = tasks->outcome->end - tasks->outcome->first;
        return TOKMAP_OK;
    }
    if (!status)
        status = work_compare(tasks, !options->share.finish, &absent, &found, error);
    if (!status && found)
        (void)journal_find(tasks, &tasks->journal);
    /* Another process has finished the output, perhaps before this one has made the journal. */
    tasks->made = !status && !absent && !found;
    if (!status && (absent || !options->pack->replace) && is_over(tasks))
        return over_finish(tasks, result, error);
    if (tasks->made)
        (void)journal_find(tasks, &tasks->journal);
    tasks->made = false;
    if (!status && absent)
        pack_clear_settle(options->pack, tasks->folder);
    if (!status && absent)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, tasks->folder, TOKMAP_NO_OFFSET,
                         "there is no unfinished work of this output; run its tasks first");
    if (!status && !options->share.finish)
        status = task_claim_take(&tasks->claim, tasks->folder, options->share.task, options->share.tasks,
                                 options->pack->stop, options->pack->user, error);
    if (!status)
        status = stages_run(tasks, error);
    states_free(tasks);
    const bool early = !status && tasks->outcome->left.missing;
    const bool again = early && !task_stage_is_last(tasks->outcome->left.stage);
    if (tasks->claim) /* before the folder is removed */
        task_claim_end(tasks->claim, status ? TASK_FAILED : again ? TASK_AGAIN : TASK_DONE);
    tasks->claim = NULL;
    if ((status || early) && is_by_other(tasks, status))
        return over_finish(tasks, result, error);
    return status || early ? status : all_finish(tasks, result, error);
}

/* Waits, when the share is done, until the others have finished the output, or none of them works on it. */
static enum tokmap_status others_await(struct tasks *tasks, struct pack_result *result, struct tokmap_error *error)
{
    const struct pack_tasks_options *options = tasks->options;
    const char *prefix = options->pack->prefix;
    struct pack_tasks_outcome *outcome = tasks->outcome;
    const struct schedule schedule = schedule_of(tasks);
    struct task_watch watch = {.count = 0};
    uint64_t last = os_clock_ns();
    enum tokmap_status status = TOKMAP_OK;
    while (!status) {
        const bool works = work_is_locked(prefix) ||
                           task_watch_look(&watch, tasks->folder, options->share.task, TASK_PACKS) != TASK_OTHERS_NONE;
        last = works ? os_clock_ns() : last;
        if (!outcome->finished) /* it sees what they have named before they were looked at */
            status = is_over(tasks) ? over_finish(tasks, result, error) : TOKMAP_OK;
        if (status || outcome->finished || options->share.at_once ||
            (!works && os_clock_ns() - last >= options->share.wait_ns))
            break;
        status = schedule_sleep(&schedule, STAY_NS, error);
    }
    task_watch_free(&watch);
    if (status || outcome->finished)
        return status;
    /* The last task may have been killed before it named the shards. */
    if (outcome->left.missing)
        status = schedule_look(&schedule, &outcome->left, error);
    return status || outcome->left.missing ? status : all_finish(tasks, result, error);
}

enum tokmap_status pack_tasks_run(const struct pack_tasks_options *options, struct pack_result *result,
                                  struct pack_tasks_outcome *outcome, struct tokmap_error *error)
{
    struct tokmap_error unused;
    const struct pack_options *pack = options->pack;
    struct tasks tasks = {.options = options, .outcome = outcome};
    assert(pack->shard_tokens && pack->unit_bytes && !pack->dry_run);
    assert(options->units->count && options->share.tasks && options->share.task < options->share.tasks);
    error = error ? error : &unused;
    memset(result, 0, sizeof *result);
    *outcome = (struct pack_tasks_outcome){.first = 0};
    if (!options->share.finish)
        schedule_share(options->units->count, options->share.task, options->share.tasks, &outcome->first,
                       &outcome->end);
    tasks.folder = path_ended(pack->prefix, ".work");
    tasks.unit.now = calloc(1, sizeof *tasks.unit.now);
    enum tokmap_status status = TOKMAP_OK;
    if (!tasks.folder || !tasks.unit.now)
        status = error_set_memory(error, "the tasks", 0);
    if (!status && pack->start_over)
        status = pack_clear_start(pack->prefix, tasks.folder, error);
    const bool others = status != TOKMAP_OK; /* what is in the folder is not the work of this process */
    if (!status)
        status = work_do(&tasks, result, error);
    const bool rests = outcome->left.missing && !task_stage_is_last(outcome->left.stage); /* the task runs again */
    if (!status && options->stays && !options->share.finish && !rests)
        status = others_await(&tasks, result, error);
    result->kept = status != TOKMAP_OK && !others && work_folder_exists(pack->prefix);
    result->text_before = result->counts.text_bytes - min64(outcome->text_now, result->counts.text_bytes);
    result->stream_before = result->counts.stream_bytes - min64(outcome->stream_now, result->counts.stream_bytes);
    pack_stages_free(&tasks.stages);
    dedup_stages_free(&tasks.dedup);
    free(tasks.folder);
    free(tasks.unit.now);
    return status;
}
