/* SPDX-License-Identifier: MIT */
/*
 * values_finish.c - makes final files of values out of those that writers have filled, and of their notes.
 *
 * All shards together are one line of places: shard s has those from `base` on, a multiple of 64. The bits that say
 * which tokens have values are made for a piece of this line at a time, from all notes, and stored in the files.
 *
 *     shards      a, 100 tokens: places 0 to 99        b, 50 tokens: places 128 to 177
 *     notes       {a, 0, 90}, {b, 0, 50}, {a, 80, 20}
 *     result      all 150 tokens have values, and 10 were put twice
 *
 * Nothing is final before everything is checked: 1. bits, 2. values (those without a bit become zeros), hashes, and
 * headers, 3. names, 4. notes are removed. A kill leaves notes and files that are being written, or some final files
 * and the rest of the work; calling it again does what is left.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "common/struct_copy.h"
#include "format/layout.h"
#include "format/name_files.h"
#include "open_shards.h"
#include "text/path.h"
#include "values_finish.h"
#include "values_writer.h"

#define PIECE ((uint64_t)1 << 30) /* places whose bits are in memory at once: 128 MiB */
#define TABLE_ROOM 4096           /* hashes that are written at once */

struct finished {
    uint64_t number, work; /* of the shard in the dataset, and of its files */
    uint64_t base, tokens; /* places */
    uint64_t present;
    bool skipped; /* all of its arrays are final, or it is the same file as another one; it has no places */
};

struct key {
    uint64_t work;
    struct finished *shard;
};

struct folder {
    char *path;
    int lock;
};

struct finishing {
    struct tokmap_values_writer *writer;
    struct tokmap_values_options options;
    struct tokmap_values_result result;
    struct finished *shards;
    struct key *keys; /* of the shards, by `work` */
    uint64_t shard_count, key_count, places;
    struct folder *folders;
    uint64_t folder_count, folder_room;
    const char *listed; /* the folder whose notes are listed */
    char **notes;       /* paths */
    uint64_t note_count, note_room;
    bool *others;          /* the note is also about other shards, and stays */
    uint64_t note, arrays; /* the note that is read */
    bool locked;
    uint64_t *bits; /* of the places [first, end) */
    uint64_t first, end;
    const struct finished *lacking; /* the first shard in which tokens have no values, and the first ones there */
    uint64_t lacking_first, lacking_end;
    uint8_t *block, *present; /* a MiB of a file, and the bits of its tokens */
};

/* ---- what is finished ---- */

static int key_compare(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    return x->work != y->work ? (x->work < y->work ? -1 : 1) : x->shard < y->shard ? -1 : x->shard > y->shard;
}

static enum tokmap_status folder_lock(struct finishing *finishing, const char *index_path, struct tokmap_error *error)
{
    char *path = values_notes_folder(finishing->writer, index_path);
    if (!path ||
        !list_room(&finishing->folders, finishing->folder_count, &finishing->folder_room, sizeof(struct folder))) {
        free(path);
        return error_set_memory(error, "the notes of values", 0);
    }
    for (uint64_t i = finishing->folder_count; i--;)
        if (!strcmp(finishing->folders[i].path, path)) {
            free(path);
            return TOKMAP_OK;
        }
    struct folder *folder = &finishing->folders[finishing->folder_count++];
    *folder = (struct folder){path, -1};
    return values_notes_lock(path, &folder->lock, error);
}

