/* SPDX-License-Identifier: MIT */
#include "shard_merge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "encode/shard_set.h"
#include "platform/os.h"
#include "shuffle_hand.h"
#include "shuffle_merge.h"
#include "work/work_folder.h"
#include "work/work_units.h"

#define RECORD_MOST ((uint64_t)1 << 48)
/* By how much the ids, mask, and values of a document can be larger than the record that they are from: control
 * characters have 6 bytes in JSON, and a byte may have an id of 4 bytes with a bit of the mask. */
#define RECORD_GROWS 8
#define SPARE_BYTES ((uint64_t)1 << 20) /* for what a template adds to a short conversation */

/* ---- the journal ---- */

/*
 * The journal saves how far the merge of a shard is, and restores it in another process. So a task that is killed loses
 * seconds of its shard, whatever the size of the shard.
 *
 *     shard-000007.work/journal    a journal (work_folder.h) whose only fact is what the cut says of the shard
 *
 * After the fact follow, for each checkpoint:
 *
 *     increment    u64 kind, and bytes that the shard has added since the last checkpoint (shard_set_save()), or where
 *                  the merge is in each chunk (shuffle_merge_save())
 *     checkpoint   struct shard_set_state; valid with all increments before it
 *
 * As in pack_journal.h, increments are appended, the files of the shard are synced, and then the checkpoint is
 * appended and the journal synced. A journal that is damaged, or of another cut, is removed: the merge begins again.
 */

enum { INCREMENT = WORK_TYPE_FIRST, CHECKPOINT };

#define PLACES UINT32_MAX /* kind of the increments of the merge */

struct merge_journal {
    const char *prefix;         /* of the shard */
    uint64_t checkpoint_ns;     /* 0: nothing is saved, and earlier work is removed */
    struct work_folder *folder; /* NULL before the first checkpoint */
    char fact[2 * 16 + 1];      /* a hash of what the shard is made of: work with another one is not continued */
    bool found;                 /* true if there is a checkpoint, which another process could continue */
    uint64_t next_ns, checkpoint_end;
    struct shard_set_state last; /* of the last checkpoint, read or made */

    /* The status for which an increment could not be written. */
    struct tokmap_error failure;
    enum tokmap_status failed;
};

static enum tokmap_status folder_open(struct merge_journal *journal, bool start_over, bool create,
                                      struct tokmap_error *error)
{
    static const struct inputs_selection none;
    const struct work_fact fact = {"shard", journal->fact};
    const struct work_folder_options work = {.name = journal->prefix,
                                             .facts = &fact,
                                             .fact_count = 1,
                                             .inputs = {.select = &none},
                                             .start_over = start_over,
                                             .create = create};
    return work_folder_open(&journal->folder, &work, error);
}

/* Finds the last checkpoint. */
static enum tokmap_status checkpoint_find(struct merge_journal *journal, struct tokmap_error *error)
{
    struct work_record record;
    enum tokmap_status status;
    while (!(status = work_folder_next(journal->folder, &record, error))) {
        if (record.type != CHECKPOINT)
            continue;
        if (record.bytes != sizeof journal->last)
            return work_folder_damaged(journal->folder, error);
        memcpy(&journal->last, record.payload, sizeof journal->last);
        journal->checkpoint_end = record.end;
        journal->found = true;
    }
    return status == TOKMAP_END ? TOKMAP_OK : status;
}

/* Removes the journal, when there is nothing to continue. */
static void journal_drop(struct merge_journal *journal)
{
    work_folder_remove(journal->folder);
    journal->folder = NULL;
    journal->found = false;
}

/* Looks for the journal of a killed process. */
static enum tokmap_status journal_find(struct merge_journal *journal, uint64_t shard_key, struct tokmap_error *error)
{
    /* The second number changes if the bytes of a checkpoint mean something else. */
    (void)snprintf(journal->fact, sizeof journal->fact, "%016" PRIx64 "%016" PRIx64, shard_key,
                   (uint64_t)sizeof(struct shard_set_state));
    enum tokmap_status status = folder_open(journal, false, false, error);
    if (!status && journal->folder)
        status = checkpoint_find(journal, error);
    if (status == TOKMAP_ERROR_MISMATCH || status == TOKMAP_ERROR_CORRUPT || status == TOKMAP_ERROR_UNSUPPORTED) {
        journal->found = false;
        work_folder_close(journal->folder);
        status = folder_open(journal, true, false, error);
    }
    journal->next_ns = os_clock_ns() + journal->checkpoint_ns;
    if (!status && journal->folder && (!journal->found || !journal->checkpoint_ns))
        journal_drop(journal);
    return status;
}

