/* SPDX-License-Identifier: MIT */
#include "pack_journal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/hash.h"
#include "corpus/corpus_range.h"
#include "format/index_reader.h"
#include "format/shard_file.h"
#include "output_names.h"
#include "pack_facts.h"
#include "pack_output.h"
#include "platform/os.h"
#include "work/set_commit.h"
#include "work/stage_file.h"
#include "work/task_status.h"
#include "work/work_folder.h"
#include "work/work_units.h"

/* CHECKPOINT_SHORT: the only checkpoint of work that took less than one interval. Other commands may replace such
 * work. */
enum { INCREMENT = WORK_TYPE_FIRST, LENGTHS, CHECKPOINT, COMPLETE, READY, CHECKPOINT_SHORT };

#define USER_SET UINT32_MAX       /* the set of increments of the caller */
#define DROP_SET (UINT32_MAX - 1) /* of those of the drop filter */
#define SHUFFLE_SET (UINT32_MAX - 2)
#define LISTED_SET (UINT32_MAX - 3)

/* Head of an increment. */
struct increment_head {
    uint32_t set, kind;
    uint64_t shard; /* of the set */
};

/* State: what is decided once (the options, whether anything is saved), what was found, and the checkpoint in the
 * making. */
struct pack_journal {
    const struct pack_options *options;
    const char *const *operands;
    size_t operand_count;
    struct pack_facts facts;
    struct work_folder *folder; /* NULL before the first checkpoint */
    /* True if nothing is saved, because of the options, or because an input cannot be read twice. */
    bool off;
    bool names; /* true if the work is not that of a unit, whose files get no names here */
    bool found, complete;
    bool ended;                /* true if all records are there, up to COMPLETE */
    uint64_t index_id;         /* of the only shard, once all of it is on storage; 0 before */
    bool saved;                /* true if this process has made a checkpoint */
    bool staged;               /* true if there are files of stages that are worth continuing */
    struct corpus_place place; /* last place that could be saved */
    bool moved;                /* true if this process has committed a batch since the last checkpoint */

    /* Checkpoints. */
    struct {
        uint64_t begun_ns, next_ns;
        uint64_t end;                /* end of the last checkpoint in the journal */
        struct pack_checkpoint last; /* last checkpoint that was read or made */
    } checkpoint;

    /* The checkpoint in the making: the source of the increments, and the reason why one could not be written. */
    struct {
        uint32_t set;
        uint64_t shard;
        struct tokmap_error failure;
        enum tokmap_status failed;
    } increment;
};

/* Returns a number that changes if the bytes of a record mean something else. */
static uint64_t layout(void)
{
    const uint64_t sizes[] = {12,
                              sizeof(struct pack_checkpoint),
                              sizeof(struct corpus_counts),
                              sizeof(struct pack_result),
                              sizeof(struct shard_set_state),
                              sizeof(struct drop_state),
                              sizeof(struct shuffle_state),
                              sizeof(struct corpus_place)};
    return hash64(sizes, sizeof sizes);
}

/* ---- open ---- */

bool pack_journal_is_needed(const struct pack_options *options, bool stages)
{
    return options->checkpoint_ns || options->start_over || stages || work_folder_exists(options->prefix);
}

bool pack_journal_owns(const char *folder, const char *entry, bool journal)
{
    return (journal && shuffle_is_name(entry)) || stage_is_ours(folder, entry, journal) ||
           set_note_is_named(folder, entry);
}

bool pack_journal_owns_unit(const char *folder, const char *entry, bool journal)
{
    (void)folder;
    (void)journal;
    return shuffle_is_name(entry);
}

/* Returns true if a record, or else a file, is work that a process could continue, this one or one of several tasks. */
static bool is_work(uint32_t type, const char *entry)
{
    bool is_folder;
    return entry ? stage_is_name(entry) || unit_is_name(entry, &is_folder) || task_status_is_name(entry)
                 : type == CHECKPOINT;
}