/* Opens the files of all shards once, and locks their folders. */
static enum tokmap_status shards_find(struct finishing *finishing, struct tokmap_error *error)
{
    const struct tokmap_values_writer *writer = finishing->writer;
    const uint64_t count = writer->dataset->shard_count;
    enum tokmap_status status = TOKMAP_OK;
    finishing->shards = calloc((size_t)count, sizeof *finishing->shards);
    finishing->keys = calloc((size_t)count, sizeof *finishing->keys);
    if (!finishing->shards || !finishing->keys)
        return error_set_memory(error, "the shards with values", count * sizeof *finishing->shards);
    for (uint64_t s = 0; s < count && !status; s++) {
        struct values_partials partials;
        const struct shard *shard;
        status = shard_hold(writer->dataset, s, &shard, error);
        if (status)
            break;
        status = folder_lock(finishing, shard->index_path, error);
        if (!status)
            status = values_partials_open(writer, shard->index_path, &shard->index, &partials, error);
        if (!status) {
            struct values_file values = {.fd = -1};
            if (!partials.work) /* notes about finished values are removed, too */
                status = values_file_open(&values, shard->index_path, &shard->index, writer->arrays->name, error);
            finishing->shards[finishing->shard_count++] = (struct finished){.number = s,
                                                                            .work = partials.work + values.work,
                                                                            .tokens = shard->index.shard.tokens,
                                                                            .skipped = !partials.work};
            values_file_close(&values);
            values_partials_close(&partials);
        }
        shard_release(writer->dataset, s);
    }
    return status;
}

/* Gives each shard its places. */
static void places_give(struct finishing *finishing)
{
    struct key *keys = finishing->keys;
    for (uint64_t s = 0; s < finishing->shard_count; s++)
        keys[finishing->key_count++] = (struct key){finishing->shards[s].work, &finishing->shards[s]};
    qsort(keys, (size_t)finishing->key_count, sizeof *keys, key_compare);
    uint64_t kept = 0;
    for (uint64_t k = 0; k < finishing->key_count; k++) {
        if (kept && keys[kept - 1].work == keys[k].work) /* a manifest names it twice */
            keys[k].shard->skipped = true;
        else
            keys[kept++] = keys[k];
    }
    finishing->key_count = kept;
    for (uint64_t s = 0; s < finishing->shard_count; s++) {
        struct finished *at = &finishing->shards[s];
        at->base = finishing->places;
        finishing->places += at->skipped ? 0 : round_up(at->tokens, 64);
        finishing->result.tokens += at->skipped ? 0 : at->tokens;
    }
}

static int note_listed(void *user, const char *name)
{
    struct finishing *finishing = user;
    if (!strchr(name, '-')) /* the lock */
        return 0;
    if (!list_room(&finishing->notes, finishing->note_count, &finishing->note_room, sizeof *finishing->notes))
        return ENOMEM;
    char *path = path_in(finishing->listed, name);
    finishing->notes[finishing->note_count] = path;
    finishing->note_count += path != NULL;
    return path ? 0 : ENOMEM;
}

static enum tokmap_status notes_find(struct finishing *finishing, struct tokmap_error *error)
{
    int system = 0;
    for (uint64_t i = 0; i < finishing->folder_count && !system; i++) {
        finishing->listed = finishing->folders[i].path;
        system = os_folder_list(finishing->listed, note_listed, finishing);
    }
    if (!system && !(finishing->others = calloc((size_t)finishing->note_count + 1, sizeof *finishing->others)))
        system = ENOMEM;
    return system ? error_set_system(error, system, finishing->listed, TOKMAP_NO_OFFSET,
                                     "the notes of values cannot be listed")
                  : TOKMAP_OK;
}

/* ---- which tokens have values ---- */

static bool is_own(const struct tokmap_values_writer *writer, const char *path)
{
    for (uint64_t i = 0; i < writer->note_count; i++)
        if (!strcmp(writer->notes[i]->path, path))
            return true;
    return false;
}

