/* SPDX-License-Identifier: MIT */
/*
 * shuffle_cut.c - see shuffle_cut.h. A cursor for each chunk has a buffer of its keys, and a binary heap has the
 * cursors, that of the first document on top. Its entries have the high half of the key, so that they are compared
 * without a look at the cursors, of which tens of thousands have no room in a cache. The next keys of a chunk are read
 * with one call from a file that may be one of thousands (sorted_units_open()).
 *
 * Rows are held in memory until a part is made, or the file is written if there is no part. A part is made between two
 * documents only, when all that were cut are in an open or an ended shard.
 */
#include "shuffle_cut.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"
#include "work/stage_parts.h"

#define KEYS_LEAST ((uint64_t)64) /* in the buffer of a chunk */
#define KEYS_MOST ((uint64_t)32768)
#define CHECK_DOCUMENTS 1024 /* between two looks whether to stop, or to make a part */
#define ROWS_HELD ((uint64_t)8 << 20)
#define ROW_TAIL 3 /* numbers after the chunks: documents, tokens, hash */

/* The sections of a part: those before are rows of the sets, as in the file. */
enum { PART_PLACES = SPLIT_SETS_MOST, PART_STATE, PART_SECTIONS };

/* Place of the cut in a chunk. */
struct chunk_place {
    uint64_t keys;         /* that were cut */
    uint64_t record;       /* place of the record of the next one in the file */
    uint64_t tokens, hash; /* of the keys that were cut */
};

struct cut_state {
    struct shuffle_cuts found;  /* without the nonce */
    uint64_t set;               /* that is cut; the number of sets if all are */
    uint64_t documents, tokens; /* of the open shard */
};

struct cut_cursor {
    const struct shuffle_chunk *chunk;
    struct shuffle_key *keys;
    uint64_t at, filled; /* in `keys` */
    uint64_t next;       /* key of the chunk that is read next */
    struct chunk_place place;
    struct shuffle_place order; /* of the key at `at` */
};

struct heap_entry {
    uint64_t high; /* of the key that is next in the chunk */
    uint64_t cursor;
};

struct cut {
    const struct shuffle_cut_options *options;
    const struct stage_id *id;
    struct stage_writer *writer;
    struct cut_state state;
    uint64_t done, all; /* documents */
    struct bytes_buffer rows[SPLIT_SETS_MOST];
    uint64_t held; /* bytes of rows */
    struct stage_parts parts;
    struct bytes_buffer places; /* of the last part, for the set that is continued */
    bool continued, complete;   /* parts were found; the last one has the last row */
    uint64_t saved, saved_ns;   /* documents of the last part, and when it was made */
    /* The set that is cut. */
    struct {
        uint64_t keys; /* in a buffer */
        struct cut_cursor *cursors;
        uint64_t count;
        struct heap_entry *heap;
        uint64_t heap_count;
        uint64_t *row;
    } set;
};

static const char lacking[] = "the keys of the sorted units"; /* in messages about memory */

