/* SPDX-License-Identifier: MIT */
/* dropped_writer.c - see dropped_writer.h. Entries are collected in a buffer, which is hashed and written when it is
 * full; the header, which has the hash and the counts, is written last. */
#include "dropped_writer.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "dropped_file.h"
#include "format/name_files.h"
#include "format/partial_file.h"
#include "format/shard_file.h"
#include "platform/os.h"

#define BUFFER ((size_t)1 << 18)

struct dropped_writer {
    char *path, *partial;
    int fd;
    bool is_made;   /* true if there is a list of this writer, partial or named */
    bool named;     /* true if the partial file has been renamed */
    bool is_placed; /* true if the name of the partial file is on storage */
    bool is_left;   /* true if the partial file is not removed in the end */
    bool sync;      /* true if the name is synced, too */
    struct dropped_header header;
    struct hash_state *hash;
    uint8_t *buffer;
    size_t used;
    uint64_t stored;
};

static enum tokmap_status write_failed(const struct dropped_writer *writer, int system, struct tokmap_error *error)
{
    return error_set_system(error, system, writer->partial, TOKMAP_NO_OFFSET,
                            "the list of dropped documents cannot be written");
}

static enum tokmap_status partial_create(struct dropped_writer *writer, struct tokmap_error *error)
{
    struct os_stat stat;
    if (!os_lstat(writer->path, &stat) && !dropped_is_file(writer->path))
        return error_set(error, TOKMAP_ERROR_EXISTS, writer->path, TOKMAP_NO_OFFSET,
                         "the list of dropped documents would replace this file, which is not such a list; move it, or "
                         "choose another output");
    const int system = partial_file_open(writer->partial, NULL, NULL, &writer->fd);
    if (system == EWOULDBLOCK)
        return error_set(error, TOKMAP_ERROR_BUSY, writer->partial, TOKMAP_NO_OFFSET,
                         "another process is writing this list of dropped documents; wait for it, or choose another "
                         "output");
    return system ? write_failed(writer, system, error) : TOKMAP_OK;
}

/* Makes a writer without a file. */
static enum tokmap_status writer_new(struct dropped_writer **writer, const char *name, struct tokmap_error *error)
{
    struct dropped_writer *made = *writer = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "a list of dropped documents", sizeof *made);
    made->fd = -1;
    made->path = shard_file_path(name, SHARD_DROPPED, SHARD_FINAL);
    made->partial = shard_file_path(name, SHARD_DROPPED, SHARD_PARTIAL);
    made->buffer = malloc(BUFFER);
    made->hash = hash_state_new();
    made->stored = sizeof made->header;
    if (made->path && made->partial && made->buffer && made->hash)
        return TOKMAP_OK;
    dropped_writer_free(made);
    *writer = NULL;
    return error_set_memory(error, "a list of dropped documents", BUFFER);
}

enum tokmap_status dropped_writer_open(struct dropped_writer **writer, const char *name, struct tokmap_error *error)
{
    enum tokmap_status status = writer_new(writer, name, error);
    struct dropped_writer *made = *writer;
    if (!status)
        status = partial_create(made, error);
    if (!status)
        made->is_made = true;
    if (status) {
        dropped_writer_free(made);
        *writer = NULL;
    }
    return status;
}

static enum tokmap_status buffer_write(struct dropped_writer *writer, struct tokmap_error *error)
{
    const int system = writer->used ? os_pwrite(writer->fd, writer->buffer, writer->used, writer->stored) : 0;
    if (system)
        return write_failed(writer, system, error);
    hash_state_add(writer->hash, writer->buffer, writer->used);
    writer->stored += writer->used;
    writer->used = 0;
    return TOKMAP_OK;
}

static enum tokmap_status bytes_add(struct dropped_writer *writer, const void *bytes, uint64_t count,
                                    struct tokmap_error *error)
{
    assert(!writer->header.file_bytes); /* dropped_writer_finish() sets them */
    while (count) {
        if (writer->used == BUFFER) {
            const enum tokmap_status status = buffer_write(writer, error);
            if (status)
                return status;
        }
        const size_t part = (size_t)min64(count, BUFFER - writer->used);
        memcpy(writer->buffer + writer->used, bytes, part);
        writer->used += part;
        bytes = (const uint8_t *)bytes + part;
        count -= part;
    }
    return TOKMAP_OK;
}

/* Adds zeros after an entry of `bytes` bytes. */
static enum tokmap_status entry_pad(struct dropped_writer *writer, uint64_t bytes, struct tokmap_error *error)
{
    static const uint8_t zeros[8];
    return bytes_add(writer, zeros, round_up(bytes, 8) - bytes, error);
}

static enum tokmap_status path_entry_add(struct dropped_writer *writer, enum dropped_type type, const char *path,
                                         struct tokmap_error *error)
{
    const uint64_t bytes = min64(strlen(path), DROPPED_TEXT_MOST);
    const struct dropped_input entry = {.type = type, .path_bytes = (uint32_t)bytes};
    assert(bytes);
    enum tokmap_status status = bytes_add(writer, &entry, sizeof entry, error);
    if (!status)
        status = bytes_add(writer, path, bytes, error);
    return status ? status : entry_pad(writer, sizeof entry + bytes, error);
}