static enum tokmap_status record_found(void *user, const struct values_record *record, struct tokmap_error *error)
{
    struct finishing *finishing = user;
    const char *path = finishing->notes[finishing->note];
    const struct key *key =
        &finishing->keys[last_at_most(&finishing->keys->work, sizeof *key, finishing->key_count, record->work)];
    if (!finishing->key_count || key->work != record->work) {
        finishing->others[finishing->note] = true;
        return TOKMAP_OK;
    }
    const struct finished *at = key->shard;
    if (at->skipped)
        return TOKMAP_OK;
    if (finishing->locked && !is_own(finishing->writer, path))
        return error_set(error, TOKMAP_ERROR_BUSY, path, TOKMAP_NO_OFFSET,
                         "another writer of these values is open (the name has its host and process); close it first");
    if (finishing->arrays != finishing->writer->arrays_hash)
        return error_set(error, TOKMAP_ERROR_MISMATCH, path, TOKMAP_NO_OFFSET,
                         "this writer had other arrays than those that are being finished; finish the ones that it "
                         "had, or remove its file");
    if (record->first > at->tokens || record->tokens > at->tokens - record->first)
        return error_set(error, TOKMAP_ERROR_CORRUPT, path, TOKMAP_NO_OFFSET,
                         "a note is about tokens after the last one of the shard; remove this file, and put again what "
                         "its writer had put");
    const uint64_t from = max64(at->base + record->first, finishing->first);
    const uint64_t to = min64(at->base + record->first + record->tokens, finishing->end);
    for (uint64_t word = from / 64; from < to && word <= (to - 1) / 64; word++) {
        const uint64_t mask = bits_of_word(word, from, to), index = word - finishing->first / 64;
        finishing->result.repeated += (uint64_t)__builtin_popcountll(finishing->bits[index] & mask);
        finishing->bits[index] |= mask;
    }
    return TOKMAP_OK;
}

/* Counts the bits of tokens [from, to) of a shard, and finds the first ones without values. */
static void bits_count(struct finishing *finishing, struct finished *at, uint64_t from, uint64_t to)
{
    const uint64_t *bits = finishing->bits + (at->base + from - finishing->first) / 64;
    for (uint64_t first = from; first < to; first += 64) {
        const uint64_t word = bits[(first - from) / 64], lacking = ~word & bits_of_word(0, 0, min64(to - first, 64));
        at->present += (uint64_t)__builtin_popcountll(word);
        if (lacking && !finishing->lacking) {
            finishing->lacking = at;
            finishing->lacking_first = first + (uint64_t)__builtin_ctzll(lacking);
            finishing->lacking_end = finishing->lacking_first;
        }
        while (finishing->lacking == at && finishing->lacking_end >= first &&
               finishing->lacking_end < min64(to, first + 64) && lacking >> (finishing->lacking_end - first) & 1)
            finishing->lacking_end++;
    }
}

/* Calls step() for the files of each shard that has places in [first, end). */
static enum tokmap_status
shards_do(struct finishing *finishing, uint64_t first, uint64_t end,
          enum tokmap_status (*step)(struct finishing *finishing, struct finished *at, const struct shard *shard,
                                     struct values_partials *partials, struct tokmap_error *error),
          struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t s = 0; s < finishing->shard_count && !status; s++) {
        struct finished *at = &finishing->shards[s];
        struct values_partials partials;
        const struct shard *shard;
        if (at->skipped || at->base >= end || at->base + at->tokens < first)
            continue;
        status = shard_hold(finishing->writer->dataset, at->number, &shard, error);
        if (status)
            break;
        status = values_partials_open(finishing->writer, shard->index_path, &shard->index, &partials, error);
        if (!status && partials.work != at->work) {
            status = error_set(error, TOKMAP_ERROR_BUSY, shard->index_path, TOKMAP_NO_OFFSET,
                               "the files of its values were removed while they were finished; call this again");
            values_partials_close(&partials);
        }
        if (!status) {
            status = step(finishing, at, shard, &partials, error);
            values_partials_close(&partials);
        }
        shard_release(finishing->writer->dataset, at->number);
    }
    return status;
}

/* Counts and stores the bits of a shard that are in memory. */
static enum tokmap_status bits_step(struct finishing *finishing, struct finished *at, const struct shard *shard,
                                    struct values_partials *partials, struct tokmap_error *error)
{
    (void)shard;
    const uint64_t begin = max64(at->base, finishing->first), end = min64(at->base + at->tokens, finishing->end);
    const uint64_t from = begin - at->base, to = end - at->base;
    for (uint32_t i = 0; i < finishing->writer->array_count && begin < end; i++) {
        const struct values_file *file = &partials->files[i];
        const uint64_t place = file->bitmap_at + from / 8;
        const int system = file->fd < 0 ? 0
                                        : os_pwrite(file->fd, finishing->bits + (begin - finishing->first) / 64,
                                                    (size_t)div_ceil(to - from, 8), place);
        if (system)
            return error_set_system(error, system, file->path, place, "the bitmap of values cannot be written");
    }
    if (begin < end)
        bits_count(finishing, at, from, to);
    return TOKMAP_OK;
}