struct stage_id shuffle_cut_id(const struct sorted_units *units, uint64_t key)
{
    return (struct stage_id){
        .folder = units->folder, .key = key ^ units->digest, .kind = STAGE_CUTS, .sections = CUTS_SECTIONS};
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

/* Reads the next keys of a chunk. END: there are none; then all were what was written. */
static enum tokmap_status cursor_fill(const struct cut *cut, struct cut_cursor *cursor, struct tokmap_error *error)
{
    const struct shuffle_chunk *chunk = cursor->chunk;
    const uint64_t count = min64(cut->set.keys, chunk->keys - cursor->next);
    const uint64_t bytes = count * sizeof *cursor->keys;
    int fd = -1;
    size_t got = 0;
    if (!count)
        return cursor->place.record == chunk->end && cursor->place.tokens == chunk->tokens &&
                       cursor->place.hash == chunk->keys_hash
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
    cursor->next += count;
    cursor->filled = count;
    cursor->at = 0;
    return TOKMAP_OK;
}

/* Looks at the key at `at`. Returns false if it has another place in the order than it says. */
static bool cursor_look(const struct cut *cut, struct cut_cursor *cursor)
{
    const struct shuffle_key *key = &cursor->keys[cursor->at];
    cursor->order = shuffle_place_of(cut->options->units->seed, key->input, key->position);
    return key->high == cursor->order.high;
}

/* Goes on to the next key, which must come later in the order. Statuses: as above. */
static enum tokmap_status cursor_step(const struct cut *cut, struct cut_cursor *cursor, struct tokmap_error *error)
{
    const struct shuffle_place before = cursor->order;
    cursor->at++;
    const enum tokmap_status status = cursor->at == cursor->filled ? cursor_fill(cut, cursor, error) : TOKMAP_OK;
    if (status)
        return status;
    return cursor_look(cut, cursor) && shuffle_precedes(&before, &cursor->order) ? TOKMAP_OK
                                                                                 : cursor_damaged(cut, cursor, error);
}

/* Moves on, when the document of the key is cut. Statuses: as above. */
static enum tokmap_status cursor_advance(const struct cut *cut, struct cut_cursor *cursor, struct tokmap_error *error)
{
    const struct shuffle_key *key = &cursor->keys[cursor->at];
    const uint64_t left = cursor->chunk->end - cursor->place.record;
    if (key->bytes < sizeof(struct shuffle_head) || key->bytes > left ||
        key->tokens > cursor->chunk->tokens - cursor->place.tokens)
        return cursor_damaged(cut, cursor, error);
    cursor->place.keys++;
    cursor->place.record += key->bytes;
    cursor->place.tokens += key->tokens;
    cursor->place.hash = shuffle_keys_hash(cursor->place.hash, key, 1);
    return cursor_step(cut, cursor, error);
}

/* Begins a chunk, or continues after the keys that were cut: the last one of them is read again, since the next one
 * must come after it. Statuses: as above. */
static enum tokmap_status cursor_open(const struct cut *cut, struct cut_cursor *cursor, struct tokmap_error *error)
{
    const uint64_t cut_before = cursor->place.keys;
    cursor->keys = malloc((size_t)min64(cut->set.keys, cursor->chunk->keys) * sizeof *cursor->keys);
    if (!cursor->keys)
        return error_set_memory(error, lacking, cut->set.keys * sizeof *cursor->keys);
    cursor->next = cut_before - (cut_before != 0);
    const enum tokmap_status status = cursor_fill(cut, cursor, error);
    if (status)
        return status;
    if (!cursor_look(cut, cursor))
        return cursor_damaged(cut, cursor, error);
    return cut_before ? cursor_step(cut, cursor, error) : TOKMAP_OK;
}

static bool precedes(const struct cut *cut, const struct heap_entry *a, const struct heap_entry *b)
{
    return a->high != b->high
               ? a->high < b->high
               : shuffle_precedes(&cut->set.cursors[a->cursor].order, &cut->set.cursors[b->cursor].order);
}

/* Lets the entry at `at` sink to its place. */
static void heap_sink(struct cut *cut, uint64_t at)
{
    const struct heap_entry moved = cut->set.heap[at];
    for (;;) {
        uint64_t below = 2 * at + 1;
        if (below + 1 < cut->set.heap_count && precedes(cut, &cut->set.heap[below + 1], &cut->set.heap[below]))
            below++;
        if (below >= cut->set.heap_count || !precedes(cut, &cut->set.heap[below], &moved))
            break;
        cut->set.heap[at] = cut->set.heap[below];
        at = below;
    }
    cut->set.heap[at] = moved;
}

/* ---- parts ---- */

/* Makes a part of what was cut since the last one. */
static enum tokmap_status part_make(struct cut *cut, struct tokmap_error *error)
{
    struct stage_writer *writer;
    enum tokmap_status status = stage_part_open(&cut->parts, &writer, error);
    for (uint32_t set = 0; set < SPLIT_SETS_MOST && !status; set++) {
        status = stage_writer_add(writer, cut->rows[set].bytes, cut->rows[set].count, error);
        if (!status)
            status = stage_writer_next(writer, error);
    }
    for (uint64_t i = 0; i < cut->set.count && !status; i++)
        status = stage_writer_add(writer, &cut->set.cursors[i].place, sizeof cut->set.cursors[i].place, error);
    if (status)
        stage_writer_free(writer);
    else
        status =
            stage_part_commit(&cut->parts, writer, true, &cut->state, sizeof cut->state, cut->options->sync, error);
    for (uint32_t set = 0; set < SPLIT_SETS_MOST && !status; set++)
        cut->rows[set].count = 0;
    cut->held = 0;
    cut->saved = cut->done;
    cut->saved_ns = os_clock_ns();
    return status;
}

static bool is_due(const struct cut *cut)
{
    const uint64_t every = cut->options->checkpoint_ns;
    return every && os_clock_ns() - cut->saved_ns >= every;
}

/* Returns true if a part can have this state. The places of chunks, and the rows of all parts, must agree with it,
 * too. */
static bool state_is_good(const struct cut *cut)
{
    const struct sorted_units *units = cut->options->units;
    const struct cut_state *state = &cut->state;
    if (state->set > units->sets || (state->set < units->sets && !chunks_of(units, (uint32_t)state->set)))
        return false;
    for (uint32_t set = 0; set < SPLIT_SETS_MOST; set++) {
        const uint64_t documents = state->found.sets[set].documents, tokens = state->found.sets[set].tokens;
        const uint64_t shards = state->found.sets[set].shards;
        if (shards > SET_SHARDS_MOST || state->found.sets[set].oversized > documents)
            return false;
        if (set >= units->sets || set > state->set ? shards || documents || tokens
            : set < state->set
                ? !shards || documents != units->all.sets[set].documents || tokens != units->all.sets[set].tokens
                : state->documents > documents || state->tokens > tokens)
            return false;
    }
    return true;
}

/* Returns true if all chunks of the set can be in these places when it has the documents and tokens of the state. */
static bool places_are_good(const struct cut *cut)
{
    const struct sorted_units *units = cut->options->units;
    const struct cut_state *state = &cut->state;
    uint64_t documents = 0, tokens = 0;
    for (uint64_t i = 0; i < cut->places.count / sizeof(struct chunk_place); i++) {
        const struct shuffle_chunk *chunk = &units->chunks[units->set_begins[state->set] + i];
        struct chunk_place place;
        memcpy(&place, cut->places.bytes + i * sizeof place, sizeof place);
        if (place.keys > chunk->keys || place.record < chunk->begin || place.record > chunk->end ||
            place.tokens > chunk->tokens)
            return false;
        documents += place.keys;
        tokens += place.tokens;
    }
    return state->set == units->sets ||
           (documents == state->found.sets[state->set].documents && tokens == state->found.sets[state->set].tokens);
}

/* Counts the rows that all parts have of a set. */
static enum tokmap_status rows_check(const struct cut *cut, uint32_t set, struct tokmap_error *error)
{
    const uint64_t rows = set <= cut->state.set ? cut->state.found.sets[set].shards + 1 : 0;
    uint64_t bytes = 0, count;
    for (uint64_t part = 0; part < cut->parts.count; part++) {
        const struct stage_id id = stage_part_id(&cut->parts, part);
        const enum tokmap_status status = stage_section_count(&id, set, 1, &count, error);
        if (status)
            return status;
        bytes += count;
    }
    return bytes == rows * row_bytes(cut->options->units, set) ? TOKMAP_OK : stage_corrupt(cut->id, error);
}

/* Takes what killed processes have found. */
static enum tokmap_status parts_take(struct cut *cut, struct tokmap_error *error)
{
    const struct sorted_units *units = cut->options->units;
    cut->continued = true;
    enum tokmap_status status =
        stage_parts_find(&cut->parts, cut->id, PART_SECTIONS, &cut->state, sizeof cut->state, error);
    if (!status)
        cut->continued = cut->parts.count != 0;
    if (status || !cut->continued)
        return status;
    const struct stage_id last = stage_part_id(&cut->parts, cut->parts.count - 1);
    cut->complete = cut->state.set == units->sets;
    if (!state_is_good(cut))
        return stage_corrupt(&last, error);
    const uint64_t places = cut->complete ? 0 : chunks_of(units, (uint32_t)cut->state.set);
    status = stage_section_load(&cut->places, &last, PART_PLACES, places * sizeof(struct chunk_place), error);
    if (!status && (cut->places.count != places * sizeof(struct chunk_place) || !places_are_good(cut)))
        status = stage_corrupt(&last, error);
    for (uint32_t set = 0; set < units->sets && !status; set++) {
        cut->done += cut->state.found.sets[set].documents;
        status = rows_check(cut, set, error);
    }
    cut->saved = cut->done;
    return status;
}

/* ---- a set ---- */

static void set_close(struct cut *cut)
{
    for (uint64_t i = 0; cut->set.cursors && i < cut->set.count; i++)
        free(cut->set.cursors[i].keys);
    free(cut->set.cursors);
    free(cut->set.heap);
    free(cut->set.row);
    cut->set.cursors = NULL;
    cut->set.heap = NULL;
    cut->set.row = NULL;
    cut->set.count = 0;
}

/* Begins the set, or continues it with the places of the last part. */
static enum tokmap_status set_open(struct cut *cut, struct tokmap_error *error)
{
    const struct sorted_units *units = cut->options->units;
    enum tokmap_status status = TOKMAP_OK;
    const uint64_t count = cut->set.count = chunks_of(units, (uint32_t)cut->state.set);
    const uint64_t share = cut->options->memory / sizeof(struct shuffle_key) / max64(count, 1);
    cut->set.heap_count = 0;
    cut->set.keys = min64(max64(share, KEYS_LEAST), KEYS_MOST);
    cut->set.cursors = calloc((size_t)count + 1, sizeof *cut->set.cursors);
    cut->set.heap = calloc((size_t)count + 1, sizeof *cut->set.heap);
    cut->set.row = calloc((size_t)count + ROW_TAIL, sizeof *cut->set.row);
    if (!cut->set.cursors || !cut->set.heap || !cut->set.row)
        return error_set_memory(error, lacking, count * sizeof *cut->set.cursors);
    for (uint64_t i = 0; i < count && !status; i++) {
        struct cut_cursor *cursor = &cut->set.cursors[i];
        cursor->chunk = &units->chunks[units->set_begins[cut->state.set] + i];
        cursor->place.record = cursor->chunk->begin;
        if (cut->places.count)
            memcpy(&cursor->place, cut->places.bytes + i * sizeof cursor->place, sizeof cursor->place);
        status = cursor_open(cut, cursor, error);
        if (!status)
            cut->set.heap[cut->set.heap_count++] = (struct heap_entry){cursor->order.high, i};
        status = status == TOKMAP_END ? TOKMAP_OK : status;
    }
    for (uint64_t i = cut->set.heap_count / 2; i-- && !status;)
        heap_sink(cut, i);
    return status;
}

/* Ends the open shard, and writes where the next one begins. */
static enum tokmap_status row_write(struct cut *cut, struct tokmap_error *error)
{
    const uint32_t set = (uint32_t)cut->state.set;
    const uint64_t bytes = row_bytes(cut->options->units, set);
    uint64_t *tail = cut->set.row + cut->set.count;
    for (uint64_t i = 0; i < cut->set.count; i++)
        cut->set.row[i] = cut->set.cursors[i].place.record;
    tail[0] = cut->state.documents;
    tail[1] = cut->state.tokens;
    tail[2] = hash64_seeded(cut->set.row, (size_t)bytes - sizeof *tail, cut->state.found.sets[set].shards);
    cut->state.documents = cut->state.tokens = 0;
    cut->held += bytes;
    return bytes_append(&cut->rows[set], cut->set.row, (size_t)bytes) ? TOKMAP_OK
                                                                      : error_set_memory(error, lacking, cut->held);
}

/* Puts a document into the open shard, or into the next one, as shard_set.h does. */
static enum tokmap_status document_place(struct cut *cut, uint64_t tokens, struct tokmap_error *error)
{
    const uint64_t most = cut->options->shard_tokens, set = cut->state.set;
    struct cut_state *state = &cut->state;
    enum tokmap_status status = TOKMAP_OK;
    if (state->documents && (state->tokens > most || tokens > most - state->tokens)) {
        state->found.sets[set].shards++;
        if (state->found.sets[set].shards == SET_SHARDS_MOST)
            return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                             "the documents need more than %d shards; choose larger ones with --shard-tokens",
                             SET_SHARDS_MOST);
        status = row_write(cut, error);
    }
    state->documents++;
    state->tokens += tokens;
    state->found.sets[set].documents++;
    state->found.sets[set].tokens += tokens;
    state->found.sets[set].oversized += tokens > most;
    cut->done++;
    return status;
}

