/* SPDX-License-Identifier: MIT */
/*
 * values_writer.c - opens the files of values, writes to them, and notes what is on storage. values_finish.c makes the
 * final files of them.
 *
 * A put writes to the files and adds a record to a list. A thread syncs the files every FLUSH_NS, and only then appends
 * the records to the writer's notes. So whatever kills the program, every token of a note has its values, and a token
 * without a note is written again.
 *
 * Example: a teacher's windows come in any order, from shards a and b. Put 1 writes tokens 0 to 2047 of b, put 2 tokens
 * 4096 to 6143 of a, put 3 tokens 2048 to 4095 of b. The thread syncs the files of a and b, and notes
 * {a, 4096, 2048} and {b, 0, 4096}.
 */
#include "values_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "common/struct_copy.h"
#include "documents.h"
#include "format/name_files.h"
#include "open_shards.h"
#include "text/path.h"

#define FLUSH_NS 4000000000u
#define FILES_MOST 128 /* of values that are open at the same time */

/* ---- the files of a shard ---- */

char *values_notes_folder(const struct tokmap_values_writer *writer, const char *index_path)
{
    return path_join(index_path, path_folder_bytes(index_path), writer->arrays->name, strlen(writer->arrays->name),
                     VALUES_NOTES_ENDING);
}

void values_partials_close(struct values_partials *partials)
{
    for (uint32_t i = 0; i < VALUES_ARRAYS_MOST; i++)
        values_file_close(&partials->files[i]);
}

/* Makes a file that is being written, with nothing but its header, in place of what has the name. */
static enum tokmap_status partial_make(const struct values_array *array, const char *index_path,
                                       const struct index *index, uint64_t work, struct tokmap_error *error)
{
    struct values_header header;
    enum tokmap_status status = values_header_make(&header, array, index, error);
    if (status)
        return status;
    header.work = work;
    values_header_seal(&header);
    char *path = values_file_path(index_path, array->name, VALUES_PARTIAL);
    char *made = path ? path_ended(path, ".new") : NULL;
    int fd = -1, system = made ? os_unlink(made) : ENOMEM; /* of a writer that was killed */
    if (!system || system == ENOENT)
        system = os_open(made, OS_WRITE_NEW, &fd);
    if (!system)
        system = os_pwrite(fd, &header, sizeof header, 0);
    if (!system)
        system = name_file(fd, made, path, true, NULL);
    if (system)
        status = error_set_system(error, system, path, TOKMAP_NO_OFFSET, "a file for values cannot be made");
    os_close(fd);
    free(path);
    free(made);
    return status;
}

/* Opens the file of an array, if there is one. Sets *final if there are finished values that stay instead. */
static enum tokmap_status partial_find(const struct tokmap_values_writer *writer, const char *index_path,
                                       const struct index *index, uint32_t number, struct values_file *file,
                                       bool *final, struct tokmap_error *error)
{
    const struct values_array *array = &writer->arrays[number];
    struct tokmap_error reason = {0};
    struct os_stat found;
    enum tokmap_status status = values_partial_open(file, index_path, index, array->name, &reason);
    if (status == TOKMAP_ERROR_NOT_FOUND) {
        char *path = values_file_path(index_path, array->name, VALUES_FINAL);
        *final = *final || (path && !writer->replace && !os_lstat(path, &found));
        free(path);
        return TOKMAP_OK;
    }
    if (!status && !values_type_equals(&file->array, array))
        status = error_set(&reason, TOKMAP_ERROR_MISMATCH, file->path, offsetof(struct values_header, element),
                           "these unfinished values are %s, but %s is asked for; ask for their type, or remove the "
                           "unfinished files to begin again",
                           VALUES_TYPE(&file->array), VALUES_TYPE(array));
    else if (!status && (uint32_t)file->work != (uint32_t)writer->arrays_hash)
        status = error_set(&reason, TOKMAP_ERROR_MISMATCH, file->path, offsetof(struct values_header, work),
                           "these unfinished values were begun with other arrays beside them, or in another order; ask "
                           "for the same ones, or remove the unfinished files to begin again");
    if (status)
        *error = reason;
    return status;
}

