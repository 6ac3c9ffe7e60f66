/* SPDX-License-Identifier: MIT */
/*
 * values_finish.c - makes final files of values out of those that writers have filled, and of their notes.
 *
 * For each shard, the bits that say which tokens have values are made of all notes, at most `piece` of them at a time,
 * and stored in the files. Example: a shard of 100 tokens, and the notes {0, 90} and {80, 20}: all tokens have values,
 * and 10 were put twice.
 *
 * Nothing is final before everything is checked: 1. bits of all shards, 2. values (those without a bit become zeros),
 * hashes, and headers, 3. names, 4. notes are removed. A kill leaves notes and files that are being written, or some
 * final files and the rest of the work; calling it again does what is left.
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

#define PIECE ((uint64_t)1 << 30) /* tokens whose bits are in memory at once: 128 MiB */
#define TABLE_ROOM 4096           /* hashes that are written at once */

struct finished {
    uint64_t work, present;
    bool skipped; /* all arrays of the shard are final, or a manifest names it twice */
};

struct folder {
    char *path;
    int lock;
};

struct note {
    char *path;
    uint64_t records, matched; /* matched: records about shards that are finished */
    bool locked, own;
};

struct finishing {
    struct tokmap_values_writer *writer;
    struct tokmap_values_options options;
    struct tokmap_values_result result;
    uint64_t piece;
    struct finished *shards; /* one for each of the dataset */
    struct folder *folders;
    uint64_t folder_count, folder_room;
    const char *listed;        /* the folder whose notes are listed */
    struct note *notes, *note; /* note: the one that is read */
    uint64_t note_count, note_room;
    uint64_t work, tokens;      /* of the shard whose bits are made */
    uint64_t *bits, first, end; /* of tokens [first, end) */
    char lacking[120];          /* the first tokens without values, for a message */
    uint8_t *block, *present;   /* a MiB of a file, and the bits of its tokens */
};

/* Calls step() for the shards that are not skipped, with their files. */
static enum tokmap_status
shards_do(struct finishing *finishing,
          enum tokmap_status (*step)(struct finishing *finishing, uint64_t number, const struct shard *shard,
                                     struct values_partials *partials, struct tokmap_error *error),
          struct tokmap_error *error)
{
    const struct tokmap_values_writer *writer = finishing->writer;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t s = 0; s < writer->dataset->shard_count && !status; s++) {
        struct values_partials partials;
        const struct shard *shard;
        if (finishing->shards[s].skipped)
            continue;
        status = shard_hold(writer->dataset, s, &shard, error);
        if (status)
            break;
        status = values_partials_open(writer, shard->index_path, &shard->index, &partials, error);
        if (!status) {
            status = step(finishing, s, shard, &partials, error);
            values_partials_close(&partials);
        }
        shard_release(writer->dataset, s);
    }
    return status;
}

/* ---- notes ---- */

static int note_listed(void *user, const char *name)
{
    struct finishing *finishing = user;
    if (!strchr(name, '-')) /* the lock */
        return 0;
    if (!list_room(&finishing->notes, finishing->note_count, &finishing->note_room, sizeof *finishing->notes))
        return ENOMEM;
    struct note *note = &finishing->notes[finishing->note_count];
    *note = (struct note){.path = path_in(finishing->listed, name)};
    for (uint64_t i = 0; i < finishing->writer->note_count && note->path; i++)
        note->own = note->own || !strcmp(finishing->writer->notes[i]->path, note->path);
    finishing->note_count += note->path != NULL;
    return note->path ? 0 : ENOMEM;
}

/* Locks the folder of the notes about a shard, and lists them. */
static enum tokmap_status folder_open(struct finishing *finishing, const char *index_path, struct tokmap_error *error)
{
    char *path = values_notes_folder(finishing->writer, index_path);
    if (!path ||
        !list_room(&finishing->folders, finishing->folder_count, &finishing->folder_room, sizeof *finishing->folders)) {
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
    const enum tokmap_status status = values_notes_lock(path, &folder->lock, error);
    finishing->listed = path;
    const int system = status ? 0 : os_folder_list(path, note_listed, finishing);
    return system ? error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the notes of values cannot be listed")
                  : status;
}

static enum tokmap_status folders_open(struct finishing *finishing, struct tokmap_error *error)
{
    const struct tokmap_dataset *dataset = finishing->writer->dataset;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t s = 0; s < dataset->shard_count && !status; s++) {
        const struct shard *shard;
        status = shard_hold(dataset, s, &shard, error);
        if (status)
            break;
        status = folder_open(finishing, shard->index_path, error);
        shard_release(dataset, s);
    }
    return status;
}