static enum tokmap_status folder_open(struct pack_journal *journal, bool create, struct tokmap_error *error)
{
    const struct pack_options *options = journal->options;
    const struct output_names names = {options->prefix, options->split, options->shard_tokens != 0, options->also};
    const struct work_folder_options work = {.name = options->prefix,
                                             .facts = journal->facts.list,
                                             .fact_count = journal->facts.count,
                                             .inputs = {.operands = journal->operands,
                                                        .count = journal->operand_count,
                                                        .select = &options->corpus.select,
                                                        .feed = options->corpus.feed,
                                                        .is_output = output_names_either,
                                                        .output = &names},
                                             .owns = journal->names ? pack_journal_owns : NULL,
                                             .is_work = is_work,
                                             .start_over = options->start_over,
                                             .create = create,
                                             .stop = options->stop,
                                             .user = options->user};
    return work_folder_open(&journal->folder, &work, error);
}

/* Finds the last checkpoint. */
static enum tokmap_status checkpoint_find(struct pack_journal *journal, struct tokmap_error *error)
{
    struct work_record record;
    enum tokmap_status status;
    while (!(status = work_folder_next(journal->folder, &record, error))) {
        const bool checkpoint = record.type == CHECKPOINT || record.type == CHECKPOINT_SHORT;
        if (record.type == READY && record.bytes == sizeof journal->index_id && journal->complete)
            memcpy(&journal->index_id, record.payload, sizeof journal->index_id);
        else if (record.type == READY || (checkpoint && record.bytes != sizeof journal->checkpoint.last))
            return work_folder_damaged(journal->folder, error);
        if (!checkpoint && record.type != COMPLETE)
            continue;
        journal->index_id = 0;
        if (checkpoint) {
            memcpy(&journal->checkpoint.last, record.payload, sizeof journal->checkpoint.last);
            journal->found = true;
        }
        journal->complete = record.type == COMPLETE && journal->found;
        journal->checkpoint.end = record.end;
    }
    return status == TOKMAP_END ? TOKMAP_OK : status;
}

static int stage_look(void *user, const char *entry)
{
    struct pack_journal *journal = user;
    journal->staged = journal->staged || stage_is_name(entry);
    return 0;
}

/* Finds files of stages, which can be continued without a checkpoint. The facts alone are not work. */
static enum tokmap_status stages_find(struct pack_journal *journal, struct tokmap_error *error)
{
    const char *path = work_folder_path(journal->folder);
    const int system = journal->names ? os_folder_list(path, stage_look, journal) : 0;
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the folder of unfinished work cannot be read");
    if (journal->staged) /* records begin after the facts */
        return work_folder_cut(journal->folder, 0, error);
    work_folder_remove(journal->folder);
    journal->folder = NULL;
    return TOKMAP_OK;
}

enum tokmap_status pack_journal_open(struct pack_journal **journal, const struct pack_options *options,
                                     const char *const *operands, size_t count, bool names, struct tokmap_error *error)
{
    assert(!options->dry_run && names == !options->unit);
    struct pack_journal *made = *journal = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "the journal", sizeof *made);
    made->options = options;
    made->operands = operands;
    made->operand_count = count;
    made->off = !options->checkpoint_ns;
    made->names = names;
    enum tokmap_status status = TOKMAP_OK;
    if (!pack_facts_make(&made->facts, options, layout()))
        status = error_set_memory(error, "the journal", sizeof *made);
    if (!status)
        status = folder_open(made, false, error);
    if (!status && made->folder)
        status = checkpoint_find(made, error);
    if (!status && made->folder && !made->found)
        status = stages_find(made, error);
    made->checkpoint.begun_ns = os_clock_ns();
    made->checkpoint.next_ns = made->checkpoint.begun_ns + options->checkpoint_ns;
    if (!status)
        return TOKMAP_OK;
    pack_journal_close(made, false);
    *journal = NULL;
    return status;
}

bool pack_journal_found(const struct pack_journal *journal)
{
    return journal->found;
}

/* Returns the id of the index of a shard, under its name or its partial name; 0: there is none, or it is not
 * complete. */
