/* SPDX-License-Identifier: MIT */
/* values_notes.c - see values_notes.h. */
#include "values_notes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "format/partial_file.h"
#include "platform/os.h"
#include "text/path.h"

static const uint8_t magic[8] = "\x89TVN\r\n\x1a\n";
#define LOCK_NAME "lock"
#define LOCK_TRIES 1000
#define LOCK_PAUSE_NS 10000000

struct values_chunk {
    uint64_t count, hash; /* the hash is of the count and the records */
    struct values_record records[VALUES_CHUNK_MOST];
};
#define CHUNK_HEAD offsetof(struct values_chunk, records)

static uint64_t chunk_hash(const struct values_chunk *chunk)
{
    return hash64_seeded(chunk->records, (size_t)chunk->count * sizeof *chunk->records, chunk->count);
}

/* ---- the folder ---- */

enum tokmap_status values_notes_lock(const char *folder, int *lock, struct tokmap_error *error)
{
    char *path = path_in(folder, LOCK_NAME);
    int system = path ? EWOULDBLOCK : ENOMEM;
    *lock = -1;
    for (int try = 0; try < LOCK_TRIES && (system == EWOULDBLOCK || system == ENOENT); try++) {
        if (try)
            os_sleep_ns(LOCK_PAUSE_NS);
        system = os_make_folder(folder);
        if (!system)
            system = os_sync_folder(folder);
        if (!system || system == EEXIST) /* ENOENT: another process has removed the empty folder */
            system = partial_file_open(path, NULL, NULL, lock);
    }
    enum tokmap_status status = TOKMAP_OK;
    if (system == EWOULDBLOCK)
        status = error_set(error, TOKMAP_ERROR_BUSY, path, TOKMAP_NO_OFFSET,
                           "another process opens or finishes these values; wait until it has done so");
    else if (system)
        status = error_set_system(error, system, folder, TOKMAP_NO_OFFSET, "the notes of values cannot be locked");
    free(path);
    return status;
}

void values_notes_unlock(const char *folder, int lock)
{
    char *path = lock < 0 ? NULL : path_in(folder, LOCK_NAME);
    if (path)
        (void)os_unlink(path);
    os_close(lock);
    if (path)
        (void)os_remove_folder(folder);
    free(path);
}

/* ---- writing ---- */

static enum tokmap_status note_failed(const struct values_note *note, int system, struct tokmap_error *error)
{
    return error_set_system(error, system, note->path, note->end,
                            "what was written cannot be noted; what was put since the last note is lost: close the "
                            "writer, and put it again with a new one");
}

enum tokmap_status values_note_open(struct values_note *note, const char *folder, struct tokmap_error *error)
{
    enum { HOST_MOST = 64 };
    char host[HOST_MOST], name[HOST_MOST + 40];
    uint64_t number = 0;
    *note = (struct values_note){.folder = strdup(folder), .fd = -1, .chunk = malloc(sizeof *note->chunk)};
    os_host_name(host, sizeof host);
    for (char *at = host; *at; at++)
        if (*at == '/' || *at == '\n')
            *at = '_';
    int system = os_random(&number, sizeof number);
    (void)snprintf(name, sizeof name, "%s-%" PRIu32 "-%016" PRIx64, host, os_process_id(), number);
    note->path = path_in(folder, name);
    if (!note->path || !note->folder || !note->chunk)
        system = ENOMEM;
    if (!system && (system = os_open(note->path, OS_WRITE_NEW, &note->fd)))
        note->fd = -1;
    if (!system)
        system = os_lock(note->fd);
    if (!system)
        system = os_pwrite(note->fd, magic, sizeof magic, 0);
    if (!system)
        system = os_sync_folder(note->path);
    note->end = sizeof magic;
    const enum tokmap_status status = system ? note_failed(note, system, error) : TOKMAP_OK;
    if (status)
        values_note_close(note);
    return status;
}

bool values_note_wait(struct values_note *note, const struct values_record *record)
{
    struct values_record *last = note->count ? &note->records[note->count - 1] : NULL;
    if (last && last->work == record->work && last->first + last->tokens == record->first) {
        last->tokens += record->tokens;
        return true;
    }
    if (!list_room(&note->records, note->count, &note->room, sizeof *note->records))
        return false;
    note->records[note->count++] = *record;
    return true;
}

static int record_compare(const void *a, const void *b)
{
    const struct values_record *x = a, *y = b;
    return x->work != y->work ? (x->work < y->work ? -1 : 1) : x->first < y->first ? -1 : x->first > y->first;
}

/* Appends the chunk. Returns an errno. */
static int chunk_append(struct values_note *note)
{
    struct values_chunk *chunk = note->chunk;
    const size_t bytes = CHUNK_HEAD + (size_t)chunk->count * sizeof *chunk->records;
    chunk->hash = chunk_hash(chunk);
    const int system = os_pwrite(note->fd, chunk, bytes, note->end);
    note->end += bytes;
    return system;
}