/* Refuses tokens without values. */
static enum tokmap_status holes_check(struct finishing *finishing, struct tokmap_error *error)
{
    finishing->result.missing = finishing->result.tokens;
    for (uint64_t s = 0; s < finishing->shard_count; s++)
        finishing->result.missing -= finishing->shards[s].present;
    if (!finishing->result.missing || finishing->options.holes)
        return TOKMAP_OK;
    const struct shard_place *place = &finishing->writer->dataset->slots[finishing->lacking->number].place;
    const uint64_t first = finishing->lacking_first, end = finishing->lacking_end;
    char within[80] = "";
    if (first >= place->skipped_tokens && end - place->skipped_tokens <= place->tokens)
        (void)snprintf(within, sizeof within, " (%" PRIu64 "..%" PRIu64 " of the dataset)",
                       place->first_token + first - place->skipped_tokens,
                       place->first_token + end - 1 - place->skipped_tokens);
    return error_set(error, TOKMAP_ERROR_INPUT, finishing->writer->dataset->name, TOKMAP_NO_OFFSET,
                     "%" PRIu64 " of %" PRIu64 " tokens have no values, the first ones are tokens %" PRIu64 "..%" PRIu64
                     " of shard %" PRIu64 "%s; put them, or allow holes",
                     finishing->result.missing, finishing->result.tokens, first, end - 1, finishing->lacking->number,
                     within);
}

static enum tokmap_status bits_make(struct finishing *finishing, uint64_t piece, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    piece = min64(piece, finishing->places + 64);
    finishing->bits = malloc((size_t)piece / 8);
    if (!finishing->bits)
        return error_set_memory(error, "the bits of values", piece / 8);
    for (uint64_t first = 0; !status && (first < finishing->places || !first); first += piece) {
        finishing->first = first;
        finishing->end = first + piece;
        memset(finishing->bits, 0, (size_t)piece / 8);
        for (finishing->note = 0; finishing->note < finishing->note_count && !status; finishing->note++) {
            struct tokmap_error reason = {0};
            status = values_note_scan(finishing->notes[finishing->note], &finishing->arrays, &finishing->locked,
                                      record_found, finishing, &reason);
            if (finishing->locked && !status && !is_own(finishing->writer, finishing->notes[finishing->note]))
                finishing->others[finishing->note] = true;
            if (status == TOKMAP_ERROR_NOT_FOUND) /* its writer has closed it without a record */
                status = TOKMAP_OK;
            else if (status && error)
                *error = reason;
        }
        if (!status)
            status = shards_do(finishing, first, first + piece, bits_step, error);
    }
    return status ? status : holes_check(finishing, error);
}

/* ---- values ---- */

/* Returns the first element of `count` that is NaN, or `count`. */
static uint64_t nan_find(const uint8_t *bytes, uint64_t count, enum values_element element)
{
    const uint32_t infinity = element == VALUES_F16 ? 0x7c00 : 0x7f80;
    uint64_t i = 0;
    if (element == VALUES_F32)
        while (i < count && (load32(bytes + 4 * i) & 0x7fffffff) <= 0x7f800000)
            i++;
    else if (element == VALUES_F16 || element == VALUES_BF16)
        while (i < count && (load16(bytes + 2 * i) & 0x7fffu) <= infinity)
            i++;
    else
        i = count;
    return i;
}

/* Makes bytes [from, to) of the file zeros in the block, which begins at `at`. Returns whether some were not. */
static bool zeros_make(uint8_t *block, uint64_t at, uint64_t bytes, uint64_t from, uint64_t to)
{
    bool changed = false;
    from = max64(from, at);
    to = min64(to, at + bytes);
    for (uint64_t i = from; i < to; i++) {
        changed = changed || block[i - at];
        block[i - at] = 0;
    }
    return changed;
}

