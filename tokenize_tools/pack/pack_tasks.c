/* pack_tasks.c - see pack_tasks.h. */
#include "pack_tasks.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "corpus/corpus_range.h"
#include "pack.h"
#include "pack_also.h"
#include "pack_facts.h"
#include "pack_finish.h"
#include "pack_output.h"
#include "pack_same.h"
#include "platform/os.h"
#include "skipped_items.h"
#include "text/path.h"
#include "unit_record.h"
#include "work/set_commit.h"
#include "work/task_status.h"
#include "work_busy.h"
#include "work_folder.h"

#define BUSY_WAIT_NS ((uint64_t)50000000) /* between two tries, while another process makes the journal */
#define BUSY_TRIES 36000                  /* half an hour: it reads a part of each input */
#define STAY_NS ((uint64_t)2000000000)    /* between two looks at the other tasks */
#define LOCK_TRIES 20                     /* a second: another process has the lock of the output for a moment */

struct tasks {
    const struct pack_tasks_options *options;
    struct pack_tasks_outcome *outcome;
    char *folder;
    struct task_claim *claim;
    struct task_work work;   /* of the finished units */
    struct pack_found found; /* with dropped or shuffled documents: what other stages have found */
    /* The unit that is being made. */
    uint64_t unit;
    uint64_t scanned;              /* stored bytes of the units that this process has scanned */
    uint64_t scan_before;          /* of the open one, those that killed processes have scanned */
    const struct stage_id *sorted; /* the file of the unit, with a shuffle */
    enum pack_stage doing;
    struct task_work stage; /* of other stages than packing and sorting */
    struct pack_result *now;
    struct histogram lengths;
    struct skipped_items *skipped; /* of the unit, where a list of them is wanted */
    uint64_t key;                  /* for it; of unit_record.h */
    bool named;                    /* the output had a name when this process began, */
    struct os_stat manifest;       /* and that was it */
};

static enum tokmap_status no_memory(struct tokmap_error *error)
{
    return error_set_memory(error, "the tasks", 0);
}

/* ---- the journal of all tasks ---- */

/* Files without which a folder has no work: if there is no journal, nobody knows of what they are. */
static bool is_work(const char *folder, const char *entry, bool journal)
{
    bool is_folder = false;
    return task_status_is_name(entry) || stage_is_ours(folder, entry, journal) ||
           (unit_is_name(entry, &is_folder) && !is_folder);
}

/* Compares options and inputs with those of the work that has begun, or begins it. Without `create`, *absent says that
 * there is none; *found: it had begun. */
static enum tokmap_status work_compare(struct tasks *tasks, bool create, bool *absent, bool *found,
                                       struct tokmap_error *error)
{
    const struct pack_options *pack = tasks->options->pack;
    const struct pack_units *units = tasks->options->units;
    const struct pack_tasks_outcome *share = tasks->outcome;
    struct work_fact list[PACK_FACTS_MOST + 2] = {{"kind of work", "units"},
                                                  {"options.other_output", pack->skipped_taker ? "FILE" : ""}};
    struct pack_facts facts;
    struct work_folder_options work = {.name = pack->prefix,
                                       .facts = list,
                                       .operands = tasks->options->operands,
                                       .operand_count = tasks->options->operand_count,
                                       .select = &pack->corpus.select,
                                       .cuts = units->cuts,
                                       .cut_count = units->file_count,
                                       .split = pack->split,
                                       .numbered = true,
                                       .also = pack->also,
                                       .owns = is_work,
                                       .shared = true,
                                       .create = create,
                                       .stop = pack->stop,
                                       .user = pack->user};
    if (share->first < share->end) {
        const struct unit *last = &units->list[share->end - 1];
        work.compare_first = units->list[share->first].first;
        work.compare_end = last->first + last->count;
    }
    const bool made = pack_facts_make(&facts, pack, unit_record_layout());
    enum tokmap_status status = made ? TOKMAP_OK : no_memory(error);
    memcpy(list + 2, facts.list, facts.count * sizeof *list);
    work.fact_count = facts.count + 2;
    struct work_folder *folder = NULL;
    for (uint64_t i = 0; i < BUSY_TRIES && !status; i++) {
        status = work_folder_open(&folder, &work, error);
        if (status != TOKMAP_ERROR_BUSY)
            break;
        os_sleep_ns(BUSY_WAIT_NS);
        if (pack->stop && pack->stop(pack->user))
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        else if (i + 1 < BUSY_TRIES)
            status = TOKMAP_OK;
    }
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
    if (tasks->skipped)
        skipped_items_add(tasks->skipped, issue, why);
    if (pack->skipped)
        pack->skipped(pack->user, issue, why);
}