static enum tokmap_status record_found(void *user, const struct values_record *record, struct tokmap_error *error)
{
    struct finishing *finishing = user;
    struct note *note = finishing->note;
    note->records += !finishing->first;
    if (record->work != finishing->work)
        return TOKMAP_OK;
    note->matched += !finishing->first;
    if (!finishing->bits) /* of final values */
        return TOKMAP_OK;
    if (note->locked && !note->own)
        return error_set(error, TOKMAP_ERROR_BUSY, note->path, TOKMAP_NO_OFFSET,
                         "another writer of these values is open (the name has its host and process); close it first");
    if (record->first > finishing->tokens || record->tokens > finishing->tokens - record->first)
        return error_set(error, TOKMAP_ERROR_CORRUPT, note->path, TOKMAP_NO_OFFSET,
                         "a note is about tokens after the last one of the shard; remove this file, and put again what "
                         "its writer had put");
    const uint64_t from = max64(record->first, finishing->first);
    const uint64_t to = min64(record->first + record->tokens, finishing->end);
    for (uint64_t word = from / 64; from < to && word <= (to - 1) / 64; word++) {
        const uint64_t mask = bits_of_word(word, from, to), index = word - finishing->first / 64;
        finishing->result.repeated += (uint64_t)__builtin_popcountll(finishing->bits[index] & mask);
        finishing->bits[index] |= mask;
    }
    return TOKMAP_OK;
}

static enum tokmap_status notes_read(struct finishing *finishing, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < finishing->note_count && !status; i++) {
        struct tokmap_error reason = {0};
        struct note *note = finishing->note = &finishing->notes[i];
        note->records = finishing->first ? note->records : 0;
        status = values_note_scan(note->path, &note->locked, record_found, finishing, &reason);
        if (status == TOKMAP_ERROR_NOT_FOUND) /* its writer has closed it without a record */
            status = TOKMAP_OK;
        else if (status)
            *error = reason;
    }
    return status;
}

/* ---- which tokens have values ---- */

/* Counts the bits at hand, and keeps the first tokens without one for a message. */
static void bits_count(struct finishing *finishing, uint64_t number)
{
    const struct shard_place *place = &finishing->writer->dataset->slots[number].place;
    const uint64_t *bits = finishing->bits, count = finishing->end - finishing->first;
    uint64_t present = 0, lack = 0;
    for (uint64_t i = 0; i < div_ceil(count, 64); i++)
        present += (uint64_t)__builtin_popcountll(bits[i]);
    finishing->shards[number].present += present;
    if (present == count || *finishing->lacking)
        return;
    while (bits[lack / 64] >> lack % 64 & 1)
        lack++;
    uint64_t end = lack;
    while (end < count && !(bits[end / 64] >> end % 64 & 1))
        end++;
    const uint64_t first = finishing->first + lack, last = finishing->first + end - 1;
    const int used = snprintf(finishing->lacking, sizeof finishing->lacking,
                              "tokens %" PRIu64 "..%" PRIu64 " of shard %" PRIu64, first, last, number);
    if (first >= place->skipped_tokens && last - place->skipped_tokens < place->tokens)
        (void)snprintf(finishing->lacking + used, sizeof finishing->lacking - (size_t)used,
                       " (%" PRIu64 "..%" PRIu64 " of the dataset)", place->first_token + first - place->skipped_tokens,
                       place->first_token + last - place->skipped_tokens);
}

/* Makes the bits of a shard, and stores them in its files. */
static enum tokmap_status bits_make(struct finishing *finishing, uint64_t number,
                                    const struct values_partials *partials, struct tokmap_error *error)
{
    const uint64_t room = min64(finishing->piece, round_up(finishing->tokens + 1, 64));
    enum tokmap_status status = TOKMAP_OK;
    finishing->bits = malloc((size_t)room / 8);
    if (!finishing->bits)
        return error_set_memory(error, "the bits of values", room / 8);
    for (uint64_t first = 0; !status && (!first || first < finishing->tokens); first += room) {
        finishing->first = first;
        finishing->end = min64(finishing->tokens, first + room);
        memset(finishing->bits, 0, (size_t)room / 8);
        status = notes_read(finishing, error);
        if (!status)
            bits_count(finishing, number);
        for (uint32_t i = 0; i < finishing->writer->array_count && !status; i++) {
            const struct values_file *file = &partials->files[i];
            const uint64_t bytes = div_ceil(finishing->end - first, 8), place = file->bitmap_at + first / 8;
            const int system = file->fd < 0 ? 0 : os_pwrite(file->fd, finishing->bits, (size_t)bytes, place);
            if (system)
                status = error_set_system(error, system, file->path, place, "the bitmap of values cannot be written");
        }
    }
    free(finishing->bits);
    finishing->bits = NULL;
    return status;
}

