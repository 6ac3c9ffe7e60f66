/*
 * shuffle_cut.c - see shuffle_cut.h. A cursor for each chunk has a buffer of its keys, and a binary heap has the
 * cursors, that of the first document on top. The next keys of a chunk are read with one call from a file that may be
 * one of thousands (sorted_units_open()).
 */
#include "shuffle_cut.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"

#define KEYS_LEAST ((uint64_t)64) /* in the buffer of a chunk */
#define KEYS_MOST ((uint64_t)32768)
#define STOP_DOCUMENTS 65536
#define ROW_TAIL 3 /* numbers after the chunks: documents, tokens, hash */

struct cut_cursor {
    const struct shuffle_chunk *chunk;
    struct shuffle_key *keys;
    uint64_t at, filled; /* in `keys` */
    uint64_t next;       /* key of the chunk that is read next */
    uint64_t record;     /* where the record of the key at `at` begins in the file */
    uint64_t tokens;     /* of the keys before it */
    struct hash_state *hash;
};

struct cut {
    const struct shuffle_cut_options *options;
    struct stage_writer *writer;
    struct shuffle_cuts found;
    uint64_t keys, done, all; /* keys: in a buffer */
    /* Of the set that is cut. */
    uint32_t set;
    struct cut_cursor *cursors;
    uint64_t count;
    uint64_t *heap, heap_count;
    uint64_t *row;
    uint64_t documents, tokens; /* of the open shard */
};

static enum tokmap_status no_memory(uint64_t bytes, struct tokmap_error *error)
{
    return error_set_memory(error, "the keys of the sorted units", bytes);
}

struct stage_id shuffle_cut_id(const struct sorted_units *units, uint64_t key)
{
    return stage_cuts_id(units->folder, key ^ units->digest);
}

static uint64_t chunks_of(const struct sorted_units *units, uint32_t set)
{
    return units->set_begins[set + 1] - units->set_begins[set];
}

static uint64_t row_bytes(const struct sorted_units *units, uint32_t set)
{
    return (chunks_of(units, set) + ROW_TAIL) * sizeof(uint64_t);
}

/* ---- keys ---- */

static enum tokmap_status cursor_damaged(const struct cut *cut, const struct cut_cursor *cursor,
                                         struct tokmap_error *error)
{
    return sorted_units_damaged(cut->options->units, cursor->chunk->file, cursor->chunk->end, error);
}

static struct shuffle_place place_of(const struct cut *cut, const struct cut_cursor *cursor)
{
    const struct shuffle_key *key = &cursor->keys[cursor->at];
    return shuffle_place_of(cut->options->units->seed, key->input, key->position);
}

static bool precedes(const struct cut *cut, const struct cut_cursor *a, const struct cut_cursor *b)
{
    if (a->keys[a->at].high != b->keys[b->at].high)
        return a->keys[a->at].high < b->keys[b->at].high;
    const struct shuffle_place first = place_of(cut, a), second = place_of(cut, b);
    return shuffle_precedes(&first, &second);
}

/* Reads the next keys of a chunk. END: there are none; then all were what was written. */
static enum tokmap_status cursor_fill(const struct cut *cut, struct cut_cursor *cursor, struct tokmap_error *error)
{
    const struct shuffle_chunk *chunk = cursor->chunk;
    const uint64_t count = min64(cut->keys, chunk->keys - cursor->next);
    const uint64_t bytes = count * sizeof *cursor->keys;
    int fd = -1;
    size_t got = 0;
    if (!count)
        return cursor->record == chunk->end && cursor->tokens == chunk->tokens &&
                       hash_state_64(cursor->hash) == chunk->keys_hash
                   ? TOKMAP_END
                   : cursor_damaged(cut, cursor, error);
    const enum tokmap_status status = sorted_units_open(cut->options->units, chunk->file, &fd, error);
    if (status)
        return status;
    const int system =
        os_pread(fd, cursor->keys, (size_t)bytes, chunk->end + cursor->next * sizeof *cursor->keys, &got);
    if (system)
        return error_set_system(error, system, cut->options->units->folder, TOKMAP_NO_OFFSET,
                                "the keys of sorted documents cannot be read");
    if (got != bytes)
        return cursor_damaged(cut, cursor, error);
    hash_state_add(cursor->hash, cursor->keys, (size_t)bytes);
    cursor->next += count;
    cursor->filled = count;
    cursor->at = 0;
    return TOKMAP_OK;
}