static int skipped_save(void *user, const struct state_sink *sink)
{
    const struct tasks *tasks = user;
    return skipped_items_save(tasks->skipped, sink);
}

static enum tokmap_status skipped_load(void *user, uint32_t kind, const uint8_t *bytes, size_t count,
                                       struct tokmap_error *error)
{
    const struct tasks *tasks = user;
    return skipped_items_load(tasks->skipped, kind, bytes, count, error);
}

/* Adds what a unit has become so far. */
static void result_add(struct task_work *work, const struct pack_result *result)
{
    const struct corpus_counts *counts = &result->counts;
    const uint64_t dropped = counts->left_out[CORPUS_REASON_DUPLICATE].records +
                             counts->left_out[CORPUS_REASON_NEAR_DUPLICATE].records +
                             counts->left_out[CORPUS_REASON_EXCLUDED].records;
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
    result_add(&work, tasks->now);
    work.bytes += min64(stored_bytes, tasks->options->units->list[tasks->unit].bytes);
    task_claim_report(tasks->claim, &work);
    if (pack->progress)
        pack->progress(pack->user, work.bytes);
}

static enum tokmap_status unit_committed(void *user, const struct pack_result *result, struct tokmap_error *error)
{
    struct tasks *tasks = user;
    const struct pack_tasks_options *options = tasks->options;
    const struct unit *unit = &options->units->list[tasks->unit];
    if (task_claim_lost(tasks->claim))
        return task_claim_lost_error(tasks->claim, error);
    /* The parts of a file are those of a whole one: their lines are counted on from one to the next. Of row groups, the
     * rest of a part is left out where a file that is not cut would lose its rest. */
    if (unit->end && !unit->groups && result->counts.files_skipped)
        return error_set(error, TOKMAP_ERROR_INPUT, options->units->paths[unit->first], TOKMAP_NO_OFFSET,
                         "a part of this file cannot be read, and others of its parts are packed; run the task again, "
                         "or repair the file, or leave it out, and begin again in a new folder of unfinished work");
    const enum tokmap_status status =
        tasks->skipped ? skipped_items_end(tasks->skipped, options->pack->sync, error) : TOKMAP_OK;
    return status ? status
                  : unit_record_write(options->pack, tasks->folder, tasks->unit, result, &tasks->lengths,
                                      options->pack->sync, error);
}

/* ---- one unit ---- */

/* Adds a finished unit. */
static void work_add(struct tasks *tasks, const struct pack_result *result)
{
    tasks->work.units_done++;
    result_add(&tasks->work, result);
    tasks->work.bytes += tasks->options->units->list[tasks->unit].bytes;
    task_claim_report(tasks->claim, &tasks->work);
}

/* Finds the lines or the row groups that a part of a file has. */
static enum tokmap_status range_find(const struct tasks *tasks, struct corpus_range *range, struct tokmap_error *error)
{
    const struct unit *unit = &tasks->options->units->list[tasks->unit];
    const char *path = tasks->options->units->paths[unit->first];
    void *user = (void *)(uintptr_t)tasks;
    if (unit->groups) {
        *range = (struct corpus_range){unit->begin, unit->end, unit->groups};
        return TOKMAP_OK;
    }
    enum tokmap_status status = corpus_range_border(path, unit->begin, unit_stop, user, &range->begin, error);
    if (!status)
        status = corpus_range_border(path, unit->end, unit_stop, user, &range->end, error);
    return status;
}

static enum tokmap_status unit_pack(struct tasks *tasks, struct tokmap_error *error)
{
    const struct pack_tasks_options *options = tasks->options;
    const struct pack_units *units = options->units;
    const struct unit *unit = &units->list[tasks->unit];
    const struct all_scans *scans = &tasks->found.scans;
    const struct drop_source drops = {.folder = tasks->folder,
                                      .key = scans->key,
                                      .unit = tasks->unit,
                                      .units = scans->units,
                                      .portions = scans->portions,
                                      .places = scans->list ? &scans->list[tasks->unit].places : NULL};
    const struct pack_unit kind = {.lengths = &tasks->lengths,
                                   .drops = options->pack->drop ? &drops : NULL,
                                   .sorted = tasks->sorted,
                                   .first_input = unit->first,
                                   .committed = unit_committed,
                                   .user = tasks};
    struct pack_options pack = *options->pack;
    enum tokmap_status status = TOKMAP_OK;
    pack.corpus.range = (struct corpus_range){.end = 0};
    if (unit->end)
        status = range_find(tasks, &pack.corpus.range, error);
    if (!status && unit->end && pack.corpus.range.begin == pack.corpus.range.end) { /* in the middle of a long line */
        const struct shuffle_sorted none = {.count = 0};
        memset(tasks->now, 0, sizeof *tasks->now);
        status = unit_committed(tasks, tasks->now, error);
        return status || !tasks->sorted ? status
                                        : sorted_unit_write(tasks->sorted, &none, tasks->now, pack.sync, error);
    }
    char *prefix = unit_path(tasks->folder, tasks->unit, "");
    if (!prefix)
        return no_memory(error);
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
    pack.state_save = tasks->skipped ? skipped_save : NULL;
    pack.state_load = tasks->skipped ? skipped_load : NULL;
    pack.user = tasks;
    if (!status)
        status = pack_run(&pack, (const char *const *)(units->paths + unit->first), unit->count, tasks->now, error);
    if (status && task_claim_lost(tasks->claim))
        status = task_claim_lost_error(tasks->claim, error);
    else if (status && unit->end && !unit->groups &&
             tasks->now->counts.files_skipped) { /* the next attempt reads the part again */
        pack_unit_clear(tasks->folder, tasks->unit);
        tasks->now->kept = false;
    }
    free(prefix);
    return status;
}