enum tokmap_status values_partials_open(const struct tokmap_values_writer *writer, const char *index_path,
                                        const struct index *index, struct values_partials *partials,
                                        struct tokmap_error *error)
{
    bool final = false, missing = false;
    enum tokmap_status status = TOKMAP_OK;
    *partials = (struct values_partials){0};
    for (uint32_t i = 0; i < VALUES_ARRAYS_MOST; i++)
        partials->files[i].fd = -1;
    for (uint32_t i = 0; i < writer->array_count && !status; i++) {
        const struct values_file *file = &partials->files[i];
        status = partial_find(writer, index_path, index, i, &partials->files[i], &final, error);
        missing = missing || file->fd < 0 || (partials->work && file->work != partials->work);
        partials->work = file->fd < 0 ? partials->work : file->work;
    }
    if (!status && missing && !final) { /* notes about the others say nothing about it, so all begin again */
        uint32_t random = 0;
        const int system = os_random(&random, sizeof random);
        partials->work = (uint64_t)random << 32 | (uint32_t)writer->arrays_hash;
        if (system)
            status = error_set_system(error, system, NULL, TOKMAP_NO_OFFSET, "the kernel gives no random number");
        for (uint32_t i = 0; i < writer->array_count && !status; i++) {
            const struct values_array *array = &writer->arrays[i];
            values_file_close(&partials->files[i]);
            status = partial_make(array, index_path, index, partials->work, error);
            if (!status)
                status = values_partial_open(&partials->files[i], index_path, index, array->name, error);
        }
    }
    if (status)
        values_partials_close(partials);
    return status;
}

/* ---- open shards ---- */

/* Returns the note of a folder, which is locked; NULL after a failure. */
static struct values_note *note_of(struct tokmap_values_writer *writer, const char *folder, struct tokmap_error *error)
{
    for (uint64_t i = 0; i < writer->note_count; i++)
        if (!strcmp(writer->notes[i]->folder, folder))
            return writer->notes[i];
    struct values_note *note = malloc(sizeof *note);
    if (!note || !list_room(&writer->notes, writer->note_count, &writer->note_room, sizeof *writer->notes))
        (void)error_set_memory(error, "the notes of values", sizeof *note);
    else if (!values_note_open(note, folder, error))
        return writer->notes[writer->note_count++] = note;
    free(note);
    return NULL;
}

/* Opens the files of a shard, the folder of whose notes is locked, and notes that they are open. */
static enum tokmap_status files_open(struct tokmap_values_writer *writer, const struct shard *shard, const char *folder,
                                     struct values_shard *into, struct tokmap_error *error)
{
    enum tokmap_status status = values_partials_open(writer, shard->index_path, &shard->index, &into->partials, error);
    if (status)
        return status;
    for (uint32_t i = 0; i < writer->array_count && !status; i++)
        if (into->partials.files[i].fd < 0)
            status = error_set(error, TOKMAP_ERROR_EXISTS, shard->index_path, TOKMAP_NO_OFFSET,
                               "the shard has finished values '%s'; choose another name, or replace it",
                               writer->arrays[i].name);
    into->note = status ? NULL : note_of(writer, folder, error);
    if (!status)
        status = into->note ? values_note_opened(into->note, into->partials.work, error) : error->status;
    if (status)
        values_partials_close(&into->partials);
    return status;
}