static uint64_t index_id(const struct pack_options *options, bool partial)
{
    struct index index;
    char *path = shard_file_path(options->prefix, SHARD_INDEX, partial ? SHARD_PARTIAL : SHARD_FINAL);
    const bool there = path && !index_open(&index, path, NULL);
    const uint64_t id = there ? index.id : 0;
    if (there)
        index_close(&index);
    free(path);
    return id;
}

bool pack_journal_is_named(const struct pack_journal *journal, uint32_t set_count, struct pack_result *result)
{
    const struct pack_options *options = journal->options;
    const bool numbered = options->shard_tokens || options->split;
    const uint64_t id = journal->index_id;
    bool good = journal->complete && (numbered || (id && index_id(options, false) == id));
    if (good && !numbered) /* or it replaces an equal one */
        good = index_id(options, true) != id;
    for (uint32_t i = 0; i < set_count && good; i++) {
        good = shard_set_is_complete(options->prefix, options->split ? options->split->sets[i].name : "", numbered,
                                     &journal->checkpoint.last.sets[i], &result->sets[i]);
        result->shards += result->sets[i].shards;
        result->oversized += result->sets[i].oversized;
    }
    if (!options->split)
        memcpy(result->content, result->sets[0].content, sizeof result->content);
    return good;
}

bool pack_journal_kept(const struct pack_journal *journal)
{
    return journal->folder && (journal->found || journal->saved || journal->staged);
}

struct pack_checkpoint *pack_journal_last(struct pack_journal *journal)
{
    assert(journal->found);
    return &journal->checkpoint.last;
}

void pack_journal_drop(struct pack_journal *journal)
{
    work_folder_remove(journal->folder);
    journal->folder = NULL;
    journal->found = journal->complete = journal->staged = false;
}

void pack_journal_close(struct pack_journal *journal, bool done)
{
    if (!journal)
        return;
    if (done || !pack_journal_kept(journal))
        work_folder_remove(journal->folder);
    else
        work_folder_close(journal->folder);
    pack_facts_free(&journal->facts);
    free(journal);
}

/* ---- restore ---- */

static enum tokmap_status increment_load(struct pack_journal *journal, const struct pack_parts *parts,
                                         const struct work_record *record, struct tokmap_error *error)
{
    const struct pack_options *options = journal->options;
    struct increment_head head;
    if (record->bytes < sizeof head)
        return work_folder_damaged(journal->folder, error);
    memcpy(&head, record->payload, sizeof head);
    const uint8_t *bytes = record->payload + sizeof head;
    const size_t count = record->bytes - sizeof head;
    if (head.set == USER_SET)
        return options->state_load ? options->state_load(options->user, head.kind, bytes, count, error) : TOKMAP_OK;
    if (!parts->workers) /* only for the report */
        return TOKMAP_OK;
    if (head.set == DROP_SET)
        return parts->drop ? drop_filter_load(parts->drop, bytes, count, error)
                           : work_folder_damaged(journal->folder, error);
    if (head.set == LISTED_SET)
        return parts->listed ? listed_search_load(parts->listed, bytes, count, error)
                             : work_folder_damaged(journal->folder, error);
    if (head.set == SHUFFLE_SET)
        return parts->shuffle ? shuffle_load(parts->shuffle, head.kind, bytes, count, error)
                              : work_folder_damaged(journal->folder, error);
    if (head.set >= parts->set_count)
        return work_folder_damaged(journal->folder, error);
    if (head.shard != journal->checkpoint.last.sets[head.set].shards)
        return TOKMAP_OK; /* belongs to a shard that was finished before the last checkpoint */
    return shard_set_load(parts->sets[head.set], head.kind, bytes, count, error);
}

/* Sets the counters, except those that the options determine. */
static void numbers_restore(const struct pack_journal *journal, const struct pack_parts *parts)
{
    const struct pack_checkpoint *last = &journal->checkpoint.last;
    struct pack_result *result = parts->result;
    const bool has_mask = result->has_mask;
    *result = last->result;
    result->has_mask = has_mask;
    result->text_before = result->counts.text_bytes;
    result->stream_before = result->counts.stream_bytes;
    result->kept = false;
    *parts->open_tokens = last->open_tokens;
}