/* Between two documents: makes a part if it is time for one, and asks whether to stop. */
static enum tokmap_status cut_check(struct cut *cut, struct tokmap_error *error)
{
    const struct shuffle_cut_options *options = cut->options;
    enum tokmap_status status = TOKMAP_OK;
    if (cut->done % CHECK_DOCUMENTS && cut->held < ROWS_HELD)
        return TOKMAP_OK;
    if (options->progress)
        options->progress(options->user, cut->done, cut->all);
    if (cut->done != cut->saved && (cut->held >= ROWS_HELD || is_due(cut)))
        status = part_make(cut, error);
    return !status && options->stop && options->stop(options->stop_user)
               ? error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted")
               : status;
}

static enum tokmap_status set_cut(struct cut *cut, struct tokmap_error *error)
{
    const bool begins = !cut->places.count;
    enum tokmap_status status = set_open(cut, error);
    bytes_free(&cut->places);
    if (!status && begins)
        status = row_write(cut, error);
    while (cut->set.heap_count && !status) {
        struct cut_cursor *first = &cut->set.cursors[cut->set.heap[0].cursor];
        status = cut_check(cut, error);
        if (!status)
            status = document_place(cut, first->keys[first->at].tokens, error);
        if (!status)
            status = cursor_advance(cut, first, error);
        if (!status)
            cut->set.heap[0].high = first->order.high;
        if (status == TOKMAP_END) {
            cut->set.heap[0] = cut->set.heap[--cut->set.heap_count];
            status = TOKMAP_OK;
        }
        if (!status)
            heap_sink(cut, 0);
    }
    if (!status) {
        cut->state.found.sets[cut->state.set].shards++; /* a set without documents has one that is empty */
        status = row_write(cut, error);
    }
    set_close(cut);
    cut->state.set += !status;
    return status;
}