/* Brings what was put to a shard to storage, and notes nothing yet. */
static enum tokmap_status shard_sync(const struct tokmap_values_writer *writer, struct values_shard *shard,
                                     struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; i < writer->array_count && shard->dirty && !status; i++) {
        const int system = os_sync(shard->partials.files[i].fd);
        if (system)
            status = error_set_system(error, system, shard->partials.files[i].path, TOKMAP_NO_OFFSET,
                                      "what was written is not on storage; what was put since the last note is lost: "
                                      "close the writer, and put it again with a new one");
    }
    shard->dirty = false;
    return status;
}

/* Opens a shard, if it is not open, in place of the one that was put to least recently. */
static enum tokmap_status shard_begin(struct tokmap_values_writer *writer, uint64_t number, struct values_shard **found,
                                      struct tokmap_error *error)
{
    const struct shard *held;
    int lock;
    struct values_shard *at = writer->shards;
    for (uint64_t s = 0; s < writer->shard_room; s++) {
        *found = &writer->shards[s];
        if ((*found)->used && (*found)->number == number)
            return TOKMAP_OK;
        at = (*found)->used < at->used ? *found : at;
    }
    *found = at;
    enum tokmap_status status = shard_sync(writer, at, &writer->failure);
    if (at->used)
        values_partials_close(&at->partials);
    at->used = 0;
    if (status)
        *error = writer->failure;
    if (status || (status = shard_hold(writer->dataset, number, &held, error)))
        return status;
    char *folder = values_notes_folder(writer, held->index_path);
    if (!held->index.bytes)
        status = error_set(error, TOKMAP_ERROR_NOT_FOUND, held->index_path, TOKMAP_NO_OFFSET,
                           "these files have no index, which values need; run `tokmap index` on them first");
    else
        status = folder ? values_notes_lock(folder, &lock, error) : error_set_memory(error, "the notes of values", 0);
    if (!status) {
        status = files_open(writer, held, folder, at, error);
        values_notes_unlock(folder, lock);
    }
    free(folder);
    shard_release(writer->dataset, number);
    at->number = number;
    at->used = status ? 0 : ++writer->puts;
    return status;
}

/* ---- storage ---- */

/* Brings all that was put to storage, and notes it. The mutex is locked. */
static enum tokmap_status flush(struct tokmap_values_writer *writer)
{
    struct tokmap_error *failure = &writer->failure;
    for (uint64_t s = 0; s < writer->shard_room && !failure->status; s++)
        (void)shard_sync(writer, &writer->shards[s], failure);
    for (uint64_t i = 0; i < writer->note_count && !failure->status; i++)
        (void)values_note_store(writer->notes[i], failure);
    return failure->status;
}

static void flush_often(void *user)
{
    struct tokmap_values_writer *writer = user;
    os_mutex_lock(writer->mutex);
    while (!writer->closing)
        if (!os_condition_wait_for(writer->wake, writer->mutex, FLUSH_NS))
            (void)flush(writer);
    os_mutex_unlock(writer->mutex);
}

void values_writer_release(struct tokmap_values_writer *writer)
{
    for (uint64_t s = 0; s < writer->shard_room; s++)
        if (writer->shards[s].used) {
            values_partials_close(&writer->shards[s].partials);
            writer->shards[s].used = 0;
        }
    for (uint64_t i = 0; i < writer->note_count; i++) {
        values_note_close(writer->notes[i]);
        free(writer->notes[i]);
    }
    writer->note_count = 0;
}

/* ---- the functions of values.h ---- */

/* Writes the tokens of a put that are in one shard. */
static enum tokmap_status part_write(struct tokmap_values_writer *writer, uint64_t number, uint64_t first,
                                     uint64_t count, const uint8_t **values, struct tokmap_error *error)
{
    struct values_shard *shard;
    enum tokmap_status status = shard_begin(writer, number, &shard, error);
    if (status)
        return status;
    shard->used = ++writer->puts;
    shard->dirty = true;
    for (uint32_t i = 0; i < writer->array_count; i++) {
        const struct values_file *file = &shard->partials.files[i];
        const uint64_t bytes = count * file->array.value_bytes, at = VALUES_AT + first * file->array.value_bytes;
        const int system = os_pwrite(file->fd, values[i], (size_t)bytes, at);
        if (system)
            return error_set_system(error, system, file->path, at,
                                    "the values of token %" PRIu64 " of the shard, and those after it, cannot be "
                                    "written; put them again",
                                    first);
        os_write_behind(file->fd, at, bytes);
        values[i] += bytes;
    }
    const struct values_record record = {shard->partials.work, first, count};
    return values_note_wait(shard->note, &record) ? TOKMAP_OK : error_set_memory(error, "the notes of values", 0);
}