enum tokmap_status dropped_writer_reading(struct dropped_writer *writer, const char *reading,
                                          struct tokmap_error *error)
{
    assert(writer->stored == sizeof writer->header && !writer->used);
    writer->header.minor = DROPPED_MINOR_READING;
    return path_entry_add(writer, DROPPED_READING, reading, error);
}

enum tokmap_status dropped_writer_input(struct dropped_writer *writer, const char *path, struct tokmap_error *error)
{
    writer->header.inputs++;
    return path_entry_add(writer, DROPPED_INPUT, path, error);
}

enum tokmap_status dropped_writer_ngram(struct dropped_writer *writer, const char *text, uint64_t bytes,
                                        const char *path, uint64_t record, struct tokmap_error *error)
{
    const uint64_t path_bytes = min64(strlen(path), DROPPED_TEXT_MOST);
    if (bytes > DROPPED_NGRAM_MOST)
        for (bytes = DROPPED_NGRAM_MOST; bytes > 1 && ((uint8_t)text[bytes] & 0xc0) == 0x80;)
            bytes--;
    const struct dropped_ngram entry = {
        .type = DROPPED_NGRAM, .text_bytes = (uint32_t)bytes, .record = record, .path_bytes = (uint32_t)path_bytes};
    assert(bytes && path_bytes);
    writer->header.ngrams++;
    enum tokmap_status status = bytes_add(writer, &entry, sizeof entry, error);
    if (!status)
        status = bytes_add(writer, text, bytes, error);
    if (!status)
        status = bytes_add(writer, path, path_bytes, error);
    return status ? status : entry_pad(writer, sizeof entry + bytes + path_bytes, error);
}

enum tokmap_status dropped_writer_duplicate(struct dropped_writer *writer, bool near, uint32_t input, uint64_t record,
                                            uint32_t kept_input, uint64_t kept_record, struct tokmap_error *error)
{
    const struct dropped_duplicate entry = {.type = near ? DROPPED_NEAR_DUPLICATE : DROPPED_DUPLICATE,
                                            .input = input,
                                            .record = record,
                                            .kept_record = kept_record,
                                            .kept_input = kept_input};
    writer->header.duplicates++;
    if (near && !writer->header.minor)
        writer->header.minor = DROPPED_MINOR_NEAR;
    return bytes_add(writer, &entry, sizeof entry, error);
}

enum tokmap_status dropped_writer_excluded(struct dropped_writer *writer, uint32_t input, uint64_t record,
                                           uint64_t ngram, struct tokmap_error *error)
{
    const struct dropped_excluded entry = {.type = DROPPED_EXCLUDED, .input = input, .record = record, .ngram = ngram};
    writer->header.excluded++;
    return bytes_add(writer, &entry, sizeof entry, error);
}

/* ---- save and continue ---- */

enum tokmap_status dropped_writer_save(struct dropped_writer *writer, struct dropped_state *state,
                                       struct tokmap_error *error)
{
    const struct dropped_header *header = &writer->header;
    const enum tokmap_status status = buffer_write(writer, error);
    *state = (struct dropped_state){.stored = writer->stored,
                                    .inputs = header->inputs,
                                    .ngrams = header->ngrams,
                                    .duplicates = header->duplicates,
                                    .excluded = header->excluded,
                                    .minor = header->minor,
                                    .hash = hash_state_64(writer->hash)};
    return status;
}

enum tokmap_status dropped_writer_sync(struct dropped_writer *writer, struct tokmap_error *error)
{
    int system = writer->fd < 0 ? 0 : os_sync(writer->fd);
    if (!system && writer->fd >= 0 && !writer->is_placed) /* else a checkpoint counts on a file that has no name */
        system = os_sync_folder(writer->partial);
    writer->is_placed = !system;
    return system ? write_failed(writer, system, error) : TOKMAP_OK;
}

static enum tokmap_status not_continued(const struct dropped_writer *writer, enum tokmap_status status, const char *why,
                                        struct tokmap_error *error)
{
    return error_set(error, status, writer->partial, TOKMAP_NO_OFFSET,
                     "the unfinished list of dropped documents cannot be continued: %s; start over with "
                     "--no-resume",
                     why);
}

/* Checks, when the partial file is gone, that the killed process has given the complete list its name. */
static enum tokmap_status named_take(struct dropped_writer *writer, const struct dropped_state *state,
                                     struct tokmap_error *error)
{
    struct dropped_file *file;
    struct tokmap_error unused;
    if (!dropped_open(&file, writer->path, NULL, NULL, &unused)) {
        const struct dropped_header *header = dropped_header(file);
        writer->named = header->body_hash == state->hash && header->file_bytes == state->stored;
        dropped_close(file);
    }
    return writer->named ? TOKMAP_OK : not_continued(writer, TOKMAP_ERROR_NOT_FOUND, "it is gone", error);
}

