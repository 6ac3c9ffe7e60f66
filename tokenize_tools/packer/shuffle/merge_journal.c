/* SPDX-License-Identifier: MIT */
/* merge_journal.c - see merge_journal.h. */
#include "merge_journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"
#include "work/work_folder.h"

enum { INCREMENT = WORK_TYPE_FIRST, CHECKPOINT };

#define PLACES UINT32_MAX /* kind of the increments of the merge */

struct merge_journal {
    struct merge_journal_options options;
    struct work_folder *folder; /* NULL before the first checkpoint */
    char fact[2 * 16 + 1];
    bool found, saved;
    uint64_t next_ns, checkpoint_end;
    struct shard_set_state last; /* of the last checkpoint, read or made */

    /* The status for which an increment could not be written. */
    struct tokmap_error failure;
    enum tokmap_status failed;
};

/* ---- open ---- */

static enum tokmap_status folder_open(struct merge_journal *journal, bool start_over, bool create,
                                      struct tokmap_error *error)
{
    static const struct inputs_selection none;
    const struct work_fact fact = {"shard", journal->fact};
    const struct work_folder_options work = {.name = journal->options.prefix,
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

enum tokmap_status merge_journal_open(struct merge_journal **journal, const struct merge_journal_options *options,
                                      struct tokmap_error *error)
{
    struct merge_journal *made = *journal = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "the journal", sizeof *made);
    made->options = *options;
    /* The second number changes if the bytes of a checkpoint mean something else. */
    (void)snprintf(made->fact, sizeof made->fact, "%016" PRIx64 "%016" PRIx64, options->shard_key,
                   (uint64_t)sizeof(struct shard_set_state));
    enum tokmap_status status = folder_open(made, false, false, error);
    if (!status && made->folder)
        status = checkpoint_find(made, error);
    if (status == TOKMAP_ERROR_MISMATCH || status == TOKMAP_ERROR_CORRUPT || status == TOKMAP_ERROR_UNSUPPORTED) {
        made->found = false;
        work_folder_close(made->folder);
        status = folder_open(made, true, false, error);
    }
    made->next_ns = os_clock_ns() + options->checkpoint_ns;
    if (!status && made->folder && (!made->found || !options->checkpoint_ns))
        merge_journal_drop(made);
    if (!status)
        return TOKMAP_OK;
    merge_journal_close(made, false);
    *journal = NULL;
    return status;
}

const struct shard_set_state *merge_journal_found(const struct merge_journal *journal)
{
    return journal->found ? &journal->last : NULL;
}

void merge_journal_drop(struct merge_journal *journal)
{
    work_folder_remove(journal->folder);
    journal->folder = NULL;
    journal->found = false;
}

bool merge_journal_kept(const struct merge_journal *journal)
{
    return journal->folder && (journal->found || journal->saved);
}

void merge_journal_close(struct merge_journal *journal, bool done)
{
    if (!journal)
        return;
    if (done || !merge_journal_kept(journal))
        work_folder_remove(journal->folder);
    else
        work_folder_close(journal->folder);
    free(journal);
}

/* ---- restore ---- */

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

enum tokmap_status merge_journal_restore(struct merge_journal *journal, struct shard_set *set,
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
    journal->next_ns = os_clock_ns() + journal->options.checkpoint_ns;
    return status;
}

/* ---- save ---- */

static int increment_put(void *user, uint32_t kind, const void *bytes, size_t count)
{
    struct merge_journal *journal = user;
    const uint64_t head = kind;
    if (!journal->failed)
        journal->failed =
            work_folder_increments(journal->folder, INCREMENT, &head, sizeof head, bytes, count, &journal->failure);
    return journal->failed ? EIO : 0;
}

static enum tokmap_status checkpoint_make(struct merge_journal *journal, struct shard_set *set,
                                          const struct shuffle_merge *merge, struct tokmap_error *error)
{
    const struct state_sink sink = {increment_put, journal};
    struct shard_set_state *last = &journal->last;
    memset(last, 0, sizeof *last);
    journal->failed = TOKMAP_OK;
    enum tokmap_status status = shard_set_save(set, last, &sink, error);
    if (!status)
        (void)shuffle_merge_save(merge, PLACES, &sink);
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

enum tokmap_status merge_journal_save(struct merge_journal *journal, struct shard_set *set,
                                      const struct shuffle_merge *merge, struct tokmap_error *error)
{
    const uint64_t every = journal->options.checkpoint_ns;
    if (!every || os_clock_ns() < journal->next_ns || !shard_set_can_save(set))
        return TOKMAP_OK;
    enum tokmap_status status = journal->folder ? TOKMAP_OK : folder_open(journal, true, true, error);
    if (!status)
        status = checkpoint_make(journal, set, merge, error);
    journal->saved = journal->saved || !status;
    journal->next_ns = os_clock_ns() + every;
    return status;
}