/* ---- the file ---- */

static uint64_t nonce_make(void)
{
    uint64_t nonce;
    const uint64_t numbers[] = {os_clock_ns(), os_process_start_ns(), os_process_id()};
    return os_random(&nonce, sizeof nonce) ? hash64(numbers, sizeof numbers) : nonce;
}

/* Copies the rows of a set from all parts, after those that the file has. */
static enum tokmap_status set_copy(struct cut *cut, uint32_t set, uint64_t there, struct tokmap_error *error)
{
    for (uint64_t part = 0; part < cut->parts.count; part++) {
        const struct stage_id id = stage_part_id(&cut->parts, part);
        uint64_t bytes;
        enum tokmap_status status = stage_section_count(&id, set, 1, &bytes, error);
        if (!status && there >= bytes) {
            there -= bytes;
            continue;
        }
        if (!status)
            status = there ? stage_corrupt(cut->id, error) : stage_section_copy(cut->writer, &id, set, error);
        if (!status && is_due(cut)) {
            status = stage_writer_keep(cut->writer, cut->parts.token, cut->options->sync, error);
            cut->saved_ns = os_clock_ns();
        }
        if (!status && cut->options->stop && cut->options->stop(cut->options->stop_user))
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        if (status)
            return status;
    }
    return there ? stage_corrupt(cut->id, error) : TOKMAP_OK;
}