/* Takes all records up to the last checkpoint. */
static enum tokmap_status records_load(struct pack_journal *journal, const struct pack_parts *parts,
                                       struct tokmap_error *error)
{
    struct work_record record = {.end = 0};
    enum tokmap_status status = TOKMAP_OK;
    assert(journal->found);
    work_folder_rewind(journal->folder);
    while (!status && record.end < journal->checkpoint.end) {
        status = work_folder_next(journal->folder, &record, error);
        if (!status && record.type == INCREMENT)
            status = increment_load(journal, parts, &record, error);
        else if (!status &&
                 ((record.type == LENGTHS && !histogram_load(parts->lengths, record.payload, record.bytes)) ||
                  (record.type > COMPLETE && record.type != CHECKPOINT_SHORT)))
            status = work_folder_damaged(journal->folder, error);
    }
    return status == TOKMAP_END ? work_folder_damaged(journal->folder, error) : status;
}

enum tokmap_status pack_journal_report(struct pack_journal *journal, const struct pack_parts *parts,
                                       struct tokmap_error *error)
{
    assert(!parts->workers && !parts->set_count);
    numbers_restore(journal, parts);
    return records_load(journal, parts, error);
}

enum tokmap_status pack_journal_restore(struct pack_journal *journal, const struct pack_parts *parts,
                                        struct tokmap_error *error)
{
    uint64_t carried = 0;
    assert(parts->workers && parts->set_count <= SPLIT_SETS_MOST);
    enum tokmap_status status = records_load(journal, parts, error);
    for (uint32_t i = 0; i < parts->set_count && !status; i++)
        status = shard_set_restored(parts->sets[i], error);
    if (!status && parts->shuffle)
        status = shuffle_restored(parts->shuffle, &journal->checkpoint.last.shuffle, error);
    if (!status)
        status =
            corpus_resume(ordered_workers_corpus(parts->workers), &journal->checkpoint.last.place, &carried, error);
    numbers_restore(journal, parts);
    parts->result->counts.stream_bytes += carried - journal->checkpoint.last.place.carried;
    ordered_workers_continue(parts->workers, journal->checkpoint.last.left_out);
    if (!status)
        status = work_folder_cut(journal->folder, journal->checkpoint.end, error);
    journal->checkpoint.next_ns = os_clock_ns() + journal->options->checkpoint_ns;
    return status;
}

/* ---- save ---- */

static int increment_put(void *user, uint32_t kind, const void *bytes, size_t count)
{
    struct pack_journal *journal = user;
    const struct increment_head head = {journal->increment.set, kind, journal->increment.shard};
    journal->increment.failed = work_folder_increments(journal->folder, INCREMENT, &head, sizeof head, bytes, count,
                                                       &journal->increment.failure);
    return journal->increment.failed ? EIO : 0;
}

static enum tokmap_status lengths_save(struct pack_journal *journal, const struct histogram *lengths,
                                       struct tokmap_error *error)
{
    struct bytes_buffer pairs = {0};
    const enum tokmap_status status =
        histogram_save(lengths, &pairs)
            ? work_folder_increments(journal->folder, LENGTHS, NULL, 0, pairs.bytes, pairs.count, error)
            : error_set_memory(error, "the lengths of documents", pairs.count);
    bytes_free(&pairs);
    return status;
}