/* Goes on to the next key. Statuses: as above. */
static enum tokmap_status cursor_advance(const struct cut *cut, struct cut_cursor *cursor, struct tokmap_error *error)
{
    const struct shuffle_key *last = &cursor->keys[cursor->at];
    const struct shuffle_place before = place_of(cut, cursor);
    const uint64_t left = cursor->chunk->end - cursor->record;
    if (last->bytes < sizeof(struct shuffle_head) || last->bytes > left ||
        last->tokens > cursor->chunk->tokens - cursor->tokens || last->high != before.high)
        return cursor_damaged(cut, cursor, error);
    cursor->record += last->bytes;
    cursor->tokens += last->tokens;
    cursor->at++;
    const enum tokmap_status status = cursor->at == cursor->filled ? cursor_fill(cut, cursor, error) : TOKMAP_OK;
    if (status)
        return status;
    const struct shuffle_place now = place_of(cut, cursor);
    return shuffle_precedes(&before, &now) ? TOKMAP_OK : cursor_damaged(cut, cursor, error);
}

/* Lets the cursor at `at` sink to its place. */
static void heap_sink(struct cut *cut, uint64_t at)
{
    for (;;) {
        uint64_t first = at;
        for (uint64_t below = 2 * at + 1; below <= 2 * at + 2 && below < cut->heap_count; below++)
            if (precedes(cut, &cut->cursors[cut->heap[below]], &cut->cursors[cut->heap[first]]))
                first = below;
        if (first == at)
            return;
        const uint64_t moved = cut->heap[at];
        cut->heap[at] = cut->heap[first];
        cut->heap[first] = moved;
        at = first;
    }
}

/* ---- a set ---- */

static void set_close(struct cut *cut)
{
    for (uint64_t i = 0; cut->cursors && i < cut->count; i++) {
        free(cut->cursors[i].keys);
        hash_state_free(cut->cursors[i].hash);
    }
    free(cut->cursors);
    free(cut->heap);
    free(cut->row);
    cut->cursors = NULL;
    cut->heap = cut->row = NULL;
}

static enum tokmap_status set_open(struct cut *cut, uint32_t set, struct tokmap_error *error)
{
    const struct sorted_units *units = cut->options->units;
    enum tokmap_status status = TOKMAP_OK;
    cut->set = set;
    cut->count = chunks_of(units, set);
    cut->heap_count = 0;
    cut->documents = cut->tokens = 0;
    const uint64_t share = cut->options->memory / sizeof(struct shuffle_key) / max64(cut->count, 1);
    cut->keys = min64(max64(share, KEYS_LEAST), KEYS_MOST);
    cut->cursors = calloc((size_t)cut->count + 1, sizeof *cut->cursors);
    cut->heap = calloc((size_t)cut->count + 1, sizeof *cut->heap);
    cut->row = calloc((size_t)cut->count + ROW_TAIL, sizeof *cut->row);
    if (!cut->cursors || !cut->heap || !cut->row)
        return no_memory(cut->count * sizeof *cut->cursors, error);
    for (uint64_t i = 0; i < cut->count && !status; i++) {
        struct cut_cursor *cursor = &cut->cursors[i];
        cursor->chunk = &units->chunks[units->set_begins[set] + i];
        cursor->record = cursor->chunk->begin;
        cursor->keys = malloc((size_t)min64(cut->keys, cursor->chunk->keys) * sizeof *cursor->keys);
        cursor->hash = hash_state_new();
        status = cursor->keys && cursor->hash ? cursor_fill(cut, cursor, error) : no_memory(cut->keys, error);
        if (!status)
            cut->heap[cut->heap_count++] = i;
    }
    for (uint64_t i = cut->heap_count / 2; i-- && !status;)
        heap_sink(cut, i);
    return status;
}