/* Closes the journal. done: it is removed; else it stays, unless it has no checkpoint. */
static void journal_close(struct merge_journal *journal, bool done)
{
    if (done || !journal->found)
        work_folder_remove(journal->folder);
    else
        work_folder_close(journal->folder);
}

static enum tokmap_status record_load(struct merge_journal *journal, struct shard_set *set, struct bytes_buffer *places,
                                      const struct work_record *record, struct tokmap_error *error)
{
    if (record->type == CHECKPOINT)
        return TOKMAP_OK;
    if (record->type != INCREMENT || record->bytes < 8)
        return work_folder_damaged(journal->folder, error);
    const uint32_t kind = (uint32_t)load64(record->payload);
    if (kind != PLACES)
        return shard_set_load(set, kind, record->payload + 8, record->bytes - 8, error);
    const int failed = shuffle_places_load(places, record->payload + 8, record->bytes - 8);
    return !failed            ? TOKMAP_OK
           : failed == ENOMEM ? error_set_memory(error, "the journal", places->count)
                              : work_folder_damaged(journal->folder, error);
}

/* Restores a shard that shard_set_reopen() has opened, and moves the beginnings of the chunks to where the merge
 * continues. */
static enum tokmap_status journal_restore(struct merge_journal *journal, struct shard_set *set,
                                          struct shuffle_chunks *chunks, struct tokmap_error *error)
{
    struct work_record record = {.end = 0};
    struct bytes_buffer places = {0};
    enum tokmap_status status = TOKMAP_OK;
    work_folder_rewind(journal->folder);
    while (!status && record.end < journal->checkpoint_end) {
        status = work_folder_next(journal->folder, &record, error);
        status = status == TOKMAP_END ? work_folder_damaged(journal->folder, error) : status;
        if (!status)
            status = record_load(journal, set, &places, &record, error);
    }
    if (!status)
        status = shard_set_restored(set, error);
    if (!status && !shuffle_places_restore(&places, chunks))
        status = work_folder_damaged(journal->folder, error);
    if (!status)
        status = work_folder_cut(journal->folder, journal->checkpoint_end, error);
    bytes_free(&places);
    journal->next_ns = os_clock_ns() + journal->checkpoint_ns;
    return status;
}

static int increment_put(void *user, uint32_t kind, const void *bytes, size_t count)
{
    struct merge_journal *journal = user;
    const uint64_t head = kind;
    journal->failed =
        work_folder_increments(journal->folder, INCREMENT, &head, sizeof head, bytes, count, &journal->failure);
    return journal->failed ? EIO : 0;
}

static enum tokmap_status checkpoint_make(struct merge_journal *journal, struct shard_set *set,
                                          const struct shuffle_merge *merge, struct tokmap_error *error)
{
    struct state_sink sink = {.put = increment_put, .user = journal};
    struct shard_set_state *last = &journal->last;
    memset(last, 0, sizeof *last);
    journal->failed = TOKMAP_OK;
    enum tokmap_status status = shard_set_save(set, last, &sink, error);
    if (!status)
        shuffle_merge_save(merge, PLACES, &sink);
    if (journal->failed) { /* what the set says of it has no cause */
        if (error)
            *error = journal->failure;
        status = journal->failed;
    }
    if (!status)
        status = shard_set_sync(set, error);
    if (!status)
        status = work_folder_append(journal->folder, CHECKPOINT, last, sizeof *last, error);
    if (!status)
        status = work_folder_sync(journal->folder, error);
    if (!status)
        shard_set_saved(set);
    return status;
}

/* Makes a checkpoint if it is time for one. */
static enum tokmap_status journal_save(struct merge_journal *journal, struct shard_set *set,
                                       const struct shuffle_merge *merge, struct tokmap_error *error)
{
    const uint64_t every = journal->checkpoint_ns;
    if (!every || os_clock_ns() < journal->next_ns || !shard_set_can_save(set))
        return TOKMAP_OK;
    enum tokmap_status status = journal->folder ? TOKMAP_OK : folder_open(journal, true, true, error);
    if (!status)
        status = checkpoint_make(journal, set, merge, error);
    journal->found = journal->found || !status;
    journal->next_ns = os_clock_ns() + every;
    return status;
}