/* Writes the file, when all documents are cut. */
static enum tokmap_status file_write(struct cut *cut, struct tokmap_error *error)
{
    uint64_t section = 0, bytes = 0;
    enum tokmap_status status = TOKMAP_OK;
    if (cut->parts.count && !cut->complete)
        status = part_make(cut, error);
    /* Without parts, there is nothing to continue. */
    const uint64_t token = cut->parts.count ? cut->parts.token : nonce_make();
    if (!status)
        status = stage_writer_resume(cut->writer, token, &section, &bytes, error);
    if (!status && section >= cut->options->units->sets && bytes)
        status = stage_corrupt(cut->id, error);
    for (uint32_t set = (uint32_t)section; set < SPLIT_SETS_MOST && !status; set++) {
        const uint64_t there = set == section ? bytes : 0;
        if (set < cut->options->units->sets)
            status = cut->parts.count
                         ? set_copy(cut, set, there, error)
                         : stage_writer_add(cut->writer, cut->rows[set].bytes, cut->rows[set].count, error);
        if (!status)
            status = stage_writer_next(cut->writer, error);
    }
    cut->state.found.nonce = nonce_make();
    if (!status)
        status = stage_writer_add(cut->writer, &cut->state.found, sizeof cut->state.found, error);
    return status ? status : stage_writer_commit(cut->writer, cut->options->sync, error);
}