/* Ends the open shard, and writes where the next one begins. */
static enum tokmap_status row_write(struct cut *cut, struct tokmap_error *error)
{
    const uint64_t bytes = row_bytes(cut->options->units, cut->set);
    const uint64_t number = cut->found.sets[cut->set].shards;
    uint64_t *tail = cut->row + cut->count;
    for (uint64_t i = 0; i < cut->count; i++)
        cut->row[i] = cut->cursors[i].record;
    tail[0] = cut->documents;
    tail[1] = cut->tokens;
    tail[2] = hash64_seeded(cut->row, (size_t)bytes - sizeof *tail, number);
    cut->documents = cut->tokens = 0;
    return stage_writer_add(cut->writer, cut->row, (size_t)bytes, error);
}

/* Puts a document into the open shard, or into the next one, as shard_set.h does. */
static enum tokmap_status document_place(struct cut *cut, uint64_t tokens, struct tokmap_error *error)
{
    const uint64_t most = cut->options->shard_tokens;
    enum tokmap_status status = TOKMAP_OK;
    if (cut->documents && (cut->tokens > most || tokens > most - cut->tokens)) {
        cut->found.sets[cut->set].shards++;
        if (cut->found.sets[cut->set].shards == SET_SHARDS_MOST)
            return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                             "the documents need more than %d shards; choose larger ones with options.shard_tokens",
                             SET_SHARDS_MOST);
        status = row_write(cut, error);
    }
    cut->documents++;
    cut->tokens += tokens;
    cut->found.sets[cut->set].documents++;
    cut->found.sets[cut->set].tokens += tokens;
    cut->found.sets[cut->set].oversized += tokens > most;
    return status;
}

static enum tokmap_status stop_check(struct cut *cut, struct tokmap_error *error)
{
    const struct shuffle_cut_options *options = cut->options;
    if (cut->done++ % STOP_DOCUMENTS)
        return TOKMAP_OK;
    if (options->progress)
        options->progress(options->user, cut->done, cut->all);
    return options->stop && options->stop(options->stop_user)
               ? error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted")
               : TOKMAP_OK;
}

static enum tokmap_status set_cut(struct cut *cut, uint32_t set, struct tokmap_error *error)
{
    enum tokmap_status status = set_open(cut, set, error);
    if (!status)
        status = row_write(cut, error);
    while (cut->heap_count && !status) {
        struct cut_cursor *first = &cut->cursors[cut->heap[0]];
        status = stop_check(cut, error);
        if (!status)
            status = document_place(cut, first->keys[first->at].tokens, error);
        if (!status)
            status = cursor_advance(cut, first, error);
        if (status == TOKMAP_END) {
            cut->heap[0] = cut->heap[--cut->heap_count];
            status = TOKMAP_OK;
        }
        if (!status)
            heap_sink(cut, 0);
    }
    if (!status) {
        cut->found.sets[set].shards++; /* a set without documents has one that is empty */
        status = row_write(cut, error);
    }
    set_close(cut);
    return status;
}

static uint64_t nonce_make(void)
{
    uint64_t nonce;
    const uint64_t numbers[] = {os_clock_ns(), os_process_start_ns(), os_process_id()};
    return os_random(&nonce, sizeof nonce) ? hash64(numbers, sizeof numbers) : nonce;
}