/* Appends all increments. */
static enum tokmap_status parts_save(struct pack_journal *journal, const struct pack_parts *parts,
                                     struct tokmap_error *error)
{
    const struct pack_options *options = journal->options;
    struct state_sink sink = {.put = increment_put, .user = journal};
    enum tokmap_status status = TOKMAP_OK;
    journal->increment.failed = TOKMAP_OK;
    for (uint32_t i = 0; i < parts->set_count && !status; i++) {
        struct shard_set_result result;
        shard_set_result(parts->sets[i], &result);
        journal->increment.set = i;
        journal->increment.shard = result.shards;
        status = shard_set_save(parts->sets[i], &journal->checkpoint.last.sets[i], &sink, error);
    }
    journal->increment.set = DROP_SET;
    journal->increment.shard = 0;
    if (!status && parts->drop)
        status = drop_filter_save(parts->drop, &journal->checkpoint.last.drop, &sink, error);
    journal->checkpoint.last.result.dropped = journal->checkpoint.last.drop.counts;
    journal->increment.set = LISTED_SET;
    if (!status && parts->listed)
        listed_search_save(parts->listed, &sink);
    journal->increment.set = SHUFFLE_SET;
    if (!status && parts->shuffle)
        status = shuffle_save(parts->shuffle, &journal->checkpoint.last.shuffle, &sink, error);
    journal->increment.set = USER_SET;
    if (!status && !sink.failed && options->state_save)
        options->state_save(options->user, &sink);
    if (!status && sink.failed && !journal->increment.failed)
        status = error_set(error, TOKMAP_ERROR_IO, options->other_output, TOKMAP_NO_OFFSET,
                           "the file cannot be synced to storage");
    if (journal->increment.failed) { /* the message of the sets does not have the cause */
        if (error)
            *error = journal->increment.failure;
        status = journal->increment.failed;
    }
    return status ? status : lengths_save(journal, parts->lengths, error);
}

static enum tokmap_status checkpoint_make(struct pack_journal *journal, uint32_t type, const struct pack_parts *parts,
                                          const struct corpus_place *place, struct tokmap_error *error)
{
    struct pack_checkpoint *last = &journal->checkpoint.last;
    assert(journal->folder && parts->workers && parts->set_count <= SPLIT_SETS_MOST);
    memset(last, 0, sizeof *last);
    last->place = *place;
    last->result = *parts->result;
    last->left_out = ordered_workers_left_out(parts->workers);
    last->open_tokens = *parts->open_tokens;
    enum tokmap_status status = parts_save(journal, parts, error);
    for (uint32_t i = 0; i < parts->set_count && !status; i++)
        status = shard_set_sync(parts->sets[i], error);
    if (!status && parts->drop)
        status = drop_filter_sync(parts->drop, error);
    if (!status && parts->shuffle)
        status = shuffle_sync(parts->shuffle, error);
    if (!status)
        status = work_folder_append(journal->folder, type, last, sizeof *last, error);
    if (!status)
        status = work_folder_sync(journal->folder, error);
    for (uint32_t i = 0; i < parts->set_count && !status; i++)
        shard_set_saved(parts->sets[i]);
    if (!status && parts->drop)
        drop_filter_saved(parts->drop);
    return status;
}

/* Makes the folder. A process may have left a journal there since this one looked; its records are about other
 * files. */
static enum tokmap_status folder_make(struct pack_journal *journal, struct tokmap_error *error)
{
    const enum tokmap_status status = folder_open(journal, true, error);
    return !status && work_folder_found(journal->folder) ? work_folder_cut(journal->folder, 0, error) : status;
}

enum tokmap_status pack_journal_begin(struct pack_journal *journal, const char **folder, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    if (!journal->folder && !journal->off) {
        status = folder_make(journal, error);
        journal->off = status == TOKMAP_ERROR_UNSUPPORTED;
        status = journal->off ? TOKMAP_OK : status;
    }
    *folder = !status && (!journal->off || journal->found) ? pack_journal_folder(journal) : NULL;
    return status;
}

const char *pack_journal_folder(const struct pack_journal *journal)
{
    return journal->folder ? work_folder_path(journal->folder) : NULL;
}

const char *pack_journal_kept_folder(const struct pack_journal *journal)
{
    return journal && pack_journal_kept(journal) ? pack_journal_folder(journal) : NULL;
}

enum tokmap_status pack_journal_stages(struct pack_journal *journal, const char **folder, struct tokmap_error *error)
{
    assert(journal);
    const enum tokmap_status status = journal->folder ? TOKMAP_OK : folder_make(journal, error);
    *folder = status ? NULL : pack_journal_folder(journal);
    return status;
}