/* Hashes the entries that a killed process has written, and removes what follows them. */
static enum tokmap_status entries_take(struct dropped_writer *writer, const struct dropped_state *state,
                                       struct tokmap_error *error)
{
    while (writer->stored < state->stored) {
        size_t got = 0;
        const size_t wanted = (size_t)min64(BUFFER, state->stored - writer->stored);
        const int system = os_pread(writer->fd, writer->buffer, wanted, writer->stored, &got);
        if (system)
            return error_set_system(error, system, writer->partial, TOKMAP_NO_OFFSET,
                                    "the unfinished list of dropped documents cannot be read");
        if (!got)
            break;
        hash_state_add(writer->hash, writer->buffer, got);
        writer->stored += got;
    }
    if (writer->stored != state->stored || hash_state_64(writer->hash) != state->hash)
        return not_continued(writer, TOKMAP_ERROR_CORRUPT, "it is damaged", error);
    const int system = os_truncate(writer->fd, writer->stored);
    return system ? write_failed(writer, system, error) : TOKMAP_OK;
}

enum tokmap_status dropped_writer_reopen(struct dropped_writer **writer, const char *name,
                                         const struct dropped_state *state, struct tokmap_error *error)
{
    enum tokmap_status status = writer_new(writer, name, error);
    struct dropped_writer *made = *writer;
    if (status)
        return status;
    made->header.inputs = state->inputs;
    made->header.ngrams = state->ngrams;
    made->header.duplicates = state->duplicates;
    made->header.excluded = state->excluded;
    made->header.minor = (uint16_t)state->minor;
    const int system = partial_file_reopen(made->partial, &made->fd);
    if (system == ENOENT)
        status = named_take(made, state, error);
    else if (system)
        status = error_set_system(error, system, made->partial, TOKMAP_NO_OFFSET,
                                  "the unfinished list of dropped documents cannot be continued");
    else
        status = entries_take(made, state, error);
    made->is_made = !status;
    if (!status)
        return TOKMAP_OK;
    dropped_writer_leave(made);
    *writer = NULL;
    return status;
}

void dropped_writer_leave(struct dropped_writer *writer)
{
    if (writer)
        writer->is_left = true;
    dropped_writer_free(writer);
}

/* ---- the end ---- */

enum tokmap_status dropped_writer_finish(struct dropped_writer *writer, uint64_t documents, bool sync,
                                         struct tokmap_error *error)
{
    struct dropped_header *header = &writer->header;
    writer->sync = sync;
    assert(!header->file_bytes);
    const enum tokmap_status status = writer->named ? TOKMAP_OK : buffer_write(writer, error);
    if (status || writer->named)
        return status;
    memcpy(header->magic, DROPPED_MAGIC, sizeof header->magic);
    header->major = DROPPED_MAJOR;
    header->header_bytes = sizeof *header;
    header->file_bytes = writer->stored;
    header->documents = documents;
    header->body_hash = hash_state_64(writer->hash);
    header->header_hash = hash64(header, offsetof(struct dropped_header, header_hash));
    int system = os_pwrite(writer->fd, header, sizeof *header, 0);
    if (!system && sync)
        system = os_sync(writer->fd);
    return system ? write_failed(writer, system, error) : TOKMAP_OK;
}

const struct dropped_header *dropped_writer_header(const struct dropped_writer *writer)
{
    return &writer->header;
}

enum tokmap_status dropped_writer_commit(struct dropped_writer *writer, struct tokmap_error *error)
{
    assert(writer->named || writer->header.file_bytes);
    /* Synced, because the next step, such as naming the shards, may reach storage first, and the list would be lost. */
    const int system = writer->named ? 0 : name_file(-1, writer->partial, writer->path, writer->sync, &writer->named);
    return system ? error_set_system(error, system, writer->path, TOKMAP_NO_OFFSET,
                                     "the list of dropped documents cannot be given its name")
                  : TOKMAP_OK;
}

void dropped_writer_given(struct dropped_writer *writer)
{
    assert(writer->named || writer->header.file_bytes);
    writer->named = true;
}

void dropped_writer_free(struct dropped_writer *writer)
{
    if (!writer)
        return;
    if (writer->is_made && !writer->named && !writer->is_left)
        (void)os_unlink(writer->partial);
    os_close(writer->fd);
    hash_state_free(writer->hash);
    free(writer->buffer);
    free(writer->path);
    free(writer->partial);
    free(writer);
}

void drop_names_add(struct name_files *group, const char *name, bool listed)
{
    char *path = shard_file_path(name, SHARD_DROPPED, SHARD_FINAL);
    char *partial = shard_file_path(name, SHARD_DROPPED, SHARD_PARTIAL);
    if (group && (listed || !path || !partial)) {
        name_files_add(group, 0, partial, path);
        return;
    }
    if (!listed && partial && partial_file_begins(partial, DROPPED_MAGIC)) /* of a killed process */
        (void)os_unlink(partial);
    if (group && dropped_is_file(path))
        name_files_remove(group, 0, strdup(path));
    free(partial);
    free(path);
}