enum tokmap_status shuffle_cut_run(const struct shuffle_cut_options *options, const struct stage_id *id,
                                   struct tokmap_error *error)
{
    struct cut cut = {.options = options};
    const struct sorted_units *units = options->units;
    for (uint32_t set = 0; set < SPLIT_SETS_MOST; set++)
        cut.all += units->all.sets[set].documents;
    enum tokmap_status status = stage_writer_open(&cut.writer, id, error);
    for (uint32_t set = 0; set < SPLIT_SETS_MOST && !status; set++) {
        if (set < units->sets)
            status = set_cut(&cut, set, error);
        if (!status)
            status = stage_writer_next(cut.writer, error);
    }
    cut.found.nonce = nonce_make();
    if (!status)
        status = stage_writer_add(cut.writer, &cut.found, sizeof cut.found, error);
    if (!status)
        status = stage_writer_commit(cut.writer, options->sync, error);
    stage_writer_free(cut.writer);
    return status;
}

/* ---- read ---- */

enum tokmap_status shuffle_cuts_read(struct shuffle_cuts *cuts, const struct sorted_units *units,
                                     const struct stage_id *id, struct tokmap_error *error)
{
    struct bytes_buffer bytes = {0};
    enum tokmap_status status = stage_section_load(&bytes, id, CUTS_TOTALS, sizeof *cuts, error);
    if (!status && bytes.count != sizeof *cuts)
        status = stage_corrupt(id, error);
    if (!status)
        memcpy(cuts, bytes.bytes, sizeof *cuts);
    bytes_free(&bytes);
    for (uint32_t set = 0; set < SPLIT_SETS_MOST && !status; set++) {
        const uint64_t row = row_bytes(units, set);
        uint64_t rows = 0;
        if (set >= units->sets) {
            status = stage_section_count(id, set, 1, &rows, error);
            if (!status && (rows || cuts->sets[set].shards))
                status = stage_corrupt(id, error);
            continue;
        }
        if (row > UINT32_MAX)
            return no_memory(row, error);
        status = stage_section_count(id, set, (uint32_t)row, &rows, error);
        if (!status &&
            (!cuts->sets[set].shards || cuts->sets[set].shards > SET_SHARDS_MOST ||
             rows != cuts->sets[set].shards + 1 || cuts->sets[set].documents != units->all.sets[set].documents ||
             cuts->sets[set].tokens != units->all.sets[set].tokens))
            status = stage_corrupt(id, error);
    }
    return status;
}

static enum tokmap_status row_read(uint64_t *row, const struct sorted_units *units, const struct stage_id *id,
                                   uint32_t set, uint64_t number, struct tokmap_error *error)
{
    const uint64_t bytes = row_bytes(units, set);
    const enum tokmap_status status = stage_record_read(id, set, number, row, (uint32_t)bytes, error);
    return !status && row[bytes / 8 - 1] != hash64_seeded(row, (size_t)bytes - 8, number) ? stage_corrupt(id, error)
                                                                                          : status;
}

enum tokmap_status shuffle_cut_read(struct shard_cut *cut, const struct sorted_units *units, const struct stage_id *id,
                                    uint32_t set, uint64_t shard, struct tokmap_error *error)
{
    const uint64_t count = chunks_of(units, set);
    const struct shuffle_chunk *chunks = units->chunks + units->set_begins[set];
    cut->begins = malloc((size_t)row_bytes(units, set));
    cut->ends = malloc((size_t)row_bytes(units, set));
    enum tokmap_status status = cut->begins && cut->ends ? TOKMAP_OK : no_memory(2 * row_bytes(units, set), error);
    if (!status)
        status = row_read(cut->begins, units, id, set, shard, error);
    if (!status)
        status = row_read(cut->ends, units, id, set, shard + 1, error);
    for (uint64_t i = 0; i < count && !status; i++)
        if (cut->begins[i] < chunks[i].begin || cut->ends[i] < cut->begins[i] || chunks[i].end < cut->ends[i])
            status = stage_corrupt(id, error);
    cut->documents = status ? 0 : cut->ends[count];
    cut->tokens = status ? 0 : cut->ends[count + 1];
    return status;
}