/* Checks and cleans the block of `bytes` bytes at byte `at` of a file. */
static enum tokmap_status block_finish(struct finishing *finishing, const struct finished *shard,
                                       const struct values_file *file, uint64_t at, uint64_t bytes,
                                       struct tokmap_error *error)
{
    const uint64_t size = file->array.value_bytes, end = VALUES_AT + file->tokens * size;
    const uint64_t first = min64((at - VALUES_AT) / size, file->tokens);
    const uint64_t last = min64(div_ceil(at + bytes - VALUES_AT, size), file->tokens);
    const uint64_t element = values_element_bytes(file->array.element);
    uint8_t *block = finishing->block;
    size_t got = 0;
    int system = os_pread(file->fd, block, (size_t)bytes, at, &got);
    if (!system && got == bytes)
        system = os_pread(file->fd, finishing->present, (size_t)(div_ceil(last, 8) - first / 8),
                          file->bitmap_at + first / 8, &got);
    else if (!system)
        system = EIO;
    bool changed = zeros_make(block, at, bytes, end, file->bitmap_at);
    for (uint64_t token = first; token < last && !system; token++)
        if (!(finishing->present[token / 8 - first / 8] >> token % 8 & 1))
            changed |= zeros_make(block, at, bytes, VALUES_AT + token * size, VALUES_AT + (token + 1) * size);
    if (!system && changed)
        system = os_pwrite(file->fd, block, (size_t)bytes, at);
    if (system)
        return error_set_system(error, system, file->path, at, "the values cannot be finished");
    const uint64_t count = at < end ? (min64(at + bytes, end) - at) / element : 0;
    const uint64_t bad = finishing->options.nan ? count : nan_find(block, count, file->array.element);
    if (bad == count)
        return TOKMAP_OK;
    const struct shard_place *place = &finishing->writer->dataset->slots[shard->number].place;
    const uint64_t token = (at + bad * element - VALUES_AT) / size;
    return error_set(error, TOKMAP_ERROR_INPUT, file->path, at + bad * element,
                     "a value '%s' of token %" PRIu64 " of the shard (%" PRIu64
                     " of the dataset) is NaN; put another one, or allow NaN",
                     file->array.name, token, place->first_token + token - place->skipped_tokens);
}

/* Cleans and hashes a file, and stores its hashes and its header. */
static enum tokmap_status file_finish(struct finishing *finishing, const struct finished *at,
                                      const struct values_file *file, const struct index *index,
                                      struct tokmap_error *error)
{
    const uint64_t end = values_hashed_end(file);
    uint64_t table[TABLE_ROOM], count = 0, place = file->hashes_at;
    struct values_header header;
    struct hash_state *state = hash_state_new();
    enum tokmap_status status =
        state ? values_header_make(&header, &file->array, index, error) : error_set_memory(error, "a hash", 0);
    int system = status ? 0 : os_truncate(file->fd, file->bytes);
    for (uint64_t byte = VALUES_AT; byte < end && !status && !system; byte += BLOCK_BYTES) {
        const uint64_t bytes = min64(BLOCK_BYTES, end - byte);
        status = block_finish(finishing, at, file, byte, bytes, error);
        table[count++] = hash64(finishing->block, (size_t)bytes);
        if (count < TABLE_ROOM && byte + bytes < end)
            continue;
        hash_state_add(state, table, (size_t)count * sizeof *table);
        system = status ? 0 : os_pwrite(file->fd, table, (size_t)count * sizeof *table, place);
        place += count * sizeof *table;
        count = 0;
    }
    if (!status && !system) {
        header.present = at->present;
        header.table_hash = hash_state_64(state);
        header.work = at->work;
        values_header_seal(&header);
        system = os_pwrite(file->fd, &header, sizeof header, 0);
    }
    if (!status && !system)
        system = os_sync(file->fd);
    hash_state_free(state);
    return system ? error_set_system(error, system, file->path, TOKMAP_NO_OFFSET, "the values cannot be finished")
                  : status;
}