/* ---- the merge ---- */

struct shard_merging {
    const struct shard_merge_options *options;
    struct merged_shard made;
    struct shard_cut cut;
    struct shuffle_chunks chunks; /* those with records of the shard, cut there */
    struct shuffle_merge *merge;
    struct shuffle_hand *hand;
    char *prefix; /* of the shard */
    struct merge_journal journal;
    struct set_work *work;
    struct shard_set *set;
};

struct stage_id merged_shard_id(const char *folder, uint64_t key, uint64_t number)
{
    return (struct stage_id){.folder = folder, .key = key, .kind = STAGE_MERGED, .number = number, .sections = 1};
}

uint64_t shard_merge_count(const struct shuffle_cuts *cuts)
{
    uint64_t count = 0;
    for (uint32_t set = 0; set < SPLIT_SETS_MOST; set++)
        count += cuts->sets[set].shards;
    return count;
}

uint64_t shard_merge_tokens(const struct shuffle_cuts *cuts)
{
    uint64_t tokens = 0;
    for (uint32_t set = 0; set < SPLIT_SETS_MOST; set++)
        tokens += cuts->sets[set].tokens;
    return div_ceil(tokens, max64(shard_merge_count(cuts), 1));
}

static char *about_make(void *self, const struct shard_totals *shard, uint64_t *bytes)
{
    const struct shard_merging *merging = self;
    return merging->options->about(merging->options->owner, (uint32_t)merging->made.set, shard, bytes);
}

/* Lists the parts of chunks that belong to the shard. */
static enum tokmap_status chunks_list(struct shard_merging *merging, struct tokmap_error *error)
{
    const struct shard_merge_options *options = merging->options;
    struct sorted_units *units = options->units;
    const uint64_t first = units->set_begins[merging->made.set];
    const uint64_t count = units->set_begins[merging->made.set + 1] - first;
    struct shuffle_chunks *chunks = &merging->chunks;
    *chunks = (struct shuffle_chunks){.seed = units->seed,
                                      .folder = units->folder,
                                      .chunk_bytes = options->memory ? options->memory : SHUFFLE_CHUNK_BYTES,
                                      .fd = -1,
                                      .self = units,
                                      .reopen = sorted_units_open,
                                      .damaged = sorted_units_damaged};
    chunks->chunks = malloc((size_t)(count + 1) * sizeof *chunks->chunks);
    if (!chunks->chunks)
        return error_set_memory(error, "a shard of sorted documents", count * sizeof *chunks->chunks);
    for (uint64_t i = 0; i < count; i++) {
        if (merging->cut.begins[i] == merging->cut.ends[i])
            continue;
        struct shuffle_chunk *chunk = &chunks->chunks[chunks->chunk_count++];
        *chunk = units->chunks[first + i];
        chunk->begin = merging->cut.begins[i];
        chunk->end = merging->cut.ends[i];
    }
    return TOKMAP_OK;
}

/* Returns a key of what the shard is made of. The nonce stands for the texts: sorted units of other texts have another
 * cut. */
static uint64_t shard_key(const struct shard_merging *merging, uint64_t number)
{
    const struct sorted_units *units = merging->options->units;
    const struct shard_cut *cut = &merging->cut;
    const uint64_t set = merging->made.set, count = units->set_begins[set + 1] - units->set_begins[set];
    const uint64_t numbers[] = {
        merging->options->cut.key, merging->options->cuts->nonce, number, set, count, cut->documents, cut->tokens};
    const uint64_t begins = hash64_seeded(cut->begins, (size_t)count * 8, hash64(numbers, sizeof numbers));
    return hash64_seeded(cut->ends, (size_t)count * 8, begins);
}

static enum tokmap_status journal_open(struct shard_merging *merging, uint64_t number, struct tokmap_error *error)
{
    merging->prefix = merged_path(merging->options->units->folder, number, "");
    merging->journal.prefix = merging->prefix;
    merging->journal.checkpoint_ns = merging->options->checkpoint_ns;
    return merging->prefix ? journal_find(&merging->journal, shard_key(merging, number), error)
                           : error_set_memory(error, "a shard of sorted documents", 0);
}