static enum tokmap_status bits_step(struct finishing *finishing, uint64_t number, const struct shard *shard,
                                    struct values_partials *partials, struct tokmap_error *error)
{
    struct finished *at = &finishing->shards[number];
    struct values_file values = {.fd = -1};
    enum tokmap_status status = TOKMAP_OK;
    if (!partials->work) /* notes about final values are removed, too */
        status = values_file_open(&values, shard->index_path, &shard->index, finishing->writer->arrays->name, error);
    at->work = finishing->work = partials->work + values.work;
    values_file_close(&values);
    for (uint64_t s = 0; s < number; s++)
        at->skipped = at->skipped || finishing->shards[s].work == at->work;
    if (status || at->skipped)
        return status;
    at->skipped = !partials->work;
    finishing->first = 0;
    if (at->skipped)
        return notes_read(finishing, error);
    finishing->tokens = shard->index.shard.tokens;
    finishing->result.tokens += finishing->tokens;
    return bits_make(finishing, number, partials, error);
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
static enum tokmap_status block_finish(struct finishing *finishing, uint64_t number, const struct values_file *file,
                                       uint64_t at, uint64_t bytes, struct tokmap_error *error)
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
    const struct shard_place *place = &finishing->writer->dataset->slots[number].place;
    const uint64_t token = (at + bad * element - VALUES_AT) / size;
    return error_set(error, TOKMAP_ERROR_INPUT, file->path, at + bad * element,
                     "a value '%s' of token %" PRIu64 " of the shard (%" PRIu64
                     " of the dataset) is NaN; put another one, or allow NaN",
                     file->array.name, token, place->first_token + token - place->skipped_tokens);
}

/* Cleans and hashes a file, and stores its hashes and its header. */
static enum tokmap_status file_finish(struct finishing *finishing, uint64_t number, const struct values_file *file,
                                      const struct index *index, struct tokmap_error *error)
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
        status = block_finish(finishing, number, file, byte, bytes, error);
        table[count++] = hash64(finishing->block, (size_t)bytes);
        if (count < TABLE_ROOM && byte + bytes < end)
            continue;
        hash_state_add(state, table, (size_t)count * sizeof *table);
        system = status ? 0 : os_pwrite(file->fd, table, (size_t)count * sizeof *table, place);
        place += count * sizeof *table;
        count = 0;
    }
    if (!status && !system) {
        header.present = finishing->shards[number].present;
        header.table_hash = hash_state_64(state);
        header.work = finishing->shards[number].work;
        values_header_seal(&header);
        system = os_pwrite(file->fd, &header, sizeof header, 0);
    }
    if (!status && !system)
        system = os_sync(file->fd);
    hash_state_free(state);
    return system ? error_set_system(error, system, file->path, TOKMAP_NO_OFFSET, "the values cannot be finished")
                  : status;
}

static enum tokmap_status files_step(struct finishing *finishing, uint64_t number, const struct shard *shard,
                                     struct values_partials *partials, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; i < finishing->writer->array_count && !status; i++)
        if (partials->files[i].fd >= 0)
            status = file_finish(finishing, number, &partials->files[i], &shard->index, error);
    return status;
}

/* Gives the files of a shard their names. */
static enum tokmap_status names_step(struct finishing *finishing, uint64_t number, const struct shard *shard,
                                     struct values_partials *partials, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    (void)number;
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

static enum tokmap_status all_finish(struct finishing *finishing, struct tokmap_error *error)
{
    const struct tokmap_dataset *dataset = finishing->writer->dataset;
    finishing->block = malloc((size_t)BLOCK_BYTES);
    finishing->present = malloc((size_t)BLOCK_BYTES / 8 + 8);
    finishing->shards = calloc((size_t)dataset->shard_count, sizeof *finishing->shards);
    if (!finishing->block || !finishing->present || !finishing->shards)
        return error_set_memory(error, "the values", BLOCK_BYTES);
    enum tokmap_status status = values_sync(finishing->writer, error);
    if (!status)
        status = folders_open(finishing, error);
    if (!status)
        status = shards_do(finishing, bits_step, error);
    finishing->result.missing = finishing->result.tokens;
    for (uint64_t s = 0; s < dataset->shard_count; s++)
        finishing->result.missing -= finishing->shards[s].present;
    if (!status && finishing->result.missing && !finishing->options.holes)
        status =
            error_set(error, TOKMAP_ERROR_INPUT, dataset->name, TOKMAP_NO_OFFSET,
                      "%" PRIu64 " of %" PRIu64 " tokens have no values, the first ones are %s; put them, or allow "
                      "holes",
                      finishing->result.missing, finishing->result.tokens, finishing->lacking);
    if (!status)
        status = shards_do(finishing, files_step, error);
    if (!status)
        status = shards_do(finishing, names_step, error);
    for (uint64_t i = 0; i < finishing->note_count && !status; i++) {
        const struct note *note = &finishing->notes[i];
        if (note->own || (!note->locked && note->matched == note->records))
            (void)os_unlink(note->path);
    }
    return status;
}

enum tokmap_status values_finish(struct tokmap_values_writer *writer, const struct tokmap_values_options *options,
                                 uint64_t piece, struct tokmap_values_result *result, struct tokmap_error *error)
{
    struct finishing finishing = {.writer = writer, .options = *options, .piece = piece};
    struct tokmap_error failure = {0};
    const enum tokmap_status status = all_finish(&finishing, &failure);
    finishing.result.size = sizeof finishing.result;
    if (status && error)
        *error = failure;
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
        free(finishing.notes[i].path);
    free(finishing.notes);
    free(finishing.folders);
    free(finishing.shards);
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