/* ---- other stages ---- */

static void scan_progress(void *user, uint64_t stored_bytes)
{
    const struct tasks *tasks = user;
    const struct pack_options *pack = tasks->options->pack;
    const uint64_t all = tasks->options->units->list[tasks->unit].bytes;
    struct task_work work = tasks->stage;
    work.bytes += min64(stored_bytes, all);
    work.bytes_before += min64(tasks->scan_before, all);
    task_claim_report(tasks->claim, &work);
    if (pack->compared)
        pack->compared(pack->user, tasks->scanned + stored_bytes);
}

/* The bytes of a unit, or about those of another file of a stage. */
static uint64_t stage_bytes(const struct tasks *tasks, uint64_t number)
{
    const struct pack_options *pack = tasks->options->pack;
    const struct pack_found *found = &tasks->found;
    uint64_t documents = 0;
    if (tasks->doing == PACK_STAGE_SCAN || tasks->doing == PACK_STAGE_SORT)
        return tasks->options->units->list[number].bytes;
    if (tasks->doing == PACK_STAGE_COMPARE)
        return all_scans_portion_bytes(&found->scans, pack);
    if (tasks->doing == PACK_STAGE_MERGE)
        return shard_merge_tokens(&found->cuts) * pack_output_shard(pack).width;
    for (uint32_t set = 0; set < SPLIT_SETS_MOST; set++)
        documents += found->units.all.sets[set].documents;
    return documents * sizeof(struct shuffle_key);
}

/* Adds the units of the share that are finished, so that the rate is that of this process. */
static enum tokmap_status units_begin(struct tasks *tasks, uint64_t first, uint64_t end, const bool *there,
                                      struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    tasks->work.stage = TASK_SORTS;
    tasks->work.units = end - first;
    tasks->work.units_all = tasks->options->units->count;
    for (uint64_t i = first; i < end && !status; i++) {
        tasks->work.bytes_all += tasks->options->units->list[i].bytes;
        if (!there[i - first])
            continue;
        tasks->unit = i;
        status = unit_record_read(tasks->options->pack, tasks->folder, i, tasks->now, NULL, error);
        tasks->outcome->done_before += !status;
        if (!status)
            work_add(tasks, tasks->now);
    }
    tasks->work.bytes_before = tasks->work.bytes;
    return status;
}

static enum tokmap_status stage_begins(void *self, enum pack_stage stage, uint64_t first, uint64_t end,
                                       const bool *there, struct tokmap_error *error)
{
    struct tasks *tasks = self;
    tasks->doing = stage;
    if (stage == PACK_STAGE_SORT)
        return units_begin(tasks, first, end, there, error);
    tasks->stage = (struct task_work){.stage = (enum task_stage)stage, .units = end - first};
    tasks->stage.units_all = stage == PACK_STAGE_SCAN ? tasks->options->units->count : 0;
    for (uint64_t i = first; i < end; i++) {
        const uint64_t bytes = stage_bytes(tasks, i);
        tasks->stage.bytes_all += bytes;
        tasks->stage.units_done += there[i - first];
        tasks->stage.bytes += there[i - first] ? bytes : 0;
    }
    tasks->stage.bytes_before = tasks->stage.bytes;
    task_claim_report(tasks->claim, &tasks->stage);
    return TOKMAP_OK;
}

static void stage_made(void *self, uint64_t number)
{
    struct tasks *tasks = self;
    if (tasks->doing == PACK_STAGE_SORT) /* work_add() has counted it */
        return;
    tasks->stage.units_done++;
    tasks->stage.bytes += stage_bytes(tasks, number);
    task_claim_report(tasks->claim, &tasks->stage);
}