/* Cuts what the parts do not have, and writes the file. */
static enum tokmap_status rest_cut(struct cut *cut, struct tokmap_error *error)
{
    enum tokmap_status status = parts_take(cut, error);
    cut->saved_ns = os_clock_ns();
    while (cut->state.set < cut->options->units->sets && !status)
        status = set_cut(cut, error);
    return status ? status : file_write(cut, error);
}

/* Makes the cut, or what is missing of it. *again: what a killed process has left is useless, and has been removed. */
static enum tokmap_status cut_make(const struct shuffle_cut_options *options, const struct stage_id *id, bool *again,
                                   struct tokmap_error *error)
{
    struct cut *cut = calloc(1, sizeof *cut);
    *again = false;
    if (!cut)
        return error_set_memory(error, lacking, sizeof *cut);
    _Static_assert(sizeof cut->state <= STAGE_STATE_MOST, "the state of a part");
    cut->options = options;
    cut->id = id;
    for (uint32_t set = 0; set < SPLIT_SETS_MOST; set++)
        cut->all += options->units->all.sets[set].documents;
    enum tokmap_status status = stage_writer_reopen(&cut->writer, id, error);
    /* Another process may have made the file since the caller looked for it, and be removing the parts. */
    const bool missing = !status && stage_find(id, NULL) != TOKMAP_OK;
    if (missing)
        status = rest_cut(cut, error);
    if (missing && (!status || status == TOKMAP_ERROR_CORRUPT))
        stage_parts_remove(&cut->parts);
    *again = missing && status == TOKMAP_ERROR_CORRUPT && cut->continued;
    stage_writer_free(cut->writer);
    for (uint32_t set = 0; set < SPLIT_SETS_MOST; set++)
        bytes_free(&cut->rows[set]);
    bytes_free(&cut->places);
    free(cut);
    return status;
}

enum tokmap_status shuffle_cut_run(const struct shuffle_cut_options *options, const struct stage_id *id,
                                   struct tokmap_error *error)
{
    bool again;
    const enum tokmap_status status = cut_make(options, id, &again, error);
    return again ? cut_make(options, id, &again, error) : status;
}

/* ---- read ---- */

enum tokmap_status shuffle_cuts_read(struct shuffle_cuts *cuts, const struct sorted_units *units,
                                     const struct stage_id *id, struct tokmap_error *error)
{
    enum tokmap_status status = stage_section_read(id, CUTS_TOTALS, cuts, sizeof *cuts, error);
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
            return error_set_memory(error, lacking, row);
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
    enum tokmap_status status =
        cut->begins && cut->ends ? TOKMAP_OK : error_set_memory(error, lacking, 2 * row_bytes(units, set));
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