static enum tokmap_status files_step(struct finishing *finishing, struct finished *at, const struct shard *shard,
                                     struct values_partials *partials, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; i < finishing->writer->array_count && !status; i++)
        if (partials->files[i].fd >= 0)
            status = file_finish(finishing, at, &partials->files[i], &shard->index, error);
    return status;
}

/* Gives the files of a shard their names. */
static enum tokmap_status names_step(struct finishing *finishing, struct finished *at, const struct shard *shard,
                                     struct values_partials *partials, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    (void)at;
    for (uint32_t i = 0; i < finishing->writer->array_count && !status; i++) {
        const struct values_file *file = &partials->files[i];
        if (file->fd < 0)
            continue;
        char *path = values_file_path(shard->index_path, file->array.name, VALUES_FINAL);
        const int system = path ? name_file(-1, file->path, path, true, NULL) : ENOMEM;
        if (system)
            status = error_set_system(error, system, path, TOKMAP_NO_OFFSET, "finished values cannot be renamed");
        free(path);
        finishing->result.files++;
    }
    return status;
}

static enum tokmap_status all_finish(struct finishing *finishing, uint64_t piece, struct tokmap_error *error)
{
    finishing->block = malloc((size_t)BLOCK_BYTES);
    finishing->present = malloc((size_t)BLOCK_BYTES / 8 + 8);
    enum tokmap_status status =
        finishing->block && finishing->present ? TOKMAP_OK : error_set_memory(error, "the values", BLOCK_BYTES);
    if (!status)
        status = shards_find(finishing, error);
    places_give(finishing);
    if (!status)
        status = notes_find(finishing, error);
    if (!status)
        status = bits_make(finishing, piece, error);
    if (!status)
        status = shards_do(finishing, 0, UINT64_MAX, files_step, error);
    if (!status)
        status = shards_do(finishing, 0, UINT64_MAX, names_step, error);
    for (uint64_t i = 0; i < finishing->note_count && !status; i++)
        if (!finishing->others[i] || is_own(finishing->writer, finishing->notes[i]))
            (void)os_unlink(finishing->notes[i]);
    return status;
}

enum tokmap_status values_finish(struct tokmap_values_writer *writer, const struct tokmap_values_options *options,
                                 uint64_t piece, struct tokmap_values_result *result, struct tokmap_error *error)
{
    struct finishing finishing = {.writer = writer, .options = *options, .result.size = sizeof finishing.result};
    enum tokmap_status status = values_sync(writer, error);
    if (status)
        return status;
    status = all_finish(&finishing, piece, error);
    if (!status) {
        os_mutex_lock(writer->mutex);
        values_writer_release(writer);
        os_mutex_unlock(writer->mutex);
    }
    for (uint64_t i = 0; i < finishing.folder_count; i++) {
        values_notes_unlock(finishing.folders[i].path, finishing.folders[i].lock);
        free(finishing.folders[i].path);
    }
    for (uint64_t i = 0; i < finishing.note_count; i++)
        free(finishing.notes[i]);
    free(finishing.notes);
    free(finishing.others);
    free(finishing.folders);
    free(finishing.shards);
    free(finishing.keys);
    free(finishing.bits);
    free(finishing.block);
    free(finishing.present);
    *result = finishing.result;
    return status;
}

enum tokmap_status tokmap_values_finish(struct tokmap_values_writer *writer,
                                        const struct tokmap_values_options *options,
                                        struct tokmap_values_result *result, struct tokmap_error *error)
{
    static const struct tokmap_values_options defaults = TOKMAP_VALUES_OPTIONS_INIT;
    struct tokmap_values_options given;
    struct tokmap_values_result made;
    if (!writer)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "the writer is NULL");
    enum tokmap_status status =
        struct_copy_in(&given, options, &defaults, sizeof given, "tokmap_values_options", error);
    if (!status && result)
        status = struct_size_check(result, sizeof *result, "tokmap_values_result", error);
    if (!status)
        status = values_finish(writer, &given, PIECE, &made, error);
    return status || !result ? status : struct_copy_out(result, &made, sizeof made, "tokmap_values_result", error);
}