static void stage_progress(void *self, uint64_t done, uint64_t all)
{
    const struct tasks *tasks = self;
    const struct pack_options *pack = tasks->options->pack;
    struct task_work work = tasks->stage;
    work.bytes += (uint64_t)((unsigned __int128)stage_bytes(tasks, 0) * done / max64(all, 1));
    task_claim_report(tasks->claim, &work);
    if (pack->shuffled && tasks->doing == PACK_STAGE_MERGE) {
        const uint64_t width = pack_output_shard(pack).width;
        pack->shuffled(pack->user, min64(work.bytes, work.bytes_all) / width, work.bytes_all / width);
    }
}

static enum tokmap_status unit_scan(void *self, uint64_t number, const struct stage_id *id, struct tokmap_error *error)
{
    struct tasks *tasks = self;
    const struct pack_units *units = tasks->options->units;
    const struct unit *unit = &units->list[number];
    struct pack_options pack = *tasks->options->pack;
    enum tokmap_status status = TOKMAP_OK;
    tasks->unit = number;
    pack.corpus.range = (struct corpus_range){.end = 0};
    if (unit->end)
        status = range_find(tasks, &pack.corpus.range, error);
    const bool none = unit->end && pack.corpus.range.begin == pack.corpus.range.end;
    const struct scan_inputs inputs = {.operands = (const char *const *)(units->paths + unit->first),
                                       .count = none ? 0 : unit->count};
    pack.corpus.select = inputs_selection_watching(&tasks->options->pack->corpus.select);
    pack.compared = scan_progress;
    pack.stop = unit_stop;
    pack.user = tasks;
    if (!status)
        status = unit_scan_run(&pack, &inputs, id, &tasks->scan_before, error);
    tasks->scanned += unit->bytes;
    tasks->stage.bytes_before += min64(tasks->scan_before, unit->bytes);
    tasks->scan_before = 0;
    return status;
}

static void waits_report(void *self, bool waits)
{
    const struct tasks *tasks = self;
    task_claim_wait(tasks->claim, waits);
}

/* Makes a unit. */
static enum tokmap_status unit_make(struct tasks *tasks, struct tokmap_error *error)
{
    struct pack_tasks_outcome *outcome = tasks->outcome;
    enum tokmap_status status = TOKMAP_OK;
    if (!histogram_new(&tasks->lengths))
        return no_memory(error);
    if (tasks->options->pack->skipped_taker)
        status = skipped_items_open(&tasks->skipped, tasks->folder, tasks->key, tasks->unit, error);
    if (!status)
        status = unit_pack(tasks, error);
    skipped_items_free(tasks->skipped);
    tasks->skipped = NULL;
    histogram_free(&tasks->lengths);
    outcome->text_now += tasks->now->counts.text_bytes - tasks->now->text_before;
    outcome->stream_now += tasks->now->counts.stream_bytes - tasks->now->stream_before;
    if (!status)
        work_add(tasks, tasks->now);
    return status;
}

static enum tokmap_status unit_sort(void *self, uint64_t number, const struct stage_id *id, struct tokmap_error *error)
{
    struct tasks *tasks = self;
    tasks->unit = number;
    tasks->sorted = id;
    return unit_make(tasks, error);
}

/* ---- what is missing ---- */

/* The number of tasks that the processes of this work had; 0 if they do not agree. *at_work: how many work now. */
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
static void text_add(char *text, size_t capacity, const char *piece)
{
    const size_t used = strlen(text), more = strlen(piece);
    if (used + more < capacity)
        memcpy(text + used, piece, more + 1);
}

