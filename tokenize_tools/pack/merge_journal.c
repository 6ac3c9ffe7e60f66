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
#include "work_folder.h"

enum { CHECKPOINT = WORK_TYPE_FIRST };

/* What a checkpoint begins with. */
struct merge_point {
    uint64_t chunks;
    struct shard_set_state set;
};

struct merge_journal {
    struct merge_journal_options options;
    struct work_folder *folder; /* NULL before the first checkpoint */
    char fact[2 * 16 + 1];
    bool found, saved;
    uint64_t next_ns, checkpoint_end;
    struct merge_point last; /* that was read or made */
    struct checkpoint rest;  /* what follows it in the journal */
};

/* ---- open ---- */

static bool owns_kept(const char *folder, const char *entry, bool journal)
{
    (void)folder;
    (void)journal;
    return append_file_is_name(entry);
}

static enum tokmap_status folder_open(struct merge_journal *journal, bool start_over, bool create,
                                      struct tokmap_error *error)
{
    static const struct inputs_selection none;
    const struct work_fact fact = {"shard", journal->fact};
    const struct work_folder_options work = {.name = journal->options.prefix,
                                             .facts = &fact,
                                             .fact_count = 1,
                                             .select = &none,
                                             .owns = owns_kept,
                                             .start_over = start_over,
                                             .create = create};
    return work_folder_open(&journal->folder, &work, error);
}

/* Finds the last checkpoint. */
static enum tokmap_status checkpoint_find(struct merge_journal *journal, struct tokmap_error *error)
{
    struct ledger_record record;
    enum tokmap_status status;
    while (!(status = work_folder_next(journal->folder, &record, error))) {
        if (record.type != CHECKPOINT)
            continue;
        if (record.bytes < sizeof journal->last)
            return work_folder_damaged(journal->folder, error);
        memcpy(&journal->last, record.payload, sizeof journal->last);
        journal->rest.bytes.count = 0;
        if (!bytes_append(&journal->rest.bytes, record.payload + sizeof journal->last,
                          record.bytes - sizeof journal->last))
            return error_set_memory(error, "the journal", record.bytes);
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
                   (uint64_t)sizeof(struct merge_point));
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
    if (!status && !made->folder)
        work_folder_sweep(options->prefix, owns_kept);
    if (!status)
        return TOKMAP_OK;
    merge_journal_close(made, false);
    *journal = NULL;
    return status;
}

const struct shard_set_state *merge_journal_found(const struct merge_journal *journal)
{
    return journal->found ? &journal->last.set : NULL;
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
    checkpoint_free(&journal->rest);
    free(journal);
}

/* ---- checkpoints ---- */

enum tokmap_status merge_journal_restore(struct merge_journal *journal, struct shard_set *set,
                                         struct shuffle_chunks *chunks, struct tokmap_error *error)
{
    struct checkpoint *rest = &journal->rest;
    rest->takes = true;
    rest->folder = work_folder_path(journal->folder);
    enum tokmap_status status = journal->last.chunks == chunks->chunk_count
                                    ? shard_set_restore(set, rest, error)
                                    : work_folder_damaged(journal->folder, error);
    if (!status && (shuffle_merge_pass(NULL, chunks, rest) || !checkpoint_is_taken(rest)))
        status = work_folder_damaged(journal->folder, error);
    if (!status)
        status = work_folder_cut(journal->folder, journal->checkpoint_end, error);
    journal->next_ns = os_clock_ns() + journal->options.checkpoint_ns;
    return status;
}

static enum tokmap_status checkpoint_make(struct merge_journal *journal, struct shard_set *set,
                                          const struct shuffle_merge *merge, struct shuffle_chunks *chunks,
                                          struct tokmap_error *error)
{
    struct merge_point *last = &journal->last;
    struct checkpoint *rest = &journal->rest;
    memset(last, 0, sizeof *last);
    last->chunks = chunks->chunk_count;
    rest->takes = false;
    rest->folder = work_folder_path(journal->folder);
    rest->bytes.count = 0;
    enum tokmap_status status = shard_set_save(set, &last->set, rest, error);
    int system = status ? 0 : shuffle_merge_pass(merge, chunks, rest);
    if (!status)
        status = shard_set_sync(set, error);
    if (!status && !system)
        system = checkpoint_sync(rest);
    if (!status && system)
        status = ledger_failed(system, work_folder_path(journal->folder), "the unfinished work cannot be saved", error);
    if (!status)
        status = work_folder_append(journal->folder, CHECKPOINT, last, sizeof *last, rest->bytes.bytes,
                                    rest->bytes.count, error);
    if (!status)
        status = work_folder_sync(journal->folder, error);
    if (!status)
        shard_set_saved(set);
    return status;
}

enum tokmap_status merge_journal_save(struct merge_journal *journal, struct shard_set *set,
                                      const struct shuffle_merge *merge, struct shuffle_chunks *chunks,
                                      struct tokmap_error *error)
{
    const uint64_t every = journal->options.checkpoint_ns;
    if (!every || os_clock_ns() < journal->next_ns || !shard_set_can_save(set))
        return TOKMAP_OK;
    enum tokmap_status status = journal->folder ? TOKMAP_OK : folder_open(journal, true, true, error);
    if (!status)
        status = checkpoint_make(journal, set, merge, chunks, error);
    journal->saved = journal->saved || !status;
    journal->next_ns = os_clock_ns() + every;
    return status;
}