enum tokmap_status values_note_store(struct values_note *note, struct tokmap_error *error)
{
    struct values_chunk *chunk = note->chunk;
    int system = 0;
    if (note->count)
        qsort(note->records, (size_t)note->count, sizeof *note->records, record_compare);
    for (uint64_t i = 0; i < note->count && !system; system = chunk_append(note)) {
        for (chunk->count = 0; i < note->count; i++) {
            const struct values_record *next = &note->records[i];
            struct values_record *last = chunk->count ? &chunk->records[chunk->count - 1] : NULL;
            if (last && last->work == next->work && last->first + last->tokens == next->first)
                last->tokens += next->tokens;
            else if (chunk->count == VALUES_CHUNK_MOST)
                break;
            else
                chunk->records[chunk->count++] = *next;
        }
    }
    if (!system && note->count)
        system = os_sync(note->fd);
    note->noted = note->noted || note->count;
    note->count = 0;
    return system ? note_failed(note, system, error) : TOKMAP_OK;
}

enum tokmap_status values_note_opened(struct values_note *note, uint64_t work, struct tokmap_error *error)
{
    note->chunk->count = 1;
    note->chunk->records[0] = (struct values_record){work, 0, 0};
    const int system = chunk_append(note);
    return system ? note_failed(note, system, error) : TOKMAP_OK;
}

void values_note_close(struct values_note *note)
{
    if (note->fd >= 0 && !note->noted) {
        (void)os_unlink(note->path);
        (void)os_remove_folder(note->folder);
    }
    os_close(note->fd);
    free(note->records);
    free(note->chunk);
    free(note->path);
    free(note->folder);
}

/* ---- reading ---- */

/* Reads the chunk at byte `at`. *bytes is 0 at the end, also where the rest is torn: shorter than it says, zeros, or a
 * last chunk without its hash. */
static enum tokmap_status chunk_read(int fd, const char *path, uint64_t at, uint64_t end, struct values_chunk *chunk,
                                     uint64_t *bytes, struct tokmap_error *error)
{
    size_t got = 0;
    *bytes = 0;
    memset(chunk, 0, CHUNK_HEAD);
    const int system = os_pread(fd, chunk, (size_t)min64(sizeof *chunk, end - at), at, &got);
    if (system)
        return error_set_system(error, system, path, at, "the notes of a writer cannot be read");
    if (got < CHUNK_HEAD)
        return TOKMAP_OK;
    const bool possible = chunk->count <= VALUES_CHUNK_MOST;
    const uint64_t whole = possible ? CHUNK_HEAD + chunk->count * sizeof *chunk->records : 0;
    if (whole > got || (!chunk->count && !chunk->hash))
        return TOKMAP_OK;
    if (!possible || chunk->hash != chunk_hash(chunk))
        return whole == end - at ? TOKMAP_OK
                                 : error_set(error, TOKMAP_ERROR_CORRUPT, path, at,
                                             "the notes of a writer do not match their hash; remove this file, and put "
                                             "again what the writer had put");
    *bytes = whole;
    return TOKMAP_OK;
}

enum tokmap_status values_note_scan(const char *path, bool *locked,
                                    enum tokmap_status (*found)(void *user, const struct values_record *record,
                                                                struct tokmap_error *error),
                                    void *user, struct tokmap_error *error)
{
    struct values_chunk *chunk = malloc(sizeof *chunk);
    uint8_t head[sizeof magic] = {0};
    struct os_stat stat = {0};
    size_t got = 0;
    int fd = -1, system = chunk ? os_open(path, OS_WRITE_OLD, &fd) : ENOMEM;
    if (!system)
        system = os_lock(fd);
    *locked = system == EWOULDBLOCK;
    if (*locked)
        system = 0;
    if (!system)
        system = os_fstat(fd, &stat);
    if (!system)
        system = os_pread(fd, head, sizeof head, 0, &got);
    enum tokmap_status status = TOKMAP_OK;
    if (system)
        status = error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the notes of a writer cannot be read");
    else if (stat.bytes > sizeof head && memcmp(head, magic, sizeof head) != 0)
        status = error_set(error, TOKMAP_ERROR_CORRUPT, path, 0,
                           "this file among the notes of writers is damaged or not a note; remove it, and put again "
                           "what the writer had put");
    for (uint64_t at = sizeof head, bytes = 1; !status && at < stat.bytes && bytes; at += bytes) {
        status = chunk_read(fd, path, at, stat.bytes, chunk, &bytes, error);
        for (uint64_t i = 0; i < chunk->count && bytes && !status; i++)
            status = found(user, &chunk->records[i], error);
    }
    if (fd >= 0)
        os_close(fd);
    free(chunk);
    return status;
}