void pack_journal_staged(struct pack_journal *journal)
{
    const uint64_t every = journal->options->checkpoint_ns;
    journal->staged = journal->staged || (!journal->off && os_clock_ns() - journal->checkpoint.begun_ns >= every);
}

/* Makes a checkpoint, if the place allows it. Sets *made if it did, and there is a journal. */
static enum tokmap_status checkpoint_try(struct pack_journal *journal, const struct pack_parts *parts,
                                         const struct corpus_place *place, bool *made, struct tokmap_error *error)
{
    bool fit = !journal->off && !place->unfit && (!parts->shuffle || shuffle_can_save(parts->shuffle));
    for (uint32_t i = 0; i < parts->set_count && fit; i++)
        fit = shard_set_can_save(parts->sets[i]);
    *made = false;
    if (!fit)
        return TOKMAP_OK;
    const char *folder;
    enum tokmap_status status = pack_journal_begin(journal, &folder, error);
    if (!status && !folder)
        return TOKMAP_OK;
    if (!status)
        status = checkpoint_make(journal, CHECKPOINT, parts, place, error);
    journal->checkpoint.next_ns = os_clock_ns() + journal->options->checkpoint_ns;
    *made = !status;
    journal->moved = journal->moved && status;
    return status;
}

enum tokmap_status pack_journal_save(struct pack_journal *journal, const struct pack_parts *parts,
                                     const struct corpus_place *place, struct tokmap_error *error)
{
    bool made;
    journal->place = *place;
    journal->moved = true;
    if (os_clock_ns() < journal->checkpoint.next_ns)
        return TOKMAP_OK;
    const enum tokmap_status status = checkpoint_try(journal, parts, place, &made, error);
    journal->saved = journal->saved || made;
    return status;
}

enum tokmap_status pack_journal_save_now(struct pack_journal *journal, const struct pack_parts *parts,
                                         struct tokmap_error *error)
{
    assert(journal);
    bool made;
    return journal->moved ? checkpoint_try(journal, parts, &journal->place, &made, error) : TOKMAP_OK;
}

enum tokmap_status pack_journal_finish(struct pack_journal *journal, const struct pack_parts *parts,
                                       struct tokmap_error *error)
{
    const struct corpus_place end = {.done = 1};
    const char *folder;
    enum tokmap_status status = TOKMAP_OK;
    const struct pack_options *options = journal->options;
    /* Another step follows, even after short work, unless it will be refused: files of other projects, or the names of
     * a set. If the command is killed in it, the same command must recognize them as its own. */
    const bool set = (options->shard_tokens || options->split) && journal->names;
    const bool more =
        (options->also || set) && !journal->off && pack_documents_check(options, parts->result, NULL) == TOKMAP_OK;
    const uint32_t type = pack_journal_kept(journal) || options->also ? CHECKPOINT : CHECKPOINT_SHORT;
    journal->ended = journal->complete;
    if (more && !journal->complete)
        status = pack_journal_begin(journal, &folder, error);
    const bool kept = pack_journal_kept(journal) || (more && journal->folder);
    if (status || !kept || journal->complete)
        return status;
    status = checkpoint_make(journal, type, parts, &end, error);
    if (!status)
        status = work_folder_append(journal->folder, COMPLETE, NULL, 0, error);
    journal->ended = !status;
    journal->saved = journal->saved || !status;
    return status ? status : work_folder_sync(journal->folder, error);
}

enum tokmap_status pack_journal_ready(struct pack_journal *journal, struct tokmap_error *error)
{
    const uint64_t id = journal->ended ? index_id(journal->options, true) : 0;
    if (!id)
        return TOKMAP_OK;
    assert(journal->folder && journal->names);
    const enum tokmap_status status = work_folder_append(journal->folder, READY, &id, sizeof id, error);
    return status ? status : work_folder_sync(journal->folder, error);
}

void pack_journal_settle(struct pack_journal *journal)
{
    if (!journal->folder || pack_journal_kept(journal))
        return;
    work_folder_discard(journal->folder);
    journal->folder = NULL;
}