enum tokmap_status values_arguments_check(const struct tokmap_values_writer *writer, const void *const *values,
                                          struct tokmap_error *error)
{
    if (!writer || !values)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "the %s NULL",
                         writer ? "values are" : "writer is");
    for (uint32_t i = 0; i < writer->array_count; i++)
        if (!values[i])
            return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "the values '%s' are NULL",
                             writer->arrays[i].name);
    return TOKMAP_OK;
}

enum tokmap_status values_put_at(struct tokmap_values_writer *writer, uint64_t token, uint64_t count,
                                 const void *const *values, struct tokmap_error *error)
{
    const uint8_t *from[VALUES_ARRAYS_MOST];
    const struct tokmap_dataset *dataset = writer->dataset;
    for (uint32_t i = 0; i < writer->array_count; i++)
        from[i] = values[i];
    if (token > dataset->tokens || count > dataset->tokens - token)
        return error_set(error, TOKMAP_ERROR_RANGE, dataset->name, TOKMAP_NO_OFFSET,
                         "values are put to %" PRIu64 " tokens from token %" PRIu64 " on, but the dataset has %" PRIu64,
                         count, token, dataset->tokens);
    os_mutex_lock(writer->mutex);
    struct tokmap_error failure = writer->failure;
    for (uint64_t number = 0, part; count && !failure.status; token += part, count -= part) {
        number = dataset_shard_of(dataset, token, number);
        const struct shard_place *place = &dataset->slots[number].place;
        const uint64_t within = token - place->first_token;
        part = min64(count, place->tokens - within);
        (void)part_write(writer, number, place->skipped_tokens + within, part, from, &failure);
    }
    os_mutex_unlock(writer->mutex);
    if (failure.status && error)
        *error = failure;
    return failure.status;
}

enum tokmap_status tokmap_values_put_at(struct tokmap_values_writer *writer, uint64_t token, uint64_t count,
                                        const void *const *values, struct tokmap_error *error)
{
    const enum tokmap_status status = values_arguments_check(writer, values, error);
    return status ? status : values_put_at(writer, token, count, values, error);
}

enum tokmap_status values_sync(struct tokmap_values_writer *writer, struct tokmap_error *error)
{
    os_mutex_lock(writer->mutex);
    const enum tokmap_status status = flush(writer);
    if (status && error)
        *error = writer->failure;
    os_mutex_unlock(writer->mutex);
    return status;
}

enum tokmap_status tokmap_values_sync(struct tokmap_values_writer *writer, struct tokmap_error *error)
{
    return writer ? values_sync(writer, error)
                  : error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "the writer is NULL");
}

void values_discard(struct tokmap_values_writer *writer)
{
    const struct tokmap_dataset *dataset = writer->dataset;
    if (values_sync(writer, NULL))
        return;
    for (uint64_t s = 0; s < dataset->shard_count; s++) {
        const struct shard *shard;
        if (shard_hold(dataset, s, &shard, NULL))
            continue;
        for (uint32_t i = 0; i < writer->array_count; i++) {
            char *path = values_file_path(shard->index_path, writer->arrays[i].name, VALUES_PARTIAL);
            if (path)
                (void)os_unlink(path);
            free(path);
        }
        shard_release(dataset, s);
    }
    for (uint64_t i = 0; i < writer->note_count; i++)
        writer->notes[i]->noted = false; /* close() removes it */
}