/* Opens the shard, in a folder of its own: a new one, or that of a killed process. */
static enum tokmap_status output_open(struct shard_merging *merging, struct tokmap_error *error)
{
    static const char *const endings[] = {""};
    const struct shard_merge_options *options = merging->options;
    const struct shard_set_state *found = merging->journal.found ? &merging->journal.last : NULL;
    const struct set_work_options work = {.endings = endings,
                                          .sets = 1,
                                          .sealed = options->shard.seal != NULL,
                                          .sync = options->shard.sync,
                                          .keep = found != NULL,
                                          .journaled = true};
    enum tokmap_status status = set_work_open(&merging->work, merging->prefix, &work, error);
    struct shard_set_options set = {.shard = options->shard,
                                    .work = merging->work,
                                    .shard_tokens = options->shard_tokens,
                                    .about = about_make,
                                    .user = merging};
    set.shard.replace = false;
    if (status || !found)
        return status ? status : shard_set_open(&merging->set, &set, error);
    status = shard_set_reopen(&merging->set, &set, found, error);
    if (!status && (found->shards || found->open || found->tokens > merging->cut.tokens))
        status = stage_corrupt(&merging->options->cut, error);
    if (!status)
        status = journal_restore(&merging->journal, merging->set, &merging->chunks, error);
    if (!status) {
        merging->made.documents = found->documents;
        merging->made.tokens = found->tokens;
    }
    return status;
}

/* Returns true if the same work may do better another time. */
static bool may_pass(enum tokmap_status status)
{
    return status == TOKMAP_ERROR_INTERRUPTED || status == TOKMAP_ERROR_IO || status == TOKMAP_ERROR_MEMORY;
}

/* Does the same. What cannot be continued is given up: its files are damaged, or missing, and the shard is made
 * again. */
static enum tokmap_status output_begin(struct shard_merging *merging, struct tokmap_error *error)
{
    const enum tokmap_status status = output_open(merging, error);
    if (!status || may_pass(status) || status == TOKMAP_ERROR_BUSY || !merging->journal.found)
        return status;
    shard_set_leave(merging->set);
    merging->set = NULL;
    journal_drop(&merging->journal);
    set_work_leave(merging->work);
    merging->work = NULL;
    return output_open(merging, error);
}

static bool stop_ask(void *user)
{
    const struct shard_merge_options *options = user;
    return options->stop && options->stop(options->stop_user);
}

static void progress_tell(void *user, uint64_t tokens, uint64_t all)
{
    const struct shard_merge_options *options = user;
    if (options->progress)
        options->progress(options->user, tokens, all);
}

static enum tokmap_status hand_open(struct shard_merging *merging, struct tokmap_error *error)
{
    const struct shard_merge_options *options = merging->options;
    const struct shard_writer_options *shard = &options->shard;
    const uint64_t record = min64(options->record_limit, RECORD_MOST);
    const struct shuffle_hand_options hand = {.width = shard->width,
                                              .columns = shard->column_count,
                                              .mask = shard->mask,
                                              .folder = options->units->folder,
                                              .whole_most =
                                                  SPARE_BYTES + (shard->column_count + 1) * record * RECORD_GROWS,
                                              .tokens = merging->cut.tokens,
                                              .stop = stop_ask,
                                              .progress = progress_tell,
                                              .user = (void *)(uintptr_t)options};
    return shuffle_hand_new(&merging->hand, &hand, merging->made.tokens, error);
}