/* Names the parts of the work that are missing, and the tasks that make them. any: every task makes all of them. */
static enum tokmap_status parts_missing(const struct tasks *tasks, const char *what, const struct pack_stage_left *left,
                                        const char *before, bool any, struct tokmap_error *error)
{
    uint64_t at_work, last = UINT64_MAX;
    const uint64_t known = tasks_known(tasks, &at_work);
    char list[PACK_LEFT_LISTED * 24 + 8] = "", again[PACK_LEFT_LISTED * 24 + 8] = "", piece[48], wait[96] = "";
    for (uint64_t i = 0; i < left->missing && i < PACK_LEFT_LISTED; i++) {
        (void)snprintf(piece, sizeof piece, "%s%" PRIu64, i ? ", " : "", left->list[i]);
        text_add(list, sizeof list, piece);
        const uint64_t task = known ? pack_units_task_of(left->count, left->list[i], known) : 0;
        if (task == last)
            continue;
        (void)snprintf(piece, sizeof piece, "%s%" PRIu64, last == UINT64_MAX ? "" : ", ", task);
        text_add(again, sizeof again, piece);
        last = task;
    }
    if (left->missing > PACK_LEFT_LISTED) {
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
    static const char *const what[] = {[PACK_STAGE_SCAN] = "scans of units",
                                       [PACK_STAGE_COMPARE] = "portions of the comparison",
                                       [PACK_STAGE_SORT] = "sorted units",
                                       [PACK_STAGE_CUT] = "cuts between shards",
                                       [PACK_STAGE_MERGE] = "shards"};
    const struct pack_stage_left *left = &tasks->outcome->left;
    const char *before = left->stage == PACK_STAGE_MERGE ? ""
                         : tasks->options->pack->shuffle ? ", and no shard is made before"
                                                         : ", and no unit is packed before";
    return parts_missing(tasks, what[left->stage], left, before,
                         left->stage == PACK_STAGE_COMPARE || left->stage == PACK_STAGE_CUT, error);
}

/* Does all stages but packing. */
static enum tokmap_status stages_run(struct tasks *tasks, struct tokmap_error *error)
{
    const struct pack_tasks_options *options = tasks->options;
    struct pack_options pack = *options->pack;
    const struct pack_stages_options stages = {.pack = &pack,
                                               .inputs = options->units,
                                               .folder = tasks->folder,
                                               .task = options->task,
                                               .tasks = options->tasks,
                                               .finish = options->finish,
                                               .wait_ns = options->wait_ns,
                                               .at_once = options->at_once,
                                               .scan = unit_scan,
                                               .sort = unit_sort,
                                               .begins = stage_begins,
                                               .made = stage_made,
                                               .progress = stage_progress,
                                               .waits = waits_report,
                                               .self = tasks};
    struct pack_stage_left *left = &tasks->outcome->left;
    if (!pack.drop && !pack.shuffle)
        return TOKMAP_OK;
    pack.stop = unit_stop;
    pack.user = tasks;
    enum tokmap_status status = pack_stages_run(&stages, &tasks->found, left, error);
    tasks->outcome->documents = tasks->work.documents;
    tasks->outcome->tokens = tasks->work.tokens;
    if (status && tasks->claim && task_claim_lost(tasks->claim))
        status = task_claim_lost_error(tasks->claim, error);
    return !status && left->missing && options->finish ? stage_missing(tasks, error) : status;
}

/* Makes the units of the share that are not finished. */
static enum tokmap_status share_pack(struct tasks *tasks, struct tokmap_error *error)
{
    struct pack_tasks_outcome *outcome = tasks->outcome;
    const struct pack_units *units = tasks->options->units;
    enum tokmap_status status = TOKMAP_OK;
    tasks->work.stage = TASK_PACKS;
    tasks->work.units = outcome->end - outcome->first;
    tasks->work.units_all = units->count;
    for (uint64_t i = outcome->first; i < outcome->end; i++)
        tasks->work.bytes_all += units->list[i].bytes;
    task_claim_report(tasks->claim, &tasks->work); /* the share may be empty */
    /* First those that are finished, so that the rate is that of this process. */
    bool *done = calloc((size_t)(outcome->end - outcome->first) + 1, sizeof *done);
    if (!done)
        return no_memory(error);
    for (tasks->unit = outcome->first; tasks->unit < outcome->end && !status; tasks->unit++) {
        status = unit_record_read(tasks->options->pack, tasks->folder, tasks->unit, tasks->now, NULL, error);
        done[tasks->unit - outcome->first] = !status;
        outcome->done_before += !status;
        if (!status)
            work_add(tasks, tasks->now);
        if (status == TOKMAP_ERROR_NOT_FOUND)
            status = TOKMAP_OK;
    }
    tasks->work.bytes_before = tasks->work.bytes;
    for (tasks->unit = outcome->first; tasks->unit < outcome->end && !status; tasks->unit++)
        if (!done[tasks->unit - outcome->first])
            status = unit_make(tasks, error);
    outcome->documents = tasks->work.documents;
    outcome->tokens = tasks->work.tokens;
    free(done);
    return status;
}

/* ---- the end ---- */

/* The manifest that is named last, of those of all sets. Returns whether it is there. */
static bool manifest_find(const struct pack_options *pack, struct os_stat *found)
{
    char ending[SPLIT_NAME_MOST + 2];
    pack_set_ending(pack, pack_output_sets(pack) - 1, ending);
    char *path = path_join("", 0, pack->prefix, strlen(pack->prefix), ending);
    const bool there = path && !os_lstat(path, found);
    free(path);
    return there;
}

/* Whether the output has got its name since this process began: another process has finished it. */
static bool is_named(const struct tasks *tasks)
{
    struct os_stat now;
    return manifest_find(tasks->options->pack, &now) &&
           (!tasks->named || now.inode != tasks->manifest.inode || now.device != tasks->manifest.device);
}

/* Whether a status, or files that are missing, are because another process has finished the output, and has removed
 * what this one was looking for, or is removing it. Files that this process alone has made may then be left. */
static bool by_other(struct tasks *tasks, enum tokmap_status status)
{
    struct pack_tasks_outcome *outcome = tasks->outcome;
    const char *prefix = tasks->options->pack->prefix;
    /* Not a failure to write or to sync, which may be of this process after it has named the output itself. */
    const bool may =
        !status || status == TOKMAP_ERROR_NOT_FOUND || status == TOKMAP_ERROR_EXISTS || status == TOKMAP_ERROR_CORRUPT;
    if (!may || !is_named(tasks))
        return false;
    outcome->by_other = true;
    outcome->finished = !pack_also_begun(prefix); /* or it is writing the files of other projects */
    outcome->missing = outcome->left.missing = 0;
    if (outcome->finished && !work_folder_exists(prefix))
        (void)pack_work_clear(tasks->folder, false, NULL);
    return true;
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
    outcome->by_other = (status == TOKMAP_ERROR_BUSY && !options->finish) ||
                        (status == TOKMAP_ERROR_NOT_FOUND && !pack_also_begun(options->pack->prefix));
    if (outcome->by_other)
        outcome->finished = status == TOKMAP_ERROR_NOT_FOUND;
    return outcome->by_other ? TOKMAP_OK : status;
}

/* Names the shards if all units are finished. ERROR_BUSY: another process has the lock. */
static enum tokmap_status names_give(struct tasks *tasks, struct pack_result *result, struct tokmap_error *error)
{
    const struct pack_tasks_options *options = tasks->options;
    struct pack_tasks_outcome *outcome = tasks->outcome;
    const struct pack_options *pack = options->pack;
    struct pack_stage_left left = {.count = options->units->count};
    const uint64_t *missing = left.list;
    bool incomplete = false;
    enum tokmap_status status = pack_units_sum(pack, options->units, tasks->folder, result, left.list, PACK_LEFT_LISTED,
                                               &outcome->missing, error);
    if (!status && outcome->missing && by_other(tasks, status))
        return TOKMAP_OK;
    left.missing = outcome->missing;
    if (!status && outcome->missing && pack->shuffle)
        return error_set(error, TOKMAP_ERROR_CORRUPT, tasks->folder, TOKMAP_NO_OFFSET,
                         "the record of unit %" PRIu64 ", unit-%06" PRIu64 ".done, is missing; remove sorted-%06" PRIu64
                         " and cuts-000000 in this folder, and run all tasks again",
                         missing[0], missing[0], missing[0]);
    if (!status && outcome->missing)
        return options->finish ? parts_missing(tasks, "units", &left, "", false, error) : TOKMAP_OK;
    if (!status)
        status = pack_names_check(pack, &incomplete, error);
    if (!status)
        status = pack_finish(pack, options->units, tasks->folder, &tasks->found, result, error);
    /* If a process was killed that has given the shards their names, there is nothing to name. */
    const bool named = status == TOKMAP_ERROR_EXISTS || status == TOKMAP_ERROR_NOT_FOUND;
    if (pack->also && (!status || (named && pack_also_pending(pack, tasks->folder))))
        return also_finish(tasks, status != TOKMAP_OK, result, error);
    outcome->finished = !status;
    const bool over = (status == TOKMAP_ERROR_EXISTS && incomplete) || /* a process was killed after it named all */
                      (status == TOKMAP_ERROR_NOT_FOUND && pack->replace &&
                       pack_is_finished(pack, options->units, tasks->folder, &tasks->found, result));
    if (over) {
        outcome->finished = outcome->by_other = true;
        pack_output_settle(pack);
        return pack_work_clear(tasks->folder, pack->sync, error);
    }
    return status && by_other(tasks, status) ? TOKMAP_OK : status;
}

/* Another process has the lock, probably since it has seen, too, that all units are finished. Waits until it has
 * recorded that the set is complete, or has named it: *recorded; or has given the lock back. */
static enum tokmap_status other_wait(const struct tasks *tasks, bool *recorded, struct tokmap_error *error)
{
    const struct pack_options *pack = tasks->options->pack;
    for (uint64_t i = 0; i < BUSY_TRIES; i++) {
        bool incomplete = false;
        *recorded = is_named(tasks) || (!pack_names_check(pack, &incomplete, NULL) && incomplete);
        if (*recorded || (i && !work_is_locked(pack->prefix)))
            return TOKMAP_OK;
        if (pack->stop && pack->stop(pack->user))
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        os_sleep_ns(BUSY_WAIT_NS);
    }
    return work_locked_error(pack->prefix, error);
}

/* Names the shards if all units are finished, or leaves that to a process that is doing it, but only once whoever
 * comes after that one must complete it: until then the lock may be that of other work, or go without a result. */
static enum tokmap_status all_finish(struct tasks *tasks, struct pack_result *result, struct tokmap_error *error)
{
    struct pack_tasks_outcome *outcome = tasks->outcome;
    const char *prefix = tasks->options->pack->prefix;
    enum tokmap_status status = TOKMAP_ERROR_BUSY;
    for (int i = 0; i < LOCK_TRIES && status == TOKMAP_ERROR_BUSY; i++) {
        bool recorded = false;
        status = names_give(tasks, result, error);
        if (status != TOKMAP_ERROR_BUSY || tasks->options->finish)
            return status;
        const enum tokmap_status waited = other_wait(tasks, &recorded, error);
        if (waited)
            return waited;
        outcome->by_other = recorded;
        outcome->finished = recorded && is_named(tasks) && !pack_also_begun(prefix);
        if (recorded)
            return TOKMAP_OK;
    }
    return status;
}

/* A process was killed while it gave the shards their names, or does it now: completes that, or leaves it to it. */
static enum tokmap_status naming_complete(struct tasks *tasks, struct pack_result *result, struct tokmap_error *error)
{
    const struct pack_tasks_options *options = tasks->options;
    const struct pack_options *pack = options->pack;
    struct pack_tasks_outcome *outcome = tasks->outcome;
    enum tokmap_status status = set_work_recover(pack->prefix, pack->sync, true, error);
    outcome->finished = !status;
    outcome->by_other = !status || (status == TOKMAP_ERROR_BUSY && !options->finish);
    outcome->done_before = outcome->by_other ? outcome->end - outcome->first : 0;
    if (!status)
        pack_output_settle(pack);
    if (!status && pack_also_pending(pack, tasks->folder))
        return also_finish(tasks, true, result, error);
    if (!status)
        status = pack_work_clear(tasks->folder, pack->sync, error);
    return status == TOKMAP_ERROR_BUSY && outcome->by_other ? TOKMAP_OK : status;
}

/* Checks the names, before there is work of units: no process that packs in one piece may be at work on the output, and
 * what such a one has left that was killed while it named its shards is completed. What holds the lock for a moment is
 * waited for, such as another task that does the same. */
static enum tokmap_status names_take(struct tasks *tasks, bool *incomplete, struct tokmap_error *error)
{
    const struct pack_options *pack = tasks->options->pack;
    enum tokmap_status status = TOKMAP_OK;
    for (int i = 0; i < LOCK_TRIES && !status; i++) {
        if (i)
            os_sleep_ns(BUSY_WAIT_NS);
        status = pack_names_check(pack, incomplete, error);
        if (status || work_folder_exists(pack->prefix) || (!*incomplete && !work_is_locked(pack->prefix)))
            return status;
        if (*incomplete) {
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
    bool absent = false, found = false, incomplete = false;
    tasks->named = manifest_find(options->pack, &tasks->manifest);
    enum tokmap_status status = TOKMAP_OK;
    if (pack_also_pending(options->pack, tasks->folder)) {
        status = work_compare(tasks, false, &absent, &found, error);
        if (status || !absent)
            return status ? status : also_finish(tasks, true, result, error);
    }
    status = names_take(tasks, &incomplete, error);
    if (status == TOKMAP_ERROR_EXISTS)
        pack_work_settle(options->pack, tasks->folder);
    /* A task that is run again after all were done has nothing to do. */
    if (status == TOKMAP_ERROR_EXISTS && options->repeats && pack_output_is_same(options->pack, options->units)) {
        tasks->outcome->finished = tasks->outcome->by_other = true;
        tasks->outcome->done_before = tasks->outcome->end - tasks->outcome->first;
        return TOKMAP_OK;
    }
    if (!status)
        status = work_compare(tasks, !options->finish, &absent, &found, error);
    if (!status && found && incomplete)
        return naming_complete(tasks, result, error);
    if (!status && (absent || !options->pack->replace) && by_other(tasks, status)) {
        if (!absent && tasks->outcome->finished) /* a journal that this process has made, or the rest of the work */
            status = pack_work_clear(tasks->folder, options->pack->sync, error);
        return status;
    }
    if (!status && absent)
        pack_work_settle(options->pack, tasks->folder);
    if (!status && absent)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, tasks->folder, TOKMAP_NO_OFFSET,
                         "there is no unfinished work of this output; run its tasks first");
    if (!status && !options->finish)
        status = task_claim_take(&tasks->claim, tasks->folder, options->task, options->tasks, options->pack->stop,
                                 options->pack->user, error);
    if (!status)
        status = stages_run(tasks, error);
    const bool early = !status && tasks->outcome->left.missing;
    if (!status && !options->finish && !early && !options->pack->shuffle)
        status = share_pack(tasks, error);
    /* Of the last stage, the others' part is not waited for. */
    const bool again = early && tasks->outcome->left.stage != PACK_STAGE_MERGE;
    if (tasks->claim) /* before the folder is removed */
        task_claim_end(tasks->claim, status ? TASK_FAILED : again ? TASK_AGAIN : TASK_DONE);
    tasks->claim = NULL;
    if ((status || early) && by_other(tasks, status))
        return TOKMAP_OK;
    return status || early ? status : all_finish(tasks, result, error);
}

static enum tokmap_status sleep_a_while(const struct tasks *tasks, uint64_t ns, struct tokmap_error *error)
{
    const struct pack_options *pack = tasks->options->pack;
    for (uint64_t slept = 0; slept < ns; slept += BUSY_WAIT_NS) {
        if (pack->stop && pack->stop(pack->user))
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        os_sleep_ns(BUSY_WAIT_NS);
    }
    return TOKMAP_OK;
}

/* The share is done. Stays until the others have finished the output, or none of them works on it. */
static enum tokmap_status others_await(struct tasks *tasks, struct pack_result *result, struct tokmap_error *error)
{
    const struct pack_tasks_options *options = tasks->options;
    const char *prefix = options->pack->prefix;
    struct pack_tasks_outcome *outcome = tasks->outcome;
    struct task_watch watch = {.count = 0};
    uint64_t last = os_clock_ns();
    enum tokmap_status status = TOKMAP_OK;
    while (!status) {
        const bool works = work_is_locked(prefix) ||
                           task_watch_look(&watch, tasks->folder, options->task, TASK_PACKS) != TASK_OTHERS_NONE;
        last = works ? os_clock_ns() : last;
        if (!outcome->finished) /* it sees what they have named before they were looked at */
            (void)by_other(tasks, TOKMAP_OK);
        if (outcome->finished || options->at_once || (!works && os_clock_ns() - last >= options->wait_ns))
            break;
        status = sleep_a_while(tasks, STAY_NS, error);
    }
    task_watch_free(&watch);
    /* The last of them may have been killed before it named the shards. */
    return status || outcome->finished || outcome->left.missing ? status : all_finish(tasks, result, error);
}

enum tokmap_status pack_tasks_run(const struct pack_tasks_options *options, struct pack_result *result,
                                  struct pack_tasks_outcome *outcome, struct tokmap_error *error)
{
    struct tokmap_error unused;
    const struct pack_options *pack = options->pack;
    struct tasks tasks = {.options = options, .outcome = outcome};
    assert(pack->shard_tokens && pack->unit_bytes && !pack->dry_run);
    assert(options->units->count && options->tasks && options->task < options->tasks);
    error = error ? error : &unused;
    memset(result, 0, sizeof *result);
    *outcome = (struct pack_tasks_outcome){.first = 0};
    if (!options->finish)
        pack_units_share(options->units->count, options->task, options->tasks, &outcome->first, &outcome->end);
    tasks.folder = path_join("", 0, pack->prefix, strlen(pack->prefix), ".work");
    tasks.now = calloc(1, sizeof *tasks.now);
    enum tokmap_status status = TOKMAP_OK;
    if (!tasks.folder || !tasks.now || (pack->skipped_taker && !unit_record_key(pack, &tasks.key)))
        status = no_memory(error);
    if (!status && pack->start_over)
        status = work_start_over(pack->prefix, tasks.folder, error);
    const bool others = status != TOKMAP_OK; /* what is in the folder is not the work of this process */
    if (!status)
        status = work_do(&tasks, result, error);
    const bool rests = outcome->left.missing && outcome->left.stage != PACK_STAGE_MERGE; /* the task runs again */
    if (!status && options->stays && !options->finish && !rests)
        status = others_await(&tasks, result, error);
    result->kept = status != TOKMAP_OK && !others && work_folder_exists(pack->prefix);
    result->text_before = result->counts.text_bytes - min64(outcome->text_now, result->counts.text_bytes);
    result->stream_before = result->counts.stream_bytes - min64(outcome->stream_now, result->counts.stream_bytes);
    pack_found_free(&tasks.found);
    free(tasks.folder);
    free(tasks.now);
    return status;
}