static void writer_free(struct tokmap_values_writer *writer)
{
    values_writer_release(writer);
    os_condition_free(writer->wake);
    os_mutex_free(writer->mutex);
    free(writer->shards);
    free(writer->notes);
    free(writer);
}

/* Makes a writer, and opens the first shard without finished values. */
static enum tokmap_status writer_begin(struct tokmap_values_writer *writer, const char *arrays,
                                       struct tokmap_error *error)
{
    struct values_shard *shard;
    enum tokmap_status status = values_arrays_parse(arrays, writer->arrays, &writer->array_count, error);
    if (status)
        return status;
    for (uint32_t i = 0; i < writer->array_count; i++) {
        char text[sizeof writer->arrays->name + VALUES_TYPE_TEXT];
        const int bytes = snprintf(text, sizeof text, "%s:%s", writer->arrays[i].name, VALUES_TYPE(&writer->arrays[i]));
        writer->arrays_hash = hash64_seeded(text, (size_t)bytes, writer->arrays_hash);
    }
    const uint64_t room = FILES_MOST / writer->array_count;
    writer->shards = calloc((size_t)room, sizeof *writer->shards);
    writer->shard_room = writer->shards ? room : 0;
    if (!writer->shards || os_mutex_new(&writer->mutex) || os_condition_new(&writer->wake))
        return error_set_memory(error, "a writer of values", room * sizeof *writer->shards);
    status = TOKMAP_ERROR_EXISTS;
    for (uint64_t s = 0; s < writer->dataset->shard_count && status == TOKMAP_ERROR_EXISTS; s++) {
        status = shard_begin(writer, s, &shard, error);
        if (status == TOKMAP_ERROR_EXISTS && shard->partials.work) /* some arrays are to be finished yet */
            status = TOKMAP_OK;
    }
    if (status)
        return status;
    const int system = os_thread_start(&writer->thread, "tokmap-values", flush_often, writer);
    return system ? error_set_system(error, system, NULL, TOKMAP_NO_OFFSET, "a thread cannot be started") : TOKMAP_OK;
}

enum tokmap_status tokmap_values_open(struct tokmap_values_writer **writer, const struct tokmap_dataset *dataset,
                                      const char *arrays, const struct tokmap_values_options *options,
                                      struct tokmap_error *error)
{
    static const struct tokmap_values_options defaults = TOKMAP_VALUES_OPTIONS_INIT;
    struct tokmap_values_options given;
    struct tokmap_error failure = {0};
    if (!writer || !dataset || !arrays)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "the %s is NULL",
                         writer ? (dataset ? "text of arrays" : "dataset") : "address of the writer");
    *writer = NULL;
    enum tokmap_status status =
        struct_copy_in(&given, options, &defaults, sizeof given, "tokmap_values_options", error);
    if (status)
        return status;
    if (dataset->cache || !dataset->shard_count)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, dataset->name, TOKMAP_NO_OFFSET,
                         "values are written beside shards on local disks, and this dataset has none there; copy it "
                         "with `tokmap copy` first");
    struct tokmap_values_writer *made = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "a writer of values", sizeof *made);
    made->dataset = dataset;
    made->replace = given.replace;
    status = writer_begin(made, arrays, &failure);
    if (status)
        writer_free(made);
    else
        *writer = made;
    if (status && error)
        *error = failure;
    return status;
}

enum tokmap_status tokmap_values_close(struct tokmap_values_writer *writer, struct tokmap_error *error)
{
    if (!writer)
        return TOKMAP_OK;
    os_mutex_lock(writer->mutex);
    writer->closing = true;
    os_condition_signal(writer->wake);
    os_mutex_unlock(writer->mutex);
    os_thread_join(writer->thread);
    const enum tokmap_status status = values_sync(writer, error);
    writer_free(writer);
    return status;
}
