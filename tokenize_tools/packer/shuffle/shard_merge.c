/* SPDX-License-Identifier: MIT */
/* shard_merge.c - see shard_merge.h. */
#include "shard_merge.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "merge_journal.h"
#include "shuffle_hand.h"
#include "shuffle_merge.h"
#include "work/unit_names.h"

#define RECORD_MOST ((uint64_t)1 << 48)
/* By how much the ids, mask, and values of a document can be larger than the record that they are from: control
 * characters have 6 bytes in JSON, and a byte may have an id of 4 bytes with a bit of the mask. */
#define RECORD_GROWS 8
#define SPARE_BYTES ((uint64_t)1 << 20) /* for what a template adds to a short conversation */

struct shard_merging {
    const struct shard_merge_options *options;
    struct merged_shard made;
    struct shard_cut cut;
    struct shuffle_chunks chunks; /* those with records of the shard, cut there */
    struct shuffle_merge *merge;
    struct shuffle_hand *hand;
    char *prefix; /* of the shard */
    struct merge_journal *journal;
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
    const struct merge_journal_options journal = {.prefix = merging->prefix,
                                                  .shard_key = shard_key(merging, number),
                                                  .checkpoint_ns = merging->options->checkpoint_ns};
    return merging->prefix ? merge_journal_open(&merging->journal, &journal, error)
                           : error_set_memory(error, "a shard of sorted documents", 0);
}

/* Opens the shard, in a folder of its own: a new one, or that of a killed process. */
static enum tokmap_status output_open(struct shard_merging *merging, struct tokmap_error *error)
{
    static const char *const endings[] = {""};
    const struct shard_merge_options *options = merging->options;
    const struct shard_set_state *found = merge_journal_found(merging->journal);
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
        status = merge_journal_restore(merging->journal, merging->set, &merging->chunks, error);
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
    if (!status || may_pass(status) || status == TOKMAP_ERROR_BUSY || !merge_journal_found(merging->journal))
        return status;
    shard_set_leave(merging->set);
    merging->set = NULL;
    merge_journal_drop(merging->journal);
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
        status = merge_journal_save(merging->journal, merging->set, merging->merge, error);
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
    const bool keep = may_pass(status) && merging->journal && merge_journal_kept(merging->journal);
    (keep ? shard_set_leave : shard_set_abandon)(merging->set);
    merge_journal_close(merging->journal, !keep);
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