/* Adds the next document to the shard. END: there is none. */
static enum tokmap_status document_add(struct shard_merging *merging, struct tokmap_error *error)
{
    struct sorted_units *units = merging->options->units;
    struct shuffle_head head;
    const uint8_t *record;
    bool due;
    enum tokmap_status status = shuffle_hand_check(merging->hand, &due, error);
    if (!status && due)
        status = journal_save(&merging->journal, merging->set, merging->merge, error);
    if (!status)
        status = shuffle_merge_next(merging->merge, &head, &record, error);
    if (status)
        return status;
    const uint32_t file = shuffle_merge_from(merging->merge)->file;
    const uint64_t number = sorted_units_of(units, file);
    const struct sorted_unit *unit = &units->list[number];
    const struct unit *inputs = &units->inputs->list[number];
    if ((head.set & ~SHUFFLE_LONG) != merging->made.set || head.input < inputs->first ||
        head.input - inputs->first >= inputs->count || head.tokens > merging->cut.tokens - merging->made.tokens)
        return sorted_units_damaged(units, file, TOKMAP_NO_OFFSET, error);
    const struct shuffle_source source = {.paths = (const char *const *)units->inputs->paths,
                                          .inputs = units->inputs->file_count,
                                          /* Only its first file can be the rest of one. */
                                          .records_before = head.input == inputs->first ? unit->records_before : 0,
                                          .long_fd = -1,
                                          .long_path = unit->long_path,
                                          .long_bytes = unit->totals.long_bytes};
    status = shuffle_hand_record(merging->hand, merging->set, &source, &head, record, error);
    /* The ids were below the vocabulary when they were sorted. */
    if (status == TOKMAP_ERROR_CORRUPT || status == TOKMAP_ERROR_TOKEN)
        return sorted_units_damaged(units, file, TOKMAP_NO_OFFSET, error);
    merging->made.documents += !status;
    merging->made.tokens += status ? 0 : head.tokens;
    return status;
}

/* Commits the shard, which must be the one that was cut. */
static enum tokmap_status output_commit(struct shard_merging *merging, struct tokmap_error *error)
{
    const struct shard_merge_options *options = merging->options;
    struct shard_set_result result = {0};
    struct shard_set *set = merging->set;
    if (merging->made.documents != merging->cut.documents || merging->made.tokens != merging->cut.tokens)
        return stage_corrupt(&options->cut, error);
    merging->set = NULL;
    const enum tokmap_status status = shard_set_commit(set, &result, error);
    if (status)
        return status;
    if (result.shards != 1 || result.documents != merging->made.documents || result.tokens != merging->made.tokens)
        return stage_corrupt(&options->cut, error);
    merging->made.sealed_bytes = result.sealed_bytes;
    memcpy(merging->made.content, result.content, sizeof result.content);
    return TOKMAP_OK;
}

enum tokmap_status shard_merge_run(const struct shard_merge_options *options, const struct stage_id *id,
                                   struct tokmap_error *error)
{
    struct shard_merging *merging = calloc(1, sizeof *merging);
    if (!merging)
        return error_set_memory(error, "a shard of sorted documents", sizeof *merging);
    merging->options = options;
    merging->made.shard = id->number;
    while (merging->made.shard >= options->cuts->sets[merging->made.set].shards)
        merging->made.shard -= options->cuts->sets[merging->made.set++].shards;
    enum tokmap_status status = shuffle_cut_read(&merging->cut, options->units, &options->cut,
                                                 (uint32_t)merging->made.set, merging->made.shard, error);
    if (!status)
        status = chunks_list(merging, error);
    if (!status)
        status = journal_open(merging, id->number, error);
    if (!status)
        status = output_begin(merging, error);
    if (!status)
        status = hand_open(merging, error);
    if (!status)
        status = shuffle_merge_open(&merging->merge, &merging->chunks, error);
    while (!status)
        status = document_add(merging, error);
    if (status == TOKMAP_END)
        status = output_commit(merging, error);
    const bool committed = !status; /* also if the file may have its name, and could not be synced */
    if (!status)
        status = stage_write(id, &merging->made, sizeof merging->made, options->shard.sync, error);
    if (!status)
        set_work_tidy(merging->work);
    /* If anything is not what was written, the journal may say it. The next attempt reads everything again. */
    const bool keep = may_pass(status) && merging->journal.found;
    (keep ? shard_set_leave : shard_set_abandon)(merging->set);
    journal_close(&merging->journal, !keep);
    (committed || keep ? set_work_leave : set_work_abandon)(merging->work); /* the lock goes last */
    free(merging->prefix);
    shuffle_merge_close(merging->merge);
    shuffle_hand_free(merging->hand);
    free(merging->chunks.chunks);
    free(merging->cut.begins);
    free(merging->cut.ends);
    free(merging);
    return status;
}

enum tokmap_status merged_shard_read(struct merged_shard *shard, const struct stage_id *id, struct tokmap_error *error)
{
    return stage_section_read(id, 0, shard, sizeof *shard, error);
}
